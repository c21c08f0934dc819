/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that a plugin has a say in. The bridge plays the runtime's side of NRI: what the plugin
 * wants is written into the call before the runtime sees it, and what became of it is told to the
 * plugin.
 *
 *   intercept.c       a call: asked about, edited, forwarded or refused; what follows its answer
 *   methods.c         the calls one by one
 *   after_create.c    pods and containers that exist before the plugin is told of them
 *   plugin_notices.c  questions to the plugin one by one, and its updates of other containers
 *   gather.c          what there is, for Synchronize
 *   exit_watch.c      containers that end by themselves
 *   model.c           pods and containers, by both their ids
 *   cri_edit.c        CRI's messages and NRI's
 *
 * A call:    waiting ──turn──▶ asked ──answer──▶ updating ──▶ forwarded ──answer of the runtime──▶ told
 *                                └──refused or abandoned: the plugin is told that there is nothing
 *
 * A pod with --pod-event after: forwarded ──answer of the runtime──▶ late ──answer──▶ told, or
 * removed and refused
 *
 * Without a plugin calls pass unchanged.
 */
#ifndef NRI_RP_BRIDGE_INTERCEPT_H
#define NRI_RP_BRIDGE_INTERCEPT_H

#include "core/lib/grpc/message.h"
#include "core/nri-rp-bridge/events.h"
#include "core/nri-rp-bridge/upstream.h"

struct police;
struct police_call;

struct police_config {
	struct loop *loop;
	struct upstream *runtime;
	struct events *events; /* of the runtime */
	const char *socket; /* where plugins connect */
	bool strict; /* what CRI has no place for fails a call */
	bool require_plugin; /* without a plugin nothing new is created */
	bool pod_event_after; /* pods are told when the runtime has given them an id */
};

struct police_events {
	/* One of both is called, once, perhaps from inside police_begin. held: the runtime's answer
	 * goes no further for now. */
	void (*forward)(const uint8_t *payload, size_t n, bool held, void *arg);
	void (*refuse)(enum grpc_status status, const char *text, void *arg);
	/* The answer may go, or refuse is called in its stead: once, after police_end has returned
	 * the call, not from inside. */
	void (*release)(void *arg);
};

/* What has become of a call: the runtime's answer; its refusal; or it has been broken off, and the
 * runtime may or may not do it. */
enum police_outcome { POLICE_DONE, POLICE_REFUSED, POLICE_BROKEN };

int police_new(const struct police_config *config, struct police **ret, struct err *err);
/* After the proxy and the upstreams. NULL is fine; returns NULL. */
struct police *police_free(struct police *p);

/* Are calls of that path to be shown? */
bool police_wants(const char *path);
/*
 * A call's one message. left_ms: how long its caller waits, UINT64_MAX: for ever. *ret is set
 * before the events are called, and valid until police_end; NULL: nothing is to be told of this
 * call's end.
 */
void police_begin(struct police *p, const char *path, const uint8_t *payload, size_t n,
		  uint64_t left_ms, const struct police_events *events, void *arg,
		  struct police_call **ret);
/*
 * What became of it; with the runtime's answer when it is done, also when the caller has gone
 * before. Has to be called once, unless the call was refused. NULL is fine. NULL: that is all, an
 * answer that is held may go. Else that is not decided yet; when the caller goes before, police_end
 * once more.
 */
struct police_call *police_end(struct police_call *c, enum police_outcome outcome,
			       const uint8_t *payload, size_t n);

#endif
