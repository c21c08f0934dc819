/* SPDX-License-Identifier: Apache-2.0 */
/* Resource plugins behind the agent: the agent's reports about them, and requests to them. */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

struct arena;
struct plugin_hints;

/* Serves AgentHost.SetPlugins and CheckPods. Both end req. */
void agent_serve_plugins(struct pipeline *p, struct rpc_request *req);
void agent_serve_check_pods(struct pipeline *p, struct rpc_request *req);
/* Connection over which plugins are called; NULL: plugins are not available. `rpc` has to live
 * until it is replaced. */
struct plugin_link {
	struct pipeline *pipeline;
	struct rpc *rpc;
};
void agent_ask_plugins(struct plugin_link *l, struct pipeline *p, struct rpc *rpc);

/* Decodes the answer of PluginHints into the arena, for tests as well. -EBADMSG: malformed; -E2BIG;
 * -ENOMEM. */
int agent_decode_hints(struct arena *a, const uint8_t *data, size_t n, struct plugin_hints **ret,
		       uint32_t *ret_n);
