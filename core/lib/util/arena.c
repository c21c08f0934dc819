/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena is a list of blocks; allocation moves the mark of the front block. A large object gets a
 * separate block behind the front one. Under AddressSanitizer all unallocated bytes are poisoned.
 */
#include "core/lib/util/arena.h"
#include "core/lib/util/getter.h"

#include <stdarg.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SANITIZED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)0)
#endif

#define ALIGN alignof(max_align_t)

struct block {
	struct block *older;
	size_t size, used;
	alignas(max_align_t) uint8_t data[];
};

struct arena {
	struct block *front;
	size_t block_size, limit;
	size_t used, held;
	bool failed; /* memory was short */
	/* First block, in the same allocation as the arena. */
	alignas(max_align_t) uint8_t first[];
};

static struct block *first_block(struct arena *a)
{
	return (struct block *)(void *)a->first;
}

static struct block *block_init(struct block *b, struct block *older, size_t size)
{
	b->older = older;
	b->size = size;
	b->used = 0;
	ASAN_POISON_MEMORY_REGION(b->data, size);
	return b;
}

struct arena *arena_new(size_t block_size, size_t limit)
{
	if (limit && block_size > limit)
		block_size = limit;
	if (block_size > SIZE_MAX / 2)
		return NULL;
	struct arena *a = malloc(sizeof *a + sizeof(struct block) + block_size);
	if (!a)
		return NULL;
	*a = (struct arena){.block_size = block_size, .limit = limit, .held = block_size};
	a->front = block_init(first_block(a), NULL, block_size);
	return a;
}

/* Frees all blocks but the first. */
static void free_blocks(struct arena *a)
{
	struct block *first = first_block(a);
	for (struct block *b = a->front, *older; b; b = older) {
		older = b->older;
		ASAN_UNPOISON_MEMORY_REGION(b->data, b->size);
		if (b != first)
			free(b);
	}
	a->front = first;
}

struct arena *arena_free(struct arena *a)
{
	if (!a)
		return NULL;
	free_blocks(a);
	free(a);
	return NULL;
}

void arena_reset(struct arena *a)
{
	free_blocks(a);
	a->used = 0;
	a->held = a->front->size;
	a->failed = false;
	block_init(a->front, NULL, a->front->size);
}

DEFINE_GETTER_OF(arena_used, size_t, const struct arena *a, a->used)
DEFINE_GETTER_OF(arena_held, size_t, const struct arena *a, a->held)
DEFINE_GETTER_OF(arena_failed, bool, const struct arena *a, !a || a->failed)

static struct block *add_block(struct arena *a, size_t need)
{
	size_t size = need > a->block_size / 4 ? need : a->block_size;
	size_t room = a->limit ? a->limit - a->held : SIZE_MAX;
	if (need > room)
		return NULL;
	if (size > room)
		size = room;
	struct block *b = malloc(sizeof *b + size);
	if (!b)
		return NULL;
	a->held += size;
	if (need <= a->block_size / 4)
		return a->front = block_init(b, a->front, size);
	/* The rest of the front block stays in use. */
	a->front->older = block_init(b, a->front->older, need);
	return b;
}

/* Allocates without zeroing. Text needs no alignment, except under the sanitizer, which checks
 * units of eight bytes and would miss writes behind the end. */
#ifdef SANITIZED
#define TEXT_ALIGN ALIGN
#else
#define TEXT_ALIGN 1u
#endif

static void *take_from(struct arena *a, struct block *b, size_t pad, size_t need, size_t size)
{
	void *p = b->data + b->used + pad;
	b->used += pad + need;
	a->used += pad + need;
	ASAN_UNPOISON_MEMORY_REGION(p, size);
	return p;
}

static __attribute__((noinline)) void *take_new(struct arena *a, size_t need, size_t size)
{
	struct block *b = size <= SIZE_MAX / 4 ? add_block(a, need) : NULL;
	a->failed |= !b;
	return b ? take_from(a, b, 0, need, size) : NULL;
}

static inline void *arena_take(struct arena *a, size_t size, size_t align)
{
	struct block *b = a->front;
	size_t pad = -b->used % align, need = size ? size : 1, room = b->size - b->used;
	if (pad > room || need > room - pad)
		return take_new(a, need, size);
	return take_from(a, b, pad, need, size);
}

void *arena_alloc(struct arena *a, size_t size)
{
	void *p = arena_take(a, size, ALIGN);
	return p ? memset(p, 0, size) : NULL;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
	size_t total;
	return arena_alloc(a, __builtin_mul_overflow(n, size, &total) ? SIZE_MAX : total);
}

void *arena_memdup(struct arena *a, const void *data, size_t n)
{
	void *p = arena_take(a, n, ALIGN);
	if (p && n)
		memcpy(p, data, n);
	return p;
}

char *arena_text(struct arena *a, const void *s, size_t len)
{
	char *p = arena_take(a, len + 1, TEXT_ALIGN);
	if (!p)
		return NULL;
	memcpy(p, s, len);
	p[len] = '\0';
	return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	return arena_text(a, s, strnlen(s, n));
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_text(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *p = n >= 0 ? arena_take(a, (size_t)n + 1, TEXT_ALIGN) : NULL;
	if (!p)
		return NULL;
	va_start(ap, fmt);
	(void)vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}
