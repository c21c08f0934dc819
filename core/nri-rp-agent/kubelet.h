/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet's socket on the loop. It is connected to when there is something to ask, and again
 * when the connection has ended; a kubelet that is not there, or does not listen, is an error of
 * the call.
 */
#ifndef NRI_RP_AGENT_KUBELET_H
#define NRI_RP_AGENT_KUBELET_H

#include "core/lib/grpc/call.h"
#include "core/lib/util/loop.h"

#define KUBELET_DEFAULT_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"
#define KUBELET_MESSAGE_MAX (16u << 20)

struct kubelet;

int kubelet_new(struct loop *loop, const char *socket, struct kubelet **ret, struct err *err);
/* Calls under way end with -ECANCELED. NULL is fine; returns NULL. Not from inside a callback. */
struct kubelet *kubelet_free(struct kubelet *k);
/* done as grpc_call has it; an error has a sentence. */
int kubelet_call(struct kubelet *k, const char *path, const ProtobufCMessage *msg,
		 uint32_t timeout_ms, grpc_done done, void *arg, struct err *err);
/* Which connection this is, from 1: the next one may be to another kubelet. */
unsigned kubelet_connection(const struct kubelet *k);

#endif
