/* SPDX-License-Identifier: Apache-2.0 */
/* What others see of the policy: a zone for each NUMA node, and metrics. */
#include <stdio.h>

#include "modules/cpuset/cpuset.h"
#include "modules/lib/zones.h"

static int32_t report_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset pool, free, named, owned;
	if (!p)
		return 0;
	pool_shared(inst, &pool);
	pool_of(inst, CLASS_ANNOTATED, &named);
	pool_of(inst, CLASS_INTEGER, &owned);
	rp_idset_andnot(&free, rp_ids_of(&pool), rp_ids_of(&p->reserved));
	const struct zones_set sets[] = {
		{"annotated cpuset", rp_ids_of(&named)},
		{"integer cpuset", rp_ids_of(&owned)},
		{"shared cpuset", rp_ids_of(&pool)},
		{"reserved cpuset", rp_ids_of(&p->reserved)},
	};
	zones_nodes(&inst->h, sink, rp_ids_of(&p->allowed), rp_ids_of(&free), sets,
		    sizeof sets / sizeof *sets);
	return 0;
}

const struct rp_zones cpuset_zones = {.size = sizeof(struct rp_zones), .zones = report_zones};

static int32_t count_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	struct record rec;
	uint32_t *n = w->arg;
	(void)txn;
	if (record_read(inst, info->ctr, &rec))
		n[rec.class]++;
	return 0;
}

static void count_classes(struct rp_instance *inst, uint32_t n[N_CLASSES])
{
	(void)life_walk(inst, 0,
			(struct life_walk){.each = count_one, .order = RP_ORDER_CREATED, .arg = n});
}

static int32_t report_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	struct rp_idset sets[N_CLASSES];
	uint32_t n[N_CLASSES] = {0};
	char labels[32];
	if (!inst->plan)
		return 0;
	pool_shared(inst, &sets[CLASS_SHARED]);
	pool_of(inst, CLASS_INTEGER, &sets[CLASS_INTEGER]);
	pool_of(inst, CLASS_ANNOTATED, &sets[CLASS_ANNOTATED]);
	count_classes(inst, n);
	for (uint32_t i = 0; i < N_CLASSES; i++) {
		(void)snprintf(labels, sizeof labels, "class=\"%s\"", class_names[i]);
		sink->gauge(sink->ctx, "policy_cpuset_cpus",
			    "CPUs by the class of their containers.", labels,
			    rp_ids_count(rp_ids_of(&sets[i])));
		sink->gauge(sink->ctx, "policy_cpuset_containers", "Containers by class.", labels,
			    n[i]);
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
