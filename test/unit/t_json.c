/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/json.h"

#define _buf_ _cleanup_(buf_fini)

static void test_nesting(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	struct json j;
	json_init(&j, &b);
	json_obj(&j);
	json_kstr(&j, "name", "balloon");
	json_kint(&j, "low", INT64_MIN);
	json_kuint(&j, "high", UINT64_MAX);
	json_kbool(&j, "on", true);
	json_kbool(&j, "off", false);
	json_kstr(&j, "none", NULL);
	json_key(&j, "cpus");
	json_arr(&j);
	json_int(&j, 1);
	json_arr(&j);
	json_end_arr(&j);
	json_obj(&j);
	json_end_obj(&j);
	json_nil(&j);
	json_end_arr(&j);
	json_key(&j, "deep");
	json_obj(&j);
	json_key(&j, "a");
	json_arr(&j);
	json_str(&j, "x");
	json_str(&j, "y");
	json_end_arr(&j);
	json_kint(&j, "b", 2);
	json_end_obj(&j);
	json_end_obj(&j);
	assert_int_equal(b.failed, 0);
	assert_string_equal(
		buf_text(&b),
		"{\"name\":\"balloon\",\"low\":-9223372036854775808,\"high\":18446744073709551615,"
		"\"on\":true,\"off\":false,\"none\":null,\"cpus\":[1,[],{},null],"
		"\"deep\":{\"a\":[\"x\",\"y\"],\"b\":2}}");
}

static void check_string(const char *s, const char *text)
{
	_buf_ struct buf b = BUF_INIT;
	struct json j;
	json_init(&j, &b);
	json_str(&j, s);
	assert_string_equal(buf_text(&b), text);
}

static void test_strings(void **state)
{
	check_string("", "\"\"");
	check_string("plain / text", "\"plain / text\"");
	check_string("\"\\\b\f\n\r\t", "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
	check_string("\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"");
	check_string("\xc3\xa4 \xe2\x82\xac", "\"\xc3\xa4 \xe2\x82\xac\"");
	check_string("a\xff"
		     "b",
		     "\"a\xef\xbf\xbd"
		     "b\"");
	check_string("\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	check_string("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	check_string("\xc3\n", "\"\xef\xbf\xbd\\n\"");
}

static void test_keys_are_escaped(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	struct json j;
	json_init(&j, &b);
	json_obj(&j);
	json_kint(&j, "a\"b", 1);
	json_end_obj(&j);
	assert_string_equal(buf_text(&b), "{\"a\\\"b\":1}");
}

static void check_number(double v, const char *text)
{
	_buf_ struct buf b = BUF_INIT;
	struct json j;
	json_init(&j, &b);
	json_num(&j, v);
	assert_string_equal(buf_text(&b), text);
}

static void test_numbers(void **state)
{
	check_number(0, "0");
	check_number(1.5, "1.5");
	check_number(0.1, "0.1");
	check_number(-2, "-2");
	check_number(1.0 / 3, "0.3333333333333333");
	check_number(0.1 + 0.2, "0.30000000000000004");
	check_number(1e300, "1e+300");
	check_number((double)NAN, "null");
	check_number((double)INFINITY, "null");
	check_number(-(double)INFINITY, "null");
}

static void test_null_number_in_array(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	struct json j;
	json_init(&j, &b);
	json_arr(&j);
	json_num(&j, 1);
	json_num(&j, (double)NAN);
	json_bool(&j, true);
	json_uint(&j, 3);
	json_end_arr(&j);
	assert_string_equal(buf_text(&b), "[1,null,true,3]");
}

/* Values after each other: a line each. */
static void test_lines(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	struct json j;
	json_init(&j, &b);
	json_obj(&j);
	json_end_obj(&j);
	json_int(&j, 7);
	assert_string_equal(buf_text(&b), "{}\n7");
}

static void nest(struct json *j, unsigned depth)
{
	for (unsigned i = 0; i < depth; i++)
		i % 2 ? json_arr(j) : json_obj(j);
	json_int(j, 1);
	for (unsigned i = depth; i-- > 0;)
		i % 2 ? json_end_arr(j) : json_end_obj(j);
}

static void test_too_deep(void **state)
{
	_buf_ struct buf b = BUF_INIT;
	struct json j;
	json_init(&j, &b);
	nest(&j, JSON_DEPTH_MAX - 1);
	assert_int_equal(b.failed, 0);
	assert_int_equal(buf_len(&b), 2 * (JSON_DEPTH_MAX - 1) + 1);
	buf_reset(&b);
	json_init(&j, &b);
	nest(&j, JSON_DEPTH_MAX + 10);
	assert_int_equal(b.failed, -E2BIG);
	assert_int_equal(j.depth, 0);
	assert_int_equal(j.n_too_deep, 0);
	/* A surplus close does not change the depth below the start. */
	json_end_arr(&j);
	assert_int_equal(j.depth, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_keys_are_escaped),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_null_number_in_array),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_too_deep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
