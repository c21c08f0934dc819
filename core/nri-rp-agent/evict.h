/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evicts pods through the API server, which respects disruption budgets and ends the pod. The uid
 * identifies the pod. Each request is answered once and not repeated here: the caller may send it
 * again.
 */
#pragma once

#include "core/nri-rp-agent/kube.h"
#include "core/lib/wire/rpc.h"
#include "proto/agent.pb-c.h"

#define EVICT_MAX 16u /* limit of evictions under way */

struct evict;

struct evict *evict_new(struct kube *k); /* NULL: no memory */
/* Accepts NULL; returns NULL. */
struct evict *evict_free(struct evict *e);
/* Serves an eviction request; answers req, possibly later. */
void evict_serve(struct evict *e, const Agent__EvictRequest *m, struct rpc_request *req);
