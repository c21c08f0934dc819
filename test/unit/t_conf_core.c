/* SPDX-License-Identifier: Apache-2.0 */
/* Tests each of the core's keys by its row of the table: accepted values, refused values with their
 * messages, and the default's value. */
#include <inttypes.h>

#include "test/unit/t_conf.h"

/* A document with one value at a path of the table: "a.b[]" is {a: {b: [VALUE]}}. */
static const char *document(const char *path, const char *value)
{
	static struct buf text = BUF_INIT;
	char closing[32] = "}\n";
	buf_reset(&text);
	(void)buf_add_str(&text, "{");
	for (const char *p = path; *p; p++) {
		const char *open = *p == '.' ? ": {" : *p == '[' ? ": [" : NULL;
		if (!open) {
			(void)buf_printf(&text, "%c", *p);
			continue;
		}
		memmove(closing + 1, closing, strlen(closing) + 1);
		closing[0] = *p == '.' ? '}' : ']';
		(void)buf_add_str(&text, open);
		if (*p == '[')
			p++;
	}
	bool in_list = str_has_suffix(path, "[]");
	(void)buf_printf(&text, "%s%s%s", in_list ? "" : ": ", value, closing);
	return buf_text(&text);
}

/* The path as problems have it: the first element of a list. */
static const char *shown_path(const char *path, char *ret, size_t size)
{
	int n = (int)strlen(path);
	if (str_has_suffix(path, "[]"))
		(void)snprintf(ret, size, "%.*s[0]", n - 2, path);
	else
		(void)snprintf(ret, size, "%s", path);
	return ret;
}

static void refused(const struct rp_key *key, const char *value, const char *found)
{
	char expected[CONF_PROBLEM_TEXT_MAX], path[128], want[2 * CONF_PROBLEM_TEXT_MAX];
	(void)parse(document(key->path, value));
	(void)snprintf(want, sizeof want, ": %s: expected %s, found %s",
		       shown_path(key->path, path, sizeof path),
		       value_expected(key, expected, sizeof expected), found);
	if (last.rc != -EINVAL || last.errs.n_errors != 1 || !strstr(problems(), want))
		fail_msg("%s%ssays \"%s\", not \"%s\"", document(key->path, value),
			 last.rc ? "" : "is taken and ", problems(), want);
}

/* Warnings are about a key that has no effect. */
static void taken(const struct rp_key *key, const char *value)
{
	struct conf *conf = parse(document(key->path, value));
	if (!conf)
		fail_msg("%sis refused: %s", document(key->path, value), problems());
}

/* Accepted scalars of a type and refused ones; NULL: the type accepts any scalar, or is no scalar.
 * */
static const struct {
	const char *good[4], *bad[4];
} samples[] = {
	[RP_T_BOOL] = {{"true", "false"}, {"perhaps", "2", "\"\""}},
	[RP_T_INT] = {{NULL}, {"many", "1.5", "0x", "99999999999999999999"}},
	[RP_T_STRING] = {{"word", "\"two words\"", "7"}, {NULL}},
	[RP_T_ENUM] = {{NULL}, {"nothing-of-the-kind"}},
	[RP_T_DURATION] = {{"1s", "1m30s", "24h"}, {"5", "fast", "-1s", "1 year"}},
	[RP_T_CPU] = {{"2", "750m"}, {"many", "-1"}},
	[RP_T_BYTES] = {{"1Gi", "512"}, {"much", "-1"}},
	[RP_T_LIST] = {{"[]"}, {"word", "7"}},
	[RP_T_MAP] = {{"{}"}, {"word", "7"}},
};

/* Checked in other ways than by the table; the tests of loading have them. */
static bool is_special(const char *path)
{
	static const char *const paths[] = {"policy",
					    "controllers",
					    "control.cpu",
					    "control.rdt",
					    "log.klog",
					    "control.blockio",
					    "metrics.listen",
					    "instrumentation.httpEndpoint",
					    "calculators",
					    "adjustments",
					    "annotations.allow",
					    "admit.requestSource",
					    "admit.resourceNames",
					    "nodeResources.strategy",
					    "nodeResources.nodeConfigs",
					    "nodeResources.hostApplications",
					    "nodeResources.prefixes",
					    "nodeResources.node.labels",
					    "nodeResources.node.annotations",
					    "topology.deviceMemoryNodes",
					    "agent.namespaces[]"};
	for (size_t i = 0; i < COUNT(paths); i++)
		if (str_eq(paths[i], path))
			return true;
	return false;
}

static void each_row(void (*look)(const struct rp_key *key))
{
	const struct rp_schema *schema = conf_core_schema();
	for (uint32_t i = 0; i < schema->n_keys; i++) {
		const struct rp_key key = schema_row(schema, i);
		if (!is_special(key.path))
			look(&key);
	}
}

static void look_at_kind(const struct rp_key *key)
{
	assert_true(key->type < COUNT(samples));
	refused(key, key->type == RP_T_MAP ? "[x]" : "{x: y}",
		key->type == RP_T_MAP ? "a list" : "a map");
	if (key->type != RP_T_LIST && key->type != RP_T_MAP)
		refused(key, "[x]", "a list");
}

static void test_kinds(void **state)
{
	each_row(look_at_kind);
}

static void look_at_scalars(const struct rp_key *key)
{
	char value[64], found[80];
	for (size_t i = 0; i < 4; i++) {
		const char *good = samples[key->type].good[i], *bad = samples[key->type].bad[i];
		bool full = !(key->flags & RP_KEY_NON_EMPTY) || !good || !str_eq(good, "[]");
		if (good && full)
			taken(key, good);
		if (!bad)
			continue;
		(void)snprintf(value, sizeof value, "%s", bad);
		(void)snprintf(found, sizeof found, bad[0] == '"' ? "%s" : "\"%s\"", bad);
		refused(key, value, found);
	}
	if (!(key->flags & RP_KEY_NON_EMPTY) || key->type == RP_T_MAP)
		return;
	if (key->type == RP_T_LIST)
		refused(key, "[]", "an empty value");
	else
		refused(key, "\"\"", "\"\"");
}

static void test_addresses(void **state)
{
	const struct rp_schema *schema = conf_core_schema();
	unsigned n = 0;
	for (uint32_t i = 0; i < schema->n_keys; i++) {
		const struct rp_key row = schema_row(schema, i), *key = &row;
		if (!str_eq(key->path, "metrics.listen") &&
		    !str_eq(key->path, "instrumentation.httpEndpoint"))
			continue;
		n++;
		taken(key, "\"\"");
		taken(key, "\":8891\"");
		taken(key, "\"unix:/run/m.sock\"");
		(void)parse(document(key->path, "word"));
		assert_int_equal(last.rc, -EINVAL);
		assert_non_null(strstr(problems(), ": expected an address and a port ("));
		assert_non_null(strstr(problems(), "found \"word\""));
	}
	assert_int_equal(n, 2);
}

static void test_scalars(void **state)
{
	each_row(look_at_scalars);
}

static void look_at_range(const struct rp_key *key)
{
	char value[32], found[40];
	if (key->type != RP_T_INT)
		return;
	assert_true(key->max < INT64_MAX);
	for (int beyond = 0; beyond < 2; beyond++) {
		int64_t edges[] = {key->min - beyond, key->max + beyond};
		for (size_t i = 0; i < COUNT(edges); i++) {
			(void)snprintf(value, sizeof value, "%" PRId64, edges[i]);
			(void)snprintf(found, sizeof found, "\"%s\"", value);
			if (beyond)
				refused(key, value, found);
			else
				taken(key, value);
		}
	}
}

static void test_ranges(void **state)
{
	each_row(look_at_range);
}

static void look_at_choices(const struct rp_key *key)
{
	if (key->type != RP_T_ENUM)
		return;
	_free_ char *words = strdup(key->choices);
	unsigned n = 0;
	for (char *word = words, *next; word; word = next, n++) {
		next = strchr(word, '|');
		if (next)
			*next++ = '\0';
		char value[64], upper[64];
		(void)snprintf(value, sizeof value, "\"%s\"", word);
		taken(key, value);
		if (!*word)
			continue;
		(void)snprintf(upper, sizeof upper, "\"%s-\"", word);
		refused(key, upper, upper);
	}
	assert_true(n >= 1);
}

static void test_choices(void **state)
{
	each_row(look_at_choices);
}

/* Returns the effective configuration, without the marks of defaults. */
static char *in_force(void)
{
	static const char mark[] = "  # default";
	char *text = strdup(shown(CONF_SHOW_DEFAULTS));
	for (char *at = text; (at = strstr(at, mark));)
		memmove(at, at + sizeof mark - 1, strlen(at + sizeof mark - 1) + 1);
	return text;
}

/* The default, written out, changes nothing. */
static void look_at_default(const struct rp_key *key)
{
	if (!key->fallback)
		return;
	(void)good("{}\n");
	_free_ char *before = in_force();
	(void)good(document(key->path, key->fallback));
	_free_ char *after = in_force();
	assert_int_equal(strlen(before), strlen(after));
	assert_string_equal(core_default(key->path), key->fallback);
}

static void test_defaults(void **state)
{
	each_row(look_at_default);
}

/* A letter too many is noticed, and the right word suggested. */
static void look_at_spelling(const struct rp_key *key)
{
	char wrong[128], want[160];
	const char *word = strrchr(key->path, '.') ? strrchr(key->path, '.') + 1 : key->path;
	if (str_has_suffix(key->path, "[]"))
		return;
	(void)snprintf(wrong, sizeof wrong, "%s%c", key->path, key->path[strlen(key->path) - 1]);
	(void)parse(document(wrong, "1"));
	(void)snprintf(want, sizeof want, ": %s: unknown key, did you mean %s?\n", wrong, word);
	if (last.rc != -EINVAL || !strstr(problems(), want))
		fail_msg("%s says \"%s\", not \"%s\"", wrong, problems(), want);
	if (strchr(key->path, '.'))
		return;
	_free_ char *lax = str_printf("strict: false\n%s: 1\n", wrong);
	assert_non_null(parse(lax));
	if (strncmp(problems(), "warning: ", 9) != 0 || !strstr(problems(), want))
		fail_msg("%s says \"%s\"", lax, problems());
}

static void test_spelling(void **state)
{
	each_row(look_at_spelling);
}

/* ---- limits that the table does not have ----------------------------------------------------- */

static void test_periods(void **state)
{
	static const struct {
		const char *path, *expected;
		bool zero; /* 0s is accepted: never */
	} rows[] = {
		{"metrics.collectInterval", "0s or a duration from 1s to 24h", true},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		static const char *const outside[] = {"999ms", "1ms", "86401s", "0s"};
		(void)good(document(rows[i].path, "1s"));
		(void)good(document(rows[i].path, "24h"));
		for (size_t k = 0; k < COUNT(outside); k++) {
			char want[160];
			(void)snprintf(want, sizeof want, ": %s: expected %s, found \"%s\"\n",
				       rows[i].path, rows[i].expected, outside[k]);
			bool fine = rows[i].zero && str_eq(outside[k], "0s");
			(void)parse(document(rows[i].path, outside[k]));
			assert_int_equal(last.rc, fine ? 0 : -EINVAL);
			if (!fine && !strstr(problems(), want))
				fail_msg("%s, not %s", problems(), want);
		}
	}
	(void)good("metrics: {collectInterval: 90s, pressure: {throttled: 0, io: 100}}\n");
	const struct conf_core *core = conf_core(last.conf);
	assert_int_equal(core->metrics.collect_ms, 90000);
	assert_int_equal(core->metrics.pressure[0], 0);
	assert_int_equal(core->metrics.pressure[1], 0);
	assert_int_equal(core->metrics.pressure[2], 10);
	assert_int_equal(core->metrics.pressure[3], 100);
}

/* Checks that keys of custom resources without effect in nri-rp cause warnings, not errors. */
static void test_without_effect(void **state)
{
	(void)warned("instrumentation: {reportPeriod: 60s}\nagent: {nodeResourceTopology: true}\n",
		     "warning: rp.conf:1:19: instrumentation.reportPeriod: has no effect: metrics "
		     "are collected when Prometheus scrapes; metrics.collectInterval is for the "
		     "usage of containers\n"
		     "warning: rp.conf:2:9: agent.nodeResourceTopology: has no effect: "
		     "agent.cluster is not set; nri-rpctl zones --json has the content\n");
	(void)warned("dra: {enabled: true, sharedCounters: true}\n",
		     "warning: rp.conf:1:7: dra.enabled: has no effect: agent.cluster is not "
		     "set, and claims are objects of the cluster\n");
	(void)good("dra: {enabled: false}\n");
	(void)warned("agent: {accept: [log]}\n",
		     "warning: rp.conf:1:9: agent.accept: has no effect without agent.cluster: "
		     "true\n");
	(void)warned("apiVersion: config.nri/v1alpha1\nkind: OwnPolicy\nspec: {agent: "
		     "{nodeResourceTopology: true}}\n",
		     "warning: rp.conf:3:16: own.agent.nodeResourceTopology: has no effect: "
		     "agent.cluster is not set; nri-rpctl zones --json has the content\n");
	(void)good("agent: {accept: [], nodeResourceTopology: false}\n");
	(void)good("agent: {cluster: true, nodeResourceTopology: true}\n");
}

/* A policy's own part of `control` is looked for at all depths; where it has none of it, everything
 * is the controller's. */
static void test_nothing_own(void **state)
{
	(void)good("policy: own\nown: {control: {cpu: {other: {b: 1}}, rdt: {}}}\n");
	assert_null(conf_get(conf_root(last.conf), "own.control"));
	assert_non_null(conf_get(conf_root(last.conf), "cpu.other.b"));
	(void)good(
		"policy: own\nown: {control: {cpu: {other: 1, classes: {c: {minFreq: 1GHz}}}}}\n");
	assert_non_null(conf_get(conf_root(last.conf), "own.control.cpu.classes.c"));
	assert_non_null(conf_get(conf_root(last.conf), "cpu.other"));
	assert_null(conf_get(conf_root(last.conf), "cpu.classes"));
}

static void test_agent(void **state)
{
	(void)good("agent: {podResourceAPI: true}\n");
	assert_true(conf_core(last.conf)->agent.pod_resource_api);
	assert_string_equal(conf_core(last.conf)->agent.socket, "/run/nri-rp/agent.sock");
	assert_string_equal(conf_core(last.conf)->agent.user, "nri-rp-agent");
	(void)good("agent: {socket: /run/a, user: \"1000\"}\n");
	assert_false(conf_core(last.conf)->agent.pod_resource_api);
	assert_string_equal(conf_core(last.conf)->agent.socket, "/run/a");
	assert_string_equal(conf_core(last.conf)->agent.user, "1000");
	(void)parse("agent: {socket: \"\"}\n");
	assert_non_null(strstr(problems(), "agent.socket"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, forget_last)
		TEST(test_kinds),    TEST(test_addresses),	TEST(test_scalars),
		TEST(test_ranges),   TEST(test_choices),	TEST(test_defaults),
		TEST(test_spelling), TEST(test_periods),	TEST(test_nothing_own),
		TEST(test_agent),    TEST(test_without_effect),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
