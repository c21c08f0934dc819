/* SPDX-License-Identifier: Apache-2.0 */
/* The NRI front end against a runtime that this test plays: connections that come and go, calls of all kinds, updates on their own. */
#include "test/unit/t_world.h"

#include <sys/socket.h>

#include "core/runtime/internal.h"
#include "core/runtime/sync.h"
#include "core/util/pb.h"
#include "core/wire/sock.h"

struct answer {
	bool done;
	int error;
	int32_t code;
	char text[ERR_TEXT_MAX];
	struct buf payload;
};

struct runtime {
	struct world *w;
	struct nri *nri;
	char socket[96];
	int listen_fd;
	struct loop_io *io;
	struct trunk *trunk;
	unsigned n_connections, n_registered, n_updates, n_orphaned, n_closed;
	bool refuse, mute, fail_updates, configure_first, drop_on_update;
	struct rpc_request *held;
	struct answer early; /* to a Configure before the registration was answered */
	char plugin[64];
	char update[256]; /* the last UpdateContainers: "ID=CPUS …" */
};

static void closed(struct trunk *trunk, const struct err *err, void *arg)
{
	struct runtime *r = arg;
	(void)err;
	r->n_closed++;
	if (r->trunk == trunk)
		r->trunk = NULL;
	trunk_free(trunk);
}

static void keep_answer(const struct rpc_result *res, void *arg)
{
	struct answer *a = arg;
	a->done = true;
	a->error = res->error;
	a->code = res->code;
	(void)snprintf(a->text, sizeof a->text, "%s", res->text);
	buf_reset(&a->payload);
	assert_int_equal(buf_add(&a->payload, res->payload, res->payload_len), 0);
}

static void on_register(struct runtime *r, struct rpc_request *req)
{
	Nri__RegisterPluginRequest *m =
		nri__register_plugin_request__unpack(NULL, req->payload_len, req->payload);
	assert_non_null(m);
	(void)snprintf(r->plugin, sizeof r->plugin, "%s-%s", m->plugin_idx, m->plugin_name);
	nri__register_plugin_request__free_unpacked(m, NULL);
	r->n_registered++;
	if (r->configure_first) {
		Nri__ConfigureRequest c = NRI__CONFIGURE_REQUEST__INIT;
		assert_int_equal(rpc_call(trunk_rpc(r->trunk, MUX_CONN_PLUGIN), NRI_PLUGIN_SERVICE,
					  "Configure", &c.base, 0, keep_answer, &r->early),
				 0);
	}
	if (r->refuse)
		(void)rpc_reply_error(req, TTRPC_UNKNOWN, "no plugins here");
	else if (!r->mute)
		(void)rpc_reply(req, NULL);
	else
		r->held = req;
}

static void on_update(struct runtime *r, struct rpc_request *req)
{
	Nri__UpdateContainersRequest *m =
		nri__update_containers_request__unpack(NULL, req->payload_len, req->payload);
	assert_non_null(m);
	r->n_updates++;
	r->update[0] = '\0';
	for (size_t i = 0; i < m->n_update; i++) {
		const Nri__LinuxResources *res = m->update[i]->lnx->resources;
		size_t used = strlen(r->update);
		(void)snprintf(r->update + used, sizeof r->update - used, "%s=%s ",
			       m->update[i]->container_id, res->cpu ? res->cpu->cpus : "");
		assert_false(m->update[i]->ignore_failure);
	}
	nri__update_containers_request__free_unpacked(m, NULL);
	if (r->drop_on_update) {
		r->drop_on_update = false;
		r->trunk = trunk_free(r->trunk);
		(void)rpc_reply(req, NULL); /* to nobody */
	} else if (r->fail_updates) {
		r->fail_updates = false;
		(void)rpc_reply_error(req, TTRPC_UNKNOWN, "no such container");
	} else {
		(void)rpc_reply(req, NULL);
	}
}

static void serve(struct rpc_request *req, void *arg)
{
	assert_string_equal(req->service, NRI_RUNTIME_SERVICE);
	if (strcmp(req->method, "RegisterPlugin") == 0)
		on_register(arg, req);
	else
		on_update(arg, req);
}

static void take(struct runtime *r, int fd)
{
	const struct trunk_config config = {.mux = true, .closed = closed, .arg = r};
	struct err err = ERR_INIT;
	trunk_free(r->trunk);
	assert_int_equal(trunk_new(r->w->loop, fd, &config, &r->trunk, &err), 0);
	rpc_serve(trunk_rpc(r->trunk, MUX_CONN_RUNTIME), serve, r);
	r->n_connections++;
}

static void on_connection(unsigned events, void *arg)
{
	struct runtime *r = arg;
	(void)events;
	int fd = wire_accept(r->listen_fd);
	if (fd >= 0)
		take(r, fd);
}

static void listen_now(struct runtime *r)
{
	struct err err = ERR_INIT;
	r->listen_fd = wire_listen_unix(r->socket, 0600, &err);
	assert_true(r->listen_fd >= 0);
	r->io = loop_io_new(r->w->loop, r->listen_fd, LOOP_READ, on_connection, r);
	assert_non_null(r->io);
}

static void orphaned(void *arg)
{
	((struct runtime *)arg)->n_orphaned++;
}

static void kick(void *arg)
{
	nri_updates_ready(((struct runtime *)arg)->nri);
}

static void start_plugin(struct runtime *r, int fd)
{
	struct err err = ERR_INIT;
	const struct nri_config config = {.loop = r->w->loop,
					  .pipeline = r->w->p,
					  .socket = r->socket,
					  .name = "tested",
					  .index = 7,
					  .inherited_fd = fd,
					  .orphaned = orphaned,
					  .arg = r};
	assert_int_equal(nri_new(&config, &r->nri, &err), 0);
	r->w->p->cfg.updates_ready = kick;
	r->w->p->cfg.synchronized = NULL;
	r->w->p->cfg.configured = NULL;
	r->w->p->cfg.arg = r;
}

static struct runtime *runtime_new(bool listening)
{
	struct runtime *r = calloc(1, sizeof *r);
	assert_non_null(r);
	log_init("test");
	log_set_level(LOG_ERROR - 1);
	r->w = world_new(PUPPET);
	r->listen_fd = -1;
	tree_path(&r->w->tree, "nri.sock", r->socket, sizeof r->socket);
	if (listening)
		listen_now(r);
	return r;
}

static void runtime_free(struct runtime *r)
{
	r->w->p->cfg.updates_ready = NULL;
	r->nri = nri_free(r->nri);
	trunk_free(r->trunk);
	if (r->io)
		loop_io_free(r->io);
	if (r->listen_fd >= 0)
		(void)close(r->listen_fd);
	buf_fini(&r->early.payload);
	world_free(r->w);
	free(r);
}

/* ---- asking ------------------------------------------------------------------------------------------------------------ */

static bool answer_is_there(struct world *w, void *arg)
{
	(void)w;
	return ((struct answer *)arg)->done;
}

static bool is_registered(struct world *w, void *arg)
{
	const struct runtime *r = arg;
	(void)w;
	return r->trunk && r->n_registered == r->n_connections &&
	       pipeline_runtime(r->w->p)->connected;
}

static bool has_updates(struct world *w, void *arg)
{
	const struct runtime *r = arg;
	(void)w;
	return r->n_updates >= 1 && !updates_waiting(r->w->p);
}

static void await_answer(struct runtime *r, struct answer *a)
{
	world_until(r->w, answer_is_there, a);
}

static struct answer call_service(struct runtime *r, const char *service, const char *method,
				  const ProtobufCMessage *msg)
{
	struct answer a = {0};
	assert_int_equal(rpc_call(trunk_rpc(r->trunk, MUX_CONN_PLUGIN), service, method, msg, 0,
				  keep_answer, &a),
			 0);
	await_answer(r, &a);
	return a;
}

static struct answer call(struct runtime *r, const char *method, const ProtobufCMessage *msg)
{
	return call_service(r, NRI_PLUGIN_SERVICE, method, msg);
}

static void must(struct runtime *r, const char *method, const ProtobufCMessage *msg)
{
	struct answer a = call(r, method, msg);
	if (a.error)
		fail_msg("%s: %s", method, a.text);
	buf_fini(&a.payload);
}

static void fails(struct runtime *r, const char *method, const ProtobufCMessage *msg, int32_t code,
		  const char *part)
{
	struct answer a = call(r, method, msg);
	assert_int_equal(a.error, -EREMOTEIO);
	assert_int_equal(a.code, code);
	if (!strstr(a.text, part))
		fail_msg("'%s' does not tell '%s'", a.text, part);
	buf_fini(&a.payload);
}

static void configure(struct runtime *r)
{
	Nri__ConfigureRequest m = NRI__CONFIGURE_REQUEST__INIT;
	m.runtime_name = (char *)"containerd";
	m.runtime_version = (char *)"v9";
	m.nri_version = (char *)"v0.12.0";
	m.request_timeout = 2000;
	struct answer a = call(r, "Configure", &m.base);
	assert_int_equal(a.error, 0);
	Nri__ConfigureResponse *res =
		nri__configure_response__unpack(NULL, buf_len(&a.payload), buf_bytes(&a.payload));
	assert_int_equal(res->events, NRI_EVENTS);
	nri__configure_response__free_unpacked(res, NULL);
	buf_fini(&a.payload);
}

/* One pod with one container, both named; what the test does to the members is sent. */
struct objects {
	Nri__PodSandbox pod;
	Nri__LinuxPodSandbox lnx_pod;
	Nri__Container ctr;
	Nri__LinuxContainer lnx;
	Nri__LinuxResources res;
	Nri__LinuxCPU cpu;
	Nri__OptionalUInt64 shares;
	Nri__PodSandbox__AnnotationsEntry note[2], *notes[2];
	char pod_id[32], ctr_id[32];
};

static void describe(struct objects *o, const char *name, const char *alloc)
{
	*o = (struct objects){NRI__POD_SANDBOX__INIT,
			      NRI__LINUX_POD_SANDBOX__INIT,
			      NRI__CONTAINER__INIT,
			      NRI__LINUX_CONTAINER__INIT,
			      NRI__LINUX_RESOURCES__INIT,
			      NRI__LINUX_CPU__INIT,
			      NRI__OPTIONAL_UINT64__INIT,
			      {NRI__POD_SANDBOX__ANNOTATIONS_ENTRY__INIT,
			       NRI__POD_SANDBOX__ANNOTATIONS_ENTRY__INIT},
			      {NULL, NULL},
			      "",
			      ""};
	(void)snprintf(o->pod_id, sizeof o->pod_id, "p-%s", name);
	(void)snprintf(o->ctr_id, sizeof o->ctr_id, "c-%s", name);
	o->pod.id = o->pod_id;
	o->pod.name = (char *)(uintptr_t)name;
	o->pod.namespace_ = (char *)"default";
	o->pod.lnx = &o->lnx_pod;
	o->note[0].key = (char *)"t/do";
	o->note[0].value = (char *)(uintptr_t)alloc;
	o->notes[0] = &o->note[0];
	o->pod.annotations = o->notes;
	o->pod.n_annotations = alloc ? 1 : 0;
	o->ctr.id = o->ctr_id;
	o->ctr.pod_sandbox_id = o->pod_id;
	o->ctr.name = (char *)"c";
	o->ctr.lnx = &o->lnx;
	o->lnx.resources = &o->res;
	o->res.cpu = &o->cpu;
}

static Nri__CreateContainerResponse *create(struct runtime *r, struct objects *o)
{
	Nri__CreateContainerRequest m = NRI__CREATE_CONTAINER_REQUEST__INIT;
	m.pod = &o->pod;
	m.container = &o->ctr;
	struct answer a = call(r, "CreateContainer", &m.base);
	if (a.error)
		fail_msg("%s", a.text);
	Nri__CreateContainerResponse *res = nri__create_container_response__unpack(
		NULL, buf_len(&a.payload), buf_bytes(&a.payload));
	assert_non_null(res);
	buf_fini(&a.payload);
	return res;
}

static void create_named(struct runtime *r, const char *name, const char *alloc)
{
	struct objects o;
	describe(&o, name, alloc);
	nri__create_container_response__free_unpacked(create(r, &o), NULL);
}

static void synchronize(struct runtime *r)
{
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	must(r, "Synchronize", &m.base);
}

static struct runtime *connected(void)
{
	struct runtime *r = runtime_new(true);
	start_plugin(r, -1);
	world_until(r->w, is_registered, r);
	configure(r);
	synchronize(r);
	assert_true(pipeline_runtime(r->w->p)->synchronized);
	return r;
}

/* ---- connecting -------------------------------------------------------------------------------------------------------- */

static void test_connect(void **state)
{
	(void)state;
	struct runtime *r = connected();
	const struct runtime_state *s = pipeline_runtime(r->w->p);
	assert_string_equal(r->plugin, "07-tested");
	assert_string_equal(s->name, "containerd");
	assert_int_equal(s->request_timeout_ms, 2000);
	assert_int_equal(s->connects, 1);
	assert_int_equal(s->disconnects, 0);
	runtime_free(r);
}

static void test_waits_for_the_runtime(void **state)
{
	(void)state;
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
	(void)w;
	return ((struct runtime *)arg)->n_connections >= 2 && is_registered(w, arg);
}

static void test_comes_back(void **state)
{
	(void)state;
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

static void test_registration_refused(void **state)
{
	(void)state;
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
	(void)state;
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
	(void)w;
	return ((struct runtime *)arg)->n_orphaned > 0;
}

static void test_launched_by_the_runtime(void **state)
{
	(void)state;
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
	assert_int_equal(nri_set_runtime(r->nri, "/elsewhere", "other", 3), 0);
	assert_int_equal(r->n_orphaned, 0);
	r->trunk = trunk_free(r->trunk);
	world_until(r->w, is_orphaned, r);
	assert_int_equal(r->n_orphaned, 1);
	runtime_free(r);
}

static void test_another_socket(void **state)
{
	(void)state;
	struct runtime *r = connected();
	assert_int_equal(nri_set_runtime(r->nri, r->socket, "tested", 7), 0);
	assert_true(pipeline_runtime(r->w->p)->connected);
	assert_int_equal(nri_set_runtime(r->nri, r->socket, "renamed", 107), 0);
	assert_false(pipeline_runtime(r->w->p)->connected);
	world_until(r->w, connected_again, r);
	assert_string_equal(r->plugin, "07-renamed");
	runtime_free(r);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------- */

static void test_create(void **state)
{
	(void)state;
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
	(void)state;
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
	(void)state;
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
	(void)state;
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
	(void)state;
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
	(void)state;
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
	/* what has an answer of its own does not come so, and what is not known is left alone */
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

/* A message whose first field is a length that runs past the end. */
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
	(void)state;
	struct runtime *r = connected();
	static const char *const methods[] = {"CreateContainer", "StateChange", "Configure",
					      "Synchronize", "RunPodSandbox"};
	for (unsigned i = 0; i < 5; i++)
		fails(r, methods[i], garbage(), TTRPC_INVALID_ARGUMENT, methods[i]);
	fails(r, "Dance", NULL, TTRPC_UNIMPLEMENTED, "Dance");
	struct answer a = call_service(r, "some.Other", "Configure", NULL);
	assert_int_equal(a.code, TTRPC_UNIMPLEMENTED);
	buf_fini(&a.payload);
	/* well formed parts with nonsense inside: the list is not complete, nobody is dropped */
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

/* ---- Synchronize in parts ------------------------------------------------------------------------------------------------ */

static void test_sync_in_parts(void **state)
{
	(void)state;
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
	/* the same again, twice in one list: nothing new */
	ctrs[1] = &a.ctr;
	a.cpu.cpus = (char *)"0-3";
	m.containers = ctrs;
	m.n_containers = 2;
	must(r, "Synchronize", &m.base);
	assert_int_equal(cache_n_ctrs(pipeline_cache(r->w->p)), 1);
	runtime_free(r);
}

/* Some runtimes never call a plugin again whose answer came too late: it connects anew. */
static void test_late_answer(void **state)
{
	(void)state;
	struct runtime *r = connected();
	struct objects o;
	describe(&o, "a", "cpus 0-3");
	pipeline_runtime(r->w->p)->request_timeout_ms = 1;
	enum { MANY = 40000 }; /* nobody takes these in a millisecond */
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
	runtime_free(r);
}

/* ---- updates on their own ------------------------------------------------------------------------------------------------ */

static void test_updates(void **state)
{
	(void)state;
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
	(void)state;
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
	(void)state;
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
		cmocka_unit_test(test_sync_in_parts),
		cmocka_unit_test(test_late_answer),
		cmocka_unit_test(test_updates),
		cmocka_unit_test(test_failing_update),
		cmocka_unit_test(test_connection_lost_with_updates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
