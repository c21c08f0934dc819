/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the sizes of the pools from requests and weights. Does not choose CPUs. */
#include <string.h>

#include "modules/dynamic-pools/dynamic-pools.h"

static int64_t n_rest(const struct rp_plan *p)
{
	return rp_ids_count(rp_ids_of(&p->bounds.cpus.rest));
}

/* Returns the sum of the CPU requests in a pool, rounded up to whole CPUs. */
static int64_t size_asked(const struct pools_pool *pool)
{
	return (pool->mcpu + 999) / 1000;
}

/* Returns the number of CPUs that a pool needs: at least one if it has containers. */
static int64_t size_do_needed(const struct pools_pool *pool)
{
	return size_asked(pool) ? size_asked(pool) : pool->n_ctrs > 0;
}

bool size_fits(const struct rp_plan *p)
{
	int64_t n = 0;
	for (uint32_t i = POOL_SHARED; i < p->n; i++)
		n += size_do_needed(&p->pools[i]);
	return n <= n_rest(p);
}

void size_needed(const struct rp_plan *p, uint32_t ret[POOLS_MAX])
{
	memset(ret, 0, POOLS_MAX * sizeof *ret);
	for (uint32_t i = POOL_SHARED; i < p->n; i++)
		ret[i] = (uint32_t)size_do_needed(&p->pools[i]);
}

static int64_t size_weight(const struct pools_pool *pool)
{
	return pool->n_ctrs ? pool->weight : 0;
}

/* Divides `rest` CPUs among the pools by weight, rounded down; `all` is the sum of the weights. The
 * remainder goes to the pool of highest weight, where shared wins ties. */
static void share_out(const struct rp_plan *p, int64_t rest, int64_t all, uint32_t ret[POOLS_MAX])
{
	uint32_t best = POOL_SHARED;
	int64_t left = rest;
	for (uint32_t i = POOL_SHARED; i < p->n; i++) {
		int64_t w = size_weight(&p->pools[i]), n = all ? rest * w / all : 0;
		ret[i] += (uint32_t)n;
		left -= n;
		if (w > size_weight(&p->pools[best]))
			best = i;
	}
	ret[best] += (uint32_t)left;
}

void size_all(const struct rp_plan *p, uint32_t ret[POOLS_MAX])
{
	const struct pools_pool *shared = &p->pools[POOL_SHARED];
	int64_t rest = n_rest(p), all = 0;
	size_needed(p, ret);
	ret[POOL_SHARED] = (uint32_t)size_asked(shared);
	for (uint32_t i = POOL_SHARED; i < p->n; i++) {
		rest -= ret[i];
		all += size_weight(&p->pools[i]);
	}
	if (rest < 1)
		return;
	if (all && shared->n_ctrs && ret[POOL_SHARED] + rest * size_weight(shared) / all < 1) {
		ret[POOL_SHARED] = 1;
		rest--;
	}
	share_out(p, rest, all, ret);
}
