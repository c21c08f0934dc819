/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and checked reading of saved bytes. */
#include <nri-rp/lib/bytes.h>

#include <stdlib.h>
#include <string.h>

#include <nri-rp/module.h>

#include "modules/lib/private/room.h"

/* Makes room for n more bytes. After a failure there is none, so that no gap is written. */
static bool bytes_grow(struct bytes *b, size_t n)
{
	if (b->failed)
		return false;
	if (b->fixed)
		return n <= b->fixed - b->size;
	return n <= UINT32_MAX - b->size &&
	       room_for(&b->data, &b->cap, b->size + (uint32_t)n, sizeof *b->data);
}

int32_t bytes_put(struct bytes *b, const void *data, size_t n)
{
	if (!bytes_grow(b, n)) {
		b->failed = true;
		return -RP_ENOMEM;
	}
	if (n)
		memcpy(b->data + b->size, data, n);
	b->size += (uint32_t)n;
	return 0;
}

const void *bytes_skip(struct bytes_left *left, size_t n)
{
	const uint8_t *at = left->at;
	if ((size_t)(left->end - at) < n) {
		left->failed = true;
		return NULL;
	}
	left->at += n;
	return at;
}

bool bytes_take(struct bytes_left *left, void *ret, size_t n)
{
	const void *from = bytes_skip(left, n);
	if (from && n)
		memcpy(ret, from, n);
	return from;
}

const char *bytes_take_text(struct bytes_left *left)
{
	const uint8_t *end = memchr(left->at, '\0', bytes_n_left(left));
	const char *text = bytes_skip(left, end ? (size_t)(end - left->at) + 1 : SIZE_MAX);
	return text ? text : "";
}

bool bytes_take_set(struct bytes_left *left, uint32_t n_words, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	if (!bytes_take(left, ret->w,
			n_words > RP_IDSET_WORDS ? SIZE_MAX : n_words * sizeof ret->w[0]))
		return false;
	ret->nw = n_words;
	rp_idset_trim(ret);
	return true;
}
