/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/pack.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/lib/util/fields.h"

static_assert(sizeof(protobuf_c_boolean) == sizeof(uint32_t) &&
		      offsetof(ProtobufCBinaryData, len) == 0,
	      "protobuf-c has another version");

/* Output; [room, p) is free. */
struct out {
	uint8_t *room, *p;
};

static int put_bytes(struct out *o, const void *data, size_t n)
{
	if ((size_t)(o->p - o->room) < n)
		return -ENOBUFS;
	o->p -= n;
	if (n)
		memcpy(o->p, data, n);
	return 0;
}

static int put_long_varint(struct out *o, uint64_t v)
{
	size_t n = (size_t)(63 - __builtin_clzll(v | 1)) / 7 + 1;
	if ((size_t)(o->p - o->room) < n)
		return -ENOBUFS;
	uint8_t *p = o->p -= n;
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p = (uint8_t)v;
	return 0;
}

static inline int put_varint(struct out *o, uint64_t v)
{
	if (v >= 0x80 || o->p == o->room)
		return put_long_varint(o, v);
	*--o->p = (uint8_t)v; /* the usual case */
	return 0;
}

static inline int put_tag(struct out *o, const ProtobufCFieldDescriptor *f, uint32_t wire)
{
	return put_varint(o, (uint64_t)f->id << 3 | wire);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static inline uint64_t pack_zigzag(int64_t v)
{
	uint64_t twice = (uint64_t)v << 1;
	return v < 0 ? ~twice : twice;
}

/* Converts a number to its encoded value; false: the type is not a varint. */
static inline bool pack_number(ProtobufCType type, const void *at, uint64_t *ret)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_ENUM:
		*ret = (uint64_t)(int64_t) * (const int32_t *)at;
		return true;
	case PROTOBUF_C_TYPE_SINT32:
		*ret = pack_zigzag(*(const int32_t *)at);
		return true;
	case PROTOBUF_C_TYPE_UINT32:
		*ret = *(const uint32_t *)at;
		return true;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
		*ret = *(const uint64_t *)at;
		return true;
	case PROTOBUF_C_TYPE_SINT64:
		*ret = pack_zigzag(*(const int64_t *)at);
		return true;
	case PROTOBUF_C_TYPE_BOOL:
		*ret = *(const protobuf_c_boolean *)at ? 1 : 0;
		return true;
	default:
		return false;
	}
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int put_message(struct out *o, const ProtobufCMessage *m);

/* Writes the contents behind a length: text, bytes, a message. */
static int put_content(struct out *o, ProtobufCType type, const void *at)
{
	const char *text;
	const ProtobufCMessage *m;
	const ProtobufCBinaryData *bytes;
	switch (type) {
	case PROTOBUF_C_TYPE_STRING:
		text = *(const char *const *)at;
		return text ? put_bytes(o, text, strlen(text)) : 0;
	case PROTOBUF_C_TYPE_BYTES:
		bytes = at;
		return put_bytes(o, bytes->data, bytes->len);
	case PROTOBUF_C_TYPE_MESSAGE:
		m = *(const ProtobufCMessage *const *)at;
		return m ? put_message(o, m) : 0;
	default:
		return -ENOTSUP;
	}
}

static int put_one(struct out *o, const ProtobufCFieldDescriptor *f, const void *at)
{
	const uint8_t *end = o->p;
	uint64_t n;
	int r;
	if (pack_number(f->type, at, &n)) {
		r = put_varint(o, n);
		return r ? r : put_tag(o, f, WIRE_VARINT);
	}
	r = put_content(o, f->type, at);
	if (!r)
		r = put_varint(o, (uint64_t)(end - o->p));
	return r ? r : put_tag(o, f, WIRE_LEN);
}

/* Size of a member by its type; 0: a type that the project's messages do not use. */
static const uint8_t sizes[] = {
	[PROTOBUF_C_TYPE_INT32] = sizeof(int32_t),
	[PROTOBUF_C_TYPE_SINT32] = sizeof(int32_t),
	[PROTOBUF_C_TYPE_UINT32] = sizeof(uint32_t),
	[PROTOBUF_C_TYPE_ENUM] = sizeof(int32_t),
	[PROTOBUF_C_TYPE_INT64] = sizeof(int64_t),
	[PROTOBUF_C_TYPE_SINT64] = sizeof(int64_t),
	[PROTOBUF_C_TYPE_UINT64] = sizeof(uint64_t),
	[PROTOBUF_C_TYPE_BOOL] = sizeof(protobuf_c_boolean),
	[PROTOBUF_C_TYPE_STRING] = sizeof(char *),
	[PROTOBUF_C_TYPE_BYTES] = sizeof(ProtobufCBinaryData),
	[PROTOBUF_C_TYPE_MESSAGE] = sizeof(ProtobufCMessage *),
};

static int put_packed(struct out *o, const ProtobufCFieldDescriptor *f, const uint8_t *list,
		      size_t n, size_t size)
{
	const uint8_t *end = o->p;
	uint64_t v;
	int r = 0;
	while (!r && n-- > 0)
		r = pack_number(f->type, list + n * size, &v) ? put_varint(o, v) : -ENOTSUP;
	if (!r)
		r = put_varint(o, (uint64_t)(end - o->p));
	return r ? r : put_tag(o, f, WIRE_LEN);
}

static int put_list(struct out *o, const ProtobufCFieldDescriptor *f, const void *member, size_t n)
{
	const uint8_t *list = *(const uint8_t *const *)member;
	size_t size = sizes[f->type];
	int r = 0;
	if (!n)
		return 0;
	if (f->flags & PROTOBUF_C_FIELD_FLAG_PACKED)
		return put_packed(o, f, list, n, size);
	while (!r && n-- > 0)
		r = put_one(o, f, list + n * size);
	return r;
}

/* Returns true for a value that proto3 leaves out, 0 or empty: a text that is NULL or empty, and
 * bytes of length 0 (the length is their first member). */
static inline bool is_empty(ProtobufCType type, const void *at)
{
	const char *text;
	switch (sizes[type]) {
	case sizeof(uint32_t): /* a bool has this size, too */
		return *(const uint32_t *)at == 0;
	case sizeof(uint64_t):
		if (type != PROTOBUF_C_TYPE_STRING)
			return *(const uint64_t *)at == 0;
		text = *(const char *const *)at;
		return !text || !*text;
	default:
		return ((const ProtobufCBinaryData *)at)->len == 0;
	}
}

/* Returns true for an optional number, bool or bytes, outside of a oneof, that is not set. */
static inline bool is_unset(const ProtobufCFieldDescriptor *f, const uint8_t *base)
{
	return f->label == PROTOBUF_C_LABEL_OPTIONAL && f->quantifier_offset &&
	       !(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
	       !*(const protobuf_c_boolean *)(base + f->quantifier_offset);
}

static inline bool is_absent(const ProtobufCFieldDescriptor *f, const uint8_t *base)
{
	const void *p;
	if (f->label == PROTOBUF_C_LABEL_NONE)
		return is_empty(f->type, base + f->offset);
	if (f->label == PROTOBUF_C_LABEL_REQUIRED)
		return false;
	if (f->quantifier_offset)
		return false; /* is_unset() */
	p = *(const void *const *)(base + f->offset);
	return !p || p == f->default_value;
}

static int put_message(struct out *o, const ProtobufCMessage *m)
{
	const ProtobufCMessageDescriptor *d = m->descriptor;
	const uint8_t *base = (const uint8_t *)m;
	int r = m->n_unknown_fields ? -ENOTSUP : 0;
	for (unsigned i = d->n_fields; !r && i-- > 0;) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];
		if (is_unset(f, base)) /* most fields of a record */
			continue;
		if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) || !sizes[f->type])
			r = -ENOTSUP;
		else if (f->label == PROTOBUF_C_LABEL_REPEATED)
			r = put_list(o, f, base + f->offset,
				     *(const size_t *)(base + f->quantifier_offset));
		else if (!is_absent(f, base))
			r = put_one(o, f, base + f->offset);
	}
	return r;
}

int pack_backwards(const ProtobufCMessage *m, uint8_t *room, size_t size, size_t *ret_len)
{
	struct out o = {room, room + size};
	int r = put_message(&o, m);
	*ret_len = r ? 0 : (size_t)(room + size - o.p);
	return r;
}
