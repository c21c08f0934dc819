/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "core/nri-rp-bridge/intercept_internal.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/wire/nri_protocol.h"

#define LOG_SOURCE "bridge"
#define UPDATE_MS 2000u /* the runtime's time limit for an update */

/* ---- notices --------------------------------------------------------------------------------- */

static void notice_carried(unsigned failed, void *arg)
{
	notice_end(arg);
}

void tell_heard(struct notice *n, const struct rpc_result *result, void *intercept)
{
	const struct question *q = &n->q;
	if (result && result->error == -EREMOTEIO)
		log_info("the plugin's reply to %s: %s", nri_event_method(q->event), result->text);
	if (result && !result->error && q->event == NRI__EVENT__STOP_CONTAINER)
		n->answer = nri__stop_container_response__unpack(NULL, result->payload_len,
								 result->payload);
	if (!n->answer)
		notice_end(n);
	else
		carry_updates(intercept, n->answer->update, n->answer->n_update, q->ctr->id,
			      notice_carried, n);
}

void tell_event(struct intercept *p, Nri__Event event, struct pod *pod, struct ctr *ctr,
		bool removes)
{
	struct notice *n = notice_new(&p->plugin, event, pod, ctr);
	if (!n)
		return;
	n->removes = removes;
	if (removes)
		*(ctr ? &ctr->leaving : &pod->leaving) = true;
	question_ask(&n->q);
}

void tell_running(struct intercept *p, struct ctr *ctr)
{
	if (ctr->state != NRI__CONTAINER_STATE__CONTAINER_CREATED)
		return;
	ctr->state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
	tell_event(p, NRI__EVENT__POST_START_CONTAINER, ctr->pod, ctr, false);
}

void tell_stopped(struct intercept *p, struct ctr *ctr)
{
	if (ctr->state == NRI__CONTAINER_STATE__CONTAINER_STOPPED)
		return;
	ctr->state = NRI__CONTAINER_STATE__CONTAINER_STOPPED;
	tell_event(p, NRI__EVENT__STOP_CONTAINER, ctr->pod, ctr, false);
}

void tell_removed(struct intercept *p, struct ctr *ctr)
{
	if (ctr->leaving)
		return;
	tell_stopped(p, ctr);
	tell_event(p, NRI__EVENT__REMOVE_CONTAINER, ctr->pod, ctr, true);
}

/* ---- effective resources --------------------------------------------------------------------- */

void resources_in_force(struct ctr *ctr, const Nri__LinuxResources *resources)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	Nri__Container *m = a && resources ? ctr_message(a, ctr) : NULL;
	Cri__Resources all = CRI__RESOURCES__INIT;
	struct cri_missing missing = {0};
	int r = m && m->lnx ? 0 : -ENOMEM;
	if (!r && m->lnx->resources)
		r = cri_set_resources(a, &all, m->lnx->resources, &missing);
	if (!r)
		r = cri_set_resources(a, &all, resources, &missing);
	if (!r)
		m->lnx->resources = cri_resources(a, &all);
	if (r || !m->lnx->resources || packed_set(&ctr->msg, &m->base))
		log_error("out of memory: the plugin is not notified of an update of %s", ctr->id);
}

/* ---- updates --------------------------------------------------------------------------------- */

int intercept_call_runtime(struct intercept *p, const char *method, const ProtobufCMessage *msg,
			   uint32_t timeout_ms, grpc_done done, void *arg)
{
	struct h2 *h2;
	struct err err = ERR_INIT;
	char path[128];
	int r = upstream_connection(p->config.runtime, &h2, &err);
	if (r)
		return r;
	(void)snprintf(path, sizeof path, "%s%s", p->service, method);
	return grpc_call(&(struct grpc_call_config){.h2 = h2,
						    .loop = p->config.loop,
						    .path = path,
						    .timeout_ms = timeout_ms,
						    .done = done,
						    .arg = arg},
			 msg, NULL);
}

struct carry {
	struct intercept *intercept;
	unsigned n_left, failed;
	void (*done)(unsigned failed, void *arg);
	void *arg;
};

/* An update that the runtime is processing. */
struct carried {
	struct carry *carry;
	struct ctr *ctr;
	struct packed resources; /* packed resources, a CRI message */
};

static void carry_put(struct carry *c)
{
	if (--c->n_left)
		return;
	if (c->done)
		c->done(c->failed, c->arg);
	free(c);
}

static void carried_free(struct carried *u)
{
	ctr_unref(u->ctr);
	packed_fini(&u->resources);
	free(u);
}

static void on_updated(const struct grpc_result *result, void *arg)
{
	struct carried *u = arg;
	struct carry *c = u->carry;
	if (result->error) {
		log_warning("an update of a container failed: %s", result->text);
		c->failed++;
	} else {
		_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
		const Cri__Resources *r =
			PB_UNPACK(a, cri__resources, u->resources.n, u->resources.data);
		resources_in_force(u->ctr, r ? cri_resources(a, r) : NULL);
	}
	carried_free(u);
	carry_put(c);
}

static int send_update(struct carry *c, struct ctr *ctr, Cri__Resources *resources)
{
	Cri__UpdateRequest m = CRI__UPDATE_REQUEST__INIT;
	struct carried *u = calloc(1, sizeof *u);
	if (!u)
		return -ENOMEM;
	u->carry = c;
	u->ctr = ctr_ref(ctr);
	m.id = ctr->cri_id;
	m.lnx = resources;
	int r = packed_set(&u->resources, &resources->base);
	if (!r)
		r = intercept_call_runtime(c->intercept, "UpdateContainerResources", &m.base,
					   UPDATE_MS, on_updated, u);
	if (r)
		carried_free(u);
	else
		c->n_left++;
	return r;
}

/* Adds the resources to an update that already waits. */
static int add_pending(struct arena *a, struct ctr *ctr, const Nri__LinuxResources *resources,
		       struct cri_missing *missing)
{
	Cri__Resources none = CRI__RESOURCES__INIT, *to = &none;
	if (ctr->pending.data)
		to = PB_UNPACK(a, cri__resources, ctr->pending.n, ctr->pending.data);
	int r = to ? cri_set_resources(a, to, resources, missing) : -ENOMEM;
	return r ? r : packed_set(&ctr->pending, &to->base);
}

static int carry_one(struct ctr *ctr, const Nri__ContainerUpdate *u, void *arg, struct err *err)
{
	struct carry *c = arg;
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	struct cri_missing missing = {0};
	if (!a)
		return -ENOMEM;
	if (!ctr->cri_id)
		return add_pending(a, ctr, u->lnx->resources, &missing);
	Cri__Resources resources = CRI__RESOURCES__INIT;
	int r = cri_set_resources(a, &resources, u->lnx->resources, &missing);
	if (missing.n)
		log_warning("container %s: CRI cannot express %s", ctr->cri_id, missing.fields[0]);
	return r ? r : send_update(c, ctr, &resources);
}

void carry_updates(struct intercept *p, Nri__ContainerUpdate *const *list, size_t n,
		   const char *except, void (*done)(unsigned failed, void *arg), void *arg)
{
	struct carry *c = calloc(1, sizeof *c);
	if (!c) {
		done((unsigned)n, arg);
		return;
	}
	*c = (struct carry){.intercept = p, .n_left = 1, .done = done, .arg = arg};
	c->failed += plugin_updates(&p->plugin, list, n, except, carry_one, c);
	carry_put(c);
}

void carry_pending(struct intercept *p, struct ctr *ctr)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	Cri__Resources *to = a && ctr->pending.data ? PB_UNPACK(a, cri__resources, ctr->pending.n,
								ctr->pending.data)
						    : NULL;
	struct carry *c = to ? calloc(1, sizeof *c) : NULL;
	packed_fini(&ctr->pending);
	if (!c)
		return;
	*c = (struct carry){.intercept = p, .n_left = 1};
	if (send_update(c, ctr, to))
		log_warning("container %s cannot be updated", ctr->cri_id);
	carry_put(c);
}
