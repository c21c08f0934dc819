/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes data of the node: a NodeResourceTopology with the policy's zones, and extended
 * resources in the Node's capacity. Other fields of these objects are unchanged. A kubelet that
 * starts sets extended resources that it does not know to 0; they are written again as soon as this
 * is seen.
 */
#pragma once

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "proto/agent.pb-c.h"

#define PUBLISHED_TOPOLOGY_INTERVAL_MS 5000u
#define PUBLISHED_CAPACITY_INTERVAL_MS 500u
/* Limits of the daemon's messages, as a safeguard; the daemon is trusted. */
#define PUBLISHED_ZONES_MAX 4096u
#define PUBLISHED_RESOURCES_MAX 256u
#define PUBLISHED_WISHES_MAX 1024u
#define PUBLISHED_OWN_SUFFIX                                                                       \
	".nri.io" /* domain suffix of the extended resources that a policy may publish */

struct published;

struct published *published_new(struct kube *k, const char *name); /* NULL: no memory */
struct published *published_free(struct published *n); /* accepts NULL; returns NULL */
/* Sets the data to publish. Returns 0, -E2BIG or -ENOMEM. */
int published_take(struct published *n, const Agent__PublishedRequest *m);
/* Call with each version of the Node. */
void published_seen(struct published *n, json_t *object);
