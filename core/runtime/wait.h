/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait for what somebody else has to say first: the cluster of a pod that is to be admitted, the kubelet of devices. The loop goes
 * on meanwhile; requests that come later stay behind those that wait, in their order: runtimes ask for one thing at a time anyway.
 */
#ifndef RUNTIME_WAIT_H
#define RUNTIME_WAIT_H

#include "core/runtime/internal.h"

/* True: it waits, and nri_handle_now() will get it. False: it need not, and nobody is before it. */
bool wait_take(struct nri *nri, struct rpc_request *req);
/* Handles those that need not wait any longer. */
void wait_run(struct nri *nri);
/* We end the connection: all are handled with what is known. */
void wait_finish(struct nri *nri);
/* The connection has ended: nobody wants their answers. */
void wait_drop(struct nri *nri);

#endif
