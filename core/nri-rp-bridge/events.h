/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runtime tells of its containers as it happens (GetContainerEvents): one stream for all
 * who listen here, the kubelet's calls and the police. Several would not do: containerd 1.7 gives
 * each event to one of its readers only. For the same reason the stream goes on when nobody
 * listens any more: the next event would be lost on a reader that has gone.
 */
#ifndef NRI_RP_BRIDGE_EVENTS_H
#define NRI_RP_BRIDGE_EVENTS_H

#include "core/lib/grpc/call.h"
#include "core/nri-rp-bridge/upstream.h"

#define EVENTS_PATH "/runtime.v1.RuntimeService/GetContainerEvents"
#define EVENTS_BEHIND_MAX (1u << 20) /* bytes that a listener may not have taken yet */

struct events;

/* Its memory is its owner's. */
struct events_listener {
	void (*event)(const uint8_t *payload, size_t n, void *arg); /* may end its own listening */
	/* The stream has ended, and with it the listening. result as grpc_done has it. */
	void (*ended)(const struct grpc_result *result, void *arg);
	void *arg;
	bool listens;
	struct events_listener *prev, *next;
};

struct events *events_new(struct loop *loop, struct upstream *runtime);
/* After the upstream, and all who listen. NULL is fine; returns NULL. */
struct events *events_free(struct events *e);

/* From now on, until it has ended or events_leave. An error: the runtime is away. */
int events_listen(struct events *e, struct events_listener *l, struct err *err);
/* One that does not listen is fine. */
void events_leave(struct events *e, struct events_listener *l);

#endif
