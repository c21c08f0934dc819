/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a topology zone for each NUMA node, and metrics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/zones.h>
#include "modules/static/static.h"

/* ---- zones ----------------------------------------------------------------------------------- */

int32_t static_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset shared, assignable, free;
	plan_shared(p, &inst->owners, &shared);
	/* CPUs that can become exclusive, and the free CPUs among them. */
	plan_assignable(p, &assignable);
	rp_idset_andnot(&free, rp_ids_of(&assignable), rp_ids_of(&inst->owners.taken));
	const struct zones_set sets[] = {
		{"shared cpuset", rp_ids_of(&shared)},
		{"reserved cpuset", rp_ids_of(&p->reserved)},
		{"isolated cpuset", rp_ids_of(&p->iso)},
	};
	zones_nodes(&inst->h, sink, rp_ids_of(&assignable), rp_ids_of(&free), sets,
		    sizeof sets / sizeof *sets);
	return 0;
}

/* ---- metrics --------------------------------------------------------------------------------- */

int32_t static_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	static const char name[] = "policy_static_cpus", help[] = "CPUs by use.";
	const struct rp_plan *p = inst->plan;
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
	relief_report(&inst->relief.counters, sink);
	sink->counter(sink->ctx, "policy_static_exclusive_placements_total",
		      "Exclusive sets assigned or resized.", "", (double)inst->counters.placed);
	sink->counter(sink->ctx, "policy_static_refusals_total",
		      "Containers that could not get their exclusive CPUs.", "",
		      (double)inst->counters.refused);
	return 0;
}
