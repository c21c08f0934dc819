/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles Synchronize, which can carry megabytes. Its parts are stored as bytes until the last one
 * is there, because containers may precede their pods. Then pods and containers are unpacked one at
 * a time, pods first, each into memory that the next one reuses. Only environment, mounts and
 * devices of new containers stay unpacked until the end, because a policy may read them.
 */
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/nri/sync.h"
#include "core/nri-rpd/nri/decode.h"
#include "core/nri-rpd/pipeline/request/sync.h"

#define FIELD_PODS 1u
#define FIELD_CONTAINERS 2u
#define FIELD_MORE 3u
int sync_look(const uint8_t *data, size_t len, bool *ret_more, uint32_t *ret_objects)
{
	struct span s = span_of(data, len);
	struct field f;
	int r;
	*ret_more = false;
	*ret_objects = 0;
	while ((r = field_next(&s, &f)) > 0) {
		if (f.number == FIELD_MORE && f.wire == WIRE_VARINT)
			*ret_more = f.value != 0;
		else if ((f.number == FIELD_PODS || f.number == FIELD_CONTAINERS) &&
			 f.wire == WIRE_LEN)
			(*ret_objects)++;
	}
	return r;
}

struct feed {
	struct pipeline *pipeline;
	struct arena *scratch, *kept;
	bool all_new; /* the cache was empty before */
};

static int feed_pod(struct feed *s, struct span bytes)
{
	struct pod_desc pod;
	if (decode_pod(s->scratch, bytes, DECODE_ALL, &pod))
		return -EBADMSG;
	sync_pod(s->pipeline, &pod);
	arena_reset(s->scratch);
	return 0;
}

/* Adds a new container. Attributes that the policy may read when it places the container stay in
 * memory until the end. */
static int feed_new(struct feed *s, struct span bytes)
{
	struct ctr_desc ctr, *later = arena_zero(s->kept, struct ctr_desc);
	if (!later || decode_ctr(s->scratch, s->kept, bytes, DECODE_ALL, &ctr))
		return -EBADMSG;
	later->args = ctr.args;
	later->n_args = ctr.n_args;
	later->env = ctr.env;
	later->n_env = ctr.n_env;
	later->mounts = ctr.mounts;
	later->n_mounts = ctr.n_mounts;
	later->devices = ctr.devices;
	later->n_devices = ctr.n_devices;
	later->cdi = ctr.cdi;
	later->n_cdi = ctr.n_cdi;
	sync_ctr(s->pipeline, &ctr, later);
	return 0;
}

static int feed_ctr(struct feed *s, struct span bytes)
{
	struct ctr_desc ctr;
	int r = 0;
	bool known = false;
	if (!s->all_new) {
		r = decode_ctr(s->scratch, s->scratch, bytes, DECODE_NAME, &ctr);
		const struct ctr *c = r ? NULL : cache_ctr(pipeline_cache(s->pipeline), ctr.id);
		known = c && ctr_live(c->cur.state);
	}
	if (known)
		r = decode_ctr(s->scratch, s->scratch, bytes, DECODE_FACTS, &ctr);
	if (known && !r)
		sync_ctr(s->pipeline, &ctr, NULL);
	else if (!r)
		r = feed_new(s, bytes);
	arena_reset(s->scratch);
	return r ? -EBADMSG : 0;
}

static int feed_all(struct feed *s, uint32_t number, const uint8_t *data, size_t len)
{
	struct span all = span_of(data, len);
	struct field f;
	int r = 0, more;
	while (!r && (more = field_next(&all, &f)) != 0) {
		if (more < 0)
			return more;
		if (f.number == number && f.wire == WIRE_LEN)
			r = number == FIELD_PODS ? feed_pod(s, f.bytes) : feed_ctr(s, f.bytes);
	}
	return r;
}

int sync_feed(struct pipeline *p, struct arena *scratch, struct arena *kept, const uint8_t *data,
	      size_t len)
{
	struct feed s = {p, scratch, kept, cache_n_ctrs(pipeline_cache(p)) == 0};
	sync_begin(p);
	int r = feed_all(&s, FIELD_PODS, data, len);
	return r ? r : feed_all(&s, FIELD_CONTAINERS, data, len);
}
