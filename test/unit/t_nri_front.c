/* SPDX-License-Identifier: Apache-2.0 */
/* The NRI front end against a runtime that this test plays: connections that come and go, calls of
 * all kinds, updates on their own. */
#include "test/unit/t_front.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/updates.h"

/* ---- connecting ------------------------------------------------------------------------------ */

static void test_connect(void **state)
{
	struct runtime *r = connected();
	const struct runtime_state *s = pipeline_runtime(r->w->p);
	assert_string_equal(r->plugin, "07-tested");
	assert_string_equal(s->facts.name, "containerd");
	assert_int_equal(s->request_timeout_ms, 2000);
	assert_int_equal(s->connects, 1);
	assert_int_equal(s->disconnects, 0);
	runtime_free(r);
}

static void test_waits_for_the_runtime(void **state)
{
	struct runtime *r = runtime_new(false);
	start_plugin(r, -1);
	assert_false(pipeline_runtime(r->w->p)->connected);
	assert_non_null(strstr(pipeline_runtime(r->w->p)->last_error, "nri.sock"));
	listen_now(r);
	world_until(r->w, is_registered, r);
	assert_string_equal(pipeline_runtime(r->w->p)->last_error, "");
	runtime_free(r);
}

static bool connected_again(struct world *w, void *arg)
{
	return ((struct runtime *)arg)->n_connections >= 2 && is_registered(w, arg);
}

static bool connected_thrice(struct world *w, void *arg)
{
	return ((struct runtime *)arg)->n_connections >= 3 && is_registered(w, arg);
}

static void test_comes_back(void **state)
{
	struct runtime *r = connected();
	r->trunk = trunk_free(r->trunk);
	world_until(r->w, connected_again, r);
	assert_false(pipeline_runtime(r->w->p)->synchronized);
	assert_int_equal(pipeline_runtime(r->w->p)->disconnects, 1);
	assert_true(world_told(r->w, "connection lost"));
	configure(r);
	synchronize(r);
	runtime_free(r);
}

/* Checks that a connection to the first socket is not used for another one. */
static void test_another_address(void **state)
{
	struct runtime *r = connected();
	struct nri_config other = r->nri->cfg;
	other.socket = "/nowhere/nri.sock";
	other.name = r->nri->name;
	r->nri->fallback.way_back = dup(STDIN_FILENO);
	assert_true(r->nri->fallback.way_back >= 0);
	assert_int_equal(nri_set_runtime(r->nri, &other), 0);
	assert_int_equal(r->nri->fallback.way_back, -1);
	runtime_free(r);
}

static void test_registration_refused(void **state)
{
	struct runtime *r = runtime_new(true);
	r->refuse = true;
	start_plugin(r, -1);
	world_until(r->w, world_is_told, (void *)(uintptr_t) "no plugins here");
	r->refuse = false;
	world_until(r->w, connected_again, r);
	runtime_free(r);
}

static void test_configure_comes_first(void **state)
{
	struct runtime *r = runtime_new(true);
	r->configure_first = r->mute = true;
	start_plugin(r, -1);
	await_answer(r, &r->early);
	assert_int_equal(r->early.error, 0);
	assert_non_null(r->held);
	synchronize(r);
	assert_int_equal(rpc_reply(r->held, NULL), 0);
	configure(r);
	runtime_free(r);
}

static bool is_orphaned(struct world *w, void *arg)
{
	return ((struct runtime *)arg)->n_orphaned > 0;
}

static int set_runtime(struct runtime *r, const char *socket, const char *name, unsigned index)
{
	const struct nri_config config = {.socket = socket, .name = name, .index = index};
	return nri_set_runtime(r->nri, &config);
}

static void test_launched_by_the_runtime(void **state)
{
	int fds[2];
	struct runtime *r = runtime_new(false);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	take(r, fds[0]);
	start_plugin(r, fds[1]);
	world_until(r->w, is_registered, r);
	configure(r);
	synchronize(r);
	/* a socket of ours does not matter here */
	assert_int_equal(set_runtime(r, "/elsewhere", "other", 3), 0);
	assert_int_equal(r->n_orphaned, 0);
	r->trunk = trunk_free(r->trunk);
	world_until(r->w, is_orphaned, r);
	assert_int_equal(r->n_orphaned, 1);
	runtime_free(r);
}

static void test_another_socket(void **state)
{
	struct runtime *r = connected();
	assert_int_equal(set_runtime(r, r->socket, "tested", 7), 0);
	assert_true(pipeline_runtime(r->w->p)->connected);
	assert_int_equal(set_runtime(r, r->socket, "renamed", 107), 0);
	world_until(r->w, connected_again, r);
	assert_string_equal(r->plugin, "07-renamed");
	runtime_free(r);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void test_create(void **state)
{
	struct runtime *r = connected();
	struct objects o;
	describe(&o, "a",
		 "cpus 2-3; mems 1; int 1 512; int 2 20000; int 3 100000; int 4 4096000; pair 200 "
		 "KEY value; pair 201 note value; "
		 "pair 202 memory.high 1000; text 100 gold; text 101 slow; int 5 1; int 6 10; int "
		 "7 5; int 8 2; int 9 4; int 10 -5; "
		 "int 11 1; int 12 1000; int 13 2000; int 14 3000; int 15 3; text 103 0-1; text "
		 "104 static,relative,numa-balancing");
	Nri__CreateContainerResponse *res = create(r, &o);
	const Nri__LinuxContainerAdjustment *lnx = res->adjust->lnx;
	assert_string_equal(lnx->resources->cpu->cpus, "2-3");
	assert_string_equal(lnx->resources->cpu->mems, "1");
	assert_int_equal(lnx->resources->cpu->shares->value, 512);
	assert_int_equal(lnx->resources->cpu->quota->value, 20000);
	assert_int_equal(lnx->resources->cpu->period->value, 100000);
	assert_int_equal(lnx->resources->memory->limit->value, 4096000);
	assert_string_equal(lnx->resources->rdt_class->value, "gold");
	assert_string_equal(lnx->resources->blockio_class->value, "slow");
	assert_int_equal(res->adjust->n_env, 1);
	assert_string_equal(res->adjust->env[0]->value, "value");
	assert_int_equal(res->adjust->n_annotations, 1);
	assert_string_equal(res->adjust->annotations[0]->key, "note");
	assert_int_equal(lnx->resources->n_unified, 1);
	assert_non_null(lnx->scheduler);
	assert_non_null(lnx->io_priority);
	assert_int_equal(lnx->oom_score_adj->value, -5);
	assert_string_equal(lnx->memory_policy->nodes, "0-1");
	assert_int_equal(lnx->memory_policy->n_flags, 3);
	nri__create_container_response__free_unpacked(res, NULL);
	describe(&o, "b", NULL);
	res = create(r, &o);
	assert_null(res->adjust);
	assert_int_equal(res->n_update, 0);
	nri__create_container_response__free_unpacked(res, NULL);
	runtime_free(r);
}

static void test_create_with_details(void **state)
{
	struct runtime *r = connected();
	struct objects o;
	describe(&o, "a", "cpus 2-3");
	Nri__Mount mount = NRI__MOUNT__INIT, *mounts[] = {&mount};
	char *options[] = {(char *)"rw", (char *)"ro"};
	mount.source = mount.destination = (char *)"/data";
	mount.options = options;
	mount.n_options = 2;
	o.ctr.mounts = mounts;
	o.ctr.n_mounts = 1;
	char *env[] = {(char *)"A=b"};
	o.ctr.env = env;
	o.ctr.n_env = 1;
	Nri__LinuxDevice device = NRI__LINUX_DEVICE__INIT, *devices[] = {&device, &device};
	device.path = (char *)"/dev/x";
	device.type = (char *)"c";
	o.lnx.devices = devices;
	o.lnx.n_devices = 2;
	Nri__LinuxDeviceCgroup rules[2] = {NRI__LINUX_DEVICE_CGROUP__INIT,
					   NRI__LINUX_DEVICE_CGROUP__INIT};
	Nri__LinuxDeviceCgroup *all[] = {&rules[0], &rules[1]};
	Nri__OptionalInt64 major = NRI__OPTIONAL_INT64__INIT;
	major.value = 5;
	rules[0].type = (char *)"a";
	rules[0].allow = true;
	rules[0].access = (char *)"rwm";
	rules[1].type = (char *)"b";
	rules[1].major = &major;
	o.res.devices = all;
	o.res.n_devices = 2;
	o.shares.value = 2048;
	o.cpu.shares = &o.shares;
	o.ctr.created_at = 1234;
	nri__create_container_response__free_unpacked(create(r, &o), NULL);
	assert_int_equal(box_ctr(r->w, "a")->cur.needs.cpu_request, 2000);
	assert_int_equal(box_ctr(r->w, "a")->created_ns, 1234);
	runtime_free(r);
}

static void test_others_in_reply(void **state)
{
	struct runtime *r = connected();
	struct objects o;
	create_named(r, "a", "cpus 0-3");
	describe(&o, "n", "cpus 0; on c; cpus 1-3");
	Nri__CreateContainerResponse *res = create(r, &o);
	assert_int_equal(res->n_update, 1);
	assert_string_equal(res->update[0]->container_id, "c-a");
	assert_true(res->update[0]->ignore_failure);
	assert_string_equal(res->update[0]->lnx->resources->cpu->cpus, "1-3");
	nri__create_container_response__free_unpacked(res, NULL);
	runtime_free(r);
}

static void test_life(void **state)
{
	struct runtime *r = connected();
	struct objects o;
	describe(&o, "a", "cpus 0-3");
	Nri__RunPodSandboxRequest run = NRI__RUN_POD_SANDBOX_REQUEST__INIT;
	run.pod = &o.pod;
	must(r, "RunPodSandbox", &run.base);
	nri__create_container_response__free_unpacked(create(r, &o), NULL);
	static const char *const notes[] = {"PostCreateContainer", "StartContainer",
					    "PostStartContainer", "PostUpdateContainer"};
	o.ctr.state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
	Nri__StartContainerRequest m = NRI__START_CONTAINER_REQUEST__INIT;
	m.pod = &o.pod;
	m.container = &o.ctr;
	for (unsigned i = 0; i < 4; i++)
		must(r, notes[i], &m.base);
	assert_int_equal(box_ctr(r->w, "a")->cur.state, RP_STATE_RUNNING);
	Nri__UpdateContainerRequest update = NRI__UPDATE_CONTAINER_REQUEST__INIT;
	update.pod = &o.pod;
	update.container = &o.ctr;
	update.linux_resources = &o.res;
	o.shares.value = 4096;
	o.cpu.shares = &o.shares;
	must(r, "UpdateContainer", &update.base);
	assert_int_equal(box_ctr(r->w, "a")->cur.needs.cpu_request, 4000);
	must(r, "UpdatePodSandbox", &run.base);
	must(r, "PostUpdatePodSandbox", &run.base);
	must(r, "ValidateContainerAdjustment", NULL);
	must(r, "StopContainer", &m.base);
	must(r, "RemoveContainer", &m.base);
	assert_int_equal(cache_n_ctrs(pipeline_cache(r->w->p)), 0);
	must(r, "StopPodSandbox", &run.base);
	must(r, "RemovePodSandbox", &run.base);
	assert_int_equal(cache_n_pods(pipeline_cache(r->w->p)), 0);
	must(r, "Shutdown", NULL);
	runtime_free(r);
}

static void test_refusals(void **state)
{
	struct runtime *r = connected();
	struct objects o;
	describe(&o, "a", "fail 28 no room");
	Nri__CreateContainerRequest m = NRI__CREATE_CONTAINER_REQUEST__INIT;
	m.pod = &o.pod;
	m.container = &o.ctr;
	fails(r, "CreateContainer", &m.base, TTRPC_UNKNOWN, "container default/a/c: no room");
	/* without pod, without container, without anything */
	fails(r, "CreateContainer", NULL, TTRPC_UNKNOWN, "");
	fails(r, "RunPodSandbox", NULL, TTRPC_UNKNOWN, "");
	must(r, "StopContainer", NULL);
	must(r, "RemoveContainer", NULL);
	must(r, "StartContainer", NULL);
	must(r, "UpdateContainer", NULL);
	describe(&o, "b", "cpus 0-1");
	nri__create_container_response__free_unpacked(create(r, &o), NULL);
	describe(&o, "d", "cpus 0");
	o.note[0].key = (char *)"t/update";
	o.note[0].value = (char *)"fail 28 too large";
	nri__create_container_response__free_unpacked(create(r, &o), NULL);
	Nri__UpdateContainerRequest update = NRI__UPDATE_CONTAINER_REQUEST__INIT;
	update.pod = &o.pod;
	update.container = &o.ctr;
	update.linux_resources = &o.res;
	o.shares.value = 9999;
	o.cpu.shares = &o.shares;
	fails(r, "UpdateContainer", &update.base, TTRPC_UNKNOWN, "too large");
	runtime_free(r);
}

static void test_state_change(void **state)
{
	struct runtime *r = connected();
	struct objects o;
	describe(&o, "a", "cpus 0-3");
	Nri__StateChangeEvent m = NRI__STATE_CHANGE_EVENT__INIT;
	m.pod = &o.pod;
	m.event = NRI__EVENT__RUN_POD_SANDBOX;
	must(r, "StateChange", &m.base);
	assert_int_equal(cache_n_pods(pipeline_cache(r->w->p)), 1);
	nri__create_container_response__free_unpacked(create(r, &o), NULL);
	m.container = &o.ctr;
	m.event = NRI__EVENT__START_CONTAINER;
	must(r, "StateChange", &m.base);
	assert_int_equal(box_ctr(r->w, "a")->cur.state, RP_STATE_RUNNING);
	/* Events that have a request of their own are ignored as state changes, and so are
	 * unknown events. */
	m.event = NRI__EVENT__STOP_CONTAINER;
	must(r, "StateChange", &m.base);
	m.event = (Nri__Event)99;
	must(r, "StateChange", &m.base);
	assert_int_equal(box_ctr(r->w, "a")->cur.state, RP_STATE_RUNNING);
	m.event = NRI__EVENT__REMOVE_CONTAINER;
	must(r, "StateChange", &m.base);
	m.event = NRI__EVENT__REMOVE_POD_SANDBOX;
	must(r, "StateChange", &m.base);
	assert_int_equal(cache_n_pods(pipeline_cache(r->w->p)), 0);
	runtime_free(r);
}

/* Returns a message whose first field has a length beyond the end. */
static const ProtobufCMessage *garbage(void)
{
	static Nri__KeyValue m = NRI__KEY_VALUE__INIT;
	static ProtobufCMessageUnknownField field;
	static const uint8_t bytes[] = {0x7f, 'x'};
	field = (ProtobufCMessageUnknownField){.tag = 1,
					       .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
					       .len = 2,
					       .data = (uint8_t *)(uintptr_t)bytes};
	m.base.unknown_fields = &field;
	m.base.n_unknown_fields = 1;
	return &m.base;
}

static void test_nonsense(void **state)
{
	struct runtime *r = connected();
	static const char *const methods[] = {"CreateContainer", "StateChange", "Configure",
					      "RunPodSandbox"};
	for (unsigned i = 0; i < 4; i++)
		fails(r, methods[i], garbage(), TTRPC_INVALID_ARGUMENT, methods[i]);
	fails(r, "Dance", NULL, TTRPC_UNIMPLEMENTED, "Dance");
	struct answer a = call_service(r, "some.Other", "Configure", NULL);
	assert_int_equal(a.code, TTRPC_UNIMPLEMENTED);
	buf_fini(&a.payload);
	/* Nested messages with garbage inside make the list incomplete, so no container is
	 * dropped. */
	create_named(r, "a", "cpus 0");
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	ProtobufCMessageUnknownField pod = {.tag = 1,
					    .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED};
	static const uint8_t inner[] = {0x03, 0x0a, 0x7f, 'x'};
	pod.len = sizeof inner;
	pod.data = (uint8_t *)(uintptr_t)inner;
	m.base.unknown_fields = &pod;
	m.base.n_unknown_fields = 1;
	fails(r, "Synchronize", &m.base, TTRPC_INVALID_ARGUMENT, "Synchronize");
	assert_non_null(box_ctr(r->w, "a"));
	runtime_free(r);
}

/* Checks that the plugin reconnects after a failed Synchronize, as containerd 1.7 keeps such a
 * connection and never calls it again. */
static void test_failed_synchronization(void **state)
{
	struct runtime *r = connected();
	fails(r, "Synchronize", garbage(), TTRPC_INVALID_ARGUMENT, "Synchronize");
	world_until(r->w, connected_again, r);
	assert_true(world_told(r->w, "synchronization with the runtime failed"));
	configure(r);
	synchronize(r);
	runtime_free(r);
}

/* Checks which runtimes are asked for UpdatePodSandbox, and that a runtime that refuses it is asked
 * for the other events. */
static void test_events_of_releases(void **state)
{
	struct runtime *r = runtime_new(true);
	start_plugin(r, -1);
	world_until(r->w, is_registered, r);
	assert_int_equal(configure_as(r, "v2.1.4", ""), NRI_EVENTS);
	synchronize(r);
	assert_int_equal(configure_as(r, "v2.2.0", ""), NRI_EVENTS | NRI_EVENT_UPDATE_POD);
	r->trunk = trunk_free(r->trunk);
	world_until(r->w, connected_again, r);
	assert_int_equal(configure_as(r, "v2.2.0", ""), NRI_EVENTS);
	synchronize(r);
	r->trunk = trunk_free(r->trunk);
	world_until(r->w, connected_thrice, r);
	assert_int_equal(configure_as(r, "v2.2.1", ""), NRI_EVENTS | NRI_EVENT_UPDATE_POD);
	runtime_free(r);
}

/* ---- Synchronize in parts -------------------------------------------------------------------- */

static void test_sync_in_parts(void **state)
{
	struct runtime *r = connected();
	struct objects a, b;
	create_named(r, "old", "cpus 9");
	describe(&a, "a", "cpus 0-3");
	describe(&b, "b", "cpus 4-7");
	a.ctr.state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
	b.ctr.state = NRI__CONTAINER_STATE__CONTAINER_PAUSED;
	Nri__PodSandbox *pods[] = {&a.pod, &b.pod};
	Nri__Container *ctrs[] = {&a.ctr, &b.ctr};
	/* the containers before their pods */
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	m.containers = ctrs;
	m.n_containers = 2;
	m.more = true;
	struct answer ans = call(r, "Synchronize", &m.base);
	Nri__SynchronizeResponse *res = nri__synchronize_response__unpack(
		NULL, buf_len(&ans.payload), buf_bytes(&ans.payload));
	assert_true(res->more);
	nri__synchronize_response__free_unpacked(res, NULL);
	buf_fini(&ans.payload);
	assert_non_null(box_ctr(r->w, "old"));
	m = (Nri__SynchronizeRequest)NRI__SYNCHRONIZE_REQUEST__INIT;
	m.pods = pods;
	m.n_pods = 2;
	ans = call(r, "Synchronize", &m.base);
	assert_int_equal(ans.error, 0);
	res = nri__synchronize_response__unpack(NULL, buf_len(&ans.payload),
						buf_bytes(&ans.payload));
	assert_false(res->more);
	assert_int_equal(res->n_update, 2);
	nri__synchronize_response__free_unpacked(res, NULL);
	buf_fini(&ans.payload);
	assert_null(box_ctr(r->w, "old"));
	assert_int_equal(box_ctr(r->w, "b")->cur.state, RP_STATE_PAUSED);
	/* A second listing of the same container changes nothing, even if the list names it
	 * twice. */
	ctrs[1] = &a.ctr;
	a.cpu.cpus = (char *)"0-3";
	m.containers = ctrs;
	m.n_containers = 2;
	must(r, "Synchronize", &m.base);
	assert_int_equal(cache_n_ctrs(pipeline_cache(r->w->p)), 1);
	runtime_free(r);
}

/* Checks that the plugin reconnects after a late answer, as a runtime may stop calling it. */
static void test_late_answer(void **state)
{
	struct runtime *r = connected();
	struct objects o;
	describe(&o, "a", "cpus 0-3");
	pipeline_runtime(r->w->p)->request_timeout_ms = 1;
	enum { MANY = 40000 }; /* more than can be processed in a millisecond */
	static Nri__PodSandbox *pods[MANY];
	static Nri__Container *ctrs[MANY];
	for (unsigned i = 0; i < MANY; i++) {
		pods[i] = &o.pod;
		ctrs[i] = &o.ctr;
	}
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	m.pods = pods;
	m.containers = ctrs;
	m.n_pods = m.n_containers = MANY;
	struct answer ans = call(r, "Synchronize", &m.base);
	buf_fini(&ans.payload);
	world_until(r->w, connected_again, r);
	/* a node that is always that slow does not connect every 50 ms */
	assert_int_equal(r->nri->late.ms, 50);
	r->nri->close_why = "too late";
	nri_restart(r->nri, "too late");
	assert_int_equal(r->nri->late.ms, 100);
	runtime_free(r);
}

/* ---- updates on their own -------------------------------------------------------------------- */

static void test_updates(void **state)
{
	struct runtime *r = connected();
	create_named(r, "a", "cpus 0-3; arm 1 10");
	world_configure(r->w, PUPPET "puppet: {timer: 'on c; cpus 5'}\n");
	pipeline_reload(r->w->p, NULL, NULL);
	world_until(r->w, world_is_told, (void *)(uintptr_t) "reloaded");
	create_named(r, "b", "cpus 9; arm 2 10");
	world_until(r->w, has_updates, r);
	assert_string_equal(r->update, "c-a=5 ");
	assert_string_equal(box_acked(r->w, "a"), "5");
	runtime_free(r);
}

static void test_failing_update(void **state)
{
	struct runtime *r = connected();
	create_named(r, "a", "cpus 0-3");
	r->fail_updates = true;
	struct ctr *ctr = box_ctr(r->w, "a");
	txn_put_set(pipeline_cache(r->w->p), &ctr->acked.cpus, NULL);
	updates_add(r->w->p, ctr);
	world_until(r->w, has_updates, r);
	assert_int_equal(r->n_updates, 2);
	assert_true(world_told(r->w, "no such container"));
	runtime_free(r);
}

static void test_connection_lost_with_updates(void **state)
{
	struct runtime *r = connected();
	create_named(r, "a", "cpus 0-3");
	r->drop_on_update = true;
	struct ctr *ctr = box_ctr(r->w, "a");
	txn_put_set(pipeline_cache(r->w->p), &ctr->acked.cpus, NULL);
	updates_add(r->w->p, ctr);
	world_until(r->w, connected_again, r);
	assert_int_equal(updates_waiting(r->w->p), 1);
	configure(r);
	struct objects o;
	describe(&o, "a", NULL);
	o.ctr.state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
	Nri__PodSandbox *pods[] = {&o.pod};
	Nri__Container *ctrs[] = {&o.ctr};
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	m.pods = pods;
	m.containers = ctrs;
	m.n_pods = m.n_containers = 1;
	must(r, "Synchronize", &m.base);
	world_until(r->w, has_updates, r);
	assert_int_equal(updates_waiting(r->w->p), 0);
	assert_string_equal(box_acked(r->w, "a"), "0-3");
	runtime_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_waits_for_the_runtime),
		cmocka_unit_test(test_comes_back),
		cmocka_unit_test(test_another_address),
		cmocka_unit_test(test_registration_refused),
		cmocka_unit_test(test_configure_comes_first),
		cmocka_unit_test(test_launched_by_the_runtime),
		cmocka_unit_test(test_another_socket),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_create_with_details),
		cmocka_unit_test(test_others_in_reply),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_state_change),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_failed_synchronization),
		cmocka_unit_test(test_events_of_releases),
		cmocka_unit_test(test_sync_in_parts),
		cmocka_unit_test(test_late_answer),
		cmocka_unit_test(test_updates),
		cmocka_unit_test(test_failing_update),
		cmocka_unit_test(test_connection_lost_with_updates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
