/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and checked reading of saved bytes. */
#include <nri-rp/lib/bytes.h>

#include <stdlib.h>
#include <string.h>

#include <nri-rp/module.h>

#include "modules/lib/private/room.h"

int32_t bytes_put(struct bytes *b, const void *data, size_t n)
{
	if (n > UINT32_MAX - b->size ||
	    !room_for(&b->data, &b->cap, b->size + (uint32_t)n, sizeof *b->data))
		return -RP_ENOMEM;
	if (n)
		memcpy(b->data + b->size, data, n);
	b->size += (uint32_t)n;
	return 0;
}

bool bytes_take(struct bytes_left *left, void *ret, size_t n)
{
	if ((size_t)(left->end - left->at) < n)
		return false;
	if (n)
		memcpy(ret, left->at, n);
	left->at += n;
	return true;
}

bool bytes_take_set(struct bytes_left *left, uint32_t n_words, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	if (n_words > RP_IDSET_WORDS || !bytes_take(left, ret->w, n_words * sizeof ret->w[0]))
		return false;
	ret->nw = n_words;
	rp_idset_trim(ret);
	return true;
}
