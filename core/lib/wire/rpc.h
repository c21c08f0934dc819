/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a ttrpc connection in both roles: it calls the peer and serves the peer's calls. It
 * turns bytes into callbacks and calls into bytes; the trunk below it owns the socket and the
 * clock. Everything happens on the loop's thread.
 */
#ifndef WIRE_RPC_H
#define WIRE_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/wire/ttrpc.h"

/* Requests that may wait for their answers at a time; more are answered with RESOURCE_EXHAUSTED. */
#define RPC_PENDING_MAX 256u

struct rpc;

/*
 * A request of the peer. It is answered exactly once, by rpc_reply or rpc_reply_error, from inside
 * the handler or any time later; the answer ends the handle. When the connection ends first the
 * handle stays good and the answer goes nowhere.
 */
struct rpc_request {
	/* valid while the handler runs */
	const char *service, *method;
	const uint8_t *payload;
	size_t payload_len;
	/* valid until the answer */
	int64_t timeout_ns; /* what the caller allows, 0: not said */
	uint64_t received_ns; /* clock_ns() when the bytes came */
	uint32_t stream;
	void *user; /* the handler's, NULL at first */
	struct rpc *rpc; /* NULL when the connection has ended */
	struct rpc_request *prev, *next;
};

typedef void (*rpc_handler)(struct rpc_request *req, void *arg);
/* Sets the handler of the peer's requests; without one they are answered with UNIMPLEMENTED. */
void rpc_serve(struct rpc *rpc, rpc_handler handler, void *arg);

/*
 * Both end the handle whatever they return. msg NULL is an empty message. 0: on its way; -EMSGSIZE:
 * over the limit, RESOURCE_EXHAUSTED was answered instead; -ENOTCONN: the connection has ended;
 * -ENOMEM, or -ENOBUFS when the peer does not take its answers: the connection is being closed.
 */
int rpc_reply(struct rpc_request *req, const ProtobufCMessage *msg);
int rpc_reply_error(struct rpc_request *req, enum ttrpc_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* How a call ended. All of it is valid during the callback only. */
struct rpc_result {
	/*
	 * 0: answered; -EREMOTEIO: answered with an error status; -ETIMEDOUT; -EBADMSG: the answer
	 * makes no sense; -ECONNRESET: the connection ended; -ECANCELED: we closed it.
	 */
	int error;
	int32_t code; /* the peer's status code, or the one that fits error */
	const char *text; /* never NULL */
	const uint8_t *payload;
	size_t payload_len;
};
typedef void (*rpc_done)(const struct rpc_result *result, void *arg);

/*
 * Calls the peer. After 0 done is called exactly once, never from inside rpc_call. timeout_ms 0: no
 * limit. done may be NULL. Otherwise it is not called: -ENOTCONN; -EMSGSIZE: over the limit;
 * -ENOBUFS: too much unsent output; -EOVERFLOW: the stream numbers are used up, connect anew;
 * -ENOMEM.
 */
int rpc_call(struct rpc *rpc, const char *service, const char *method, const ProtobufCMessage *msg,
	     uint64_t timeout_ms, rpc_done done, void *arg);

unsigned rpc_n_pending(const struct rpc *rpc); /* requests of the peer that wait for our answer */
unsigned rpc_n_calls(const struct rpc *rpc); /* calls of ours under way */

/* ---- for the trunk, and for tests that have no socket ---- */

struct rpc_config {
	uint32_t recv_max, send_max; /* data bytes a message; 0: TTRPC_MESSAGE_MAX */
	uint32_t conn; /* multiplexer connection; 0: no multiplexer */
	size_t first_max; /* see mux.h; 0: MUX_FIRST_FRAME_MAX */
	uint32_t first_stream; /* of our calls, odd; 0: 1 */
	/* While out holds more, calls are refused, answers are reason to end it all; 0: no
	 * limit. */
	size_t calls_out_max, answers_out_max;
	struct buf *out; /* messages are appended here … */
	void (*output)(void *arg); /* … and this says so, or that a deadline has changed */
	void (*failed)(int error, void *arg); /* -ENOMEM, -ENOBUFS: it can't go on */
	void *arg;
};
struct rpc *rpc_new(const struct rpc_config *config);
/*
 * Calls under way end with -ECANCELED, pending requests lose their connection. Not from inside a
 * callback.
 */
struct rpc *rpc_free(struct rpc *rpc);
/*
 * Takes the whole messages off in's front. -EMSGSIZE: one over the limit, the stream can't be
 * followed.
 */
int rpc_input(struct rpc *rpc, struct buf *in, uint64_t now_ns, struct err *err);
/* Answers what is pending with code, for a friendly end. */
void rpc_refuse_pending(struct rpc *rpc, enum ttrpc_code code, const char *text);
/*
 * The connection has ended: pending requests are let go, no new calls are taken; rpc_close also
 * ends calls with error.
 */
void rpc_shut(struct rpc *rpc);
void rpc_close(struct rpc *rpc, int error);
/* When the next call runs out of time (clock_ms), 0: none does; and the end of those that have. */
uint64_t rpc_deadline_ms(const struct rpc *rpc);
void rpc_expire(struct rpc *rpc, uint64_t now_ms);

#endif
