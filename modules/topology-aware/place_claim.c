/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and CPUs for claims. Each NUMA node that has a pool is a device, and with claimDevices also
 * each L3 cache and socket that has one. */
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

uint32_t claim_smallest(const struct rp_plan *p, struct rp_ids cpus)
{
	uint32_t best = NO_POOL;
	for (uint32_t i = 0; i < p->n_pools && !rp_ids_empty(cpus); i++) {
		struct rp_ids has = plan_ids(p, p->pools[i].cpus);
		if (rp_ids_subset(cpus, has) &&
		    (best == NO_POOL ||
		     rp_ids_count(has) <= rp_ids_count(plan_ids(p, p->pools[best].cpus))))
			best = i;
	}
	return best;
}

/* Returns true if a pool has exactly the CPUs of the unit that the policy may use. */
static bool claim_has_pool(const void *arg, struct rp_ids cpus)
{
	const struct rp_plan *p = arg;
	struct rp_idset allowed;
	rp_idset_and(&allowed, cpus, rp_ids_of(&p->allowed));
	uint32_t pool = claim_smallest(p, rp_ids_of(&allowed));
	return pool != NO_POOL && rp_ids_subset(plan_ids(p, p->pools[pool].cpus), cpus);
}

struct node_devices claim_devices(struct rp_instance *inst, struct rp_ids cpus)
{
	return (struct node_devices){.h = &inst->h,
				     .list = &inst->list,
				     .assignable = cpus,
				     .isolation = &inst->plan->settings.isolation,
				     .levels = inst->plan->settings.claim_levels,
				     .offers = claim_has_pool,
				     .arg = inst->plan};
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
