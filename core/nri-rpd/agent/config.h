/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of the cluster, as the agent pushes them: checked like a file, tried like a
 * reload, answered when that is over. */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

/* AgentHost.SetConfig and SetAdjustments. Ends req, perhaps later. */
void agent_serve_config(struct pipeline *p, struct rpc_request *req, bool adjustments);

/*
 * The sources of a request, for tests as well, out of the arena; what they are called says where
 * they come from. -EBADMSG: it does not decode; -E2BIG: it is over a limit of protocol.h; -EINVAL:
 * it names no object; -ENOMEM.
 */
struct arena;
int agent_decode_config(struct arena *a, const uint8_t *data, size_t n, struct conf_source **ret,
			unsigned *ret_n);

#endif
