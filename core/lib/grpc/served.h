/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC calls that we answer: messages in both directions, metadata, trailers, the caller's
 * deadline. */
#ifndef GRPC_SERVED_H
#define GRPC_SERVED_H

#include "core/lib/grpc/message.h"
#include "core/lib/util/loop.h"

struct grpc_served;

struct grpc_served_config {
	struct loop *loop;
	uint32_t message_max; /* bytes of a message of the caller; 0: GRPC_MESSAGE_MAX */
	/* A message has come; valid during the callback. The caller's window is opened again after
	 * it. */
	void (*message)(struct grpc_served *c, const struct grpc_message *m, void *arg);
	void (*finished)(struct grpc_served *c, void *arg); /* the caller has said all */
	/* n bytes of what was sent have left, of at most what was sent. NULL: nobody cares. */
	void (*sent)(struct grpc_served *c, size_t n, void *arg);
	/* The caller has gone, broken a rule, or run out of time: c is gone after it. Not called
	 * after grpc_served_end. */
	void (*gone)(struct grpc_served *c, void *arg);
	void *arg;
};

/*
 * A call that h2's or server's accept was given; `last` as there. -EINVAL: it was none of gRPC and
 * is refused already; -ENOMEM: the stream is reset.
 */
int grpc_serve(struct h2_stream *s, const struct h2_fields *fields, bool last,
	       const struct grpc_served_config *config, struct grpc_served **ret);
/* Out of what does not fit into the caller's window a queue forms: `sent` tells how it shrinks. */
int grpc_served_send(struct grpc_served *c, const uint8_t *payload, size_t n);
/* The status, a text of UTF-8 (NULL: none), trailers of our own (NULL: none). c is gone, what was
 * sent before still goes out. */
void grpc_served_end(struct grpc_served *c, enum grpc_status status, const char *text,
		     const struct h2_fields *trailers);

/* Answers a call with nothing but a status. The stream is gone. */
void grpc_refuse(struct h2_stream *s, enum grpc_status status, const char *text);

#endif
