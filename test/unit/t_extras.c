/* SPDX-License-Identifier: Apache-2.0 */
/* Extras that only a creation can set: valid values, and conflicts between two requesters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/nri-rpd/cache/extras.h"
#include "core/nri-rpd/cache/extras_check.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const struct rp_mount bind = {sizeof bind, 1, "/srv", "/mnt", "bind", "rbind"},
			     writable = {sizeof bind, 0, "/srv", "/mnt", "bind", "rbind"};
static const struct rp_device gpu = {sizeof gpu, 0666, "/dev/x", "c", 195, 0, 0, 0},
			      other_gpu = {sizeof gpu, 0666, "/dev/x", "c", 195, 1, 0, 0};

static struct extra env(const char *by, const char *key, const char *value)
{
	return (struct extra){.field = RP_F_ENV, .key = key, .text = value, .by = by};
}

static void test_one_asker_changes_its_mind(void **state)
{
	struct extras x = {0};
	const struct extra a = env("x", "A", "1"), b = env("x", "B", "2"), c = env("x", "A", "3");
	const struct extra nice[] = {{.field = RP_F_NICE, .number = -5, .by = "x"},
				     {.field = RP_F_NICE, .number = -6, .by = "x"}};
	assert_int_equal(extras_put(&x, &a, NULL), 0);
	assert_int_equal(extras_put(&x, &b, NULL), 0);
	assert_int_equal(extras_put(&x, &c, NULL), 0);
	assert_int_equal(extras_put(&x, &nice[0], NULL), 0);
	assert_int_equal(extras_put(&x, &nice[1], NULL), 0);
	assert_int_equal(x.n, 3);
	assert_string_equal(x.list[0].text, "3");
	assert_int_equal(x.list[2].number, -6);
	int r = 0;
	char key[16];
	for (unsigned i = 0; i < EXTRAS_MAX && !r; i++) {
		(void)snprintf(key, sizeof key, "K%u", i);
		const struct extra more = env("x", key, "x");
		r = extras_put(&x, &more, NULL);
	}
	assert_int_equal(r, -E2BIG);
	extras_clear(&x);
	assert_int_equal(x.n, 0);
	extras_fini(&x);
}

/* Checks that equal values of two requesters are merged; different values are refused with both
 * names. */
static void test_two_askers(void **state)
{
	static const struct {
		struct extra first, same, other;
		const char *said;
	} cases[] = {
		{{.field = RP_F_ENV, .key = "IDS", .text = "0"},
		 {.field = RP_F_ENV, .key = "IDS", .text = "0"},
		 {.field = RP_F_ENV, .key = "IDS", .text = "1"},
		 "environment variable IDS: one sets it to \"0\" and two to \"1\"; change the "
		 "configuration of one of them"},
		{{.field = RP_F_NICE, .number = 1},
		 {.field = RP_F_NICE, .number = 1},
		 {.field = RP_F_NICE, .number = -1},
		 "nice value: one sets it to \"1\" and two to \"-1\"; change the configuration of "
		 "one of them"},
		{{.field = EXTRA_MOUNT, .key = "/mnt", .mount = &bind},
		 {.field = EXTRA_MOUNT, .key = "/mnt", .mount = &bind},
		 {.field = EXTRA_MOUNT, .key = "/mnt", .mount = &writable},
		 "mount /mnt: one sets it to \"/srv (bind, rbind, read only)\" and two to \"/srv "
		 "(bind, rbind, writable)\"; change the configuration of one of them"},
		{{.field = EXTRA_DEVICE, .key = "/dev/x", .device = &gpu},
		 {.field = EXTRA_DEVICE, .key = "/dev/x", .device = &gpu},
		 {.field = EXTRA_DEVICE, .key = "/dev/x", .device = &other_gpu},
		 "device /dev/x: one sets it to \"c 195:0 mode 0666 user 0 group 0\" and two to "
		 "\"c 195:1 mode 0666 user 0 group 0\"; change the configuration of one of them"},
	};
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct extras x = {0};
		struct err err = ERR_INIT;
		struct extra first = cases[i].first, same = cases[i].same, other = cases[i].other;
		first.by = "one";
		same.by = other.by = "two";
		assert_int_equal(extras_put(&x, &first, &err), 0);
		assert_int_equal(extras_put(&x, &same, &err), 0);
		assert_int_equal(extras_put(&x, &other, &err), -EBUSY);
		assert_string_equal(err.text, cases[i].said);
		assert_int_equal(x.n, 1);
		extras_fini(&x);
	}
}

static void test_two_askers_of_arguments(void **state)
{
	static const char *const args[] = {"/bin/db", "-q"};
	struct extras x = {0};
	struct err err = ERR_INIT;
	assert_int_equal(extras_put_args(&x, args, 2, "one", &err), 0);
	assert_int_equal(extras_put_args(&x, args, 2, "two", &err), 0);
	assert_int_equal(extras_put_args(&x, args, 1, "two", &err), -EBUSY);
	assert_non_null(strstr(err.text, "one and two set different ones"));
	assert_int_equal(extras_put_args(&x, args, 1, "one", &err), 0);
	assert_int_equal(x.n_args, 1);
	extras_fini(&x);
}

#define M(...)                                                                                     \
	{                                                                                          \
		.field = EXTRA_MOUNT, .mount = &(const struct rp_mount)                            \
		{                                                                                  \
			sizeof(struct rp_mount), __VA_ARGS__                                       \
		}                                                                                  \
	}
#define D(...)                                                                                     \
	{                                                                                          \
		.field = EXTRA_DEVICE, .device = &(const struct rp_device)                         \
		{                                                                                  \
			sizeof(struct rp_device), __VA_ARGS__                                      \
		}                                                                                  \
	}

static void test_malformed(void **state)
{
	const struct {
		struct extra e;
		const char *said; /* NULL: it is well-formed */
	} cases[] = {
		{M(0, "/a", "/b", "bind", "rbind,rslave"), NULL},
		{M(1, "tmpfs", "/b", "tmpfs", "size=1m"), NULL},
		{M(0, "/a", "b", "bind", "bind"), "absolute path"},
		{M(0, "/a", "/", "bind", "bind"), "absolute path"},
		{M(0, "/a", "/b\n", "bind", "bind"), "absolute path"},
		{M(0, "/a", "/b/../../c", "bind", "bind"), "without \"..\""},
		{M(0, "/a", "/b/..", "bind", "bind"), "without \"..\""},
		{M(0, "/a", "/b/", "bind", "bind"), "\"/\" at its end"},
		{M(0, "/a", "/b/.", "bind", "bind"), "without \"//\""},
		{M(0, "/a", "//b", "bind", "bind"), "without \"//\""},
		{M(0, "/a", "/" RP_DATA_DIR, "bind", "bind"), "without \"//\""},
		{M(0, "/a", "/." RP_DATA_DIR "/x", "bind", "bind"), "\"/./\""},
		{M(0, "/a", "/.b/..c", "bind", "bind"), NULL},
		{M(0, "/a", RP_DATA_DIR, "bind", "bind"), "reserved for the daemon"},
		{M(0, "/a", RP_DATA_DIR "/x", "bind", "bind"), "reserved for the daemon"},
		{M(0, "/a", RP_DATA_DIR "x", "bind", "bind"), NULL},
		{M(0, "a", "/b", "bind", "bind"), "absolute path"},
		{M(0, "", "/b", "tmpfs", ""), "expected a source"},
		{M(0, "/a", "/b", "", ""), "expected a type"},
		{M(0, "/a", "/b", "bind", "noexec"), "bind or rbind"},
		{M(0, "/a", "/b", "bind", "bind,ro"), "read_only"},
		{M(2, "/a", "/b", "bind", "bind"), "0 or 1"},
		{M(0, "/a", "/b", "bind", "bind,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"), "too many"},
		{D(0, "/dev/x", "c", 4095, 1048575, 0, 0), NULL},
		{D(0, "/dev/x", "c", 4096, 0, 0, 0), "invalid device numbers"},
		{D(0, "/dev/x", "c", 1, -1, 0, 0), "invalid device numbers"},
		{D(0, "/dev/x", "d", 1, 1, 0, 0), "c, b, u or p"},
		{D(0, "/dev/x", "", 1, 1, 0, 0), "c, b, u or p"},
		{D(01000, "/dev/x", "c", 1, 1, 0, 0), "permission bits"},
		{D(0, "dev/x", "c", 1, 1, 0, 0), "absolute path"},
		{D(0, "/dev//x", "c", 1, 1, 0, 0), "without \"//\""},
		{{.field = RP_F_HUGEPAGES, .key = "2MB", .text = "0"}, NULL},
		{{.field = RP_F_HUGEPAGES, .key = "64KB", .text = "9223372036854775807"}, NULL},
		{{.field = RP_F_HUGEPAGES, .key = "2M", .text = "0"}, "page size"},
		{{.field = RP_F_HUGEPAGES, .key = "3MB", .text = "0"}, "page size"},
		{{.field = RP_F_HUGEPAGES, .key = "0MB", .text = "0"}, "page size"},
		{{.field = RP_F_HUGEPAGES, .key = "MB", .text = "0"}, "page size"},
		{{.field = RP_F_HUGEPAGES, .key = "2MBx", .text = "0"}, "page size"},
		{{.field = RP_F_HUGEPAGES, .key = "1GB", .text = "9223372036854775808"}, "bytes"},
		{{.field = RP_F_HUGEPAGES, .key = "1GB", .text = "-1"}, "bytes"},
		{{.field = RP_F_HUGEPAGES, .key = "1GB", .text = ""}, "bytes"},
		{{.field = EXTRA_CDI, .key = "vendor.org/class=all"}, NULL},
		{{.field = EXTRA_CDI, .key = "v/c=0:1"}, NULL},
		{{.field = EXTRA_CDI, .key = "v/c="}, "VENDOR/CLASS=NAME"},
		{{.field = EXTRA_CDI, .key = "/c=0"}, "VENDOR/CLASS=NAME"},
		{{.field = EXTRA_CDI, .key = "v/c=0 "}, "VENDOR/CLASS=NAME"},
		{{.field = EXTRA_CDI, .key = "v-/c=0"}, "VENDOR/CLASS=NAME"},
		{{.field = EXTRA_CDI, .key = "-v/c=0"}, "VENDOR/CLASS=NAME"},
		{{.field = RP_F_ENV, .key = "", .text = "x"}, "empty"},
		{{.field = RP_F_ENV, .key = "A", .text = "\xff"}, "not text"},
		{{.field = RP_F_MEMPOLICY_NODES, .text = "\xff"}, "memory policy nodes: too long"},
	};
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct err err = ERR_INIT;
		struct extra e = cases[i].e;
		if (!e.key)
			e.key = e.mount ? e.mount->destination : e.device ? e.device->path : NULL;
		int r = extra_check(&e, &err);
		if (r != (cases[i].said ? -EINVAL : 0) || (r && !strstr(err.text, cases[i].said)))
			fail_msg("case %u: %d %s", i, r, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_asker_changes_its_mind),
		cmocka_unit_test(test_two_askers),
		cmocka_unit_test(test_two_askers_of_arguments),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
