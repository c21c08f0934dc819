/* SPDX-License-Identifier: Apache-2.0 */
#include "core/runtime/wait.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/pipeline/request/admit.h"
#include "core/pipeline/request/devices.h"
#include "core/runtime/sync.h"
#include "core/util/log.h"
#include "core/util/str.h"

#define LOG_SOURCE "nri"

struct waiting {
	struct rpc_request *req;
	char *service, *method;
	uint8_t *payload;
	size_t len;
	bool looked_at; /* by wait_until() */
	struct waiting *prev, *next;
};

/* ---- who has to wait --------------------------------------------------------------------------------------------------- */

static uint64_t sandbox_until(struct nri *nri, const struct rpc_request *req, bool first)
{
	struct pod_desc pod;
	int r = nri_decode_sandbox(nri, req, &pod);
	uint64_t until =
		r ? 0 : pipeline_admit_wait(nri->cfg.pipeline, &pod, req->received_ns, first);
	arena_reset(nri->arena);
	return until;
}

static uint64_t create_until(struct nri *nri, const struct rpc_request *req)
{
	struct pod_desc pod;
	struct ctr_desc ctr;
	int r = nri_decode_pod_of(nri, req, &pod, &ctr);
	uint64_t until =
		r ? 0 : pipeline_devices_wait(nri->cfg.pipeline, &pod, ctr.name, req->received_ns);
	arena_reset(nri->arena);
	return until;
}

/* The parts of a list come one after the other; the last one has it decided. */
static uint64_t sync_until(struct nri *nri, const struct rpc_request *req, bool again)
{
	bool more, first = !nri->sync.objects && !buf_len(&nri->sync.bytes);
	uint32_t objects;
	if (sync_look(req->payload, req->payload_len, &more, &objects))
		return 0;
	uint64_t until =
		pipeline_devices_wait_all(nri->cfg.pipeline, first && !again, req->received_ns);
	return more ? 0 : until;
}

/* clock_ms() until when, 0: not at all. `again`: it has been looked at before. */
static uint64_t wait_until(struct nri *nri, const struct rpc_request *req, bool again)
{
	const struct pipeline *p = nri->cfg.pipeline;
	if (!str_eq(req->service, NRI_PLUGIN_SERVICE))
		return 0;
	if (pipeline_admit_waits(p) && nri_is_sandbox(req))
		return sandbox_until(nri, req, !again);
	if (!pipeline_devices_are_on(p))
		return 0;
	if (str_eq(req->method, "CreateContainer"))
		return create_until(nri, req);
	return str_eq(req->method, "Synchronize") ? sync_until(nri, req, again) : 0;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------------- */

static struct waiting *waiting_free(struct waiting *w)
{
	free(w->service);
	free(w->method);
	free(w->payload);
	free(w);
	return NULL;
}

static struct waiting *waiting_new(struct rpc_request *req)
{
	struct waiting *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	w->req = req;
	w->service = strdup(req->service);
	w->method = strdup(req->method);
	w->len = req->payload_len;
	w->payload = malloc(w->len + 1);
	if (!w->service || !w->method || !w->payload)
		return waiting_free(w);
	if (w->len)
		memcpy(w->payload, req->payload, w->len);
	return w;
}

static void arm(struct nri *nri, uint64_t until)
{
	uint64_t now = clock_ms();
	(void)loop_timer_arm(nri->wait_timer, until > now ? until - now : 0);
}

bool wait_take(struct nri *nri, struct rpc_request *req)
{
	uint64_t until = nri->waiting ? 0 : wait_until(nri, req, false);
	if (!nri->waiting && !until)
		return false;
	struct waiting *w = nri->waiting_bytes + req->payload_len <= NRI_WAITING_BYTES_MAX
				    ? waiting_new(req)
				    : NULL;
	if (!w) {
		(void)rpc_reply_error(req, TTRPC_RESOURCE_EXHAUSTED,
				      "nri-rp: too much waits for an answer");
		return true;
	}
	log_debug("%s waits", req->method);
	w->looked_at = until != 0;
	nri->waiting_bytes += w->len;
	DL_APPEND(nri->waiting, w);
	if (until)
		arm(nri, until);
	return true;
}

static void handle(struct nri *nri, struct waiting *w)
{
	struct rpc_request *req = w->req;
	assert(w == nri->waiting && nri->waiting_bytes >= w->len);
	nri->waiting_bytes -= w->len;
	DL_DELETE(nri->waiting, w);
	nri_handle_now(nri, req);
	waiting_free(w);
}

/* The first of those that wait, to look at. */
static struct waiting *first(const struct nri *nri)
{
	assert(nri->waiting);
	struct waiting *w = nri->waiting;
	w->req->service = w->service;
	w->req->method = w->method;
	w->req->payload = w->payload;
	w->req->payload_len = w->len;
	return w;
}

void wait_finish(struct nri *nri)
{
	while (nri->waiting)
		handle(nri, first(nri));
}

void wait_run(struct nri *nri)
{
	while (nri->waiting) {
		struct waiting *w = first(nri);
		uint64_t until = wait_until(nri, w->req, w->looked_at);
		w->looked_at = true;
		if (until) {
			arm(nri, until);
			return;
		}
		handle(nri, w);
	}
}

void wait_drop(struct nri *nri)
{
	while (nri->waiting) {
		struct waiting *w = nri->waiting;
		DL_DELETE(nri->waiting, w);
		(void)rpc_reply_error(w->req, TTRPC_UNAVAILABLE, "the connection has ended");
		waiting_free(w);
	}
	nri->waiting_bytes = 0;
	loop_timer_disarm(nri->wait_timer);
}
