/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points of handlers.c, which decodes the runtime's calls, passes them to the pipeline and
 * answers them.
 */
#pragma once

#include "core/nri-rpd/nri/internal.h"

void nri_handle(struct rpc_request *req, void *arg);
void nri_handle_now(struct nri *nri, struct rpc_request *req);

/* Continues the deferred call. */
void nri_resume(struct nri *nri);
void nri_sync_reset(struct sync_parts *s);
