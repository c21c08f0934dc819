/* SPDX-License-Identifier: Apache-2.0 */
/* Directories below a root, and the cgroup of a container that is not where the runtime said. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/nri-rpd/host/cgroup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"

struct fixture {
	char dir[64];
	struct fs_root root;
};

static void run(const struct fixture *f, const char *command)
{
	char line[1024];
	(void)snprintf(line, sizeof line, "cd %s && %s", f->dir, command);
	assert_int_equal(system(line), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct err err = ERR_INIT;
	assert_non_null(f);
	(void)snprintf(f->dir, sizeof f->dir, "/tmp/nri-rp-dirs-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(fs_root_open(&f->root, f->dir, &err), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	run(f, "rm -rf -- \"$PWD\"");
	fs_root_close(&f->root);
	free(f);
	return 0;
}

static void test_directories(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(fs_mkdir(&f->root, "/a", 0755), 0);
	assert_int_equal(fs_mkdir(&f->root, "a/b/", 0755), 0);
	assert_int_equal(fs_mkdir(&f->root, "a/b", 0755), -EEXIST);
	assert_int_equal(fs_mkdir(&f->root, "x/b", 0755), -ENOENT);
	assert_true(fs_exists(&f->root, "a/b"));
	assert_int_equal(fs_rmdir(&f->root, "a"), -ENOTEMPTY);
	assert_int_equal(fs_rmdir(&f->root, "a/b"), 0);
	assert_int_equal(fs_rmdir(&f->root, "a/b"), -ENOENT);
	assert_int_equal(fs_rmdir(&f->root, "x/b"), -ENOENT);
	assert_int_equal(fs_rmdir(&f->root, "a"), 0);
	/* never the root itself, nor out of it */
	static const char *const bad[] = {"", "/", ".", "..", "a/..", "a/."};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(fs_mkdir(&f->root, bad[i], 0755), -EINVAL);
		assert_int_equal(fs_rmdir(&f->root, bad[i]), -EINVAL);
	}
	char name[400];
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_int_equal(fs_mkdir(&f->root, name, 0755), -ENAMETOOLONG);
	run(f, "mkdir in && ln -s ../../.. out");
	assert_int_equal(fs_mkdir(&f->root, "out/here", 0755), 0);
	assert_true(fs_exists(&f->root, "here"));
}

static void found(struct fixture *f, const char *path, uint32_t pid, const char *controller,
		  int result, const char *where)
{
	char buf[CACHE_PATH_MAX] = "";
	assert_int_equal(cgroup_find_dir(&f->root, path, pid, controller, buf, sizeof buf), result);
	if (!result)
		assert_string_equal(buf, where);
	int fd = cgroup_open(&f->root, cgroup_unified(&f->root), path, pid, controller);
	if (result) {
		assert_int_equal(fd, result);
		return;
	}
	char link[64], opened[CACHE_PATH_MAX] = "";
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	assert_true(readlink(link, opened, sizeof opened - 1) > 0);
	assert_true(str_has_suffix(opened, where));
	(void)close(fd);
}

static void test_v2(void **state)
{
	struct fixture *f = *state;
	run(f,
	    "mkdir -p sys/fs/cgroup/kubepods/c sys/fs/cgroup/elsewhere/c proc/7 proc/8 proc/9 && "
	    "touch sys/fs/cgroup/cgroup.controllers && "
	    "printf '1:name=x:/no\\n0::/elsewhere/c\\n' > proc/7/cgroup && "
	    "printf '0::/\\n' > proc/8/cgroup && printf '0::/a/../b\\nx\\n' > proc/9/cgroup");
	found(f, "/kubepods/c", 7, "cpuset", 0, "sys/fs/cgroup/kubepods/c");
	found(f, "/kubepods/d", 7, "cpuset", 0, "sys/fs/cgroup/elsewhere/c");
	found(f, "/kubepods/d", 0, "cpuset", -ENOENT, NULL);
	found(f, "/kubepods/d", 8, "cpuset", -ENOENT, NULL);
	found(f, "/kubepods/d", 9, "cpuset", -ENOENT, NULL);
	found(f, "/kubepods/d", 10, "cpuset", -ENOENT, NULL);
	found(f, "nonsense", 7, "cpuset", 0, "sys/fs/cgroup/elsewhere/c");
	found(f, "nonsense", 0, "cpuset", -EINVAL, NULL);
}

static void test_v1(void **state)
{
	struct fixture *f = *state;
	run(f,
	    "mkdir -p sys/fs/cgroup/memory/m/c sys/fs/cgroup/cpuset/s proc/7 && "
	    "printf '5:cpu,cpuacct:/x\\n4:memory:/m/c\\n3:cpuset:/s\\n0::/u\\n' > proc/7/cgroup");
	found(f, "/gone", 7, "memory", 0, "sys/fs/cgroup/memory/m/c");
	found(f, "/gone", 7, "cpuset", 0, "sys/fs/cgroup/cpuset/s");
	found(f, "/gone", 7, "cpuacct", -ENOENT, NULL);
	found(f, "/gone", 7, "pids", -ENOENT, NULL);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(test_directories), TEST(test_v2), TEST(test_v1)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
