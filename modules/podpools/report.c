/* SPDX-License-Identifier: Apache-2.0 */
/* Reports zones and metrics of the pools. */
#include <stdio.h>
#include <stdlib.h>

#include "modules/podpools/podpools.h"

/* Reports a zone for each pool. All available CPUs are reported as free, because pods can always
 * be placed. */
int32_t podpools_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	struct pools_zone *zones = calloc(p->n_pools, sizeof *zones);
	if (!zones)
		return -RP_ENOMEM;
	for (uint32_t i = 0; i < p->n_pools; i++) {
		/* The reserved pool has one instance, and the same zone name in all policies. */
		if (i == POOL_RESERVED)
			(void)snprintf(zones[i].label, sizeof zones[i].label, "%s",
				       p->pools[i].name);
		else
			pool_name(&p->pools[i], zones[i].label, sizeof zones[i].label);
		zones[i].cpus = rp_ids_of(&p->pools[i].cpus);
	}
	int32_t r = pools_zones(&inst->h, &p->bounds, sink, rp_ids_of(&p->bounds.cpus.available),
				zones, p->n_pools);
	free(zones);
	return r;
}

int32_t podpools_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	for (uint32_t i = 0; i < p->n_pools; i++) {
		const struct pool *pool = &p->pools[i];
		char labels[2 * POOLS_LABEL_MAX];
		(void)snprintf(labels, sizeof labels, "pool=\"%s\",instance=\"%u\"", pool->name,
			       pool->instance);
		sink->gauge(sink->ctx, "policy_podpools_pods", "Pods in a pool.", labels,
			    pool->n_pods);
		sink->gauge(sink->ctx, "policy_podpools_cpus", "CPUs of a pool.", labels,
			    rp_ids_count(rp_ids_of(&pool->cpus)));
	}
	sink->counter(sink->ctx, "policy_podpools_placed_total", "Containers placed.", "",
		      (double)inst->placed);
	sink->counter(sink->ctx, "policy_podpools_overflows_total",
		      "Pods for which the pool they named had no room.", "",
		      (double)inst->overflowed);
	return 0;
}
