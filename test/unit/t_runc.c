/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "core/nri-rpctl/local_doctor.c"
#include "core/lib/util/runc.h"
#include "test/unit/coverage_exit.h"

/* Reads the version from a buffer of the exact size, so that the sanitizer detects a read past
 * the end. */
static const char *version(const char *data, size_t len)
{
	static char text[64];
	struct runc_version v;
	char *copy = malloc(len ? len : 1);
	assert_non_null(copy);
	memcpy(copy, data, len);
	bool found = runc_version_in(copy, len, &v);
	free(copy);
	if (!found)
		return "-";
	(void)snprintf(text, sizeof text, "%u.%u.%u", v.major, v.minor, v.patch);
	return text;
}
#define VERSION(literal) version(literal, sizeof literal - 1)

static void test_found(void **state)
{
	assert_string_equal(VERSION("v1.1.5-0-gf19387a6"), "1.1.5");
	assert_string_equal(VERSION("junk\0x86.64 9.9.9 v1.2.0-rc.3-12-gabc\0more"), "1.2.0");
	assert_string_equal(VERSION("go1.19.8\0001.1.5+ds1"), "1.1.5");
	assert_string_equal(VERSION("spec 1.0.2-dev, 10.20.30+ds11-1+deb12u1"), "10.20.30");
}

static void test_not_found(void **state)
{
	static const char *const none[] = {
		"",
		".",
		"...",
		"1.1.5",
		"1.1.5+",
		"1.1.5+ds",
		"1.1.5+dsx",
		"v1.1.5",
		"v1.1.5-",
		"v1.1.5-0",
		"v1.1.5-0-",
		"v1.1.5-0-g",
		"v1.1.5-0-h1",
		"v1.1.5-rc.",
		"v1.1.5-rc.-0-gf",
		"1.1.5-0-gf19387a6",
		"v1.1.5+ds1",
		"0.1.1.5+ds1",
		"v1.1",
		"v1..5-0-gf",
		"v1.1.-0-gf",
		"v999999999999.1.1-0-gf",
		"v1.99999999.1-0-gf",
	};
	for (unsigned i = 0; i < sizeof none / sizeof *none; i++)
		assert_string_equal(version(none[i], strlen(none[i])), "-");
}

static void test_file(void **state)
{
	char path[] = "/tmp/t_runc-XXXXXX";
	struct runc_version v;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(runc_version_of(path, &v), -ENODATA);
	assert_int_equal(write(fd, "xx 1.1.4+ds1 yy", 15), 15);
	assert_int_equal(runc_version_of(path, &v), 0);
	assert_int_equal(v.patch, 4);
	assert_int_equal(ftruncate(fd, 5), 0);
	assert_int_equal(runc_version_of(path, &v), -ENODATA);
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(runc_version_of(path, &v), -ENOENT);
	assert_int_equal(runc_version_of("/", &v), -ENODATA);
}

static void test_bytes(void **state)
{
	static const struct {
		struct runc_version v;
		bool swaps;
	} rows[] = {{{0, 9, 9}, true},	{{1, 0, 3}, true},  {{1, 1, 5}, true},
		    {{1, 1, 6}, false}, {{1, 2, 0}, false}, {{2, 0, 0}, false}};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(runc_swaps_bytes(&rows[i].v), rows[i].swaps);
}

/* ---- findings of the doctor --------- */

static void test_findings(void **state)
{
	char path[] = "/tmp/t_runc-XXXXXX";
	json_t *list = json_array();
	json_t *others =
		json_pack("[{s:s, s:s}, {s:s, s:s}]", "check", "kubelet", "text", "driver systemd",
			  "check", "cgroup", "text", "cgroup v2, driver cgroupfs");
	assert_false(is_systemd(others));
	assert_int_equal(json_object_set_new(json_array_get(others, 1), "text",
					     json_string("cgroup v2, driver systemd")),
			 0);
	assert_true(is_systemd(others));
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	look_at_runc(list, path, true);
	assert_int_equal(write(fd, "1.1.6+ds1", 9), 9);
	look_at_runc(list, path, true);
	assert_int_equal(json_array_size(list), 0);
	assert_int_equal(pwrite(fd, "1.1.5+ds1", 9, 0), 9);
	look_at_runc(list, path, true);
	look_at_runc(list, path, false);
	assert_int_equal(json_array_size(list), 2);
	const json_t *warning = json_array_get(list, 0), *note = json_array_get(list, 1);
	assert_string_equal(js(warning, "verdict"), "warning");
	assert_non_null(strstr(js(warning, "text"), "is version 1.1.5: with the systemd driver"));
	assert_non_null(strstr(js(warning, "hint"), "1.1.6 or later"));
	assert_string_equal(js(note, "verdict"), "note");
	assert_non_null(strstr(js(note, "text"), "harmless on up to 8 CPUs"));
	local_runc_findings(list, others); /* checks the runc of this machine, with any result */
	json_decref(list);
	json_decref(others);
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),	 cmocka_unit_test(test_not_found),
		cmocka_unit_test(test_file),	 cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_findings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
