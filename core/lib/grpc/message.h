/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's contents of HTTP/2 streams: messages with a prefix, a status, texts, time-outs. */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "core/lib/grpc/h2.h"
#include "core/lib/util/buf.h"

#define GRPC_MESSAGE_MAX (16u << 20) /* bytes of a message, unless the user sets a lower limit */
#define GRPC_PREFIX_SIZE 5u /* bytes in front of a message: compression flag and length */
#define GRPC_CONTENT_TYPE "application/grpc"
/* size of a buffer for an encoded status text, with its NUL */
#define GRPC_TEXT_MAX (3u * ERR_TEXT_MAX)

/* Statuses that runtimes and kubelets answer with; others are used as numbers. */
enum grpc_status {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_STATUS_LAST = 16,
};
#define GRPC_STATUS_UNTOLD (-1)

/* Reassembles messages. */
struct grpc_reader {
	struct buf in;
	uint32_t message_max;
};
/* A received message, valid until the next call. */
struct grpc_message {
	bool compressed;
	const uint8_t *data;
	size_t n;
};
int grpc_reader_add(struct grpc_reader *r, const uint8_t *data, size_t n);
/* Returns 1: *ret is the next message, valid until grpc_reader_drop; 0: it is incomplete;
 * -EMSGSIZE; -EBADMSG: the prefix is invalid. */
int grpc_reader_next(const struct grpc_reader *r, struct grpc_message *ret, struct err *err);
void grpc_reader_drop(struct grpc_reader *r); /* drops the message that grpc_reader_next returned */
/* Returns true if the beginning of a message is buffered. */
bool grpc_reader_partial(const struct grpc_reader *r);
void grpc_reader_fini(struct grpc_reader *r);

void grpc_prefix(uint8_t ret[GRPC_PREFIX_SIZE], uint32_t n);
/* Appends msg with its prefix. -ENOMEM, also if it exceeds the length of a message. */
int grpc_pack(struct buf *to, const ProtobufCMessage *msg);

/* Returns the status of a block of trailers; GRPC_STATUS_UNTOLD: none; GRPC_UNKNOWN: invalid. */
int32_t grpc_status_of(const struct h2_fields *fields);
bool grpc_is_content_type(const struct h2_field *type);
/* Parses a small number of plain digits; -1: invalid. */
int32_t grpc_small_number(const char *text, size_t n);
/* Parses "20S", "300m" … as milliseconds, rounded up; UINT64_MAX: no limit; -EINVAL: invalid. */
int grpc_timeout_ms(const struct h2_field *timeout, uint64_t *ret);

/* Decodes gRPC's percent-encoding of texts into size bytes with the NUL; invalid UTF-8 becomes
 * question marks. */
void grpc_decode_text(const uint8_t *data, size_t n, char *ret, size_t size);
void grpc_encode_text(const char *text, char *ret, size_t size);
