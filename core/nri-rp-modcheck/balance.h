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

/* Measurements at the beginning, in the middle and at the end of repetitions. */
struct balances {
	struct balance at[3];
};

struct balance balance_now(void);
/* Compares measurements that are `n` repetitions apart. Fails with -ENOMEM, -EMFILE or -EAGAIN if a
 * resource has grown; err says by how much. */
int balance_compare(const struct balances *b, unsigned n, const char *what, struct err *err);

/* repetitions for balance_exact */
#define BALANCE_ROUNDS 9u
/* Measures after each third of BALANCE_ROUNDS repetitions; `i` is the number of the repetition that
 * has ended, from 0. */
void balance_round(struct balances *b, unsigned i);
/* Compares like balance_compare without tolerance, for a few repetitions that free all they
 * allocate: any growth in both halves is a leak. */
int balance_exact(const struct balances *b, const char *what, struct err *err);
