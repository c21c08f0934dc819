/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels, annotations and taints that the daemon's modules want the Node to have. What was put
 * there for them is noted on the Node itself, as the annotation nri-rp/owned, in the same write: so
 * what nobody wants any more is found and taken away after any restart, and what somebody else has
 * put there stays. Extended resources of domains that are not ours are noted there before they are
 * written (published.h), and until they are gone.
 *
 * A write is of one version of the Node. When that is not the latest, the server refuses it, and
 * the version that is tells what is to be written.
 */
#ifndef NRI_RP_AGENT_WISHES_H
#define NRI_RP_AGENT_WISHES_H

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "proto/agent.pb-c.h"

#define WISHES_RECORD "nri-rp/owned"
#define WISHES_INTERVAL_MS 1000u

struct wishes;

struct wishes *wishes_new(struct kube *k, const char *node); /* NULL: no memory */
struct wishes *wishes_free(struct wishes *w); /* NULL is fine; returns NULL */
/* All that is wanted now. 0 or -ENOMEM. */
int wishes_take(struct wishes *w, const Agent__PublishedRequest *m);
/* The Node as the server has it now; borrowed. */
void wishes_seen(struct wishes *w, json_t *node);

/* Whether the Node's own annotation says that this resource is ours. */
bool wishes_recorded(const json_t *node, const char *resource);

int wishes_patch(json_t *node, json_t *wanted, json_t **ret, char *foreign);

#endif
