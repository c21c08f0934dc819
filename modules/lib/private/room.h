/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Grows an array from malloc() to hold n elements. `list` is the address of the pointer to it, *cap
 * its capacity in elements. False: out of memory, and the array is unchanged.
 */
static inline bool room_for(void *list, uint32_t *cap, uint32_t n, size_t size)
{
	void *was;
	if (n <= *cap)
		return true;
	uint64_t more = 2 * (uint64_t)n + 4;
	if (more > UINT32_MAX || more > SIZE_MAX / size)
		return false;
	memcpy(&was, list, sizeof was);
	void *now = realloc(was, more * size);
	if (!now)
		return false;
	memcpy(list, &now, sizeof now);
	*cap = (uint32_t)more;
	return true;
}
