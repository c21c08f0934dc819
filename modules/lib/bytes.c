/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/lib/bytes.h"

#include <stdlib.h>
#include <string.h>

#include <nri-rp/module.h>

int32_t bytes_put(struct bytes *b, const void *data, size_t n)
{
	if (b->cap - b->size < n) {
		size_t cap = (b->size + n) * 2 + 256;
		uint8_t *grown = cap <= UINT32_MAX ? realloc(b->data, cap) : NULL;
		if (!grown)
			return -RP_ENOMEM;
		b->data = grown;
		b->cap = (uint32_t)cap;
	}
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
