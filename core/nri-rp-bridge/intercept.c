/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/intercept.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <utlist.h>

#include "core/nri-rp-bridge/intercept_internal.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "bridge"

void *call_unpack(const struct intercept_call *c, const ProtobufCMessageDescriptor *type,
		  struct span s)
{
	ProtobufCAllocator alloc = pb_arena(c->arena);
	return protobuf_c_message_unpack(type, &alloc, span_len(&s), s.p);
}

/* ---- life of a call -------------------------------------------------------------------------- */

void call_free(struct intercept_call *c)
{
	DL_DELETE(c->intercept->calls, c);
	if (c->is_later)
		loop_undefer_task(c->intercept->config.loop, &c->later);
	ctr_unref(c->q.ctr);
	pod_unref(c->q.pod);
	arena_free(c->arena);
	free(c);
}

static void tell_forward(struct intercept_call *c, const uint8_t *payload, size_t n)
{
	const struct intercept_events *events = c->events;
	if (!c->held)
		c->events = NULL;
	c->stage = STAGE_FORWARDED;
	if (events)
		events->forward(payload, n, c->held, c->arg);
}

void call_refuse(struct intercept_call *c, enum grpc_status status, const char *text)
{
	const struct intercept_events *events = c->events;
	c->events = NULL;
	c->stage = STAGE_OVER;
	if (events)
		events->refuse(status, text, c->arg);
}

/* Forwards a call without asking the plugin, as a runtime without plugins would handle it. With
 * --require-plugin, refuses creations instead. */
static void pass_unasked(struct intercept_call *c)
{
	struct intercept *p = c->intercept;
	c->told = false;
	/* The container was added only for the plugin. */
	if (c->q.ctr && !c->q.ctr->cri_id)
		model_remove_ctr(&p->plugin.model, c->q.ctr);
	if (p->config.require_plugin && c->method->creates) {
		call_refuse(
			c, GRPC_UNAVAILABLE,
			"nri-rpd is not connected to nri-rp-bridge, as --require-plugin demands");
		call_free(c);
		return;
	}
	p->n_unasked += c->method->event != NRI__EVENT__UNKNOWN;
	tell_forward(c, c->payload.p, span_len(&c->payload));
}

/* Undoes the effects of a call that was not carried out. */
static void intercept_undo(struct intercept_call *c)
{
	if (c->told && c->generation == c->intercept->generation)
		c->method->after(c, OUTCOME_BROKEN, span_of(NULL, 0));
	else if (c->q.ctr && !c->q.ctr->cri_id)
		model_remove_ctr(&c->intercept->plugin.model, c->q.ctr);
}

/* ---- answer of the plugin -------------------------------------------------------------------- */

static void forward_edited(struct intercept_call *c)
{
	struct cri_missing missing = {0};
	struct err err = ERR_INIT;
	int r = c->method->edit ? c->method->edit(c, &missing, &err) : 0;
	for (unsigned i = 0; i < missing.n; i++)
		log_warning("%s of %s: CRI cannot express %s", c->method->name,
			    c->q.ctr ? c->q.ctr->id : c->q.pod->id, missing.fields[i]);
	if (!r && missing.n && c->intercept->config.strict)
		r = err_set(&err, -EOPNOTSUPP, "the plugin requests %s, which CRI cannot express",
			    missing.fields[0]);
	if (r) {
		call_refuse(c, GRPC_FAILED_PRECONDITION, err_text(&err, r));
		intercept_undo(c);
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
		call_refuse(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
		intercept_undo(c);
		call_free(c);
		return;
	}
	protobuf_c_message_pack(c->request, edited);
	tell_forward(c, edited, n);
}

/* Forwards the edited call when the updates of other containers are done. */
static void on_carried(unsigned failed, void *arg)
{
	struct intercept_call *c = arg;
	struct intercept *p = c->intercept;
	if (c->events) {
		forward_edited(c);
	} else {
		intercept_undo(c);
		call_free(c);
	}
	nri_runtime_unlock(p->plugin.nri);
}

static void refuse_by_plugin(struct intercept_call *c, const char *text)
{
	char reason[ERR_TEXT_MAX];
	(void)snprintf(reason, sizeof reason, "%s", text);
	call_refuse(c, GRPC_FAILED_PRECONDITION, reason);
	/* A plugin that refuses has not recorded the new pod or container. */
	c->told = false;
	intercept_undo(c);
	call_free(c);
}

static void on_asked(struct question *q, const struct rpc_result *result)
{
	struct intercept_call *c = (struct intercept_call *)q;
	struct intercept *p = c->intercept;
	int r = result ? result->error : !nri_runtime_is_active(p->plugin.nri);
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
		intercept_undo(c);
		call_free(c);
	}
	nri_runtime_unlock(p->plugin.nri);
}

/* ---- start of a call ------------------------------------------------------------------------- */

bool intercept_wants(const char *path)
{
	size_t service;
	return method_of(path, &service) != NULL;
}

static struct intercept_call *call_new(struct intercept *p, const struct method *method,
				       const uint8_t *payload, size_t n, uint64_t left_ms)
{
	struct intercept_call *c = calloc(1, sizeof *c);
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
	c->intercept = p;
	c->q = (struct question){.plugin = &p->plugin,
				 .event = method->event,
				 .deadline_ms = clock_ms() + limit,
				 .then = on_asked};
	DL_APPEND(p->calls, c);
	return c;
}

void intercept_begin(struct intercept *p, const char *path, const uint8_t *payload, size_t n,
		     uint64_t left_ms, const struct intercept_events *events, void *arg,
		     struct intercept_call **ret)
{
	size_t service = 0;
	const struct method *method = method_of(path, &service);
	assert(method);
	(void)snprintf(p->service, sizeof p->service, "%.*s", (int)service, path);
	struct intercept_call *c = call_new(p, method, payload, n, left_ms);
	*ret = c;
	if (!c) {
		events->refuse(GRPC_RESOURCE_EXHAUSTED, "out of memory", arg);
		return;
	}
	c->events = events;
	c->arg = arg;
	/* Calls that end a pod or container look it up afterwards: a plugin may connect in the
	 * meantime. */
	bool asks = method->event != NRI__EVENT__UNKNOWN && nri_runtime_is_active(p->plugin.nri);
	int r = asks ? method->read(c) : 1;
	if (r < 0) {
		*ret = NULL;
		call_refuse(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
		intercept_undo(c);
		call_free(c);
	} else if (r > 0 && !nri_runtime_is_active(p->plugin.nri)) {
		pass_unasked(c);
	} else if (c->held) {
		forward_edited(c);
	} else if (r > 0) {
		tell_forward(c, c->payload.p, span_len(&c->payload));
	} else if (c->q.ctr && c->q.ctr->placing) {
		c->parked = true;
	} else {
		question_ask(&c->q);
	}
}

static struct intercept_call *parked_for(const struct intercept *p, const struct ctr *ctr)
{
	struct intercept_call *c;
	DL_FOREACH (p->calls, c)
		if (c->parked && c->q.ctr == ctr)
			return c;
	return NULL;
}

void intercept_unpark(struct intercept *p, const struct ctr *ctr)
{
	struct intercept_call *c;
	while ((c = parked_for(p, ctr))) {
		c->parked = false;
		if (ctr->gone)
			pass_unasked(c);
		else
			question_ask(&c->q);
	}
}

/* ---- end of a call --------------------------------------------------------------------------- */

struct intercept_call *intercept_end(struct intercept_call *c, enum intercept_outcome outcome,
				     const uint8_t *payload, size_t n)
{
	if (!c)
		return NULL;
	struct intercept *p = c->intercept;
	bool late = c->stage == STAGE_FORWARDED && outcome == OUTCOME_DONE && !c->told &&
		    (c->method->creates || c->method->event == NRI__EVENT__UNKNOWN) &&
		    (p->gather || nri_runtime_is_active(p->plugin.nri));
	if (late && late_begin(c, span_of(payload, n)))
		return c->held ? c : NULL;
	c->events = NULL;
	if (c->stage != STAGE_FORWARDED)
		return NULL; /* the plugin's pending answer ends the call */
	if (c->told && c->generation == p->generation)
		c->method->after(c, outcome, span_of(payload, n));
	else
		intercept_undo(c);
	call_free(c);
	return NULL;
}

/* ---- the plugin ------------------------------------------------------------------------------ */

static void on_asked_updates(unsigned failed, void *arg)
{
	struct intercept *p = arg;
	nri_runtime_updated(p->plugin.nri, failed > 0);
}

static void on_update(const Nri__UpdateContainersRequest *m, void *arg)
{
	carry_updates(arg, m->update, m->n_update, NULL, on_asked_updates, arg);
}

/* Makes the plugin reconnect and synchronize after the runtime was away, because changes of
 * containers in that time are unknown. A runtime's own NRI would have lost the connection as
 * well. */
static void on_back(void *arg)
{
	struct intercept *p = arg;
	p->is_back = false;
	nri_runtime_drop(p->plugin.nri, "the runtime was not reachable and is back");
}

static void on_runtime_back(void *arg)
{
	struct intercept *p = arg;
	if (!p->is_back)
		loop_defer_task(p->config.loop, &p->back);
	p->is_back = true;
}

static void on_came(const char *plugin, void *arg)
{
	struct intercept *p = arg;
	log_notice("the plugin %s is connected: containers are placed; %lu calls passed without",
		   plugin, p->n_unasked);
	p->n_unasked = 0;
	ends_watch(p);
}

int intercept_new(const struct intercept_config *config, struct intercept **ret, struct err *err)
{
	struct intercept *p = calloc(1, sizeof *p);
	if (!p)
		return err_errno(err, -ENOMEM, "source cri");
	p->config = *config;
	(void)snprintf(p->service, sizeof p->service, "%s", SERVICE_V1);
	p->poll = loop_timer_new(config->loop, ends_look, p);
	int r = p->poll ? plugin_open(&p->plugin,
				      &(struct plugin_config){.loop = config->loop,
							      .socket = config->socket,
							      .name = "nri-rp-bridge/cri",
							      .without = "calls pass unchanged",
							      .creates = true,
							      .synchronize = gather_begin,
							      .update = on_update,
							      .came = on_came,
							      .heard = tell_heard},
				      err)
			: err_errno(err, -ENOMEM, "source cri");
	if (r) {
		intercept_free(p);
		return r;
	}
	p->back = (struct loop_task){NULL, on_back, p};
	upstream_watch(config->runtime, on_runtime_back, p);
	*ret = p;
	return 0;
}

struct intercept *intercept_free(struct intercept *p)
{
	if (!p)
		return NULL;
	if (p->is_back)
		loop_undefer_task(p->config.loop, &p->back);
	events_leave(p->config.events, &p->listener);
	plugin_close(&p->plugin);
	p->gather = gather_free(p->gather);
	while (p->calls)
		call_free(p->calls);
	loop_timer_free(p->poll);
	free(p);
	return NULL;
}
