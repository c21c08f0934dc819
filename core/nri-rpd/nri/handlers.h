/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NRI_HANDLERS_H
#define NRI_HANDLERS_H

#include "core/nri-rpd/nri/internal.h"

void nri_handle(struct rpc_request *req, void *arg);
void nri_handle_now(struct nri *nri, struct rpc_request *req);

/* Goes on with the call that was held. */
void nri_resume(struct nri *nri);
void nri_sync_reset(struct sync_parts *s);

#endif
