/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "modules/dynamic-pools/dynamic-pools.h"

static int64_t n_rest(const struct rp_plan *p)
{
	return rp_ids_count(rp_ids_of(&p->bounds.rest));
}

/* CPUs for what is asked for. */
static int64_t asked(const struct pool *pool)
{
	return (pool->mcpu + 999) / 1000;
}

/* Nobody runs on no CPU. */
static int64_t needed(const struct pool *pool)
{
	return asked(pool) ? asked(pool) : pool->n_ctrs > 0;
}

bool size_fits(const struct rp_plan *p)
{
	int64_t n = 0;
	for (uint32_t i = POOL_SHARED; i < p->n; i++)
		n += needed(&p->pools[i]);
	return n <= n_rest(p);
}

static int64_t weight(const struct pool *pool)
{
	return pool->n_ctrs ? pool->weight : 0;
}

/* Of `rest` CPUs each pool's part by weight, rounded down; what that leaves goes to the one of highest weight, at first shared. */
static void share_out(const struct rp_plan *p, int64_t rest, int64_t all, uint32_t ret[POOLS_MAX])
{
	uint32_t best = POOL_SHARED;
	int64_t left = rest;
	for (uint32_t i = POOL_SHARED; i < p->n; i++) {
		int64_t w = weight(&p->pools[i]), n = all ? rest * w / all : 0;
		ret[i] += (uint32_t)n;
		left -= n;
		if (w > weight(&p->pools[best]))
			best = i;
	}
	ret[best] += (uint32_t)left;
}

void size_all(const struct rp_plan *p, uint32_t ret[POOLS_MAX])
{
	const struct pool *shared = &p->pools[POOL_SHARED];
	int64_t rest = n_rest(p), all = 0;
	memset(ret, 0, POOLS_MAX * sizeof *ret);
	for (uint32_t i = POOL_SHARED; i < p->n; i++) {
		const struct pool *pool = &p->pools[i];
		ret[i] = (uint32_t)(i == POOL_SHARED ? asked(pool) : needed(pool));
		rest -= ret[i];
		all += weight(pool);
	}
	if (rest < 1)
		return;
	if (all && shared->n_ctrs && ret[POOL_SHARED] + rest * weight(shared) / all < 1) {
		ret[POOL_SHARED] = 1;
		rest--;
	}
	share_out(p, rest, all, ret);
}

static uint32_t n_cpus(const struct pool *pool)
{
	return rp_ids_count(rp_ids_of(&pool->cpus));
}

static void find_free(const struct rp_plan *p, struct rp_idset *ret)
{
	rp_idset_copy(ret, rp_ids_of(&p->bounds.rest));
	for (uint32_t i = POOL_SHARED; i < p->n; i++)
		rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&p->pools[i].cpus));
}

uint64_t size_change(struct rp_plan *p)
{
	uint32_t size[POOLS_MAX];
	uint64_t changed = 0;
	struct rp_idset free, part;
	if (!size_fits(p))
		return 0; /* hardly a CPU is left on line: containers run where place_cpus() says */
	size_all(p, size);
	for (uint32_t i = POOL_SHARED; i < p->n; i++) {
		struct pool *pool = &p->pools[i];
		if (n_cpus(pool) > size[i] &&
		    cpualloc_release(p->alloc, &pool->cpus, n_cpus(pool) - size[i],
				     p->types[i].prio, CPUALLOC_PLAIN, &part) == 0)
			changed |= UINT64_C(1) << i;
	}
	find_free(p, &free);
	for (uint32_t i = POOL_SHARED; i < p->n; i++) {
		struct pool *pool = &p->pools[i];
		if (n_cpus(pool) >= size[i] ||
		    cpualloc_allocate(p->alloc, &free, size[i] - n_cpus(pool), p->types[i].prio,
				      CPUALLOC_PLAIN, &part))
			continue;
		rp_idset_or(&pool->cpus, rp_ids_of(&pool->cpus), rp_ids_of(&part));
		changed |= UINT64_C(1) << i;
	}
	return changed;
}

void size_spare(const struct rp_plan *p, struct rp_idset *ret)
{
	find_free(p, ret);
	for (uint32_t i = POOL_SHARED; i < p->n; i++) {
		struct rp_idset cpus = p->pools[i].cpus, part;
		int64_t more = (int64_t)n_cpus(&p->pools[i]) - needed(&p->pools[i]);
		if (more > 0 && cpualloc_release(p->alloc, &cpus, (uint32_t)more, p->types[i].prio,
						 CPUALLOC_PLAIN, &part) == 0)
			rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&part));
	}
}
