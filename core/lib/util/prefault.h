/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is about to be written from one end to the other, made present in one system call: a
 * page fault each 4 KiB costs several times what clearing the page does, most of all in a virtual
 * machine. Where the kernel cannot (before 5.14), pages come one by one as ever.
 */
#pragma once

#include <stddef.h>

#define PREFAULT_MIN ((size_t)256 << 10) /* less is not worth the call */

/* The whole pages in it. Its content stays. */
void prefault(void *data, size_t len);

/* Room for len bytes of small allocations is in the heap until heap_settle(): what is freed
 * meanwhile is not given back. */
void heap_widen(size_t len);
void heap_settle(void);
