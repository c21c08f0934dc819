/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred requests (request_hold) and the requests that wait behind them. The deferred request is
 * decoded and stays in nri->call and nri->arena. Requests that arrive meanwhile are stored as bytes
 * and handled in order. This costs no concurrency, because runtimes send one request at a time.
 */
#pragma once

#include "core/nri-rpd/nri/internal.h"

/* Queues the request if another one is deferred. Returns true if it was queued. */
bool wait_behind(struct nri *nri, struct rpc_request *req);
/* Defers the current call. Returns true if nri_resume() will be called for it. */
bool wait_hold(struct nri *nri, const struct request_about *about);
/* Cancels the deferral of the call; nri_resume() will not be called for it. */
void wait_let_go(struct nri *nri);
/* Handles all deferred and waiting requests with present data, because this side is about to end
 * the connection. */
void wait_finish(struct nri *nri);
/* Drops all deferred and waiting requests, because the connection has ended. */
void wait_drop(struct nri *nri);
