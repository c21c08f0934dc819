/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a configuration, freed all at once. Texts of a configuration are borrowed from the
 * host. */
#ifndef NRI_RP_LIB_BLOCKS_H
#define NRI_RP_LIB_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <nri-rp/lib/host.h>

struct block {
	struct block *next;
	_Alignas(16) char data[];
};

struct blocks {
	struct block *first;
};

struct texts {
	const char **list;
	uint32_t n;
};

/* Allocates zeroed memory for n items of `size` bytes. NULL: out of memory. Each allocation is a
 * block of its own, as configurations have few. */
static inline void *blocks_alloc(struct blocks *p, size_t n, size_t size)
{
	if (size && n > (SIZE_MAX / 2 - sizeof(struct block)) / size)
		return NULL;
	struct block *b = calloc(1, sizeof *b + n * size);
	if (!b)
		return NULL;
	b->next = p->first;
	p->first = b;
	return b->data;
}

/* Frees all blocks. */
static inline void blocks_fini(struct blocks *p)
{
	while (p->first) {
		struct block *next = p->first->next;
		free(p->first);
		p->first = next;
	}
}

/* Reads a list of texts into an array with `room` free places behind them. Returns 0 or
 * -RP_ENOMEM. */
static inline int32_t texts_read(const struct modhost *h, struct blocks *memory, rp_cfg list,
				 uint32_t room, struct texts *ret)
{
	ret->n = h->config->count(h->ctx, list);
	ret->list = blocks_alloc(memory, (size_t)ret->n + room, sizeof *ret->list);
	if (!ret->list)
		return modhost_no_memory(h);
	for (uint32_t i = 0; i < ret->n; i++)
		ret->list[i] = h->config->text(h->ctx, h->config->item(h->ctx, list, i), "");
	return 0;
}

#endif
