/* SPDX-License-Identifier: Apache-2.0 */
/* Resource plugins over the link: what the agent tells of them, and the questions to them. */
#ifndef AGENT_PLUGINS_H
#define AGENT_PLUGINS_H

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

struct arena;
struct plugin_hints;

/* AgentHost.SetPlugins and CheckPods. Both end req. */
void agent_serve_plugins(struct pipeline *p, struct rpc_request *req);
void agent_serve_check_pods(struct pipeline *p, struct rpc_request *req);
/* Plugins are asked over this connection; NULL: not at all any more. `rpc` has to live until
 * then. */
struct plugin_link {
	struct pipeline *pipeline;
	struct rpc *rpc;
};
void agent_ask_plugins(struct plugin_link *l, struct pipeline *p, struct rpc *rpc);

/* The answer of PluginHints, for tests as well. Out of the arena. -EBADMSG: it makes no sense;
 * -E2BIG; -ENOMEM. */
int agent_decode_hints(struct arena *a, const uint8_t *data, size_t n, struct plugin_hints **ret,
		       uint32_t *ret_n);

#endif
