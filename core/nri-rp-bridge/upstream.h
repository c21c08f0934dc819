/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the runtime's socket. All calls share it; it is made at the first call and
 * again after it has ended. */
#pragma once

#include "core/lib/grpc/h2.h"
#include "core/lib/util/loop.h"

struct upstream;

/* Creates an upstream, which connects at the first call. */
int upstream_new(struct loop *loop, const char *path, struct upstream **ret, struct err *err);
/* Registers `back`, called each time a lost runtime is reachable again, possibly as another
 * process. The call may come from inside upstream_connection. */
void upstream_watch(struct upstream *u, void (*back)(void *arg), void *arg);
/* Ends all streams with -ECANCELED. Not from inside a callback. Accepts NULL; returns NULL. */
struct upstream *upstream_free(struct upstream *u);
/*
 * Returns the connection for the next call in *ret. If the runtime is not reachable it fails at
 * once, and starts retries with back-off so that `back` is called when the runtime returns.
 */
int upstream_connection(struct upstream *u, struct h2 **ret, struct err *err);
