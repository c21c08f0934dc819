/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the pods that are bound to this node to the daemon: all of them when it connects, later
 * those whose fields for the daemon have changed. The status that a kubelet writes every few
 * seconds is not among these fields.
 */
#ifndef NRI_RP_AGENT_PODS_H
#define NRI_RP_AGENT_PODS_H

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"

struct pod_feed;

/* Creates a feed. whole: with all fields for the bridge, which has no other source for those that a
 * runtime knows. NULL: no memory. */
struct pod_feed *pod_feed_new(struct kube *k, struct link *l, const char *node, bool whole);
struct pod_feed *pod_feed_free(struct pod_feed *f); /* accepts NULL; returns NULL */
/* Call when the daemon has connected, or connected again. */
void pod_feed_daemon_connected(struct pod_feed *f);

#endif
