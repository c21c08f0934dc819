/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 as gRPC uses it (nghttp2), both sides: bytes in, bytes out; the socket is conn.h's. A
 * stream is one call.
 *
 *   h2.c       a connection's streams: headers, data, trailers, resets
 *   message.c  what gRPC puts into them: messages, statuses, texts
 *   server.c   a socket that calls come in on
 *   conn.c     its socket on the loop
 *   call.c     calls that we make
 *   served.c   calls that we answer ourselves
 *
 * Flow control is the user's: what a stream has received counts against its window until
 * h2_stream_consume, so that a slow receiver slows its sender, and nobody else: the window of the
 * whole connection is opened again at once.
 *
 * Callbacks come from inside h2_feed, h2_pull, h2_close and h2_free. All functions but these four
 * may be called there.
 */
#ifndef GRPC_H2_H
#define GRPC_H2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

#define H2_STREAMS_MAX 1000u /* at once, on one connection */
#define H2_HEADERS_MAX 16384u /* bytes of the names and values of one block of headers */
#define H2_FIELDS_MAX 256u /* of one block */
#define H2_STREAM_WINDOW (128u << 10) /* bytes that one stream may have received and not consumed */

/* Codes of RST_STREAM that gRPC speaks of. */
enum { H2_NO_ERROR = 0, H2_PROTOCOL_ERROR = 1, H2_INTERNAL_ERROR = 2, H2_CANCEL = 8 };

struct h2;
struct h2_stream;

/* One header. Texts end with a NUL besides; a value may have one within. */
struct h2_field {
	const char *name, *value;
	size_t name_len, value_len;
	bool never_indexed; /* the sender wants it in no table: a secret */
};
struct h2_fields {
	const struct h2_field *list;
	size_t n;
};

#define H2_FIELD(name_, value_)                                                                    \
	(struct h2_field)                                                                          \
	{                                                                                          \
		.name = (name_), .value = (value_), .name_len = strlen(name_),                     \
		.value_len = strlen(value_)                                                        \
	}

/* NULL: there is none of that name. */
const struct h2_field *h2_field_find(const struct h2_fields *fields, const char *name);

/* A copy in one piece, for free(). NULL: out of memory. */
struct h2_fields *h2_fields_copy(const struct h2_fields *fields);

/* Why a stream has ended. */
struct h2_end {
	/* 0: with `code`, by the peer or both sides; -ECONNRESET and others: the connection has
	 * ended */
	int error;
	uint32_t code; /* of RST_STREAM; H2_NO_ERROR after both sides had said all */
	const char *text; /* never NULL */
};

/* Any but closed may be NULL; data then is consumed at once. Fields and bytes are valid during the
 * callback. */
struct h2_events {
	/* The peer's headers (of a client's stream), or trailers: `last` when nothing follows. */
	void (*headers)(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg);
	/* h2_stream_consume gives the bytes free again, when the receiver has room. */
	void (*data)(struct h2_stream *s, const uint8_t *data, size_t n, void *arg);
	/* The peer has said all, without trailers. */
	void (*finished)(struct h2_stream *s, void *arg);
	/* n bytes of h2_stream_write have left for the peer. */
	void (*sent)(struct h2_stream *s, size_t n, void *arg);
	/* The last callback; the stream is gone after it. */
	void (*closed)(struct h2_stream *s, const struct h2_end *end, void *arg);
};

struct h2_config {
	bool server;
	unsigned streams_max; /* of a server; 0: H2_STREAMS_MAX */
	/* For a server: a call begins. The callee names its events (h2_stream_listen), or resets
	 * it. */
	void (*accept)(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg);
	/* Called when there is something to send: call h2_pull, not from inside. */
	void (*touched)(void *arg);
	void *arg;
};

/* NULL: out of memory. */
struct h2 *h2_new(const struct h2_config *config);
/* Streams end with -ECANCELED. Not from inside a callback. NULL is fine; returns NULL. */
struct h2 *h2_free(struct h2 *h);
/* What the peer sent. An error is the end: h2_close. */
int h2_feed(struct h2 *h, const uint8_t *data, size_t n, struct err *err);
/* Adds the next bytes for the peer, a frame more than `most` at the furthest; when that leaves `to`
 * shorter than `most`, there are no more now. 0, or -errno: the end. */
int h2_pull(struct h2 *h, struct buf *to, size_t most);
/* All streams end with that error and text; nothing is sent or received any more. */
void h2_close(struct h2 *h, int error, const char *text);
bool h2_usable(const struct h2 *h); /* takes new streams (of a client) */
bool h2_is_closed(const struct h2 *h); /* h2_close was called, and may be telling the streams */
bool h2_finished(const struct h2 *h); /* neither side has anything left to say */
/* What the peer did wrong, when that is why we have ended the connection; NULL: nothing. */
const char *h2_complaint(const struct h2 *h);
unsigned h2_n_streams(const struct h2 *h);

/* A call of a client; last: no data follows. -ENOTCONN: the server takes no more here; -ENOBUFS:
 * too many; -ENOMEM. */
int h2_open(struct h2 *h, const struct h2_fields *fields, bool last, const struct h2_events *events,
	    void *arg, struct h2_stream **ret);
void h2_stream_listen(struct h2_stream *s, const struct h2_events *events, void *arg);
/* A server's headers, once. All that sends: 0 or -ENOMEM, after which the stream can only be
 * reset. */
int h2_stream_respond(struct h2_stream *s, const struct h2_fields *fields, bool last);
/* What does not fit into the peer's window waits here: the caller looks at `sent` for how much that
 * is. */
int h2_stream_write(struct h2_stream *s, const uint8_t *data, size_t n);
/* All is said, with these trailers (a server's; NULL: without). A server's stream ends with it,
 * whatever the client still wants to say. */
int h2_stream_finish(struct h2_stream *s, const struct h2_fields *trailers);
void h2_stream_consume(struct h2_stream *s, size_t n);
/* The stream is gone at once; no callback comes. NULL is fine; returns NULL. */
struct h2_stream *h2_stream_reset(struct h2_stream *s, uint32_t code);
/* Nothing of it is of interest any more, but what was written still goes out. No callback comes.
 * NULL is fine; returns NULL. */
struct h2_stream *h2_stream_leave(struct h2_stream *s);

#endif
