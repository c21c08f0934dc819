/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores sets in little memory. A view starts at word 0, so the set {4095} needs 63 zeros in front
 * of its one word. A set consists of its span, from the first non-zero word to the last. The pool
 * stores each distinct span once, behind a run of zeros, and a view starts as far back in that run
 * as the position of its span requires. The sets {0}, {64}, {128} … share their words, and so do
 * the threads of successive cores: 4096 cores need a few dozen spans and not a megabyte.
 */
#pragma once

#include <stdint.h>

#include <nri-rp/set.h>

#include "core/lib/util/arena.h"

struct set_pool_slot;

struct set_pool {
	struct arena *out; /* memory of the words */
	struct arena *scratch; /* memory of the table */
	struct set_pool_slot *slots;
	uint32_t n_slots, n_used;
	uint32_t zeros;
};

/* Initializes a pool. zeros: word index of the highest id that most sets have. Larger ids are
 * possible. */
int set_pool_init(struct set_pool *p, struct arena *out, struct arena *scratch, uint32_t zeros);
/* Adds a set equal to v, which lives as long as the out arena. -ENOMEM. */
int set_pool_add(struct set_pool *p, struct rp_ids v, struct rp_ids *ret);
