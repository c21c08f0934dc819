/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "modules/dynamic-pools/dynamic-pools.h"

static int32_t report_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	struct pools_zone zones[POOLS_MAX];
	struct rp_idset spare;
	if (!p)
		return 0;
	for (uint32_t i = 0; i < p->n; i++) {
		(void)snprintf(zones[i].label, sizeof zones[i].label, "%s", p->types[i].name);
		zones[i].cpus = rp_ids_of(&p->pools[i].cpus);
	}
	size_spare(p, &spare);
	return pools_zones(&inst->h, &p->bounds, sink, rp_ids_of(&spare), zones, p->n);
}

const struct rp_zones dynpools_zones = {.size = sizeof(struct rp_zones), .zones = report_zones};

static int32_t report_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	for (uint32_t i = 0; p && i < p->n; i++) {
		const struct pool *pool = &p->pools[i];
		char labels[POOLS_LABEL_MAX];
		const struct {
			const char *name, *help;
			double value;
		} rows[] = {
			{"policy_dynamic_pools_cpus", "CPUs of a pool.",
			 rp_ids_count(rp_ids_of(&pool->cpus))},
			{"policy_dynamic_pools_containers", "Containers in a pool.", pool->n_ctrs},
			{"policy_dynamic_pools_requests", "Milli-CPU that they ask for.",
			 (double)pool->mcpu},
			{"policy_dynamic_pools_weight",
			 "Milli-CPU that they used when the pools were rebalanced last.",
			 (double)pool->weight},
		};
		(void)snprintf(labels, sizeof labels, "pool=\"%s\"", p->types[i].name);
		for (uint32_t k = 0; k < sizeof rows / sizeof *rows; k++)
			sink->gauge(sink->ctx, rows[k].name, rows[k].help, labels, rows[k].value);
	}
	if (!p)
		return 0;
	sink->counter(sink->ctx, "policy_dynamic_pools_placed_total", "Containers placed.", "",
		      (double)inst->placed);
	sink->counter(sink->ctx, "policy_dynamic_pools_refused_total",
		      "Containers for which there were not enough CPUs.", "",
		      (double)inst->refused);
	sink->counter(sink->ctx, "policy_dynamic_pools_resizes_total",
		      "Times that pools got other CPUs.", "", (double)inst->resized);
	return 0;
}

const struct rp_metrics dynpools_metrics = {.size = sizeof(struct rp_metrics),
					    .collect = report_metrics};
