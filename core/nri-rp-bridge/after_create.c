/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies the plugin of pods and containers that the runtime has already created: because no
 * plugin was connected before, or because the plugin wants to know the runtime's id of a pod
 * (--pod-event after). A pod that the plugin refuses then is stopped and removed. Also notifies the
 * plugin of their ends.
 */
#include <errno.h>
#include <string.h>

#include "core/nri-rp-bridge/intercept_internal.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"

#define LOG_SOURCE "bridge"
#define UNDO_MS 30000u /* the runtime's time limit for stopping or removing a pod */

/* Passes the runtime's answer to the caller and frees the call. */
static void pass_answer(struct intercept_call *c)
{
	const struct intercept_events *events = c->events;
	c->events = NULL;
	if (events)
		events->release(c->arg);
	call_free(c);
}

/* ---- removal of a refused pod ---------------------------------------------------------------- */

static void end_refused(struct intercept_call *c, const struct grpc_result *result)
{
	if (result && result->error && result->error != -ECANCELED)
		log_warning("pod %s, refused by the plugin, cannot be removed: %s", c->late_id,
			    result->text);
	call_refuse(c, GRPC_FAILED_PRECONDITION, c->refusal);
	call_free(c);
}

static void on_removed(const struct grpc_result *result, void *arg)
{
	end_refused(arg, result);
}

static int undo_by(struct intercept_call *c, const char *method, grpc_done done)
{
	Cri__Id m = CRI__ID__INIT;
	m.id = (char *)(uintptr_t)c->late_id;
	return intercept_call_runtime(c->intercept, method, &m.base, UNDO_MS, done, c);
}

static void on_pod_stopped(const struct grpc_result *result, void *arg)
{
	struct intercept_call *c = arg;
	if (result->error == -ECANCELED || undo_by(c, "RemovePodSandbox", on_removed))
		end_refused(c, result);
}

static void take_away(struct intercept_call *c, const char *why)
{
	c->refusal = arena_strdup(c->arena, why);
	if (!c->refusal)
		c->refusal = (char *)(uintptr_t) "the plugin refuses the pod";
	if (undo_by(c, "StopPodSandbox", on_pod_stopped))
		end_refused(c, NULL);
}

/* ---- request to the plugin ------------------------------------------------------------------- */

static void on_late_carried(unsigned failed, void *arg)
{
	struct intercept_call *c = arg;
	struct intercept *p = c->intercept;
	pass_answer(c);
	nri_runtime_unlock(p->plugin.nri);
}

/* Adds an update with the resources that would otherwise have been written into the request. */
static int add_late_update(struct intercept_call *c)
{
	const Nri__ContainerAdjustment *adjust = c->created ? c->created->adjust : NULL;
	if (!adjust || !adjust->lnx || !adjust->lnx->resources)
		return 0;
	Nri__ContainerUpdate *u = PB_ADOPT(c->arena, c, updates)
					  ? PB_ADD(c->arena, c, updates, nri__container_update)
					  : NULL;
	if (!u || !PB_PART(c->arena, u->lnx, nri__linux_container_update))
		return -ENOMEM;
	u->container_id = c->q.ctr->id;
	u->lnx->resources = adjust->lnx->resources;
	return 0;
}

static void on_late_asked(struct question *q, const struct rpc_result *result)
{
	struct intercept_call *c = (struct intercept_call *)q;
	int r = result ? result->error : -ENOTCONN;
	if (!r && c->method->hear)
		r = c->method->hear(c, result);
	if (!r)
		r = add_late_update(c);
	if (r == -EREMOTEIO && c->held) {
		struct nri_runtime *nri = c->intercept->plugin.nri;
		model_remove_pod(&c->intercept->plugin.model, q->pod);
		take_away(c, result->text);
		nri_runtime_unlock(nri);
		return;
	}
	if (r)
		log_warning("%s, which was reported to the plugin after its creation, is not "
			    "placed: %s",
			    c->late_id, r == -EREMOTEIO ? result->text : strerror(-r));
	if (q->ctr)
		q->ctr->placing = false;
	if (r && q->ctr)
		model_remove_ctr(&c->intercept->plugin.model, q->ctr);
	else if (q->ctr && !q->ctr->leaving && !q->ctr->gone && !q->pod->leaving) {
		if (q->ctr->state == NRI__CONTAINER_STATE__CONTAINER_UNKNOWN)
			q->ctr->state = NRI__CONTAINER_STATE__CONTAINER_CREATED;
		ends_look_soon(
			c->intercept); /* the container may have been started in the meantime */
		q->ctr->polled = c->intercept->n_polls;
		if (q->ctr->state != NRI__CONTAINER_STATE__CONTAINER_STOPPED)
			tell_event(c->intercept, NRI__EVENT__POST_CREATE_CONTAINER, q->pod, q->ctr,
				   false);
		gather_place(c->intercept, q->ctr);
	}
	if (q->ctr && !q->ctr->placing)
		intercept_unpark(c->intercept, q->ctr);
	carry_updates(c->intercept, c->updates, r ? 0 : c->n_updates, NULL, on_late_carried, c);
}

/* Handles the end of a pod or container that the plugin may have learned of since the call
 * began. */
static void tell_end(struct intercept_call *c)
{
	if (nri_runtime_is_active(c->intercept->plugin.nri))
		(void)c->method->read(c);
	if (c->told)
		c->method->after(c, OUTCOME_DONE, span_of(NULL, 0));
	pass_answer(c);
}

/* Queries the plugin, unless it has learnt of the pod or container in the meantime. Called with the
 * lock. */
static void on_late_turn(void *arg)
{
	struct intercept_call *c = arg;
	struct intercept *p = c->intercept;
	if (!c->method->creates) {
		tell_end(c);
		nri_runtime_unlock(p->plugin.nri);
		return;
	}
	bool known =
		model_pod(&p->plugin.model, c->late_id) || model_ctr(&p->plugin.model, c->late_id);
	if (known || !nri_runtime_is_active(p->plugin.nri) || c->method->read(c)) {
		pass_answer(c);
	} else {
		if (c->q.ctr)
			/* calls wait until the plugin has received the container */
			c->q.ctr->placing = true;
		c->q.then = on_late_asked;
		c->q.deadline_ms = UINT64_MAX;
		question_ask(&c->q);
	}
	nri_runtime_unlock(p->plugin.nri);
}

/* Runs a turn that intercept_end deferred, because the caller must not be answered inside it. */
static void on_later(void *arg)
{
	struct intercept_call *c = arg;
	c->is_later = false;
	c->late = (struct nri_turn){.fn = on_late_turn, .arg = c};
	nri_runtime_lock(c->intercept->plugin.nri, &c->late);
}

bool late_begin(struct intercept_call *c, struct span answer)
{
	bool made = c->method->creates;
	const Cri__Id *m = made ? call_unpack(c, &cri__id__descriptor, answer) : NULL;
	c->q.ctr = ctr_unref(c->q.ctr);
	c->q.pod = pod_unref(c->q.pod);
	if (made && (!m || !*m->id))
		return false;
	c->stage = STAGE_LATE;
	c->late_id = made ? m->id : NULL;
	c->later = (struct loop_task){NULL, on_later, c};
	c->is_later = true;
	loop_defer_task(c->intercept->config.loop, &c->later);
	return true;
}
