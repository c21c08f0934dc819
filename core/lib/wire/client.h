/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ttrpc client for programs without a loop: calls wait for their answers. Plain ttrpc, no
 * multiplexer.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/wire/ttrpc.h"

struct ttrpc_client {
	int fd; /* owned by the caller */
	uint32_t next_stream;
	int32_t code; /* status of the last answer */
	size_t answer_len; /* bytes of the last answer, at the front of in */
	struct buf in, out;
};

void ttrpc_client_init(struct ttrpc_client *c, int fd);
void ttrpc_client_fini(struct ttrpc_client *c);
/*
 * Calls a method. The payload is valid until the next call. timeout_ms 0: waits without limit.
 * -EREMOTEIO: an error status, its code in c->code, its text in err; -ETIMEDOUT; -ECONNRESET;
 * -EBADMSG; -EMSGSIZE; -ENOMEM. After all errors but -EREMOTEIO and -EMSGSIZE the connection is
 * unusable.
 */
int ttrpc_client_call(struct ttrpc_client *c, const char *service, const char *method,
		      const ProtobufCMessage *msg, unsigned timeout_ms, const uint8_t **ret_payload,
		      size_t *ret_len, struct err *err);
