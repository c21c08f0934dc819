/* SPDX-License-Identifier: Apache-2.0 */
/* core/lib/topo: where devices are. */
#include "test/unit/t_topo_tree.h"

#define PCI "sys/devices/pci0000:00/0000:00:1f.2"

static void near_is(const struct topo *t, const char *device, const char *cpus, const char *nodes,
		    int line)
{
	struct rp_idset near_cpus, near_nodes;
	int rc = topo_device_near(t, device, &near_cpus, &near_nodes);
	if (rc)
		fail_msg("line %d: %s: %s", line, device, strerror(-rc));
	check_ids(rp_ids_of(&near_cpus), cpus, __FILE__, line);
	check_ids(rp_ids_of(&near_nodes), nodes, __FILE__, line);
}
#define assert_near(t, device, cpus, nodes) near_is((t), (device), (cpus), (nodes), __LINE__)

static void far_is(const struct topo *t, const char *device, int code, int line)
{
	struct rp_idset cpus = {.nw = 77}, nodes = {.nw = 77};
	_assert_int_equal((uintmax_t)topo_device_near(t, device, &cpus, &nodes), (uintmax_t)code,
			  __FILE__, line);
	_assert_int_equal(cpus.nw, 77, __FILE__, line);
	_assert_int_equal(nodes.nw, 77, __FILE__, line);
}
#define assert_unknown(t, device, code) far_is((t), (device), (code), __LINE__)

/* Adds a disk on node 2 and a network card on node 1. */
static void put_devices(const struct tree *tree)
{
	tree_put(tree, PCI "/numa_node", "2\n");
	tree_put(tree, PCI "/local_cpulist", "8-11\n");
	tree_put(tree, PCI "/ata1/block/sda/dev", "8:0\n");
	tree_put(tree, PCI "/ata1/block/sda/sda1/dev", "8:1\n");
	tree_link(tree, "../../devices/pci0000:00/0000:00:1f.2/ata1/block/sda",
		  "sys/dev/block/8:0");
	tree_link(tree, "../../devices/pci0000:00/0000:00:1f.2/ata1/block/sda/sda1",
		  "sys/dev/block/8:1");
	tree_put(tree, "sys/devices/pci0000:00/0000:00:05.0/numa_node", "1\n");
	tree_put(tree, "sys/devices/pci0000:00/0000:00:05.0/net/eth0/address", "x\n");
	tree_link(tree, "../../devices/pci0000:00/0000:00:05.0/net/eth0", "sys/class/net/eth0");
	tree_link(tree, "../../devices/pci0000:00/0000:00:05.0", "sys/dev/char/195:0");
}

static void test_paths(void **state)
{
	const struct tree *tree = *state;
	struct topo *t = tree_read(tree);
	assert_false(topo_has_devices(t));
	topo_free(t);
	put_devices(tree);
	t = tree_read(tree);
	assert_true(topo_has_devices(t));
	assert_near(t, "/" PCI, "8-11", "2");
	assert_near(t, "/" PCI "/ata1/block/sda/sda1", "8-11", "2");
	assert_near(t, "/sys/class/net/eth0", "4-7", "1");
	assert_near(t, "/sys/dev/block/8:1", "8-11", "2");
	assert_unknown(t, "/sys/devices/nothing", -ENOENT);
	assert_unknown(t, "/sys/devices", -ENOENT);
	assert_unknown(t, "/sys/kernel", -ENOENT);
	assert_unknown(t, "/proc/meminfo", -EINVAL);
	assert_unknown(t, "", -EINVAL);
	assert_unknown(t, PCI, -EINVAL);
	topo_free(t);
}

static void test_numbers(void **state)
{
	const struct tree *tree = *state;
	put_devices(tree);
	struct topo *t = tree_read(tree);
	assert_near(t, "8:0", "8-11", "2");
	assert_near(t, "b8:1", "8-11", "2");
	assert_near(t, "195:0", "4-7", "1");
	assert_near(t, "c195:0", "4-7", "1");
	assert_unknown(t, "c8:0", -ENOENT);
	assert_unknown(t, "b195:0", -ENOENT);
	assert_unknown(t, "0:5", -ENOENT);
	static const char *const bad[] = {"8", "8:", ":0", "8:0x", "d8:0", "b", "b-8:0", "8:0:0"};
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_unknown(t, bad[i], -EINVAL);
	topo_free(t);
}

/* Checks that the CPUs of a device determine its nodes, and its nodes determine its CPUs. */
static void test_what_follows(void **state)
{
	const struct tree *tree = *state;
	struct topo *t = tree_read(tree);
	tree_put(tree, "sys/devices/a/local_cpulist", "2,5,99\n");
	assert_near(t, "/sys/devices/a", "2,5", "0-1");
	tree_put(tree, "sys/devices/b/cpulistaffinity", "12-15\n");
	tree_put(tree, "sys/devices/b/local_cpulist", "\n");
	tree_put(tree, "sys/devices/b/c/dev", "1:1\n");
	assert_near(t, "/sys/devices/b/c", "12-15", "3");
	assert_near(t, "/" CPU "/cpu9/cache/index3", "8-15", "2-3");
	assert_near(t, "/" NODE "/node3", "12-15", "3");
	tree_put(tree, "sys/devices/d/numa_node", "9\n");
	assert_unknown(t, "/sys/devices/d", -ENOENT);
	tree_put(tree, "sys/devices/e/numa_node", "3\n");
	tree_put(tree, "sys/devices/e/f/local_cpulist", "100-200\n");
	assert_near(t, "/sys/devices/e/f", "12-15", "3");
	topo_free(t);
}

/* Checks that a device without a node lists every CPU as local, so the list is ignored. */
static void test_nowhere(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, "sys/devices/a/numa_node", "-1\n");
	tree_put(tree, "sys/devices/a/local_cpulist", "0-15\n");
	struct topo *t = tree_read(tree);
	assert_unknown(t, "/sys/devices/a", -ENOENT);
	tree_put(tree, "sys/devices/b/numa_node", "1\n");
	tree_put(tree, "sys/devices/b/c/numa_node", "-1\n");
	assert_near(t, "/sys/devices/b/c", "4-7", "1");
	topo_free(t);
}

static void test_memory_only_node(void **state)
{
	const struct tree *tree = *state;
	tree_put(tree, NODE "/online", "0-5\n");
	tree_node(tree, 0, "0-3", 1048576, "10 20 20 20 40 0");
	tree_node(tree, 1, "4-7", 1048576, "20 10 20 20 30 0");
	tree_node(tree, 2, "8-11", 1048576, "20 20 10 20 30 0");
	tree_node(tree, 3, "12-15", 1048576, "20 20 20 10 40 0");
	tree_node(tree, 4, "", 1048576, "40 30 30 40 10 0");
	tree_node(tree, 5, "", 1048576, "0 0 0 0 0 10");
	tree_put(tree, "sys/devices/cxl/numa_node", "4\n");
	struct topo *t = tree_read(tree);
	assert_near(t, "/sys/devices/cxl", "4-11", "4");
	assert_near(t, "/" NODE "/node4", "4-11", "4");
	assert_near(t, "/" NODE "/node5", "", "5");
	topo_free(t);
}

static void test_made_of_others(void **state)
{
	const struct tree *tree = *state;
	put_devices(tree);
	tree_put(tree, "sys/devices/pci0000:00/0000:00:09.0/numa_node", "0\n");
	tree_put(tree, "sys/devices/pci0000:00/0000:00:09.0/block/sdb/dev", "8:16\n");
	tree_link(tree, "../../../../pci0000:00/0000:00:1f.2/ata1/block/sda",
		  "sys/devices/virtual/block/md0/slaves/sda");
	tree_link(tree, "../../../../pci0000:00/0000:00:09.0/block/sdb",
		  "sys/devices/virtual/block/md0/slaves/sdb");
	tree_put(tree, "sys/devices/virtual/block/md0/md0p1/dev", "9:1\n");
	tree_link(tree, "../../md0", "sys/devices/virtual/block/dm-0/slaves/md0");
	struct topo *t = tree_read(tree);
	assert_near(t, "/sys/devices/virtual/block/md0", "0-3,8-11", "0,2");
	assert_near(t, "/sys/devices/virtual/block/md0/md0p1", "0-3,8-11", "0,2");
	assert_near(t, "/sys/devices/virtual/block/dm-0", "0-3,8-11", "0,2");
	tree_put(tree, "sys/devices/virtual/vfio/31/dev", "244:0\n");
	tree_link(tree, "../../../../devices/pci0000:00/0000:00:05.0",
		  "sys/kernel/iommu_groups/31/devices/0000:00:05.0");
	assert_near(t, "/sys/devices/virtual/vfio/31", "4-7", "1");
	assert_unknown(t, "/sys/devices/virtual/vfio/32", -ENOENT);
	topo_free(t);
}

/* Devices made of each other, of too many, and links that lead out of the tree. */
static void test_tricks(void **state)
{
	const struct tree *tree = *state;
	tree_link(tree, "../../b", "sys/devices/virtual/block/a/slaves/b");
	tree_link(tree, "../../a", "sys/devices/virtual/block/b/slaves/a");
	struct topo *t = tree_read(tree);
	assert_unknown(t, "/sys/devices/virtual/block/a", -ENOENT);
	for (unsigned i = 0; i < 300; i++) {
		char path[96];
		(void)snprintf(path, sizeof path, "sys/devices/virtual/block/many/slaves/%u", i);
		tree_link(tree, "../../../../x", path);
	}
	tree_put(tree, "sys/devices/x/numa_node", "1\n");
	assert_near(t, "/sys/devices/virtual/block/many", "4-7", "1");
	tree_link(tree, "../../../../../../sys/devices/system/node/node0", "sys/devices/out");
	assert_near(t, "/sys/devices/out", "0-3", "0");
	tree_link(tree, "/etc", "sys/devices/etc");
	assert_unknown(t, "/sys/devices/etc", -ENOENT);
	tree_link(tree, "self", "sys/devices/self");
	assert_unknown(t, "/sys/devices/self", -ENOENT);
	char longer[5000] = "/sys/";
	memset(longer + 5, 'x', sizeof longer - 6);
	assert_unknown(t, longer, -ENOENT);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		tree_test(test_paths),
		tree_test(test_numbers),
		tree_test(test_what_follows),
		tree_test(test_nowhere),
		tree_test(test_memory_only_node),
		tree_test(test_made_of_others),
		tree_test(test_tricks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
