/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait for devices: which requests wait, the order of the replies, and the end of the
 * wait. The test plays the device source and answers when it chooses. Only the tests of time limits
 * depend on the clock, and they only wait.
 */
#include "core/nri-rpd/pipeline/pipeline.h"
#include "test/unit/t_front.h"

#include "core/nri-rpd/pipeline/wait/devices.h"

#define ASKED_MAX 8u
#define ORDER_MAX 256u

struct asking {
	struct runtime *r;
	unsigned n_pods, n_all, n_ended;
	rp_pod pods[ASKED_MAX];
	int refuse; /* result of the ask_* functions */
	char order[ORDER_MAX]; /* names of the answers, as they came */
};

static int ask_pod(void *arg, rp_pod pod, const char *ns, const char *name)
{
	struct asking *a = arg;
	assert_string_equal(ns, "default");
	assert_true(*name != '\0');
	if (a->refuse)
		return a->refuse;
	assert_true(a->n_pods < ASKED_MAX);
	a->pods[a->n_pods++] = pod;
	return 0;
}

static int ask_all(void *arg)
{
	struct asking *a = arg;
	a->n_all += !a->refuse;
	return a->refuse;
}

static void pod_ended(void *arg, const char *ns, const char *name)
{
	((struct asking *)arg)->n_ended++;
}

static void turn_on(struct asking *a, struct runtime *r)
{
	const struct device_source source = {
		.ask_pod = ask_pod, .ask_all = ask_all, .pod_ended = pod_ended, .arg = a};
	*a = (struct asking){.r = r};
	assert_int_equal(pipeline_devices_on(r->w->p, &source), 0);
	pipeline_devices_reachable(r->w->p, true, "");
}

static struct runtime *asking_runtime(struct asking *a)
{
	struct runtime *r = connected();
	turn_on(a, r);
	/* The pod that existed before is listed. */
	assert_int_equal(a->n_all, 1);
	pipeline_devices_listed(r->w->p, NULL, NULL, 0);
	return r;
}

/* ---- requests that do not wait for each other ---- */

struct request_sent {
	struct asking *asking;
	const char *name;
	bool done;
	int error;
};

static void note_answer(const struct rpc_result *res, void *arg)
{
	struct request_sent *s = arg;
	size_t used = strlen(s->asking->order);
	s->done = true;
	s->error = res->error;
	(void)snprintf(s->asking->order + used, ORDER_MAX - used, "%s ", s->name);
}

static void send_request(struct asking *a, struct request_sent *s, const char *name,
			 const char *method, const ProtobufCMessage *msg)
{
	*s = (struct request_sent){.asking = a, .name = name};
	assert_int_equal(rpc_call(trunk_rpc(a->r->trunk, MUX_CONN_PLUGIN), NRI_PLUGIN_SERVICE,
				  method, msg, 0, note_answer, s),
			 0);
}

static void send_create(struct asking *a, struct request_sent *s, const char *name, const char *pod,
			const char *script)
{
	Nri__CreateContainerRequest m = NRI__CREATE_CONTAINER_REQUEST__INIT;
	struct objects o;
	describe(&o, pod, script);
	m.pod = &o.pod;
	m.container = &o.ctr;
	send_request(a, s, name, "CreateContainer", &m.base);
}

static void send_run(struct asking *a, struct request_sent *s, const char *name, const char *pod)
{
	Nri__RunPodSandboxRequest m = NRI__RUN_POD_SANDBOX_REQUEST__INIT;
	struct objects o;
	describe(&o, pod, "cpus 1");
	m.pod = &o.pod;
	send_request(a, s, name, "RunPodSandbox", &m.base);
}

static bool is_done(struct world *w, void *arg)
{
	return ((struct request_sent *)arg)->done;
}

static void await(struct asking *a, struct request_sent *s)
{
	world_until(a->r->w, is_done, s);
}

static bool has_asked(struct world *w, void *arg)
{
	return ((struct asking *)arg)->n_pods > 0;
}

static bool is_waiting(struct world *w, void *arg)
{
	return ((struct runtime *)arg)->nri->held;
}

static void tell(struct asking *a, unsigned i)
{
	static const uint32_t nodes[] = {1};
	const struct device_desc device = {
		.ctr = "c", .resource = "x.com/nic", .nodes = nodes, .n_nodes = 1};
	pipeline_devices_tell(a->r->w->p, a->pods[i], &device, 1);
}

/* ---- tests ---- */

static void test_without_devices_nothing_waits(void **state)
{
	struct runtime *r = connected();
	assert_false(pipeline_devices_are_on(r->w->p));
	create_named(r, "a", "cpus 1");
	assert_false(r->nri->held || r->nri->waiting);
	assert_null(r->w->p->env.pod_resource);
	runtime_free(r);
}

static void test_a_creation_waits_for_the_answer(void **state)
{
	struct asking a;
	struct runtime *r = asking_runtime(&a);
	struct request_sent run, create;
	send_run(&a, &run, "run", "a");
	await(&a, &run); /* answered at once, and requests the devices of the pod */
	assert_int_equal(a.n_pods, 1);
	send_create(&a, &create, "create", "a", "cpus 1");
	world_until(r->w, is_waiting, r);
	assert_false(create.done);
	assert_null(cache_ctr(pipeline_cache(r->w->p), "c-a"));
	tell(&a, 0);
	await(&a, &create);
	assert_int_equal(create.error, 0);
	struct ctr *ctr = cache_ctr(pipeline_cache(r->w->p), "c-a");
	assert_non_null(ctr);
	assert_non_null(strstr(ctr->trail.text, "the kubelet assigned x.com/nic at NUMA nodes 1"));
	assert_int_equal(a.n_pods, 1);
	/* The next one of the pod is not kept waiting. */
	struct rp_pod_resource_info info = {.size = sizeof info};
	assert_int_equal(r->w->p->env.pod_resource(ctr, 0, &info, r->w->p), 0);
	assert_string_equal(info.resource, "x.com/nic");
	assert_true(rp_ids_has(info.nodes, 1) && rp_ids_count(info.nodes) == 1);
	assert_int_equal(r->w->p->env.pod_resource(ctr, 1, &info, r->w->p), -ENOENT);
	runtime_free(r);
}

static void test_a_pod_that_nobody_told_of_is_asked_for(void **state)
{
	struct asking a;
	struct runtime *r = asking_runtime(&a);
	struct request_sent create;
	send_create(&a, &create, "create", "a", "cpus 1");
	world_until(r->w, has_asked, &a);
	tell(&a, 0);
	await(&a, &create);
	assert_int_equal(create.error, 0);
	runtime_free(r);
}

static void test_later_requests_stay_behind(void **state)
{
	struct asking a;
	struct runtime *r = asking_runtime(&a);
	struct request_sent create, run, stop, other, last;
	Nri__StopContainerRequest m = NRI__STOP_CONTAINER_REQUEST__INIT;
	struct objects o;
	send_create(&a, &create, "create-a", "a", "cpus 1");
	world_until(r->w, is_waiting, r);
	send_run(&a, &run, "run-b", "b");
	describe(&o, "a", "cpus 1");
	m.pod = &o.pod;
	m.container = &o.ctr;
	send_request(&a, &stop, "stop-a", "StopContainer", &m.base);
	send_create(&a, &other, "create-b", "b", "cpus 2");
	send_run(&a, &last, "run-c", "c");
	/* The requests are processed in order, so the devices of b are not requested yet. */
	assert_int_equal(a.n_pods, 1);
	tell(&a, 0);
	await(&a, &stop);
	world_until(r->w, is_waiting, r);
	assert_int_equal(a.n_pods, 2); /* b's */
	assert_false(other.done);
	assert_false(last.done);
	tell(&a, 1);
	await(&a, &last);
	assert_string_equal(a.order, "create-a run-b stop-a create-b run-c ");
	assert_int_equal(a.n_pods, 3);
	runtime_free(r);
}

static void test_no_answer_is_waited_for_only_so_long(void **state)
{
	struct asking a;
	struct runtime *r = asking_runtime(&a);
	struct request_sent first, second;
	send_create(&a, &first, "first", "a", "cpus 1");
	send_create(&a, &second, "second", "b", "cpus 2");
	await(&a, &first);
	await(&a, &second);
	assert_string_equal(a.order, "first second ");
	assert_int_equal(first.error | second.error, 0);
	struct ctr *ctr = cache_ctr(pipeline_cache(r->w->p), "c-a");
	assert_non_null(strstr(ctr->trail.text, "the agent did not reply in time"));
	/* The second one's time began when it came, too: it has not waited by itself any more. */
	struct devices_status s;
	pipeline_devices_status(r->w->p, &s);
	assert_int_equal(s.late, 2);
	/* The answer still counts for who comes later. */
	tell(&a, 0);
	struct rp_pod_resource_info info = {.size = sizeof info};
	assert_int_equal(r->w->p->env.pod_resource(ctr, 0, &info, r->w->p), 0);
	runtime_free(r);
}

static void check_goes_on(struct asking *a, void (*end)(struct pipeline *p, struct asking *a),
			  const char *says)
{
	struct request_sent create;
	send_create(a, &create, "create", "a", "cpus 1");
	world_until(a->r->w, has_asked, a);
	end(a->r->w->p, a);
	await(a, &create);
	assert_int_equal(create.error, 0);
	const char *trail = cache_ctr(pipeline_cache(a->r->w->p), "c-a")->trail.text;
	if (says)
		assert_non_null(strstr(trail, says));
	else
		assert_null(trail ? strstr(trail, "devices") : NULL);
}

static void end_by_error(struct pipeline *p, struct asking *a)
{
	pipeline_devices_fail(p, a->pods[0], "the kubelet is on holiday");
}

static void end_by_agent(struct pipeline *p, struct asking *a)
{
	pipeline_devices_reachable(p, false, "the agent disconnected");
}

static void end_by_configuration(struct pipeline *p, struct asking *a)
{
	pipeline_devices_off(p);
}

static void test_what_ends_the_waiting(void **state)
{
	static const struct {
		void (*end)(struct pipeline *p, struct asking *a);
		const char *says;
	} rows[] = {{end_by_error, "the kubelet is on holiday"},
		    {end_by_agent, "the agent disconnected"},
		    {end_by_configuration, NULL}};
	for (unsigned i = 0; i < 3; i++) {
		struct asking a;
		struct runtime *r = asking_runtime(&a);
		check_goes_on(&a, rows[i].end, rows[i].says);
		runtime_free(r);
	}
}

static void test_who_cannot_be_asked_is_not_waited_for(void **state)
{
	struct asking a;
	struct runtime *r = asking_runtime(&a);
	a.refuse = -ENOBUFS;
	create_named(r, "a", "cpus 1");
	pipeline_devices_reachable(r->w->p, false, "the agent disconnected");
	create_named(r, "b", "cpus 2");
	assert_false(r->nri->held || r->nri->waiting);
	assert_int_equal(a.n_pods, 0);
	runtime_free(r);
}

static void test_a_connection_that_ends_takes_those_who_wait_with_it(void **state)
{
	struct asking a;
	struct runtime *r = asking_runtime(&a);
	struct request_sent create, run;
	send_create(&a, &create, "create", "a", "cpus 1");
	world_until(r->w, is_waiting, r);
	send_run(&a, &run, "run", "b");
	r->trunk = trunk_free(r->trunk);
	assert_true(create.done && create.error);
	world_until(r->w, is_registered, r);
	assert_false(r->nri->held || r->nri->waiting);
	assert_int_equal(r->nri->waiting_bytes, 0);
	/* The device answer still arrives after its request has ended, and is ignored. */
	tell(&a, 0);
	configure(r);
	assert_null(cache_ctr(pipeline_cache(r->w->p), "c-a"));
	runtime_free(r);
}

static void test_the_front_end_may_end_while_somebody_waits(void **state)
{
	struct asking a;
	struct runtime *r = asking_runtime(&a);
	struct request_sent create;
	send_create(&a, &create, "create", "a", "cpus 1");
	world_until(r->w, is_waiting, r);
	runtime_free(r);
}

static void test_a_pod_that_ends_is_forgotten(void **state)
{
	struct asking a;
	struct runtime *r = asking_runtime(&a);
	struct request_sent run;
	Nri__StopPodSandboxRequest m = NRI__STOP_POD_SANDBOX_REQUEST__INIT;
	struct objects o;
	struct devices_status s;
	send_run(&a, &run, "run", "a");
	await(&a, &run);
	describe(&o, "a", NULL);
	m.pod = &o.pod;
	must(r, "StopPodSandbox", &m.base);
	assert_int_equal(a.n_ended, 1);
	tell(&a, 0); /* the answer is ignored, as its pod has stopped */
	pipeline_devices_status(r->w->p, &s);
	assert_int_equal(s.n_asked + s.n_known + s.n_failed, 0);
	runtime_free(r);
}

/* ---- all pods ---- */

static void send_sync(struct asking *a, struct request_sent *s, const char *pod)
{
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	struct objects o;
	describe(&o, pod, "cpus 1");
	o.ctr.state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
	Nri__PodSandbox *pods[] = {&o.pod};
	Nri__Container *ctrs[] = {&o.ctr};
	m.pods = pods;
	m.n_pods = 1;
	m.containers = ctrs;
	m.n_containers = 1;
	send_request(a, s, "sync", "Synchronize", &m.base);
}

static struct runtime *unsynchronized(struct asking *a)
{
	struct runtime *r = runtime_new(true);
	start_plugin(r, -1);
	world_until(r->w, is_registered, r);
	configure(r);
	turn_on(a, r);
	assert_int_equal(a->n_all, 0);
	return r;
}

static void test_a_synchronization_waits_for_the_list(void **state)
{
	static const uint32_t nodes[] = {0, 1};
	const struct device_desc device = {
		.ctr = "c", .resource = "x.com/nic", .nodes = nodes, .n_nodes = 2};
	struct pod_devices_desc pods[] = {{"other", "a", &device, 1}, {"default", "a", &device, 1}};
	struct asking a;
	struct runtime *r = unsynchronized(&a);
	struct request_sent sync, create;
	send_sync(&a, &sync, "a");
	world_until(r->w, is_waiting, r);
	assert_int_equal(a.n_all, 1);
	send_create(&a, &create, "create", "b", "cpus 2");
	pipeline_devices_listed(r->w->p, NULL, pods, 2);
	await(&a, &sync);
	assert_int_equal(sync.error, 0);
	struct rp_pod_resource_info info = {.size = sizeof info};
	struct ctr *ctr = cache_ctr(pipeline_cache(r->w->p), "c-a");
	assert_int_equal(r->w->p->env.pod_resource(ctr, 0, &info, r->w->p), 0);
	assert_int_equal(rp_ids_count(info.nodes), 2);
	world_until(r->w, has_asked, &a); /* b was in no list */
	tell(&a, 0);
	await(&a, &create);
	assert_string_equal(a.order, "sync create ");
	runtime_free(r);
}

static void test_a_list_is_waited_for_only_so_long(void **state)
{
	struct asking a;
	struct runtime *r = unsynchronized(&a);
	struct request_sent sync;
	send_sync(&a, &sync, "a");
	await(&a, &sync);
	assert_int_equal(sync.error, 0);
	assert_int_equal(a.n_all, 1);
	/* The late, empty list still records that the pod has no devices. */
	pipeline_devices_listed(r->w->p, NULL, NULL, 0);
	struct devices_status s;
	pipeline_devices_status(r->w->p, &s);
	assert_int_equal(s.n_known, 1);
	runtime_free(r);
}

/* Checks that the parts of a list are accepted at once and that only the last one waits. */
static void test_parts_of_a_synchronization(void **state)
{
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	struct asking a;
	struct runtime *r = unsynchronized(&a);
	struct request_sent first, sync;
	struct objects o;
	describe(&o, "b", "cpus 2");
	Nri__PodSandbox *pods[] = {&o.pod};
	m.pods = pods;
	m.n_pods = 1;
	m.more = true;
	send_request(&a, &first, "first", "Synchronize", &m.base);
	await(&a, &first);
	assert_int_equal(a.n_all, 1);
	send_sync(&a, &sync, "a");
	world_until(r->w, is_waiting, r);
	assert_int_equal(a.n_all, 1);
	pipeline_devices_listed(r->w->p, NULL, NULL, 0);
	await(&a, &sync);
	assert_int_equal(first.error | sync.error, 0);
	assert_non_null(cache_pod(pipeline_cache(r->w->p), "p-b"));
	assert_non_null(cache_ctr(pipeline_cache(r->w->p), "c-a"));
	runtime_free(r);
}

static void test_a_list_that_fails(void **state)
{
	struct asking a;
	struct runtime *r = unsynchronized(&a);
	struct request_sent sync;
	struct devices_status s;
	send_sync(&a, &sync, "a");
	world_until(r->w, is_waiting, r);
	pipeline_devices_not_listed(r->w->p, "no list today");
	await(&a, &sync);
	assert_int_equal(sync.error, 0);
	pipeline_devices_status(r->w->p, &s);
	assert_string_equal(s.last_error, "no list today");
	assert_int_equal(s.n_known, 0);
	runtime_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_devices_nothing_waits),
		cmocka_unit_test(test_a_creation_waits_for_the_answer),
		cmocka_unit_test(test_a_pod_that_nobody_told_of_is_asked_for),
		cmocka_unit_test(test_later_requests_stay_behind),
		cmocka_unit_test(test_no_answer_is_waited_for_only_so_long),
		cmocka_unit_test(test_what_ends_the_waiting),
		cmocka_unit_test(test_who_cannot_be_asked_is_not_waited_for),
		cmocka_unit_test(test_a_connection_that_ends_takes_those_who_wait_with_it),
		cmocka_unit_test(test_the_front_end_may_end_while_somebody_waits),
		cmocka_unit_test(test_a_pod_that_ends_is_forgotten),
		cmocka_unit_test(test_a_synchronization_waits_for_the_list),
		cmocka_unit_test(test_a_list_is_waited_for_only_so_long),
		cmocka_unit_test(test_parts_of_a_synchronization),
		cmocka_unit_test(test_a_list_that_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
