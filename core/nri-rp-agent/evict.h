/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evictions by the API server, which asks disruption budgets and ends the pod. The pod that is
 * meant is told by its uid. Each request is answered once; whoever asks comes again.
 */
#ifndef NRI_RP_AGENT_EVICT_H
#define NRI_RP_AGENT_EVICT_H

#include "core/nri-rp-agent/kube.h"
#include "core/lib/wire/rpc.h"
#include "proto/agent.pb-c.h"

#define EVICT_MAX 16u /* under way at a time */

struct evict;

struct evict *evict_new(struct kube *k); /* NULL: no memory */
/* NULL is fine; returns NULL. */
struct evict *evict_free(struct evict *e);
/* Answers req, perhaps later. */
void evict_serve(struct evict *e, const Agent__EvictRequest *m, struct rpc_request *req);

#endif
