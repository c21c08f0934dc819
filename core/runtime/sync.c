/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronize can carry megabytes. Its parts are kept as bytes until the last one is there, as containers may come before their pods;
 * then pods and containers are unpacked one at a time, pods first, each into memory that the next one uses again. Only what is not known
 * yet stays unpacked until the end: a policy may ask for its mounts and devices.
 */
#include "core/runtime/sync.h"

#include "core/util/pb.h"

#define FIELD_PODS 1u
#define FIELD_CONTAINERS 2u
#define FIELD_MORE 3u
#define FIELD_ID 1u /* of a container */
#define WIRE_VARINT 0u
#define WIRE_I64 1u
#define WIRE_LEN 2u
#define WIRE_I32 5u
#define VARINT_MAX 10u

struct field {
	uint32_t number, wire;
	uint64_t value; /* of a varint */
	const uint8_t *data; /* of LEN */
	size_t len;
};

static int take_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < VARINT_MAX && *p < end; i++) {
		uint8_t byte = *(*p)++;
		v |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			*ret = v;
			return 0;
		}
	}
	return -EBADMSG;
}

static int skip(const uint8_t **p, const uint8_t *end, uint64_t n)
{
	if (n > (uint64_t)(end - *p))
		return -EBADMSG;
	*p += n;
	return 0;
}

/* The next field of a message: 1, or 0 at its end, or -EBADMSG. */
static int next_field(const uint8_t **p, const uint8_t *end, struct field *ret)
{
	uint64_t tag, len;
	if (*p == end)
		return 0;
	if (take_varint(p, end, &tag) || tag > UINT32_MAX)
		return -EBADMSG;
	*ret = (struct field){.number = (uint32_t)tag >> 3, .wire = (uint32_t)tag & 7};
	switch (ret->wire) {
	case WIRE_VARINT:
		return take_varint(p, end, &ret->value) ? -EBADMSG : 1;
	case WIRE_I64:
		return skip(p, end, 8) ? -EBADMSG : 1;
	case WIRE_I32:
		return skip(p, end, 4) ? -EBADMSG : 1;
	case WIRE_LEN:
		if (take_varint(p, end, &len))
			return -EBADMSG;
		ret->data = *p;
		ret->len = (size_t)len;
		return skip(p, end, len) ? -EBADMSG : 1;
	default:
		return -EBADMSG;
	}
}

int sync_look(const uint8_t *data, size_t len, bool *ret_more, uint32_t *ret_objects)
{
	const uint8_t *p = data, *end = data + len;
	struct field f;
	int r;
	*ret_more = false;
	*ret_objects = 0;
	while ((r = next_field(&p, end, &f)) > 0) {
		if (f.number == FIELD_MORE && f.wire == WIRE_VARINT)
			*ret_more = f.value != 0;
		else if ((f.number == FIELD_PODS || f.number == FIELD_CONTAINERS) &&
			 f.wire == WIRE_LEN)
			(*ret_objects)++;
	}
	return r;
}

/* The id of a packed container, "" when there is none that fits. */
static void id_of(const struct field *ctr, char *buf, size_t size)
{
	const uint8_t *p = ctr->data, *end = p + ctr->len;
	struct field f;
	buf[0] = '\0';
	while (next_field(&p, end, &f) > 0) {
		if (f.number != FIELD_ID || f.wire != WIRE_LEN || f.len >= size)
			continue;
		memcpy(buf, f.data, f.len);
		buf[f.len] = '\0';
	}
}

struct feed {
	struct pipeline *pipeline;
	struct arena *scratch, *kept;
};

static int feed_pod(struct feed *s, const struct field *f)
{
	struct pod_desc pod;
	ProtobufCAllocator alloc = pb_arena(s->scratch);
	const Nri__PodSandbox *m = nri__pod_sandbox__unpack(&alloc, f->len, f->data);
	if (!m || decode_pod(s->scratch, m, &pod))
		return -EBADMSG;
	sync_pod(s->pipeline, &pod);
	arena_reset(s->scratch);
	return 0;
}

static int feed_ctr(struct feed *s, const struct field *f)
{
	char id[CACHE_ID_MAX + 1];
	id_of(f, id, sizeof id);
	bool known = cache_ctr(pipeline_cache(s->pipeline), id) != NULL;
	struct arena *a = known ? s->scratch : s->kept;
	ProtobufCAllocator alloc = pb_arena(a);
	const Nri__Container *m = nri__container__unpack(&alloc, f->len, f->data);
	struct ctr_desc *ctr = m ? arena_zero(a, struct ctr_desc) : NULL;
	if (!ctr || decode_ctr(a, m, ctr))
		return -EBADMSG;
	sync_ctr(s->pipeline, ctr, !known);
	if (known)
		arena_reset(s->scratch);
	return 0;
}

static int feed_all(struct feed *s, uint32_t number, const uint8_t *data, size_t len)
{
	const uint8_t *p = data, *end = data + len;
	struct field f;
	int r = 0, more;
	while (!r && (more = next_field(&p, end, &f)) != 0) {
		if (more < 0)
			return more;
		if (f.number == number && f.wire == WIRE_LEN)
			r = number == FIELD_PODS ? feed_pod(s, &f) : feed_ctr(s, &f);
	}
	return r;
}

int sync_feed(struct pipeline *p, struct arena *scratch, struct arena *kept, const uint8_t *data,
	      size_t len)
{
	struct feed s = {p, scratch, kept};
	sync_begin(p);
	int r = feed_all(&s, FIELD_PODS, data, len);
	return r ? r : feed_all(&s, FIELD_CONTAINERS, data, len);
}
