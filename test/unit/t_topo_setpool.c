/* SPDX-License-Identifier: Apache-2.0 */
/* core/lib/topo: the pool that keeps sets small. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/lib/topo/setpool.h"

struct fixture {
	struct arena *out, *scratch;
	struct set_pool pool;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	f->out = arena_new(4096, 4 << 20);
	f->scratch = arena_new(4096, 4 << 20);
	assert_int_equal(set_pool_init(&f->pool, f->out, f->scratch, 63), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	arena_free(f->out);
	arena_free(f->scratch);
	free(f);
	return 0;
}

static struct rp_ids add(struct fixture *f, const struct rp_idset *set)
{
	struct rp_ids v;
	assert_int_equal(set_pool_add(&f->pool, rp_ids_of(set), &v), 0);
	assert_true(rp_ids_equal(v, rp_ids_of(set)));
	return v;
}

static void test_empty(void **state)
{
	struct fixture *f = *state;
	struct rp_ids v;
	uint64_t zeros[4] = {0};
	assert_int_equal(set_pool_add(&f->pool, rp_ids_none(), &v), 0);
	assert_true(rp_ids_empty(v));
	assert_int_equal(set_pool_add(&f->pool, (struct rp_ids){zeros, 4, 0}, &v), 0);
	assert_int_equal(v.nw, 0);
	assert_int_equal(arena_used(f->out), 0);
}

/* Checks sets of a single CPU, and of two distant CPUs: sets with equal bits in their words
 * share a pattern. */
static void test_patterns_share(void **state)
{
	struct fixture *f = *state;
	struct rp_ids views[4096];
	struct rp_idset set;
	for (uint32_t cpu = 0; cpu < 4096; cpu++) {
		rp_idset_clear(&set);
		rp_idset_add(&set, cpu);
		views[cpu] = add(f, &set);
	}
	assert_int_equal(f->pool.n_used, 64);
	for (uint32_t cpu = 0; cpu < 2048; cpu++) {
		rp_idset_clear(&set);
		rp_idset_add(&set, cpu);
		rp_idset_add(&set, cpu + 2048);
		(void)add(f, &set);
	}
	assert_int_equal(f->pool.n_used, 128);
	assert_true(arena_used(f->out) < 100000);
	for (uint32_t cpu = 0; cpu < 4096; cpu++) {
		assert_int_equal(rp_ids_count(views[cpu]), 1);
		assert_int_equal(rp_ids_first(views[cpu]), cpu);
		assert_ptr_equal(views[cpu].w + views[cpu].nw, views[cpu % 64].w + 1);
	}
}

/* Positions beyond the zeros that were planned for. */
static void test_far_ids(void **state)
{
	struct fixture *f = *state;
	struct rp_idset set;
	struct rp_ids near, far;
	rp_idset_clear(&set);
	rp_idset_add(&set, 5);
	near = add(f, &set);
	rp_idset_clear(&set);
	rp_idset_add(&set, 8191 - 58);
	far = add(f, &set);
	/* shares the word of the first set, with more leading zeros */
	assert_int_equal(f->pool.n_used, 2);
	(void)add(f, &set);
	assert_int_equal(f->pool.n_used, 2);
	assert_int_equal(rp_ids_first(near), 5);
	assert_int_equal(rp_ids_first(far), 8133);
}

static void test_many_sets(void **state)
{
	struct fixture *f = *state;
	struct rp_ids views[3000];
	uint64_t x = 88172645463325252u;
	for (unsigned i = 0; i < 3000; i++) {
		struct rp_idset set;
		rp_idset_clear(&set);
		for (unsigned k = 0; k < i % 7 + 1; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			rp_idset_add(&set, (uint32_t)(x % 256));
		}
		views[i] = add(f, &set);
		assert_ptr_equal(add(f, &set).w, views[i].w);
	}
	assert_true(f->pool.n_used > 1000);
}

static void test_out_of_memory(void **state)
{
	struct fixture *f = *state;
	struct arena *tiny = arena_new(64, 64);
	struct set_pool p;
	struct rp_idset set;
	struct rp_ids v;
	assert_int_equal(set_pool_init(&p, f->out, tiny, 0), -ENOMEM);
	assert_int_equal(set_pool_init(&p, tiny, f->scratch, 63), 0);
	rp_idset_clear(&set);
	rp_idset_add(&set, 1);
	assert_int_equal(set_pool_add(&p, rp_ids_of(&set), &v), -ENOMEM);
	/* Room for the first table alone. */
	struct arena *some = arena_new(16384, 16384);
	assert_int_equal(set_pool_init(&p, f->out, some, 0), 0);
	int rc = 0;
	for (uint32_t i = 1; !rc && i < 1000; i++) {
		uint64_t word = i;
		rc = set_pool_add(&p, (struct rp_ids){&word, 1, 0}, &v);
	}
	assert_int_equal(rc, -ENOMEM);
	arena_free(some);
	arena_free(tiny);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_patterns_share, setup, teardown),
		cmocka_unit_test_setup_teardown(test_far_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_sets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_out_of_memory, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
