/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that the pipeline holds (request_hold), and those behind it. The held one is decoded
 * and stays in nri->call and nri->arena; those that come meanwhile are kept as bytes and handled in
 * their order: runtimes ask for one thing at a time anyway.
 */
#ifndef RUNTIME_WAIT_H
#define RUNTIME_WAIT_H

#include "core/nri-rpd/nri/internal.h"

/* True: another one is held, and this one has been put behind it. */
bool wait_behind(struct nri *nri, struct rpc_request *req);
/* True: the call is held, and nri_resume() will be called for it. */
bool wait_hold(struct nri *nri, const struct request_about *about);
/* The call is not held any more; nri_resume() will not be called for it. */
void wait_let_go(struct nri *nri);
/* We end the connection: all are handled with what is known. */
void wait_finish(struct nri *nri);
/* The connection has ended: nobody wants their answers. */
void wait_drop(struct nri *nri);

#endif
