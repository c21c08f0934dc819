/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 connection over a socket on the loop. */
#ifndef GRPC_CONN_H
#define GRPC_CONN_H

#include "core/lib/grpc/h2.h"
#include "core/lib/util/loop.h"

struct grpc_conn;

struct grpc_conn_config {
	struct loop *loop;
	const char *peer; /* for messages; lives as long as the connection */
	bool server;
	unsigned streams_max; /* as struct h2_config has these three */
	void (*accept)(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg);
	/* The connection has ended, after all of its streams: grpc_conn_free is all that is left to
	 * do with it. Not within h2's callbacks. */
	void (*ended)(struct grpc_conn *c, const struct err *err, void *arg);
	void *arg;
};

/* Takes the fd, which is closed on an error, too. */
int grpc_conn_new(int fd, const struct grpc_conn_config *config, struct grpc_conn **ret,
		  struct err *err);
/* Streams end with -ECANCELED before it returns. Allowed in every callback. NULL is fine; returns
 * NULL. */
struct grpc_conn *grpc_conn_free(struct grpc_conn *c);
struct h2 *grpc_conn_h2(struct grpc_conn *c);

#endif
