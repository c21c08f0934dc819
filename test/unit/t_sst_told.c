/* SPDX-License-Identifier: Apache-2.0 */
/* Speed Select as it is told by one process and taken by another: what comes back is the same, and
 * what cannot be is refused. */
#include "test/preload/isst.c"

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/topo/sst.h"
#include "test/unit/t_topo_tree.h"

#define DEVICE ISST_PATH

static const char tpmi[] = "api 2\nthreads 2\n"
			   "punit 0 0 0 3 7 1 1 2\npunit 0 1 4 7 7 2 1 2\n"
			   "punit 1 0 8 11 7 1 2 1\npunit 1 1 12 15 7 2 1 2\n";
static const char now[] = "punit 0 1 on 3 ordered 1\nclos 0 1 3 min 800 max 2100 weight 4\n"
			  "cpu 4 3\ncpu 5 3\ncpu 8 1\ncpu 9 1\n";

/* Returns the message packed and unpacked again, as from a child. */
static Trial__SpeedSelect *carry(const Trial__SpeedSelect *m)
{
	size_t size = trial__speed_select__get_packed_size(m);
	uint8_t *bytes = malloc(size + 1);
	assert_non_null(bytes);
	assert_int_equal(trial__speed_select__pack(m, bytes), size);
	Trial__SpeedSelect *there = trial__speed_select__unpack(NULL, size, bytes);
	assert_non_null(there);
	free(bytes);
	return there;
}

/* Frees the message, as the encoder leaves that to the end of its process. */
static void forget(Trial__SpeedSelect *m)
{
	trial__speed_select__free_unpacked(m, NULL);
}

static void assert_same(struct topo *a, struct topo *b)
{
	assert_int_equal(sst_n_punits(a), sst_n_punits(b));
	assert_string_equal(sst_why(a), sst_why(b));
	for (uint32_t i = 0; i < sst_n_punits(a); i++) {
		struct rp_sst_punit x = {.size = sizeof x}, y = {.size = sizeof y};
		assert_int_equal(sst_punit(a, i, &x), 0);
		assert_int_equal(sst_punit(b, i, &y), 0);
		assert_true(rp_ids_equal(x.cpus, y.cpus));
		assert_true(rp_ids_equal(x.bf_cpus, y.bf_cpus));
		x.cpus = x.bf_cpus = y.cpus = y.bf_cpus = rp_ids_none();
		assert_memory_equal(&x, &y, sizeof x);
	}
	for (uint32_t cpu = 0; cpu < 20; cpu++)
		assert_int_equal(sst_clos_of(a, cpu), sst_clos_of(b, cpu));
}

static void test_told_and_taken(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, DEVICE, "%s", tpmi);
	tree_put(tree, DEVICE ".now", "%s", now);
	struct topo *t = tree_read(tree), *other = tree_read(tree);
	assert_false(sst_is_read(t));
	Trial__SpeedSelect *told = speedselect_told(t), *m = carry(told);
	assert_true(sst_is_read(t));
	/* Reading the report makes the second snapshot independent of the device. */
	isst_on_main = 0;
	assert_int_equal(speedselect_take(other, m), 0);
	assert_true(sst_is_read(other));
	assert_same(t, other);
	assert_int_equal(isst_on_main, 0);
	/* Forgotten, it is read once more. */
	tree_put(tree, DEVICE ".now", "cpu 4 2\n");
	assert_int_equal(sst_clos_of(other, 4), 3);
	sst_forget(other);
	assert_false(sst_is_read(other));
	assert_int_equal(sst_clos_of(other, 4), 2);
	assert_true(isst_on_main > 0);
	forget(told);
	forget(m);
	topo_free(t);
	topo_free(other);
}

static void test_none(void **state)
{
	const struct tree *tree = *state;
	struct topo *t = tree_read(tree), *other = tree_read(tree);
	Trial__SpeedSelect *told = speedselect_told(t), *m = carry(told);
	assert_int_equal(m->units.len, 0);
	assert_int_equal(speedselect_take(other, m), 0);
	assert_same(t, other);
	assert_non_null(strstr(sst_why(other), "isst_interface"));
	forget(told);
	forget(m);
	topo_free(t);
	topo_free(other);
}

static void test_another_machine(void **state)
{
	const struct tree *tree = *state;
	struct err err = ERR_INIT;
	tree_put(tree, DEVICE, "%s", tpmi);
	struct topo *t = tree_read(tree), *later;
	assert_int_equal(topo_reread(t, &later, &err), 0);
	Trial__SpeedSelect *m = speedselect_told(t);
	assert_int_equal(speedselect_take(later, m), -ESTALE);
	assert_false(sst_is_read(later));
	forget(m);
	topo_free(t);
	topo_free(later);
}

/* ---- invalid messages ------------------------------------------------------------------------ */

static struct rp_sst_punit *unit(Trial__SpeedSelect *m, size_t i)
{
	return &((struct speedselect_unit *)m->units.data)[i].punit;
}

static struct rp_idset *cpus(Trial__SpeedSelect *m, bool bf)
{
	struct speedselect_unit *u = (struct speedselect_unit *)m->units.data + 3;
	return bf ? &u->bf_cpus : &u->cpus;
}

static void far_cpus(Trial__SpeedSelect *m)
{
	rp_idset_add(cpus(m, false), 16); /* 16 is not online */
}

static void no_cpus(Trial__SpeedSelect *m)
{
	rp_idset_clear(cpus(m, false));
}

static void long_cpus(Trial__SpeedSelect *m)
{
	cpus(m, false)->nw = RP_IDSET_WORDS + 1;
}

static void shared_cpus(Trial__SpeedSelect *m)
{
	rp_idset_add(cpus(m, false), 11);
}

static void far_bf(Trial__SpeedSelect *m)
{
	rp_idset_add(cpus(m, true), 0);
}

static void long_bf(Trial__SpeedSelect *m)
{
	cpus(m, true)->nw = UINT32_MAX;
}

static void more_features(Trial__SpeedSelect *m)
{
	unit(m, 0)->supported = 15;
}

static void more_enabled(Trial__SpeedSelect *m)
{
	unit(m, 0)->supported = RP_SST_CP;
	unit(m, 0)->enabled = RP_SST_CP | RP_SST_TF;
}

static void odd_priority(Trial__SpeedSelect *m)
{
	unit(m, 0)->priority = 2;
}

static void not_in_order(Trial__SpeedSelect *m)
{
	unit(m, 1)->punit_id = 0;
}

static void buckets_down(Trial__SpeedSelect *m)
{
	unit(m, 0)->hp_cores[0] = 2;
	unit(m, 0)->hp_cores[1] = 1;
}

static void empty_bucket(Trial__SpeedSelect *m)
{
	unit(m, 0)->hp_cores[0] = 0;
}

static void large_bucket(Trial__SpeedSelect *m)
{
	unit(m, 0)->hp_cores[1] = 5; /* the punit has four CPUs */
}

static void many_buckets(Trial__SpeedSelect *m)
{
	unit(m, 0)->n_buckets = RP_SST_BUCKETS + 1;
}

static void half_unit(Trial__SpeedSelect *m)
{
	m->units.len--;
}

static void odd_clos(Trial__SpeedSelect *m)
{
	m->clos.data[5] = RP_CLOS_COUNT + 1;
}

static void few_cpus(Trial__SpeedSelect *m)
{
	m->clos.len = 15;
}

static void with_why(Trial__SpeedSelect *m)
{
	free(m->why == protobuf_c_empty_string ? NULL : m->why);
	m->why = strdup("but there are some");
}

static void without_why(Trial__SpeedSelect *m)
{
	m->units.len = 0;
}

static void test_refused(void **state)
{
	static void (*const wrong[])(Trial__SpeedSelect * m) = {
		far_cpus,     no_cpus,	     long_cpus,	   shared_cpus,	 far_bf,
		long_bf,      more_features, more_enabled, odd_priority, not_in_order,
		buckets_down, empty_bucket,  large_bucket, many_buckets, half_unit,
		odd_clos,     few_cpus,	     with_why,	   without_why,
	};
	const struct tree *tree = *state;
	tree_put(tree, DEVICE, "%s", tpmi);
	tree_put(tree, DEVICE ".now", "%s", now);
	struct topo *t = tree_read(tree), *other = tree_read(tree);
	Trial__SpeedSelect *m = speedselect_told(t);
	assert_int_equal(speedselect_take(other, m), 0);
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		Trial__SpeedSelect *bad = carry(m);
		wrong[i](bad);
		int r = speedselect_take(other, bad);
		if (r != -EINVAL)
			fail_msg("case %u: %d", i, r);
		/* the previous data is unchanged */
		assert_same(t, other);
		forget(bad);
	}
	forget(m);
	topo_free(t);
	topo_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_told_and_taken),
		tree_test(test_none),
		tree_test(test_another_machine),
		tree_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
