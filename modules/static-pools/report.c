/* SPDX-License-Identifier: Apache-2.0 */
/* Reports zones and metrics of the pools. */
#include <stdio.h>

#include <nri-rp/lib/zones.h>
#include "modules/static-pools/static-pools.h"

int32_t static_pools_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset exclusive, shared, all, free;
	rp_idset_clear(&exclusive);
	rp_idset_clear(&shared);
	rp_idset_clear(&free);
	for (uint32_t i = 0; i < p->n_pools; i++) {
		const struct pool *pool = &p->pools[i];
		struct rp_idset *set = pool->exclusive ? &exclusive : &shared;
		for (uint32_t k = pool->first; k < pool->first + pool->n; k++) {
			struct rp_ids cpus = rp_ids_of(&p->lists[k].cpus);
			rp_idset_or(set, rp_ids_of(set), cpus);
			if (!pool->exclusive || !p->lists[k].users)
				rp_idset_or(&free, rp_ids_of(&free), cpus);
		}
	}
	rp_idset_or(&all, rp_ids_of(&exclusive), rp_ids_of(&shared));
	const struct zones_set sets[] = {{"exclusive cpuset", rp_ids_of(&exclusive)},
					 {"shared cpuset", rp_ids_of(&shared)}};
	zones_nodes(&inst->h, sink, rp_ids_of(&all), rp_ids_of(&free), sets,
		    sizeof sets / sizeof *sets);
	return 0;
}

int32_t static_pools_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	for (uint32_t i = 0; i < p->n_pools; i++) {
		const struct pool *pool = &p->pools[i];
		char labels[2 * NAME_MAX_LEN];
		uint32_t used = 0;
		for (uint32_t k = pool->first; k < pool->first + pool->n; k++)
			used += p->lists[k].users != 0;
		(void)snprintf(labels, sizeof labels, "pool=\"%s\"", pool->name);
		sink->gauge(sink->ctx, "policy_static_pools_lists", "CPU lists of a pool.", labels,
			    pool->n);
		sink->gauge(sink->ctx, "policy_static_pools_lists_used",
			    "CPU lists of a pool that are assigned to containers.", labels, used);
	}
	sink->counter(sink->ctx, "policy_static_pools_placed_total", "Containers placed.", "",
		      (double)inst->placed);
	sink->counter(sink->ctx, "policy_static_pools_refused_total", "Containers refused.", "",
		      (double)inst->refused);
	return 0;
}
