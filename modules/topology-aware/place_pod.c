/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods as one request (colocatePods: strict). Nothing is reserved for containers that do not exist
 * yet: each container of a pod is placed within the smallest pool that has what the pod requests
 * together, so that a pool which other pods fill meanwhile is replaced by a larger one.
 */
#include "modules/topology-aware/place.h"
#include "modules/topology-aware/topology-aware.h"

/* Adds the grants of the pod's other containers within a pool. Returns false if one is outside of
 * it. */
static bool add_granted(const struct rp_instance *inst, const struct request *r, uint32_t pool,
			int64_t *cpu, int64_t *mem)
{
	const struct grant *g = ledger_of_pod(inst, r->info.pod);
	for (; g; g = g->pod_next) {
		if (g->ctr == r->info.ctr || g->type != GRANT_NORMAL)
			continue;
		if (!pool_is_within(inst->plan, g->pool, pool))
			return false;
		*cpu += grant_size(g);
		*mem += g->mem_size;
	}
	return true;
}

/* Returns true if pool a is smaller than pool b: deeper, else with less free CPU. */
static bool is_smaller(const struct rp_plan *p, uint32_t a, uint32_t b)
{
	if (p->pools[a].depth != p->pools[b].depth)
		return p->pools[a].depth > p->pools[b].depth;
	return p->room[a] < p->room[b];
}

uint32_t place_pod_pool(struct rp_instance *inst, const struct request *r)
{
	struct rp_plan *p = inst->plan;
	const struct modhost *h = &inst->h;
	struct rp_pod_info pod = {.size = sizeof pod};
	uint32_t best = NO_POOL;
	if (!p->settings.colocate_strict || h->cache->get_pod(h->ctx, r->info.pod, &pod) ||
	    !(pod.flags & RP_POD_FED) || pod.cpu_request == RP_NOT_SET)
		return NO_POOL;
	ledger_rooms(p);
	for (uint32_t i = 0; i < p->n_pools; i++) {
		int64_t cpu = p->room[i];
		int64_t mem = memalloc_available(p->mem, tree_memory(&p->pools[i], r->mem_types));
		if (add_granted(inst, r, i, &cpu, &mem) && cpu >= pod.cpu_request &&
		    mem >= pod.mem_request && (best == NO_POOL || is_smaller(p, i, best)))
			best = i;
	}
	if (best != NO_POOL)
		modhost_note(h, r->info.ctr, "its pod requests %lldm in all: within %s",
			     (long long)pod.cpu_request, p->pools[best].name);
	return best;
}
