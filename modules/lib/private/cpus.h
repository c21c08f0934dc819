/* SPDX-License-Identifier: Apache-2.0 */
/* Compact CPU sets for large numbers of them: an allocation ends at the last non-zero word. NULL is
 * the empty set. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include <nri-rp/module.h>

struct cpus {
	uint32_t nw, n; /* numbers of words and of CPUs */
	uint64_t w[];
};

/* Copies a set into memory of malloc(). NULL: the set is empty, or out of memory with *ret_code
 * -RP_ENOMEM. */
static inline struct cpus *cpus_new(struct rp_ids ids, int32_t *ret_code)
{
	while (ids.nw && !ids.w[ids.nw - 1])
		ids.nw--;
	if (!ids.nw)
		return NULL;
	struct cpus *c = malloc(sizeof *c + ids.nw * sizeof c->w[0]);
	if (!c) {
		*ret_code = -RP_ENOMEM;
		return NULL;
	}
	c->nw = ids.nw;
	c->n = rp_ids_count(ids);
	memcpy(c->w, ids.w, ids.nw * sizeof c->w[0]);
	return c;
}

/* Returns a view of the set. */
static inline struct rp_ids cpus_ids(const struct cpus *c)
{
	return c ? (struct rp_ids){c->w, c->nw, 0} : rp_ids_none();
}

/* Returns the number of CPUs in the set. */
static inline uint32_t cpus_count(const struct cpus *c)
{
	return c ? c->n : 0;
}
