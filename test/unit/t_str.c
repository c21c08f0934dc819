/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define UNTOUCHED INT64_C(-4711)

/* A table row of a parser: its text, its result and its value. */
struct row {
	const char *text;
	int r;
	int64_t value;
};

static void check_rows(int (*parse)(const char *, int64_t *), const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t v = UNTOUCHED;
		int r = parse(rows[i].text, &v);
		int64_t want = rows[i].r ? UNTOUCHED : rows[i].value;
		if (r != rows[i].r || v != want)
			fail_msg("\"%s\": %d, %lld; expected %d, %lld", rows[i].text, r,
				 (long long)v, rows[i].r, (long long)want);
	}
}

static void test_prefix_suffix(void **state)
{
	assert_true(str_has_prefix("cpu12", "cpu"));
	assert_true(str_has_prefix("cpu", ""));
	assert_false(str_has_prefix("cp", "cpu"));
	assert_true(str_has_suffix("rp.conf", ".conf"));
	assert_true(str_has_suffix("x", ""));
	assert_false(str_has_suffix("conf", ".conf"));
	assert_false(str_has_suffix("rp.conf~", ".conf"));
	assert_true(str_eq("a", "a"));
	assert_false(str_eq("a", "A"));
}

static void test_printf(void **state)
{
	_free_ char *s = str_printf("%s-%d", "node", 7);
	assert_string_equal(s, "node-7");
}

static void test_natural_order(void **state)
{
	static const char *const sorted[] = {"",
					     "0",
					     "00",
					     "01",
					     "1",
					     "2",
					     "9",
					     "09a",
					     "10",
					     "a",
					     "a0",
					     "a1b",
					     "a1c",
					     "a2",
					     "a10",
					     "a010b",
					     "b",
					     "cpu",
					     "cpu1",
					     "cpu02",
					     "cpu3",
					     "cpu99999999999999999999",
					     "cpu100000000000000000000",
					     "cpux"};
	for (size_t i = 0; i < N(sorted); i++)
		for (size_t k = 0; k < N(sorted); k++) {
			int r = str_cmp_natural(sorted[i], sorted[k]);
			int want = i < k ? -1 : i > k;
			if ((r > 0) - (r < 0) != want)
				fail_msg("\"%s\" and \"%s\": %d", sorted[i], sorted[k], r);
		}
}

static void test_closest(void **state)
{
	static const char *const keys[] = {"pinCPU",
					   "pinMemory",
					   "reservedResources",
					   "allocatorPriority",
					   "preferCloseToDevices",
					   "on"};
	static const struct {
		const char *word, *want;
	} rows[] = {
		{"pincpu", "pinCPU"},
		{"pniCPU", "pinCPU"},
		{"pinCPUs", "pinCPU"},
		{"pinMem", NULL},
		{"pinMemroy", "pinMemory"},
		{"reservedResource", "reservedResources"},
		{"reservdeResuorces", "reservedResources"},
		{"allocPriority", "allocatorPriority"},
		{"zzz", NULL},
		{"x", NULL},
		{"xy", NULL},
		{"no", "on"},
		{"", NULL},
		{"foo", NULL}, /* not "on" */
	};
	for (size_t i = 0; i < N(rows); i++) {
		const char *got = str_closest(rows[i].word, keys, N(keys));
		if (got != rows[i].want && (!got || !rows[i].want || !str_eq(got, rows[i].want)))
			fail_msg("\"%s\": %s", rows[i].word, got ? got : "nothing");
	}
	assert_null(str_closest("pinCPU", keys, 0));
	char lengthy[80];
	memset(lengthy, 'a', sizeof lengthy);
	lengthy[79] = '\0';
	const char *const one[] = {lengthy}, *const tie[] = {"cat", "car"};
	assert_null(str_closest(lengthy, one, 1));
	assert_null(str_closest("aaaa", one, 1));
	assert_string_equal(str_closest("caz", tie, 2), "cat"); /* the first of equals */
}

static void test_glob(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool match;
	} rows[] = {
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "anything", true},
		{"a*", "abc", true},
		{"a*", "ba", false},
		{"*c", "abc", true},
		{"*c", "abcd", false},
		{"a*c", "ac", true},
		{"a**c", "abbc", true},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "axxcyyb", false},
		{"?", "a", true},
		{"?", "", false},
		{"a?c", "abc", true},
		{"a?", "abc", false},
		{"[abc]x", "bx", true},
		{"[abc]x", "dx", false},
		{"[a-c]", "b", true},
		{"[a-c]", "d", false},
		{"[!a-c]", "d", true},
		{"[^a-c]", "b", false},
		{"[]]", "]", true},
		{"[!]]", "]", false},
		{"[a-]", "-", true},
		{"[-a]", "-", true},
		{"[", "[", true},
		{"[a", "[a", true},
		{"[a", "a", false},
		{"\\*", "*", true},
		{"\\*", "x", false},
		{"\\", "\\", true},
		{"[\\]]", "]", true},
		{"[a-\\c]", "b", true},
		{"*.conf", "rp.conf", true},
		{"kube-*", "kube-system", true},
		{"a/*", "a/b/c", true},
		{"*[0-9]", "node12", true},
		{"*ab", "aab", true},
	};
	for (size_t i = 0; i < N(rows); i++)
		if (str_glob(rows[i].pattern, rows[i].text) != rows[i].match)
			fail_msg("\"%s\" on \"%s\"", rows[i].pattern, rows[i].text);
	/* Exponential matchers would take years. */
	char text[2001];
	memset(text, 'a', 2000);
	text[2000] = '\0';
	assert_false(str_glob("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static void test_integers(void **state)
{
	static const struct row rows[] = {
		{"0", 0, 0},
		{"-0", 0, 0},
		{"+7", 0, 7},
		{"007", 0, 7},
		{"-12", 0, -12},
		{"9223372036854775807", 0, INT64_MAX},
		{"-9223372036854775808", 0, INT64_MIN},
		{"9223372036854775808", -ERANGE, 0},
		{"-9223372036854775809", -ERANGE, 0},
		{"18446744073709551616", -ERANGE, 0},
		{"99999999999999999999999", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"-", -EINVAL, 0},
		{"+", -EINVAL, 0},
		{"--1", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"1 ", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"1.0", -EINVAL, 0},
		{"99999999999999999999x", -EINVAL, 0},
	};
	uint64_t u = 5;
	check_rows(str_to_i64, rows, N(rows));
	assert_int_equal(str_to_u64("18446744073709551615", &u), 0);
	assert_true(u == UINT64_MAX);
	assert_int_equal(str_to_u64("18446744073709551616", &u), -ERANGE);
	assert_int_equal(str_to_u64("18446744073709551620", &u), -ERANGE);
	assert_int_equal(str_to_u64("-1", &u), -EINVAL);
	assert_int_equal(str_to_u64("+1", &u), -EINVAL);
	assert_int_equal(str_to_u64("", &u), -EINVAL);
	assert_true(u == UINT64_MAX);
}

static void test_double(void **state)
{
	static const struct {
		const char *text;
		double value;
	} good[] = {{"0", 0},	   {"1.5", 1.5},     {"-2", -2}, {"+.5", 0.5},
		    {"1e3", 1000}, {"2.5E-1", 0.25}, {"1.", 1}};
	static const char *const bad[] = {"",	".",  "-",     "inf",  "nan", "0x1p3", " 1",
					  "1 ", "1e", "1.5.2", "1e3e", "e3",  "1-2",   "--1"};
	double v;
	for (size_t i = 0; i < N(good); i++) {
		assert_int_equal(str_to_double(good[i].text, &v), 0);
		assert_true(v >= good[i].value && v <= good[i].value);
	}
	for (size_t i = 0; i < N(bad); i++)
		if (str_to_double(bad[i], &v) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
	assert_int_equal(str_to_double("1e999", &v), -ERANGE);
}

static void test_bool(void **state)
{
	static const char *const yes[] = {"1", "t",   "T",   "true", "True", "TRUE", "y",
					  "Y", "yes", "Yes", "YES",  "on",   "On",   "ON"};
	static const char *const no[] = {"0", "f",  "F",  "false", "False", "FALSE", "n",
					 "N", "no", "No", "NO",	   "off",   "Off",   "OFF"};
	static const char *const bad[] = {"", "2", "tRue", "enabled", "yess", " on"};
	for (size_t i = 0; i < N(yes); i++) {
		bool v = false, w = true;
		assert_int_equal(str_to_bool(yes[i], &v), 0);
		assert_int_equal(str_to_bool(no[i], &w), 0);
		assert_true(v);
		assert_false(w);
	}
	for (size_t i = 0; i < N(bad); i++) {
		bool v = true;
		assert_int_equal(str_to_bool(bad[i], &v), -EINVAL);
		assert_true(v);
	}
}

static const struct row bad_quantities[] = {
	{"", -EINVAL, 0},
	{".", -EINVAL, 0},
	{"-", -EINVAL, 0},
	{"m", -EINVAL, 0},
	{"1K", -EINVAL, 0},
	{"1ki", -EINVAL, 0},
	{"1 M", -EINVAL, 0},
	{" 1", -EINVAL, 0},
	{"1Mi ", -EINVAL, 0},
	{"1mi", -EINVAL, 0},
	{"1e", -EINVAL, 0},
	{"1e+", -EINVAL, 0},
	{"1e3m", -EINVAL, 0},
	{"1e1.5", -EINVAL, 0},
	{"0x10", -EINVAL, 0},
	{"1..5", -EINVAL, 0},
	{"1.5.1", -EINVAL, 0},
	{"--1", -EINVAL, 0},
	{"1,5", -EINVAL, 0},
	{"1MiB", -EINVAL, 0},
	{"Mi", -EINVAL, 0},
	{"e3", -EINVAL, 0},
	{"1e 3", -EINVAL, 0},
	{"inf", -EINVAL, 0},
	{"1e9999999", -ERANGE, 0},
	{"1e1000000", -ERANGE, 0},
	{"1e-9999999", -ERANGE, 0},
	{"1e99999999999999999999", -ERANGE, 0},
	{"16Ei", -ERANGE, 0},
	{"1e30", -ERANGE, 0},
	{"99999999999999999999Ei", -ERANGE, 0},
	{"999999999999999999999999999999Ei", -ERANGE, 0},
};

static void test_milli(void **state)
{
	static const struct row rows[] = {
		{"2", 0, 2000},
		{"750m", 0, 750},
		{"1.5", 0, 1500},
		{"0", 0, 0},
		{"0.0", 0, 0},
		{"+1", 0, 1000},
		{".5", 0, 500},
		{"5.", 0, 5000},
		{"0.1", 0, 100},
		{"0.0001", 0, 1},
		{"0.0011", 0, 2},
		{"1500u", 0, 2},
		{"1n", 0, 1},
		{"1000000n", 0, 1},
		{"1000001n", 0, 2},
		{"0.5m", 0, 1},
		{"1k", 0, 1000000},
		{"2M", 0, 2000000000},
		{"1Ki", 0, 1024000},
		{"1e3", 0, 1000000},
		{"1E3", 0, 1000000},
		{"15e-1", 0, 1500},
		{"1e-3", 0, 1},
		{"1e-9", 0, 1},
		{"1e+2", 0, 100000},
		{"-1", 0, -1000},
		{"-0.0001", 0, -1},
		{"-1.5", 0, -1500},
		{"1P", 0, 1000000000000000000},
		{"9223372036854775.807", 0, INT64_MAX},
		{"9223372036854775.8071", -ERANGE, 0},
		{"9223372036854776", -ERANGE, 0},
		{"1E", -ERANGE, 0},
		{"10P", -ERANGE, 0},
		{"0.00000000000000000000000000000000000001", 0, 1},
		{"1e-1000", 0, 1},
		{"0e1000", 0, 0},
		{"00000000000000000000000000000002", 0, 2000},
		{"1.00000000000000000000000000000000", 0, 1000},
		{"1.00000000000000000000000000000001", 0, 1001},
	};
	check_rows(str_to_milli, rows, N(rows));
	check_rows(str_to_milli, bad_quantities, N(bad_quantities));
}

static void test_bytes(void **state)
{
	static const struct row rows[] = {
		{"0", 0, 0},
		{"123", 0, 123},
		{"512Mi", 0, 536870912},
		{"1G", 0, 1000000000},
		{"1e3", 0, 1000},
		{"1.5Gi", 0, 1610612736},
		{"0.5", 0, 1},
		{"128974848000m", 0, 128974848},
		{"1m", 0, 1},
		{"1001m", 0, 2},
		{"1T", 0, 1000000000000},
		{"1Ti", 0, 1099511627776},
		{"1Pi", 0, 1125899906842624},
		{"1E", 0, 1000000000000000000},
		{"1Ei", 0, 1152921504606846976},
		{"0.1Ki", 0, 103},
		{"7Ei", 0, 8070450532247928832},
		{"8Ei", -ERANGE, 0},
		{"-1Ki", 0, -1024},
		{"9223372036854775807", 0, INT64_MAX},
		{"9223372036854775808", -ERANGE, 0},
		/* 2^63 - 0.11…: up is 2^63, which does not fit */
		{"7.9999999999999999999Ei", -ERANGE, 0},
		{"100k", 0, 100000},
		{"3n", 0, 1},
		{"3u", 0, 1},
		{"1e18", 0, 1000000000000000000},
		{"1e19", -ERANGE, 0},
	};
	check_rows(str_to_bytes, rows, N(rows));
	check_rows(str_to_bytes, bad_quantities, N(bad_quantities));
}

static void test_durations(void **state)
{
	static const struct row rows[] = {
		{"0", 0, 0},
		{"+0", 0, 0},
		{"-0", 0, 0},
		{"0s", 0, 0},
		{"300ms", 0, 300},
		{"30s", 0, 30000},
		{"1m30s", 0, 90000},
		{"2h", 0, 7200000},
		{"1.5h", 0, 5400000},
		{".5s", 0, 500},
		{"1.s", 0, 1000},
		{"1h15m30.918s", 0, 4530918},
		{"-1.5s", 0, -1500},
		{"+5s", 0, 5000},
		{"1us", 0, 1},
		{"1ns", 0, 1},
		{"1000us", 0, 1},
		{"1001us", 0, 2},
		{"1\xc2\xb5s", 0, 1},
		{"2000\xce\xbcs", 0, 2},
		{"1s1s", 0, 2000},
		{"1ms1h", 0, 3600001},
		{"2562047h", 0, INT64_C(9223369200000)},
		{"2562048h", -ERANGE, 0},
		{"1562047h1562047h", -ERANGE, 0},
		{"9999999999999999999999h", -ERANGE, 0},
		{"99999999999999999999999999999999ns", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"5", -EINVAL, 0},
		{"1.5", -EINVAL, 0},
		{"s", -EINVAL, 0},
		{"1d", -EINVAL, 0},
		{"1 s", -EINVAL, 0},
		{"1s ", -EINVAL, 0},
		{"1S", -EINVAL, 0},
		{"1m-1s", -EINVAL, 0},
		{"--1s", -EINVAL, 0},
		{".s", -EINVAL, 0},
		{"1h30", -EINVAL, 0},
		{"1e3s", -EINVAL, 0},
		{"00", -EINVAL, 0},
		{"1sec", -EINVAL, 0},
	};
	check_rows(str_to_ms, rows, N(rows));
}

static void test_frequencies(void **state)
{
	static const struct row rows[] = {
		{"1200000", 0, 1200000},
		{"2.4GHz", 0, 2400000},
		{"800M", 0, 800000},
		{"800MHz", 0, 800000},
		{"1.2g", 0, 1200000},
		{"3ghz", 0, 3000000},
		{"100kHz", 0, 100},
		{"100k", 0, 100},
		{"1000Hz", 0, 1},
		{"1499Hz", 0, 1},
		{"1500Hz", 0, 2},
		{"1.2345674GHz", 0, 1234567},
		{"999Hz", -EINVAL, 0},
		{"0.0001", -EINVAL, 0},
		{"0.0000001GHz", -EINVAL, 0},
		{"0.000001GHz", 0, 1},
		{".5GHz", 0, 500000},
		{"0.0", 0, 0},
		{"0", 0, 0},
		{"", -EINVAL, 0},
		{"GHz", -EINVAL, 0},
		{"-1GHz", -EINVAL, 0},
		{"1THz", -EINVAL, 0},
		{"1 GHz", 0, 1000000},
		{" 2600\tMHz ", 0, 2600000},
		{"5 ", 0, 5},
		{"1 G Hz", -EINVAL, 0},
		{"1 GHz 2", -EINVAL, 0},
		{"1 2", -EINVAL, 0},
		{" ", -EINVAL, 0},
		{"1 furlongs", -EINVAL, 0},
		{"turbo", -EINVAL, 0},
		{"99999999999999GHz", -ERANGE, 0},
	};
	check_rows(str_to_khz, rows, N(rows));
}

static void test_utf8_valid(void **state)
{
	static const struct {
		const char *s;
		bool valid;
	} rows[] = {
		{"", true},
		{"plain", true},
		{"\xc3\xa4", true},
		{"\xe2\x82\xac", true},
		{"\xf0\x9f\x98\x80", true},
		{"\xf4\x8f\xbf\xbf", true},
		{"\xed\x9f\xbf", true},
		{"\xee\x80\x80", true},
		{"\xc2\x80", true},
		{"\x80", false},
		{"\xc0\xaf", false},
		{"\xc1\xbf", false},
		{"\xe0\x9f\xbf", false},
		{"\xf0\x8f\xbf\xbf", false},
		{"\xed\xa0\x80", false},
		{"\xf4\x90\x80\x80", false},
		{"\xf5\x80\x80\x80", false},
		{"\xff", false},
		{"\xc3", false},
		{"\xe2\x82", false},
		{"a\xf0\x9f\x98", false},
		{"\xc3(", false},
		{"ok\xe2(\xac", false},
	};
	for (size_t i = 0; i < N(rows); i++) {
		if (utf8_valid(rows[i].s, strlen(rows[i].s)) != rows[i].valid)
			fail_msg("row %zu", i);
		/* anywhere in a longer text */
		for (size_t at = 0; at < 20; at++) {
			char text[32] = "";
			memset(text, 'a', sizeof text - 1);
			memcpy(text + at, rows[i].s, strlen(rows[i].s));
			if (utf8_valid(text, sizeof text - 1) != rows[i].valid)
				fail_msg("row %zu at %zu", i, at);
		}
	}
	assert_true(utf8_valid("a\0b", 3));
	assert_int_equal(utf8_char("\xe2\x82\xac", 3), 3);
	assert_int_equal(utf8_char("\xe2\x82\xac", 2), 0);
	assert_int_equal(utf8_char("", 0), 0);
}

static void test_utf8_cut(void **state)
{
	const char *s = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"; /* 1, 2, 3, 4 and 1 bytes */
	static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11, 11};
	for (size_t max = 0; max < N(want); max++)
		assert_int_equal(utf8_cut(s, max), want[max]);
	assert_int_equal(utf8_cut("\x80\x80\x80\x80\x80\x80", 5), 5);
	assert_int_equal(utf8_cut("", 0), 0);
	assert_int_equal(utf8_cut("", 5), 0);
}

static void test_one_line(void **state)
{
	char text[] = "a\tb\nc\x1b[0m\x7f\xc3\xa4 ", empty[] = "";
	str_one_line(text);
	assert_string_equal(text, "a b c [0m \xc3\xa4 ");
	str_one_line(empty);
	assert_string_equal(empty, "");
}

/* Checks the character at every position of a long line, and beside every kind of character. */
static void test_one_line_everywhere(void **state)
{
	static const char beside[] = {'a', ' ', 0x1f, 0x7e, (char)0x80, (char)0xff};
	for (unsigned c = 1; c < 256; c++)
		for (unsigned at = 0; at < 24; at++) {
			char text[25], was = (char)c;
			bool control = c < ' ' || c == 0x7f;
			memset(text, beside[(c + at) % sizeof beside], 24);
			char other = text[0];
			bool control_other = (unsigned char)other < ' ';
			text[at] = was;
			text[24] = '\0';
			str_one_line(text);
			for (unsigned k = 0; k < 24; k++) {
				char wanted = k == at ? (control ? ' ' : was)
						      : (control_other ? ' ' : other);
				assert_int_equal(text[k], wanted);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prefix_suffix), cmocka_unit_test(test_printf),
		cmocka_unit_test(test_natural_order), cmocka_unit_test(test_closest),
		cmocka_unit_test(test_glob),	      cmocka_unit_test(test_integers),
		cmocka_unit_test(test_double),	      cmocka_unit_test(test_bool),
		cmocka_unit_test(test_milli),	      cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_durations),     cmocka_unit_test(test_frequencies),
		cmocka_unit_test(test_utf8_valid),    cmocka_unit_test(test_utf8_cut),
		cmocka_unit_test(test_one_line),      cmocka_unit_test(test_one_line_everywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
