/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the sizes of the pools from requests and weights. The CPU allocator chooses the
 * CPUs. */
#include <string.h>

#include "modules/dynamic-pools/dynamic-pools.h"

static int64_t n_rest(const struct rp_plan *p)
{
	return rp_ids_count(rp_ids_of(&p->bounds.cpus.rest));
}

/* Returns the sum of the CPU requests in a pool, rounded up to whole CPUs. */
static int64_t size_asked(const struct pool *pool)
{
	return (pool->mcpu + 999) / 1000;
}

/* Returns the number of CPUs that a pool needs: at least one if it has containers. */
static int64_t size_do_needed(const struct pool *pool)
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

static int64_t size_weight(const struct pool *pool)
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
	const struct pool *shared = &p->pools[POOL_SHARED];
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

static uint32_t n_cpus(const struct pool *pool)
{
	return rp_ids_count(rp_ids_of(&pool->cpus));
}

uint64_t size_apply(const struct rp_plan *p, struct pool list[POOLS_MAX], struct rp_ids from,
		    const uint32_t sizes[POOLS_MAX])
{
	uint64_t changed = 0;
	struct rp_idset left, part;
	rp_idset_copy(&left, from);
	for (uint32_t i = POOL_SHARED; i < p->n; i++) {
		uint32_t has = n_cpus(&list[i]);
		if (has > sizes[i] && cpualloc_release(p->alloc, &list[i].cpus, has - sizes[i],
						       list[i].prio, CPUALLOC_PLAIN, &part) == 0)
			changed |= UINT64_C(1) << i;
		rp_idset_andnot(&left, rp_ids_of(&left), rp_ids_of(&list[i].cpus));
	}
	for (uint32_t i = POOL_SHARED; i < p->n; i++) {
		uint32_t has = n_cpus(&list[i]);
		if (has >= sizes[i] || cpualloc_allocate(p->alloc, &left, sizes[i] - has,
							 list[i].prio, CPUALLOC_PLAIN, &part))
			continue;
		rp_idset_or(&list[i].cpus, rp_ids_of(&list[i].cpus), rp_ids_of(&part));
		changed |= UINT64_C(1) << i;
	}
	return changed;
}
