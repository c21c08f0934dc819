/* SPDX-License-Identifier: Apache-2.0 */
/* core/lib/topo: what has changed between two snapshots, and the table for people. */
#include "test/unit/t_topo_tree.h"

static bool diff_now(const struct tree *tree, const struct topo *old, struct topo_change *ret)
{
	struct topo *now = tree_read(tree);
	memset(ret, 0xee, sizeof *ret);
	bool any = topo_diff(old, now, ret);
	topo_unref(now);
	return any;
}

static void test_nothing(void **state)
{
	const struct tree *tree = *state;
	struct topo *old = tree_read(tree);
	struct topo_change c;
	assert_false(diff_now(tree, old, &c));
	assert_ids(rp_ids_of(&c.cpus_on), "");
	assert_ids(rp_ids_of(&c.cpus_off), "");
	assert_ids(rp_ids_of(&c.nodes_resized), "");
	assert_false(c.cpus_moved);
	assert_false(c.distances);
	topo_unref(old);
}

/* CPU 3 goes: the numbers of all that comes behind it shift, but nobody has moved. */
static void test_cpus_come_and_go(void **state)
{
	const struct tree *tree = *state;
	struct topo_change c;
	tree_put(tree, CPU "/online", "0-13\n");
	struct topo *old = tree_read(tree);
	tree_put(tree, CPU "/online", "0-1,4-15\n");
	assert_true(diff_now(tree, old, &c));
	assert_ids(rp_ids_of(&c.cpus_on), "14-15");
	assert_ids(rp_ids_of(&c.cpus_off), "2-3");
	assert_false(c.cpus_moved);
	topo_unref(old);
}

static void test_cpus_move(void **state)
{
	const struct tree *tree = *state;
	static const struct {
		const char *path, *text, *restore;
		bool moved;
	} cases[] = {
		{CPU "/isolated", "2\n", "\n", true},
		{CPU "/nohz_full", "2\n", "\n", true},
		{CPU "/cpu2/topology/core_id", "99\n", "1\n", true},
		{CPU "/cpu0/topology/package_cpus_list", "0-5\n", "0-7\n", false},
		{CPU "/cpu2/cache/index2/shared_cpu_list", "2-5\n", "2-3\n", true},
		{CPU "/cpu0/cache/index3/shared_cpu_list", "9\n", "0-7\n", false},
		{CPU "/cpu0/cache/index3/id", "9\n", "0\n", false},
		{CPU "/cpu0/cache/index3/size", "1M\n", "16384K\n", false},
		{"sys/devices/cpu_atom/cpus", "2\n", "\n", true},
	};
	tree_put(tree, "sys/devices/cpu_atom/cpus", "\n");
	struct topo *old = tree_read(tree);
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct topo_change c;
		tree_put(tree, cases[i].path, "%s", cases[i].text);
		bool any = diff_now(tree, old, &c);
		assert_int_equal(c.cpus_moved, cases[i].moved);
		assert_int_equal(any, i != 3 && i != 5);
		assert_ids(rp_ids_of(&c.cpus_on), "");
		tree_put(tree, cases[i].path, "%s", cases[i].restore);
		assert_false(diff_now(tree, old, &c));
	}
	/* A cache that only some still have. */
	struct topo_change c;
	for (unsigned cpu = 0; cpu < 8; cpu++)
		tree_del_cpu(tree, cpu, "cache/index3");
	assert_true(diff_now(tree, old, &c));
	assert_true(c.cpus_moved);
	topo_unref(old);
}

static void test_nodes_change(void **state)
{
	const struct tree *tree = *state;
	struct topo_change c;
	struct topo *old = tree_read(tree);
	tree_put(tree, NODE "/online", "0-2,4\n");
	tree_node(tree, 2, "8-15", 2097152, "25 20 10 20");
	tree_node(tree, 4, "", 1048576, "20 20 20 10");
	assert_true(diff_now(tree, old, &c));
	assert_ids(rp_ids_of(&c.nodes_on), "4");
	assert_ids(rp_ids_of(&c.nodes_off), "3");
	assert_ids(rp_ids_of(&c.nodes_resized), "2");
	assert_true(c.distances);
	assert_true(c.cpus_moved);
	topo_unref(old);
	old = tree_read(tree);
	tree_put(tree, NODE "/has_normal_memory", "0-1\n");
	assert_true(diff_now(tree, old, &c));
	assert_ids(rp_ids_of(&c.nodes_resized), "2");
	assert_false(c.cpus_moved);
	topo_unref(old);
	old = tree_read(tree);
	tree_put(tree, "proc/meminfo", "MemTotal: 5 kB\n");
	assert_true(diff_now(tree, old, &c));
	assert_ids(rp_ids_of(&c.nodes_resized), "");
	topo_unref(old);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void described(const struct tree *tree, const char *const *parts)
{
	struct topo *t = tree_read(tree);
	struct buf out = BUF_INIT;
	assert_int_equal(topo_describe(t, &out), 0);
	for (; *parts; parts++)
		if (!strstr(buf_text(&out), *parts))
			fail_msg("no '%s' in\n%s", *parts, buf_text(&out));
	assert_int_equal(buf_bytes(&out)[buf_len(&out) - 1], '\n');
	buf_fini(&out);
	topo_unref(t);
}

static void test_describe(void **state)
{
	const struct tree *tree = *state;
	static const char *const plain[] = {
		"machine  2 packages, 2 dies, 2 clusters, 4 nodes, 8 cores, 16 CPUs, 4 GiB\n",
		"  online       0-15\n",
		"package  1    cpus 8-15\n",
		"node     2    DRAM 1 GiB, package 1 die 0, distances 20 20 10 20, cpus 8-11\n",
		"L1d      8 of 32 KiB, one a core\n",
		"L1i      8 of 64 KiB, one a core\n",
		"L3       1    16 MiB, cpus 8-15\n",
		"cpus     0-15: performance, base 0 min 0 max 0 MHz, epp unknown\n",
		NULL,
	};
	described(tree, plain);
	static const char *const odd[] = {
		"  isolated     0\n",
		"  performance  0-7\n",
		"  efficient    8-15\n",
		"die      0/1    cpus 4-7\n",
		"cluster  1/0/6    cpus 12-15\n",
		"node     1    PMEM 1.5 GiB movable",
		"node     2    none 0 B,",
		"node     3    HBM 1000 KiB",
		"cpus -\n",
		"cpus     0-1: performance, base 2000 min 0 max 0 MHz, epp 7, capacity 1024\n",
		"cpus     8-15: efficient, base 0 min 0 max 0 MHz, epp unknown, capacity 512\n",
		"note     sys/devices/system/node/node2/cpulist: cannot be read",
		NULL,
	};
	for (unsigned cpu = 0; cpu < 16; cpu++) {
		tree_del_cpu(tree, cpu, "topology/die_cpus_list");
		tree_put_cpu(tree, cpu, "topology/die_id", "%u", cpu / 4 == 1);
		tree_put_cpu(tree, cpu, "topology/cluster_id", "%u", cpu < 12 ? 5 : 6);
		tree_put_cpu(tree, cpu, "cpu_capacity", "%u", cpu < 8 ? 1024 : 512);
	}
	tree_put_cpu(tree, 0, "cpufreq/base_frequency", "2000000");
	for (unsigned cpu = 0; cpu < 2; cpu++)
		tree_put_cpu(tree, cpu, "cpufreq/energy_performance_preference", "7");
	tree_put(tree, CPU "/isolated", "0\n");
	tree_node(tree, 0, "0-15", 1048576, "10 20 20 20");
	tree_node(tree, 1, "", 1572864, "10 20 20 20");
	tree_node(tree, 2, "x", 0, "10 20 20 20");
	tree_node(tree, 3, "", 1000, "10 20 20 20");
	tree_put(tree, NODE "/has_normal_memory", "0\n");
	described(tree, odd);
}

static void test_describe_small(void **state)
{
	const struct tree *tree = *state;
	tree_del(tree, "sys");
	tree_machine(tree, &(struct machine){1, 1, 1, 1, 1, 0, 0});
	tree_put(tree, NODE "/node0/meminfo", "Node 0 MemTotal: 1 kB\n");
	static const char *const parts[] = {
		"machine  1 package, 1 die, 1 cluster, 1 node, 1 core, 1 CPU,",
		"node     0    DRAM 1 KiB,", "L1d      0    32 KiB, cpus 0\n", NULL};
	described(tree, parts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_nothing),   tree_test(test_cpus_come_and_go),
		tree_test(test_cpus_move), tree_test(test_nodes_change),
		tree_test(test_describe),  tree_test(test_describe_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
