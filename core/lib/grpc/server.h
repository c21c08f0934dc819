/* SPDX-License-Identifier: Apache-2.0 */
/* Unix socket that accepts gRPC calls. */
#pragma once

#include <sys/types.h>

#include "core/lib/grpc/h2.h"
#include "core/lib/util/loop.h"

#define GRPC_CONNECTIONS_MAX 100u
#define GRPC_CALLS_MAX 1000u /* largest number of running calls of all connections */
/* Places reserved for connections that have no more than their share of calls. */
#define GRPC_CALLS_SPARE 100u
#define GRPC_CALLS_SHARE 10u
/* Times after which a connection without a running call is closed: before its first call, and after
 * its last one. At GRPC_CONNECTIONS_MAX, the connection that has been without a call for longest is
 * closed for a new one. */
#define GRPC_SILENT_MS 10000u
#define GRPC_IDLE_MS 300000u

struct grpc_server;

struct grpc_server_config {
	struct loop *loop;
	const char *path;
	mode_t mode;
	int inherited; /* > 0: a socket that already listens, in place of the path */
	/* Called when a call begins, as in struct h2_config. Calls beyond the limit are refused
	 * before. */
	void (*accept)(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg);
	void *arg;
};

int grpc_server_new(const struct grpc_server_config *config, struct grpc_server **ret,
		    struct err *err);
/* Frees the server; its calls end as if their callers had disconnected. Not inside a callback. NULL
 * is fine; returns NULL. */
struct grpc_server *grpc_server_free(struct grpc_server *s);
unsigned grpc_server_n_connections(const struct grpc_server *s);
