/* SPDX-License-Identifier: Apache-2.0 */
/* Serves AgentHost.SetPods: the pods of this node as the API server has them. */
#pragma once

#include "core/nri-rpd/cache/feed.h"
#include "core/nri-rpd/pipeline/node/feed.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

/* Serves a request and ends req. */
void agent_serve_pods(struct pipeline *p, struct rpc_request *req);

/*
 * Decodes a request into the arena, for tests as well. Pods are written by users of the cluster, so
 * a malformed pod is left out and the others are used. -EBADMSG: not decodable; -E2BIG: exceeds
 * AGENT_SET_PODS_MAX or FEED_PODS_MAX; -ENOMEM.
 */
struct arena;
int agent_decode_pods(struct arena *a, const uint8_t *data, size_t n, struct fed_message *ret);
