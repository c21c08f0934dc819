/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns, expressions over containers, and texts with keys in them: what all policies read in
 * the same way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <nri-rp/lib/ctr.h>
#include <nri-rp/lib/glob.h>
#include "modules/lib/private/match.h"
#include "test/unit/fake_host.h"

static void test_globs(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "abc", true},
		{"*", "a/b", false},
		{"*/*", "a/b", true},
		{"*/*", "a/b/c", false},
		{"a*c", "abbc", true},
		{"a*c", "abcb", false},
		{"a*b*c", "axbxbxc", true},
		{"*ab", "aab", true},
		{"abc", "ab", false},
		{"ab", "abc", false},
		{"?", "a", true},
		{"?", "/", false},
		{"?", "", false},
		{"[abc]", "b", true},
		{"[a-c]x", "bx", true},
		{"[a-c]x", "dx", false},
		{"[^a-c]", "d", true},
		{"[^a]", "/", false},
		{"[!a]", "a", false},
		{"[!a]", "b", true},
		{"[!a]", "!", true},
		{"[a-]", "-", true},
		{"[a-]", "a", true},
		{"[a-]", "b", false},
		{"[]a]", "]", true},
		{"[]", "]", false},
		{"\\*", "*", true},
		{"\\*", "a", false},
		{"[\\]]", "]", true},
		{"*.so*", "x.so.1", true},
		{"[a-", "a", false},
		{"[\\", "a", false},
		{"x[", "x", false},
		{"a[", "a[", false},
		{"a\\", "a\\", false},
		{"\\[x", "[x", true},
		{"**a", "a", true},
		{"*a*a*a*b", "aaaaaaaaaaaa", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (glob_match(cases[i].pattern, cases[i].text) != cases[i].matches)
			fail_msg("\"%s\" and \"%s\"", cases[i].pattern, cases[i].text);
	assert_false(glob_valid("["));
	assert_false(glob_valid("[a"));
	assert_false(glob_valid("x\\"));
	assert_true(glob_valid("[a-z]*?\\["));
	assert_true(glob_valid("[a-]"));
}

static void test_expressions(void **state)
{
	static const struct {
		const char *text;
		int holds; /* -1: refused */
	} cases[] = {
		{"{key: name, operator: Equals, values: [c0]}", 1},
		{"{key: name, operator: Equals, values: [\"*\"]}", 1},
		{"{key: name, operator: Equals, values: [d]}", 0},
		{"{key: name, operator: NotEqual, values: [c0]}", 0},
		{"{key: name, operator: NotEqual, values: [\"*\"]}", 1},
		{"{key: name, operator: In, values: [a, c0]}", 1},
		{"{key: name, operator: NotIn, values: [a]}", 1},
		{"{key: namespace, operator: NotIn, values: [\"*\"]}", 0},
		{"{key: labels/app.kubernetes.io/name, operator: Exists}", 1},
		{"{key: pod/labels/app.kubernetes.io/name, operator: Equals, values: [web]}", 1},
		{"{key: labels/none, operator: Exists}", 0},
		{"{key: labels/none, operator: NotExist}", 1},
		{"{key: labels/none, operator: NotExists}", 1},
		{"{key: labels/none, operator: Equals, values: [x]}", 0},
		{"{key: labels/none, operator: NotEqual, values: [x]}", 1},
		{"{key: labels/none, operator: NotIn, values: [x]}", 1},
		{"{key: name, operator: Matches, values: [\"c*\"]}", 1},
		{"{key: name, operator: MatchesNot, values: [\"c*\"]}", 0},
		{"{key: name, operator: MatchesAny, values: [x, \"?0\"]}", 1},
		{"{key: name, operator: MatchesNone, values: [x]}", 1},
		{"{operator: AlwaysTrue}", 1},
		{"{key: whatever, operator: AlwaysTrue}", 1},
		{"{key: pod/name, operator: Equals, values: [pod-c0]}", 1},
		{"{key: pod/qosclass, operator: Equals, values: [Burstable]}", 1},
		{"{key: namespace, operator: Equals, values: [default]}", 1},
		{"{key: id, operator: Exists}", 1},
		{"{key: pod/id, operator: Exists}", 1},
		{"{key: pod/uid, operator: Exists}", 1},
		{"{key: uid, operator: Exists}", 0},
		{"{key: tags/x, operator: Exists}", 0},
		{"{key: \":name:namespace\", operator: Equals, values: [\"c0:default\"]}", 1},
		{"{key: \":pod/name:labels/none:name\", operator: Equals, "
		 "values: [\"pod-c0::c0\"]}",
		 1},
		{"{key: \":,-name,labels/none,namespace\", operator: Equals, "
		 "values: [\"c0--default\"]}",
		 1},
		{"{key: \":labels/x:labels/y\", operator: Exists}", 0},
		{"{key: colour, operator: Exists}", -1},
		{"{key: name, operator: Equals}", -1},
		{"{key: name, operator: Equals, values: [a, b]}", -1},
		{"{key: name, operator: Exists, values: [a]}", -1},
		{"{key: name, operator: Matches, values: [\"[\"]}", -1},
		{"{key: name, operator: Equals, values: a}", -1},
		{"{key: name, operator: Resembles, values: [a]}", -1},
		{"{operator: Exists}", -1},
		{"[a]", -1},
	};
	struct fake_host *f = fake_host_new(&(struct fake_machine){.packages = 1, .cores = 4});
	struct modhost h;
	assert_int_equal(modhost_init(&h, fake_rp_host(f), MODHOST_POLICY), 0);
	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = "c0",
						  .qos = RP_QOS_BURSTABLE,
						  .labels = "app.kubernetes.io/name=web"});
	struct rp_ctr_info info;
	assert_int_equal(ctr_info(&h, c, &info), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct blocks memory = {NULL};
		struct expr e;
		int32_t r = match_read_one(&h, &memory, fake_cfg(f, cases[i].text), "x", &e);
		int got = r ? -1 : match_holds(&h, &e, &info);
		if (got != cases[i].holds)
			fail_msg("%s: %d (%s)", cases[i].text, got, fake_error(f));
		blocks_fini(&memory);
	}
	fake_host_free(f);
}

static void test_texts(void **state)
{
	static const char *const bad[] = {"${", "$", "${}", "}", "a{b", "${a$b}", "$a}", "${a"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_non_null(match_check_text(bad[i]));
	static const char *const good[] = {"", "x", "$$", "$name", "${name}x$name", "$name$$"};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_null(match_check_text(good[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_globs),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
