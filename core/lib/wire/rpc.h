/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End of a ttrpc connection in both roles: calls the peer and serves the peer's calls. It turns
 * bytes into callbacks and calls into bytes; the trunk below it owns the socket and the timer.
 * Everything runs on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/util/pb.h"
#include "core/lib/wire/ttrpc.h"

/* Requests that may wait for answers at a time; further ones are answered with
 * RESOURCE_EXHAUSTED. */
#define RPC_PENDING_MAX 256u

struct rpc;

/*
 * A request of the peer. It is answered exactly once, by rpc_reply or rpc_reply_error, in the
 * handler or at any later time; the answer ends the handle. If the connection ends first, the
 * handle stays valid and the answer is dropped.
 */
struct rpc_request {
	/* valid during the handler */
	const char *service, *method;
	const uint8_t *payload;
	size_t payload_len;
	/* valid until the answer */
	int64_t timeout_ns; /* the caller's time limit; 0: not stated */
	uint64_t received_ns; /* clock_ns() at the arrival of the bytes */
	uint32_t stream;
	void *user; /* data of the handler, NULL at first */
	struct rpc *rpc; /* connection that received the request; NULL: it has ended */
	struct rpc_request *prev, *next;
};

typedef void (*rpc_handler)(struct rpc_request *req, void *arg);
/* Sets the handler of the peer's requests; without one they are answered with UNIMPLEMENTED. */
void rpc_serve(struct rpc *rpc, rpc_handler handler, void *arg);

/*
 * Answers a request. Both end the handle in any case. msg NULL is an empty message. 0: queued;
 * -EMSGSIZE: over the limit, RESOURCE_EXHAUSTED was answered instead; -ENOTCONN: the connection has
 * ended; -ENOMEM, or -ENOBUFS if the peer does not read its answers: the connection is being
 * closed.
 */
int rpc_reply(struct rpc_request *req, const ProtobufCMessage *msg);
int rpc_reply_error(struct rpc_request *req, enum ttrpc_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Outcome of a call. All members are valid during the callback only. */
struct rpc_result {
	/*
	 * 0: answered; -EREMOTEIO: answered with an error status; -ETIMEDOUT; -EBADMSG: the answer
	 * is malformed; -ECONNRESET: the connection ended; -ECANCELED: this side closed it.
	 */
	int error;
	int32_t code; /* status code of the peer, or the code that corresponds to `error` */
	const char *text; /* never NULL */
	const uint8_t *payload;
	size_t payload_len;
};

/* Decode the message of a request, and of a result without an error, into an arena, as by
 * PB_UNPACK. */
#define RPC_MESSAGE(arena, prefix, from)                                                           \
	PB_UNPACK(arena, prefix, (from)->payload_len, (from)->payload)
#define RPC_ANSWER(arena, prefix, result)                                                          \
	((result)->error ? NULL : RPC_MESSAGE(arena, prefix, result))

typedef void (*rpc_done)(const struct rpc_result *result, void *arg);

/*
 * Calls the peer. After 0 done is called exactly once, never from inside rpc_call. timeout_ms 0: no
 * limit. done may be NULL. Errors, without done: -ENOTCONN; -EMSGSIZE: over the limit; -ENOBUFS:
 * too much unsent output; -EOVERFLOW: the stream numbers are used up, reconnect; -ENOMEM.
 */
int rpc_call(struct rpc *rpc, const char *service, const char *method, const ProtobufCMessage *msg,
	     uint64_t timeout_ms, rpc_done done, void *arg);

unsigned rpc_n_pending(const struct rpc *rpc); /* unanswered requests of the peer */
unsigned rpc_n_calls(const struct rpc *rpc); /* running calls to the peer */

/* ---- for the trunk, and for tests that have no socket ---- */

struct rpc_config {
	uint32_t recv_max, send_max; /* data bytes of a message; 0: TTRPC_MESSAGE_MAX */
	uint32_t conn; /* multiplexer connection; 0: no multiplexer */
	size_t first_max; /* largest size of the first frame (mux.h); 0: MUX_FIRST_FRAME_MAX */
	uint32_t first_stream; /* first stream of calls, odd; 0: 1 */
	/* Bytes in out above which calls are refused, and above which an answer ends the
	 * connection; 0: no limit. */
	size_t calls_out_max, answers_out_max;
	struct buf *out; /* buffer to which messages are appended */
	/* called when `out` has a new message, or a deadline has changed */
	void (*output)(void *arg);
	/* -ENOMEM, -ENOBUFS: the connection cannot continue */
	void (*failed)(int error, void *arg);
	void *arg;
};
struct rpc *rpc_new(const struct rpc_config *config);
/*
 * Frees the end: calls end with -ECANCELED, pending requests lose their connection. Must not be
 * called inside a callback.
 */
struct rpc *rpc_free(struct rpc *rpc);
/*
 * Handles the whole messages at in's front. -EMSGSIZE: one exceeds the limit, and the stream is
 * lost.
 */
int rpc_input(struct rpc *rpc, struct buf *in, uint64_t now_ns, struct err *err);
/* Answers all pending requests with code, for an orderly end. */
void rpc_refuse_pending(struct rpc *rpc, enum ttrpc_code code, const char *text);
/*
 * Ends the connection: pending requests are detached and new calls refused; rpc_close also ends
 * calls with error.
 */
void rpc_shut(struct rpc *rpc);
void rpc_close(struct rpc *rpc, int error);
/* Returns the deadline of the next call (clock_ms; 0: none), and end the calls whose deadline has
 * passed. */
uint64_t rpc_deadline_ms(const struct rpc *rpc);
void rpc_expire(struct rpc *rpc, uint64_t now_ms);
