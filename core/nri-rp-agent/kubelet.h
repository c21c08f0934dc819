/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to the kubelet's socket on the loop. The connection is opened by the first call and again
 * after it has ended. If the kubelet is not reachable, the call fails.
 */
#pragma once

#include "core/lib/grpc/call.h"
#include "core/lib/util/loop.h"

#define KUBELET_DEFAULT_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"
#define KUBELET_MESSAGE_MAX (16u << 20)

struct kubelet;

int kubelet_new(struct loop *loop, const char *socket, struct kubelet **ret, struct err *err);
/* Ends pending calls with -ECANCELED. Accepts NULL; returns NULL. Not from inside a callback. */
struct kubelet *kubelet_free(struct kubelet *k);
/* Starts a call; `done` is that of grpc_call. On failure err has a complete sentence. */
int kubelet_call(struct kubelet *k, const char *path, const ProtobufCMessage *msg,
		 uint32_t timeout_ms, grpc_done done, void *arg, struct err *err);
/* Additions of a call that is answered by a stream of messages. */
struct kubelet_stream {
	struct h2_fields metadata;
	/* receives a message, as in struct grpc_call_config */
	void (*message)(const uint8_t *payload, size_t n, void *arg);
	struct grpc_call **call; /* receives the call, so that it can be cancelled */
};
/* Starts a call like kubelet_call. */
int kubelet_watch(struct kubelet *k, const char *path, const ProtobufCMessage *msg,
		  uint32_t timeout_ms, const struct kubelet_stream *stream, grpc_done done,
		  void *arg, struct err *err);
/* Returns the number of the connection, from 1. Each connection may be to another kubelet
 * process. */
unsigned kubelet_connection(const struct kubelet *k);
