/* SPDX-License-Identifier: Apache-2.0 */
/* core/lib/topo: differences between two snapshots, and the table for users. */
#include "test/unit/t_topo_tree.h"

static bool diff_now(const struct tree *tree, const struct topo *old, struct topo_change *ret)
{
	struct topo *now = tree_read(tree);
	memset(ret, 0xee, sizeof *ret);
	bool any = topo_diff(old, now, ret);
	topo_free(now);
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
	topo_free(old);
}

/* Checks that removed CPUs shift the unit numbers of later CPUs, which is not reported as a
 * move. */
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
	topo_free(old);
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
	topo_free(old);
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
	topo_free(old);
	old = tree_read(tree);
	tree_put(tree, NODE "/has_normal_memory", "0-1\n");
	assert_true(diff_now(tree, old, &c));
	assert_ids(rp_ids_of(&c.nodes_resized), "2");
	assert_false(c.cpus_moved);
	topo_free(old);
	old = tree_read(tree);
	tree_put(tree, "proc/meminfo", "MemTotal: 5 kB\n");
	assert_true(diff_now(tree, old, &c));
	assert_ids(rp_ids_of(&c.nodes_resized), "");
	topo_free(old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_nothing),
		tree_test(test_cpus_come_and_go),
		tree_test(test_cpus_move),
		tree_test(test_nodes_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
