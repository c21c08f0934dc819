/* SPDX-License-Identifier: Apache-2.0 */
/* AgentHost.ListAllocations and GetAllocatable: what containers have, and what there is to be had,
 * for the pod-resources API that the agent serves. */
#ifndef AGENT_ALLOCATED_H
#define AGENT_ALLOCATED_H

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

/* Both end req. */
void agent_serve_allocations(struct pipeline *p, struct rpc_request *req);
void agent_serve_allocatable(struct pipeline *p, struct rpc_request *req);

#endif
