/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ttrpc messages: a header of ten bytes and an envelope (proto/ttrpc.proto). The envelope is read
 * and written here, so that a payload of megabytes is neither copied nor allocated; protobuf-c
 * handles its contents.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "core/lib/util/err.h"

#define TTRPC_HEADER_SIZE 10u
#define TTRPC_MESSAGE_MAX (4u << 20) /* data without header, the limit of a Go peer */
#define TTRPC_NAME_MAX 128u /* size of a buffer for a service or method name, with the NUL */
#define TTRPC_TEXT_MAX 1000u /* largest size of a status text to send, in bytes */

enum ttrpc_type { TTRPC_REQUEST = 1, TTRPC_RESPONSE = 2, TTRPC_DATA = 3 };

/* Status codes, equal to gRPC's. */
enum ttrpc_code {
	TTRPC_OK = 0,
	TTRPC_CANCELLED = 1,
	TTRPC_UNKNOWN = 2, /* used for any Go error: "the policy refuses" */
	TTRPC_INVALID_ARGUMENT = 3,
	TTRPC_DEADLINE_EXCEEDED = 4,
	TTRPC_NOT_FOUND = 5,
	TTRPC_ALREADY_EXISTS = 6,
	TTRPC_PERMISSION_DENIED = 7,
	TTRPC_RESOURCE_EXHAUSTED = 8,
	TTRPC_FAILED_PRECONDITION = 9,
	TTRPC_ABORTED = 10,
	TTRPC_OUT_OF_RANGE = 11,
	TTRPC_UNIMPLEMENTED = 12,
	TTRPC_INTERNAL = 13,
	TTRPC_UNAVAILABLE = 14,
	TTRPC_DATA_LOSS = 15,
	TTRPC_UNAUTHENTICATED = 16,
};

struct ttrpc_header {
	uint32_t length, stream;
	uint8_t type, flags;
};
void ttrpc_header_decode(const uint8_t data[TTRPC_HEADER_SIZE], struct ttrpc_header *ret);
void ttrpc_header_encode(uint8_t data[TTRPC_HEADER_SIZE], const struct ttrpc_header *header);

struct ttrpc_request {
	char service[TTRPC_NAME_MAX], method[TTRPC_NAME_MAX];
	const uint8_t *payload; /* payload, within the decoded bytes */
	size_t payload_len;
	int64_t timeout_ns; /* time limit of the caller; 0: not stated */
};
/*
 * Decodes a request. -EBADMSG: not a Request; -ENAMETOOLONG: a name over the limit. The last one of
 * repeated scalars counts; unknown fields are skipped.
 */
int ttrpc_request_decode(const uint8_t *data, size_t n, struct ttrpc_request *ret, struct err *err);

struct ttrpc_response {
	int32_t code; /* TTRPC_OK if there is no status */
	const uint8_t *text; /* within the decoded bytes, not terminated */
	size_t text_len;
	const uint8_t *payload;
	size_t payload_len;
};
int ttrpc_response_decode(const uint8_t *data, size_t n, struct ttrpc_response *ret,
			  struct err *err);

/*
 * Contents of an envelope, and functions for its size and its encoding into that many bytes. A NULL
 * payload is an empty message; a NULL text is none.
 */
struct ttrpc_out {
	const char *service, *method; /* members of a request */
	int64_t timeout_ns;
	int32_t code; /* members of a response */
	const char *text;
	const ProtobufCMessage *payload;
	/* the payload's bytes, payload_len of them; NULL: packed into the envelope directly */
	const uint8_t *packed;
	/* sizes of the parts, set by the _size functions */
	size_t payload_len, text_len, status_len;
};
size_t ttrpc_request_size(struct ttrpc_out *out);
void ttrpc_request_encode(const struct ttrpc_out *out, uint8_t *data);
/*
 * Computes the size. With a code other than TTRPC_OK the payload is left out. The text is cut at
 * TTRPC_TEXT_MAX, never inside a character.
 */
size_t ttrpc_response_size(struct ttrpc_out *out);
void ttrpc_response_encode(const struct ttrpc_out *out, uint8_t *data);
