/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/wire/ttrpc.h"

#include <string.h>

#include "core/lib/util/fields.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/be.h"

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

/* Reads a field of a span that is not empty. A field without a number is an error in an
 * envelope. */
static int read_field(struct span *s, struct field *ret)
{
	return field_next(s, ret) > 0 && ret->number ? 0 : -EBADMSG;
}

static int copy_name(char dst[TTRPC_NAME_MAX], const struct field *f)
{
	if (f->wire != WIRE_LEN)
		return -EBADMSG;
	size_t len = span_len(&f->bytes);
	if (len >= TTRPC_NAME_MAX)
		return -ENAMETOOLONG;
	if (memchr(f->bytes.p, '\0', len) || !utf8_valid((const char *)f->bytes.p, len))
		return -EBADMSG;
	memcpy(dst, f->bytes.p, len);
	dst[len] = '\0';
	return 0;
}

static int set_bytes(const uint8_t **data, size_t *len, const struct field *f)
{
	if (f->wire != WIRE_LEN)
		return -EBADMSG;
	*data = f->bytes.p;
	*len = span_len(&f->bytes);
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
		return f->wire == WIRE_VARINT ? 0 : -EBADMSG;
	default:
		return 0; /* metadata (5) is used for tracing only */
	}
}

int ttrpc_request_decode(const uint8_t *data, size_t n, struct ttrpc_request *ret, struct err *err)
{
	struct span r = span_of(data, n);
	ret->service[0] = ret->method[0] = '\0';
	ret->payload = NULL;
	ret->payload_len = 0;
	ret->timeout_ns = 0;
	while (span_len(&r)) {
		struct field f;
		int e = read_field(&r, &f);
		if (!e)
			e = request_field(ret, &f);
		if (e == -ENAMETOOLONG)
			return err_set(
				err, e,
				"a service or method name of %zu bytes, at most %u are accepted",
				span_len(&f.bytes), TTRPC_NAME_MAX - 1);
		if (e)
			return err_set(err, e,
				       "not a ttrpc request: invalid data before byte %zu of %zu",
				       (size_t)(r.p - data), n);
	}
	return 0;
}

static int status_field(struct ttrpc_response *res, const struct field *f)
{
	switch (f->number) {
	case 1:
		res->code = (int32_t)(uint32_t)f->value;
		return f->wire == WIRE_VARINT ? 0 : -EBADMSG;
	case 2:
		return set_bytes(&res->text, &res->text_len, f);
	default:
		return 0;
	}
}

static int decode_status(struct ttrpc_response *res, const struct field *status)
{
	if (status->wire != WIRE_LEN)
		return -EBADMSG;
	struct span r = status->bytes;
	while (span_len(&r)) {
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
	struct span r = span_of(data, n);
	*ret = (struct ttrpc_response){.code = TTRPC_OK};
	while (span_len(&r)) {
		struct field f;
		if (read_field(&r, &f) || response_field(ret, &f))
			return err_set(err, -EBADMSG,
				       "not a ttrpc response: invalid data before byte %zu of %zu",
				       (size_t)(r.p - data), n);
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

/* Returns the encoded size of a field with a key of one byte; empty fields are not written, as in
 * proto3. */
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
	*p++ = (uint8_t)(number << 3 | WIRE_LEN);
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
	*p++ = (uint8_t)(number << 3 | WIRE_VARINT);
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
