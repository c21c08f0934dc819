/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes memory present in one system call before it is written completely. A page fault for each 4
 * KiB costs several times as much as clearing the page, most of all in a virtual machine. Kernels
 * before 5.14 do not have the call and fault pages in one by one as usual.
 */
#pragma once

#include <stddef.h>

#define PREFAULT_MIN ((size_t)256 << 10) /* smaller sizes are not worth the call */

/* Makes the whole pages within the range present. Their contents are unchanged. */
void prefault(void *data, size_t len);

/* Makes room in the heap for len bytes of small allocations. Until heap_settle(), freed memory is
 * not returned to the system. */
void heap_widen(size_t len);
void heap_settle(void);
