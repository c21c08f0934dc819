/* SPDX-License-Identifier: Apache-2.0 */
/* A growable sequence of bytes with a read position, for input queues, encoders and text under
 * construction. */
#pragma once

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
void buf_reset(struct buf *b); /* empties the buffer, keeps the memory */
/* Frees the memory if the buffer is empty and has more than `keep` bytes. */
void buf_shrink(struct buf *b, size_t keep);

static inline size_t buf_len(const struct buf *b)
{
	return b->end - b->start;
}

static inline const uint8_t *buf_bytes(const struct buf *b)
{
	return b->data ? b->data + b->start : NULL;
}

/* Reserves n more bytes and returns their address; NULL: out of memory. buf_commit(n) adds them to
 * the contents. */
uint8_t *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);
void buf_consume(struct buf *b, size_t n);

/* Appends to the buffer. Returns 0 or -ENOMEM, which also stays in b->failed, so that several calls
 * can be checked at once. */
int buf_add(struct buf *b, const void *data, size_t n);
int buf_add_str(struct buf *b, const char *s);
int buf_add_be32(struct buf *b, uint32_t v);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Returns the contents as NUL-terminated text (the NUL is not counted); "" if empty or out of
 * memory. Valid until the next change. */
const char *buf_text(struct buf *b);
