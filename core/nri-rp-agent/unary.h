/* SPDX-License-Identifier: Apache-2.0 */
/* Server side of gRPC calls with one message in each direction, answered at once or later. */
#pragma once

#include "core/lib/grpc/server.h"
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

/* Serves calls at a socket. `service` must live as long as the server. */
int unary_listen(const struct unary_service *service, const char *path, mode_t mode,
		 struct grpc_server **ret, struct err *err);
void unary_answer(struct unary *u, const ProtobufCMessage *msg);
void unary_fail(struct unary *u, enum grpc_status status, const char *text);
