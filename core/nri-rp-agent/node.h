/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This node's object, told to the daemon: what it needs of it, and only when that has changed. A
 * Node changes every few minutes when nothing happens, by what its kubelet says of its health.
 */
#ifndef NRI_RP_AGENT_NODE_H
#define NRI_RP_AGENT_NODE_H

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"

struct node_feed;

struct node_feed *node_feed_new(struct kube *k, struct link *l); /* NULL: no memory */
struct node_feed *node_feed_free(struct node_feed *f); /* NULL is fine; returns NULL */
/* The Node as the server has it now; borrowed. */
void node_feed_seen(struct node_feed *f, const json_t *node);
/* The daemon is there, or there again. */
void node_feed_daemon_connected(struct node_feed *f);

/* For tests: the message of a Node, out of the arena. -EINVAL: it has no name; -ENOMEM. What makes
 * no sense in it is left out. */
struct arena;
int node_message(struct arena *a, const json_t *node, Agent__SetNodeRequest *ret);

#endif
