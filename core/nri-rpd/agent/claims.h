/* SPDX-License-Identifier: Apache-2.0 */
/* Serves AgentHost.PrepareClaim, ReleaseClaim and ListClaims, and calls Agent.CheckClaim. */
#pragma once

#include "core/nri-rpd/pipeline/request/claims.h"
#include "core/nri-rpd/pipeline/wait/claim_check.h"
#include "core/lib/wire/rpc.h"

void agent_serve_prepare_claim(struct pipeline *p, struct rpc_request *req);
void agent_serve_release_claim(struct pipeline *p, struct rpc_request *req);
void agent_serve_list_claims(struct pipeline *p, struct rpc_request *req);

/* Asks the agent (struct agent_link) for the pods that may use a claim. Returns 0:
 * pipeline_claim_checked() is called later. */
int agent_ask_claim(void *link, const struct ctr *claim);

/* Decodes a claim, for tests as well, into the arena. -EBADMSG: not decodable; -EINVAL: a value is
 * out of range; -ENOMEM. */
int agent_decode_claim(struct arena *a, const uint8_t *data, size_t n, struct claim_desc *ret);
