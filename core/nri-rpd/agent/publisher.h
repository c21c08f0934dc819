/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon has the agent publish: the policy's zones, the node's extended resources and what
 * modules want the Node to have, as a whole, when it has changed. At once when it was quiet before,
 * else not more often than every PUBLISH_INTERVAL_MS: what changes in between is one message.
 */
#ifndef AGENT_PUBLISHER_H
#define AGENT_PUBLISHER_H

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

#define PUBLISH_INTERVAL_MS 5000u
#define PUBLISH_QUIET_MS 100u /* changes that come together are one */

struct publisher;

struct publisher *publisher_new(struct loop *loop, struct pipeline *p); /* NULL: no memory */
struct publisher *publisher_free(struct publisher *u); /* NULL is fine; returns NULL */
/* The agent that is told from now on, of everything; NULL: none. */
void publisher_set_agent(struct publisher *u, struct rpc *rpc);
/* Something may be otherwise than it was. */
void publisher_changed(struct publisher *u);

#endif
