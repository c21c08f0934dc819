/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a configuration: freed all at once. */
#ifndef BALLOONS_POOL_H
#define BALLOONS_POOL_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct pool_block {
	struct pool_block *next;
	_Alignas(16) char data[];
};

struct pool {
	struct pool_block *blocks;
};

struct texts {
	const char **list;
	uint32_t n;
};

/* Zeroed; NULL when out of memory. A pool has few and small things: each is a block. */
static inline void *pool_alloc(struct pool *p, size_t n, size_t size)
{
	if (size && n > (SIZE_MAX / 2 - sizeof(struct pool_block)) / size)
		return NULL;
	struct pool_block *b = calloc(1, sizeof *b + n * size);
	if (!b)
		return NULL;
	b->next = p->blocks;
	p->blocks = b;
	return b->data;
}

static inline void pool_fini(struct pool *p)
{
	while (p->blocks) {
		struct pool_block *next = p->blocks->next;
		free(p->blocks);
		p->blocks = next;
	}
}

#endif
