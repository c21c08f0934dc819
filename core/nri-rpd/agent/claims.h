/* SPDX-License-Identifier: Apache-2.0 */
/* Serves AgentHost.PrepareClaim, ReleaseClaim and ListClaims. */
#ifndef AGENT_CLAIMS_H
#define AGENT_CLAIMS_H

#include "core/nri-rpd/pipeline/request/claims.h"
#include "core/lib/wire/rpc.h"

void agent_serve_prepare_claim(struct pipeline *p, struct rpc_request *req);
void agent_serve_release_claim(struct pipeline *p, struct rpc_request *req);
void agent_serve_list_claims(struct pipeline *p, struct rpc_request *req);

/* Decodes a claim, for tests as well, into the arena. -EBADMSG: not decodable; -EINVAL: a value is
 * out of range; -ENOMEM. */
int agent_decode_claim(struct arena *a, const uint8_t *data, size_t n, struct claim_desc *ret);

#endif
