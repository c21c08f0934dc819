/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of the module ABI, which begin with `uint32_t size` (include/nri-rp/module.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Fills a caller's struct with the members that both sides have. The rest is zeroed, and `size`
 * becomes the number of valid bytes, so that RP_HAS() is right for a caller that has more members
 * than the host. */
static inline void sized_fill(void *out, const void *full, uint32_t full_size)
{
	uint32_t size;
	memcpy(&size, out, sizeof size);
	uint32_t n = size < full_size ? size : full_size;
	if (size > n)
		memset((char *)out + n, 0, size - n);
	if (n < sizeof size)
		return;
	memcpy(out, full, n);
	memcpy(out, &n, sizeof n);
}

/* Returns true if a struct of `size` bytes, of which `known` are supported here, is zero in the
 * rest. */
static inline bool sized_is_understood(const void *from, uint32_t size, uint32_t known)
{
	for (uint32_t i = known; i < size; i++)
		if (((const unsigned char *)from)[i])
			return false;
	return true;
}
