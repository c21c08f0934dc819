/* SPDX-License-Identifier: Apache-2.0 */
/* A version, and for each pool a head and the words of its set. */
#include <stdlib.h>
#include <string.h>

#include "modules/lib/pools.h"

#define SAVED_VERSION UINT64_C(1)

struct head {
	char name[POOLS_NAME_MAX + 1];
	int64_t value;
	uint32_t n_words, pad;
};

static int32_t append(const struct modhost *h, struct pools_saved *s, const void *data, size_t size)
{
	if (s->size + size > s->cap) {
		size_t cap = 2 * (s->size + size);
		uint8_t *more = realloc(s->bytes, cap);
		if (!more)
			return modhost_fail(h, -RP_ENOMEM, "out of memory");
		s->bytes = more;
		s->cap = (uint32_t)cap;
	}
	if (size)
		memcpy(s->bytes + s->size, data, size);
	s->size += (uint32_t)size;
	return 0;
}

void pools_save_begin(struct pools_saved *s)
{
	s->size = 0;
}

int32_t pools_save(const struct modhost *h, struct pools_saved *s, const char *name, int64_t value,
		   struct rp_ids cpus)
{
	const uint64_t version = SAVED_VERSION;
	struct head head = {.value = value, .n_words = cpus.nw};
	memcpy(head.name, name, strnlen(name, POOLS_NAME_MAX));
	int32_t r = s->size ? 0 : append(h, s, &version, sizeof version);
	if (!r)
		r = append(h, s, &head, sizeof head);
	return r ? r : append(h, s, cpus.w, cpus.nw * sizeof *cpus.w);
}

bool pools_saved_next(const struct pools_saved *s, uint32_t *at, struct pools_named *ret)
{
	struct head head;
	uint32_t from = *at ? *at : sizeof SAVED_VERSION;
	if (s->size < from || s->size - from < sizeof head)
		return false;
	memcpy(&head, s->bytes + from, sizeof head);
	from += sizeof head;
	size_t size = head.n_words * sizeof *ret->cpus.w;
	if (head.n_words > RP_IDSET_WORDS || s->size - from < size || head.name[POOLS_NAME_MAX] ||
	    head.value < 0)
		return false;
	memcpy(ret->name, head.name, sizeof ret->name);
	ret->value = head.value;
	ret->cpus.nw = head.n_words;
	memcpy(ret->cpus.w, s->bytes + from, size);
	rp_idset_trim(&ret->cpus);
	*at = from + (uint32_t)size;
	return true;
}

int32_t pools_load(const struct modhost *h, struct pools_saved *s, const void *data, uint32_t size)
{
	struct pools_named pool;
	uint64_t version = 0;
	uint32_t at = 0;
	s->size = 0;
	int32_t r = append(h, s, data, size);
	if (r)
		return r;
	if (size >= sizeof version)
		memcpy(&version, data, sizeof version);
	while (pools_saved_next(s, &at, &pool))
		;
	if (version == SAVED_VERSION && (at == size || size == sizeof version))
		return 0;
	s->size = 0;
	return modhost_fail(h, -RP_EINVAL, "this is no state of pools that this version has saved");
}
