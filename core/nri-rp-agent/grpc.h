/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unary gRPC calls over HTTP/2 (nghttp2): bytes in, bytes out; the socket and the clock are the user's. Nothing is compressed.
 * All that comes from the server is checked, and bounded by the limits here: what breaks one call's rules ends that call, what
 * breaks HTTP/2's ends the connection.
 */
#ifndef NRI_RP_AGENT_GRPC_H
#define NRI_RP_AGENT_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "core/util/buf.h"
#include "core/util/err.h"

#define GRPC_CALLS_MAX 64u /* under way */
#define GRPC_HEADERS_MAX 16384u /* bytes of the headers and trailers of one answer */
#define GRPC_PREFIX_SIZE 5u /* before a message: compressed or not, and its length */

struct grpc;

/* How a call ended. All of it is valid during the callback only. */
struct grpc_result {
	/*
	 * 0: answered; -EREMOTEIO: answered with a status other than OK; -ETIMEDOUT; -EBADMSG: the answer
	 * breaks the rules; -EMSGSIZE: it is too large; -ECONNRESET: the connection ended, or the server
	 * gave up; -ECANCELED: we closed it; -ENOMEM.
	 */
	int error;
	int32_t status; /* gRPC's, of -EREMOTEIO */
	const char *text; /* never NULL */
	const uint8_t *payload;
	size_t payload_len;
};
typedef void (*grpc_done)(const struct grpc_result *result, void *arg);

struct grpc_config {
	uint32_t message_max; /* bytes of an answer */
	struct buf *out; /* bytes for the server are appended here … */
	void (*output)(void *arg); /* … and this says so, or that a deadline has changed */
	void *arg;
};

/* NULL: out of memory. */
struct grpc *grpc_new(const struct grpc_config *config);
/* Calls under way end with -ECANCELED. Not from inside a callback. NULL is fine; returns NULL. */
struct grpc *grpc_free(struct grpc *g);
/*
 * After 0 done is called exactly once, never from inside grpc_call. path as "/v1.Service/Method". Otherwise it is not
 * called: -ENOTCONN: the server takes no more on this connection; -ENOBUFS: GRPC_CALLS_MAX are under way; -ENOMEM.
 */
int grpc_call(struct grpc *g, const char *path, const ProtobufCMessage *msg, uint32_t timeout_ms,
	      grpc_done done, void *arg);
/* What the server sent. An error is the end: grpc_close. Not from inside a callback. */
int grpc_feed(struct grpc *g, const uint8_t *data, size_t n, struct err *err);
/* The connection has ended: calls under way do so with error and text. */
void grpc_close(struct grpc *g, int error, const char *text);
bool grpc_usable(const struct grpc *g); /* takes calls */
unsigned grpc_n_calls(const struct grpc *g);
/* When the next call runs out of time (clock_ms), 0: none does; and the end of those that have. */
uint64_t grpc_deadline_ms(const struct grpc *g);
void grpc_expire(struct grpc *g, uint64_t now_ms);

/* gRPC's percent-encoding of texts, into size bytes with the NUL; what is no UTF-8 then becomes question marks. */
void grpc_decode_text(const uint8_t *data, size_t n, char *ret, size_t size);

#endif
