/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of the modules' border, which begin with `uint32_t size` (include/nri-rp/module.h). */
#ifndef UTIL_SIZED_H
#define UTIL_SIZED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Fills a caller's struct as far as both sides know its members. The rest is zeroed, and `size`
 * becomes the number of bytes that mean something, so that RP_HAS() tells the truth to a caller who
 * knows more members than the one who filled them. */
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

/* Does a struct of `size` bytes, of which `known` mean something here, say nothing in the rest? */
static inline bool sized_is_understood(const void *from, uint32_t size, uint32_t known)
{
	for (uint32_t i = known; i < size; i++)
		if (((const unsigned char *)from)[i])
			return false;
	return true;
}

#endif
