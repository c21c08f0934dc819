/* SPDX-License-Identifier: Apache-2.0 */
/* AgentHost.SetState: how the agent stands with the cluster. */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

/* Ends req. */
void agent_serve_state(struct pipeline *p, struct rpc_request *req);

#endif
