/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "modules/lib/zones.h"
#include "modules/podpools/podpools.h"

#define ATTRIBUTE_MAX (POOL_NAME_MAX + 16u)

/* Each pool is an attribute of the nodes. Nothing is ever full. */
static int32_t report_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	if (!p)
		return 0;
	struct zones_set *sets = calloc(p->n_pools, sizeof *sets);
	char(*names)[ATTRIBUTE_MAX] = calloc(p->n_pools, sizeof *names);
	for (uint32_t i = 0; sets && names && i < p->n_pools; i++) {
		char name[POOL_NAME_MAX];
		pool_name(&p->pools[i], name, sizeof name);
		(void)snprintf(names[i], sizeof names[i], "%s cpuset", name);
		sets[i] = (struct zones_set){names[i], rp_ids_of(&p->pools[i].cpus)};
	}
	bool good = sets && names;
	if (good)
		zones_nodes(&inst->h, sink, rp_ids_of(&p->available), rp_ids_of(&p->available),
			    sets, p->n_pools);
	free(sets);
	free(names);
	return good ? 0 : -RP_ENOMEM;
}

const struct rp_zones podpools_zones = {.size = sizeof(struct rp_zones), .zones = report_zones};

static int32_t report_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	for (uint32_t i = 0; p && i < p->n_pools; i++) {
		const struct pool *pool = &p->pools[i];
		char labels[2 * POOL_NAME_MAX];
		(void)snprintf(labels, sizeof labels, "pool=\"%s\",instance=\"%u\"", pool->name,
			       pool->instance);
		sink->gauge(sink->ctx, "policy_podpools_pods", "Pods in a pool.", labels,
			    pool->n_pods);
		sink->gauge(sink->ctx, "policy_podpools_cpus", "CPUs of a pool.", labels,
			    rp_ids_count(rp_ids_of(&pool->cpus)));
	}
	if (!p)
		return 0;
	sink->counter(sink->ctx, "policy_podpools_placed_total", "Containers placed.", "",
		      (double)inst->placed);
	sink->counter(sink->ctx, "policy_podpools_overflows_total",
		      "Pods for which there was no room in the pools that they named.", "",
		      (double)inst->overflowed);
	return 0;
}

const struct rp_metrics podpools_metrics = {.size = sizeof(struct rp_metrics),
					    .collect = report_metrics};
