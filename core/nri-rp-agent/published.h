/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the node is said to be in the cluster: a NodeResourceTopology with the policy's zones, and
 * extended resources in the Node's capacity. Other fields of these objects stay as they are. A
 * kubelet that starts sets extended resources it does not know to nothing: they are written again
 * as soon as that is seen.
 */
#ifndef NRI_RP_AGENT_PUBLISHED_H
#define NRI_RP_AGENT_PUBLISHED_H

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "proto/agent.pb-c.h"

#define PUBLISHED_TOPOLOGY_INTERVAL_MS 5000u
#define PUBLISHED_CAPACITY_INTERVAL_MS 500u
/* What the daemon may tell, which is no stranger: against what cannot be. */
#define PUBLISHED_ZONES_MAX 4096u
#define PUBLISHED_RESOURCES_MAX 256u
#define PUBLISHED_WISHES_MAX 1024u
#define PUBLISHED_OWN_SUFFIX                                                                       \
	".nri.io" /* of the domain of extended resources that a policy may publish */

struct published;

struct published *published_new(struct kube *k, const char *name); /* NULL: no memory */
struct published *published_free(struct published *n); /* NULL is fine; returns NULL */
/* All that is to be published now. 0, -E2BIG or -ENOMEM. */
int published_take(struct published *n, const Agent__PublishedRequest *m);
/* The Node as the server has it now. */
void published_seen(struct published *n, json_t *object);

#endif
