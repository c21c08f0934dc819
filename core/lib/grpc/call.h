/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC calls that we make. Nothing is compressed. All that comes from the server is checked, and
 * bounded by the limits here: what breaks one call's rules ends that call.
 */
#ifndef GRPC_CALL_H
#define GRPC_CALL_H

#include "core/lib/grpc/message.h"
#include "core/lib/util/loop.h"

struct grpc_call;

/* How a call ended. All of it is valid during the callback only. */
struct grpc_result {
	/*
	 * 0: answered; -EREMOTEIO: answered with a status other than OK; -ETIMEDOUT; -EBADMSG: the
	 * answer breaks the rules; -EMSGSIZE: it is too large; -ECONNRESET: the connection ended,
	 * or the server gave up; -ECANCELED: we closed it; -ENOMEM.
	 */
	int error;
	int32_t status; /* gRPC's, of -EREMOTEIO */
	const char *text; /* never NULL */
	const uint8_t *payload; /* of an answer that is one message */
	size_t payload_len;
};
typedef void (*grpc_done)(const struct grpc_result *result, void *arg);

struct grpc_call_config {
	struct h2 *h2;
	struct loop *loop;
	const char *path; /* "/v1.Service/Method" */
	uint32_t timeout_ms; /* 0: none */
	uint32_t message_max; /* bytes of an answer; 0: GRPC_MESSAGE_MAX */
	struct h2_fields metadata; /* besides what gRPC needs */
	/* Called for each message of a stream of answers; NULL: one message is the answer, and told
	 * with the end. */
	void (*message)(const uint8_t *payload, size_t n, void *arg);
	grpc_done done;
	void *arg;
};

/*
 * After 0 done is called exactly once, never from inside. Otherwise it is not called: -ENOTCONN:
 * the server takes no more on this connection; -ENOBUFS: H2_STREAMS_MAX are under way; -ENOMEM. ret
 * may be NULL; the call is gone when done returns.
 */
int grpc_call(const struct grpc_call_config *config, const ProtobufCMessage *msg,
	      struct grpc_call **ret);
/* The same with a message that is packed already. */
int grpc_call_packed(const struct grpc_call_config *config, const uint8_t *payload, size_t n,
		     struct grpc_call **ret);
/* done is not called. NULL is fine; returns NULL. */
struct grpc_call *grpc_call_cancel(struct grpc_call *c);

#endif
