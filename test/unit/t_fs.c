/* SPDX-License-Identifier: Apache-2.0 */
/* Each test on a made-up tree runs twice: with openat2, and with a kernel that seems to have
 * none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"

struct tree {
	char dir[64];
	struct fs_root root;
};

static void put(const struct tree *t, const char *path, const char *text)
{
	_free_ char *full = str_printf("%s/%s", t->dir, path);
	char *slash = strrchr(full, '/');
	*slash = '\0';
	assert_int_equal(fs_mkdirs(full, 0755, NULL), 0);
	*slash = '/';
	_fclose_ FILE *f = fopen(full, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

static void put_link(const struct tree *t, const char *path, const char *target)
{
	_free_ char *full = str_printf("%s/%s", t->dir, path);
	assert_int_equal(symlink(target, full), 0);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	struct tree *t = calloc(1, sizeof *t);
	if (!t)
		return -1;
	(void)snprintf(t->dir, sizeof t->dir, "/tmp/t_fs.XXXXXX");
	if (!mkdtemp(t->dir))
		return -1;
	*state = t;
	put(t, "sys/cpu/online", "0-3,8\n");
	put(t, "sys/cpu/count", "12\n");
	put(t, "sys/cpu/bad", "many\n");
	put(t, "sys/cpu/empty", "");
	put(t, "sys/cpu/two", "a\n\n");
	put(t, "sys/devices/node0/meminfo", "MemTotal\n");
	put(t, "etc/secret", "inside\n");
	put_link(t, "sys/node", "devices/node0");
	put_link(t, "sys/absolute", "/etc/secret");
	put_link(t, "sys/escape", "../../../../../../etc/secret");
	put_link(t, "sys/loop", "loop");
	put_link(t, "sys/broken", "nowhere");
	put_link(t, "sys/via", "node/../node0/meminfo");
	return fs_root_open(&t->root, t->dir, NULL);
}

static int teardown(void **state)
{
	struct tree *t = *state;
	fs_root_close(&t->root);
	int r = nftw(t->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(t);
	return r;
}

static void check_read(const struct tree *t, const char *path, const char *text)
{
	char buf[64];
	ssize_t n = fs_read(&t->root, path, buf, sizeof buf);
	if (n < 0 || !str_eq(buf, text) || (size_t)n != strlen(text))
		fail_msg("%s: %zd \"%s\"", path, n, n < 0 ? "" : buf);
}

static void check_refused(const struct tree *t, const char *path, int code)
{
	char buf[64];
	ssize_t n = fs_read(&t->root, path, buf, sizeof buf);
	if (n != code)
		fail_msg("%s: %zd, expected %d", path, n, code);
}

static void test_read(void **state)
{
	const struct tree *t = *state;
	assert_false(t->root.real);
	check_read(t, "sys/cpu/online", "0-3,8");
	check_read(t, "/sys/cpu/online", "0-3,8");
	check_read(t, "//sys//cpu/./online", "0-3,8");
	check_read(t, "sys/../sys/cpu/online", "0-3,8");
	check_read(t, "sys/cpu/empty", "");
	check_read(t, "sys/cpu/two", "a\n");
	check_refused(t, "sys/cpu/none", -ENOENT);
	check_refused(t, "sys/none/online", -ENOENT);
	check_refused(t, "sys/cpu/online/x", -ENOTDIR);
	check_refused(t, "sys/cpu/online/../online", -ENOTDIR);
	check_refused(t, "sys/cpu", -EISDIR);
	check_refused(t, "", -EISDIR);
}

static void test_links_stay_inside(void **state)
{
	const struct tree *t = *state;
	check_read(t, "sys/node/meminfo", "MemTotal");
	check_read(t, "sys/absolute", "inside");
	check_read(t, "sys/escape", "inside");
	check_read(t, "../../etc/secret", "inside");
	check_read(t, "sys/via", "MemTotal");
	check_refused(t, "sys/loop", -ELOOP);
	check_refused(t, "sys/broken", -ENOENT);
}

static void test_limits(void **state)
{
	const struct tree *t = *state;
	char buf[16], lengthy[PATH_MAX + 8];
	assert_int_equal(fs_read(&t->root, "sys/cpu/online", buf, 7), 5);
	assert_int_equal(fs_read(&t->root, "sys/cpu/online", buf, 6), -EFBIG);
	assert_int_equal(fs_read(&t->root, "sys/cpu/online", buf, 1), -EFBIG);
	memset(lengthy, 'x', sizeof lengthy);
	lengthy[sizeof lengthy - 1] = '\0';
	check_refused(t, lengthy, -ENAMETOOLONG);
	lengthy[300] = '\0';
	check_refused(t, lengthy, -ENAMETOOLONG);
	assert_int_equal(fs_realpath(&t->root, lengthy, buf, sizeof buf), -ENAMETOOLONG);
}

static void test_numbers_and_sets(void **state)
{
	const struct tree *t = *state;
	int64_t v = 0;
	struct rp_idset s;
	rp_idset_clear(&s);
	assert_int_equal(fs_read_i64(&t->root, "sys/cpu/count", &v), 0);
	assert_int_equal(v, 12);
	assert_int_equal(fs_read_i64(&t->root, "sys/cpu/bad", &v), -EINVAL);
	assert_int_equal(fs_read_i64(&t->root, "sys/cpu/none", &v), -ENOENT);
	assert_int_equal(v, 12);
	assert_int_equal(fs_read_ids(&t->root, "sys/cpu/online", RP_CPUS_MAX, &s), 0);
	assert_int_equal(rp_ids_count(rp_ids_of(&s)), 5);
	assert_int_equal(fs_read_ids(&t->root, "sys/cpu/online", 8, &s), -EINVAL);
	assert_int_equal(fs_read_ids(&t->root, "sys/cpu/none", 8, &s), -ENOENT);
	/* a failed read leaves the set unchanged */
	assert_int_equal(rp_ids_count(rp_ids_of(&s)), 5);
	_close_ int fd = fs_open_dir(&t->root, "sys/cpu");
	assert_true(fd >= 0);
	assert_int_equal(fs_read_i64_at(fd, "count", &v), 0);
	assert_int_equal(fs_read_i64_at(fd, "bad", &v), -EINVAL);
	assert_int_equal(fs_read_ids_at(fd, "online", RP_CPUS_MAX, &s), 0);
	assert_int_equal(fs_read_ids_at(fd, "bad", RP_CPUS_MAX, &s), -EINVAL);
	char buf[16];
	assert_int_equal(fs_read_at(fd, "online", buf, sizeof buf), 5);
	assert_int_equal(fs_read_at(fd, "none", buf, sizeof buf), -ENOENT);
	assert_int_equal(fs_open_dir(&t->root, "sys/cpu/online"), -ENOTDIR);
	assert_int_equal(fs_open_dir(&t->root, "sys/none"), -ENOENT);
}

static void test_read_all(void **state)
{
	const struct tree *t = *state;
	char large[20001];
	memset(large, 'y', sizeof large - 1);
	large[sizeof large - 1] = '\0';
	put(t, "large", large);
	char *text = NULL;
	size_t len = 0;
	assert_int_equal(fs_read_all(&t->root, "large", 20000, &text, &len), 0);
	assert_int_equal(len, 20000);
	assert_string_equal(text, large);
	free(text);
	text = NULL;
	assert_int_equal(fs_read_all(&t->root, "large", 19999, &text, &len), -EFBIG);
	assert_int_equal(fs_read_all(&t->root, "none", 10, &text, &len), -ENOENT);
	assert_int_equal(fs_read_all(&t->root, "sys", 10, &text, &len), -EISDIR);
	assert_null(text);
	assert_int_equal(fs_read_all(&t->root, "sys/cpu/empty", 0, &text, &len), 0);
	assert_string_equal(text, "");
	free(text);
	/* fs_read() reads until the end of the file, also in several pieces. */
	char back[20001];
	assert_int_equal(fs_read(&t->root, "large", back, sizeof back), 20000);
	assert_int_equal(fs_read(&t->root, "large", back, sizeof back - 1), -EFBIG);
}

static void test_exists(void **state)
{
	const struct tree *t = *state;
	assert_true(fs_exists(&t->root, "sys/cpu/online"));
	assert_true(fs_exists(&t->root, "sys/cpu"));
	assert_true(fs_exists(&t->root, ""));
	assert_true(fs_exists(&t->root, "sys/absolute"));
	assert_false(fs_exists(&t->root, "sys/broken"));
	assert_false(fs_exists(&t->root, "sys/none"));
}

static void test_write(void **state)
{
	const struct tree *t = *state;
	assert_int_equal(fs_write(&t->root, "sys/cpu/online", "7"), 0);
	check_read(t, "sys/cpu/online", "7");
	assert_int_equal(fs_write(&t->root, "sys/absolute", "new\n"), 0);
	check_read(t, "etc/secret", "new");
	assert_int_equal(fs_write(&t->root, "sys/cpu/none", "7"), -ENOENT);
	assert_int_equal(fs_write(&t->root, "sys/cpu", "7"), -EISDIR);
	assert_int_equal(fs_write(&t->root, "sys/cpu/online", ""), 0);
	check_read(t, "sys/cpu/online", "");
}

static void test_readlink(void **state)
{
	const struct tree *t = *state;
	char buf[32];
	assert_int_equal(fs_readlink(&t->root, "sys/node", buf, sizeof buf), 13);
	assert_string_equal(buf, "devices/node0");
	assert_int_equal(fs_readlink(&t->root, "sys/absolute", buf, sizeof buf), 11);
	assert_string_equal(buf, "/etc/secret");
	assert_int_equal(fs_readlink(&t->root, "sys/broken", buf, sizeof buf), 7);
	assert_int_equal(fs_readlink(&t->root, "sys/node", buf, 13), -ENAMETOOLONG);
	assert_int_equal(fs_readlink(&t->root, "sys/node", buf, 14), 13);
	assert_int_equal(fs_readlink(&t->root, "sys/cpu/online", buf, sizeof buf), -EINVAL);
	assert_int_equal(fs_readlink(&t->root, "sys/none", buf, sizeof buf), -ENOENT);
	assert_int_equal(fs_readlink(&t->root, "none/x", buf, sizeof buf), -ENOENT);
}

static void check_realpath(const struct tree *t, const char *path, const char *real)
{
	char buf[PATH_MAX];
	int r = fs_realpath(&t->root, path, buf, sizeof buf);
	if (r || !str_eq(buf, real))
		fail_msg("%s: %d %s", path, r, r ? "" : buf);
}

static void test_realpath(void **state)
{
	const struct tree *t = *state;
	char buf[PATH_MAX];
	check_realpath(t, "", "");
	check_realpath(t, "/", "");
	check_realpath(t, "..", "");
	check_realpath(t, "sys/node", "sys/devices/node0");
	check_realpath(t, "/sys/./node//meminfo", "sys/devices/node0/meminfo");
	check_realpath(t, "sys/via", "sys/devices/node0/meminfo");
	check_realpath(t, "sys/absolute", "etc/secret");
	check_realpath(t, "sys/escape", "etc/secret");
	assert_int_equal(fs_realpath(&t->root, "sys/loop", buf, sizeof buf), -ELOOP);
	assert_int_equal(fs_realpath(&t->root, "sys/broken", buf, sizeof buf), -ENOENT);
	assert_int_equal(fs_realpath(&t->root, "sys/cpu/online/..", buf, sizeof buf), -ENOTDIR);
	assert_int_equal(fs_realpath(&t->root, "sys/node", buf, 17), -ENAMETOOLONG);
	assert_int_equal(fs_realpath(&t->root, "sys/node", buf, 18), 0);
}

/* Checks a path where a link's target plus the rest of the path exceeds the limit on paths. */
static void test_long_links(void **state)
{
	const struct tree *t = *state;
	char target[4001], path[512], buf[64];
	for (size_t i = 0; i < sizeof target - 1; i += 2)
		memcpy(target + i, "./", 2);
	target[sizeof target - 1] = '\0';
	put_link(t, "lengthy", target);
	memset(path, '/', sizeof path);
	memcpy(path, "lengthy", 7);
	memcpy(path + sizeof path - 4, "sys", 4);
	assert_int_equal(fs_realpath(&t->root, path, buf, sizeof buf), -ENAMETOOLONG);
	check_realpath(t, "lengthy/sys", "sys");
}

struct names {
	char text[256];
	unsigned n, stop_at;
};

static int add_name(const char *name, void *arg)
{
	struct names *names = arg;
	strcat(names->text, name);
	strcat(names->text, " ");
	return ++names->n == names->stop_at ? 77 : 0;
}

static void test_list(void **state)
{
	const struct tree *t = *state;
	struct names names = {"", 0, 0};
	static const char *const files[] = {"cpu10", "cpu2",   "cpu1", "cpufreq",
					    "cpu0",  "online", ".x"};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		_free_ char *path = str_printf("list/%s", files[i]);
		put(t, path, "");
	}
	assert_int_equal(fs_list(&t->root, "list", add_name, &names), 0);
	assert_string_equal(names.text, ".x cpu0 cpu1 cpu2 cpu10 cpufreq online ");
	names = (struct names){"", 0, 2};
	assert_int_equal(fs_list(&t->root, "/list", add_name, &names), 77);
	assert_string_equal(names.text, ".x cpu0 ");
	assert_int_equal(fs_list(&t->root, "none", add_name, &names), -ENOENT);
	assert_int_equal(fs_list(&t->root, "list/cpu1", add_name, &names), -ENOTDIR);
	put(t, "bare/x", "");
	_free_ char *x = str_printf("%s/bare/x", t->dir);
	assert_int_equal(unlink(x), 0);
	names = (struct names){"", 0, 0};
	assert_int_equal(fs_list(&t->root, "bare", add_name, &names), 0);
	assert_string_equal(names.text, "");
}

static void test_root(void **state)
{
	const struct tree *t = *state;
	struct fs_root root;
	struct err err = ERR_INIT;
	_free_ char *file = str_printf("%s/etc/secret", t->dir);
	assert_int_equal(fs_root_open(&root, "/no/such/root", &err), -ENOENT);
	assert_string_equal(err.text,
			    "cannot open the root folder /no/such/root: No such file or directory");
	assert_int_equal(fs_root_open(&root, file, NULL), -ENOTDIR);
	assert_int_equal(fs_root_open(&root, "/", NULL), 0);
	assert_true(root.real);
	assert_string_equal(root.path, "/");
	char buf[64];
	assert_true(fs_read(&root, "proc/self/comm", buf, sizeof buf) > 0);
	assert_true(fs_exists(&root, "/proc"));
	assert_false(fs_exists(&root, "no/such/file"));
	fs_root_close(&root);
	assert_int_equal(root.fd, -1);
	fs_root_close(&root);
}

static void test_replace(void **state)
{
	const struct tree *t = *state;
	struct err err = ERR_INIT;
	_free_ char *path = str_printf("%s/etc/conf", t->dir);
	for (int i = 0; i < 4; i++) {
		_free_ char *text = str_printf("version %d\n", i);
		assert_int_equal(fs_replace(path, text, strlen(text), 0640, i % 2, &err), 0);
		text[strlen(text) - 1] = '\0';
		check_read(t, "etc/conf", text);
		struct stat st;
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
	}
	_free_ char *none = str_printf("%s/none/conf", t->dir);
	assert_int_equal(fs_replace(none, "x", 1, 0600, false, &err), -ENOENT);
	assert_non_null(strstr(err.text, "none/conf"));
	/* A folder cannot be replaced, and nothing is left beside it. */
	_free_ char *folder = str_printf("%s/sys", t->dir);
	assert_int_equal(fs_replace(folder, "x", 1, 0600, false, &err), -EISDIR);
	struct names names = {"", 0, 0};
	assert_int_equal(fs_list(&t->root, "", add_name, &names), 0);
	assert_string_equal(names.text, "etc sys ");
}

static void test_replace_in_place(void **state)
{
	const struct tree *t = *state;
	char here[PATH_MAX];
	assert_non_null(getcwd(here, sizeof here));
	assert_int_equal(chdir(t->dir), 0);
	int r = fs_replace("bare-name", "x", 1, 0600, true, NULL);
	assert_int_equal(chdir(here), 0);
	assert_int_equal(r, 0);
	check_read(t, "bare-name", "x");
}

static void test_read_own(void **state)
{
	const struct tree *t = *state;
	struct err err = ERR_INIT;
	_free_ char *path = str_printf("%s/kept", t->dir);
	_free_ char *link = str_printf("%s/link", t->dir);
	_free_ char *data = NULL;
	size_t len;
	assert_int_equal(fs_read_own(path, 10, &data, &len, &err), -ENOENT);
	assert_int_equal(err.code, 0);
	assert_int_equal(fs_replace(path, "0123456789", 10, 0600, true, &err), 0);
	assert_int_equal(fs_read_own(path, 10, &data, &len, &err), 0);
	assert_int_equal(len, 10);
	assert_string_equal(data, "0123456789");
	assert_int_equal(fs_read_own(path, 9, &data, &len, &err), -EFBIG);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(fs_read_own(link, 10, &data, &len, &err), -EPERM);
	assert_int_equal(chmod(path, 0620), 0);
	assert_int_equal(fs_read_own(path, 10, &data, &len, &err), -EPERM);
	assert_non_null(strstr(err.text, "is writable by other users"));
	assert_int_equal(fs_read_own(t->dir, 10, &data, &len, &err), -EPERM);
	if (geteuid() == 0) {
		assert_int_equal(chmod(path, 0600), 0);
		assert_int_equal(chown(path, 12345, 0), 0);
		assert_int_equal(fs_read_own(path, 10, &data, &len, &err), -EPERM);
	}
}

static void test_full_device(void **state)
{
	struct fs_root root;
	if (access("/dev/full", W_OK) < 0)
		skip();
	assert_int_equal(fs_root_open(&root, "/", NULL), 0);
	assert_int_equal(fs_write(&root, "dev/full", "x"), -ENOSPC);
	fs_root_close(&root);
}

static void test_mkdirs(void **state)
{
	const struct tree *t = *state;
	struct err err = ERR_INIT;
	_free_ char *deep = str_printf("%s//a/b//c/", t->dir);
	_free_ char *below_file = str_printf("%s/etc/secret/x", t->dir);
	_free_ char *file = str_printf("%s/etc/secret", t->dir);
	assert_int_equal(fs_mkdirs(deep, 0750, &err), 0);
	assert_int_equal(fs_mkdirs(deep, 0750, &err), 0);
	assert_true(fs_exists(&t->root, "a/b/c"));
	assert_int_equal(fs_mkdirs("/", 0755, &err), 0);
	assert_int_equal(fs_mkdirs(below_file, 0755, &err), -ENOTDIR);
	assert_int_equal(fs_mkdirs(file, 0755, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "etc/secret"));
	assert_int_equal(fs_mkdirs("", 0755, &err), -ENOENT);
}

static int hide_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof code[0], code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void test_openat2_is_hidden(void **state)
{
	const struct tree *t = *state;
	assert_true(t->root.walk);
}

#define ON_TREE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int run(bool hidden)
{
	const struct CMUnitTest tests[] = {
		ON_TREE(test_read),	   ON_TREE(test_links_stay_inside),
		ON_TREE(test_limits),	   ON_TREE(test_numbers_and_sets),
		ON_TREE(test_read_all),	   ON_TREE(test_exists),
		ON_TREE(test_write),	   ON_TREE(test_readlink),
		ON_TREE(test_realpath),	   ON_TREE(test_long_links),
		ON_TREE(test_list),	   ON_TREE(test_root),
		ON_TREE(test_replace),	   ON_TREE(test_replace_in_place),
		ON_TREE(test_full_device), ON_TREE(test_mkdirs),
		ON_TREE(test_read_own),
	};
	const struct CMUnitTest hidden_tests[] = {ON_TREE(test_openat2_is_hidden)};
	int failed = cmocka_run_group_tests_name(hidden ? "walking" : "openat2", tests, NULL, NULL);
	if (hidden)
		failed += cmocka_run_group_tests_name("hidden", hidden_tests, NULL, NULL);
	return failed;
}

int main(void)
{
	int failed = run(false);
	if (hide_openat2() < 0) {
		(void)fprintf(stderr, "no seccomp here: walking by hand is not tested\n");
		return failed;
	}
	return failed + run(true);
}
