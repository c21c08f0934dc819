/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 connection over a socket on the loop. */
#pragma once

#include "core/lib/grpc/h2.h"
#include "core/lib/util/loop.h"

struct grpc_conn;

struct grpc_conn_config {
	struct loop *loop;
	const char *peer; /* for messages; has to live as long as the connection */
	bool server;
	unsigned streams_max; /* server, streams_max and accept as in struct h2_config */
	void (*accept)(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg);
	/* Called when the connection has ended, after all of its streams: the user can only call
	 * grpc_conn_free. Not called within h2's callbacks. */
	void (*ended)(struct grpc_conn *c, const struct err *err, void *arg);
	void *arg;
};

/* Creates a connection and takes ownership of the descriptor, which is closed also on an error. */
int grpc_conn_new(int fd, const struct grpc_conn_config *config, struct grpc_conn **ret,
		  struct err *err);
/* Frees the connection after its streams have ended with -ECANCELED. Allowed in every callback.
 * accepts NULL; returns NULL. */
struct grpc_conn *grpc_conn_free(struct grpc_conn *c);
struct h2 *grpc_conn_h2(struct grpc_conn *c);
