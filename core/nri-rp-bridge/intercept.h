/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intercepts the calls that a plugin may change. The bridge acts as the runtime's side of NRI: it
 * writes what the plugin wants into the call before the runtime sees it, and reports the outcome to
 * the plugin. Without a plugin, calls pass unchanged.
 *
 *   intercept.c       life of a call: request to the plugin, edit, forward or refuse, outcome
 *   methods.c         the intercepted calls, one by one
 *   after_create.c    pods and containers created before the plugin hears of them
 *   plugin_notices.c  events for the plugin, and its updates of other containers
 *   gather.c          lists pods and containers for Synchronize
 *   exit_watch.c      detects containers that end by themselves
 *   model.c           pods and containers, by the plugin's and the runtime's ids
 *   cri_edit.c        converts between CRI and NRI messages
 *
 * A call:
 *
 *   waiting ──turn──▶ asked ──answer──▶ updating ──▶ forwarded ──runtime's answer──▶ done
 *                       └──refused or abandoned: the plugin is notified of the removal
 *
 * A pod with --pod-event after:
 *   forwarded ──runtime's answer──▶ late ──plugin's answer──▶ done, or removed and refused
 */
#pragma once

#include "core/lib/grpc/message.h"
#include "core/nri-rp-bridge/events.h"
#include "core/nri-rp-bridge/upstream.h"

struct intercept;
struct intercept_call;

struct intercept_config {
	struct loop *loop;
	struct upstream *runtime;
	struct events *events; /* the runtime's event stream */
	const char *socket; /* socket where plugins connect */
	bool strict; /* fail a call if CRI has no field for a value that the plugin sets */
	bool require_plugin; /* refuse to create pods and containers without a plugin */
	bool pod_event_after; /* notify the plugin of a pod when the runtime has assigned its id */
};

struct intercept_events {
	/* Exactly one of forward and refuse is called, once, possibly from inside intercept_begin.
	 * held: keep the runtime's answer until release or refuse. */
	void (*forward)(const uint8_t *payload, size_t n, bool held, void *arg);
	void (*refuse)(enum grpc_status status, const char *text, void *arg);
	/* Releases a deferred answer, unless refuse() is called instead. Called once, after
	 * intercept_end() has returned the call, and not from inside intercept_end(). */
	void (*release)(void *arg);
};

/* Outcome of a call: the runtime answered; the runtime refused; or the call was broken off and the
 * runtime may or may not have carried it out. */
enum intercept_outcome { OUTCOME_DONE, OUTCOME_REFUSED, OUTCOME_BROKEN };

int intercept_new(const struct intercept_config *config, struct intercept **ret, struct err *err);
/* Call after proxy_free and upstream_free. Accepts NULL; returns NULL. */
struct intercept *intercept_free(struct intercept *p);

/* Returns true if calls with this path must be passed to intercept_begin. */
bool intercept_wants(const char *path);
/*
 * Starts to process a call with its one message. left_ms: how long the caller waits; UINT64_MAX:
 * without a limit. *ret is set before any event is called, and valid until intercept_end. NULL:
 * intercept_end is not needed for this call.
 */
void intercept_begin(struct intercept *p, const char *path, const uint8_t *payload, size_t n,
		     uint64_t left_ms, const struct intercept_events *events, void *arg,
		     struct intercept_call **ret);
/*
 * Reports the outcome of a call; `payload` is the runtime's answer if the outcome is OUTCOME_DONE,
 * even if the caller has left already. Must be called exactly once, unless the call was refused.
 * Accepts NULL. Returns NULL when the call is finished and a held answer may be sent. Otherwise
 * returns the call, whose answer stays held; if the caller leaves before release or refuse, call
 * intercept_end again.
 */
struct intercept_call *intercept_end(struct intercept_call *c, enum intercept_outcome outcome,
				     const uint8_t *payload, size_t n);
