/* SPDX-License-Identifier: Apache-2.0 */
/* AgentHost.SetPods: the pods of this node as the API server has them. */
#ifndef AGENT_PODS_H
#define AGENT_PODS_H

#include "core/nri-rpd/cache/feed.h"
#include "core/nri-rpd/pipeline/node/feed.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

/* Ends req. */
void agent_serve_pods(struct pipeline *p, struct rpc_request *req);

/*
 * A request, for tests as well, out of the arena. Users of the cluster write pods: one that makes
 * no sense is left out, the others count. -EBADMSG: it does not decode; -E2BIG: it is over
 * AGENT_SET_PODS_MAX or FEED_PODS_MAX; -ENOMEM.
 */
struct arena;
int agent_decode_pods(struct arena *a, const uint8_t *data, size_t n, struct fed_message *ret);

#endif
