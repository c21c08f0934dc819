/* SPDX-License-Identifier: Apache-2.0 */
/* What a process holds, before and after something was done many times: memory, mappings,
 * descriptors, threads. */
#ifndef MODCHECK_BALANCE_H
#define MODCHECK_BALANCE_H

#include <stddef.h>

#include "core/lib/util/err.h"

struct balance {
	size_t bytes; /* of the heap in use */
	size_t mapped; /* bytes of mappings besides the heap's */
	unsigned fds, threads;
};

struct balance balance_now(void);
/* `n` rounds were made between the first and the last, half of them before the middle: -ENOMEM and
 * others with what is left each time. */
int balance_compare(struct balance first, struct balance middle, struct balance last, unsigned n,
		    const char *what, struct err *err);
/* The same for few rounds that free all they take: whatever grows in each half is a leak. */
int balance_exact(struct balance first, struct balance middle, struct balance last, unsigned n,
		  const char *what, struct err *err);

#endif
