/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's socket: one connection for all, made when it is wanted, and again when it has
 * ended. */
#ifndef NRI_RP_BRIDGE_UPSTREAM_H
#define NRI_RP_BRIDGE_UPSTREAM_H

#include "core/lib/grpc/h2.h"
#include "core/lib/util/loop.h"

struct upstream;

/* The runtime is not connected to before it is wanted. */
int upstream_new(struct loop *loop, const char *path, struct upstream **ret, struct err *err);
/* Streams end with -ECANCELED. Not from inside a callback. NULL is fine; returns NULL. */
/* When a runtime that had gone is there again: perhaps another process. Once, from inside of
 * upstream_connection too. */
void upstream_watch(struct upstream *u, void (*back)(void *arg), void *arg);
struct upstream *upstream_free(struct upstream *u);
/*
 * The connection, for the next call. A runtime that is not there, or does not listen, is an error
 * at once; from then on it is looked for with back-off, so that its return is told.
 */
int upstream_connection(struct upstream *u, struct h2 **ret, struct err *err);

#endif
