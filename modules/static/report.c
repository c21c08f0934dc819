/* SPDX-License-Identifier: Apache-2.0 */
/* What others see of the policy: a zone for each NUMA node, metrics, and the one thing that cannot live with a container. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/static/static.h"

#define ZONE_NAME_MAX 32u

/* ---- zones ------------------------------------------------------------------------------------------------------- */

struct zone_sets {
	struct rp_idset node, shared, reserved, isolated, assignable, free;
};

static void zone_name(uint32_t node, char *buf)
{
	(void)snprintf(buf, ZONE_NAME_MAX, "NUMA node #%u", node);
}

static void attribute(const struct rp_zone_sink *sink, const char *name, struct rp_ids cpus)
{
	char text[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(cpus, text, sizeof text);
	if (text[0])
		sink->attribute(sink->ctx, name, text);
}

static int64_t mcpu(const struct rp_idset *cpus)
{
	return (int64_t)rp_ids_count(rp_ids_of(cpus)) * 1000;
}

static void sets_of(const struct rp_instance *inst, const struct machine_unit *node,
		    struct zone_sets *ret)
{
	const struct rp_plan *p = inst->plan;
	struct rp_ids all;
	rp_idset_clear(&ret->node);
	machine_add_free(node, rp_ids_of(&p->machine->online), &ret->node);
	all = rp_ids_of(&ret->node);
	plan_shared(p, &inst->owners, &ret->shared);
	rp_idset_and(&ret->shared, rp_ids_of(&ret->shared), all);
	rp_idset_and(&ret->reserved, rp_ids_of(&p->reserved), all);
	rp_idset_and(&ret->isolated, rp_ids_of(&p->iso), all);
	/* What could be given away, and what of it is still there. */
	rp_idset_or(&ret->assignable, rp_ids_of(&p->all), rp_ids_of(&p->iso));
	rp_idset_and(&ret->assignable, rp_ids_of(&ret->assignable), all);
	rp_idset_andnot(&ret->assignable, rp_ids_of(&ret->assignable), rp_ids_of(&ret->reserved));
	rp_idset_andnot(&ret->free, rp_ids_of(&ret->assignable), rp_ids_of(&inst->owners.taken));
}

static void report_zone(struct rp_instance *inst, const struct rp_zone_sink *sink,
			const struct machine_unit *node)
{
	const struct modhost *h = &inst->h;
	const struct machine_level_units *nodes = &inst->plan->machine->level[MACHINE_NODE];
	struct zone_sets sets;
	char name[ZONE_NAME_MAX];
	sets_of(inst, node, &sets);
	zone_name(node->id, name);
	sink->zone(sink->ctx, name, "numa node", "");
	sink->resource(sink->ctx, "cpu", mcpu(&sets.node), mcpu(&sets.assignable),
		       mcpu(&sets.free));
	attribute(sink, "cpuset", rp_ids_of(&sets.node));
	attribute(sink, "shared cpuset", rp_ids_of(&sets.shared));
	attribute(sink, "reserved cpuset", rp_ids_of(&sets.reserved));
	attribute(sink, "isolated cpuset", rp_ids_of(&sets.isolated));
	for (uint32_t i = 0; i < nodes->n_units; i++) {
		char other[ZONE_NAME_MAX];
		uint32_t d = h->topology->distance(h->ctx, node->id, nodes->units[i].id);
		zone_name(nodes->units[i].id, other);
		if (d)
			sink->cost(sink->ctx, other, d);
	}
}

static int32_t report_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	if (!inst->plan)
		return 0;
	const struct machine_level_units *nodes = &inst->plan->machine->level[MACHINE_NODE];
	for (uint32_t i = 0; i < nodes->n_units; i++)
		report_zone(inst, sink, &nodes->units[i]);
	return 0;
}

const struct rp_zones static_zones = {.size = sizeof(struct rp_zones), .zones = report_zones};

/* ---- metrics ----------------------------------------------------------------------------------------------------- */

static int32_t report_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	static const char name[] = "policy_static_cpus", help[] = "CPUs by what they are used for.";
	const struct rp_plan *p = inst->plan;
	if (!p)
		return 0;
	struct rp_idset shared, isolated;
	plan_shared(p, &inst->owners, &shared);
	plan_free_isolated(p, &inst->owners, &isolated);
	const struct {
		const char *labels;
		const struct rp_idset *cpus;
	} sets[] = {
		{"set=\"shared\"", &shared},
		{"set=\"reserved\"", &p->reserved},
		{"set=\"exclusive\"", &inst->owners.taken},
		{"set=\"isolated_free\"", &isolated},
	};
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
		sink->gauge(sink->ctx, name, help, sets[i].labels,
			    rp_ids_count(rp_ids_of(sets[i].cpus)));
	sink->counter(sink->ctx, "policy_static_exclusive_placements_total",
		      "Exclusive sets given or resized.", "", (double)inst->counters.placed);
	sink->counter(sink->ctx, "policy_static_refusals_total",
		      "Containers that could not get their exclusive CPUs.", "",
		      (double)inst->counters.refused);
	return 0;
}

const struct rp_metrics static_metrics = {
	.size = sizeof(struct rp_metrics),
	.collect = report_metrics,
};

/* ---- saved state --------------------------------------------------------------------------------------------------- */

/* RESERVED. Other options would choose others for a quantity today, but after a restart nobody may move: so the choice is kept as long as its size is
 * right. */
static int32_t state_save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	struct reserve_past past = inst->remembered;
	if (inst->plan)
		plan_past(inst->plan, &past);
	*ret_size = reserve_save(&past, inst->saved);
	*ret_data = inst->saved;
	return 0;
}

static int32_t state_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	if (!reserve_load(data, size, &inst->remembered))
		return modhost_fail(&inst->h, -RP_EINVAL, "saved state is not of this version");
	return inst->plan ? plan_reserve(&inst->h, inst->plan, &inst->remembered) : 0;
}

const struct rp_state static_state = {
	.size = sizeof(struct rp_state),
	.save = state_save,
	.load = state_load,
};
