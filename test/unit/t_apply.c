/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration is a transaction: whichever of its steps is refused, when the trial has gone
 * well, all is as it was before, the controllers that were to go and those that were to come
 * included.
 */
#include <ctype.h>

#include "test/unit/t_reload.h"
#include "core/nri-rpd/pipeline/observe/status.h"

/* How many times more it was started than stopped. */
static int running(struct world *w, const char *name)
{
	struct calls calls;
	char start[32], stop[32];
	int n = 0;
	(void)trace_of(w, &calls);
	(void)snprintf(start, sizeof start, "%s start ", name);
	(void)snprintf(stop, sizeof stop, "%s stop ", name);
	for (const char *at = calls.text; (at = strstr(at, start)); at++)
		n++;
	for (const char *at = calls.text; (at = strstr(at, stop)); at++)
		n--;
	return n;
}

/* ---- configurations -------------------------------------------------------------------------- */

#define FIRST                                                                                      \
	"policy: puppet\npuppet: {sync: 'note first'}\ncontrollers: [hand, hand2]\n"               \
	"hand: {env: a, trace: $/trace}\nhand2: {env: a2, trace: $/trace}\n"

/* The next one: another policy's section, hand with another section, no hand2, and hand3. */
#define NEXT(policy, section, modes, hand, hand3)                                                  \
	"policy: " policy "\n" policy ": {" section "}\ncontrollers: {" modes "}\n"                \
	"hand: {env: b, trace: $/trace" hand "}\nhand3: {env: b3, trace: $/trace" hand3 "}\n"
#define BOTH "hand: relaxed, hand3: relaxed"

struct scene {
	const char *name, *conf, *why;
};

static const struct scene scenes[] = {
	{"a controller's section",
	 NEXT("puppet", "", BOTH, ", once: $/o, prepare: '22 not like this'", ""),
	 "controller hand: not like this"},
	{"a new controller's section",
	 NEXT("puppet", "", BOTH, "", ", once: $/o, prepare: '22 not like this'"),
	 "controller hand3: not like this"},
	{"a required controller that the machine has nothing for",
	 NEXT("puppet", "", "hand: required, hand3: relaxed",
	      ", once: $/o, prepare: '95 not on this machine'", ""),
	 "controller hand: not on this machine"},
	{"a new required controller that the machine has nothing for",
	 NEXT("puppet", "", "hand: relaxed, hand3: required", "",
	      ", once: $/o, prepare: '95 not on this machine'"),
	 "controller hand3: not on this machine"},
	{"a required controller that does not start",
	 NEXT("puppet", "", "hand: relaxed, hand3: required", "", ", start: '16 is in use'"),
	 "required controller hand3 does not start: is in use"},
	{"a required controller that does not start, for another policy",
	 NEXT("puppet2", "", "hand: relaxed, hand3: required", "", ", start: '16 is in use'"),
	 "required controller hand3 does not start: is in use"},
	{"the policy's section", NEXT("puppet", "prepare: 'once $/o'", BOTH, "", ""), "not twice"},
	{"the policy's places", NEXT("puppet", "sync: 'on c; cpus 9; once $/o'", BOTH, "", ""),
	 "not twice"},
	{"the policy, when a required controller has started",
	 NEXT("puppet", "sync: 'on c; cpus 9; once $/o'", "hand: required, hand3: required", "",
	      ""),
	 "not twice"},
	{"the next policy's section", NEXT("puppet2", "prepare: 'once $/o'", BOTH, "", ""),
	 "not twice"},
	{"the next policy's places",
	 NEXT("puppet2", "sync: 'on c; cpus 9; once $/o'", BOTH, "", ""), "not twice"},
	{"the next policy, when a required controller has started",
	 NEXT("puppet2", "sync: 'on c; cpus 9; once $/o'", "hand: required, hand3: required", "",
	      ""),
	 "not twice"},
	{"the next policy, with all placed anew",
	 "resetOnSwitch: true\n" NEXT("puppet2", "sync: 'once $/o'", BOTH, "", ""), "not twice"},
};

/* ---- active controllers ---------------------------------------------------------------------- */

static void has_controllers(struct world *w, const char *what, const char *first,
			    const char *second)
{
	const char *const names[] = {first, second};
	if (pipeline_n_controllers(w->p) != 2)
		fail_msg("%s: %u controllers", what, pipeline_n_controllers(w->p));
	for (unsigned i = 0; i < 2; i++) {
		struct controller_status status;
		pipeline_controller(w->p, i, &status);
		if (strcmp(status.name, names[i]) != 0 || !status.running)
			fail_msg("%s: %s is %srunning: %s", what, status.name,
				 status.running ? "" : "not ", status.error);
	}
}

/* Checks that a new container gets from each controller the text in that controller's section. */
static void has_sections(struct world *w, const char *what, const char *box, const char *first,
			 const char *second)
{
	const char *const texts[] = {first, second};
	const struct box b = {.name = box, .alloc = "cpus 8"};
	struct reply reply;
	if (box_begin(w, &b, &reply))
		fail_msg("%s: %s", what, w->err.text);
	if (reply.extras->n != 2)
		fail_msg("%s: %u controllers had something to say", what, reply.extras->n);
	for (unsigned i = 0; i < 2; i++) {
		char text[64];
		(void)snprintf(text, sizeof text, "%s=%s", reply.extras->list[i].key,
			       reply.extras->list[i].text);
		if (strcmp(text, texts[i]) != 0)
			fail_msg("%s: %s instead of %s", what, text, texts[i]);
	}
	reply_sent(w->p, &reply, false);
}

static void has_policy(struct world *w, const char *what, const char *name, const char *sync)
{
	struct pipeline_status status;
	const void *data;
	char text[128], expected[128];
	uint32_t size;
	pipeline_status(w->p, &status);
	if (strcmp(status.policy, name) != 0)
		fail_msg("%s: policy %s", what, status.policy);
	/* the puppet's saved state contains its sync key */
	assert_int_equal(instance_save((struct instance *)(uintptr_t)pipeline_policy(w->p), &data,
				       &size, &w->err),
			 0);
	(void)snprintf(text, sizeof text, "%.*s", (int)size, (const char *)data);
	(void)snprintf(expected, sizeof expected, "state of %s", sync);
	if (strcmp(text, expected) != 0)
		fail_msg("%s: '%s' instead of '%s'", what, text, expected);
}

static void is_as_before(struct world *w, const struct scene *s)
{
	has_controllers(w, s->name, "hand", "hand2");
	has_policy(w, s->name, "puppet", "note first");
	assert_string_equal(box_cpus(w, "old"), "0-3");
	assert_string_equal(box_ctr(w, "old")->cur.private_data->data, "mine");
	assert_string_equal(box_acked(w, "old"), "0-3");
	assert_int_equal(pipeline_conf_generation(w->p), 1);
	assert_int_equal(running(w, "hand"), 1);
	assert_int_equal(running(w, "hand2"), 1);
	if (running(w, "hand3"))
		fail_msg("%s: %s", s->name, trace_of(w, &(struct calls){{0}}));
	has_sections(w, s->name, "new", "HAND=a", "HAND2=a2");
}

static void run_scene(const struct scene *s)
{
	struct world *w = world_bare();
	char conf[CONF_MAX];
	world_configure(w, in_folder(w, FIRST, conf));
	world_must_start(w);
	box_run(w, &(struct box){.name = "old", .alloc = "cpus 0-3; private mine"});
	struct answer a = reload(w, in_folder(w, s->conf, conf));
	if (a.code >= 0 || !strstr(a.text, s->why))
		fail_msg("%s: %d, '%s' instead of '%s'", s->name, a.code, a.text, s->why);
	is_as_before(w, s);
	/* The next one may be all that this one was to be. */
	a = reload(w, in_folder(w, NEXT("puppet2", "sync: 'note next'", BOTH, "", ""), conf));
	if (a.code)
		fail_msg("%s: the next one is refused: %s", s->name, a.text);
	has_controllers(w, s->name, "hand", "hand3");
	has_policy(w, s->name, "puppet2", "note next");
	has_sections(w, s->name, "newer", "HAND=b", "HAND3=b3");
	assert_int_equal(running(w, "hand"), 1);
	assert_int_equal(running(w, "hand2"), 0);
	assert_int_equal(running(w, "hand3"), 1);
	world_free(w);
}

static void test_each_step_refused(void **state)
{
	log_init("test");
	log_set_level((enum log_level)0);
	for (unsigned i = 0; i < sizeof scenes / sizeof *scenes; i++)
		run_scene(&scenes[i]);
}

/* ---- controllers that go on and off ---------------------------------------------------------- */

/* Checks that a controller is stopped before its new section is committed: it restores under the
 * section that it had. */
static void test_switched_off(void **state)
{
	struct world *w = *state;
	char conf[CONF_MAX];
	struct calls calls;
	static const char on[] = PUPPET "controllers: [hand]\nhand: {env: a, trace: $/trace}\n";
	static const char off[] =
		PUPPET "controllers: [hand]\nhand: {env: b, enable: false, trace: $/trace}\n";
	static const char refused[] = "policy: puppet\npuppet: {sync: 'once $/o'}\ncontrollers: "
				      "[hand]\nhand: {env: c, enable: false, trace: $/trace}\n";
	world_configure(w, in_folder(w, on, conf));
	world_must_start(w);
	assert_string_equal(trace_of(w, &calls), "hand commit a; hand start a; ");
	forget_trace(w);
	assert_true(reload(w, in_folder(w, refused, conf)).code < 0);
	assert_string_equal(trace_of(w, &calls), "hand stop a; hand start a; ");
	forget_trace(w);
	assert_int_equal(reload(w, in_folder(w, off, conf)).code, 0);
	assert_string_equal(trace_of(w, &calls), "hand stop a; hand commit b; hand start b; ");
	/* A controller that is off stays off, and a reload of the same configuration does not stop
	 * it again. */
	forget_trace(w);
	assert_int_equal(reload(w, in_folder(w, off, conf)).code, 0);
	assert_string_equal(trace_of(w, &calls), "hand commit b; ");
	forget_trace(w);
	assert_int_equal(reload(w, in_folder(w, on, conf)).code, 0);
	assert_string_equal(trace_of(w, &calls), "hand commit a; ");
}

/* A reload after which the machine has nothing for it any more: it is switched off, and on again by
 * the next one. */
static void test_nothing_any_more(void **state)
{
	struct world *w = *state;
	char conf[CONF_MAX];
	struct calls calls;
	struct controller_status status;
	static const char on[] = PUPPET "controllers: [hand]\nhand: {env: a, trace: $/trace}\n";
	world_configure(w, in_folder(w, on, conf));
	world_must_start(w);
	forget_trace(w);
	assert_int_equal(reload(w, in_folder(w,
					     PUPPET "controllers: [hand]\nhand: {env: b, prepare: "
						    "'95 all gone', trace: $/trace}\n",
					     conf))
				 .code,
			 0);
	pipeline_controller(w->p, 0, &status);
	assert_false(status.running);
	assert_string_equal(status.error, "all gone");
	assert_string_equal(trace_of(w, &calls), "hand stop a; ");
	/* A failed controller gets no more calls. */
	struct reply reply;
	assert_int_equal(box_begin(w, &(struct box){.name = "a"}, &reply), 0);
	assert_int_equal(reply.extras->n, 0);
	reply_sent(w->p, &reply, false);
	forget_trace(w);
	assert_int_equal(reload(w, in_folder(w, on, conf)).code, 0);
	pipeline_controller(w->p, 0, &status);
	assert_true(status.running);
	assert_string_equal(status.error, "");
	assert_string_equal(trace_of(w, &calls), "hand commit a; hand start a; ");
}

/* Checks that dropped controllers stop in the order of the list, and other controllers get no
 * calls. */
static void test_dropped(void **state)
{
	struct world *w = *state;
	char conf[CONF_MAX];
	struct calls calls;
	world_configure(
		w, in_folder(w,
			     PUPPET
			     "controllers: [hand, hand2, hand3]\nhand: {env: a, trace: $/trace}\n"
			     "hand2: {env: a2, trace: $/trace}\nhand3: {env: a3, trace: $/trace}\n",
			     conf));
	world_must_start(w);
	forget_trace(w);
	assert_int_equal(reload(w, in_folder(w,
					     PUPPET "controllers: [hand2]\nhand2: {env: b2, trace: "
						    "$/trace}\n",
					     conf))
				 .code,
			 0);
	assert_string_equal(trace_of(w, &calls), "hand stop a; hand3 stop a3; hand2 commit b2; ");
	assert_int_equal(pipeline_n_controllers(w->p), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_step_refused),
		bare_test(test_switched_off),
		bare_test(test_nothing_any_more),
		bare_test(test_dropped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
