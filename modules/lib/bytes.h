/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept for a later run as bytes, on one machine and by one kind of module: writing it, and
 * reading it as if it were anybody's. */
#ifndef NRI_RP_LIB_BYTES_H
#define NRI_RP_LIB_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#include <nri-rp/set.h>

/* Bytes that grow. All zeros: none. */
struct bytes {
	uint8_t *data;
	uint32_t size, cap;
};

int32_t bytes_put(struct bytes *b, const void *data, size_t n); /* -RP_ENOMEM */

/* What is left to read. */
struct bytes_left {
	const uint8_t *at, *end;
};

static inline struct bytes_left bytes_of(const void *data, size_t size)
{
	return (struct bytes_left){data, (const uint8_t *)data + size};
}

/* The next n; false: there are fewer, and nothing is read. */
bool bytes_take(struct bytes_left *left, void *ret, size_t n);
/* A set of so many words. */
bool bytes_take_set(struct bytes_left *left, uint32_t n_words, struct rp_idset *ret);

#endif
