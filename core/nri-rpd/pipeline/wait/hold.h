/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred requests: a request that has arrived and waits before it begins, because the cluster has
 * to report a pod's resources or the users of a claim, the kubelet its devices, or plugins their
 * grants. The event loop runs meanwhile. One request is deferred at a time, because runtimes send
 * one request at a time. Its continuation is stored here.
 */
#pragma once

#include "core/nri-rpd/pipeline/request/request.h"

struct hold {
	/* fires at the end of the wait, and after an answer */
	struct loop_timer *timer;
	struct request_about about;
	/* continues the deferred request; NULL: no request is deferred */
	void (*resume)(void *arg);
	void *arg;
	unsigned told; /* number of hold_told() calls; read by unit tests */
};

int hold_init(struct pipeline *p);
void hold_fini(struct pipeline *p);
/* Checks a deferred request again soon, because the agent, the kubelet or a plugin has answered or
 * will not answer. */
void hold_told(struct pipeline *p);

/* Returns the end (clock_ms) of a wait of at most `most_ms`, and at most half of the runtime's
 * timeout, from the arrival of the request; 0: it is over. */
uint64_t hold_limit(const struct pipeline *p, uint64_t received_ns, uint64_t most_ms);

/*
 * Defers a request, before request_begin(), if it has to wait. Returns true if the request is
 * deferred: `resume` is called from the loop when it need not wait any longer. Until then the
 * caller keeps what `about` points to, and begins no other request. Returns false if the request
 * may begin now.
 */
bool request_hold(struct pipeline *p, const struct request_about *about, void (*resume)(void *arg),
		  void *arg);

/* Ends a deferral without a call of resume: the request was dropped or begins at once. */
void request_unhold(struct pipeline *p);
