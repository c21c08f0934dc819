/* SPDX-License-Identifier: Apache-2.0 */
/* Serves AgentHost.SetState: the state of the agent's connection to the cluster. */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

/* Serves a request and ends req. */
void agent_serve_state(struct pipeline *p, struct rpc_request *req);
