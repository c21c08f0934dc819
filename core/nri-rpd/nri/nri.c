/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to the runtime, registers, reconnects, and sends unsolicited updates. */
#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/nri/internal.h"
#include "core/nri-rpd/nri/wait.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/nri/encode.h"
#include "core/nri-rpd/nri/handlers.h"
#include "core/nri-rpd/nri/nri.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#define LOG_SOURCE "nri"
#define BACKOFF_FIRST_MS 50u
#define BACKOFF_LAST_MS 2000u
#define LATE_LAST_MS 60000u
#define STABLE_MS 5000u /* smallest age of a connection whose end resets the back-off */
#define REGISTER_TIMEOUT_MS 5000u
#define UPDATE_TIMEOUT_MS 10000u
#define RENEW_MS                                                                                   \
	2000u /* milliseconds to wait for pending requests before the connection is renewed */

/* ---- unsolicited updates --------------------------------------------------------------------- */

static void updates_answered(const struct rpc_result *result, void *arg)
{
	struct nri *nri = arg;
	if (result->error == 0)
		updates_acked(nri->cfg.pipeline);
	else
		updates_failed(nri->cfg.pipeline,
			       result->error == -ECONNRESET || result->error == -ECANCELED,
			       result->text);
	nri_kick(nri);
}

static void renew_when_idle(void *arg);

void nri_kick(struct nri *nri)
{
	struct pipeline *p = nri->cfg.pipeline;
	uint32_t n;
	if (!nri->trunk || !pipeline_runtime(p)->synchronized || rpc_n_pending(nri->rpc) ||
	    updates_outstanding(p))
		return;
	const struct update *batch = updates_next(p, &n);
	if (!batch) {
		if (nri->renew)
			(void)loop_defer(nri->cfg.loop, renew_when_idle, nri);
		return;
	}
	Nri__UpdateContainersRequest out = NRI__UPDATE_CONTAINERS_REQUEST__INIT;
	struct arena *a = arena_new(4096, NRI_REQUEST_ARENA);
	out.update = a ? encode_updates(a, batch, n, false) : NULL;
	out.n_update = n;
	int r = out.update ? rpc_call(trunk_rpc(nri->trunk, MUX_CONN_RUNTIME), NRI_RUNTIME_SERVICE,
				      "UpdateContainers", &out.base, UPDATE_TIMEOUT_MS,
				      updates_answered, nri)
			   : -ENOMEM;
	arena_free(a);
	if (r) {
		log_warning("updates could not be sent: %s, retrying", strerror(-r));
		updates_failed(p, r == -ENOTCONN, strerror(-r));
	}
}

static void kick_later(void *arg)
{
	nri_kick(arg);
}

void nri_updates_ready(struct nri *nri)
{
	if (nri)
		(void)loop_defer(nri->cfg.loop, kick_later, nri);
}

static void give_back(void *arg)
{
	(void)malloc_trim(0);
}

void nri_give_back(struct nri *nri)
{
	(void)loop_defer(nri->cfg.loop, give_back, NULL);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void nri_schedule(struct nri *nri)
{
	/* A little jitter keeps the plugins of a node from connecting all at once. A linear
	 * congruence is random enough. */
	nri->jitter = nri->jitter * 1103515245u + 12345u;
	uint64_t ms = backoff_next_ms(&nri->backoff, BACKOFF_FIRST_MS, BACKOFF_LAST_MS);
	(void)loop_timer_arm(nri->reconnect, ms + nri->jitter / 65536u % (ms / 4 + 1));
}

static void nri_lost(struct nri *nri, const char *why, bool loud)
{
	struct runtime_state *s = pipeline_runtime(nri->cfg.pipeline);
	bool was_synchronized = s->synchronized, late = nri->close_why != NULL;
	nri->renew = false; /* the next connection uses the new address anyway */
	loop_timer_disarm(nri->renew_timer);
	if (!late && nri->trunk && clock_ms() - nri->connected_ms > STABLE_MS)
		backoff_reset(&nri->backoff);
	nri->trunk = trunk_free(nri->trunk);
	wait_drop(nri);
	nri->rpc = NULL;
	/* A runtime that does not have an event closes the connection after Configure. */
	nri->only_old = nri->extended || (nri->only_old && !was_synchronized);
	nri->extended = false;
	nri->close_why = NULL;
	nri_sync_reset(&nri->sync);
	fallback_lost(nri, s->connected, was_synchronized);
	bool news = !str_eq(s->last_error, why);
	s->connected = s->synchronized = false;
	(void)snprintf(s->last_error, sizeof s->last_error, "%s", why);
	if (loud) {
		s->disconnects++;
		log_error("connection to the runtime lost: %s; containers created meanwhile are "
			  "not managed; reconnecting",
			  why);
		pipeline_event(nri->cfg.pipeline, EV_RUNTIME, "connection lost: %s", why);
	} else if (news) {
		log_notice("waiting for the runtime: %s", why);
	}
	if (nri->cfg.inherited_fd >= 0) {
		if (nri->cfg.orphaned)
			nri->cfg.orphaned(nri->cfg.arg);
		return;
	}
	if (late) {
		(void)loop_timer_arm(nri->reconnect,
				     backoff_next_ms(&nri->late, BACKOFF_FIRST_MS, LATE_LAST_MS));
		return;
	}
	if (was_synchronized)
		backoff_reset(&nri->backoff);
	nri_schedule(nri);
}

void nri_restart(struct nri *nri, const char *why)
{
	nri_lost(nri, why, true);
}

static void closed(struct trunk *trunk, const struct err *err, void *arg)
{
	struct nri *nri = arg;
	nri_lost(nri, err->text, true);
}

static void nri_registered(const struct rpc_result *result, void *arg)
{
	struct nri *nri = arg;
	if (result->error == 0) {
		log_debug("registered as %02u-%s", nri->cfg.index, nri->name);
		return;
	}
	if (result->error == -ECONNRESET || result->error == -ECANCELED)
		return; /* closed() continues */
	log_error("the runtime does not register %02u-%s: %s", nri->cfg.index, nri->name,
		  result->text);
	nri_lost(nri, result->text, true);
}

static int nri_start(struct nri *nri, int fd, struct err *err)
{
	assert(!nri->trunk);
	const struct trunk_config config = {.mux = true, .closed = closed, .arg = nri};
	char index[8], version[] = NRI_VERSION;
	int r = trunk_new(nri->cfg.loop, fd, &config, &nri->trunk, err);
	if (r)
		return r;
	nri->rpc = trunk_rpc(nri->trunk, MUX_CONN_PLUGIN);
	rpc_serve(nri->rpc, nri_handle, nri);
	nri->connected_ms = clock_ms();
	(void)snprintf(index, sizeof index, "%02u", nri->cfg.index % 100);
	Nri__RegisterPluginRequest out = NRI__REGISTER_PLUGIN_REQUEST__INIT;
	out.plugin_name = nri->name;
	out.plugin_idx = index;
	out.nri_version = version;
	r = rpc_call(trunk_rpc(nri->trunk, MUX_CONN_RUNTIME), NRI_RUNTIME_SERVICE, "RegisterPlugin",
		     &out.base, REGISTER_TIMEOUT_MS, nri_registered, nri);
	if (r)
		return err_errno(err, r, "registering");
	struct runtime_state *s = pipeline_runtime(nri->cfg.pipeline);
	s->connected = true;
	s->connected_ns = clock_wall_ns();
	s->connects++;
	s->last_error[0] = '\0';
	return 0;
}

static int nri_dial(struct nri *nri, struct err *err)
{
	int fd = fallback_dial(nri, err);
	return fd < 0 ? fd : nri_start(nri, fd, err);
}

static void try_connect(void *arg)
{
	struct nri *nri = arg;
	struct err err = ERR_INIT;
	if (nri->trunk)
		return;
	int r = nri->cfg.inherited_fd >= 0 ? nri_start(nri, nri->cfg.inherited_fd, &err)
					   : nri_dial(nri, &err);
	if (r)
		nri_lost(nri, err_text(&err, r), false);
}

static void nri_do_renew(void *arg)
{
	struct nri *nri = arg;
	wait_finish(nri);
	nri_lost(nri, "", false);
	(void)loop_timer_arm(nri->reconnect, 1);
}

/* Reconnects if no update is pending. Pending updates use the present connection: if they were lost
 * with it, a later connection could not detect that. */
static void renew_when_idle(void *arg)
{
	struct nri *nri = arg;
	struct pipeline *p = nri->cfg.pipeline;
	bool busy = nri->trunk && pipeline_runtime(p)->synchronized &&
		    (rpc_n_pending(nri->rpc) || updates_outstanding(p) || updates_waiting(p));
	if (nri->renew && !busy)
		nri_do_renew(nri);
}

int nri_new(const struct nri_config *config, struct nri **ret, struct err *err)
{
	struct nri *nri = calloc(1, sizeof *nri);
	if (!nri)
		return err_errno(err, -ENOMEM, "NRI front end");
	nri->cfg = *config;
	nri->jitter = (uint32_t)getpid();
	nri->socket = strdup(config->socket);
	nri->name = strdup(config->name);
	nri->arena = arena_new(ARENA_BLOCK, NRI_REQUEST_ARENA);
	nri->reconnect = loop_timer_new(config->loop, try_connect, nri);
	nri->renew_timer = loop_timer_new(config->loop, nri_do_renew, nri);
	if (fallback_init(nri) || !nri->socket || !nri->name || !nri->arena || !nri->reconnect ||
	    !nri->renew_timer) {
		nri_free(nri);
		return err_errno(err, -ENOMEM, "NRI front end");
	}
	pipeline_runtime(nri->cfg.pipeline)->socket = nri->socket;
	*ret = nri;
	try_connect(nri);
	return 0;
}

struct nri *nri_free(struct nri *nri)
{
	if (!nri)
		return NULL;
	wait_finish(nri);
	trunk_free(nri->trunk);
	wait_drop(nri);
	fallback_fini(nri);
	loop_timer_free(nri->renew_timer);
	loop_timer_free(nri->reconnect);
	nri_sync_reset(&nri->sync);
	arena_free(nri->arena);
	pipeline_runtime(nri->cfg.pipeline)->socket = NULL;
	free(nri->socket);
	free(nri->name);
	free(nri);
	return NULL;
}

static int set_address(struct nri *nri, const struct nri_config *config)
{
	char *socket = strdup(config->socket), *name = strdup(config->name);
	if (!socket || !name) {
		free(socket);
		free(name);
		return -ENOMEM;
	}
	fallback_forget(nri);
	free(nri->socket);
	free(nri->name);
	nri->socket = socket;
	pipeline_runtime(nri->cfg.pipeline)->socket = socket;
	nri->name = name;
	nri->cfg.index = config->index;
	return 0;
}

void nri_renew(struct nri *nri)
{
	nri->renew = true;
	updates_hurry(nri->cfg.pipeline);
	(void)loop_timer_arm(nri->renew_timer, RENEW_MS);
	(void)loop_defer(nri->cfg.loop, renew_when_idle, nri);
}

int nri_set_runtime(struct nri *nri, const struct nri_config *config)
{
	bool other_fallback;
	/* The runtime has chosen name and index of an inherited connection, its only one. */
	if (nri->cfg.inherited_fd >= 0)
		return 0;
	int r = fallback_set(nri, config->fallback, config->fallback_after_ms, &other_fallback);
	bool other = !str_eq(nri->socket, config->socket) || !str_eq(nri->name, config->name) ||
		     nri->cfg.index != config->index;
	if (r == 0 && other)
		r = set_address(nri, config);
	if (r || !(other || other_fallback))
		return r;
	log_notice(
		"the runtime's socket, or the daemon's name or index, has changed: reconnecting");
	nri_renew(nri);
	return 0;
}
