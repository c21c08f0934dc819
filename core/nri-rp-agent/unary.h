/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of gRPC with one message each way, that we answer: at once or later. */
#ifndef NRI_RP_AGENT_UNARY_H
#define NRI_RP_AGENT_UNARY_H

#include "core/lib/grpc/served.h"

struct unary;

struct unary_service {
	struct loop *loop;
	uint32_t message_max;
	/* The whole request, valid during the call. Ends u by one of the two functions below, now
	 * or later, also when the caller has gone meanwhile. */
	void (*handle)(struct unary *u, const char *path, const uint8_t *payload, size_t n,
		       void *arg);
	void *arg;
};

/* What a server's accept was given. */
void unary_accept(const struct unary_service *service, struct h2_stream *s,
		  const struct h2_fields *fields, bool last);
void unary_answer(struct unary *u, const ProtobufCMessage *msg);
void unary_fail(struct unary *u, enum grpc_status status, const char *text);

#endif
