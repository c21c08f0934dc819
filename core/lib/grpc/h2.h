/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 as used by gRPC (nghttp2), both sides: bytes in, bytes out; conn.h has the socket. A
 * stream is one call.
 *
 *   h2.c       a connection's streams: headers, data, trailers, resets
 *   message.c  gRPC's contents of streams: messages, statuses, texts
 *   server.c   listening socket for calls
 *   conn.c     socket of a connection on the loop
 *   call.c     calls of a client
 *   served.c   calls that this process answers
 *
 * The user controls the flow: received bytes count against the stream's window until
 * h2_stream_consume. A slow receiver therefore slows its sender and no other stream, because the
 * window of the whole connection is reopened at once.
 *
 * Callbacks run inside h2_feed, h2_pull, h2_close and h2_free. All functions but these four may be
 * called there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

#define H2_STREAMS_MAX 1000u /* largest number of concurrent streams of one connection */
#define H2_HEADERS_MAX 16384u /* largest size of a header block's names and values, in bytes */
#define H2_FIELDS_MAX 256u /* largest number of fields of a header block */
/* flow control window of a stream: received and not yet consumed bytes */
#define H2_STREAM_WINDOW (128u << 10)

/* Codes of RST_STREAM that gRPC uses. */
enum { H2_NO_ERROR = 0, H2_PROTOCOL_ERROR = 1, H2_INTERNAL_ERROR = 2, H2_CANCEL = 8 };

struct h2;
struct h2_stream;

/* A header. Texts have a NUL at the end; a value may contain others. */
struct h2_field {
	const char *name, *value;
	size_t name_len, value_len;
	bool never_indexed; /* a secret, which the sender excludes from header compression tables */
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

/* Returns the header of that name; NULL: none. */
const struct h2_field *h2_field_find(const struct h2_fields *fields, const char *name);

/* Copies fields into one allocation, for free(). NULL: out of memory. */
struct h2_fields *h2_fields_copy(const struct h2_fields *fields);

/* Reason for the end of a stream. */
struct h2_end {
	/* 0: the peer or both sides have ended the stream, with `code`; negative errno, such as
	 * -ECONNRESET: the connection has ended */
	int error;
	uint32_t code; /* code of RST_STREAM; H2_NO_ERROR: both sides had finished */
	const char *text; /* never NULL */
};

/* Callbacks of a stream. Any but closed may be NULL; without data, bytes are consumed at once.
 * Fields and bytes are valid during the callback. */
struct h2_events {
	/* Called for the peer's headers (on a client's stream), or trailers: `last` if no data
	 * follows. */
	void (*headers)(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg);
	/* Called for data; h2_stream_consume reopens the window by these bytes when the receiver
	 * has room. */
	void (*data)(struct h2_stream *s, const uint8_t *data, size_t n, void *arg);
	/* Called when the peer has finished without trailers. */
	void (*finished)(struct h2_stream *s, void *arg);
	/* Called when n bytes of h2_stream_write were sent to the peer. */
	void (*sent)(struct h2_stream *s, size_t n, void *arg);
	/* Called last; the stream is freed when it returns. */
	void (*closed)(struct h2_stream *s, const struct h2_end *end, void *arg);
};

struct h2_config {
	bool server;
	unsigned streams_max; /* largest number of streams of a server; 0: H2_STREAMS_MAX */
	/* Called on a server when a call begins. The callee sets its events (h2_stream_listen) or
	 * resets it. */
	void (*accept)(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg);
	/* Called when there is data to send: call h2_pull, but not inside this callback. */
	void (*touched)(void *arg);
	void *arg;
};

/* Creates a connection; NULL: out of memory. */
struct h2 *h2_new(const struct h2_config *config);
/* Frees the connection; streams end with -ECANCELED. Not inside a callback. Accepts NULL; returns
 * NULL. */
struct h2 *h2_free(struct h2 *h);
/* Handles bytes from the peer. After an error, call h2_close. */
int h2_feed(struct h2 *h, const uint8_t *data, size_t n, struct err *err);
/* Appends the next bytes for the peer, at most one frame more than `most`. If `to` is shorter than
 * `most` afterwards, there are no more now. 0, or -errno, which is final. */
int h2_pull(struct h2 *h, struct buf *to, size_t most);
/* Ends all streams with this error and text; afterwards the connection neither sends nor
 * receives. */
void h2_close(struct h2 *h, int error, const char *text);
bool h2_usable(const struct h2 *h); /* true if a client can open new streams */
/* Returns true after h2_close, also while it reports to the streams. */
bool h2_is_closed(const struct h2 *h);
bool h2_finished(const struct h2 *h); /* Returns true if both sides have finished. */
/* Returns the peer's error if it was the reason for ending the connection; NULL: none. */
const char *h2_complaint(const struct h2 *h);
unsigned h2_n_streams(const struct h2 *h);

/* Opens a call of a client; last: no data follows. -ENOTCONN: the server accepts no more here;
 * -ENOBUFS: too many; -ENOMEM. */
int h2_open(struct h2 *h, const struct h2_fields *fields, bool last, const struct h2_events *events,
	    void *arg, struct h2_stream **ret);
void h2_stream_listen(struct h2_stream *s, const struct h2_events *events, void *arg);
/* Sends a server's headers, once. All sending functions return 0 or -ENOMEM, after which the stream
 * can only be reset. */
int h2_stream_respond(struct h2_stream *s, const struct h2_fields *fields, bool last);
/* Sends data. Bytes that do not fit into the peer's window wait; the caller counts them with
 * `sent`. */
int h2_stream_write(struct h2_stream *s, const uint8_t *data, size_t n);
/* Finishes sending, with these trailers (of a server; NULL: none). A server's stream ends with it,
 * even if the client has not finished. */
int h2_stream_finish(struct h2_stream *s, const struct h2_fields *trailers);
void h2_stream_consume(struct h2_stream *s, size_t n);
/* Resets a stream and frees it at once, without a callback. Accepts NULL; returns NULL. */
struct h2_stream *h2_stream_reset(struct h2_stream *s, uint32_t code);
/* Detaches a stream: written data is still sent, and there are no further callbacks. Accepts NULL;
 * returns NULL. */
struct h2_stream *h2_stream_leave(struct h2_stream *s);
