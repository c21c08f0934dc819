/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that double when they are full. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Grows the array if it has no room for another item behind n items. False: no memory, and the
 * array is unchanged. `first`: the initial capacity. */
#define HAS_ROOM(items, n, cap, first) grow_array(&(items), n, &(cap), first, sizeof *(items))

/* Grows an array. `items`: the address of a pointer to objects of that size. */
static inline bool grow_array(void *items, uint32_t n, uint32_t *cap, uint32_t first, size_t size)
{
	void *old;
	if (n < *cap)
		return true;
	uint32_t more = *cap ? *cap * 2 : first;
	memcpy(&old, items, sizeof old);
	void *grown = realloc(old, more * size);
	if (!grown)
		return false;
	memcpy(items, &grown, sizeof grown);
	*cap = more;
	return true;
}
