/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading of bytes that are saved for a later run, on the same machine and by the same
 * kind of module. Both sides note failures, so one check behind the last call is enough. The reader
 * does not trust the bytes: each function checks the remaining length. */
#ifndef NRI_RP_LIB_BYTES_H
#define NRI_RP_LIB_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <nri-rp/set.h>

/* Bytes that grow. All zeros: empty. */
struct bytes {
	uint8_t *data;
	uint32_t size, cap;
	uint32_t fixed; /* size of a buffer that data points to; 0: data is allocated */
	bool failed; /* a put function had no room for its bytes */
};
/* Bytes in a buffer of the caller, an array. */
#define BYTES_IN(array) ((struct bytes){.data = (uint8_t *)(array), .fixed = sizeof(array)})

/* Removes the bytes, and keeps the memory. */
static inline void bytes_reset(struct bytes *b)
{
	b->size = 0;
	b->failed = false;
}

/* Appends n bytes. Returns 0 or -RP_ENOMEM. */
int32_t bytes_put(struct bytes *b, const void *data, size_t n);

static inline void bytes_put_u16(struct bytes *b, uint16_t value)
{
	(void)bytes_put(b, &value, sizeof value);
}

static inline void bytes_put_u32(struct bytes *b, uint32_t value)
{
	(void)bytes_put(b, &value, sizeof value);
}

/* Appends a text with its NUL. */
static inline void bytes_put_text(struct bytes *b, const char *text)
{
	(void)bytes_put(b, text, strlen(text) + 1);
}

/* Appends the words of a set, without their number. */
static inline void bytes_put_set(struct bytes *b, struct rp_ids ids)
{
	(void)bytes_put(b, ids.w, ids.nw * sizeof ids.w[0]);
}

/* The bytes that are not read yet. */
struct bytes_left {
	const uint8_t *at, *end;
	bool failed; /* a take function found too few bytes, or malformed ones */
};

/* Begins to read bytes. */
static inline struct bytes_left bytes_of(const void *data, size_t size)
{
	return (struct bytes_left){data, (const uint8_t *)data + size, false};
}

/* Returns the number of bytes that are not read yet. */
static inline uint32_t bytes_n_left(const struct bytes_left *left)
{
	return (uint32_t)(left->end - left->at);
}

/* Returns the next n bytes. NULL: fewer are left, and nothing is read. */
const void *bytes_skip(struct bytes_left *left, size_t n);
/* Reads the next n bytes. False: fewer are left, and nothing is read. */
bool bytes_take(struct bytes_left *left, void *ret, size_t n);
/* Reads a set of n_words words. False: too few bytes, or malformed. */
bool bytes_take_set(struct bytes_left *left, uint32_t n_words, struct rp_idset *ret);
/* Returns the next text, which points to the bytes; "" if no NUL follows. */
const char *bytes_take_text(struct bytes_left *left);

/* Returns the next number; 0 on failure. */
static inline uint16_t bytes_take_u16(struct bytes_left *left)
{
	uint16_t value = 0;
	(void)bytes_take(left, &value, sizeof value);
	return value;
}

static inline uint32_t bytes_take_u32(struct bytes_left *left)
{
	uint32_t value = 0;
	(void)bytes_take(left, &value, sizeof value);
	return value;
}

#endif
