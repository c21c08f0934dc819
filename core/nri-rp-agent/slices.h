/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes the policy's devices in one ResourceSlice of this node, which the Node owns. Each
 * change has a new generation of the pool. A slice that another client deletes is written again.
 */
#pragma once

#include "core/nri-rp-agent/kube.h"
#include "proto/agent.pb-c.h"

#define SLICES_INTERVAL_MS 5000u
#define SLICES_GROUP "/apis/resource.k8s.io/v1"

struct slices;

struct slices *slices_new(struct kube *k, const char *node,
			  const char *driver); /* NULL: no memory */
struct slices *slices_free(struct slices *s); /* accepts NULL; returns NULL */
/* Sets the devices to publish. Returns 0, -E2BIG or -ENOMEM. */
int slices_take(struct slices *s, const Agent__PublishedRequest *m);
/* Removes the slice. */
void slices_withdraw(struct slices *s);
/* Call with each version of the Node. */
void slices_node_seen(struct slices *s, const json_t *node);
