/* SPDX-License-Identifier: Apache-2.0 */
/* Format: a version, then for each pool a head and the words of its set. */
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/pools.h"

#define SAVED_VERSION UINT64_C(1)

struct head {
	char name[POOLS_NAME_MAX + 1];
	int64_t weight;
	uint32_t n_words, pad;
};

static int32_t pools_saved_append(const struct modhost *h, struct pools_saved *s, const void *data,
				  size_t size)
{
	if (s->size + size > s->cap) {
		size_t cap = 2 * (s->size + size);
		uint8_t *more = realloc(s->bytes, cap);
		if (!more)
			return modhost_no_memory(h);
		s->bytes = more;
		s->cap = (uint32_t)cap;
	}
	if (size)
		memcpy(s->bytes + s->size, data, size);
	s->size += (uint32_t)size;
	return 0;
}

int32_t pools_save(const struct modhost *h, struct pools_saved *s, const struct pools_pool *list,
		   uint32_t n)
{
	const uint64_t version = SAVED_VERSION;
	s->size = 0;
	int32_t r = pools_saved_append(h, s, &version, sizeof version);
	for (uint32_t i = 0; !r && i < n; i++) {
		const struct rp_idset *cpus = &list[i].cpus;
		struct head head = {.weight = list[i].weight, .n_words = cpus->nw};
		memcpy(head.name, list[i].name, sizeof head.name);
		r = pools_saved_append(h, s, &head, sizeof head);
		if (!r)
			r = pools_saved_append(h, s, cpus->w, cpus->nw * sizeof *cpus->w);
	}
	return r;
}

/* Reads the pool at *at and advances *at. False: there is no further complete one. */
static bool pools_saved_next(const struct pools_saved *s, uint32_t *at, struct pools_pool *ret)
{
	struct head head;
	uint32_t from = *at;
	if (s->size < from || s->size - from < sizeof head)
		return false;
	memcpy(&head, s->bytes + from, sizeof head);
	from += sizeof head;
	size_t size = head.n_words * sizeof *ret->cpus.w;
	if (head.n_words > RP_IDSET_WORDS || s->size - from < size || head.name[POOLS_NAME_MAX] ||
	    head.weight < 0)
		return false;
	memcpy(ret->name, head.name, sizeof ret->name);
	ret->weight = head.weight;
	ret->cpus.nw = head.n_words;
	memcpy(ret->cpus.w, s->bytes + from, size);
	rp_idset_trim(&ret->cpus);
	*at = from + (uint32_t)size;
	return true;
}

bool pools_saved_find(const struct pools_saved *s, const char *name, struct pools_pool *ret)
{
	uint32_t at = sizeof SAVED_VERSION;
	while (pools_saved_next(s, &at, ret))
		if (strcmp(ret->name, name) == 0)
			return true;
	rp_idset_clear(&ret->cpus);
	return false;
}

void pools_carry(const struct pools_saved *s, struct pools_pool *list, uint32_t n,
		 struct rp_ids from)
{
	struct rp_idset left;
	struct pools_pool had;
	rp_idset_copy(&left, from);
	for (uint32_t i = 0; i < n; i++) {
		if (!pools_saved_find(s, list[i].name, &had))
			continue;
		list[i].weight = had.weight;
		rp_idset_and(&list[i].cpus, rp_ids_of(&had.cpus), rp_ids_of(&left));
		rp_idset_andnot(&left, rp_ids_of(&left), rp_ids_of(&list[i].cpus));
	}
}

int32_t pools_load(const struct modhost *h, struct pools_saved *s, const void *data, uint32_t size)
{
	struct pools_pool pool;
	uint64_t version = 0;
	uint32_t at = sizeof version;
	s->size = 0;
	int32_t r = pools_saved_append(h, s, data, size);
	if (r)
		return r;
	if (size >= sizeof version)
		memcpy(&version, data, sizeof version);
	while (pools_saved_next(s, &at, &pool))
		;
	if (version == SAVED_VERSION && at == size)
		return 0;
	s->size = 0;
	return modhost_fail(h, -RP_EINVAL, "not a state of pools saved by this version");
}
