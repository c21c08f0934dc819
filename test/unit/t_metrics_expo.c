/* SPDX-License-Identifier: Apache-2.0 */
/* The text format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/nri-rpd/metrics/expo.h"

static struct expo e;
static struct buf out;

static int setup(void **state)
{
	expo_init(&e);
	out = (struct buf)BUF_INIT;
	return 0;
}

static int teardown(void **state)
{
	expo_fini(&e);
	buf_fini(&out);
	return 0;
}

static const char *written(void)
{
	buf_reset(&out);
	assert_int_equal(expo_write(&e, &out), 0);
	return buf_text(&out);
}

static void test_together(void **state)
{
	struct family *a = expo_family(&e, "a_total", EXPO_COUNTER, "How many.");
	struct family *b = expo_family(&e, "b", EXPO_GAUGE, "");
	expo_add(&e, a, "", "x=\"1\"", 1);
	expo_add(&e, b, "", "", 2.5);
	expo_add(&e, a, "", "x=\"2\"", 3);
	assert_string_equal(written(), "# HELP a_total How many.\n# TYPE a_total counter\n"
				       "a_total{x=\"1\"} 1\na_total{x=\"2\"} 3\n"
				       "# TYPE b gauge\nb 2.5\n");
}

static void test_empty_families(void **state)
{
	(void)expo_family(&e, "a", EXPO_GAUGE, "Nothing.");
	expo_add(&e, NULL, "", "", 1);
	assert_string_equal(written(), "");
}

static void test_single(void **state)
{
	expo_single(&e, "g", "G.", 7);
	expo_single(&e, "c_total", "C.", 8);
	assert_string_equal(written(), "# HELP g G.\n# TYPE g gauge\ng 7\n"
				       "# HELP c_total C.\n# TYPE c_total counter\nc_total 8\n");
}

static void test_histogram(void **state)
{
	struct family *f = expo_family(&e, "h", EXPO_HISTOGRAM, "");
	expo_add(&e, f, "_bucket", "le=\"+Inf\"", 3);
	expo_add(&e, f, "_sum", "", 0.1);
	expo_add(&e, f, "_count", "", 3);
	assert_string_equal(written(),
			    "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 3\nh_sum 0.1\nh_count 3\n");
}

static void test_types(void **state)
{
	struct family *f = expo_family(&e, "a", EXPO_GAUGE, "One.");
	assert_ptr_equal(expo_family(&e, "a", EXPO_GAUGE, "Another."), f);
	assert_null(expo_family(&e, "a", EXPO_COUNTER, "One."));
	assert_int_equal(e.failed, 0);
}

static void test_names(void **state)
{
	char longest[EXPO_NAME_MAX + 1];
	memset(longest, 'a', EXPO_NAME_MAX);
	longest[EXPO_NAME_MAX] = '\0';
	assert_false(expo_name_valid(longest));
	longest[EXPO_NAME_MAX - 1] = '\0';
	assert_true(expo_name_valid(longest));
	assert_true(expo_name_valid("a"));
	assert_true(expo_name_valid("_a:B9"));
	assert_false(expo_name_valid(""));
	assert_false(expo_name_valid("9a"));
	assert_false(expo_name_valid("a-b"));
	assert_false(expo_name_valid("a b"));
	assert_false(expo_name_valid("a\n"));
	assert_null(expo_family(&e, "a-b", EXPO_GAUGE, ""));
}

static void test_labels_valid(void **state)
{
	static const char *const good[] = {
		"", "a=\"\"", "a=\"b\"", "a=\"b\",c=\"d\"", "_a=\"\\\\\\\"\\n\"", "a=\"ü,{}\""};
	static const char *const bad[] = {
		"a",	    "a=",	 "a=b",	       "a=\"b",		"=\"b\"",   "a=\"b\",",
		",a=\"b\"", "a=\"b\"c",	 "a=\"b\" ",   "a=\"\\x\"",	"a=\"\n\"", "a=\"\\",
		"1a=\"b\"", "a:b=\"c\"", "a=\"\xff\"", "a=\"b\"}\nx 1", "a==\"\"",
	};
	static char large[EXPO_LABELS_MAX + 8];
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		if (!expo_labels_valid(good[i]))
			fail_msg("%s is refused", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (expo_labels_valid(bad[i]))
			fail_msg("%s is accepted", bad[i]);
	memset(large, 'x', sizeof large - 1);
	memcpy(large, "a=\"", 3);
	large[EXPO_LABELS_MAX - 1] = '"';
	large[EXPO_LABELS_MAX] = '\0';
	assert_true(expo_labels_valid(large));
	large[EXPO_LABELS_MAX - 1] = 'x';
	large[EXPO_LABELS_MAX] = '"';
	assert_false(expo_labels_valid(large));
}

static void test_escapes(void **state)
{
	struct buf labels = BUF_INIT;
	expo_label(&labels, "a", "x\"y\\z\nü\xff");
	expo_label(&labels, "b", NULL);
	assert_string_equal(buf_text(&labels), "a=\"x\\\"y\\\\z\\nü\xef\xbf\xbd\",b=\"\"");
	assert_true(expo_labels_valid(buf_text(&labels)));
	buf_fini(&labels);
	expo_single(&e, "g", "a\\b\n\"c\"", 1);
	assert_string_equal(written(), "# HELP g a\\\\b\\n\"c\"\n# TYPE g gauge\ng 1\n");
}

static void test_help_is_cut(void **state)
{
	static char help[EXPO_HELP_MAX + 100];
	memset(help, 'h', sizeof help - 1);
	expo_single(&e, "g", help, 1);
	const char *text = written();
	assert_int_equal(strcspn(text, "\n"), strlen("# HELP g ") + EXPO_HELP_MAX);
}

static void test_numbers(void **state)
{
	static const struct {
		double v;
		const char *text;
	} cases[] = {{0, "0"},
		     {-1.5, "-1.5"},
		     {0.1, "0.1"},
		     {1e21, "1e+21"},
		     {123456789012.0, "123456789012"},
		     {1.0 / 3, "0.3333333333333333"},
		     {NAN, "NaN"},
		     {INFINITY, "+Inf"},
		     {-INFINITY, "-Inf"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct expo one;
		char wanted[64];
		expo_init(&one);
		expo_add(&one, expo_family(&one, "n", EXPO_GAUGE, ""), "", "", cases[i].v);
		buf_reset(&out);
		assert_int_equal(expo_write(&one, &out), 0);
		(void)snprintf(wanted, sizeof wanted, "# TYPE n gauge\nn %s\n", cases[i].text);
		assert_string_equal(buf_text(&out), wanted);
		expo_fini(&one);
	}
}

static void test_checked(void **state)
{
	struct family *f = expo_family(&e, "a", EXPO_GAUGE, "");
	assert_true(expo_add_checked(&e, f, "x=\"1\"", 1));
	assert_true(expo_add_checked(&e, f, "x=\"2\"", 1));
	assert_false(expo_add_checked(&e, f, "x=\"1\"", 2));
	assert_false(expo_add_checked(&e, f, "x=1", 2));
	assert_false(expo_add_checked(&e, NULL, "", 2));
	assert_true(expo_add_checked(&e, f, "", 3));
	assert_false(expo_add_checked(&e, f, "", 4));
	assert_string_equal(written(), "# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 1\na 3\n");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_together),	 TEST(test_empty_families), TEST(test_single),
		TEST(test_histogram),	 TEST(test_types),	    TEST(test_names),
		TEST(test_labels_valid), TEST(test_escapes),	    TEST(test_help_is_cut),
		TEST(test_numbers),	 TEST(test_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
