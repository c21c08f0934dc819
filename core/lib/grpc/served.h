/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC calls that this process answers: messages in both directions, metadata, trailers, the
 * caller's deadline. */
#pragma once

#include "core/lib/grpc/message.h"
#include "core/lib/util/loop.h"

struct grpc_served;

struct grpc_served_config {
	struct loop *loop;
	uint32_t message_max; /* bytes of a caller's message; 0: GRPC_MESSAGE_MAX */
	/* Called for a message, valid during the callback. The caller's window is reopened after
	 * it. */
	void (*message)(struct grpc_served *c, const struct grpc_message *m, void *arg);
	void (*finished)(struct grpc_served *c, void *arg); /* the caller has finished */
	/* Called when n bytes were sent that were passed to grpc_served_send. May be NULL. */
	void (*sent)(struct grpc_served *c, size_t n, void *arg);
	/* Called when the caller has disconnected, violated a rule or exceeded its time; c is freed
	 * afterwards. Not called after grpc_served_end. */
	void (*gone)(struct grpc_served *c, void *arg);
	void *arg;
};

/*
 * Answers a call that accept() of h2 or server has received; `last` as there. -EINVAL: no gRPC
 * call, refused already; -ENOMEM: the stream is reset.
 */
int grpc_serve(struct h2_stream *s, const struct h2_fields *fields, bool last,
	       const struct grpc_served_config *config, struct grpc_served **ret);
/* Sends a message. Bytes that do not fit into the caller's window form a queue; `sent` reports how
 * it shrinks. */
int grpc_served_send(struct grpc_served *c, const uint8_t *payload, size_t n);
/* Ends the call with a status, a UTF-8 text and trailers, both of which may be NULL. Frees c;
 * messages written before are still sent. */
void grpc_served_end(struct grpc_served *c, enum grpc_status status, const char *text,
		     const struct h2_fields *trailers);

/* Answers a call with a status only, and frees the stream. */
void grpc_refuse(struct h2_stream *s, enum grpc_status status, const char *text);
