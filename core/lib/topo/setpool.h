/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets in little memory. A view starts at word 0, so the set {4095} needs 63 zeros in front of its
 * one word. What makes a set is its span, from the first word that is not zero to the last; the
 * pool keeps each distinct span once, behind a run of zeros, and a view starts as far back in that
 * run as its span's position asks for. So all of {0}, {64}, {128} … share their words, and so do
 * the threads of core after core: 4096 cores cost some dozen spans and not a megabyte.
 */
#ifndef TOPO_SETPOOL_H
#define TOPO_SETPOOL_H

#include <stdint.h>

#include <nri-rp/set.h>

#include "core/lib/util/arena.h"

struct set_pool_slot;

struct set_pool {
	struct arena *out; /* of the words */
	struct arena *scratch; /* of the table */
	struct set_pool_slot *slots;
	uint32_t n_slots, n_used;
	uint32_t zeros;
};

/* zeros: word index of the highest id that most sets have. Larger ids work too. */
int set_pool_init(struct set_pool *p, struct arena *out, struct arena *scratch, uint32_t zeros);
/* A view of a set equal to v that lives as long as the out arena. -ENOMEM. */
int set_pool_add(struct set_pool *p, struct rp_ids v, struct rp_ids *ret);

#endif
