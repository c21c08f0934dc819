/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/prefault.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Defaults of glibc, which mallopt(3) documents but <malloc.h> does not define. */
#define MMAP_THRESHOLD_DEFAULT (128 << 10)
#define TRIM_THRESHOLD_DEFAULT (128 << 10)
#define WIDEN_MAX ((size_t)16 << 20)

void prefault(void *data, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)data + page - 1) / page * page;
	uintptr_t to = ((uintptr_t)data + len) / page * page;
	if (len >= PREFAULT_MIN && from < to)
		(void)madvise((void *)from, to - from, MADV_POPULATE_WRITE);
}

void heap_widen(size_t len)
{
	if (len < PREFAULT_MIN)
		return;
	if (len > WIDEN_MAX)
		len = WIDEN_MAX;
	/* Allocate one piece at the heap's end, not a separate mapping. After free() it stays there
	 * for small allocations. */
	(void)mallopt(M_MMAP_THRESHOLD, (int)WIDEN_MAX * 2);
	(void)mallopt(M_TRIM_THRESHOLD, (int)WIDEN_MAX * 2);
	void *room = malloc(len);
	(void)mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_DEFAULT);
	if (room)
		prefault(room, len);
	free(room);
}

void heap_settle(void)
{
	(void)mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD_DEFAULT);
}
