/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket from outside: the documents of a real pipeline. */
#include "core/nri-rpctl/call.c"
#include "core/term/out.c"

#include "core/pipeline/look/events.h"
#include "t_ctl_fixture.h"

#include "coverage_exit.h"

#define STATIC "policy: static\nstatic: {reservedResources: {cpu: \"cpuset:0\"}}\n"
#define NONE "policy: none\n"

static struct fixture fx;

static int setup(void **state)
{
	(void)state;
	fixture_init(&fx, "modules");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fixture_fini(&fx);
	return 0;
}

static const char *text_of(const json_t *o, const char *path)
{
	char copy[128], *rest = copy;
	const json_t *at = o;
	(void)snprintf(copy, sizeof copy, "%s", path);
	for (char *key; (key = strsep(&rest, "."));) {
		uint64_t index;
		at = str_to_u64(key, &index) == 0 ? json_array_get(at, index)
						  : json_object_get(at, key);
	}
	return json_is_string(at) ? json_string_value(at) : "(no text)";
}

#define assert_text(o, path, text) assert_string_equal(text_of(o, path), text)

/* ---- looking --------------------------------------------------------------------------------- */

static void test_status(void **state)
{
	(void)state;
	fixture_start(&fx, STATIC);
	json_t *doc = fixture_get(&fx, "Status", NULL, CTL_DEGRADED);
	assert_true(jb(doc, "degraded"));
	assert_non_null(strstr(text_of(doc, "reasons.0"), "the runtime is not connected"));
	assert_false(jb(json_object_get(doc, "runtime"), "connected"));
	json_decref(doc);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "a", 2000, NULL, 0), 0);
	doc = fixture_get(&fx, "Status", NULL, CTL_OK);
	assert_false(jb(doc, "degraded"));
	assert_int_equal(json_array_size(json_object_get(doc, "reasons")), 0);
	assert_text(doc, "version", NRI_RP_VERSION);
	assert_text(doc, "policy.name", "static");
	assert_text(doc, "policy.configured", "static");
	assert_text(doc, "runtime.name", "containerd");
	assert_text(doc, "config.path", fx.config);
	assert_int_equal(ji(doc, "containers"), 1);
	assert_int_equal(ji(json_object_get(doc, "machine"), "cpus"), 8);
	assert_null(json_object_get(doc, "memory"));
	bool created = false;
	size_t i;
	const json_t *r;
	json_array_foreach(json_object_get(doc, "requests"), i, r) created =
		created || (str_eq(js(r, "name"), "CreateContainer") && ji(r, "count") == 1);
	assert_true(created);
	json_decref(doc);
}

static void test_status_memory(void **state)
{
	int exit;
	(void)state;
	fixture_start(&fx, NONE);
	const struct question req = {.method = "Status", .flags = CTL_FLAG_MEMORY};
	json_t *doc = fixture_ask(&fx, &req, &exit);
	const json_t *m = json_object_get(doc, "memory");
	assert_true(ji(m, "resident") > 100000);
	assert_true(ji(m, "resident_peak") >= ji(m, "resident"));
	assert_true(ji(m, "machine") > 0);
	json_decref(doc);
}

static void test_status_refused(void **state)
{
	(void)state;
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	fixture_write(fx.config, "policy: [1]\n");
	json_decref(fixture_get(&fx, "Reload", NULL, CTL_CONFIG));
	json_t *doc = fixture_get(&fx, "Status", NULL, CTL_DEGRADED);
	assert_non_null(strstr(text_of(doc, "reasons.0"), "the last reload was refused"));
	assert_false(jb(json_object_get(doc, "config"), "ok"));
	json_decref(doc);
	doc = fixture_get(&fx, "Doctor", NULL, CTL_DEGRADED);
	json_decref(doc);
}

static void test_pods_and_containers(void **state)
{
	(void)state;
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "web", 2000, NULL, 0), 0);
	assert_int_equal(fixture_create(&fx, "batch", 0, NULL, 0), 0);
	json_t *doc = fixture_get(&fx, "Pods", NULL, CTL_OK);
	assert_int_equal(json_array_size(doc), 2);
	assert_text(doc, "0.name", "web");
	assert_text(doc, "0.qos", "Guaranteed");
	assert_text(doc, "1.qos", "BestEffort");
	assert_int_equal(ji(json_array_get(doc, 0), "cpu_request_milli"), 2000);
	json_decref(doc);
	doc = fixture_get(&fx, "Pods", "default/b*", CTL_OK);
	assert_int_equal(json_array_size(doc), 1);
	assert_text(doc, "0.name", "batch");
	json_decref(doc);
	doc = fixture_get(&fx, "Containers", NULL, CTL_OK);
	assert_int_equal(json_array_size(doc), 2);
	assert_text(doc, "0.full_name", "default/web/c0");
	assert_text(doc, "0.exclusive", text_of(doc, "0.cpus"));
	assert_text(doc, "0.state", "running");
	assert_text(doc, "0.policy", "static");
	assert_text(doc, "1.exclusive", "(no text)");
	json_decref(doc);
	doc = fixture_get(&fx, "Containers", "eb/c", CTL_OK);
	assert_int_equal(json_array_size(doc), 1);
	json_decref(doc);
	doc = fixture_get(&fx, "Containers", "nothing", CTL_FAILED);
	assert_int_equal(json_array_size(doc), 0);
	json_decref(doc);
}

static void test_explain(void **state)
{
	const struct kv annotations[] = {
		{"prefer-isolated-cpus.resource-policy.nri.io/pod", "true"},
		{"somebody.else/key", "x"}};
	(void)state;
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "web", 2000, annotations, 2), 0);
	json_t *doc = fixture_get(&fx, "Explain", "web/c0", CTL_OK);
	assert_text(doc, "full_name", "default/web/c0");
	assert_text(doc, "policy", "static");
	assert_true(json_array_size(json_object_get(doc, "trail")) > 0);
	assert_text(doc, "remark", "(no text)");
	assert_text(doc, "values.0.name", "cpus");
	assert_text(doc, "values.0.decided", text_of(doc, "cpus"));
	assert_int_equal(json_object_size(json_object_get(doc, "annotations")), 1);
	assert_non_null(strstr(text_of(doc, "configured_at"), "rp.conf:1:1"));
	assert_non_null(strstr(text_of(doc, "section"), "rp.conf:2:"));
	json_decref(doc);
	doc = fixture_get(&fx, "Explain", "0000cafe", CTL_OK);
	json_decref(doc);
	doc = fixture_get(&fx, "Explain", "who", CTL_FAILED);
	assert_non_null(strstr(js(doc, "error"), "who"));
	json_decref(doc);
	fixture_stop(&fx, "0000cafe");
	doc = fixture_get(&fx, "Explain", "0000cafe", CTL_OK);
	assert_non_null(strstr(js(doc, "remark"), "exited"));
	json_decref(doc);
}

static void test_explain_without_policy(void **state)
{
	(void)state;
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "web", 1000, NULL, 0), 0);
	json_t *doc = fixture_get(&fx, "Explain", "web/c0", CTL_OK);
	assert_true(strlen(js(doc, "remark")) > 0);
	assert_int_equal(json_array_size(json_object_get(doc, "trail")), 0);
	json_decref(doc);
}

static void test_zones(void **state)
{
	(void)state;
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	json_t *doc = fixture_get(&fx, "Zones", NULL, CTL_OK);
	assert_int_equal(json_array_size(doc), 2);
	assert_text(doc, "0.name", "NUMA node #0");
	assert_text(doc, "0.parent", "");
	assert_text(doc, "0.resources.0.name", "cpu");
	const json_t *cpu = json_array_get(json_object_get(json_array_get(doc, 0), "resources"), 0);
	assert_int_equal(ji(cpu, "capacity"), 4000);
	assert_int_equal(ji(cpu, "allocatable"), 3000);
	assert_text(doc, "0.attributes.0.value", "0-3");
	assert_int_equal(json_array_size(json_object_get(json_array_get(doc, 0), "costs")), 2);
	json_decref(doc);
}

static void test_zones_none(void **state)
{
	(void)state;
	fixture_start(&fx, NONE);
	json_t *doc = fixture_get(&fx, "Zones", NULL, CTL_OK);
	assert_int_equal(json_array_size(doc), 0);
	json_decref(doc);
}

static void test_topology(void **state)
{
	(void)state;
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "own", 2000, NULL, 0), 0);
	assert_int_equal(fixture_create(&fx, "more", 1000, NULL, 0), 0);
	assert_int_equal(fixture_create(&fx, "one", 0, NULL, 0), 0);
	assert_int_equal(fixture_create(&fx, "two", 0, NULL, 0), 0);
	json_t *doc = fixture_get(&fx, "Topology", NULL, CTL_OK);
	assert_int_equal(json_array_size(json_object_get(doc, "cpus")), 8);
	assert_int_equal(json_array_size(json_object_get(doc, "nodes")), 2);
	assert_text(doc, "online", "0-7");
	assert_text(doc, "present", "0-8");
	const json_t *groups = json_object_get(doc, "groups");
	assert_int_equal(json_array_size(groups), 3);
	assert_true(jb(json_array_get(groups, 0), "exclusive"));
	assert_true(jb(json_array_get(groups, 1), "exclusive"));
	assert_false(jb(json_array_get(groups, 2), "exclusive"));
	assert_text(groups, "2.containers.0", "default/one/c0");
	assert_text(groups, "2.containers.1", "default/two/c0");
	json_decref(doc);
}

static void test_topology_unconfined(void **state)
{
	(void)state;
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "one", 0, NULL, 0), 0);
	assert_int_equal(fixture_create(&fx, "two", 0, NULL, 0), 0);
	fixture_stop(&fx, "two/c0");
	json_t *doc = fixture_get(&fx, "Topology", NULL, CTL_OK);
	assert_int_equal(ji(doc, "unconfined"), 1);
	assert_int_equal(json_array_size(json_object_get(doc, "groups")), 0);
	json_decref(doc);
}

static void test_modules(void **state)
{
	(void)state;
	fixture_start(&fx, STATIC);
	json_t *doc = fixture_get(&fx, "Modules", NULL, CTL_OK);
	const json_t *m;
	size_t i;
	unsigned n_in_use = 0;
	json_array_foreach(json_object_get(doc, "modules"), i, m)
	{
		n_in_use += jb(m, "in_use");
		assert_int_equal(jb(m, "in_use"), str_eq(js(m, "name"), "static"));
		if (jb(m, "in_use"))
			assert_text(m, "kinds.0", "policy");
	}
	assert_int_equal(n_in_use, 1);
	json_decref(doc);
	doc = fixture_get(&fx, "ModulesClear", "static", CTL_FAILED);
	assert_string_equal(js(doc, "error"), "nothing is held against module static");
	json_decref(doc);
	json_decref(fixture_get(&fx, "ModulesClear", "No Name", CTL_USAGE));
}

static void test_log(void **state)
{
	const char *const sources[] = {"cache,topo", "nri"};
	const char *const many[] = {"ok", "not ok!"};
	struct question req = {.method = "LogDebug", .args = sources, .n_args = 2};
	int exit;
	(void)state;
	fixture_start(&fx, "policy: none\nlog: {debug: [conf]}\n");
	json_t *doc = fixture_get(&fx, "LogLevel", NULL, CTL_OK);
	assert_text(doc, "level", "error");
	assert_text(doc, "debug.0", "conf");
	json_decref(doc);
	doc = fixture_get(&fx, "LogLevel", "warning", CTL_OK);
	assert_text(doc, "level", "warning");
	assert_int_equal(log_get_level(), LOG_WARNING);
	json_decref(doc);
	log_set_level(LOG_ERROR);
	json_decref(fixture_get(&fx, "LogLevel", "loud", CTL_USAGE));
	doc = fixture_ask(&fx, &req, &exit);
	assert_int_equal(exit, 0);
	assert_int_equal(json_array_size(json_object_get(doc, "debug")), 3);
	assert_text(doc, "debug.2", "nri");
	assert_true(log_wants("topo", LOG_DEBUG));
	assert_false(log_wants("conf", LOG_DEBUG));
	json_decref(doc);
	req.args = many;
	doc = fixture_ask(&fx, &req, &exit);
	assert_int_equal(exit, CTL_USAGE);
	json_decref(doc);
	doc = fixture_get(&fx, "LogDebug", "off", CTL_OK);
	assert_int_equal(json_array_size(json_object_get(doc, "debug")), 0);
	assert_false(log_wants("topo", LOG_DEBUG));
	json_decref(doc);
	doc = fixture_get(&fx, "LogDebug", NULL, CTL_OK);
	assert_int_equal(json_array_size(json_object_get(doc, "debug")), 0);
	json_decref(doc);
	char longer[600];
	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	json_decref(fixture_get(&fx, "LogDebug", longer, CTL_USAGE));
	char names[300] = "";
	for (unsigned i = 0; i < LOG_SOURCES_MAX + 1; i++)
		strcat(names, "a,");
	json_decref(fixture_get(&fx, "LogDebug", names, CTL_USAGE));
}

static void test_version(void **state)
{
	(void)state;
	fixture_start(&fx, NONE);
	json_t *doc = fixture_get(&fx, "Version", NULL, CTL_OK);
	assert_text(doc, "version", NRI_RP_VERSION);
	assert_int_equal(ji(doc, "pid"), getpid());
	json_decref(doc);
}

/* ---- configurations -------------------------------------------------------------------------- */

static void test_reload(void **state)
{
	(void)state;
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "batch", 0, NULL, 0), 0);
	fixture_write(fx.config,
		      "policy: static\nstatic: {reservedResources: {cpu: \"cpuset:1\"}}\n"
		      "log: {level: error}\n");
	json_t *doc = fixture_get(&fx, "Reload", NULL, CTL_OK);
	assert_text(doc, "outcome", "in force");
	assert_true(json_array_size(json_object_get(doc, "changes")) >= 1);
	assert_true(ji(doc, "took_us") > 0);
	json_decref(doc);
	doc = fixture_get(&fx, "ConfigShow", NULL, CTL_OK);
	assert_non_null(strstr(js(doc, "yaml"), "cpuset:1"));
	json_decref(doc);
}

static void test_rebalance(void **state)
{
	(void)state;
	fixture_start(&fx, STATIC);
	json_t *doc = fixture_get(&fx, "Rebalance", NULL, CTL_FAILED);
	assert_text(doc, "error", "the runtime has not told its containers yet");
	json_decref(doc);
	fixture_connect(&fx);
	doc = fixture_get(&fx, "Rebalance", "3", CTL_OK);
	assert_text(doc, "policy", "static");
	assert_int_equal(ji(doc, "moved"), 0);
	json_decref(doc);
	json_decref(fixture_get(&fx, "Rebalance", "many", CTL_USAGE));
	json_decref(fixture_get(&fx, "Rebalance", "-1", CTL_USAGE));
	json_decref(fixture_get(&fx, "Rebalance", "9999999999", CTL_USAGE));
}

static void test_reload_refused(void **state)
{
	(void)state;
	fixture_start(&fx, STATIC);
	fixture_write(fx.config, "policy: static\npolcy: x\n");
	json_t *doc = fixture_get(&fx, "Reload", NULL, CTL_CONFIG);
	assert_text(doc, "outcome", "refused");
	assert_non_null(strstr(js(doc, "error"), "polcy"));
	json_decref(doc);
}

static void test_plan(void **state)
{
	char path[128];
	(void)state;
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "own", 2000, NULL, 0), 0);
	assert_int_equal(fixture_create(&fx, "batch", 0, NULL, 0), 0);
	(void)snprintf(path, sizeof path, "%s/plan.conf", fx.dir);
	fixture_write(path, "policy: none\n");
	json_t *doc = fixture_get(&fx, "Plan", path, CTL_OK);
	assert_text(doc, "outcome", "accepted");
	assert_true(json_array_size(json_object_get(doc, "changes")) >= 1);
	json_decref(doc);
	doc = fixture_get(&fx, "ConfigCheck", path, CTL_OK);
	json_decref(doc);
	fixture_write(path, "policy: nothing-of-that-name\n");
	doc = fixture_get(&fx, "ConfigCheck", path, CTL_CONFIG);
	assert_non_null(strstr(js(doc, "error"), "nothing-of-that-name"));
	json_decref(doc);
	json_decref(fixture_get(&fx, "Plan", "relative.conf", CTL_USAGE));
	json_decref(fixture_get(&fx, "ConfigCheck", "relative.conf", CTL_USAGE));
	(void)unlink(path);
	doc = fixture_get(&fx, "Status", NULL, CTL_OK);
	assert_text(doc, "policy.name", "static");
	json_decref(doc);
}

static void test_config_check_own(void **state)
{
	(void)state;
	fixture_start(&fx, STATIC);
	fixture_write(fx.config, "policy: none\n");
	json_t *doc = fixture_get(&fx, "ConfigCheck", NULL, CTL_OK);
	assert_text(doc, "outcome", "accepted");
	json_decref(doc);
	doc = fixture_get(&fx, "ConfigShow", NULL, CTL_OK);
	assert_non_null(strstr(js(doc, "yaml"), "policy: static"));
	json_decref(doc);
}

static void test_config_show(void **state)
{
	int exit;
	(void)state;
	fixture_start(&fx, NONE);
	const struct question req = {.method = "ConfigShow",
				     .flags = CTL_FLAG_ORIGIN | CTL_FLAG_DEFAULTS};
	json_t *doc = fixture_ask(&fx, &req, &exit);
	assert_non_null(strstr(js(doc, "yaml"), "rp.conf:1"));
	assert_non_null(strstr(js(doc, "yaml"), "default"));
	json_decref(doc);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void test_events(void **state)
{
	struct question req = {.method = "Events"};
	int exit;
	(void)state;
	fixture_start(&fx, NONE);
	uint64_t before = pipeline_last_event(fx.pipeline);
	pipeline_event(fx.pipeline, EV_MACHINE, "something %d", 1);
	pipeline_event(fx.pipeline, EV_CONFIG, "something %d", 2);
	req.after = before;
	json_t *doc = fixture_ask(&fx, &req, &exit);
	assert_int_equal(json_array_size(json_object_get(doc, "events")), 2);
	assert_text(doc, "events.0.kind", "machine");
	assert_text(doc, "events.1.text", "something 2");
	assert_int_equal(ji(doc, "last"), before + 2);
	assert_int_equal(ji(doc, "missed"), 0);
	json_decref(doc);
	/* A number of an earlier daemon's. */
	req.after = 100000;
	doc = fixture_ask(&fx, &req, &exit);
	assert_int_equal(json_array_size(json_object_get(doc, "events")), before + 2);
	json_decref(doc);
	/* More than are kept. */
	for (unsigned i = 0; i < EVENTS_MAX + 10; i++)
		pipeline_event(fx.pipeline, EV_MACHINE, "%u", i);
	req.after = before;
	doc = fixture_ask(&fx, &req, &exit);
	assert_int_equal(json_array_size(json_object_get(doc, "events")), EVENTS_MAX);
	assert_int_equal(ji(doc, "missed"), 12);
	json_decref(doc);
}

static void make_event(void *arg)
{
	pipeline_event(((struct fixture *)arg)->pipeline, EV_MACHINE, "late");
	pipeline_event(((struct fixture *)arg)->pipeline, EV_MACHINE, "later");
}

static void test_events_wait(void **state)
{
	struct question req = {.method = "Events", .wait_ms = 20000};
	int exit;
	(void)state;
	fixture_start(&fx, NONE);
	struct loop_timer *t = loop_timer_new(fx.loop, make_event, &fx);
	(void)loop_timer_arm(t, 50);
	req.after = pipeline_last_event(fx.pipeline);
	json_t *doc = fixture_ask(&fx, &req, &exit);
	assert_int_equal(json_array_size(json_object_get(doc, "events")), 2);
	assert_text(doc, "events.0.text", "late");
	json_decref(doc);
	/* Nothing comes. */
	req.after = pipeline_last_event(fx.pipeline);
	req.wait_ms = 30;
	doc = fixture_ask(&fx, &req, &exit);
	assert_int_equal(json_array_size(json_object_get(doc, "events")), 0);
	assert_int_equal(exit, 0);
	json_decref(doc);
	loop_timer_free(t);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_status),	   TEST(test_status_memory),
		TEST(test_status_refused), TEST(test_pods_and_containers),
		TEST(test_explain),	   TEST(test_explain_without_policy),
		TEST(test_zones),	   TEST(test_zones_none),
		TEST(test_topology),	   TEST(test_topology_unconfined),
		TEST(test_modules),	   TEST(test_log),
		TEST(test_version),	   TEST(test_reload),
		TEST(test_rebalance),	   TEST(test_reload_refused),
		TEST(test_plan),	   TEST(test_config_check_own),
		TEST(test_config_show),	   TEST(test_events),
		TEST(test_events_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
