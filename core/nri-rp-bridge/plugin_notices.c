/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rp-bridge/intercept_internal.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "bridge"
#define UPDATE_MS 2000u /* the runtime's time limit for an update */

/* ---- notices --------------------------------------------------------------------------------- */

struct notice {
	struct question q;
	enum effect effect;
	Nri__StopContainerResponse *answer; /* kept while its updates are carried out */
	struct notice *prev, *next;
};

static void notice_free(struct notice *n)
{
	DL_DELETE(n->q.police->notices, n);
	nri__stop_container_response__free_unpacked(n->answer, NULL);
	ctr_unref(n->q.ctr);
	pod_unref(n->q.pod);
	free(n);
}

void notices_free(struct police *p)
{
	while (p->notices) {
		question_forget(&p->notices->q);
		notice_free(p->notices);
	}
}

static void notice_done(unsigned failed, void *arg)
{
	struct notice *n = arg;
	struct police *p = n->q.police;
	(void)failed;
	if (n->effect == EFFECT_REMOVE && n->q.ctr)
		model_remove_ctr(&p->model, n->q.ctr);
	else if (n->effect == EFFECT_REMOVE)
		model_remove_pod(&p->model, n->q.pod);
	notice_free(n);
	nri_runtime_unlock(p->nri);
}

static void on_told(struct question *q, const struct rpc_result *result)
{
	struct notice *n = (struct notice *)q;
	if (result && result->error == -EREMOTEIO)
		log_info("the plugin's answer to event %d: %s", q->event, result->text);
	if (result && !result->error && q->event == NRI__EVENT__STOP_CONTAINER)
		n->answer = nri__stop_container_response__unpack(NULL, result->payload_len,
								 result->payload);
	if (!n->answer)
		notice_done(0, n);
	else
		carry_updates(q->police, n->answer->update, n->answer->n_update, q->ctr->id,
			      notice_done, n);
}

void notice_tell(struct police *p, Nri__Event event, struct pod *pod, struct ctr *ctr,
		 enum effect effect)
{
	struct notice *n = calloc(1, sizeof *n);
	if (!n) {
		log_error("out of memory: the plugin does not hear of event %d", event);
		return;
	}
	n->effect = effect;
	if (effect == EFFECT_REMOVE)
		*(ctr ? &ctr->leaving : &pod->leaving) = true;
	n->q = (struct question){.nri = p->nri,
				 .police = p,
				 .event = event,
				 .pod = pod_ref(pod),
				 .ctr = ctr ? ctr_ref(ctr) : NULL,
				 .deadline_ms = UINT64_MAX,
				 .then = on_told};
	DL_APPEND(p->notices, n);
	question_ask(&n->q);
}

void tell_running(struct police *p, struct ctr *ctr)
{
	if (ctr->state != NRI__CONTAINER_STATE__CONTAINER_CREATED)
		return;
	ctr->state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
	notice_tell(p, NRI__EVENT__POST_START_CONTAINER, ctr->pod, ctr, EFFECT_NONE);
}

void tell_stopped(struct police *p, struct ctr *ctr)
{
	if (ctr->state == NRI__CONTAINER_STATE__CONTAINER_STOPPED)
		return;
	ctr->state = NRI__CONTAINER_STATE__CONTAINER_STOPPED;
	notice_tell(p, NRI__EVENT__STOP_CONTAINER, ctr->pod, ctr, EFFECT_NONE);
}

void tell_removed(struct police *p, struct ctr *ctr)
{
	if (ctr->leaving)
		return;
	tell_stopped(p, ctr);
	notice_tell(p, NRI__EVENT__REMOVE_CONTAINER, ctr->pod, ctr, EFFECT_REMOVE);
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
		log_error("out of memory: the plugin does not hear of an update of %s", ctr->id);
}

/* ---- updates --------------------------------------------------------------------------------- */

int police_call_runtime(struct police *p, const char *method, const ProtobufCMessage *msg,
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
	struct police *police;
	unsigned n_left, failed;
	void (*done)(unsigned failed, void *arg);
	void *arg;
};

/* An update that the runtime is processing. */
struct carried {
	struct carry *carry;
	struct ctr *ctr;
	struct packed resources; /* CRI message */
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
		ProtobufCAllocator alloc = pb_arena(a);
		const Cri__Resources *r =
			a ? cri__resources__unpack(&alloc, u->resources.n, u->resources.data)
			  : NULL;
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
		r = police_call_runtime(c->police, "UpdateContainerResources", &m.base, UPDATE_MS,
					on_updated, u);
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
	ProtobufCAllocator alloc = pb_arena(a);
	Cri__Resources none = CRI__RESOURCES__INIT, *to = &none;
	if (ctr->pending.data)
		to = cri__resources__unpack(&alloc, ctr->pending.n, ctr->pending.data);
	int r = to ? cri_set_resources(a, to, resources, missing) : -ENOMEM;
	return r ? r : packed_set(&ctr->pending, &to->base);
}

static int carry_one(struct carry *c, struct arena *a, const Nri__ContainerUpdate *u)
{
	struct cri_missing missing = {0};
	struct ctr *ctr = model_ctr_by_id(&c->police->model, u->container_id);
	if (!ctr || ctr->state == NRI__CONTAINER_STATE__CONTAINER_STOPPED)
		return u->ignore_failure ? 0 : -ENOENT;
	if (!u->lnx || !u->lnx->resources)
		return 0;
	if (!ctr->cri_id)
		return add_pending(a, ctr, u->lnx->resources, &missing);
	Cri__Resources resources = CRI__RESOURCES__INIT;
	int r = cri_set_resources(a, &resources, u->lnx->resources, &missing);
	if (missing.n)
		log_warning("container %s: CRI has no place for %s", ctr->cri_id,
			    missing.fields[0]);
	return r ? r : send_update(c, ctr, &resources);
}

void carry_updates(struct police *p, Nri__ContainerUpdate *const *list, size_t n,
		   const char *except, void (*done)(unsigned failed, void *arg), void *arg)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	struct carry *c = calloc(1, sizeof *c);
	if (!a || !c) {
		free(c);
		done((unsigned)n, arg);
		return;
	}
	*c = (struct carry){.police = p, .n_left = 1, .done = done, .arg = arg};
	for (size_t i = 0; i < n; i++) {
		if (except && str_eq(list[i]->container_id, except))
			continue;
		int r = carry_one(c, a, list[i]);
		if (r)
			log_warning("container %s cannot be updated: %s", list[i]->container_id,
				    r == -ENOENT ? "there is none" : strerror(-r));
		if (r)
			c->failed++;
	}
	carry_put(c);
}

void carry_pending(struct police *p, struct ctr *ctr)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	ProtobufCAllocator alloc = pb_arena(a);
	Cri__Resources *to = a && ctr->pending.data ? cri__resources__unpack(&alloc, ctr->pending.n,
									     ctr->pending.data)
						    : NULL;
	struct carry *c = to ? calloc(1, sizeof *c) : NULL;
	packed_fini(&ctr->pending);
	if (!c)
		return;
	*c = (struct carry){.police = p, .n_left = 1};
	if (send_update(c, ctr, to))
		log_warning("container %s cannot be updated", ctr->cri_id);
	carry_put(c);
}
