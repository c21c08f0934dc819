/* SPDX-License-Identifier: Apache-2.0 */
/* Where a container's cgroup is, from what the runtime calls it. */
#include "test/unit/t_topo_tree.h"

#include "core/nri-rpd/host/cgroup.h"

static void test_relative(void **state)
{
	static const struct {
		const char *path, *expected; /* NULL: refused */
	} cases[] = {
		{"/kubepods/burstable/pod1/abc", "kubepods/burstable/pod1/abc"},
		{"/", ""},
		{"kubepods.slice:cri:abc", "kubepods.slice/cri-abc.scope"},
		{"kubepods-burstable-pod1.slice:cri-containerd:abc",
		 "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
		 "cri-containerd-abc.scope"},
		{"/a/../b", NULL},
		{"/..", NULL},
		{"a/b", NULL},
		{"", NULL},
		{"nothing", NULL},
		{"a.slice:b", NULL},
		{".slice:b:c", NULL},
		{"slice:b:c", NULL},
		{"a.slicer:b:c", NULL},
		{"a.slice:../x:c", NULL},
	};
	char buf[256];
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		int r = cgroup_relative(cases[i].path, buf, sizeof buf);
		if (cases[i].expected ? r || strcmp(buf, cases[i].expected) != 0 : r != -EINVAL)
			fail_msg("'%s' gives %d, '%s'", cases[i].path, r, r ? "" : buf);
	}
}

static void test_too_long(void **state)
{
	char buf[16];
	static const char *const paths[] = {"/0123456789abcdef", "0123456789.slice:a:b",
					    "abcd.slice:abc:defgh"};
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(cgroup_relative(paths[i], buf, sizeof buf), -E2BIG);
}

static void test_dir(void **state)
{
	const struct tree *t = *state;
	char buf[256];
	assert_int_equal(cgroup_dir_of(&t->root, "/pods/a", "", buf, sizeof buf), -ENOENT);
	tree_put(t, "sys/fs/cgroup/cpuset/pods/a/cpuset.cpus", "0\n");
	assert_int_equal(cgroup_dir_of(&t->root, "/pods/a", "cpuset", buf, sizeof buf), 0);
	assert_string_equal(buf, "sys/fs/cgroup/cpuset/pods/a");
	tree_put(t, "sys/fs/cgroup/cgroup.controllers", "cpuset\n");
	assert_int_equal(cgroup_dir_of(&t->root, "/pods/a", "cpuset", buf, sizeof buf), -ENOENT);
	tree_put(t, "sys/fs/cgroup/pods/a/cpuset.cpus", "0\n");
	assert_int_equal(cgroup_dir_of(&t->root, "/pods/a", "cpuset", buf, sizeof buf), 0);
	assert_string_equal(buf, "sys/fs/cgroup/pods/a");
	assert_int_equal(cgroup_dir_of(&t->root, "/pods/a", "", buf, 8), -E2BIG);
	assert_int_equal(cgroup_dir_of(&t->root, "neither", "", buf, sizeof buf), -EINVAL);
}

static void test_find(void **state)
{
	const struct tree *t = *state;
	char buf[256];
	tree_put(t, "sys/fs/cgroup/cgroup.controllers", "cpuset\n");
	tree_put(t, "sys/fs/cgroup/real/place/cpuset.cpus", "0\n");
	assert_int_equal(cgroup_find_dir(&t->root, "/pods/a", 0, "", buf, sizeof buf), -ENOENT);
	assert_true(cgroup_find_dir(&t->root, "/pods/a", 77, "", buf, sizeof buf) < 0);
	tree_put(t, "proc/77/cgroup", "0::/real/place\n");
	assert_int_equal(cgroup_find_dir(&t->root, "/pods/a", 77, "", buf, sizeof buf), 0);
	assert_string_equal(buf, "sys/fs/cgroup/real/place");
	tree_put(t, "proc/77/cgroup", "0::/\n");
	assert_true(cgroup_find_dir(&t->root, "/pods/a", 77, "", buf, sizeof buf) < 0);
	tree_put(t, "proc/77/cgroup", "nonsense\n");
	assert_true(cgroup_find_dir(&t->root, "/pods/a", 77, "", buf, sizeof buf) < 0);
	tree_put(t, "sys/fs/cgroup/pods/a/cpuset.cpus", "0\n");
	assert_int_equal(cgroup_find_dir(&t->root, "/pods/a", 77, "", buf, sizeof buf), 0);
	assert_string_equal(buf, "sys/fs/cgroup/pods/a");
}

static void test_find_v1(void **state)
{
	const struct tree *t = *state;
	char buf[256];
	tree_put(t, "sys/fs/cgroup/cpuset/real/cpuset.cpus", "0\n");
	tree_put(t, "proc/77/cgroup", "12:memory:/elsewhere\n5:cpuset:/real\n0::/x\n");
	assert_int_equal(cgroup_find_dir(&t->root, "/pods/a", 77, "cpuset", buf, sizeof buf), 0);
	assert_string_equal(buf, "sys/fs/cgroup/cpuset/real");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_too_long),
		tree_test(test_dir),
		tree_test(test_find),
		tree_test(test_find_v1),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
