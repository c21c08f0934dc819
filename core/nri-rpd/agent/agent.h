/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of the connection to nri-rp-agent (protocol.h, proto/agent.proto): the socket
 * that the agent connects to, and the calls over it. The socket exists only while the configuration
 * needs an agent.
 *
 * Root, the daemon's own user and the agent's user (agent.user) may connect, checked by the
 * credentials that the kernel reports of the peer. The mode of the socket excludes other users,
 * too. One agent at a time.
 */
#pragma once

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/loop.h"

struct agent;

int agent_new(struct loop *loop, struct pipeline *pipeline, struct agent **ret, struct err *err);
struct agent *agent_free(struct agent *a); /* accepts NULL; returns NULL */
/* Starts or stops listening according to the active configuration. After an error the agent does
 * not listen. */
int agent_configure(struct agent *a, const struct conf_core *core, struct err *err);
/* Notifies the publisher that published data may have changed. */
void agent_changed(struct agent *a);
/* Notifies the publisher that conditions of the daemon may have changed. */
void agent_status_changed(struct agent *a);
/* Notifies the event sender of a new event. */
void agent_event(struct agent *a);
