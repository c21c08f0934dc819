/* SPDX-License-Identifier: Apache-2.0 */
#include "core/wire/ttrpc.h"

#include <stdbool.h>
#include <string.h>

#include "core/util/str.h"
#include "core/wire/be.h"

#define FIELD_NUMBER_MAX 0x1fffffffu

const char *ttrpc_code_name(int code)
{
	static const char *const names[] = {
		[TTRPC_OK] = "OK",
		[TTRPC_CANCELLED] = "CANCELLED",
		[TTRPC_UNKNOWN] = "UNKNOWN",
		[TTRPC_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
		[TTRPC_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
		[TTRPC_NOT_FOUND] = "NOT_FOUND",
		[TTRPC_ALREADY_EXISTS] = "ALREADY_EXISTS",
		[TTRPC_PERMISSION_DENIED] = "PERMISSION_DENIED",
		[TTRPC_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
		[TTRPC_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
		[TTRPC_ABORTED] = "ABORTED",
		[TTRPC_OUT_OF_RANGE] = "OUT_OF_RANGE",
		[TTRPC_UNIMPLEMENTED] = "UNIMPLEMENTED",
		[TTRPC_INTERNAL] = "INTERNAL",
		[TTRPC_UNAVAILABLE] = "UNAVAILABLE",
		[TTRPC_DATA_LOSS] = "DATA_LOSS",
		[TTRPC_UNAUTHENTICATED] = "UNAUTHENTICATED",
	};
	if (code < 0 || (size_t)code >= sizeof names / sizeof *names)
		return "a code that gRPC doesn't know";
	return names[code];
}

/* ---- header ---- */

void ttrpc_header_decode(const uint8_t data[TTRPC_HEADER_SIZE], struct ttrpc_header *ret)
{
	*ret = (struct ttrpc_header){get_be32(data), get_be32(data + 4), data[8], data[9]};
}

void ttrpc_header_encode(uint8_t data[TTRPC_HEADER_SIZE], const struct ttrpc_header *header)
{
	put_be32(data, header->length);
	put_be32(data + 4, header->stream);
	data[8] = header->type;
	data[9] = header->flags;
}

/* ---- reading envelopes ---- */

enum field_type { FIELD_VARINT = 0, FIELD_64 = 1, FIELD_BYTES = 2, FIELD_32 = 5 };

struct field {
	uint32_t number;
	enum field_type type;
	uint64_t value; /* FIELD_VARINT */
	const uint8_t *data; /* FIELD_BYTES */
	size_t len;
};

struct reader {
	const uint8_t *at, *end;
};

static size_t bytes_left(const struct reader *r)
{
	return (size_t)(r->end - r->at);
}

static int read_varint(struct reader *r, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned shift = 0;; shift += 7) {
		if (r->at == r->end)
			return -EBADMSG;
		uint8_t byte = *r->at++;
		if (shift == 63 && byte > 1)
			return -EBADMSG;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret = v;
			return 0;
		}
	}
}

static int skip(struct reader *r, uint64_t n)
{
	if (n > bytes_left(r))
		return -EBADMSG;
	r->at += n;
	return 0;
}

static int read_bytes(struct reader *r, struct field *f)
{
	uint64_t n = 0;
	if (read_varint(r, &n))
		return -EBADMSG;
	f->data = r->at;
	f->len = (size_t)n;
	return skip(r, n);
}

static int read_field(struct reader *r, struct field *ret)
{
	uint64_t key = 0;
	if (read_varint(r, &key) || key >> 3 == 0 || key >> 3 > FIELD_NUMBER_MAX)
		return -EBADMSG;
	*ret = (struct field){.number = (uint32_t)(key >> 3), .type = (enum field_type)(key & 7)};
	switch (ret->type) {
	case FIELD_VARINT:
		return read_varint(r, &ret->value);
	case FIELD_64:
		return skip(r, 8);
	case FIELD_BYTES:
		return read_bytes(r, ret);
	case FIELD_32:
		return skip(r, 4);
	}
	return -EBADMSG; /* groups have not been in use since proto3 */
}

static int copy_name(char dst[TTRPC_NAME_MAX], const struct field *f)
{
	if (f->len >= TTRPC_NAME_MAX)
		return -ENAMETOOLONG;
	if (f->type != FIELD_BYTES || memchr(f->data, '\0', f->len) ||
	    !utf8_valid((const char *)f->data, f->len))
		return -EBADMSG;
	memcpy(dst, f->data, f->len);
	dst[f->len] = '\0';
	return 0;
}

static int set_bytes(const uint8_t **data, size_t *len, const struct field *f)
{
	if (f->type != FIELD_BYTES)
		return -EBADMSG;
	*data = f->data;
	*len = f->len;
	return 0;
}

static int request_field(struct ttrpc_request *req, const struct field *f)
{
	switch (f->number) {
	case 1:
		return copy_name(req->service, f);
	case 2:
		return copy_name(req->method, f);
	case 3:
		return set_bytes(&req->payload, &req->payload_len, f);
	case 4:
		req->timeout_ns = (int64_t)f->value;
		return f->type == FIELD_VARINT ? 0 : -EBADMSG;
	default:
		return 0; /* metadata (5) is for tracing */
	}
}

int ttrpc_request_decode(const uint8_t *data, size_t n, struct ttrpc_request *ret, struct err *err)
{
	struct reader r = {data, n ? data + n : data};
	ret->service[0] = ret->method[0] = '\0';
	ret->payload = NULL;
	ret->payload_len = 0;
	ret->timeout_ns = 0;
	while (bytes_left(&r)) {
		struct field f;
		int e = read_field(&r, &f);
		if (!e)
			e = request_field(ret, &f);
		if (e == -ENAMETOOLONG)
			return err_set(
				err, e,
				"a service or method name of %zu bytes, at most %u are accepted",
				f.len, TTRPC_NAME_MAX - 1);
		if (e)
			return err_set(err, e,
				       "not a ttrpc request: invalid data before byte %zu of %zu",
				       (size_t)(r.at - data), n);
	}
	return 0;
}

static int status_field(struct ttrpc_response *res, const struct field *f)
{
	switch (f->number) {
	case 1:
		res->code = (int32_t)(uint32_t)f->value;
		return f->type == FIELD_VARINT ? 0 : -EBADMSG;
	case 2:
		return set_bytes(&res->text, &res->text_len, f);
	default:
		return 0;
	}
}

static int decode_status(struct ttrpc_response *res, const struct field *status)
{
	if (status->type != FIELD_BYTES)
		return -EBADMSG;
	struct reader r = {status->data, status->data + status->len};
	while (bytes_left(&r)) {
		struct field f;
		if (read_field(&r, &f) || status_field(res, &f))
			return -EBADMSG;
	}
	return 0;
}

static int response_field(struct ttrpc_response *res, const struct field *f)
{
	switch (f->number) {
	case 1:
		return decode_status(res, f);
	case 2:
		return set_bytes(&res->payload, &res->payload_len, f);
	default:
		return 0;
	}
}

int ttrpc_response_decode(const uint8_t *data, size_t n, struct ttrpc_response *ret,
			  struct err *err)
{
	struct reader r = {data, n ? data + n : data};
	*ret = (struct ttrpc_response){.code = TTRPC_OK};
	while (bytes_left(&r)) {
		struct field f;
		if (read_field(&r, &f) || response_field(ret, &f))
			return err_set(err, -EBADMSG,
				       "not a ttrpc response: invalid data before byte %zu of %zu",
				       (size_t)(r.at - data), n);
	}
	return 0;
}

/* ---- writing envelopes ---- */

static size_t varint_size(uint64_t v)
{
	size_t n = 1;
	for (; v >= 0x80; v >>= 7)
		n++;
	return n;
}

/* Fields of one byte's key; empty ones are not written, as proto3 has it. */
static size_t bytes_size(size_t len)
{
	return len ? 1 + varint_size(len) + len : 0;
}

static size_t number_size(int64_t v)
{
	return v ? 1 + varint_size((uint64_t)v) : 0;
}

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

static uint8_t *put_key_len(uint8_t *p, unsigned number, size_t len)
{
	*p++ = (uint8_t)(number << 3 | FIELD_BYTES);
	return put_varint(p, len);
}

static uint8_t *put_text(uint8_t *p, unsigned number, const char *text, size_t len)
{
	if (!len)
		return p;
	p = put_key_len(p, number, len);
	memcpy(p, text, len);
	return p + len;
}

static uint8_t *put_number(uint8_t *p, unsigned number, int64_t v)
{
	if (!v)
		return p;
	*p++ = (uint8_t)(number << 3 | FIELD_VARINT);
	return put_varint(p, (uint64_t)v);
}

static uint8_t *put_payload(uint8_t *p, unsigned number, const struct ttrpc_out *out)
{
	if (!out->payload_len)
		return p;
	p = put_key_len(p, number, out->payload_len);
	if (!out->packed)
		return p + protobuf_c_message_pack(out->payload, p);
	memcpy(p, out->packed, out->payload_len);
	return p + out->payload_len;
}

static void measure_payload(struct ttrpc_out *out)
{
	if (!out->packed)
		out->payload_len =
			out->payload ? protobuf_c_message_get_packed_size(out->payload) : 0;
}

size_t ttrpc_request_size(struct ttrpc_out *out)
{
	measure_payload(out);
	return bytes_size(strlen(out->service)) + bytes_size(strlen(out->method)) +
	       bytes_size(out->payload_len) + number_size(out->timeout_ns);
}

void ttrpc_request_encode(const struct ttrpc_out *out, uint8_t *data)
{
	data = put_text(data, 1, out->service, strlen(out->service));
	data = put_text(data, 2, out->method, strlen(out->method));
	data = put_payload(data, 3, out);
	(void)put_number(data, 4, out->timeout_ns);
}

size_t ttrpc_response_size(struct ttrpc_out *out)
{
	if (out->code == TTRPC_OK) {
		measure_payload(out);
		return bytes_size(out->payload_len);
	}
	out->payload_len = 0;
	out->text_len = out->text ? utf8_cut(out->text, TTRPC_TEXT_MAX) : 0;
	out->status_len = number_size(out->code) + bytes_size(out->text_len);
	return bytes_size(out->status_len);
}

void ttrpc_response_encode(const struct ttrpc_out *out, uint8_t *data)
{
	if (out->code == TTRPC_OK) {
		(void)put_payload(data, 2, out);
		return;
	}
	data = put_key_len(data, 1, out->status_len);
	data = put_number(data, 1, out->code);
	(void)put_text(data, 2, out->text, out->text_len);
}
