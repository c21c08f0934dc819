/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is freed together: everything that a request or a configuration needs. Allocation
 * moves a pointer; reset keeps the first block. An arena has a limit, so that hostile input ends in
 * -ENOMEM and not in swap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* Creates an arena. limit: maximum of bytes; 0: no limit. */
struct arena *arena_new(size_t block_size, size_t limit);
struct arena *arena_free(struct arena *a); /* accepts NULL; returns NULL */
void arena_reset(struct arena *a);
size_t arena_used(const struct arena *a);
size_t arena_held(const struct arena *a);
/* Returns true if an allocation has returned NULL since the creation or the last reset, or there is
 * no arena. A function that makes many copies may check this once, at its end. */
bool arena_failed(const struct arena *a);

/* Allocates zeroed memory, aligned for any type; NULL: the limit is exceeded or memory ran out. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_array(struct arena *a, size_t n, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
/* Copies `len` bytes and adds a NUL. */
char *arena_text(struct arena *a, const void *s, size_t len);
void *arena_memdup(struct arena *a, const void *data, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define arena_zero(a, type) ((type *)arena_alloc((a), sizeof(type)))

static inline void cleanup_arena(struct arena **a)
{
	*a = arena_free(*a);
}
#define _arena_ __attribute__((cleanup(cleanup_arena)))
