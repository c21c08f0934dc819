/* SPDX-License-Identifier: Apache-2.0 */
/* Queues requests behind a deferred one. */
#include "core/nri-rpd/nri/wait.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/lib/util/log.h"
#include "core/nri-rpd/nri/handlers.h"
#include "core/nri-rpd/pipeline/wait/hold.h"

#define LOG_SOURCE "nri"

struct waiting {
	struct rpc_request *req;
	char *service, *method;
	uint8_t *payload;
	size_t len;
	struct waiting *prev, *next;
};

/* ---- waiting requests ------------------------------------------------------------------------ */

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

bool wait_behind(struct nri *nri, struct rpc_request *req)
{
	if (!nri->held)
		return false;
	struct waiting *w = nri->waiting_bytes + req->payload_len <= NRI_WAITING_BYTES_MAX
				    ? waiting_new(req)
				    : NULL;
	if (!w) {
		log_error("%s fails: too many requests are waiting, or out of memory", req->method);
		(void)rpc_reply_error(req, TTRPC_RESOURCE_EXHAUSTED,
				      "nri-rp: too many requests are waiting for a reply");
		return true;
	}
	nri->waiting_bytes += w->len;
	DL_APPEND(nri->waiting, w);
	return true;
}

static void handle_first(struct nri *nri)
{
	struct waiting *w = nri->waiting;
	assert(w && nri->waiting_bytes >= w->len);
	nri->waiting_bytes -= w->len;
	DL_DELETE(nri->waiting, w);
	w->req->service = w->service;
	w->req->method = w->method;
	w->req->payload = w->payload;
	w->req->payload_len = w->len;
	nri_handle_now(nri, w->req);
	waiting_free(w);
}

/* ---- the deferred request -------------------------------------------------------------------- */

static void wait_resume(void *arg)
{
	struct nri *nri = arg;
	assert(nri->held);
	nri->held = false;
	nri_resume(nri);
	while (nri->waiting && !nri->held)
		handle_first(nri);
}

bool wait_hold(struct nri *nri, const struct request_about *about)
{
	assert(!nri->held);
	nri->held = !nri->hurries && request_hold(nri->cfg.pipeline, about, wait_resume, nri);
	return nri->held;
}

void wait_let_go(struct nri *nri)
{
	if (nri->held)
		request_unhold(nri->cfg.pipeline);
	nri->held = false;
}

void wait_finish(struct nri *nri)
{
	bool held = nri->held;
	wait_let_go(nri);
	nri->hurries = true;
	if (held)
		nri_resume(nri);
	while (nri->waiting)
		handle_first(nri);
	nri->hurries = false;
}

void wait_drop(struct nri *nri)
{
	static const char why[] = "the connection was closed";
	if (nri->held)
		(void)rpc_reply_error(nri->call.req, TTRPC_UNAVAILABLE, why);
	wait_let_go(nri);
	while (nri->waiting) {
		struct waiting *w = nri->waiting;
		DL_DELETE(nri->waiting, w);
		(void)rpc_reply_error(w->req, TTRPC_UNAVAILABLE, why);
		waiting_free(w);
	}
	nri->waiting_bytes = 0;
}
