/* SPDX-License-Identifier: Apache-2.0 */
/* core/lib/topo: sets, packages to threads, kinds, caches, frequencies, getters. */
#include "core/lib/topo/impl.h"
#include "test/unit/t_topo_tree.h"

#define check(condition) assert_true(condition)
#include "test/unit/t_topo_check.h"

static void test_machine(void **state)
{
	struct topo *t = tree_read(*state);
	topo_check(t);
	assert_int_equal(topo_n_notes(t), 0);
	assert_int_equal(topo_generation(t), 1);
	assert_int_equal(topo_n_units(t, RP_LEVEL_PACKAGE), 2);
	assert_int_equal(topo_n_units(t, RP_LEVEL_DIE), 2);
	assert_int_equal(topo_n_units(t, RP_LEVEL_NODE), 4);
	assert_int_equal(topo_n_units(t, RP_LEVEL_CORE), 8);
	assert_int_equal(topo_n_units(t, RP_LEVEL_THREAD), 16);
	assert_int_equal(topo_n_units(t, RP_LEVEL_L2), 8);
	assert_int_equal(topo_n_units(t, RP_LEVEL_L3), 2);
	assert_int_equal(topo_n_units(t, RP_LEVEL_LLC), 2);
	assert_int_equal(topo_n_caches(t), 8 + 8 + 8 + 2);
	assert_ids(topo_ids(t, RP_CPUS_POSSIBLE), "0-15");
	assert_ids(topo_ids(t, RP_CPUS_PERFORMANCE), "0-15");
	assert_ids(topo_ids(t, RP_CPUS_EFFICIENT), "");
	assert_ids(topo_ids(t, RP_CPUS_NOHZ_FULL), "");
	struct rp_cpu_info c = cpu_of(t, 13);
	assert_int_equal(c.package_id, 1);
	assert_int_equal(c.die_id, 0);
	assert_int_equal(c.cluster_id, 12);
	assert_int_equal(c.core_id, 2);
	assert_int_equal(c.node_id, 3);
	assert_int_equal(c.unit[RP_LEVEL_CORE], 6);
	assert_int_equal(c.unit[RP_LEVEL_LLC], 1);
	assert_int_equal(c.unit[0], RP_IDSET_NONE);
	assert_int_equal(c.base_khz, 0);
	assert_int_equal(c.epp, RP_EPP_UNKNOWN);
	assert_ids(unit_of(t, RP_LEVEL_CORE, 6).cpus, "12-13");
	assert_int_equal(unit_of(t, RP_LEVEL_CORE, 6).id, 2);
	assert_int_equal(unit_of(t, RP_LEVEL_THREAD, 15).id, 15);
	assert_int_equal(topo_memory(t), UINT64_C(4) << 30);
	topo_free(t);
}

static void test_getters_out_of_range(void **state)
{
	struct topo *t = tree_read(*state);
	struct rp_ids ids;
	struct rp_cpu_info c = {.size = sizeof c};
	struct rp_node_info n = {.size = sizeof n};
	assert_int_equal(topo_set(t, 0, &ids), -EINVAL);
	assert_int_equal(topo_set(t, 19, &ids), -EINVAL);
	assert_int_equal(topo_set(t, 23, &ids), -EINVAL);
	assert_int_equal(topo_cpu(t, 16, &c), -ENOENT);
	assert_int_equal(topo_cpu(t, UINT32_MAX, &c), -ENOENT);
	assert_int_equal(topo_node(t, 4, &n), -ENOENT);
	assert_int_equal(topo_distance(t, 0, 4), 0);
	assert_int_equal(topo_distance(t, 9, 0), 0);
	assert_string_equal(topo_memory_type_name(99), "unknown");
	assert_null(topo_free(NULL));
	topo_free(t);
}

/* Callers of other versions: shorter structs are not written beyond, longer ones are zeroed. */
static void test_struct_sizes(void **state)
{
	struct topo *t = tree_read(*state);
	struct {
		struct rp_node_info n;
		uint64_t more[2];
	} longer;
	memset(&longer, 0xee, sizeof longer);
	longer.n.size = sizeof longer;
	assert_int_equal(topo_node(t, 1, &longer.n), 0);
	assert_int_equal(longer.n.size, sizeof longer.n);
	assert_int_equal(longer.more[0] | longer.more[1], 0);
	struct rp_node_info shorter;
	memset(&shorter, 0xee, sizeof shorter);
	shorter.size = offsetof(struct rp_node_info, normal);
	assert_int_equal(topo_node(t, 1, &shorter), 0);
	assert_int_equal(shorter.size, offsetof(struct rp_node_info, normal));
	assert_int_equal(shorter.id, 1);
	assert_int_equal(shorter.normal, 0xeeeeeeee);
	shorter.size = 0;
	shorter.id = 7;
	assert_int_equal(topo_node(t, 1, &shorter), 0);
	assert_int_equal(shorter.id, 7);
	topo_free(t);
}

/* ---- sets ------------------------------------------------------------------------------------ */

static void test_sets(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, CPU "/possible", "0-63\n");
	tree_put(tree, CPU "/present", "0-17\n");
	tree_put(tree, CPU "/online", "0-5,8-15\n");
	tree_put(tree, CPU "/isolated", "1,6,9\n");
	tree_put(tree, CPU "/nohz_full", "2-3,7,99\n");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_ids(topo_ids(t, RP_CPUS_POSSIBLE), "0-63");
	assert_ids(topo_ids(t, RP_CPUS_PRESENT), "0-17");
	assert_ids(topo_ids(t, RP_CPUS_ONLINE), "0-5,8-15");
	assert_ids(topo_ids(t, RP_CPUS_ISOLATED), "1,9");
	assert_ids(topo_ids(t, RP_CPUS_NOHZ_FULL), "2-3");
	assert_ids(node_of(t, 1).cpus, "4-5");
	assert_ids(unit_of(t, RP_LEVEL_PACKAGE, 0).cpus, "0-5");
	struct rp_cpu_info c = {.size = sizeof c};
	assert_int_equal(topo_cpu(t, 6, &c), -ENOENT);
	topo_free(t);
}

static void test_optional_sets(void **state)
{
	const struct tree *tree = *state;
	tree_del(tree, CPU "/possible");
	tree_del(tree, CPU "/present");
	tree_del(tree, CPU "/isolated");
	tree_put(tree, CPU "/nohz_full", "             (null)\n");
	struct topo *t = tree_read(tree);
	assert_int_equal(topo_n_notes(t), 0);
	assert_ids(topo_ids(t, RP_CPUS_POSSIBLE), "0-15");
	assert_ids(topo_ids(t, RP_CPUS_PRESENT), "0-15");
	assert_ids(topo_ids(t, RP_CPUS_NOHZ_FULL), "");
	topo_free(t);
	tree_put(tree, CPU "/isolated", "none\n");
	t = tree_read_noted(tree, CPU "/isolated: not a list");
	assert_ids(topo_ids(t, RP_CPUS_ISOLATED), "");
	topo_free(t);
}

static void test_online_is_needed(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, CPU "/online", "\n");
	tree_refuses(tree, -EINVAL, CPU "/online: lists no CPU");
	tree_put(tree, CPU "/online", "0-8192\n");
	tree_refuses(tree, -EINVAL, CPU "/online: not a list of numbers below 8192");
	tree_put(tree, CPU "/online", "3-1\n");
	tree_refuses(tree, -EINVAL, CPU "/online");
	tree_del(tree, CPU "/online");
	struct topo *t = tree_read_noted(tree, "online is missing");
	assert_ids(topo_ids(t, RP_CPUS_ONLINE), "0-15");
	topo_free(t);
	tree_del(tree, CPU "/present");
	tree_refuses(tree, -ENOENT, CPU ": neither online nor present exists");
	tree_put(tree, CPU "/online/x", "0");
	tree_refuses(tree, -EISDIR, "cannot read");
	tree_del(tree, "sys");
	tree_refuses(tree, -ENOENT, "cannot open");
}

/* Checks the longest list of 8192 CPUs. */
static void test_long_list(void **state)
{
	const struct tree *tree = *state;
	char *text = malloc(64000);
	assert_non_null(text);
	size_t n = 0;
	for (unsigned cpu = 0; cpu < 8192; cpu += 2)
		n += (size_t)snprintf(text + n, 64000 - n, "%s%u", cpu ? "," : "", cpu);
	tree_put_bytes(tree, CPU "/online", text, n);
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_units(t, RP_LEVEL_THREAD), 4096);
	assert_int_equal(topo_n_notes(t), TOPO_NOTES_MAX);
	assert_non_null(strstr(topo_note(t, TOPO_NOTES_MAX - 1), "more irregularities"));
	assert_true(topo_size(t) < 2u << 20);
	topo_free(t);
	memset(text, '1', 64000);
	tree_put_bytes(tree, CPU "/online", text, 64000);
	tree_refuses(tree, -EFBIG, CPU "/online");
	free(text);
}

/* ---- packages to cores ----------------------------------------------------------------------- */

static void test_old_kernel(void **state)
{
	const struct tree *tree = *state;
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		char g[32];
		tree_del_cpu(tree, cpu, "topology/package_cpus_list");
		tree_del_cpu(tree, cpu, "topology/die_cpus_list");
		tree_del_cpu(tree, cpu, "topology/die_id");
		tree_del_cpu(tree, cpu, "topology/cluster_id");
		tree_del_cpu(tree, cpu, "topology/core_cpus_list");
		tree_put_cpu(tree, cpu, "topology/core_siblings_list", "%s", tree_group(g, cpu, 8));
		tree_put_cpu(tree, cpu, "topology/thread_siblings_list", "%s",
			     tree_group(g, cpu, 2));
	}
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_notes(t), 0);
	assert_int_equal(topo_n_units(t, RP_LEVEL_PACKAGE), 2);
	assert_int_equal(topo_n_units(t, RP_LEVEL_DIE), 2);
	assert_int_equal(topo_n_units(t, RP_LEVEL_CORE), 8);
	assert_int_equal(topo_n_units(t, RP_LEVEL_CLUSTER), 2);
	topo_free(t);
}

/* Checks that without lists of CPUs, the ids of each core are used. */
static void test_ids_without_lists(void **state)
{
	const struct tree *tree = *state;
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		tree_del_cpu(tree, cpu, "topology/package_cpus_list");
		tree_del_cpu(tree, cpu, "topology/die_cpus_list");
		tree_put_cpu(tree, cpu, "topology/die_id", "%u", cpu / 4 % 2);
	}
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_units(t, RP_LEVEL_PACKAGE), 2);
	assert_int_equal(topo_n_units(t, RP_LEVEL_DIE), 4);
	assert_ids(unit_of(t, RP_LEVEL_DIE, 3).cpus, "12-15");
	assert_int_equal(unit_of(t, RP_LEVEL_DIE, 3).id, 1);
	topo_free(t);
}

static void test_no_topology_at_all(void **state)
{
	const struct tree *tree = *state;
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		tree_del_cpu(tree, cpu, "topology");
		tree_del_cpu(tree, cpu, "cache");
	}
	struct topo *t = tree_read_noted(tree, "cpu0/topology/physical_package_id: missing");
	topo_check(t);
	assert_int_equal(topo_n_units(t, RP_LEVEL_PACKAGE), 1);
	assert_int_equal(topo_n_units(t, RP_LEVEL_CORE), 16);
	assert_int_equal(topo_n_units(t, RP_LEVEL_LLC), 0);
	assert_int_equal(topo_n_caches(t), 0);
	assert_int_equal(cpu_of(t, 9).core_id, 9);
	topo_free(t);
}

static void test_unknown_ids(void **state)
{
	const struct tree *tree = *state;
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		tree_put_cpu(tree, cpu, "topology/physical_package_id", "-1");
		tree_put_cpu(tree, cpu, "topology/cluster_id", "-1");
	}
	tree_put_cpu(tree, 0, "topology/package_cpus_list", "0-15");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_notes(t), 0);
	assert_int_equal(topo_n_units(t, RP_LEVEL_PACKAGE), 1);
	assert_int_equal(cpu_of(t, 15).package_id, 0);
	topo_free(t);
	tree_put_cpu(tree, 2, "topology/core_id", "4294967296");
	tree_put_cpu(tree, 4, "topology/core_id", "five");
	t = tree_read_noted(tree, "cpu4/topology/core_id: not an id, treated as 4");
	assert_int_equal(cpu_of(t, 5).core_id, 4);
	assert_int_equal(cpu_of(t, 2).core_id, 2);
	topo_free(t);
}

static void test_contradictory_siblings(void **state)
{
	const struct tree *tree = *state;
	tree_put_cpu(tree, 2, "topology/core_cpus_list", "1-3");
	struct topo *t = tree_read_noted(tree, "cpu2: shares a core with CPUs that do not");
	topo_check(t);
	assert_ids(unit_of(t, RP_LEVEL_CORE, 1).cpus, "2-3");
	topo_free(t);
	tree_put_cpu(tree, 2, "topology/core_cpus_list", "4-5");
	t = tree_read_noted(tree, "cpu2/topology/core_cpus_list: does not contain the CPU itself");
	topo_check(t);
	assert_ids(unit_of(t, RP_LEVEL_CORE, 1).cpus, "2");
	topo_free(t);
	tree_put_cpu(tree, 2, "topology/core_cpus_list", "2,8");
	t = tree_read_noted(tree, "cpu9: shares a core with CPUs that do not");
	topo_check(t);
	assert_int_equal(cpu_of(t, 8).package_id, 0);
	topo_free(t);
	tree_put_cpu(tree, 2, "topology/core_cpus_list", "2-");
	t = tree_read_noted(tree, "cpu2/topology/core_cpus_list: not a list");
	topo_check(t);
	topo_free(t);
}

static void test_contradictory_packages(void **state)
{
	const struct tree *tree = *state;
	tree_put_cpu(tree, 8, "topology/package_cpus_list", "4-15");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_ids(unit_of(t, RP_LEVEL_PACKAGE, 0).cpus, "0-7");
	topo_free(t);
	tree_put_cpu(tree, 0, "topology/package_cpus_list", "0-7,9");
	t = tree_read_noted(tree, "CPUs 8 and 9 share a core but not a die");
	topo_check(t);
	assert_ids(unit_of(t, RP_LEVEL_PACKAGE, 1).cpus, "8-15");
	topo_free(t);
}

/* Checks an offline sibling: CPU 5 represents the core. */
static void test_offline_sibling(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, CPU "/online", "0-3,5-15\n");
	tree_del_cpu(tree, 4, "topology");
	tree_del_cpu(tree, 4, "cache");
	for (unsigned i = 0; i < 3; i++) {
		char file[64];
		(void)snprintf(file, sizeof file, "cache/index%u/shared_cpu_list", i);
		tree_put_cpu(tree, 5, file, "5");
	}
	tree_put_cpu(tree, 5, "topology/core_cpus_list", "5");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_notes(t), 0);
	assert_int_equal(topo_n_units(t, RP_LEVEL_CORE), 8);
	assert_int_equal(topo_n_caches(t), 26);
	assert_ids(unit_of(t, RP_LEVEL_CORE, 2).cpus, "5");
	topo_free(t);
}

/* ---- clusters -------------------------------------------------------------------------------- */

static void test_clusters(void **state)
{
	const struct tree *tree = *state;
	/* Package 0: cores 0 and 1 share a cluster, 2 and 3 have one each. Package 1: one each. */
	for (unsigned cpu = 0; cpu < 4; cpu++)
		tree_put_cpu(tree, cpu, "topology/cluster_id", "7");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_units(t, RP_LEVEL_CLUSTER), 3);
	assert_ids(unit_of(t, RP_LEVEL_CLUSTER, 0).cpus, "0-3");
	assert_int_equal(unit_of(t, RP_LEVEL_CLUSTER, 0).id, 7);
	assert_ids(unit_of(t, RP_LEVEL_CLUSTER, 1).cpus, "4-7");
	assert_int_equal(unit_of(t, RP_LEVEL_CLUSTER, 1).id, 4);
	assert_ids(unit_of(t, RP_LEVEL_CLUSTER, 2).cpus, "8-15");
	assert_int_equal(cpu_of(t, 6).cluster_id, 6);
	topo_free(t);
	/* An equal number in two dies identifies two clusters. */
	for (unsigned cpu = 0; cpu < 16; cpu++)
		tree_put_cpu(tree, cpu, "topology/cluster_id", "65535");
	t = tree_read(tree);
	assert_int_equal(topo_n_units(t, RP_LEVEL_CLUSTER), 2);
	topo_free(t);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static void test_kinds(void **state)
{
	const struct tree *tree = *state;
	static const struct {
		const char *performance, *efficient; /* NULL: no such PMU */
		const char *expected_efficient, *note;
	} cases[] = {
		{"0-7", "8-15", "8-15", NULL},
		{"0-7", NULL, "8-15", NULL},
		{NULL, "8-15", "8-15", NULL},
		{NULL, "9", "8-9", NULL},
		{"0-6", NULL, "8-15", NULL},
		{"0-15", "", "", NULL},
		{"", "", "", "some CPUs are missing"},
		{"0-3", "8-15", "8-15", "some CPUs are missing"},
		{"0-8", "8-15", "10-15", "share cores"},
		{"0-15", "12-15,99", "", "share cores"},
		{"zero", "8-15", "8-15", "cpu_core/cpus: not a list"},
	};
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		tree_del(tree, "sys/devices/cpu_core");
		tree_del(tree, "sys/devices/cpu_atom");
		if (cases[i].performance)
			tree_put(tree, "sys/devices/cpu_core/cpus", "%s\n", cases[i].performance);
		if (cases[i].efficient)
			tree_put(tree, "sys/devices/cpu_atom/cpus", "%s\n", cases[i].efficient);
		struct topo *t =
			cases[i].note ? tree_read_noted(tree, cases[i].note) : tree_read(tree);
		topo_check(t);
		assert_int_equal(topo_n_notes(t), cases[i].note ? 1 : 0);
		assert_ids(topo_ids(t, RP_CPUS_EFFICIENT), cases[i].expected_efficient);
		topo_free(t);
	}
}

static void test_capacities(void **state)
{
	const struct tree *tree = *state;
	for (unsigned cpu = 0; cpu < 16; cpu++)
		tree_put_cpu(tree, cpu, "cpu_capacity", "%u", cpu < 4 ? 1024 : cpu < 8 ? 900 : 446);
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_ids(topo_ids(t, RP_CPUS_EFFICIENT), "8-15");
	assert_int_equal(cpu_of(t, 1).capacity, 1024);
	assert_int_equal(cpu_of(t, 5).capacity, 900);
	assert_int_equal(cpu_of(t, 15).capacity, 446);
	topo_free(t);
	/* The PMUs know better. */
	tree_put(tree, "sys/devices/cpu_atom/cpus", "4-15\n");
	t = tree_read(tree);
	assert_ids(topo_ids(t, RP_CPUS_EFFICIENT), "4-15");
	topo_free(t);
	tree_del(tree, "sys/devices/cpu_atom");
	tree_put_cpu(tree, 8, "cpu_capacity", "0");
	tree_put_cpu(tree, 10, "cpu_capacity", "9999");
	t = tree_read_noted(tree, "cpu10/cpu_capacity: not a capacity");
	topo_check(t);
	assert_ids(topo_ids(t, RP_CPUS_EFFICIENT), "12-15");
	assert_int_equal(cpu_of(t, 9).capacity, 0);
	topo_free(t);
}

/* ---- caches ---------------------------------------------------------------------------------- */

static void test_caches(void **state)
{
	struct topo *t = tree_read(*state);
	struct rp_cache_info c = cache_of(t, 0);
	assert_int_equal(c.level, 1);
	assert_int_equal(c.type, RP_CACHE_DATA);
	assert_int_equal(c.bytes, 32 << 10);
	assert_ids(c.cpus, "0-1");
	c = cache_of(t, 15);
	assert_int_equal(c.type, RP_CACHE_INSTRUCTION);
	assert_int_equal(c.id, 7);
	c = cache_of(t, 25);
	assert_int_equal(c.level, 3);
	assert_int_equal(c.type, RP_CACHE_UNIFIED);
	assert_int_equal(c.bytes, 16 << 20);
	assert_int_equal(c.id, 1);
	assert_ids(c.cpus, "8-15");
	topo_free(t);
}

/* Checks cores that differ from their neighbours in properties that cannot be inferred. */
static void test_caches_of_kinds(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, "sys/devices/cpu_atom/cpus", "2-3,14-15\n");
	for (unsigned cpu = 2; cpu < 4; cpu++)
		tree_cache(tree, cpu, 0, 1, "Data", 48, 1, "2-3");
	tree_put_cpu(tree, 2, "cache/index2/size", "4M");
	for (unsigned cpu = 14; cpu < 16; cpu++)
		tree_del_cpu(tree, cpu, "cache/index3");
	tree_put_cpu(tree, 8, "cache/index3/shared_cpu_list", "8-13");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_notes(t), 0);
	assert_int_equal(cache_of(t, 0).bytes, 32 << 10);
	assert_int_equal(cache_of(t, 1).bytes, 48 << 10);
	assert_int_equal(cache_of(t, 2).bytes, 32 << 10);
	assert_int_equal(cache_of(t, 17).bytes, 4 << 20);
	assert_int_equal(cpu_of(t, 14).unit[RP_LEVEL_L3], RP_IDSET_NONE);
	assert_ids(unit_of(t, RP_LEVEL_L3, 1).cpus, "8-13");
	topo_free(t);
}

/* Caches without ids, as in some guests: the lowest CPU is the id. */
static void test_caches_without_ids(void **state)
{
	const struct tree *tree = *state;
	for (unsigned cpu = 0; cpu < 16; cpu++)
		for (unsigned i = 0; i < 4; i++) {
			char file[64];
			(void)snprintf(file, sizeof file, "cache/index%u/id", i);
			tree_del_cpu(tree, cpu, file);
		}
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_notes(t), 0);
	assert_int_equal(topo_n_caches(t), 26);
	assert_int_equal(unit_of(t, RP_LEVEL_L3, 1).id, 8);
	assert_int_equal(unit_of(t, RP_LEVEL_L2, 3).id, 6);
	assert_int_equal(cache_of(t, 1).id, 2);
	topo_free(t);
}

/* Caches shared by two cores, one of which is offline: those of the other cores are not taken to be
 * private. */
static void test_shared_half_offline(void **state)
{
	const struct tree *tree = *state;
	tree_del(tree, "sys");
	tree_machine(tree, &(struct machine){1, 1, 1, 4, 2, 2, 0});
	tree_put(tree, CPU "/online", "0-1,4-7\n");
	for (unsigned cpu = 0; cpu < 2; cpu++)
		tree_put_cpu(tree, cpu, "cache/index2/shared_cpu_list", "0-1");
	for (unsigned cpu = 4; cpu < 8; cpu++)
		tree_put_cpu(tree, cpu, "cache/index0/shared_cpu_list", "4-7");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_ids(cache_of(t, 1).cpus, "4-7");
	assert_int_equal(topo_n_units(t, RP_LEVEL_L2), 2);
	assert_ids(unit_of(t, RP_LEVEL_L2, 1).cpus, "4-7");
	topo_free(t);
}

/* Checks a level of two caches: the data cache makes the units. */
static void test_split_level(void **state)
{
	const struct tree *tree = *state;
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		char g[32];
		tree_cache(tree, cpu, 2, 2, "Data", 256, cpu / 2, tree_group(g, cpu, 2));
		tree_cache(tree, cpu, 4, 2, "Instruction", 1024, 50 + cpu / 8,
			   tree_group(g, cpu, 8));
	}
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_units(t, RP_LEVEL_L2), 8);
	assert_ids(unit_of(t, RP_LEVEL_L2, 1).cpus, "2-3");
	assert_int_equal(unit_of(t, RP_LEVEL_L2, 1).id, 1);
	topo_free(t);
}

static void test_faulty_caches(void **state)
{
	const struct tree *tree = *state;
	static const struct {
		const char *file, *text, *note; /* text NULL: removed */
		unsigned n_caches;
	} cases[] = {
		{"cache/index3/level", "0", "index3/level: invalid content", 26},
		{"cache/index3/level", "9", "index3/level: invalid content", 26},
		{"cache/index3/level", "L3", "index3/level: invalid content", 26},
		{"cache/index3/type", "Magic", "index3/type: invalid content", 26},
		{"cache/index3/type", NULL, "index3/type: invalid content", 26},
		{"cache/index3/size", "16T", "index3/size: not a size", 26},
		{"cache/index3/size", "99999999999999999999", "index3/size: not a size", 26},
		{"cache/index3/size", "9223372036854775807K", "index3/size: not a size", 26},
		{"cache/index3/size", "16KK", "index3/size: not a size", 26},
		{"cache/index3/size", NULL, "index3/size: not a size", 26},
		{"cache/index3/id", "many", "index3/id: not an id", 26},
		{"cache/index3/id", "-1", "index3/id: not an id", 26},
		{"cache/index3/shared_cpu_list", "0-", "shared_cpu_list: not a list", 26},
		{"cache/index3/shared_cpu_list", "4-7", "does not contain the CPU itself", 26},
		{"cache/index3/shared_cpu_list", NULL, "shared_cpu_list: not a list", 26},
	};
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		if (cases[i].text)
			tree_put_cpu(tree, 0, cases[i].file, "%s", cases[i].text);
		else
			tree_del_cpu(tree, 0, cases[i].file);
		struct topo *t = tree_read_noted(tree, cases[i].note);
		topo_check(t);
		/* A faulty file of one CPU leaves the next one to tell of the cache. */
		assert_int_equal(topo_n_caches(t), cases[i].n_caches);
		topo_free(t);
		tree_cache(tree, 0, 3, 3, "Unified", 16384, 0, "0-7");
	}
}

/* CPUs that share a cache disagree on the CPUs that share it. */
static void test_overlapping_caches(void **state)
{
	const struct tree *tree = *state;
	tree_put_cpu(tree, 0, "cache/index3/shared_cpu_list", "0-3");
	struct topo *t =
		tree_read_noted(tree, "cpu4: shares a level 3 cache with CPUs that list another");
	topo_check(t);
	assert_ids(unit_of(t, RP_LEVEL_L3, 0).cpus, "0-3");
	assert_ids(unit_of(t, RP_LEVEL_L3, 1).cpus, "4-7");
	topo_free(t);
	/* A cache with two numbers counts once. */
	tree_put_cpu(tree, 0, "cache/index3/shared_cpu_list", "0-7");
	tree_cache(tree, 0, 4, 3, "Unified", 16384, 9, "0-7");
	t = tree_read_noted(tree, "cpu0: shares a level 3 cache with CPUs that list another");
	topo_check(t);
	assert_int_equal(topo_n_units(t, RP_LEVEL_L3), 2);
	topo_free(t);
}

static void test_unlistable_caches(void **state)
{
	const struct tree *tree = *state;
	tree_del_cpu(tree, 0, "cache");
	tree_put_cpu(tree, 0, "cache", "a file");
	tree_del_cpu(tree, 8, "cache");
	tree_put_cpu(tree, 8, "cache/index99/level", "1");
	tree_put_cpu(tree, 8, "cache/indexes/level", "1");
	struct topo *t = tree_read_noted(tree, "cpu0/cache: cannot be listed");
	topo_check(t);
	assert_int_equal(topo_n_caches(t), 0);
	topo_free(t);
}

/* Checks a topology whose last cache is the second level, and one with a fourth level. */
static void test_last_level(void **state)
{
	const struct tree *tree = *state;
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		char g[32];
		tree_del_cpu(tree, cpu, "cache/index3");
		tree_cache(tree, cpu, 2, 2, "Unified", 1024, cpu / 4, tree_group(g, cpu, 4));
	}
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_units(t, RP_LEVEL_L3), 0);
	assert_int_equal(topo_n_units(t, RP_LEVEL_LLC), 4);
	assert_int_equal(cpu_of(t, 0).unit[RP_LEVEL_L3], RP_IDSET_NONE);
	topo_free(t);
	tree_cache(tree, 0, 7, 4, "Unified", 65536, 1, "0-15");
	t = tree_read(tree);
	assert_int_equal(topo_n_units(t, RP_LEVEL_LLC), 1);
	topo_free(t);
}

/* ---- frequencies ----------------------------------------------------------------------------- */

static void put_freq(const struct tree *tree, unsigned cpu, unsigned base, const char *epp)
{
	tree_put_cpu(tree, cpu, "cpufreq/base_frequency", "%u", base);
	tree_put_cpu(tree, cpu, "cpufreq/cpuinfo_min_freq", "800000");
	tree_put_cpu(tree, cpu, "cpufreq/cpuinfo_max_freq", "3500000");
	tree_put_cpu(tree, cpu, "cpufreq/energy_performance_preference", "%s", epp);
}

static void test_frequencies(void **state)
{
	const struct tree *tree = *state;
	static const struct {
		const char *text;
		uint32_t epp;
	} epps[] = {
		{"performance", 0},
		{"balance_performance", 128},
		{"balance_power", 192},
		{"power", 255},
		{"17", 17},
		{"256", RP_EPP_UNKNOWN},
		{"default", RP_EPP_UNKNOWN},
		{"", RP_EPP_UNKNOWN},
	};
	for (unsigned cpu = 0; cpu < 8; cpu++)
		put_freq(tree, cpu, 2000000 + cpu / 2 * 1000, epps[cpu].text);
	put_freq(tree, 8, 2000000, "power");
	tree_put_cpu(tree, 8, "cpufreq/base_frequency", "-5");
	tree_put_cpu(tree, 8, "cpufreq/cpuinfo_max_freq", "fast");
	tree_del_cpu(tree, 8, "cpufreq/cpuinfo_min_freq");
	tree_del_cpu(tree, 8, "cpufreq/energy_performance_preference");
	struct topo *t = tree_read(tree);
	topo_check(t);
	for (unsigned cpu = 0; cpu < 8; cpu++) {
		assert_int_equal(cpu_of(t, cpu).base_khz, 2000000 + cpu / 2 * 1000);
		assert_int_equal(cpu_of(t, cpu).min_khz, 800000);
		assert_int_equal(cpu_of(t, cpu).max_khz, 3500000);
		assert_int_equal(cpu_of(t, cpu).epp, epps[cpu].epp);
	}
	for (unsigned cpu = 8; cpu < 10; cpu++) {
		assert_int_equal(cpu_of(t, cpu).base_khz, 0);
		assert_int_equal(cpu_of(t, cpu).min_khz, 0);
		assert_int_equal(cpu_of(t, cpu).max_khz, 0);
		assert_int_equal(cpu_of(t, cpu).epp, RP_EPP_UNKNOWN);
	}
	topo_free(t);
}

/* Frequencies are read on the first request for them, once, and not for callers that do not need
 * them. */
static void test_frequencies_are_lazy(void **state)
{
	const struct tree *tree = *state;
	struct topo *t = tree_read(tree);
	struct rp_cpu_info c = {.size = offsetof(struct rp_cpu_info, base_khz)};
	assert_int_equal(topo_cpu(t, 3, &c), 0);
	put_freq(tree, 2, 2100000, "power");
	put_freq(tree, 3, 2100000, "performance");
	assert_int_equal(cpu_of(t, 3).base_khz, 2100000);
	assert_int_equal(cpu_of(t, 3).epp, 0);
	put_freq(tree, 3, 9, "power");
	assert_int_equal(cpu_of(t, 3).base_khz, 2100000);
	assert_int_equal(cpu_of(t, 3).epp, 0);
	topo_free(t);
}

/* Checks that a snapshot takes the frequencies that another one has read, except those that it
 * has read itself, and reads no files afterwards. */
static void test_frequencies_are_told(void **state)
{
	const struct tree *tree = *state;
	struct topo *t = tree_read(tree), *other = tree_read(tree);
	struct topo_freq f;
	uint32_t cpu = 0;
	put_freq(tree, 2, 2100000, "power");
	put_freq(tree, 3, 2100000, "performance");
	assert_int_equal(topo_n_freqs(t), 0);
	assert_false(topo_next_freq(t, &cpu, &f));
	(void)cpu_of(t, 3);
	assert_int_equal(topo_n_freqs(t), 2); /* a thread's are those of its core */
	cpu = 0;
	while (topo_next_freq(t, &cpu, &f))
		assert_int_equal(topo_put_freq(other, &f), 0);
	put_freq(tree, 2, 9, "balance_power");
	put_freq(tree, 3, 9, "balance_power");
	assert_int_equal(cpu_of(other, 2).base_khz, 2100000);
	assert_int_equal(cpu_of(other, 2).epp, 255);
	assert_int_equal(cpu_of(other, 3).epp, 0);
	f.base_khz = 1;
	assert_int_equal(topo_put_freq(other, &f), 0);
	assert_int_equal(cpu_of(other, 3).base_khz, 2100000);
	f.cpu = 4711;
	assert_int_equal(topo_put_freq(other, &f), -ENOENT);
	topo_free(t);
	topo_free(other);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void test_reread(void **state)
{
	const struct tree *tree = *state;
	struct err err = ERR_INIT;
	struct topo *old = tree_read(tree), *now = NULL;
	tree_put(tree, CPU "/online", "0-13\n");
	assert_int_equal(topo_reread(old, &now, &err), 0);
	assert_int_equal(topo_generation(now), 2);
	assert_ids(topo_ids(now, RP_CPUS_ONLINE), "0-13");
	assert_ids(topo_ids(old, RP_CPUS_ONLINE), "0-15");
	struct topo *kept = now;
	tree_del(tree, CPU "/online");
	tree_del(tree, CPU "/present");
	assert_int_equal(topo_reread(now, &kept, &err), -ENOENT);
	assert_ptr_equal(kept, now);
	topo_free(old);
	topo_free(now);
}

/* Checks that every failing allocation yields an error text and leaks no memory. */
static void test_out_of_memory(void **state)
{
	const struct tree *tree = *state;
	struct topo *t = NULL;
	size_t limit = 64;
	unsigned n_failed = 0;
	tree_put(tree, "sys/devices/cpu_core/cpus", "0-7\n");
	tree_put(tree, NODE "/online", "0-4\n");
	tree_node(tree, 4, "", 5, "20 20 20 20 10");
	tree_put(tree, "sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0-3\n");
	for (;; limit += 64, n_failed++) {
		struct err err = ERR_INIT;
		int rc = topo_read_within(&tree->root, limit, 1, &t, &err);
		if (!rc)
			break;
		assert_int_equal(rc, -ENOMEM);
		assert_null(t);
		assert_true(err.text[0]);
		assert_true(limit < 1 << 20);
	}
	assert_true(n_failed > 100);
	topo_check(t);
	topo_free(t);
}

/* Checks more caches and models than the initial capacities. */
static void test_many_cores(void **state)
{
	const struct tree *tree = *state;
	tree_del(tree, "sys");
	tree_machine(tree, &(struct machine){2, 2, 1, 16, 2, 1, 4});
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_notes(t), 0);
	assert_int_equal(topo_n_caches(t), 64 * 3 + 16);
	assert_int_equal(topo_n_units(t, RP_LEVEL_DIE), 4);
	assert_int_equal(topo_n_units(t, RP_LEVEL_L3), 16);
	assert_ids(unit_of(t, RP_LEVEL_L3, 15).cpus, "120-127");
	assert_true(topo_size(t) < 64 << 10);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_machine),
		tree_test(test_getters_out_of_range),
		tree_test(test_struct_sizes),
		tree_test(test_sets),
		tree_test(test_optional_sets),
		tree_test(test_online_is_needed),
		tree_test(test_long_list),
		tree_test(test_old_kernel),
		tree_test(test_ids_without_lists),
		tree_test(test_no_topology_at_all),
		tree_test(test_unknown_ids),
		tree_test(test_contradictory_siblings),
		tree_test(test_contradictory_packages),
		tree_test(test_offline_sibling),
		tree_test(test_clusters),
		tree_test(test_kinds),
		tree_test(test_capacities),
		tree_test(test_caches),
		tree_test(test_caches_of_kinds),
		tree_test(test_caches_without_ids),
		tree_test(test_shared_half_offline),
		tree_test(test_split_level),
		tree_test(test_faulty_caches),
		tree_test(test_overlapping_caches),
		tree_test(test_unlistable_caches),
		tree_test(test_last_level),
		tree_test(test_frequencies),
		tree_test(test_frequencies_are_lazy),
		tree_test(test_frequencies_are_told),

		tree_test(test_reread),
		tree_test(test_out_of_memory),
		tree_test(test_many_cores),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
