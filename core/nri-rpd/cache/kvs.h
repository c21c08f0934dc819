/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and annotations: pairs of text, packed into one allocation and sorted by key. */
#pragma once

#include <stdint.h>

struct kv {
	const char *key, *value;
};

struct kvs {
	uint32_t n, size;
	char *data; /* keys and values, each with a NUL: key NUL value NUL … */
	uint64_t beginnings; /* kvs_beginning() of all keys: most absent keys have another bit */
};

#define KVS_VALUE_MAX 65536u /* a longer value is omitted */
#define KVS_TOTAL_MAX 524288u /* further pairs are omitted */

/* Packs sorted pairs; of equal keys the last one wins. Returns the number of pairs omitted by a
 * limit, or -ENOMEM. */
int kvs_init(struct kvs *s, const struct kv *pairs, uint32_t n);
void kvs_fini(struct kvs *s);
/* Returns the value of a key; NULL: none. */
const char *kvs_get(const struct kvs *s, const char *key);
/* Returns the value of a key in an unpacked list; NULL: none. */
const char *kv_text(const struct kv *list, uint32_t n, const char *key);

/* Returns one of 64 bits that depends on the first two characters of a key. */
static inline uint64_t kvs_beginning(const char *key)
{
	unsigned first = (unsigned char)key[0], second = first ? (unsigned char)key[1] : 0;
	return UINT64_C(1) << (first * 5 + second) % 64;
}

/* Iterates over the pairs in order of keys. */
#define KVS_EACH(k, v, s)                                                                          \
	for (const char *k = (s)->data, *v = k ? kvs_after(k) : NULL,                              \
			*kvs_end_ = k ? k + (s)->size : NULL;                                      \
	     k && k < kvs_end_; k = kvs_after(v), v = k < kvs_end_ ? kvs_after(k) : NULL)

/* Returns the position after the NUL that ends `text`: the next key or value. For KVS_EACH. */
const char *kvs_after(const char *text);
