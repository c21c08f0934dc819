/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC calls of a client, without compression. All data from the server is checked and limited; a
 * violation ends the call.
 */
#pragma once

#include "core/lib/grpc/message.h"
#include "core/lib/util/loop.h"

struct grpc_call;

/* Outcome of a call. All members are valid during the callback only. */
struct grpc_result {
	/*
	 * 0: answered; -EREMOTEIO: answered with a status other than OK; -ETIMEDOUT; -EBADMSG: the
	 * answer is malformed; -EMSGSIZE: it is too large; -ECONNRESET: the connection ended, or
	 * the server gave up; -ECANCELED: the connection was freed; -ENOMEM.
	 */
	int error;
	int32_t status; /* gRPC status, for -EREMOTEIO */
	const char *text; /* never NULL */
	const uint8_t *payload; /* message of an answer with a single message */
	size_t payload_len;
};
/* Returns the error of the result, -ETIMEDOUT also for the status DEADLINE_EXCEEDED: the server's
 * library may have detected the timeout first. */
int grpc_result_error(const struct grpc_result *result);
typedef void (*grpc_done)(const struct grpc_result *result, void *arg);

struct grpc_call_config {
	struct h2 *h2;
	struct loop *loop;
	const char *path; /* path of the method: "/v1.Service/Method" */
	uint32_t timeout_ms; /* time limit of the call; 0: none */
	uint32_t message_max; /* bytes of an answer; 0: GRPC_MESSAGE_MAX */
	struct h2_fields metadata; /* headers in addition to those of gRPC */
	/* Called for each message of a stream of answers. NULL: the answer is one message, which is
	 * passed with the end. */
	void (*message)(const uint8_t *payload, size_t n, void *arg);
	grpc_done done;
	void *arg;
};

/*
 * Starts a call. Returns 0: done is called exactly once, later. Errors, without done: -ENOTCONN:
 * the server accepts no more calls on this connection; -ENOBUFS: H2_STREAMS_MAX are running;
 * -ENOMEM. ret may be NULL; the call is gone when done returns.
 */
int grpc_call(const struct grpc_call_config *config, const ProtobufCMessage *msg,
	      struct grpc_call **ret);
/* Works like grpc_call() with a packed message. */
int grpc_call_packed(const struct grpc_call_config *config, const uint8_t *payload, size_t n,
		     struct grpc_call **ret);
/* Cancels a call; done is not called. accepts NULL; returns NULL. */
struct grpc_call *grpc_call_cancel(struct grpc_call *c);
