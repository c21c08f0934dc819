/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends this node's object to the daemon: only the fields that the daemon needs, and only if they
 * have changed. The Node itself changes every few minutes by the kubelet's reports of its health.
 */
#pragma once

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"

struct node_feed;

struct node_feed *node_feed_new(struct kube *k, struct link *l); /* NULL: no memory */
struct node_feed *node_feed_free(struct node_feed *f); /* accepts NULL; returns NULL */
/* Call with each version of the Node, borrowed. */
void node_feed_seen(struct node_feed *f, const json_t *node);
/* Call when the daemon has connected, or connected again. */
void node_feed_daemon_connected(struct node_feed *f);

/* For tests: converts a Node to a message in the arena. -EINVAL: it has no name; -ENOMEM. Invalid
 * parts are omitted. */
struct arena;
int node_message(struct arena *a, const json_t *node, Agent__SetNodeRequest *ret);
