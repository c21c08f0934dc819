/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of the cluster, pushed by the agent: checked like a file, tried like a reload, and
 * answered after the trial. */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

/* Serves AgentHost.SetConfig and SetAdjustments. Ends req, perhaps later. */
void agent_serve_config(struct pipeline *p, struct rpc_request *req);

/*
 * Decodes the sources of a request into the arena, for tests as well; their names state their
 * origin. -EBADMSG: not decodable; -E2BIG: exceeds a limit of protocol.h; -EINVAL: it names no
 * object; -ENOMEM.
 */
struct arena;
int agent_decode_config(struct arena *a, const uint8_t *data, size_t n, struct conf_source **ret,
			unsigned *ret_n);
