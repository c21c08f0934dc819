/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_CAP_MIN 256u

void buf_fini(struct buf *b)
{
	free(b->data);
	*b = (struct buf)BUF_INIT;
}

void buf_reset(struct buf *b)
{
	b->start = b->end = 0;
	b->failed = 0;
}

void buf_shrink(struct buf *b, size_t keep)
{
	if (buf_len(b) || b->cap <= keep)
		return;
	free(b->data);
	b->data = NULL;
	b->start = b->end = b->cap = 0;
}

static uint8_t *buf_fail(struct buf *b)
{
	b->failed = -ENOMEM;
	return NULL;
}

uint8_t *buf_reserve(struct buf *b, size_t n)
{
	size_t len = buf_len(b);
	if (b->data && n <= b->cap - b->end)
		return b->data + b->end;
	/* Moving costs at most as much as was consumed, so a slow reader does not make adding
	 * quadratic. */
	if (b->data && n <= b->cap - len && len <= b->start) {
		memcpy(b->data, b->data + b->start, len);
		b->start = 0;
		b->end = len;
		return b->data + len;
	}
	if (n > SIZE_MAX / 4 - len)
		return buf_fail(b);
	size_t cap = b->cap > BUF_CAP_MIN ? b->cap : BUF_CAP_MIN;
	while (cap < len + n)
		cap *= 2;
	uint8_t *data = malloc(cap);
	if (!data)
		return buf_fail(b);
	if (len)
		memcpy(data, b->data + b->start, len);
	free(b->data);
	b->data = data;
	b->cap = cap;
	b->start = 0;
	b->end = len;
	return data + len;
}

void buf_commit(struct buf *b, size_t n)
{
	assert(n <= b->cap - b->end);
	b->end += n;
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= buf_len(b));
	b->start += n;
	if (b->start == b->end)
		b->start = b->end = 0;
}

int buf_add(struct buf *b, const void *data, size_t n)
{
	if (b->failed || !n)
		return b->failed;
	uint8_t *to = buf_reserve(b, n);
	if (!to)
		return b->failed;
	memcpy(to, data, n);
	b->end += n;
	return 0;
}

int buf_add_str(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_add_be32(struct buf *b, uint32_t v)
{
	const uint8_t bytes[] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8),
				 (uint8_t)v};
	return buf_add(b, bytes, sizeof bytes);
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	if (b->failed)
		return b->failed;
	va_list again;
	va_copy(again, ap);
	size_t room = b->data ? b->cap - b->end : 0;
	int n = vsnprintf(room ? (char *)b->data + b->end : NULL, room, fmt, ap);
	if (n >= 0 && (size_t)n >= room) {
		uint8_t *to = buf_reserve(b, (size_t)n + 1);
		n = to ? vsnprintf((char *)to, (size_t)n + 1, fmt, again) : -1;
	}
	va_end(again);
	if (n < 0)
		return b->failed = -ENOMEM;
	b->end += (size_t)n;
	return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = buf_vprintf(b, fmt, ap);
	va_end(ap);
	return r;
}

const char *buf_text(struct buf *b)
{
	if (!buf_len(b) || !buf_reserve(b, 1))
		return "";
	b->data[b->end] = '\0';
	return (const char *)b->data + b->start;
}
