/* SPDX-License-Identifier: Apache-2.0 */
/* Calls between daemon and agent: what the requests of this folder have in common. */
#pragma once

#include <stdbool.h>

#include "core/lib/wire/rpc.h"
#include "core/nri-rpd/pipeline/pipeline.h"

/* The registered agent, the argument of requests to it. */
struct agent_link {
	struct pipeline *pipeline;
	struct rpc *rpc; /* NULL: no agent is registered */
};

/* A call of the agent. */
struct agent_call {
	struct pipeline *pipeline;
	uint64_t id; /* object of the call: handle of a pod, or serial number of a question */
};
/* Calls a method of the agent. 0: `done` is called later, once, with a struct agent_call as its
 * argument, which it frees. -ENOTCONN: no agent is registered. */
int agent_call(const struct agent_link *l, uint64_t id, const char *method,
	       const ProtobufCMessage *m, uint32_t timeout_ms, rpc_done done);
/* Returns the reason why a call has failed; `decoded`: result of decoding the reply. */
const char *agent_call_error(const struct rpc_result *result, int decoded);
/* Ends a request of the agent: r 0: with the message, which may be NULL; else with an error.
 * `malformed`: the text for errors except -ENOMEM. */
void agent_answer(struct rpc_request *req, int r, const char *malformed, const ProtobufCMessage *m);
/* Returns true if a name is printable ASCII of 1 to `max` characters. */
bool agent_name_valid(const char *name, size_t max);
