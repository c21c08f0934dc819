/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serializes all balloons and the reserved CPUs, for the next start of the daemon and for the
 * next configuration. An image is read on the same node only, so integers have the byte order of
 * the node:
 *
 *	u32 version
 *	u32 size of the output of reserve_save(), and that output
 *	balloons: u16 length of the type's name, its bytes, u32 instance, i64 request,
 *	u32 memory types, u16 parts, runs of CPUs, runs of memory nodes, none if the type does
 *	not pin memory (each u16 number of runs, then u16 first and u16 last of each); then its
 *	parts in the same form
 */
#include <stdlib.h>
#include <string.h>

#include "modules/balloons/sync.h"

#define IMAGE_VERSION 3u
#define IMAGE_DEPTH_MAX 32u

/* ---- serialization --------------------------------------------------------------------------- */

static void put_runs(struct bytes *im, struct rp_ids cpus)
{
	uint32_t at = im->size;
	uint16_t n = 0;
	bytes_put_u16(im, n);
	for (uint32_t id = rp_ids_first(cpus); id != RP_IDSET_NONE; n++) {
		uint32_t end = id;
		while (rp_ids_has(cpus, end + 1))
			end++;
		bytes_put_u16(im, (uint16_t)id);
		bytes_put_u16(im, (uint16_t)end);
		id = rp_ids_next(cpus, end);
	}
	if (!im->failed)
		memcpy(im->data + at, &n, sizeof n);
}

static void put_balloon(const struct state *s, struct bytes *im, const struct balloon *b)
{
	struct rp_idset nodes;
	size_t n = strlen(b->type->name);
	rp_idset_clear(&nodes);
	if (s->memory && b->type->pin_memory)
		memalloc_ids(s->memory, b->nodes, &nodes);
	if (n > UINT16_MAX || b->n_parts > UINT16_MAX)
		return;
	bytes_put_u16(im, (uint16_t)n);
	(void)bytes_put(im, b->type->name, n);
	bytes_put_u32(im, b->instance);
	(void)bytes_put(im, &b->request, sizeof b->request);
	bytes_put_u32(im, b->type->memory_types);
	bytes_put_u16(im, (uint16_t)b->n_parts);
	put_runs(im, rp_ids_of(&b->cpus));
	put_runs(im, rp_ids_of(&nodes));
	for (uint32_t i = 0; i < b->n_parts; i++)
		put_balloon(s, im, b->parts[i]);
}

static void put_head(struct bytes *im, const struct rp_plan *p)
{
	struct reserve_past past;
	uint8_t reserved[RESERVE_SAVED_MAX];
	plan_past(p, &past);
	uint32_t n = reserve_save(&past, reserved);
	bytes_reset(im);
	bytes_put_u32(im, IMAGE_VERSION);
	bytes_put_u32(im, n);
	(void)bytes_put(im, reserved, n);
}

int32_t image_write(const struct state *s, struct bytes *im)
{
	put_head(im, s->plan);
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t size = im->size;
		put_balloon(s, im, s->list[i]);
		/* A balloon that exceeds the limit is left out. Its containers are placed again
		 * after a restart. */
		if (im->size > RP_STATE_MAX)
			im->size = size;
	}
	return im->failed ? -RP_ENOMEM : 0;
}

/* ---- restoration ----------------------------------------------------------------------------- */

struct head {
	const char *name;
	uint16_t name_len, n_parts;
	uint32_t instance, memory_types;
	int64_t request;
	struct rp_idset cpus, nodes;
};

static bool take_runs(struct bytes_left *r, uint32_t limit, struct rp_idset *ret)
{
	uint16_t n = bytes_take_u16(r);
	rp_idset_clear(ret);
	for (uint32_t i = 0; !r->failed && i < n; i++) {
		uint16_t first = bytes_take_u16(r), last = bytes_take_u16(r);
		if (first > last || last >= limit)
			return false;
		rp_idset_add_range(ret, first, last);
	}
	return !r->failed;
}

static bool take_head(struct bytes_left *r, struct head *ret)
{
	ret->name_len = bytes_take_u16(r);
	ret->name = bytes_skip(r, ret->name_len);
	ret->instance = bytes_take_u32(r);
	(void)bytes_take(r, &ret->request, sizeof ret->request);
	ret->memory_types = bytes_take_u32(r);
	ret->n_parts = bytes_take_u16(r);
	return take_runs(r, RP_CPUS_MAX, &ret->cpus) && take_runs(r, RP_NODES_MAX, &ret->nodes);
}

static bool skip_balloon(struct bytes_left *r, uint32_t depth)
{
	struct head head;
	if (depth > IMAGE_DEPTH_MAX || !take_head(r, &head))
		return false;
	for (uint32_t i = 0; i < head.n_parts; i++)
		if (!skip_balloon(r, depth + 1))
			return false;
	return true;
}

static bool open_image(struct bytes_left *r, const void *data, uint32_t size,
		       struct reserve_past *ret_past)
{
	*ret_past = (struct reserve_past){0};
	if (!size)
		return false;
	*r = bytes_of(data, size);
	if (bytes_take_u32(r) != IMAGE_VERSION)
		return false;
	uint32_t n = bytes_take_u32(r);
	const void *reserved = bytes_skip(r, n);
	return reserved && reserve_load(reserved, n, ret_past);
}

int32_t image_renew(const struct rp_plan *p, const struct bytes *before, struct bytes *im)
{
	struct bytes_left r;
	struct reserve_past past;
	bytes_reset(im);
	if (!open_image(&r, before->data, before->size, &past))
		return 0;
	put_head(im, p);
	(void)bytes_put(im, r.at, bytes_n_left(&r));
	return im->failed ? -RP_ENOMEM : 0;
}

void image_past(const struct bytes *im, struct reserve_past *ret)
{
	struct bytes_left r;
	(void)open_image(&r, im->data, im->size, ret);
}

bool image_valid(const void *data, uint32_t size)
{
	struct bytes_left r;
	struct reserve_past past;
	if (!open_image(&r, data, size, &past))
		return false;
	while (r.at < r.end)
		if (!skip_balloon(&r, 0))
			return false;
	return true;
}

static const struct type *type_of(const struct rp_plan *p, const struct head *head)
{
	for (uint32_t i = 0; i < p->n_types; i++)
		if (strlen(p->types[i].name) == head->name_len &&
		    memcmp(p->types[i].name, head->name, head->name_len) == 0)
			return &p->types[i];
	return NULL;
}

/* Returns true if a balloon of type t may have a part of this type at index `place`. */
static bool part_fits(const struct type *t, const struct type *part, uint32_t place)
{
	if (!t->balance_parts)
		return t->parts.list[place] == part->index;
	for (uint32_t i = 0; i < t->parts.n; i++)
		if (t->parts.list[i] == part->index)
			return true;
	return false;
}

/* Reads a balloon whose CPUs are in `free`, and removes these from `free`. The reader is behind
 * the balloon unless an error is returned. Sets *ret to NULL if the plan no longer allows the
 * balloon. */
static int32_t read_balloon(const struct state *s, struct bytes_left *r, struct rp_idset *free,
			    struct balloon **ret)
{
	struct head head;
	struct rp_idset all;
	*ret = NULL;
	rp_idset_clear(&all);
	if (!take_head(r, &head))
		return -RP_EINVAL;
	const struct type *t = type_of(s->plan, &head);
	uint32_t n_parts = t && t->balance_parts ? t->parts.n > 0 : t ? t->parts.n : 0;
	bool fits = t && head.n_parts == n_parts &&
		    rp_ids_subset(rp_ids_of(&head.cpus), rp_ids_of(free)) &&
		    (t->core == 1 ||
		     isolation_permits(s->h, &s->plan->isolation, rp_ids_of(&head.cpus)));
	struct balloon *b = fits ? balloon_alloc(t, head.instance) : NULL;
	int32_t result = fits && !b ? -RP_ENOMEM : 0;
	if (b) {
		rp_idset_copy(&b->cpus, rp_ids_of(&head.cpus));
		balloon_count_cpus(b);
		b->request_before = head.request;
		b->types_before = head.memory_types;
		if (s->memory)
			b->nodes_before = memalloc_mask_of(s->memory, rp_ids_of(&head.nodes));
	}
	for (uint32_t i = 0; !result && i < head.n_parts; i++) {
		struct balloon *part;
		result = read_balloon(s, r, free, &part);
		fits = fits && part && part_fits(t, part->type, i);
		if (fits && !result && !balloon_add_part(b, part)) {
			rp_idset_or(&all, rp_ids_of(&all), rp_ids_of(&part->cpus));
			continue;
		}
		balloon_free(part);
	}
	/* A composite balloon has exactly the CPUs of its parts. */
	fits = fits && b && (!n_parts || rp_ids_equal(rp_ids_of(&all), rp_ids_of(&b->cpus)));
	if (fits && !result && !n_parts)
		rp_idset_andnot(free, rp_ids_of(free), rp_ids_of(&b->cpus));
	if (result || !fits || b->n_parts != n_parts)
		b = balloon_free(b);
	*ret = b;
	return result;
}

int32_t image_restore(struct state *s, const struct bytes *im)
{
	struct bytes_left r;
	struct reserve_past past;
	if (!image_valid(im->data, im->size) || !open_image(&r, im->data, im->size, &past))
		return 0;
	while (r.at < r.end) {
		struct balloon *b;
		struct rp_idset free;
		rp_idset_copy(&free, rp_ids_of(&s->free));
		int32_t result = read_balloon(s, &r, &free, &b);
		if (!result && b)
			result = state_bring_back(s, b);
		if (result)
			return result;
	}
	return 0;
}
