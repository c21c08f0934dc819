/* SPDX-License-Identifier: Apache-2.0 */
/* AgentHost.SetNode: the Node as the API server has it. */
#ifndef AGENT_NODE_H
#define AGENT_NODE_H

#include "core/nri-rpd/host/node.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

/* Ends req. */
void agent_serve_node(struct pipeline *p, struct rpc_request *req);

/*
 * The Node of a request, for tests as well, out of the arena. -EBADMSG: it does not decode; -E2BIG:
 * it is over a limit of protocol.h; -EINVAL: it has no name, or a key that is none or is there
 * twice; -ENOMEM.
 */
struct arena;
int agent_decode_node(struct arena *a, const uint8_t *data, size_t n,
		      const struct node_object **ret);

#endif
