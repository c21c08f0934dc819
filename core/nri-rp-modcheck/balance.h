/* SPDX-License-Identifier: Apache-2.0 */
/* Resources that a process holds, compared before and after many repetitions to find leaks: memory,
 * mappings, file descriptors, threads. */
#pragma once

#include <stddef.h>

#include "core/lib/util/err.h"

struct balance {
	size_t bytes; /* used bytes of the heap */
	size_t mapped; /* bytes of mappings outside the heap */
	unsigned fds, threads;
};

struct balance balance_now(void);
/* Compares three measurements, taken before, in the middle of and after `n` repetitions. Fails with
 * -ENOMEM, -EMFILE or -EAGAIN if a resource has grown; err says by how much. */
int balance_compare(struct balance first, struct balance middle, struct balance last, unsigned n,
		    const char *what, struct err *err);
/* Compares like balance_compare without tolerance, for a few repetitions that free all they
 * allocate: any growth in both halves is a leak. */
int balance_exact(struct balance first, struct balance middle, struct balance last, unsigned n,
		  const char *what, struct err *err);
