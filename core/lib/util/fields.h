/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a packed message field by field in place. Data is not copied, and an unused field costs no
 * more than skipping it. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VARINT 0u
#define WIRE_I64 1u
#define WIRE_LEN 2u
#define WIRE_I32 5u
#define VARINT_MAX 10u /* largest size of an encoded varint, in bytes */

/* Inlines the readers into each loop over fields: a list of a thousand containers has a quarter of
 * a million fields. */
#define FIELDS_INLINE static inline __attribute__((always_inline))

/* Bytes of a message, or the unread rest of them. */
struct span {
	const uint8_t *p, *end;
};

struct field {
	uint32_t number, wire;
	uint64_t value; /* value of a field of type WIRE_VARINT */
	struct span bytes; /* bytes of a field of type WIRE_LEN */
};

static inline struct span span_of(const uint8_t *data, size_t len)
{
	return (struct span){data, len ? data + len : data};
}

static inline size_t span_len(const struct span *s)
{
	return (size_t)(s->end - s->p);
}

static inline int span_long_varint(struct span *s, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < VARINT_MAX && s->p < s->end; i++) {
		uint8_t byte = *s->p++;
		if (i == VARINT_MAX - 1 && byte > 1) /* more than 64 bits */
			return -EBADMSG;
		v |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			*ret = v;
			return 0;
		}
	}
	return -EBADMSG;
}

FIELDS_INLINE int span_varint(struct span *s, uint64_t *ret)
{
	if (s->p < s->end && *s->p < 0x80) { /* the usual case */
		*ret = *s->p++;
		return 0;
	}
	return span_long_varint(s, ret);
}

FIELDS_INLINE int span_skip(struct span *s, uint64_t n)
{
	if (n > span_len(s))
		return -EBADMSG;
	s->p += n;
	return 0;
}

/* Reads the next field of a message: 1, or 0 at its end, or -EBADMSG. */
FIELDS_INLINE int field_next(struct span *s, struct field *ret)
{
	uint64_t tag, len;
	if (s->p == s->end)
		return 0;
	if (span_varint(s, &tag) || tag > UINT32_MAX)
		return -EBADMSG;
	ret->number = (uint32_t)tag >> 3;
	ret->wire = (uint32_t)tag & 7;
	ret->value = 0;
	switch (ret->wire) {
	case WIRE_VARINT:
		return span_varint(s, &ret->value) ? -EBADMSG : 1;
	case WIRE_I64:
		return span_skip(s, 8) ? -EBADMSG : 1;
	case WIRE_I32:
		return span_skip(s, 4) ? -EBADMSG : 1;
	case WIRE_LEN:
		if (span_varint(s, &len))
			return -EBADMSG;
		ret->bytes.p = s->p;
		if (span_skip(s, len))
			return -EBADMSG;
		ret->bytes.end = s->p;
		return 1;
	default:
		return -EBADMSG;
	}
}
