/* SPDX-License-Identifier: Apache-2.0 */
/* Serves AgentHost.SetNode: the Node as the API server has it. */
#pragma once

#include "core/nri-rpd/host/node.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

/* Serves a request and ends req. */
void agent_serve_node(struct pipeline *p, struct rpc_request *req);

/*
 * Decodes the Node of a request into the arena, for tests as well. -EBADMSG: not decodable; -E2BIG:
 * exceeds a limit of protocol.h; -EINVAL: no name, or an invalid or duplicate key; -ENOMEM.
 */
struct arena;
int agent_decode_node(struct arena *a, const uint8_t *data, size_t n,
		      const struct node_object **ret);
