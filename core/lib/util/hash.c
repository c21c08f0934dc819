/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/hash.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

/* 2^64 divided by the golden ratio: odd, so that the product loses no information, and without a
 * pattern. */
#define SPREAD 0x9e3779b97f4a7c15u

static uint64_t seed = SPREAD;

/* Chooses a random seed. Without random numbers the table works with a constant seed. */
__attribute__((constructor)) static void choose_seed(void)
{
	uint64_t chosen;
	if (getrandom(&chosen, sizeof chosen, GRND_NONBLOCK) == sizeof chosen)
		seed = chosen;
}

static uint64_t hash_mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * SPREAD;
	return h ^ h >> 32;
}

unsigned hash_bytes(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t h = seed ^ n, word;
	for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
		memcpy(&word, p, sizeof word);
		h = hash_mix(h, word);
	}
	word = 0;
	memcpy(&word, p, n);
	return (unsigned)hash_mix(h, word);
}
