/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and CPUs for claims. Each NUMA node that has a pool is a device. */
#include "modules/topology-aware/place.h"
#include "modules/topology-aware/topology-aware.h"

uint32_t claim_pool(const struct rp_plan *p, struct rp_ids cpus)
{
	for (uint32_t i = p->n_pools; i-- > 0 && !rp_ids_empty(cpus);)
		if (__builtin_popcountll(p->pools[i].nodes) == 1 &&
		    rp_ids_subset(cpus, plan_ids(p, p->pools[i].cpus)))
			return i;
	return NO_POOL;
}

void claim_cpus(struct rp_instance *inst, struct rp_idset *ret)
{
	struct rp_plan *p = inst->plan;
	rp_idset_clear(ret);
	if (!p->settings.pin_cpu)
		return;
	ledger_rooms(p);
	ledger_slices(p);
	for (uint32_t i = 0; i < p->n_pools; i++) {
		const struct pool *pool = &p->pools[i];
		if (claim_pool(p, plan_ids(p, pool->cpus)) == i)
			rp_idset_or(ret, rp_ids_of(ret), plan_ids(p, pool->slice));
		for (const struct grant *g = pool->grants; g; g = g->pool_next)
			if (g->claim)
				rp_idset_or(ret, rp_ids_of(ret), cpus_ids(g->exclusive));
	}
}
