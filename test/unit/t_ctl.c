/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket from outside, where the command line does not reach: words that it never
 * sends, and events that are more than are kept or that are waited for. */
#include "core/nri-rpctl/call.c"
#include "core/lib/term/out.c"

#include "core/nri-rpd/pipeline/observe/events.h"
#include "t_ctl_fixture.h"

#include "coverage_exit.h"
#include "core/lib/util/number.h"

#define STATIC "policy: static\nstatic: {reservedResources: {cpu: \"cpuset:0\"}}\n"
#define NONE "policy: none\n"

static struct fixture fx;

static int setup(void **state)
{
	fixture_init(&fx, "modules");
	return 0;
}

static int teardown(void **state)
{
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

/* ---- log ------------------------------------------------------------------------------------- */

static void test_log(void **state)
{
	const char *const sources[] = {"cache,topo", "nri"};
	const char *const many[] = {"ok", "not ok!"};
	struct question req = {.method = "LogDebug", .args = sources, .n_args = 2};
	int exit;
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

/* ---- configurations -------------------------------------------------------------------------- */

/* Checks arguments that nri-rpctl never sends. */
static void test_wrong_words(void **state)
{
	fixture_start(&fx, STATIC);
	json_decref(fixture_get(&fx, "ModulesClear", "No Name", CTL_USAGE));
	json_decref(fixture_get(&fx, "Plan", "relative.conf", CTL_USAGE));
	json_decref(fixture_get(&fx, "ConfigCheck", "relative.conf", CTL_USAGE));
}

static void test_rebalance(void **state)
{
	fixture_start(&fx, STATIC);
	json_t *doc = fixture_get(&fx, "Rebalance", NULL, CTL_FAILED);
	assert_text(doc, "error", "the runtime has not sent its list of containers yet");
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

/* ---- events ---------------------------------------------------------------------------------- */

static void test_events(void **state)
{
	struct question req = {.method = "Events"};
	int exit;
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
	/* Report more events than the daemon keeps. */
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
	fixture_start(&fx, NONE);
	struct loop_timer *t = loop_timer_new(fx.loop, make_event, &fx);
	(void)loop_timer_arm(t, 50);
	req.after = pipeline_last_event(fx.pipeline);
	json_t *doc = fixture_ask(&fx, &req, &exit);
	assert_int_equal(json_array_size(json_object_get(doc, "events")), 2);
	assert_text(doc, "events.0.text", "late");
	json_decref(doc);
	/* No event occurs. */
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
		TEST(test_log),	   TEST(test_wrong_words), TEST(test_rebalance),
		TEST(test_events), TEST(test_events_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
