/* SPDX-License-Identifier: Apache-2.0 */
/* The file of what was found: what comes back of it, and what its bytes cannot do. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <nri-rp/host.h>

#include "core/nri-rpd/host/former_settings.h"
#include "core/lib/util/fs.h"
#include "test/unit/t_oom.h"

#define MAX_FILE "/sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq"
#define IRQ_FILE "/proc/irq/24/smp_affinity_list"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char dir[64], path[96];

static int setup(void **state)
{
	strcpy(dir, "/tmp/t_found-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof path, "%s/settings", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)unlink(path);
	return rmdir(dir);
}

static int collect(void *arg, const char *file, const char *value)
{
	char *all = arg;
	size_t used = strlen(all);
	(void)snprintf(all + used, 512 - used, "%s%s%s;", file, value ? "=" : "",
		       value ? value : "");
	return 0;
}

/* Opens the file as a process of this boot does, and stores the records read from it in `all`. */
static struct found *opened(const char *origin, char all[512], struct err *why)
{
	struct found *f = NULL;
	*all = '\0';
	*why = (struct err)ERR_INIT;
	assert_int_equal(found_open(path, origin, collect, all, &f, why), 0);
	return f;
}

static int append(struct found *f, const char *file, const char *value)
{
	int r = found_put(f, file, value);
	int committed = reclog_commit(&f->log, NULL);
	return r ? r : committed;
}

/* Rewrites the log with this record alone; without a file, the log is empty. */
static int replace(struct found *f, const char *file, const char *value)
{
	int r = reclog_begin_anew(&f->log, NULL);
	if (!r && file)
		r = found_put(f, file, value);
	return r ? r : reclog_commit(&f->log, NULL);
}

static void write_two(void)
{
	char all[512];
	struct err why;
	struct found *f = opened("boot /", all, &why);
	/* the file cannot be written before the first replace */
	assert_int_equal(append(f, MAX_FILE, "1"), -EBADF);
	assert_int_equal(replace(f, NULL, NULL), 0);
	assert_int_equal(append(f, MAX_FILE, "3800000"), 0);
	assert_int_equal(append(f, IRQ_FILE, ""), 0);
	assert_int_equal(append(f, MAX_FILE, NULL), 0);
	found_close(f);
}

static const char two[] = MAX_FILE "=3800000;" IRQ_FILE "=;" MAX_FILE ";";

static void test_comes_back(void **state)
{
	char all[512];
	struct err why;
	struct stat st;
	found_close(opened("boot /", all, &why));
	assert_string_equal(all, "");
	assert_string_equal(why.text, "");
	write_two();
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	found_close(opened("boot /", all, &why));
	assert_string_equal(all, two);
	assert_string_equal(why.text, "");
	/* Looking has changed nothing; another boot, or another root, has nothing to look at. */
	found_close(opened("boot /other", all, &why));
	assert_string_equal(all, "");
	assert_string_equal(why.text, "");
	struct found *f = opened("boot /", all, &why);
	assert_string_equal(all, two);
	assert_int_equal(replace(f, IRQ_FILE, "0-3"), 0);
	found_close(f);
	found_close(opened("boot /", all, &why));
	assert_string_equal(all, IRQ_FILE "=0-3;");
}

static void put(const void *data, size_t size)
{
	assert_int_equal(fs_replace(path, data, size, 0600, false, NULL), 0);
}

/* Checks that any changed byte and any truncation yields a prefix of the written records and an
 * error. */
static void test_damage(void **state)
{
	char all[512], data[1024];
	struct err why;
	write_two();
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	size_t size = fread(data, 1, sizeof data, f);
	assert_int_equal(fclose(f), 0);
	assert_in_range(size, 1, sizeof data - 1);
	for (size_t i = 0; i < size; i++) {
		data[i] ^= 1;
		put(data, size);
		data[i] ^= 1;
		found_close(opened("boot /", all, &why));
		assert_true(strlen(all) < strlen(two) && strncmp(all, two, strlen(all)) == 0);
		assert_true(why.code == -EBADMSG || (why.code == -ENOMSG && !*all));
		assert_non_null(strstr(why.text, "damaged"));
	}
	unsigned whole = 0;
	for (size_t n = 0; n < size; n++) {
		put(data, n);
		found_close(opened("boot /", all, &why));
		assert_true(strlen(all) < strlen(two) && strncmp(all, two, strlen(all)) == 0);
		/* A record cut by the death of its writer is no damage if the head is complete. */
		assert_true(why.code == 0 || (why.code == -ENOMSG && !*all));
		whole += why.code == 0;
	}
	assert_in_range(whole, 3, size - 1);
}

/* Files whose records are sound, but which the daemon would not have written. */
static void test_other_files(void **state)
{
	static const struct {
		const char *path, *value;
		bool storable;
	} rows[] = {
		{MAX_FILE, "1", true},
		{IRQ_FILE, "0-3,7", true},
		{MAX_FILE, "", true},
		{"/etc/passwd", "1", false},
		{"/proc/sysrq-trigger", "c", false},
		{"/proc/irq/../sysrq-trigger", "c", false},
		{"/sys/devices/system/cpu/./x", "1", false},
		{"/sys/devices/system/cpu//x", "1", false},
		{"/sys/devices/system/", "1", false},
		{"/sys/devices/system/cpu/x/", "1", false},
		{"sys/devices/system/cpu/x", "1", false},
		{"/sys/devices/system/cpu/x\ny", "1", false},
		{MAX_FILE, "1\n2", false},
		{MAX_FILE, "\x1b[m", false},
		{MAX_FILE, "\x7f", false},
		{"", "", false},
	};
	char all[512];
	struct err why;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct found *f = opened("boot /", all, &why);
		assert_int_equal(found_storable(rows[i].path, rows[i].value), rows[i].storable);
		assert_int_equal(replace(f, rows[i].path, rows[i].value), 0);
		found_close(f);
		found_close(opened("boot /", all, &why));
		assert_int_equal(why.code, rows[i].storable ? 0 : -EBADMSG);
		assert_int_equal(*all != '\0', rows[i].storable);
	}
}

static void test_long(void **state)
{
	char value[RP_SETTING_MAX + 1], file[RP_SETTING_PATH_MAX + 1];
	memset(value, '7', sizeof value);
	value[RP_SETTING_MAX] = '\0';
	assert_false(found_storable(MAX_FILE, value));
	value[RP_SETTING_MAX - 1] = '\0';
	assert_true(found_storable(MAX_FILE, value));
	memset(file, 'x', sizeof file);
	memcpy(file, "/proc/irq/", 10);
	file[RP_SETTING_PATH_MAX] = '\0';
	assert_false(found_storable(file, "1"));
	file[RP_SETTING_PATH_MAX - 1] = '\0';
	assert_true(found_storable(file, "1"));
}

/* Checks that a file of another owner is not read, and does not prevent the start. */
static void test_not_ours(void **state)
{
	char all[512];
	struct err why;
	write_two();
	assert_int_equal(chmod(path, 0622), 0);
	found_close(opened("boot /", all, &why));
	assert_string_equal(all, "");
	assert_non_null(strstr(why.text, "is writable by other users"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/zero", path), 0);
	found_close(opened("boot /", all, &why));
	assert_int_equal(why.code, -EPERM);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	struct found *f = opened("boot /", all, &why);
	assert_non_null(strstr(why.text, "not a regular file"));
	/* The file belongs to this process after a replace. */
	assert_int_equal(replace(f, NULL, NULL), 0);
	found_close(f);
	found_close(opened("boot /", all, &why));
	assert_int_equal(why.code, 0);
	assert_int_equal(truncate(path, (off_t)FOUND_FILE_MAX + 1), 0);
	found_close(opened("boot /", all, &why));
	assert_int_equal(why.code, -EFBIG);
}

static int refuse(void *arg, const char *file, const char *value)
{
	return --*(int *)arg ? 0 : -E2BIG;
}

static void test_refused(void **state)
{
	struct err why = ERR_INIT;
	struct found *f;
	int left = 2;
	write_two();
	assert_int_equal(found_open(path, "boot /", refuse, &left, &f, &why), 0);
	assert_int_equal(left, 0);
	assert_int_equal(why.code, -E2BIG);
	found_close(f);
}

static int all_of_it(void *arg)
{
	char all[512] = "";
	struct err why = ERR_INIT;
	struct found *f = NULL;
	int r = found_open(path, "boot /", collect, all, &f, &why);
	if (!r)
		r = why.code;
	if (!r)
		r = replace(f, NULL, NULL);
	if (!r)
		r = append(f, MAX_FILE, "1");
	found_close(f);
	return r;
}

static void test_out_of_memory(void **state)
{
	write_two();
	oom_each(all_of_it, NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(comes_back), T(damage),  T(other_files),   T(long),
		T(not_ours),   T(refused), T(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
