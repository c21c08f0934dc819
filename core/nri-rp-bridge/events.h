/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares one stream of the runtime's container events (GetContainerEvents) among all listeners: the
 * kubelet's calls and the interceptor. containerd 1.7 delivers each event to only one of its
 * streams, so there must be no second one. For the same reason the stream stays open without
 * listeners: containerd would lose the next event on a closed stream.
 */
#pragma once

#include "core/lib/grpc/call.h"
#include "core/nri-rp-bridge/upstream.h"

#define EVENTS_PATH "/runtime.v1.RuntimeService/GetContainerEvents"
#define EVENTS_BEHIND_MAX (1u << 20) /* largest number of bytes that a listener may be behind */

struct events;

/* A listener; the caller owns the memory. */
struct events_listener {
	/* Called for a new event. The callee may call events_leave() for its own listener. */
	void (*event)(const uint8_t *payload, size_t n, void *arg);
	/* Called when the stream has ended; the listener is then no longer registered. `result` is
	 * as in grpc_done. */
	void (*ended)(const struct grpc_result *result, void *arg);
	void *arg;
	bool listens;
	struct events_listener *prev, *next;
};

struct events *events_new(struct loop *loop, struct upstream *runtime);
/* Call after all listeners have left, and after upstream_free. Accepts NULL; returns NULL. */
struct events *events_free(struct events *e);

/* Registers a listener until the stream ends or events_leave is called. An error: the runtime is
 * not reachable. */
int events_listen(struct events *e, struct events_listener *l, struct err *err);
/* Unregisters a listener; one that is not registered is accepted. */
void events_leave(struct events *e, struct events_listener *l);
