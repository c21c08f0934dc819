/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading of bytes that are saved for a later run, on the same machine and by the same
 * kind of module. The reader does not trust them: each function checks the remaining length. */
#ifndef NRI_RP_LIB_BYTES_H
#define NRI_RP_LIB_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#include <nri-rp/set.h>

/* Bytes that grow. All zeros: empty. */
struct bytes {
	uint8_t *data;
	uint32_t size, cap;
};

/* Appends n bytes. Returns 0 or -RP_ENOMEM. */
int32_t bytes_put(struct bytes *b, const void *data, size_t n);

/* The bytes that are not read yet. */
struct bytes_left {
	const uint8_t *at, *end;
};

/* Begins to read bytes. */
static inline struct bytes_left bytes_of(const void *data, size_t size)
{
	return (struct bytes_left){data, (const uint8_t *)data + size};
}

/* Reads the next n bytes. False: fewer are left, and nothing is read. */
bool bytes_take(struct bytes_left *left, void *ret, size_t n);
/* Reads a set of n_words words. False: too few bytes, or malformed. */
bool bytes_take_set(struct bytes_left *left, uint32_t n_words, struct rp_idset *ret);

#endif
