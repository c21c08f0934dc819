/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods that are bound to this node, told to the daemon: all of them when it connects, then
 * what changes of what it needs to know. What a kubelet writes of their status every few seconds is
 * nothing of that.
 */
#ifndef NRI_RP_AGENT_PODS_H
#define NRI_RP_AGENT_PODS_H

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"

struct pod_feed;

/* whole: for the bridge, which has no other source of what a runtime knows. NULL: no memory. */
struct pod_feed *pod_feed_new(struct kube *k, struct link *l, const char *node, bool whole);
struct pod_feed *pod_feed_free(struct pod_feed *f); /* NULL is fine; returns NULL */
/* The daemon is there, or there again. */
void pod_feed_daemon_connected(struct pod_feed *f);

#endif
