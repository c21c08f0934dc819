/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that the agent publishes: the policy's zones, the node's extended resources and the modules'
 * wishes for the Node. They are sent as a whole when they have changed: at once after a quiet time,
 * else every PUBLISH_INTERVAL_MS at most, so that changes in between are one message.
 */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

#define PUBLISH_INTERVAL_MS 5000u
#define PUBLISH_QUIET_MS 100u /* time within which changes are collected into one message */

struct publisher;

struct publisher *publisher_new(struct loop *loop, struct pipeline *p); /* NULL: no memory */
struct publisher *publisher_free(struct publisher *u); /* accepts NULL; returns NULL */
/* Sets the connection to the agent, which then gets everything; NULL: none. */
void publisher_set_agent(struct publisher *u, struct rpc *rpc);
/* Publishes again if the data has changed. */
void publisher_changed(struct publisher *u);
/* Publishes at once if the condition that prevents the placing of containers has changed or
 * ended. */
void publisher_status_changed(struct publisher *u);
