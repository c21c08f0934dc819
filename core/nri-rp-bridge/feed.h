/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server side of nri-rp-agent's feed: the agent connects, registers and sends the node's pods, as
 * it does with nri-rpd. The socket belongs to root; any process that can open it may send pods.
 */
#pragma once

#include "core/nri-rp-bridge/podlist.h"

struct feed;

/* Opens the agent's socket. told() is called with true when the agent has sent all its pods, and
 * with false when it has disconnected. */
int feed_new(const struct podlist_config *config, struct podlist *p,
	     void (*told)(bool connected, void *arg), struct feed **ret, struct err *err);
struct feed *feed_free(struct feed *f);
/* Returns true if the agent has begun to send its pods and has not sent the last one. */
bool feed_is_telling(const struct feed *f);
