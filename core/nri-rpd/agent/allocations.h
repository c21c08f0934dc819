/* SPDX-License-Identifier: Apache-2.0 */
/* Serves AgentHost.ListAllocations and GetAllocatable: allocations of containers and allocatable
 * resources, for the pod-resources API that the agent offers. */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

/* Serves a request for allocations, and a request for the allocatable resources. Both functions end
 * req. */
void agent_serve_allocations(struct pipeline *p, struct rpc_request *req);
void agent_serve_allocatable(struct pipeline *p, struct rpc_request *req);
