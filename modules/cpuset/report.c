/* SPDX-License-Identifier: Apache-2.0 */
/* What others see of the policy: a zone for each NUMA node, and metrics. */
#include <stdio.h>

#include "modules/cpuset/cpuset.h"

#define ZONE_NAME_MAX 32u

static void zone_name(uint32_t node, char buf[ZONE_NAME_MAX])
{
	(void)snprintf(buf, ZONE_NAME_MAX, "NUMA node #%u", node);
}

static void attribute(const struct rp_zone_sink *sink, const char *name, struct rp_ids cpus,
		      struct rp_ids of)
{
	char text[RP_IDSET_TEXT_MAX];
	struct rp_idset part;
	rp_idset_and(&part, cpus, of);
	(void)rp_ids_format(rp_ids_of(&part), text, sizeof text);
	sink->attribute(sink->ctx, name, text);
}

static void report_zone(struct rp_instance *inst, const struct rp_zone_sink *sink,
			const struct rp_unit_info *node)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	struct rp_idset pool, free;
	char name[ZONE_NAME_MAX];
	books_pool(inst, &pool);
	rp_idset_andnot(&free, rp_ids_of(&pool), rp_ids_of(&p->reserved));
	zone_name(node->id, name);
	sink->zone(sink->ctx, name, "numa node", "");
	sink->resource(sink->ctx, "cpu", 1000 * (int64_t)rp_ids_count(node->cpus),
		       1000 * (int64_t)rp_ids_count_and(node->cpus, rp_ids_of(&p->allowed)),
		       1000 * (int64_t)rp_ids_count_and(node->cpus, rp_ids_of(&free)));
	attribute(sink, "cpuset", node->cpus, node->cpus);
	attribute(sink, "annotated cpuset", rp_ids_of(&inst->books.named), node->cpus);
	attribute(sink, "integer cpuset", rp_ids_of(&inst->books.owned), node->cpus);
	attribute(sink, "shared cpuset", rp_ids_of(&pool), node->cpus);
	attribute(sink, "reserved cpuset", rp_ids_of(&p->reserved), node->cpus);
	for (uint32_t i = 0; i < h->topology->n_units(h->ctx, RP_LEVEL_NODE); i++) {
		struct rp_unit_info other = {.size = sizeof other};
		char text[ZONE_NAME_MAX];
		if (h->topology->unit(h->ctx, RP_LEVEL_NODE, i, &other))
			continue;
		uint32_t d = h->topology->distance(h->ctx, node->id, other.id);
		zone_name(other.id, text);
		if (d)
			sink->cost(sink->ctx, text, d);
	}
}

static int32_t report_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	const struct modhost *h = &inst->h;
	for (uint32_t i = 0; inst->plan && i < h->topology->n_units(h->ctx, RP_LEVEL_NODE); i++) {
		struct rp_unit_info node = {.size = sizeof node};
		if (!h->topology->unit(h->ctx, RP_LEVEL_NODE, i, &node) && !rp_ids_empty(node.cpus))
			report_zone(inst, sink, &node);
	}
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
