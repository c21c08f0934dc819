/* SPDX-License-Identifier: Apache-2.0 */
/* What others see of the policy: a zone for each NUMA node, and metrics. */
#include <stdio.h>

#include "modules/cpuset/cpuset.h"
#include "modules/lib/zones.h"

static int32_t report_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset pool, free;
	if (!p)
		return 0;
	books_pool(inst, &pool);
	rp_idset_andnot(&free, rp_ids_of(&pool), rp_ids_of(&p->reserved));
	const struct zones_set sets[] = {
		{"annotated cpuset", rp_ids_of(&inst->books.named)},
		{"integer cpuset", rp_ids_of(&inst->books.owned)},
		{"shared cpuset", rp_ids_of(&pool)},
		{"reserved cpuset", rp_ids_of(&p->reserved)},
	};
	zones_nodes(&inst->h, sink, rp_ids_of(&p->allowed), rp_ids_of(&free), sets,
		    sizeof sets / sizeof *sets);
	return 0;
}

const struct rp_zones cpuset_zones = {.size = sizeof(struct rp_zones), .zones = report_zones};

static int32_t report_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	struct rp_idset pool;
	char labels[32];
	if (!inst->plan)
		return 0;
	books_pool(inst, &pool);
	const struct rp_idset *const sets[N_CLASSES] = {&pool, &inst->books.owned,
							&inst->books.named};
	for (uint32_t i = 0; i < N_CLASSES; i++) {
		(void)snprintf(labels, sizeof labels, "class=\"%s\"", class_names[i]);
		sink->gauge(sink->ctx, "policy_cpuset_cpus",
			    "CPUs by the class of their containers.", labels,
			    rp_ids_count(rp_ids_of(sets[i])));
		sink->gauge(sink->ctx, "policy_cpuset_containers", "Containers by class.", labels,
			    inst->books.n[i]);
		sink->counter(sink->ctx, "policy_cpuset_placed_total", "Containers placed.", labels,
			      (double)inst->counters.placed[i]);
	}
	sink->counter(sink->ctx, "policy_cpuset_moved_total",
		      "Integer containers moved for pods that named their CPUs.", "",
		      (double)inst->counters.moved);
	sink->counter(sink->ctx, "policy_cpuset_refused_total", "Containers refused.", "",
		      (double)inst->counters.refused);
	return 0;
}

const struct rp_metrics cpuset_metrics = {.size = sizeof(struct rp_metrics),
					  .collect = report_metrics};
