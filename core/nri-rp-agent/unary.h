/* SPDX-License-Identifier: Apache-2.0 */
/* Server side of gRPC calls with one message in each direction, answered at once or later. */
#pragma once

#include "core/lib/grpc/served.h"

struct unary;

struct unary_service {
	struct loop *loop;
	uint32_t message_max;
	/* Handles a complete request, which is valid during the call. Must end `u` by unary_answer
	 * or unary_fail, now or later, even if the caller has disconnected. */
	void (*handle)(struct unary *u, const char *path, const uint8_t *payload, size_t n,
		       void *arg);
	void *arg;
};

/* Accepts a call; arguments are those of grpc_server_config.accept. */
void unary_accept(const struct unary_service *service, struct h2_stream *s,
		  const struct h2_fields *fields, bool last);
void unary_answer(struct unary *u, const ProtobufCMessage *msg);
void unary_fail(struct unary *u, enum grpc_status status, const char *text);
