/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline's knowledge of pod devices: when it requests them, how it handles answers that are
 * late, repeated or missing, how long a request waits, and its reports to modules and to users. The
 * clock of this file stands still unless a test moves it.
 */
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "test/unit/t_world.h"

#include "core/nri-rpd/pipeline/wait/devices.h"
#include "core/lib/util/clock.h"

#define START_MS 1000000u
#define NS_PER_MS UINT64_C(1000000)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t now_ms = START_MS;

uint64_t clock_ns(void)
{
	return now_ms * NS_PER_MS;
}

uint64_t clock_us(void)
{
	return now_ms * 1000u;
}

uint64_t clock_ms(void)
{
	return now_ms;
}

uint64_t clock_wall_ns(void)
{
	return now_ms * NS_PER_MS;
}

/* ---- the source ---- */

struct source {
	struct world *w;
	unsigned n_pod, n_all, n_ended;
	unsigned told_before; /* number of notifications before the test */
	rp_pod last;
	int refuse_pod, refuse_all;
	char names[128]; /* names of the pods requested so far, and of ended pods after a "!" */
};

static struct source source;

static void note_name(const char *mark, const char *ns, const char *name)
{
	size_t used = strlen(source.names);
	assert_string_equal(ns, "default");
	(void)snprintf(source.names + used, sizeof source.names - used, "%s%s ", mark, name);
}

static int ask_pod(void *arg, rp_pod pod, const char *ns, const char *name)
{
	struct source *s = arg;
	note_name("", ns, name);
	s->n_pod++;
	s->last = pod;
	return s->refuse_pod;
}

static int ask_all(void *arg)
{
	struct source *s = arg;
	s->n_all++;
	return s->refuse_all;
}

static void pod_ended(void *arg, const char *ns, const char *name)
{
	struct source *s = arg;
	note_name("!", ns, name);
	s->n_ended++;
}

/* Returns how often a deferred request would have been checked again. */
static unsigned n_told(void)
{
	return source.w->p->wait.hold.told - source.told_before;
}

static const struct device_source the_source = {
	.ask_pod = ask_pod, .ask_all = ask_all, .pod_ended = pod_ended, .arg = &source};

static int setup(void **state)
{
	int r = world_setup(state);
	now_ms = START_MS;
	source = (struct source){.w = *state};
	source.told_before = source.w->p->wait.hold.told;
	return r;
}

static int teardown(void **state)
{
	struct timespec now;
	/* the clock goes again: the end waits for the disk's worker by it */
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	return world_teardown(state);
}

/* ---- short words ---- */

static const struct box web = {.name = "web", .alloc = "cpus 1"},
			db = {.name = "db", .alloc = "cpus 2"};
static const uint32_t node_0[] = {0}, nodes_1_0[] = {1, 0}, beyond[] = {1, RP_NODES_MAX};

static void turn_on(struct world *w)
{
	assert_int_equal(pipeline_devices_on(w->p, &the_source), 0);
}

static void reachable(struct world *w)
{
	turn_on(w);
	pipeline_devices_reachable(w->p, true, "");
}

static void synchronized(struct world *w)
{
	(void)boxes_sync(w, NULL, 0);
}

static void run_pod(struct world *w, const struct box *b)
{
	struct box_desc d;
	box_describe(b, &d);
	request_begin(w->p, REQ_RUN_POD);
	assert_int_equal(request_run_pod(w->p, &d.pod, &w->err), 0);
	reply_sent(w->p, NULL, false);
}

/* Connects the agent and requests the devices of the first pod. */
static struct world *asked(void **state)
{
	struct world *w = *state;
	reachable(w);
	run_pod(w, &web);
	return w;
}

static void end_pod(struct world *w, const struct box *b, bool remove)
{
	struct box_desc d;
	box_describe(b, &d);
	request_begin(w->p, remove ? REQ_REMOVE_POD : REQ_STOP_POD);
	if (remove)
		request_remove_pod(w->p, &d.pod);
	else
		request_stop_pod(w->p, &d.pod);
	reply_sent(w->p, NULL, false);
}

static uint64_t wait_of(struct world *w, const struct box *b)
{
	struct box_desc d;
	box_describe(b, &d);
	return devices_wait(w->p, &d.pod, "c", START_MS * NS_PER_MS);
}

static rp_pod handle_of(struct world *w, const struct box *b)
{
	struct box_desc d;
	box_describe(b, &d);
	const struct pod *pod = cache_pod(pipeline_cache(w->p), d.pod_id);
	assert_non_null(pod);
	return pod->handle;
}

static struct devices_status status_of(struct world *w)
{
	struct devices_status s;
	pipeline_devices_status(w->p, &s);
	return s;
}

static void expect_pods(struct world *w, unsigned asked, unsigned known, unsigned failed)
{
	struct devices_status s = status_of(w);
	assert_int_equal(s.n_asked, asked);
	assert_int_equal(s.n_known, known);
	assert_int_equal(s.n_failed, failed);
}

/* Returns "RESOURCE@NODES RESOURCE@NODES", as a module reads them one by one. */
static const char *devices_of(struct world *w, const struct box *b)
{
	static char all[256];
	struct rp_pod_resource_info r;
	char nodes[64];
	size_t used = 0;
	const struct ctr *ctr = box_ctr(w, b->name);
	assert_non_null(ctr);
	all[0] = '\0';
	for (uint32_t i = 0; w->p->env.pod_resource(ctr, i, &r, w->p->env.arg) == 0; i++) {
		(void)rp_ids_format(r.nodes, nodes, sizeof nodes);
		used += (size_t)snprintf(all + used, sizeof all - used, "%s%s@%s", i ? " " : "",
					 r.resource, nodes);
	}
	return all;
}

static void expect_trail(struct world *w, const struct box *b, const char *part)
{
	const struct ctr *ctr = box_ctr(w, b->name);
	assert_non_null(ctr);
	if (!strstr(ctr->trail.text ? ctr->trail.text : "", part))
		fail_msg("'%s' does not tell '%s'", ctr->trail.text ? ctr->trail.text : "", part);
}

static void expect_no_word(struct world *w, const struct box *b, const char *part)
{
	const struct ctr *ctr = box_ctr(w, b->name);
	assert_non_null(ctr);
	if (ctr->trail.text && strstr(ctr->trail.text, part))
		fail_msg("'%s' tells '%s'", ctr->trail.text, part);
}

/* ---- off, and with nobody to ask ---- */

static void test_off_there_is_nothing(void **state)
{
	struct world *w = *state;
	const struct device_desc nic = {
		.ctr = "c", .resource = "x.com/nic", .nodes = node_0, .n_nodes = 1};
	assert_false(pipeline_devices_are_on(w->p));
	assert_null(w->p->env.pod_resource);
	run_pod(w, &web);
	assert_int_equal(wait_of(w, &web), 0);
	assert_int_equal(devices_wait_all(w->p, true, START_MS * NS_PER_MS), 0);
	/* messages without a request are ignored */
	pipeline_devices_tell(w->p, handle_of(w, &web), &nic, 1);
	pipeline_devices_fail(w->p, handle_of(w, &web), "no");
	pipeline_devices_listed(w->p, NULL, NULL, 0);
	pipeline_devices_not_listed(w->p, "no");
	pipeline_devices_reachable(w->p, true, "");
	pipeline_devices_off(w->p);
	assert_false(status_of(w).on);
	assert_int_equal(status_of(w).failed, 0);
	assert_int_equal(n_told(), 0);
	box_run(w, &web);
	expect_no_word(w, &web, "devices");
	end_pod(w, &web, false);
}

static void test_nobody_to_ask(void **state)
{
	struct world *w = *state;
	turn_on(w);
	assert_true(status_of(w).on);
	assert_false(status_of(w).reachable);
	assert_string_equal(status_of(w).why_not, "no agent has connected yet");
	run_pod(w, &web);
	assert_int_equal(wait_of(w, &web), 0);
	assert_int_equal(devices_wait_all(w->p, true, START_MS * NS_PER_MS), 0);
	assert_int_equal(source.n_pod + source.n_all, 0);
	expect_pods(w, 0, 0, 0);
	box_run(w, &web);
	expect_trail(w, &web, "devices of its pod are unknown: no agent has connected yet");
	end_pod(w, &web, false);
	assert_int_equal(source.n_ended, 0);
}

/* ---- a pod ---- */

static void test_a_pod_is_asked_for_once(void **state)
{
	struct world *w = asked(state);
	assert_string_equal(source.names, "web ");
	assert_int_equal(source.last, handle_of(w, &web));
	run_pod(w, &web); /* told again */
	(void)wait_of(w, &web);
	assert_int_equal(source.n_pod, 1);
	expect_pods(w, 1, 0, 0);
	pipeline_devices_tell(w->p, source.last, NULL, 0);
	assert_int_equal(n_told(), 1);
	expect_pods(w, 0, 1, 0);
	assert_int_equal(wait_of(w, &web), 0);
	assert_int_equal(source.n_pod, 1);
	assert_int_equal(status_of(w).asked, 1);
	assert_int_equal(status_of(w).answered, 1);
}

static void test_a_creation_asks_when_nobody_has(void **state)
{
	struct world *w = *state;
	const struct box nameless = {.name = "", .pod_id = "p-x"};
	reachable(w);
	assert_int_equal(wait_of(w, &web), START_MS + DEVICES_CREATE_WAIT_MS);
	assert_string_equal(source.names, "web ");
	assert_int_equal(source.last, handle_of(w, &web)); /* the pod is there now */
	assert_int_equal(wait_of(w, &nameless), 0); /* a pod without a name is reported elsewhere */
	assert_int_equal(source.n_pod, 1);
}

static void test_each_container_has_its_own(void **state)
{
	struct world *w = *state;
	const struct device_desc list[] = {
		{.ctr = "other", .resource = "x.com/gpu", .nodes = node_0, .n_nodes = 1},
		{.ctr = "c", .resource = "x.com/nic", .nodes = nodes_1_0, .n_nodes = 2},
		{.ctr = "c", .resource = "x.com/disk", .nodes = beyond, .n_nodes = 2},
		{.ctr = "other", .resource = "x.com/nic", .nodes = node_0, .n_nodes = 1}};
	reachable(w);
	run_pod(w, &web);
	pipeline_devices_tell(w->p, source.last, list, COUNT(list));
	box_run(w, &web);
	/* nodes that no machine can have are left out */
	assert_string_equal(devices_of(w, &web), "x.com/nic@0-1 x.com/disk@1");
	expect_trail(w, &web, "the kubelet assigned x.com/nic at NUMA nodes 0-1");
	expect_trail(w, &web, "the kubelet assigned x.com/disk at NUMA nodes 1");
	expect_no_word(w, &web, "gpu");
	expect_no_word(w, &web, "not known");
}

static void test_another_pod_has_none(void **state)
{
	struct world *w = *state;
	const struct device_desc nic = {
		.ctr = "c", .resource = "x.com/nic", .nodes = node_0, .n_nodes = 1};
	reachable(w);
	run_pod(w, &web);
	rp_pod first = source.last;
	run_pod(w, &db);
	pipeline_devices_tell(w->p, first, &nic, 1);
	pipeline_devices_tell(w->p, source.last, NULL, 0);
	box_run(w, &web);
	box_run(w, &db);
	assert_string_equal(devices_of(w, &web), "x.com/nic@0");
	assert_string_equal(devices_of(w, &db), "");
	expect_no_word(w, &db, "kubelet");
}

static void test_answers_that_nobody_waits_for(void **state)
{
	struct world *w = *state;
	const struct device_desc
		nic = {.ctr = "c", .resource = "x.com/nic", .nodes = node_0, .n_nodes = 1},
		gpu = {.ctr = "c", .resource = "x.com/gpu", .nodes = node_0, .n_nodes = 1};
	reachable(w);
	run_pod(w, &web);
	pipeline_devices_tell(w->p, source.last + 1000, &gpu, 1); /* there is no such pod */
	assert_int_equal(n_told(), 0);
	pipeline_devices_tell(w->p, source.last, &nic, 1);
	pipeline_devices_tell(w->p, source.last, &gpu, 1); /* a second time */
	pipeline_devices_fail(w->p, source.last, "too late");
	assert_int_equal(n_told(), 1);
	expect_pods(w, 0, 1, 0);
	assert_string_equal(status_of(w).last_error, "");
	box_run(w, &web);
	assert_string_equal(devices_of(w, &web), "x.com/nic@0");
	rp_pod gone = source.last;
	end_pod(w, &web, false);
	pipeline_devices_tell(w->p, gone, &gpu, 1);
	expect_pods(w, 0, 0, 0);
}

/* ---- failure ---- */

static void test_a_failure_is_told(void **state)
{
	struct world *w = asked(state);
	pipeline_devices_fail(w->p, source.last, "the kubelet does not know the pod");
	assert_int_equal(n_told(), 1);
	expect_pods(w, 0, 0, 1);
	assert_int_equal(status_of(w).failed, 1);
	assert_string_equal(status_of(w).last_error, "the kubelet does not know the pod");
	assert_int_equal(wait_of(w, &web), 0);
	box_run(w, &web);
	expect_trail(w, &web, "devices of its pod are unknown: the kubelet does not know the pod");
	assert_string_equal(devices_of(w, &web), "");
}

static void test_who_cannot_be_asked_at_all(void **state)
{
	struct world *w = *state;
	reachable(w);
	source.refuse_pod = -ENOTCONN;
	assert_int_equal(wait_of(w, &web), 0);
	expect_pods(w, 0, 0, 1);
	assert_string_equal(status_of(w).last_error, strerror(ENOTCONN));
	assert_int_equal(n_told(), 0); /* no request is waiting */
}

/* Checks that the devices of a failed pod are requested again DEVICES_RETRY_MS later, and not
 * earlier. */
static void test_a_failed_pod_is_asked_for_again(void **state)
{
	static const struct {
		uint64_t later_ms;
		unsigned n_pod;
	} cases[] = {{0, 1}, {1, 1}, {DEVICES_RETRY_MS - 1, 1}, {DEVICES_RETRY_MS, 2}};
	struct world *w = asked(state);
	pipeline_devices_fail(w->p, source.last, "no");
	for (unsigned i = 0; i < COUNT(cases); i++) {
		now_ms = START_MS + cases[i].later_ms;
		(void)wait_of(w, &web);
		assert_int_equal(source.n_pod, cases[i].n_pod);
	}
	expect_pods(w, 1, 0, 0);
	run_pod(w, &web); /* which is no reason to ask a third time */
	assert_int_equal(source.n_pod, 2);
	pipeline_devices_tell(w->p, source.last, NULL, 0);
	expect_pods(w, 0, 1, 0);
}

static void test_a_pod_that_is_told_again_is_asked_for_again(void **state)
{
	struct world *w = asked(state);
	pipeline_devices_fail(w->p, source.last, "no");
	run_pod(w, &web);
	assert_int_equal(source.n_pod, 2);
	expect_pods(w, 1, 0, 0);
}

/* ---- waiting ---- */

/* Checks that a creation waits at most DEVICES_CREATE_WAIT_MS, and at most half of the runtime's
 * timeout, since its request. */
static void test_how_long_a_creation_waits(void **state)
{
	static const struct {
		uint32_t timeout_ms; /* the runtime's */
		uint64_t now_ms; /* after the request came */
		uint64_t until_ms; /* after that; 0: not at all */
	} cases[] = {{0, 0, 500},     {0, 499, 500},	{0, 500, 0},   {0, 501, 0},
		     {2000, 0, 500},  {1000, 0, 500},	{999, 0, 499}, {600, 0, 300},
		     {600, 299, 300}, {600, 300, 0},	{2, 0, 1},     {1, 0, 0},
		     {10000, 0, 500}, {60000, 400, 500}};
	struct world *w = *state;
	unsigned n_late = 0;
	reachable(w);
	run_pod(w, &web);
	for (unsigned i = 0; i < COUNT(cases); i++) {
		w->p->runtime.request_timeout_ms = cases[i].timeout_ms;
		now_ms = START_MS + cases[i].now_ms;
		uint64_t until = wait_of(w, &web);
		n_late += cases[i].until_ms == 0;
		if (until != (cases[i].until_ms ? START_MS + cases[i].until_ms : 0))
			fail_msg("case %u: until %lld", i, (long long)until - START_MS);
		assert_int_equal(status_of(w).late, n_late);
	}
	box_run(w, &web);
	expect_trail(w, &web, "devices of its pod are unknown: the agent did not reply in time");
}

static void test_how_long_a_synchronization_waits(void **state)
{
	static const struct {
		uint32_t timeout_ms;
		uint64_t now_ms, until_ms;
	} cases[] = {{0, 0, 1000},    {0, 999, 1000},	   {0, 1000, 0},
		     {2000, 0, 1000}, {10000, 0, 2000},	   {4000, 0, 2000},
		     {3998, 0, 1999}, {10000, 1999, 2000}, {10000, 2000, 0}};
	struct world *w = *state;
	reachable(w);
	for (unsigned i = 0; i < COUNT(cases); i++) {
		w->p->runtime.request_timeout_ms = cases[i].timeout_ms;
		now_ms = START_MS + cases[i].now_ms;
		uint64_t until = devices_wait_all(w->p, i == 0, START_MS * NS_PER_MS);
		if (until != (cases[i].until_ms ? START_MS + cases[i].until_ms : 0))
			fail_msg("case %u: until %lld", i, (long long)until - START_MS);
	}
	assert_int_equal(source.n_all, 1);
	assert_int_equal(status_of(w).late, 2);
}

static void test_a_synchronization_that_nobody_answers_does_not_wait(void **state)
{
	struct world *w = *state;
	reachable(w);
	source.refuse_all = -ENOTCONN;
	assert_int_equal(devices_wait_all(w->p, true, START_MS * NS_PER_MS), 0);
	assert_int_equal(source.n_all, 1);
	assert_int_equal(devices_wait_all(w->p, false, START_MS * NS_PER_MS), 0);
	assert_int_equal(source.n_all, 1); /* once for each beginning */
	assert_int_equal(status_of(w).late, 0);
}

/* ---- lists ---- */

static const struct device_desc
	web_nic = {.ctr = "c", .resource = "x.com/nic", .nodes = node_0, .n_nodes = 1},
	db_gpu = {.ctr = "c", .resource = "x.com/gpu", .nodes = nodes_1_0, .n_nodes = 2};

/* Lists the devices of pods in no particular order. */
static void list_both(struct world *w)
{
	static struct pod_devices_desc pods[] = {{"default", "web", &web_nic, 1},
						 {"zoo", "db", &web_nic, 1},
						 {"default", "db", &db_gpu, 1},
						 {"another", "web", &db_gpu, 1}};
	pipeline_devices_listed(w->p, NULL, pods, COUNT(pods));
}

/* Checks a list of devices that arrives before the runtime's list of pods. */
static void test_a_list_before_the_pods(void **state)
{
	struct world *w = *state;
	struct box boxes[] = {web, db, {.name = "bare", .alloc = "cpus 3"}};
	for (unsigned i = 0; i < COUNT(boxes); i++)
		boxes[i].state = RP_STATE_RUNNING;
	reachable(w);
	assert_int_equal(source.n_all, 0); /* the synchronization asks */
	assert_int_not_equal(devices_wait_all(w->p, true, START_MS * NS_PER_MS), 0);
	assert_int_equal(source.n_all, 1);
	list_both(w);
	assert_int_equal(n_told(), 1);
	assert_int_equal(devices_wait_all(w->p, false, START_MS * NS_PER_MS), 0);
	expect_pods(w, 0, 0, 0);
	(void)boxes_sync(w, boxes, COUNT(boxes));
	expect_pods(w, 0, 3, 0);
	assert_string_equal(devices_of(w, &web), "x.com/nic@0");
	assert_string_equal(devices_of(w, &db), "x.com/gpu@0-1");
	assert_string_equal(devices_of(w, &boxes[2]), "");
	assert_int_equal(source.n_pod, 0);
}

static void test_a_list_of_another_time_is_not_used(void **state)
{
	struct world *w = *state;
	struct box box = web;
	box.state = RP_STATE_RUNNING;
	reachable(w);
	(void)devices_wait_all(w->p, true, START_MS * NS_PER_MS);
	list_both(w);
	source.refuse_all = -ENOTCONN; /* the next time there is no list */
	assert_int_equal(devices_wait_all(w->p, true, START_MS * NS_PER_MS), 0);
	(void)boxes_sync(w, &box, 1);
	expect_pods(w, 0, 0, 0);
	assert_string_equal(devices_of(w, &web), "");
}

static void test_a_list_ends_with_the_connection(void **state)
{
	struct world *w = *state;
	struct box box = web;
	box.state = RP_STATE_RUNNING;
	reachable(w);
	(void)devices_wait_all(w->p, true, START_MS * NS_PER_MS);
	list_both(w);
	pipeline_devices_reachable(w->p, false, "the agent disconnected");
	(void)boxes_sync(w, &box, 1);
	assert_string_equal(devices_of(w, &web), "");
	/* A list sent before the disconnection is ignored, too. */
	list_both(w);
	assert_string_equal(devices_of(w, &web), "");
}

static void test_who_connects_later_is_asked_for_all(void **state)
{
	struct world *w = *state;
	turn_on(w);
	synchronized(w);
	box_run(w, &web);
	box_run(w, &db);
	pipeline_devices_reachable(w->p, true, "");
	assert_int_equal(source.n_all, 1);
	pipeline_devices_reachable(w->p, true, ""); /* while it is under way */
	assert_int_equal(source.n_all, 1);
	list_both(w);
	assert_string_equal(devices_of(w, &web), "x.com/nic@0");
	assert_string_equal(devices_of(w, &db), "x.com/gpu@0-1");
	list_both(w); /* a list that was not requested */
	assert_int_equal(status_of(w).answered, 2);
}

/* Checks that a pod that was requested by name waits for that answer. The list does not affect
 * it, nor does it affect ended pods. */
static void test_a_list_leaves_alone_whom_it_does_not_concern(void **state)
{
	struct world *w = *state;
	const struct device_desc own = {
		.ctr = "c", .resource = "x.com/own", .nodes = node_0, .n_nodes = 1};
	struct box bare = {.name = "bare", .alloc = "cpus 3"};
	reachable(w);
	synchronized(w);
	run_pod(w, &web);
	rp_pod asked = source.last;
	run_pod(w, &bare);
	pipeline_devices_tell(w->p, source.last, &own, 1);
	box_run(w, &bare);
	box_run(w, &web);
	box_run(w, &db);
	end_pod(w, &db, false);
	assert_int_not_equal(devices_wait_all(w->p, true, START_MS * NS_PER_MS), 0);
	list_both(w);
	expect_pods(w, 1, 1, 0);
	assert_string_equal(devices_of(w, &web), "");
	assert_string_equal(devices_of(w, &bare), "x.com/own@0"); /* not listed, but known */
	pipeline_devices_tell(w->p, asked, &own, 1);
	assert_string_equal(devices_of(w, &web), "x.com/own@0");
}

static void test_no_list(void **state)
{
	struct world *w = *state;
	reachable(w);
	(void)devices_wait_all(w->p, true, START_MS * NS_PER_MS);
	pipeline_devices_not_listed(w->p, "the kubelet is not there");
	assert_int_equal(n_told(), 1);
	assert_int_equal(devices_wait_all(w->p, false, START_MS * NS_PER_MS), 0);
	assert_string_equal(status_of(w).last_error, "the kubelet is not there");
	assert_int_equal(status_of(w).failed, 1);
	/* an error for a list that was not requested */
	pipeline_devices_not_listed(w->p, "a second time");
	assert_int_equal(status_of(w).failed, 1);
}

/* ---- ends ---- */

static void test_a_pod_that_ends_is_forgotten_by_both(void **state)
{
	struct world *w = *state;
	const struct device_desc nic = {
		.ctr = "c", .resource = "x.com/nic", .nodes = node_0, .n_nodes = 1};
	reachable(w);
	run_pod(w, &web);
	pipeline_devices_tell(w->p, source.last, &nic, 1);
	end_pod(w, &web, false);
	assert_string_equal(source.names, "web !web ");
	end_pod(w, &web, true); /* the pod was already forgotten */
	assert_int_equal(source.n_ended, 1);
	expect_pods(w, 0, 0, 0);
	run_pod(w, &db);
	end_pod(w, &db, true); /* without a stop before */
	assert_string_equal(source.names, "web !web db !db ");
}

static void test_the_agent_goes(void **state)
{
	struct world *w = *state;
	const struct device_desc nic = {
		.ctr = "c", .resource = "x.com/nic", .nodes = node_0, .n_nodes = 1};
	reachable(w);
	run_pod(w, &web);
	pipeline_devices_tell(w->p, source.last, &nic, 1);
	run_pod(w, &db);
	pipeline_devices_reachable(w->p, false, "the agent disconnected");
	expect_pods(w, 0, 1, 1);
	assert_int_equal(n_told(), 2);
	assert_string_equal(status_of(w).why_not, "the agent disconnected");
	assert_string_equal(status_of(w).last_error, "the agent disconnected");
	box_run(w, &web);
	assert_string_equal(devices_of(w, &web), "x.com/nic@0"); /* known devices are retained */
	expect_no_word(w, &web, "not known");
	assert_int_equal(wait_of(w, &db), 0);
	box_run(w, &db);
	expect_trail(w, &db, "devices of its pod are unknown: the agent disconnected");
	end_pod(w, &web, false);
	assert_int_equal(source.n_ended, 0); /* the agent is disconnected, so it is not notified */
	pipeline_devices_reachable(w->p, true, "");
	assert_string_equal(status_of(w).why_not, "");
	run_pod(w, &db);
	expect_pods(w, 1, 0, 0);
}

static void test_turned_off_and_on(void **state)
{
	struct world *w = *state;
	const struct device_desc nic = {
		.ctr = "c", .resource = "x.com/nic", .nodes = node_0, .n_nodes = 1};
	reachable(w);
	run_pod(w, &web);
	pipeline_devices_tell(w->p, source.last, &nic, 1);
	box_run(w, &web);
	pipeline_devices_off(w->p);
	assert_int_equal(n_told(), 2); /* requests no longer wait for devices */
	assert_null(w->p->env.pod_resource);
	turn_on(w);
	assert_string_equal(devices_of(w, &web), ""); /* no devices are retained */
	assert_string_equal(status_of(w).why_not, "no agent has connected yet");
	pipeline_devices_reachable(w->p, true, "");
	run_pod(w, &db);
	turn_on(w); /* while it is on: from the beginning */
	expect_pods(w, 0, 0, 0);
	assert_false(status_of(w).reachable);
	assert_int_equal(status_of(w).asked, 0);
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(test_off_there_is_nothing),
		test(test_nobody_to_ask),
		test(test_a_pod_is_asked_for_once),
		test(test_a_creation_asks_when_nobody_has),
		test(test_each_container_has_its_own),
		test(test_another_pod_has_none),
		test(test_answers_that_nobody_waits_for),
		test(test_a_failure_is_told),
		test(test_who_cannot_be_asked_at_all),
		test(test_a_failed_pod_is_asked_for_again),
		test(test_a_pod_that_is_told_again_is_asked_for_again),
		test(test_how_long_a_creation_waits),
		test(test_how_long_a_synchronization_waits),
		test(test_a_synchronization_that_nobody_answers_does_not_wait),
		test(test_a_list_before_the_pods),
		test(test_a_list_of_another_time_is_not_used),
		test(test_a_list_ends_with_the_connection),
		test(test_who_connects_later_is_asked_for_all),
		test(test_a_list_leaves_alone_whom_it_does_not_concern),
		test(test_no_list),
		test(test_a_pod_that_ends_is_forgotten_by_both),
		test(test_the_agent_goes),
		test(test_turned_off_and_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
