/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and annotations: a few pairs of text, packed into one piece of memory, sorted by key. */
#ifndef CACHE_KVS_H
#define CACHE_KVS_H

#include <stdint.h>

struct kv {
	const char *key, *value;
};

struct kvs {
	uint32_t n, size;
	char *data; /* key NUL value NUL … */
};

#define KVS_VALUE_MAX 65536u /* a longer value is left out */
#define KVS_TOTAL_MAX 524288u /* and so is what does not fit any more */

/* Sorts pairs; of equal keys the last wins. Returns how many pairs a limit left out, or -ENOMEM. */
int kvs_init(struct kvs *s, const struct kv *pairs, uint32_t n);
void kvs_fini(struct kvs *s);
/* NULL: no such key. */
const char *kvs_get(const struct kvs *s, const char *key);

#define KVS_EACH(k, v, s)                                                                          \
	for (const char *k = (s)->data, *v = k ? kvs_after(k) : NULL,                              \
			*kvs_end_ = k ? k + (s)->size : NULL;                                      \
	     k && k < kvs_end_; k = kvs_after(v), v = k < kvs_end_ ? kvs_after(k) : NULL)

const char *kvs_after(const char *text);

#endif
