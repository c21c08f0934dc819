/* SPDX-License-Identifier: Apache-2.0 */
/* A test's runtime for the NRI front end: its requests, the updates it receives, and a pod with
 * a container to send requests about. */
#ifndef TEST_UNIT_T_FRONT_H
#define TEST_UNIT_T_FRONT_H

#include "core/nri-rpd/pipeline/request/request.h"
#include "test/unit/t_world.h"

#include <sys/socket.h>

#include "core/nri-rpd/nri/internal.h"
#include "core/nri-rpd/nri/sync.h"
#include "core/lib/util/pb.h"
#include "core/lib/wire/sock.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/updates.h"

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

static inline void closed(struct trunk *trunk, const struct err *err, void *arg)
{
	struct runtime *r = arg;
	r->n_closed++;
	if (r->trunk == trunk)
		r->trunk = NULL;
	trunk_free(trunk);
}

static inline void keep_answer(const struct rpc_result *res, void *arg)
{
	struct answer *a = arg;
	a->done = true;
	a->error = res->error;
	a->code = res->code;
	(void)snprintf(a->text, sizeof a->text, "%s", res->text);
	buf_reset(&a->payload);
	assert_int_equal(buf_add(&a->payload, res->payload, res->payload_len), 0);
}

static inline void on_register(struct runtime *r, struct rpc_request *req)
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

static inline void on_update(struct runtime *r, struct rpc_request *req)
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
		(void)rpc_reply(req, NULL); /* the caller has disconnected */
	} else if (r->fail_updates) {
		r->fail_updates = false;
		(void)rpc_reply_error(req, TTRPC_UNKNOWN, "no such container");
	} else {
		(void)rpc_reply(req, NULL);
	}
}

static inline void serve(struct rpc_request *req, void *arg)
{
	assert_string_equal(req->service, NRI_RUNTIME_SERVICE);
	if (strcmp(req->method, "RegisterPlugin") == 0)
		on_register(arg, req);
	else
		on_update(arg, req);
}

static inline void take(struct runtime *r, int fd)
{
	const struct trunk_config config = {.mux = true, .closed = closed, .arg = r};
	struct err err = ERR_INIT;
	trunk_free(r->trunk);
	assert_int_equal(trunk_new(r->w->loop, fd, &config, &r->trunk, &err), 0);
	rpc_serve(trunk_rpc(r->trunk, MUX_CONN_RUNTIME), serve, r);
	r->n_connections++;
}

static inline void on_connection(unsigned events, void *arg)
{
	struct runtime *r = arg;
	int fd = wire_accept(r->listen_fd);
	if (fd >= 0)
		take(r, fd);
}

static inline void listen_now(struct runtime *r)
{
	struct err err = ERR_INIT;
	r->listen_fd = wire_listen_unix(r->socket, 0600, &err);
	assert_true(r->listen_fd >= 0);
	r->io = loop_io_new(r->w->loop, r->listen_fd, LOOP_READ, on_connection, r);
	assert_non_null(r->io);
}

static inline void orphaned(void *arg)
{
	((struct runtime *)arg)->n_orphaned++;
}

static inline void kick(void *arg)
{
	nri_updates_ready(((struct runtime *)arg)->nri);
}

static inline void start_plugin(struct runtime *r, int fd)
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

static inline struct runtime *runtime_new(bool listening)
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

static inline void runtime_free(struct runtime *r)
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

/* ---- asking ---------------------------------------------------------------------------------- */

static inline bool answer_is_there(struct world *w, void *arg)
{
	return ((struct answer *)arg)->done;
}

static inline bool is_registered(struct world *w, void *arg)
{
	const struct runtime *r = arg;
	return r->trunk && r->n_registered == r->n_connections &&
	       pipeline_runtime(r->w->p)->connected;
}

static inline bool has_updates(struct world *w, void *arg)
{
	const struct runtime *r = arg;
	return r->n_updates >= 1 && !updates_waiting(r->w->p);
}

static inline void await_answer(struct runtime *r, struct answer *a)
{
	world_until(r->w, answer_is_there, a);
}

static inline struct answer call_service(struct runtime *r, const char *service, const char *method,
					 const ProtobufCMessage *msg)
{
	struct answer a = {0};
	assert_int_equal(rpc_call(trunk_rpc(r->trunk, MUX_CONN_PLUGIN), service, method, msg, 0,
				  keep_answer, &a),
			 0);
	await_answer(r, &a);
	return a;
}

static inline struct answer call(struct runtime *r, const char *method, const ProtobufCMessage *msg)
{
	return call_service(r, NRI_PLUGIN_SERVICE, method, msg);
}

static inline void must(struct runtime *r, const char *method, const ProtobufCMessage *msg)
{
	struct answer a = call(r, method, msg);
	if (a.error)
		fail_msg("%s: %s", method, a.text);
	buf_fini(&a.payload);
}

static inline void fails(struct runtime *r, const char *method, const ProtobufCMessage *msg,
			 int32_t code, const char *part)
{
	struct answer a = call(r, method, msg);
	assert_int_equal(a.error, -EREMOTEIO);
	assert_int_equal(a.code, code);
	if (!strstr(a.text, part))
		fail_msg("'%s' does not tell '%s'", a.text, part);
	buf_fini(&a.payload);
}

/* Configures the plugin as a runtime of this version, and returns the events that it subscribes
 * to. */
static inline int32_t configure_as(struct runtime *r, const char *version, const char *nri_version)
{
	Nri__ConfigureRequest m = NRI__CONFIGURE_REQUEST__INIT;
	m.runtime_name = (char *)"containerd";
	m.runtime_version = (char *)(uintptr_t)version;
	m.nri_version = (char *)(uintptr_t)nri_version;
	m.request_timeout = 2000;
	struct answer a = call(r, "Configure", &m.base);
	assert_int_equal(a.error, 0);
	Nri__ConfigureResponse *res =
		nri__configure_response__unpack(NULL, buf_len(&a.payload), buf_bytes(&a.payload));
	int32_t events = res->events;
	nri__configure_response__free_unpacked(res, NULL);
	buf_fini(&a.payload);
	return events;
}

static inline void configure(struct runtime *r)
{
	assert_int_equal(configure_as(r, "v9", "v0.12.0"), NRI_EVENTS | NRI_EVENT_UPDATE_POD);
}

/* Messages of a pod and its container, both with names. Tests may change the members before they
 * send them. */
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

static inline void describe(struct objects *o, const char *name, const char *alloc)
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

static inline Nri__CreateContainerResponse *create(struct runtime *r, struct objects *o)
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

static inline void create_named(struct runtime *r, const char *name, const char *alloc)
{
	struct objects o;
	describe(&o, name, alloc);
	nri__create_container_response__free_unpacked(create(r, &o), NULL);
}

static inline void synchronize(struct runtime *r)
{
	Nri__SynchronizeRequest m = NRI__SYNCHRONIZE_REQUEST__INIT;
	must(r, "Synchronize", &m.base);
}

static inline struct runtime *connected(void)
{
	struct runtime *r = runtime_new(true);
	start_plugin(r, -1);
	world_until(r->w, is_registered, r);
	configure(r);
	synchronize(r);
	assert_true(pipeline_runtime(r->w->p)->synchronized);
	return r;
}

#endif
