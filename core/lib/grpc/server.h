/* SPDX-License-Identifier: Apache-2.0 */
/* A unix socket that gRPC calls come in on. */
#ifndef GRPC_SERVER_H
#define GRPC_SERVER_H

#include <sys/types.h>

#include "core/lib/grpc/h2.h"
#include "core/lib/util/loop.h"

#define GRPC_CONNECTIONS_MAX 100u
#define GRPC_CALLS_MAX 1000u /* under way on all of them */
/* The last ones are for connections that have no more than their share. */
#define GRPC_CALLS_SPARE 100u
#define GRPC_CALLS_SHARE 10u
/* A connection without a call under way is closed after so long: before its first call, and since
 * its last one. With GRPC_CONNECTIONS_MAX the one without a call for longest gives its place to the
 * next. */
#define GRPC_SILENT_MS 10000u
#define GRPC_IDLE_MS 300000u

struct grpc_server;

struct grpc_server_config {
	struct loop *loop;
	const char *path;
	mode_t mode;
	int inherited; /* > 0: a socket that listens already, instead */
	/* A call begins, as struct h2_config has it. What is more than the limit is refused
	 * before. */
	void (*accept)(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg);
	void *arg;
};

int grpc_server_new(const struct grpc_server_config *config, struct grpc_server **ret,
		    struct err *err);
/* Calls end as if their callers had gone. Not from inside a callback. NULL is fine; returns
 * NULL. */
struct grpc_server *grpc_server_free(struct grpc_server *s);
unsigned grpc_server_n_connections(const struct grpc_server *s);

#endif
