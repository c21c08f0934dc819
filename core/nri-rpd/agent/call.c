/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/agent/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"

int agent_call(const struct agent_link *l, uint64_t id, const char *method,
	       const ProtobufCMessage *m, uint32_t timeout_ms, rpc_done done)
{
	struct agent_call *call = l->rpc ? malloc(sizeof *call) : NULL;
	if (!call)
		return l->rpc ? -ENOMEM : -ENOTCONN;
	*call = (struct agent_call){l->pipeline, id};
	int r = rpc_call(l->rpc, AGENT_SERVICE, method, m, timeout_ms, done, call);
	if (r)
		free(call);
	return r;
}

const char *agent_call_error(const struct rpc_result *result, int decoded)
{
	if (result->error == -ETIMEDOUT)
		return "the agent does not reply";
	if (result->error == -ECONNRESET || result->error == -ECANCELED)
		return "the agent disconnected";
	if (result->error)
		return result->text;
	return decoded == -ENOMEM ? "out of memory" : "the agent's reply is invalid";
}

void agent_answer(struct rpc_request *req, int r, const char *malformed, const ProtobufCMessage *m)
{
	if (r == -ENOMEM)
		(void)rpc_reply_error(req, TTRPC_RESOURCE_EXHAUSTED, "out of memory");
	else if (r)
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "%s", malformed);
	else
		(void)rpc_reply(req, m);
}

bool agent_name_valid(const char *name, size_t max)
{
	size_t len = strnlen(name, max + 1);
	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	return len && len <= max;
}
