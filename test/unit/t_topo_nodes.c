/* SPDX-License-Identifier: Apache-2.0 */
/* core/lib/topo: memory nodes, their distances, memory and its kinds. */
#include "test/unit/t_topo_tree.h"

#define check(condition) assert_true(condition)
#include "test/unit/t_topo_check.h"

#define TIERS "sys/devices/virtual/memory_tiering"
#define GIB (UINT64_C(1) << 30)

static void put_tier(const struct tree *tree, unsigned tier, const char *nodes)
{
	char path[96];
	(void)snprintf(path, sizeof path, TIERS "/memory_tier%u/nodelist", tier);
	tree_put(tree, path, "%s\n", nodes);
}

/* Creates a package of two CPUs on node 0, to which tests add more. */
static void small_machine(const struct tree *tree)
{
	tree_del(tree, "sys");
	tree_machine(tree, &(struct machine){1, 1, 1, 1, 2, 0, 0});
}

static void test_nodes(void **state)
{
	struct topo *t = tree_read(*state);
	topo_check(t);
	assert_ids(topo_ids(t, RP_NODES_ONLINE), "0-3");
	assert_ids(topo_ids(t, RP_NODES_MEMORY), "0-3");
	assert_ids(topo_ids(t, RP_NODES_NORMAL), "0-3");
	struct rp_node_info n = node_of(t, 2);
	assert_int_equal(n.id, 2);
	assert_int_equal(n.type, RP_MEM_DRAM);
	assert_int_equal(n.normal, 1);
	assert_int_equal(n.memory, GIB);
	assert_int_equal(n.package_id, 1);
	assert_ids(n.cpus, "8-11");
	assert_int_equal(topo_distance(t, 2, 2), 10);
	assert_int_equal(topo_distance(t, 2, 0), 20);
	topo_free(t);
}

static void test_no_numa(void **state)
{
	const struct tree *tree = *state;
	tree_del(tree, NODE);
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_notes(t), 0);
	assert_ids(topo_ids(t, RP_NODES_ONLINE), "0");
	assert_ids(topo_ids(t, RP_NODES_NORMAL), "0");
	assert_ids(node_of(t, 0).cpus, "0-15");
	assert_int_equal(node_of(t, 0).memory, 4 * GIB);
	assert_int_equal(node_of(t, 0).type, RP_MEM_DRAM);
	assert_int_equal(topo_distance(t, 0, 0), 10);
	topo_free(t);
}

static void test_no_meminfo(void **state)
{
	const struct tree *tree = *state;
	tree_del(tree, "proc/meminfo");
	struct topo *t = tree_read_noted(tree, "proc/meminfo: has no MemTotal");
	assert_int_equal(topo_memory(t), 4 * GIB);
	topo_free(t);
	tree_put(tree, "proc/meminfo", "SwapMemTotal: 5 kB\nMemTotalX: 7 kB\nMemTotal: 9 MB\n");
	t = tree_read_noted(tree, "proc/meminfo: has no MemTotal");
	topo_free(t);
	tree_put(tree, "proc/meminfo", "SwapMemTotal: 5 kB\nMemTotal: 9 kB\n");
	t = tree_read(tree);
	assert_int_equal(topo_memory(t), 9 * 1024);
	topo_free(t);
}

/* Checks node numbers with gaps: distances are listed by online node. */
static void test_sparse_nodes(void **state)
{
	const struct tree *tree = *state;
	tree_del(tree, NODE);
	tree_put(tree, NODE "/online", "0,5,1023\n");
	tree_node(tree, 0, "0-7", 1048576, "10 12 30");
	tree_node(tree, 5, "8-15", 1048576, "12 10 31");
	tree_node(tree, 1023, "", 524288, "30 31 10");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_notes(t), 0);
	assert_int_equal(topo_distance(t, 0, 5), 12);
	assert_int_equal(topo_distance(t, 5, 1023), 31);
	assert_int_equal(topo_distance(t, 1023, 0), 30);
	assert_int_equal(topo_distance(t, 0, 1), 0);
	assert_int_equal(node_of(t, 1023).package_id, 0);
	assert_int_equal(unit_of(t, RP_LEVEL_NODE, 2).id, 1023);
	assert_int_equal(cpu_of(t, 9).unit[RP_LEVEL_NODE], 1);
	/* Without the list the folders tell. */
	topo_free(t);
	tree_del(tree, NODE "/online");
	tree_put(tree, NODE "/node2048/cpulist", "0\n");
	tree_put(tree, NODE "/nodes", "0\n");
	t = tree_read(tree);
	assert_ids(topo_ids(t, RP_NODES_ONLINE), "0,5,1023");
	topo_free(t);
}

static void test_nodes_that_cannot_be_told(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, NODE "/online", "0-1024\n");
	tree_refuses(tree, -EINVAL, NODE "/online: not a list of numbers below 1024");
	tree_put(tree, NODE "/online", "none\n");
	tree_refuses(tree, -EINVAL, NODE "/online");
	tree_del(tree, NODE "/online");
	tree_put(tree, NODE "/online/file", "0\n");
	tree_refuses(tree, -EISDIR, NODE "/online");
	tree_del(tree, NODE);
	tree_put(tree, NODE, "a file\n");
	tree_refuses(tree, -ENOTDIR, "cannot read");
}

static void test_distances(void **state)
{
	const struct tree *tree = *state;
	/* Node 0 sees 1 at 20, 1 sees 0 at 25. */
	tree_put(tree, NODE "/node1/distance", "25 10 20 20\n");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_distance(t, 0, 1), 22);
	assert_int_equal(topo_distance(t, 1, 0), 22);
	topo_free(t);
	static const char *const bad[] = {"10 20 20",	 "20 10 20 20 20", "20 ten 20 20",
					  "20 10 20 -1", "20 10 99999 20", ""};
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		tree_put(tree, NODE "/node1/distance", "%s\n", bad[i]);
		t = tree_read_noted(tree, "node1/distance: not one number for each online node");
		topo_check(t);
		assert_int_equal(topo_distance(t, 1, 1), 10);
		assert_int_equal(topo_distance(t, 1, 0), 20); /* taken from the other node's list */
		topo_free(t);
	}
	for (unsigned i = 0; i < 4; i++) {
		char path[64];
		(void)snprintf(path, sizeof path, NODE "/node%u/distance", i);
		tree_del(tree, path);
	}
	t = tree_read_noted(tree, "node3/distance: missing");
	assert_int_equal(topo_distance(t, 1, 0), 0);
	assert_int_equal(topo_distance(t, 3, 3), 10);
	topo_free(t);
}

static void test_cpus_of_nodes(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, NODE "/node1/cpulist", "3-6,99\n");
	struct topo *t = tree_read_noted(tree, "node1/cpulist: contains CPUs of other nodes");
	topo_check(t);
	assert_ids(node_of(t, 0).cpus, "0-3,7");
	assert_ids(node_of(t, 1).cpus, "4-6");
	topo_free(t);
	t = tree_read_noted(tree, "CPU 7 and 0 more are in no node, treated as in node 0");
	topo_free(t);
	tree_del(tree, NODE "/node1");
	t = tree_read_noted(tree, "node1/cpulist: not a list");
	topo_check(t);
	assert_int_equal(node_of(t, 1).type,
			 RP_MEM_PMEM); /* has_memory says that it is not nothing */
	assert_int_equal(node_of(t, 1).memory, 0);
	topo_free(t);
	tree_put(tree, NODE "/has_memory", "0,2-3\n");
	t = tree_read_noted(tree, "node1/meminfo: missing");
	assert_int_equal(node_of(t, 1).type, RP_MEM_NONE);
	assert_ids(topo_ids(t, RP_NODES_MEMORY), "0,2-3");
	assert_ids(topo_ids(t, RP_NODES_NORMAL), "0,2-3");
	topo_free(t);
}

static void test_node_memory(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, NODE "/has_normal_memory", "0,3\n");
	tree_put(tree, NODE "/node1/meminfo", "Node 1 MemTotal: 0 kB\n");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_ids(topo_ids(t, RP_NODES_MEMORY), "0,2-3");
	assert_ids(topo_ids(t, RP_NODES_NORMAL), "0,3");
	assert_int_equal(node_of(t, 1).type, RP_MEM_DRAM); /* a node with CPUs */
	assert_int_equal(node_of(t, 2).normal, 0);
	topo_free(t);
	static const char *const bad[] = {"", "Node 1 MemTotal: many kB", "Node 1 MemTotal: 5",
					  "Node 1 MemTotal: 18446744073709551616 kB",
					  "Node 1 MemTotal: 9007199254740992 kB"};
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		tree_put(tree, NODE "/node1/meminfo", "%s\n", bad[i]);
		t = tree_read_noted(tree, "node1/meminfo: has no valid MemTotal");
		assert_int_equal(node_of(t, 1).memory, 0);
		assert_ids(topo_ids(t, RP_NODES_MEMORY), "0-3");
		topo_free(t);
	}
	tree_put(tree, NODE "/node1/meminfo", "Node 1 MemTotal: 9007199254740991 kB\n");
	tree_del(tree, NODE "/has_normal_memory");
	t = tree_read(tree);
	topo_check(t);
	assert_int_equal(node_of(t, 1).memory, INT64_MAX - 1023);
	assert_ids(topo_ids(t, RP_NODES_NORMAL), "0-3");
	topo_free(t);
	tree_put(tree, NODE "/has_normal_memory", "all\n");
	t = tree_read_noted(tree, "has_normal_memory: not a list of nodes");
	assert_ids(topo_ids(t, RP_NODES_NORMAL), "0-3");
	topo_free(t);
}

static void test_huge_file(void **state)
{
	const struct tree *tree = *state;
	char *text = malloc(1 << 20);
	assert_non_null(text);
	memset(text, ' ', 1 << 20);
	tree_put_bytes(tree, NODE "/node1/meminfo", text, 1 << 20);
	tree_put_bytes(tree, NODE "/node1/distance", text, 1 << 20);
	tree_put_bytes(tree, NODE "/node1/cpulist", text, 1 << 20);
	tree_put_bytes(tree, CPU "/cpu0/topology/core_id", text, 1 << 20);
	free(text);
	struct topo *t = tree_read_noted(tree, "node1/meminfo: has no valid MemTotal");
	topo_check(t);
	topo_free(t);
}

/* ---- kinds of memory ------------------------------------------------------------------------- */

/* Checks that a node with neither CPUs nor memory (a GPU's, an offline one) is no error. */
static void test_empty_node(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, NODE "/online", "0-4\n");
	tree_node(tree, 4, "", 0, "20 20 20 20 10");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(node_of(t, 4).type, RP_MEM_NONE);
	assert_int_equal(node_of(t, 4).normal, 0);
	assert_ids(topo_ids(t, RP_NODES_MEMORY), "0-3");
	topo_free(t);
}

static void test_types_by_size(void **state)
{
	const struct tree *tree = *state;
	small_machine(tree);
	tree_put(tree, NODE "/online", "0-3\n");
	tree_node(tree, 0, "0-1", 1048576, "10 20 20 20");
	tree_node(tree, 1, "", 1048575, "20 10 20 20");
	tree_node(tree, 2, "", 1048576, "20 20 10 20");
	tree_node(tree, 3, "", 9999999, "20 20 20 10");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(node_of(t, 1).type, RP_MEM_HBM);
	assert_int_equal(node_of(t, 2).type, RP_MEM_PMEM);
	assert_int_equal(node_of(t, 3).type, RP_MEM_PMEM);
	topo_free(t);
	/* There are no distances to compare. */
	tree_node(tree, 0, "0-1", 0, "10 20 20 20");
	t = tree_read(tree);
	assert_int_equal(node_of(t, 0).type, RP_MEM_DRAM);
	assert_int_equal(node_of(t, 1).type, RP_MEM_PMEM);
	topo_free(t);
}

static void test_types_by_tier(void **state)
{
	const struct tree *tree = *state;
	small_machine(tree);
	tree_put(tree, NODE "/online", "0-5\n");
	tree_node(tree, 0, "0-1", 1048576, "10 20 20 20 20 20");
	for (unsigned node = 1; node < 6; node++)
		tree_node(tree, node, "", node == 5 ? 5 : 1048576, "20 20 20 20 20 20");
	put_tier(tree, 3, "1");
	put_tier(tree, 4, "0,4-5");
	put_tier(tree, 7, "2");
	put_tier(tree, 22, "3");
	tree_put(tree, TIERS "/memory_tierX/nodelist", "4\n");
	tree_put(tree, TIERS "/uevent", "\n");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(topo_n_notes(t), 0);
	assert_int_equal(node_of(t, 0).type, RP_MEM_DRAM);
	assert_int_equal(node_of(t, 1).type, RP_MEM_HBM);
	assert_int_equal(node_of(t, 2).type, RP_MEM_CXL);
	assert_int_equal(node_of(t, 3).type, RP_MEM_PMEM);
	assert_int_equal(node_of(t, 4).type, RP_MEM_DRAM); /* as fast as DRAM, of any size */
	assert_int_equal(node_of(t, 5).type, RP_MEM_DRAM);
	topo_free(t);
	put_tier(tree, 7, "two");
	t = tree_read_noted(tree, "memory_tier7/nodelist: not a list");
	assert_int_equal(node_of(t, 2).type, RP_MEM_PMEM);
	topo_free(t);
	/* HBM with CPUs: the others are compared with the slower one. */
	put_tier(tree, 7, "2");
	tree_node(tree, 1, "1", 1048576, "20 10 20 20 20 20");
	tree_node(tree, 0, "0", 1048576, "10 20 20 20 20 20");
	t = tree_read(tree);
	assert_int_equal(node_of(t, 1).type, RP_MEM_DRAM);
	assert_int_equal(node_of(t, 2).type, RP_MEM_CXL);
	assert_int_equal(node_of(t, 4).type, RP_MEM_DRAM);
	topo_free(t);
	tree_node(tree, 0, "0-1", 1048576, "10 20 20 20 20 20");
	tree_node(tree, 1, "", 1048576, "20 10 20 20 20 20");
	put_tier(tree, 7, "two");
	tree_del(tree, TIERS "/memory_tier4");
	t = tree_read_noted(tree, "memory_tier7/nodelist: not a list");
	assert_int_equal(node_of(t, 1).type, RP_MEM_PMEM); /* no DRAM tier to compare with */
	topo_free(t);
}

static void put_dax(const struct tree *tree, const char *name, const char *device, const char *node)
{
	char path[256], target[256];
	(void)snprintf(path, sizeof path, "sys/devices/%s/%s/target_node", device, name);
	tree_put(tree, path, "%s\n", node);
	(void)snprintf(path, sizeof path, "sys/bus/dax/devices/%s", name);
	(void)snprintf(target, sizeof target, "../../../devices/%s/%s", device, name);
	tree_link(tree, target, path);
}

static void test_types_by_device(void **state)
{
	const struct tree *tree = *state;
	small_machine(tree);
	tree_put(tree, NODE "/online", "0-4\n");
	tree_node(tree, 0, "0-1", 1048576, "10 20 20 20 20");
	for (unsigned node = 1; node < 5; node++)
		tree_node(tree, node, "", 5, "20 20 20 20 20");
	put_tier(tree, 4, "0");
	put_tier(tree, 22, "1-2");
	put_dax(tree, "dax0.0", "LNXSYSTM:00/LNXSYBUS:00/ACPI0012:00/ndbus0/region0/dax0", "2");
	put_dax(tree, "dax1.0", "platform/ACPI0017:00/root0/decoder0.0/region1/dax_region1", "1");
	put_dax(tree, "dax2.0", "platform/hmem.0", "3");
	put_dax(tree, "dax3.0", "pci0000:34/0000:35:00.0/cxl_region/dax", "0");
	put_dax(tree, "dax4.0", "platform/x", "77");
	put_dax(tree, "dax5.0", "platform/y", "-1");
	put_dax(tree, "dax6.0", "platform/z", "none");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(node_of(t, 0).type, RP_MEM_DRAM);
	assert_int_equal(node_of(t, 1).type, RP_MEM_CXL);
	assert_int_equal(node_of(t, 2).type, RP_MEM_PMEM);
	assert_int_equal(node_of(t, 3).type, RP_MEM_HBM);
	assert_int_equal(node_of(t, 4).type, RP_MEM_HBM);
	topo_free(t);
}

/* Checks that a socket whose CPUs are all offline is still DRAM. */
static void test_offline_socket(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, CPU "/online", "0-7\n");
	tree_put(tree, NODE "/node2/cpulist", "\n");
	tree_link(tree, "../../cpu/cpu8", NODE "/node2/cpu8");
	tree_put(tree, NODE "/node2/cpumap", "0\n");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(node_of(t, 2).type, RP_MEM_DRAM);
	assert_int_equal(node_of(t, 3).type, RP_MEM_PMEM);
	assert_int_equal(node_of(t, 2).package_id, 0);
	topo_free(t);
}

static void test_place_of_memory(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, NODE "/online", "0-5\n");
	tree_node(tree, 0, "0-3", 1048576, "10 20 20 20 40 0");
	tree_node(tree, 1, "4-7", 1048576, "20 10 20 20 40 0");
	tree_node(tree, 2, "8-11", 1048576, "20 20 10 20 30 0");
	tree_node(tree, 3, "12-15", 1048576, "20 20 20 10 30 0");
	tree_node(tree, 4, "", 1048576, "40 40 30 30 10 0");
	tree_node(tree, 5, "", 1048576, "0 0 0 0 0 10");
	struct topo *t = tree_read(tree);
	topo_check(t);
	assert_int_equal(node_of(t, 4).package_id, 1);
	assert_int_equal(node_of(t, 5).package_id, 0); /* unknown: the first */
	assert_int_equal(topo_distance(t, 0, 5), 0);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_nodes),
		tree_test(test_no_numa),
		tree_test(test_no_meminfo),
		tree_test(test_sparse_nodes),
		tree_test(test_nodes_that_cannot_be_told),
		tree_test(test_distances),
		tree_test(test_cpus_of_nodes),
		tree_test(test_node_memory),
		tree_test(test_huge_file),
		tree_test(test_empty_node),
		tree_test(test_types_by_size),
		tree_test(test_types_by_tier),
		tree_test(test_types_by_device),
		tree_test(test_offline_socket),
		tree_test(test_place_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
