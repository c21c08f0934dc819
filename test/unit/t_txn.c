/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions and invariants against a naive model: after each of many random transactions the
 * cache accepts exactly what a look at all pairs of containers accepts, and what was refused or
 * dropped has left no trace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/cache/invariant.h"

#define N_CTRS 12u
#define N_CPUS 16u
#define N_STEPS 100000u

static struct cache *cache;
static struct ctr *ctrs[N_CTRS];
static struct rp_idset online, nodes;

static uint32_t seed = 20261121;
static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static int setup(void **state)
{
	cache = cache_new(1 << 30);
	const struct pod_desc pd = {.id = "p",
				    .name = "p",
				    .uid = "",
				    .ns = "n",
				    .runtime_handler = "",
				    .cgroup_parent = ""};
	struct pod *pod;
	assert_int_equal(cache_put_pod(cache, &pd, &pod, NULL), 0);
	for (uint32_t i = 0; i < N_CTRS; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "c%u", i);
		const struct ctr_desc d = {.id = id,
					   .pod_id = "p",
					   .name = id,
					   .cgroups_path = "",
					   .state = RP_STATE_RUNNING,
					   .oom_score_adj = RP_NOT_SET,
					   .res = {.amounts = CPU_AMOUNTS_NONE}};
		assert_int_equal(cache_put_ctr(cache, &d, &ctrs[i], NULL), 0);
	}
	assert_int_equal(rp_idset_parse(&online, "0-13", RP_CPUS_MAX), 0);
	assert_int_equal(rp_idset_parse(&nodes, "0-1", RP_NODES_MAX), 0);
	return 0;
}

static int teardown(void **state)
{
	cache = cache_free(cache);
	return 0;
}

static struct iset *set_of(const char *text)
{
	struct rp_idset ids;
	assert_int_equal(rp_idset_parse(&ids, text, RP_CPUS_MAX), 0);
	return intern_get(cache_sets(cache), rp_ids_of(&ids));
}

static int check(struct txn *t, struct err *err)
{
	const struct invariants inv = {rp_ids_of(&online), rp_ids_of(&nodes)};
	return txn_check(t, &inv, err);
}

/* Stages, checks, and ends: commits when it may. */
static int put(struct ctr *ctr, const char *cpus, const char *exclusive, struct err *err)
{
	struct txn *t = txn_begin(cache);
	struct decision *d = txn_stage(t, ctr);
	txn_put_set(cache, &d->cpus, cpus ? set_of(cpus) : NULL);
	txn_put_set(cache, &d->exclusive, exclusive ? set_of(exclusive) : NULL);
	int r = check(t, err);
	if (!r)
		txn_commit(t);
	txn_end(t);
	return r;
}

/* ---- single rules ---------------------------------------------------------------------------- */

static void test_each_invariant(void **state)
{
	struct err err = ERR_INIT;
	assert_int_equal(put(ctrs[0], "0-1", "0-1", &err), 0);
	assert_int_equal(put(ctrs[1], "1-2", NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "CPU 1, which is exclusive to container n/p/c0"));
	assert_int_equal(put(ctrs[1], "2-14", NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "CPUs 14, which are not online"));
	assert_int_equal(put(ctrs[1], "", NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "without any CPU"));
	assert_int_equal(put(ctrs[1], "2", "3", &err), -EINVAL);
	assert_non_null(strstr(err.text, "not among its CPUs"));
	assert_int_equal(put(ctrs[1], "2-5", NULL, &err), 0);
	assert_int_equal(put(ctrs[2], "5-6", "5-6", &err), -EINVAL);
	assert_non_null(strstr(err.text, "on which other containers run"));
	assert_int_equal(put(ctrs[1], NULL, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "lost its CPU set"));
	ctrs[3]->flags |= RP_CTR_PRESERVE_CPU;
	assert_int_equal(put(ctrs[3], "7", NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is unmanaged by annotation"));
	ctrs[3]->flags = 0;
}

static void test_memory_nodes(void **state)
{
	struct err err = ERR_INIT;
	struct txn *t = txn_begin(cache);
	txn_put_set(cache, &txn_stage(t, ctrs[0])->mems, set_of("1-2"));
	assert_int_equal(check(t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "memory nodes 2, which have no memory"));
	txn_put_set(cache, &txn_stage(t, ctrs[0])->mems, set_of("1"));
	assert_int_equal(check(t, &err), 0);
	txn_end(t);
	assert_null(ctrs[0]->cur.mems);
}

static void test_cpus_change_hands_in_one_transaction(void **state)
{
	struct err err = ERR_INIT;
	assert_int_equal(put(ctrs[0], "0-1", "0-1", &err), 0);
	assert_int_equal(put(ctrs[1], "2-3", "2-3", &err), 0);
	struct txn *t = txn_begin(cache);
	struct decision *a = txn_stage(t, ctrs[0]), *b = txn_stage(t, ctrs[1]);
	txn_put_set(cache, &a->cpus, set_of("2-3"));
	txn_put_set(cache, &a->exclusive, set_of("2-3"));
	txn_put_set(cache, &b->cpus, set_of("0-1"));
	txn_put_set(cache, &b->exclusive, set_of("0-1"));
	assert_int_equal(check(t, &err), 0);
	txn_commit(t);
	txn_end(t);
	assert_int_equal(put(ctrs[2], "2", NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "exclusive to container n/p/c0"));
	assert_int_equal(put(ctrs[2], "0", NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "exclusive to container n/p/c1"));
}

static void test_exited_containers_hold_nothing(void **state)
{
	struct err err = ERR_INIT;
	assert_int_equal(put(ctrs[0], "0-1", "0-1", &err), 0);
	struct txn *t = txn_begin(cache);
	txn_stage(t, ctrs[0])->state = RP_STATE_EXITED;
	assert_int_equal(check(t, &err), 0);
	txn_commit(t);
	txn_end(t);
	assert_int_equal(put(ctrs[1], "0-1", "0-1", &err), 0);
	cache_del_ctr(cache, ctrs[1]);
	assert_int_equal(put(ctrs[2], "0-1", NULL, &err), 0);
}

static void test_extras_belong_to_the_created(void **state)
{
	const struct extra e = {.field = RP_F_ENV, .key = "A", .text = "1", .by = "x"};
	struct txn *t = txn_begin(cache);
	assert_null(txn_created(t));
	txn_set_created(t, ctrs[0]);
	assert_ptr_equal(txn_created(t), ctrs[0]);
	assert_int_equal(extras_put(txn_extras(t), &e, NULL), 0);
	assert_int_equal(txn_extras(t)->n, 1);
	txn_rollback(t);
	assert_int_equal(txn_extras(t)->n, 0);
	txn_end(t);
}

static void test_ids_of_transactions(void **state)
{
	assert_int_equal(cache_running_txn(cache), 0);
	struct txn *t = txn_begin(cache);
	uint64_t id = txn_id(t);
	assert_ptr_equal(txn_of(cache, id), t);
	assert_null(txn_of(cache, id + 1));
	assert_ptr_equal(txn_cache(t), cache);
	(void)txn_stage(t, ctrs[0]);
	assert_int_equal(txn_n_touched(t), 1);
	assert_int_equal(txn_changed(txn_touched(t)), 0);
	txn_commit(t);
	assert_null(txn_of(cache, id));
	assert_int_equal(cache_running_txn(cache), 0);
	txn_end(t);
	t = txn_begin(cache);
	assert_true(txn_id(t) != id);
	txn_end(t);
	txn_end(NULL);
}

static void test_what_changed(void **state)
{
	struct txn *t = txn_begin(cache);
	struct decision *d = txn_stage(t, ctrs[0]);
	d->shares = 5;
	txn_put_blob(&d->rdt_class, blob_str("gold"));
	txn_put_blob(&d->private_data, blob_str("x"));
	txn_put_blob(&d->degraded, blob_str("why"));
	assert_int_equal(txn_changed(txn_touched(t)),
			 DIFF_SHARES | TXN_CHANGED_CLASS | TXN_CHANGED_OTHER);
	txn_commit(t);
	/* the stage holds the former decision now */
	assert_int_equal(txn_changed(txn_touched(t)),
			 DIFF_SHARES | TXN_CHANGED_CLASS | TXN_CHANGED_OTHER);
	txn_end(t);
	assert_string_equal(ctrs[0]->cur.rdt_class->data, "gold");
}

/* ---- the model ------------------------------------------------------------------------------- */

struct model {
	uint32_t cpus, exclusive; /* bit masks; cpus 0: none */
	bool live;
	uint32_t group;
};

/* Does b run where a owns? Members of a group do, where they own as well. */
static bool intrudes(const struct model *a, const struct model *b)
{
	uint32_t both = a->exclusive & b->cpus;
	return a->group && a->group == b->group ? (both & ~b->exclusive) != 0 : both != 0;
}

static struct iset *set_of_mask(uint32_t mask)
{
	struct rp_idset ids;
	rp_idset_clear(&ids);
	for (uint32_t cpu = 0; cpu < N_CPUS; cpu++)
		if (mask >> cpu & 1)
			rp_idset_add(&ids, cpu);
	return intern_get(cache_sets(cache), rp_ids_of(&ids));
}

static bool model_accepts(const struct model *m, const bool *touched, const struct model *before)
{
	for (uint32_t i = 0; i < N_CTRS; i++) {
		if (!m[i].live)
			continue;
		if (touched[i] && ((m[i].cpus & ~0x3fffu && m[i].cpus != before[i].cpus) ||
				   (m[i].exclusive & ~m[i].cpus)))
			return false;
		if (touched[i] && before[i].cpus && !m[i].cpus)
			return false;
		for (uint32_t j = 0; j < N_CTRS; j++)
			if (i != j && m[j].live && intrudes(&m[i], &m[j]))
				return false;
	}
	return true;
}

static void stage_random(struct txn *t, struct model *next, bool *touched)
{
	uint32_t shared = 0x3ff << random_below(4), n = 1 + random_below(4);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = random_below(N_CTRS);
		struct decision *d = txn_stage(t, ctrs[i]);
		touched[i] = true;
		uint32_t what = random_below(10);
		next[i].live = what != 0;
		next[i].exclusive = what < 4 ? 3u << random_below(13) : 0;
		next[i].cpus = what < 4 ? next[i].exclusive |
						  (random_below(4) ? 0 : 1u << random_below(14))
					: shared;
		if (what == 9)
			next[i].cpus = 1u << random_below(16);
		next[i].group = random_below(2) ? random_below(3) : 0;
		if (next[i].group && random_below(3))
			next[i].cpus = next[i].exclusive ? next[i].exclusive : next[i].cpus;
		d->group = next[i].group;
		d->state = next[i].live ? RP_STATE_RUNNING : RP_STATE_EXITED;
		txn_put_set(cache, &d->cpus, next[i].cpus ? set_of_mask(next[i].cpus) : NULL);
		txn_put_set(cache, &d->exclusive,
			    next[i].exclusive ? set_of_mask(next[i].exclusive) : NULL);
	}
}

static void assert_same(const struct model *m)
{
	for (uint32_t i = 0; i < N_CTRS; i++) {
		struct iset *cpus = m[i].cpus ? set_of_mask(m[i].cpus) : NULL;
		assert_ptr_equal(ctrs[i]->cur.cpus, cpus);
		assert_int_equal(ctr_live(ctrs[i]->cur.state), m[i].live);
		if (cpus)
			intern_unref(cache_sets(cache), cpus);
	}
}

static void test_random_transactions(void **state)
{
	struct model now[N_CTRS];
	unsigned accepted = 0;
	for (uint32_t i = 0; i < N_CTRS; i++)
		now[i] = (struct model){0, 0, true, 0};
	for (unsigned step = 0; step < N_STEPS; step++) {
		struct model next[N_CTRS];
		bool touched[N_CTRS] = {false};
		memcpy(next, now, sizeof now);
		struct txn *t = txn_begin(cache);
		stage_random(t, next, touched);
		struct err err = ERR_INIT;
		bool good = check(t, &err) == 0;
		if (good != model_accepts(next, touched, now))
			fail_msg("step %u: cache says %s, model the contrary", step,
				 good ? "good" : err.text);
		if (random_below(8) == 0) {
			txn_rollback(t);
		} else if (good) {
			txn_commit(t);
			memcpy(now, next, sizeof now);
			accepted++;
		}
		txn_end(t);
		if (step % 100 == 0)
			assert_same(now);
	}
	assert_same(now);
	assert_in_range(accepted, N_STEPS / 20, N_STEPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_invariant, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_nodes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cpus_change_hands_in_one_transaction, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_exited_containers_hold_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_extras_belong_to_the_created, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ids_of_transactions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random_transactions, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
