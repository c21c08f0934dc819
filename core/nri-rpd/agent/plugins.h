/* SPDX-License-Identifier: Apache-2.0 */
/* Resource plugins behind the agent: the agent's reports about them, and requests to them. */
#pragma once

#include "core/nri-rpd/agent/call.h"

struct arena;
struct plugin_hints;

/* Serves AgentHost.SetPlugins and CheckPods. Both end req. */
void agent_serve_plugins(struct pipeline *p, struct rpc_request *req);
void agent_serve_check_pods(struct pipeline *p, struct rpc_request *req);
/* Makes the plugins behind the registered agent available or unavailable. The link has to live
 * until then. */
void agent_ask_plugins(struct agent_link *l, bool on);

/* Decodes the answer of PluginHints into the arena, for tests as well. -EBADMSG: malformed; -E2BIG;
 * -ENOMEM. */
int agent_decode_hints(struct arena *a, const uint8_t *data, size_t n, struct plugin_hints **ret,
		       uint32_t *ret_n);
