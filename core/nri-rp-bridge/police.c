/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/police.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rp-bridge/police_internal.h"
#include "core/util/log.h"
#include "core/util/pb.h"
#include "core/util/str.h"

#define LOG_SOURCE "bridge"

enum stage { STAGE_ASKED, STAGE_UPDATING, STAGE_FORWARDED, STAGE_OVER };

struct method {
	const char *name;
	/* Reads the request, and says whom it is about. 1: not to be asked about. NULL: it is just
	 * passed on. */
	int (*read)(struct police_call *c);
	Nri__Event event; /* what the plugin is asked, where read says so */
	/* The answer of the plugin: other containers' updates in *list. */
	int (*hear)(struct police_call *c, const struct rpc_result *result);
	/* Writes what the plugin wants into the request. */
	int (*edit)(struct police_call *c, struct cri_missing *missing, struct err *err);
	bool creates; /* something that is not there without a plugin, where one is required */
	/* What follows the runtime's answer. ok: with its payload. */
	void (*after)(struct police_call *c, bool ok, struct span payload);
};

struct police_call {
	struct question q;
	const struct method *method;
	struct arena *arena;
	struct span payload; /* in the arena */
	const struct police_events *events; /* NULL: the caller has gone, or has been told */
	void *arg;
	enum stage stage;
	unsigned generation;
	bool told; /* the plugin knows of this call */
	char new_id[MODEL_ID_SIZE]; /* by which the plugin is to know what is created */
	const char *late_id; /* the runtime's, of what was created while nobody was asked */
	struct nri_turn late;
	ProtobufCMessage *request;
	Nri__ContainerUpdate **updates;
	size_t n_updates;
	Nri__CreateContainerResponse *created; /* what the plugin says */
	Nri__UpdateContainerResponse *updated;
	struct police_call *prev, *next;
};

static ProtobufCAllocator alloc_of(const struct police_call *c)
{
	return pb_arena(c->arena);
}

static void *unpack(const struct police_call *c, const ProtobufCMessageDescriptor *type,
		    struct span s)
{
	ProtobufCAllocator alloc = alloc_of(c);
	return protobuf_c_message_unpack(type, &alloc, span_len(&s), s.p);
}

/* ---- life of a call -------------------------------------------------------------------------- */

static void call_free(struct police_call *c)
{
	DL_DELETE(c->q.police->calls, c);
	ctr_unref(c->q.ctr);
	pod_unref(c->q.pod);
	arena_free(c->arena);
	free(c);
}

static void tell_forward(struct police_call *c, const uint8_t *payload, size_t n)
{
	const struct police_events *events = c->events;
	c->events = NULL;
	c->stage = STAGE_FORWARDED;
	if (events)
		events->forward(payload, n, c->arg);
}

/* The call is over for its caller. */
static void tell_refusal(struct police_call *c, enum grpc_status status, const char *text)
{
	const struct police_events *events = c->events;
	c->events = NULL;
	c->stage = STAGE_OVER;
	if (events)
		events->refuse(status, text, c->arg);
}

/* As the runtime would do it, had it no plugin. */
static void pass_unasked(struct police_call *c)
{
	struct police *p = c->q.police;
	c->told = false;
	/* What was made for the plugin alone. */
	if (c->q.ctr && !c->q.ctr->cri_id)
		model_remove_ctr(&p->model, c->q.ctr);
	if (p->config.require_plugin && c->method->creates) {
		tell_refusal(c, GRPC_UNAVAILABLE,
			     "nri-rpd is not connected to nri-rp-bridge, and --require-plugin");
		call_free(c);
		return;
	}
	tell_forward(c, c->payload.p, span_len(&c->payload));
}

/* What was begun has come to nothing. */
static void undo(struct police_call *c)
{
	if (c->told && c->generation == c->q.police->generation)
		c->method->after(c, false, span_of(NULL, 0));
	else if (c->q.ctr && !c->q.ctr->cri_id)
		model_remove_ctr(&c->q.police->model, c->q.ctr);
}

/* ---- the plugin's answer --------------------------------------------------------------------- */

static void forward_edited(struct police_call *c)
{
	struct cri_missing missing = {0};
	struct err err = ERR_INIT;
	int r = c->method->edit ? c->method->edit(c, &missing, &err) : 0;
	for (unsigned i = 0; i < missing.n; i++)
		log_warning("%s of %s: CRI has no place for %s", c->method->name,
			    c->q.ctr ? c->q.ctr->id : c->q.pod->id, missing.fields[i]);
	if (!r && missing.n && c->q.police->config.strict)
		r = err_set(&err, -EOPNOTSUPP, "the plugin wants %s, which CRI has no place for",
			    missing.fields[0]);
	if (r) {
		tell_refusal(c, GRPC_FAILED_PRECONDITION, err_text(&err, r));
		undo(c);
		call_free(c);
		return;
	}
	if (!c->request) {
		tell_forward(c, c->payload.p, span_len(&c->payload));
		return;
	}
	size_t n = protobuf_c_message_get_packed_size(c->request);
	uint8_t *edited = arena_alloc(c->arena, n + 1);
	if (!edited) {
		tell_refusal(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
		undo(c);
		call_free(c);
		return;
	}
	protobuf_c_message_pack(c->request, edited);
	tell_forward(c, edited, n);
}

/* The other containers have what they are to have. */
static void on_carried(unsigned failed, void *arg)
{
	struct police_call *c = arg;
	struct police *p = c->q.police;
	(void)failed;
	if (c->events) {
		forward_edited(c);
	} else {
		undo(c);
		call_free(c);
	}
	nri_runtime_unlock(p->nri);
}

static void refuse_by_plugin(struct police_call *c, const char *text)
{
	char reason[ERR_TEXT_MAX];
	(void)snprintf(reason, sizeof reason, "%s", text);
	tell_refusal(c, GRPC_FAILED_PRECONDITION, reason);
	/* A plugin that refuses has kept nothing of what is new to it. */
	c->told = false;
	undo(c);
	call_free(c);
}

static void on_asked(struct question *q, const struct rpc_result *result)
{
	struct police_call *c = (struct police_call *)q;
	struct police *p = q->police;
	int r = result ? result->error : !nri_runtime_is_active(p->nri);
	if (result && !r && c->method->hear)
		r = c->method->hear(c, result);
	c->told = r == 0;
	if (!r) {
		c->stage = STAGE_UPDATING;
		carry_updates(p, c->updates, c->n_updates, q->ctr ? q->ctr->id : NULL, on_carried,
			      c);
		return;
	}
	if (r == -EREMOTEIO)
		refuse_by_plugin(c, result->text);
	else if (c->events)
		pass_unasked(c);
	else {
		undo(c);
		call_free(c);
	}
	nri_runtime_unlock(p->nri);
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* What is being created is known by an id of ours, what is there by the runtime's. NULL: there is
 * none. */
static const char *id_of_new(struct police_call *c)
{
	if (c->late_id)
		return c->late_id;
	return model_new_id(c->new_id) ? NULL : c->new_id;
}

static int read_run_pod(struct police_call *c)
{
	const char *id = id_of_new(c);
	Cri__RunPodSandboxRequest *m =
		unpack(c, &cri__run_pod_sandbox_request__descriptor, c->payload);
	if (!m || !m->config)
		return 1; /* the runtime says what is wrong with it */
	Nri__PodSandbox *pod = id ? cri_pod(c->arena, id, m->config, m->runtime_handler) : NULL;
	if (!pod)
		return -ENOMEM;
	c->request = &m->base;
	c->q.pod = model_add_pod(&c->q.police->model, pod, c->late_id);
	return c->q.pod ? 0 : -ENOMEM;
}

static int edit_run_pod(struct police_call *c, struct cri_missing *missing, struct err *err)
{
	Cri__PodConfig *config = ((Cri__RunPodSandboxRequest *)c->request)->config;
	const char *parent = config->lnx ? config->lnx->cgroup_parent : "";
	(void)missing;
	int r = cri_annotate_pod(c->arena, config, CRI_ID_ANNOTATION, c->q.pod->id);
	if (!r)
		r = cri_annotate_pod(c->arena, config, CRI_PARENT_ANNOTATION, parent);
	return r ? err_errno(err, r, "a pod") : 0;
}

static void after_run_pod(struct police_call *c, bool ok, struct span payload)
{
	struct police *p = c->q.police;
	const Cri__Id *m = ok ? unpack(c, &cri__id__descriptor, payload) : NULL;
	if (m && *m->id && model_name_pod(&p->model, c->q.pod, m->id) == 0)
		return;
	notice_tell(p, NRI__EVENT__STOP_POD_SANDBOX, c->q.pod, NULL, EFFECT_NONE);
	notice_tell(p, NRI__EVENT__REMOVE_POD_SANDBOX, c->q.pod, NULL, EFFECT_REMOVE);
}

static int read_pod(struct police_call *c)
{
	const Cri__Id *m = unpack(c, &cri__id__descriptor, c->payload);
	struct pod *pod = m ? model_pod(&c->q.police->model, m->id) : NULL;
	c->q.pod = pod ? pod_ref(pod) : NULL;
	c->told = pod != NULL;
	return 1;
}

static void tell_each(struct police_call *c, void (*tell)(struct police *p, struct ctr *ctr))
{
	struct ctr *ctr, *next;
	HASH_ITER (by_id, c->q.police->model.ctrs, ctr, next) {
		if (ctr->pod == c->q.pod && ctr->cri_id)
			tell(c->q.police, ctr);
	}
}

static void after_stop_pod(struct police_call *c, bool ok, struct span payload)
{
	(void)payload;
	if (!ok)
		return;
	tell_each(c, tell_stopped);
	notice_tell(c->q.police, NRI__EVENT__STOP_POD_SANDBOX, c->q.pod, NULL, EFFECT_NONE);
}

static void after_remove_pod(struct police_call *c, bool ok, struct span payload)
{
	(void)payload;
	if (!ok)
		return;
	tell_each(c, tell_removed);
	notice_tell(c->q.police, NRI__EVENT__REMOVE_POD_SANDBOX, c->q.pod, NULL, EFFECT_REMOVE);
}

/* ---- containers ------------------------------------------------------------------------------ */

static int read_create(struct police_call *c)
{
	const char *id = id_of_new(c);
	struct model *model = &c->q.police->model;
	Cri__CreateContainerRequest *m =
		unpack(c, &cri__create_container_request__descriptor, c->payload);
	struct pod *pod = m ? model_pod(model, m->pod_sandbox_id) : NULL;
	if (!pod || !m->config)
		return 1;
	Nri__Container *ctr = id ? cri_container(c->arena, id, pod->id, m->config) : NULL;
	if (!ctr)
		return -ENOMEM;
	c->request = &m->base;
	c->q.pod = pod_ref(pod);
	c->q.ctr = model_add_ctr(model, pod, ctr, c->late_id);
	return c->q.ctr ? 0 : -ENOMEM;
}

static int hear_create(struct police_call *c, const struct rpc_result *result)
{
	c->created = unpack(c, &nri__create_container_response__descriptor,
			    span_of(result->payload, result->payload_len));
	if (!c->created)
		return -EBADMSG;
	c->updates = c->created->update;
	c->n_updates = c->created->n_update;
	if (c->created->n_evict)
		log_warning("the plugin evicts containers, which is not done here");
	return 0;
}

static int edit_create(struct police_call *c, struct cri_missing *missing, struct err *err)
{
	Cri__ContainerConfig *config = ((Cri__CreateContainerRequest *)c->request)->config;
	int r = c->created && c->created->adjust
			? cri_adjust(c->arena, config, c->created->adjust, missing)
			: 0;
	if (!r)
		r = cri_annotate_container(c->arena, config, CRI_ID_ANNOTATION, c->q.ctr->id);
	return r ? err_errno(err, r, "a container") : 0;
}

static void after_create(struct police_call *c, bool ok, struct span payload)
{
	struct police *p = c->q.police;
	const Cri__Id *m = ok ? unpack(c, &cri__id__descriptor, payload) : NULL;
	if (!m || !*m->id || model_name_ctr(&p->model, c->q.ctr, m->id)) {
		tell_removed(p, c->q.ctr);
		return;
	}
	carry_pending(p, c->q.ctr);
	notice_tell(p, NRI__EVENT__POST_CREATE_CONTAINER, c->q.pod, c->q.ctr, EFFECT_NONE);
}

static int find_ctr(struct police_call *c)
{
	const Cri__Id *m = unpack(c, &cri__id__descriptor, c->payload);
	struct ctr *ctr = m ? model_ctr(&c->q.police->model, m->id) : NULL;
	if (!ctr)
		return 1;
	c->q.ctr = ctr_ref(ctr);
	c->q.pod = pod_ref(ctr->pod);
	return 0;
}

static void after_start(struct police_call *c, bool ok, struct span payload)
{
	(void)payload;
	if (!ok) {
		tell_stopped(c->q.police, c->q.ctr);
		return;
	}
	c->q.ctr->state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
	notice_tell(c->q.police, NRI__EVENT__POST_START_CONTAINER, c->q.pod, c->q.ctr, EFFECT_NONE);
	gather_poll_later(c->q.police);
}

static int read_update(struct police_call *c)
{
	int r = find_ctr(c);
	Cri__UpdateRequest *m = unpack(c, &cri__update_request__descriptor, c->payload);
	if (r || !m || !m->lnx)
		return 1;
	c->request = &m->base;
	c->q.resources = cri_resources(c->arena, m->lnx);
	return c->q.resources ? 0 : -ENOMEM;
}

static int hear_update(struct police_call *c, const struct rpc_result *result)
{
	c->updated = unpack(c, &nri__update_container_response__descriptor,
			    span_of(result->payload, result->payload_len));
	if (!c->updated)
		return -EBADMSG;
	c->updates = c->updated->update;
	c->n_updates = c->updated->n_update;
	return 0;
}

static int edit_update(struct police_call *c, struct cri_missing *missing, struct err *err)
{
	Cri__UpdateRequest *m = (Cri__UpdateRequest *)c->request;
	int r = 0;
	for (size_t i = 0; !r && i < c->n_updates; i++) {
		const Nri__ContainerUpdate *u = c->updates[i];
		if (str_eq(u->container_id, c->q.ctr->id) && u->lnx && u->lnx->resources)
			r = cri_set_resources(c->arena, m->lnx, u->lnx->resources, missing);
	}
	return r ? err_errno(err, r, "an update") : 0;
}

static void after_update(struct police_call *c, bool ok, struct span payload)
{
	(void)payload;
	if (ok)
		notice_tell(c->q.police, NRI__EVENT__POST_UPDATE_CONTAINER, c->q.pod, c->q.ctr,
			    EFFECT_NONE);
}

static int read_ctr(struct police_call *c)
{
	c->told = find_ctr(c) == 0;
	return 1;
}

static void after_stop(struct police_call *c, bool ok, struct span payload)
{
	(void)payload;
	if (ok)
		tell_stopped(c->q.police, c->q.ctr);
}

static void after_remove(struct police_call *c, bool ok, struct span payload)
{
	(void)payload;
	if (ok)
		tell_removed(c->q.police, c->q.ctr);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static const struct method methods[] = {
	{"RunPodSandbox", read_run_pod, NRI__EVENT__RUN_POD_SANDBOX, NULL, edit_run_pod, true,
	 after_run_pod},
	{"StopPodSandbox", read_pod, NRI__EVENT__UNKNOWN, NULL, NULL, false, after_stop_pod},
	{"RemovePodSandbox", read_pod, NRI__EVENT__UNKNOWN, NULL, NULL, false, after_remove_pod},
	{"CreateContainer", read_create, NRI__EVENT__CREATE_CONTAINER, hear_create, edit_create,
	 true, after_create},
	{"StartContainer", find_ctr, NRI__EVENT__START_CONTAINER, NULL, NULL, false, after_start},
	{"UpdateContainerResources", read_update, NRI__EVENT__UPDATE_CONTAINER, hear_update,
	 edit_update, false, after_update},
	{"StopContainer", read_ctr, NRI__EVENT__UNKNOWN, NULL, NULL, false, after_stop},
	{"RemoveContainer", read_ctr, NRI__EVENT__UNKNOWN, NULL, NULL, false, after_remove},
};

/* "/runtime.v1.RuntimeService/CreateContainer" → the method; the length of what is before its
 * name. */
static const struct method *method_of(const char *path, size_t *ret_service)
{
	static const char *const services[] = {SERVICE_V1, SERVICE_V1ALPHA2};
	for (unsigned i = 0; i < sizeof services / sizeof *services; i++) {
		if (!str_has_prefix(path, services[i]))
			continue;
		*ret_service = strlen(services[i]);
		for (unsigned k = 0; k < sizeof methods / sizeof *methods; k++)
			if (str_eq(path + *ret_service, methods[k].name))
				return &methods[k];
	}
	return NULL;
}

bool police_wants(const char *path)
{
	size_t service;
	return method_of(path, &service) != NULL;
}

static struct police_call *call_new(struct police *p, const struct method *method,
				    const uint8_t *payload, size_t n, uint64_t left_ms)
{
	struct police_call *c = calloc(1, sizeof *c);
	uint64_t limit = left_ms < QUESTION_MS ? left_ms : QUESTION_MS;
	if (!c)
		return NULL;
	c->arena = arena_new(ARENA_BLOCK, ARENA_MAX);
	const uint8_t *copy = c->arena ? arena_memdup(c->arena, payload, n) : NULL;
	if (n && !copy) {
		arena_free(c->arena);
		free(c);
		return NULL;
	}
	c->payload = span_of(copy, n);
	c->method = method;
	c->generation = p->generation;
	c->q = (struct question){.nri = p->nri,
				 .police = p,
				 .event = method->event,
				 .deadline_ms = clock_ms() + limit,
				 .then = on_asked};
	DL_APPEND(p->calls, c);
	return c;
}

void police_begin(struct police *p, const char *path, const uint8_t *payload, size_t n,
		  uint64_t left_ms, const struct police_events *events, void *arg,
		  struct police_call **ret)
{
	size_t service = 0;
	const struct method *method = method_of(path, &service);
	assert(method);
	(void)snprintf(p->service, sizeof p->service, "%.*s", (int)service, path);
	struct police_call *c = call_new(p, method, payload, n, left_ms);
	*ret = c;
	if (!c) {
		events->refuse(GRPC_RESOURCE_EXHAUSTED, "out of memory", arg);
		return;
	}
	c->events = events;
	c->arg = arg;
	int r = nri_runtime_is_active(p->nri) ? method->read(c) : 1;
	if (r < 0) {
		*ret = NULL;
		tell_refusal(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
		undo(c);
		call_free(c);
	} else if (r > 0 && !nri_runtime_is_active(p->nri)) {
		pass_unasked(c);
	} else if (r > 0) {
		tell_forward(c, c->payload.p, span_len(&c->payload));
	} else {
		question_ask(&c->q);
	}
}

/* ---- what was created while nobody was asked ------------------------------------------------- */

static void on_late_carried(unsigned failed, void *arg)
{
	struct police_call *c = arg;
	struct police *p = c->q.police;
	(void)failed;
	call_free(c);
	nri_runtime_unlock(p->nri);
}

/* What would have been written into the request is an update now. */
static int add_late_update(struct police_call *c)
{
	const Nri__ContainerAdjustment *adjust = c->created ? c->created->adjust : NULL;
	if (!adjust || !adjust->lnx || !adjust->lnx->resources)
		return 0;
	Nri__ContainerUpdate *u = arena_zero(c->arena, Nri__ContainerUpdate);
	Nri__LinuxContainerUpdate *lnx = arena_zero(c->arena, Nri__LinuxContainerUpdate);
	Nri__ContainerUpdate **list =
		arena_array(c->arena, c->n_updates + 1, sizeof(Nri__ContainerUpdate *));
	if (!u || !lnx || !list)
		return -ENOMEM;
	nri__container_update__init(u);
	nri__linux_container_update__init(lnx);
	u->container_id = c->q.ctr->id;
	u->lnx = lnx;
	lnx->resources = adjust->lnx->resources;
	if (c->n_updates)
		memcpy(list, c->updates, c->n_updates * sizeof(Nri__ContainerUpdate *));
	list[c->n_updates++] = u;
	c->updates = list;
	return 0;
}

static void on_late_asked(struct question *q, const struct rpc_result *result)
{
	struct police_call *c = (struct police_call *)q;
	int r = result ? result->error : 0;
	if (result && !r && c->method->hear)
		r = c->method->hear(c, result);
	if (!r)
		r = add_late_update(c);
	if (r)
		log_warning("%s, which was created while no plugin was asked, is not placed: %s",
			    c->late_id, r == -EREMOTEIO ? result->text : strerror(-r));
	if (r && q->ctr)
		model_remove_ctr(&q->police->model, q->ctr);
	carry_updates(q->police, c->updates, r ? 0 : c->n_updates, NULL, on_late_carried, c);
}

/* Under the lock: is it unknown still? */
static void on_late_turn(void *arg)
{
	struct police_call *c = arg;
	struct police *p = c->q.police;
	bool known = model_pod(&p->model, c->late_id) || model_ctr(&p->model, c->late_id);
	if (known || !nri_runtime_is_active(p->nri) || c->method->read(c)) {
		call_free(c);
	} else {
		c->q.then = on_late_asked;
		c->q.deadline_ms = UINT64_MAX;
		question_ask(&c->q);
	}
	nri_runtime_unlock(p->nri);
}

/* A plugin came while the runtime was at it, and may or may not have been told by Synchronize. */
static void tell_late(struct police_call *c, struct span payload)
{
	const Cri__Id *m = unpack(c, &cri__id__descriptor, payload);
	c->q.ctr = ctr_unref(c->q.ctr);
	c->q.pod = pod_unref(c->q.pod);
	if (!m || !*m->id) {
		call_free(c);
		return;
	}
	c->late_id = m->id;
	c->late = (struct nri_turn){.fn = on_late_turn, .arg = c};
	nri_runtime_lock(c->q.police->nri, &c->late);
}

struct police_call *police_end(struct police_call *c, bool ok, const uint8_t *payload, size_t n)
{
	if (!c)
		return NULL;
	c->events = NULL;
	if (c->stage != STAGE_FORWARDED)
		return NULL; /* the plugin is being asked: that ends it */
	struct police *p = c->q.police;
	if (!c->told && ok && c->method->creates && (p->gather || nri_runtime_is_active(p->nri))) {
		tell_late(c, span_of(payload, n));
		return NULL;
	}
	if (c->told && c->generation == p->generation)
		c->method->after(c, ok, span_of(payload, n));
	else
		undo(c);
	call_free(c);
	return NULL;
}

/* ---- the plugin ------------------------------------------------------------------------------ */

static void on_asked_updates(unsigned failed, void *arg)
{
	struct police *p = arg;
	nri_runtime_updated(p->nri, failed > 0);
}

static void on_update(const Nri__UpdateContainersRequest *m, void *arg)
{
	if (m->n_evict)
		log_warning("the plugin evicts containers, which is not done here");
	carry_updates(arg, m->update, m->n_update, NULL, on_asked_updates, arg);
}

static void on_came(const char *plugin, void *arg)
{
	log_notice("the plugin %s is connected: containers are placed", plugin);
	gather_poll_later(arg);
}

static void on_gone(bool was_active, const char *why, void *arg)
{
	(void)arg;
	log_notice("%s: %s", why,
		   was_active ? "no plugin is connected any more, calls pass unchanged"
			      : "a plugin was let go before it was asked anything");
}

static void on_problem(const char *what, void *arg)
{
	(void)arg;
	log_warning("the plugin: %s", what);
}

int police_new(const struct police_config *config, struct police **ret, struct err *err)
{
	const struct nri_release *release;
	struct police *p = calloc(1, sizeof *p);
	if (!p)
		return err_errno(err, -ENOMEM, "police");
	p->config = *config;
	(void)snprintf(p->service, sizeof p->service, "%s", SERVICE_V1);
	p->poll = loop_timer_new(config->loop, gather_poll, p);
	int r = release_find(PLAYED_NRI, &release, err);
	if (!r)
		r = p->poll ? nri_runtime_new(
				      &(struct nri_runtime_config){
					      .loop = config->loop,
					      .socket = config->socket,
					      .name = "nri-rp-bridge/cri",
					      .version = NRI_RP_VERSION,
					      .registration_timeout_ms = REGISTRATION_MS,
					      .request_timeout_ms = QUESTION_MS,
					      .synchronize = gather_begin,
					      .update = on_update,
					      .came = on_came,
					      .gone = on_gone,
					      .problem = on_problem,
					      .release = release,
					      .arg = p},
				      &p->nri, err)
			    : err_errno(err, -ENOMEM, "police");
	if (r) {
		police_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct police *police_free(struct police *p)
{
	if (!p)
		return NULL;
	nri_runtime_free(p->nri);
	p->gather = gather_free(p->gather);
	notices_free(p);
	while (p->calls)
		call_free(p->calls);
	loop_timer_free(p->poll);
	model_clear(&p->model);
	free(p);
	return NULL;
}
