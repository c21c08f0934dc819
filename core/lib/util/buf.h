/* SPDX-License-Identifier: Apache-2.0 */
/* A growable run of bytes with a read position: input queues, encoders, text under construction. */
#ifndef UTIL_BUF_H
#define UTIL_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data;
	size_t start, end, cap; /* live bytes: data[start … end-1] */
	int failed; /* sticky -ENOMEM of the adders */
};

#define BUF_INIT                                                                                   \
	{                                                                                          \
		NULL, 0, 0, 0, 0                                                                   \
	}

void buf_fini(struct buf *b);
void buf_reset(struct buf *b); /* empties it, keeps the memory */
/* Gives memory back when the buffer is empty and holds more than keep bytes. */
void buf_shrink(struct buf *b, size_t keep);

static inline size_t buf_len(const struct buf *b)
{
	return b->end - b->start;
}

static inline const uint8_t *buf_bytes(const struct buf *b)
{
	return b->data ? b->data + b->start : NULL;
}

/* Room for n more bytes; returns where to write them, NULL when out of memory. buf_commit(n) makes
 * them live. */
uint8_t *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);
void buf_consume(struct buf *b, size_t n);

/* The adders return 0 or -ENOMEM, and leave the mark in b->failed so that a run of them can be
 * checked once. */
int buf_add(struct buf *b, const void *data, size_t n);
int buf_add_str(struct buf *b, const char *s);
int buf_add_be32(struct buf *b, uint32_t v);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* NUL-terminated text (the NUL is not counted); "" when empty or out of memory. Valid until the
 * next change. */
const char *buf_text(struct buf *b);

#endif
