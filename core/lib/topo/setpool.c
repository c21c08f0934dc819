/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/topo/setpool.h"

#include <errno.h>

#define FIRST_SLOTS 256u

struct set_pool_slot {
	const uint64_t *span; /* words of an interned set; NULL: the slot is free */
	uint32_t n_words;
	uint32_t zeros; /* number of zero words in front of the span */
	uint64_t hash;
};

static uint64_t hash_words(const uint64_t *w, uint32_t n)
{
	uint64_t h = n;
	for (uint32_t i = 0; i < n; i++) {
		h = (h ^ w[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h;
}

/* Finds the slot that has the span with enough zeros, or the free slot for it. */
static struct set_pool_slot *find_slot(const struct set_pool *p, const uint64_t *span,
				       uint32_t n_words, uint32_t zeros, uint64_t hash)
{
	uint32_t mask = p->n_slots - 1;
	uint32_t i = (uint32_t)hash & mask;
	for (; p->slots[i].span; i = (i + 1) & mask) {
		const struct set_pool_slot *s = &p->slots[i];
		if (s->hash == hash && s->n_words == n_words && s->zeros >= zeros &&
		    memcmp(s->span, span, n_words * sizeof *span) == 0)
			break;
	}
	return &p->slots[i];
}

static int setpool_grow(struct set_pool *p)
{
	struct set_pool bigger = *p;
	bigger.n_slots = p->n_slots * 2;
	bigger.slots = arena_array(p->scratch, bigger.n_slots, sizeof *bigger.slots);
	if (!bigger.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_slots; i++) {
		const struct set_pool_slot *s = &p->slots[i];
		/* Search with more zeros than any position has: two slots may have equal spans, and
		 * each needs a separate slot. */
		if (s->span)
			*find_slot(&bigger, s->span, s->n_words, UINT32_MAX, s->hash) = *s;
	}
	*p = bigger;
	return 0;
}

int set_pool_init(struct set_pool *p, struct arena *out, struct arena *scratch, uint32_t zeros)
{
	*p = (struct set_pool){
		.out = out, .scratch = scratch, .zeros = zeros, .n_slots = FIRST_SLOTS};
	p->slots = arena_array(scratch, p->n_slots, sizeof *p->slots);
	return p->slots ? 0 : -ENOMEM;
}

int set_pool_add(struct set_pool *p, struct rp_ids v, struct rp_ids *ret)
{
	uint32_t end = v.nw, first = 0;
	while (end && !v.w[end - 1])
		end--;
	if (!end) {
		*ret = rp_ids_none();
		return 0;
	}
	while (!v.w[first])
		first++;
	const uint64_t *span = v.w + first;
	uint32_t n_words = end - first;
	uint64_t hash = hash_words(span, n_words);
	struct set_pool_slot *slot = find_slot(p, span, n_words, first, hash);
	if (!slot->span) {
		uint32_t zeros = first > p->zeros ? first : p->zeros;
		uint64_t *words = arena_array(p->out, zeros + n_words, sizeof *words);
		if (!words)
			return -ENOMEM;
		memcpy(words + zeros, span, n_words * sizeof *words);
		*slot = (struct set_pool_slot){words + zeros, n_words, zeros, hash};
		if (++p->n_used > p->n_slots / 2 && setpool_grow(p))
			return -ENOMEM;
		*ret = (struct rp_ids){words + zeros - first, end, 0};
		return 0;
	}
	*ret = (struct rp_ids){slot->span - first, end, 0};
	return 0;
}
