/* SPDX-License-Identifier: Apache-2.0 */
/* Reports zones and metrics of the pools. */
#include <stdio.h>
#include <string.h>

#include "modules/dynamic-pools/dynamic-pools.h"

/* Reports a zone for each pool. CPUs of a pool that its containers do not need are reported as
 * free. */
int32_t dynpools_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	struct rp_plan *p = inst->plan;
	struct pool small[POOLS_MAX];
	struct pools_zone zones[POOLS_MAX];
	struct rp_idset spare;
	uint32_t sizes[POOLS_MAX];
	memcpy(small, p->pools, sizeof small);
	size_needed(p, sizes);
	(void)size_apply(p, small, rp_ids_none(), sizes);
	rp_idset_copy(&spare, rp_ids_of(&p->bounds.cpus.rest));
	for (uint32_t i = 0; i < p->n; i++) {
		(void)snprintf(zones[i].label, sizeof zones[i].label, "%s", p->pools[i].name);
		zones[i].cpus = rp_ids_of(&p->pools[i].cpus);
		rp_idset_andnot(&spare, rp_ids_of(&spare), rp_ids_of(&small[i].cpus));
	}
	return pools_zones(&inst->h, &p->bounds, sink, rp_ids_of(&spare), zones, p->n);
}

static void report_pool(const struct rp_metric_sink *sink, const struct pool *pool)
{
	char labels[POOLS_LABEL_MAX];
	(void)snprintf(labels, sizeof labels, "pool=\"%s\"", pool->name);
	sink->gauge(sink->ctx, "policy_dynamic_pools_cpus", "CPUs of a pool.", labels,
		    rp_ids_count(rp_ids_of(&pool->cpus)));
	sink->gauge(sink->ctx, "policy_dynamic_pools_containers", "Containers in a pool.", labels,
		    pool->n_ctrs);
	sink->gauge(sink->ctx, "policy_dynamic_pools_requests", "Milli-CPU requested in a pool.",
		    labels, (double)pool->mcpu);
	sink->gauge(sink->ctx, "policy_dynamic_pools_weight",
		    "Milli-CPU used in a pool at the last reading.", labels, (double)pool->weight);
}

int32_t dynpools_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	for (uint32_t i = 0; i < p->n; i++)
		report_pool(sink, &p->pools[i]);
	sink->counter(sink->ctx, "policy_dynamic_pools_placed_total", "Containers placed.", "",
		      (double)inst->placed);
	sink->counter(sink->ctx, "policy_dynamic_pools_refused_total",
		      "Containers refused for lack of CPUs.", "", (double)inst->refused);
	sink->counter(sink->ctx, "policy_dynamic_pools_resizes_total",
		      "Times the CPUs of pools changed.", "", (double)inst->resized);
	return 0;
}
