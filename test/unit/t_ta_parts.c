/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the topology-aware policy: patterns, expressions, records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modules/topology-aware/ta.h"
#include "test/unit/fake_host.h"

extern const struct rp_module rp_module_1;

#define PLAIN "{reservedResources: {cpu: 1}, preferIsolatedCPUs: false}"

static struct fake_host *start(void)
{
	struct fake_host *f = fake_host_new(&(struct fake_machine){.packages = 2, .cores = 4});
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, PLAIN), 0);
	return f;
}

static void test_globs(void **state)
{
	(void)state;
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
		{"a*c", "abbc", true},
		{"a*c", "abcb", false},
		{"a*b*c", "axbxbxc", true},
		{"?", "a", true},
		{"?", "/", false},
		{"?", "", false},
		{"[abc]", "b", true},
		{"[a-c]x", "bx", true},
		{"[a-c]", "d", false},
		{"[^a-c]", "d", true},
		{"[!a]", "a", false},
		{"[^a]", "/", false},
		{"[]a]", "]", true},
		{"\\*", "*", true},
		{"\\*", "a", false},
		{"[\\]]", "]", true},
		{"*.so*", "x.so.1", true},
		{"[a-", "a", false},
		{"a[", "a[", false},
		{"a\\", "a", false},
		{"\\[x", "[x", true},
		{"*eth0*", "PCI eth0-rx", true},
		{"**a", "a", true},
		{"a*", "a", true},
		{"*a*a*a*b", "aaaaaaaaaaaa", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (glob_match(cases[i].pattern, cases[i].text) != cases[i].matches)
			fail_msg("\"%s\" and \"%s\"", cases[i].pattern, cases[i].text);
	assert_false(glob_valid("["));
	assert_false(glob_valid("[a"));
	assert_false(glob_valid("x\\"));
	assert_true(glob_valid("[a-z]*?\\["));
}

static void test_expressions(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int matches; /* -1: refused */
	} cases[] = {
		{"{key: name, operator: Equals, values: [c0]}", 1},
		{"{key: name, operator: Equals, values: [\"*\"]}", 1},
		{"{key: name, operator: NotEqual, values: [c0]}", 0},
		{"{key: name, operator: In, values: [a, c0]}", 1},
		{"{key: name, operator: NotIn, values: [a]}", 1},
		{"{key: labels/app.kubernetes.io/name, operator: Exists}", 1},
		{"{key: labels/none, operator: Exists}", 0},
		{"{key: labels/none, operator: NotExist}", 1},
		{"{key: labels/none, operator: Equals, values: [x]}", 0},
		{"{key: labels/none, operator: NotEqual, values: [x]}", 1},
		{"{key: name, operator: Matches, values: [\"c*\"]}", 1},
		{"{key: name, operator: MatchesNot, values: [\"c*\"]}", 0},
		{"{key: name, operator: MatchesAny, values: [x, \"?0\"]}", 1},
		{"{key: name, operator: MatchesNone, values: [x]}", 1},
		{"{operator: AlwaysTrue}", 1},
		{"{key: pod/name, operator: Equals, values: [pod-c0]}", 1},
		{"{key: pod/qosclass, operator: Equals, values: [Burstable]}", 1},
		{"{key: namespace, operator: Equals, values: [default]}", 1},
		{"{key: tags/x, operator: Exists}", 0},
		{"{key: \":name:namespace\", operator: Equals, values: [\"c0:default\"]}", 1},
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
	struct fake_host *f = start();
	struct rp_instance *inst = fake_instance(f);
	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = "c0",
						  .qos = RP_QOS_BURSTABLE,
						  .labels = "app.kubernetes.io/name=web"});
	struct rp_ctr_info info;
	assert_int_equal(ctr_info(&inst->h, c, &info), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct expr e;
		int32_t r = expr_read(inst, fake_cfg(f, cases[i].text), &e);
		int got = r ? -1 : expr_match(inst, &e, &info);
		if (got != cases[i].matches)
			fail_msg("%s: %d (%s)", cases[i].text, got, fake_error(f));
		if (!r)
			expr_fini(&e);
	}
	fake_host_free(f);
}

/* Whatever is kept with a container is read back the same. */
static void test_records(void **state)
{
	(void)state;
	struct fake_host *f = start();
	struct rp_instance *inst = fake_instance(f);
	rp_ctr c = fake_ctr(
		f, &(struct fake_ctr){
			   .name = "a",
			   .qos = RP_QOS_GUARANTEED,
			   .cpu_request = 1500,
			   .annotations = "test.topologyhints.resource-policy.nri.io={x: {NUMAs: "
					  "1}, y: {CPUs: \"4-7\", Sockets: 1}}"});
	assert_int_equal(fake_allocate(f, c), 0);
	const struct grant *g = ledger_find(inst, c);
	struct record rec;
	assert_int_equal(record_read(inst, c, &rec), 0);
	assert_int_equal(rec.pool, g->pool);
	assert_int_equal(rec.portion, 500);
	assert_true(rp_ids_equal(rp_ids_of(&rec.exclusive), cpus_ids(g->exclusive)));
	assert_int_equal(rec.hints->n, 2);
	assert_string_equal(rec.hints->first->provider, "x");
	assert_int_equal(rec.hints->first->next->sockets->n, 1);
	hints_unref(rec.hints);
	struct record_bytes bytes;
	record_make(inst, g, &bytes);
	assert_true(record_is_kept(inst, c, &bytes));
	fake_host_free(f);
}

static void test_levels(void **state)
{
	(void)state;
	struct fake_host *f = start();
	const struct rp_plan *p = fake_instance(f)->plan;
	assert_int_equal(p->n_pools, 3);
	assert_int_equal(tree_level(p, RP_LEVEL_NODE), RP_LEVEL_PACKAGE);
	assert_int_equal(tree_level(p, RP_LEVEL_SYSTEM), RP_LEVEL_SYSTEM);
	assert_int_equal(tree_find(p, "socket #1"), 1);
	assert_int_equal(tree_find(p, "socket #9"), NO_POOL);
	assert_true(tree_within(p, 0, 2));
	assert_false(tree_within(p, 2, 0));
	assert_int_equal(level_parse("L3CACHE"), RP_LEVEL_L3);
	assert_int_equal(level_parse("floor"), 0);
	assert_string_equal(level_name(RP_LEVEL_DIE), "die");
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_globs),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_levels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
