/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of the connection to nri-rp-agent (protocol.h, proto/agent.proto): the socket
 * that the agent connects to, and the calls that go over it. It is there only while the
 * configuration has something to ask the agent for.
 *
 * Who may connect: root, the daemon's own user, and the agent's (agent.user), by the credentials
 * that the kernel gives of the peer; the mode of the socket leaves everybody else out, too. One
 * agent at a time.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/loop.h"

struct agent;

int agent_new(struct loop *loop, struct pipeline *pipeline, struct agent **ret, struct err *err);
struct agent *agent_free(struct agent *a); /* returns NULL; NULL is fine */
/* As the configuration says: listens, or does not. An error leaves it not listening. */
int agent_configure(struct agent *a, const struct conf_core *core, struct err *err);
/* What is published may be otherwise than it was. */
void agent_changed(struct agent *a);
/* An event was noted. */
void agent_event(struct agent *a);

#endif
