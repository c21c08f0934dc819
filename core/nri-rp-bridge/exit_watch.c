/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects containers that end by themselves or are removed behind the bridge's back. The runtime's
 * events report most of them. A list requested shortly after finds those that ended before the
 * event stream began.
 *
 * The list is requested every 10 s while a container runs, if the runtime has no events or the
 * stream has delivered none yet: containerd 1.7 first sends one event to each stream that was
 * closed, such as those of a restarted bridge. With working events the list is requested every 300
 * s, because runtimes drop events that are not read in time.
 */
#include <stdlib.h>

#include "core/nri-rp-bridge/intercept_internal.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"

#define LOG_SOURCE "bridge"
#define POLL_MS 10000u
#define POLL_BESIDE_EVENTS_MS 300000u
#define SOON_MS 500u
#define EVENT_STOPPED 2
#define EVENT_DELETED 3

/* ---- events ---------------------------------------------------------------------------------- */

static void on_event(const uint8_t *payload, size_t n, void *arg)
{
	struct intercept *p = arg;
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	const Cri__ContainerEvent *m = PB_UNPACK(a, cri__container_event, n, payload);
	struct ctr *ctr = m ? model_ctr(&p->plugin.model, m->id) : NULL;
	if (!m || !p->heard)
		ends_look_soon(p);
	p->heard = true;
	if (!ctr || !nri_runtime_is_active(p->plugin.nri))
		return;
	if (m->type == EVENT_STOPPED)
		tell_stopped(p, ctr);
	else if (m->type == EVENT_DELETED)
		tell_removed(p, ctr);
}

static void on_events_ended(const struct grpc_result *result, void *arg)
{
	struct intercept *p = arg;
	if (result->error == -ECANCELED)
		return;
	p->no_events = result->error == -EREMOTEIO && result->status == GRPC_UNIMPLEMENTED;
	if (p->no_events)
		log_info("the runtime has no events: listing its containers every %u s",
			 POLL_MS / 1000);
	else
		log_info("the runtime's events have ended: %s",
			 result->error ? result->text : "end of stream");
	ends_look_soon(p);
}

/* Opens the event stream. Returns false if it is open already, or the runtime has no events. */
static bool listen_anew(struct intercept *p)
{
	struct err err = ERR_INIT;
	if (p->listener.listens || p->no_events)
		return false;
	p->listener =
		(struct events_listener){.event = on_event, .ended = on_events_ended, .arg = p};
	return events_listen(p->config.events, &p->listener, &err) == 0;
}

void ends_watch(struct intercept *p)
{
	p->no_events = false; /* another runtime may have been started */
	(void)listen_anew(p);
	ends_look_soon(p);
}

/* ---- list of containers ---------------------------------------------------------------------- */

static bool any_runs(const struct intercept *p)
{
	for (const struct ctr *ctr = p->plugin.model.ctrs; ctr; ctr = ctr->by_id.next)
		if (ctr->state == NRI__CONTAINER_STATE__CONTAINER_RUNNING)
			return true;
	return false;
}

void ends_look_later(struct intercept *p)
{
	bool told = p->listener.listens && p->heard;
	if (!loop_timer_armed(p->poll) && any_runs(p))
		(void)loop_timer_arm(p->poll, told ? POLL_BESIDE_EVENTS_MS : POLL_MS);
}

void ends_look_soon(struct intercept *p)
{
	(void)loop_timer_arm(p->poll, SOON_MS);
}

static void tell_missing(struct intercept *p)
{
	struct ctr *ctr, *next;
	HASH_ITER (by_id, p->plugin.model.ctrs, ctr, next) {
		if (ctr->cri_id && ctr->polled != p->n_polls)
			tell_removed(p, ctr);
	}
}

static void on_listed(const struct grpc_result *result, void *arg)
{
	struct intercept *p = arg;
	p->polling = false;
	Cri__ContainerList *m =
		result->error
			? NULL
			: cri__container_list__unpack(NULL, result->payload_len, result->payload);
	for (size_t i = 0; m && i < m->n_containers; i++) {
		struct ctr *ctr = model_ctr(&p->plugin.model, m->containers[i]->id);
		if (!ctr)
			continue;
		ctr->polled = p->n_polls;
		if (m->containers[i]->state >= STATE_EXITED)
			tell_stopped(p, ctr);
		else if (m->containers[i]->state == STATE_RUNNING)
			tell_running(p, ctr);
	}
	if (m)
		tell_missing(p);
	cri__container_list__free_unpacked(m, NULL);
	if (result->error != -ECANCELED)
		ends_look_later(p);
}

void ends_look(void *arg)
{
	struct intercept *p = arg;
	Cri__Id none = CRI__ID__INIT;
	if (!nri_runtime_is_active(p->plugin.nri) || p->polling)
		return;
	if (listen_anew(p)) { /* the list covers what happened before the stream began */
		ends_look_soon(p);
		return;
	}
	p->n_polls++;
	p->polling =
		intercept_call_runtime(p, "ListContainers", &none.base, LIST_MS, on_listed, p) == 0;
	if (!p->polling)
		ends_look_later(p);
}
