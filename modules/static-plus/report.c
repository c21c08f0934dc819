/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a topology zone for each NUMA node, and metrics. */
#include <stdio.h>

#include <nri-rp/lib/zones.h>
#include "modules/static-plus/static-plus.h"

int32_t plus_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset shared, usable, free;
	place_shared(inst, &shared);
	rp_idset_or(&usable, rp_ids_of(&p->pool), rp_ids_of(&p->isolated));
	rp_idset_andnot(&free, rp_ids_of(&usable), rp_ids_of(&inst->owners.taken));
	const struct zones_set sets[] = {
		{"shared cpuset", rp_ids_of(&shared)},
		{"exclusive cpuset", rp_ids_of(&inst->owners.taken)},
		{"reserved cpuset", rp_ids_of(&p->reserved)},
		{"isolated cpuset", rp_ids_of(&p->isolated)},
	};
	zones_nodes(&inst->h, sink, rp_ids_of(&usable), rp_ids_of(&free), sets,
		    sizeof sets / sizeof *sets);
	return 0;
}

int32_t plus_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	struct rp_idset shared;
	char labels[32];
	place_shared(inst, &shared);
	const struct {
		const char *labels;
		const struct rp_idset *cpus;
	} sets[] = {{"set=\"shared\"", &shared},
		    {"set=\"exclusive\"", &inst->owners.taken},
		    {"set=\"reserved\"", &inst->plan->reserved}};
	for (uint32_t i = 0; i < sizeof sets / sizeof *sets; i++)
		sink->gauge(sink->ctx, "policy_static_plus_cpus", "CPUs by use.", sets[i].labels,
			    rp_ids_count(rp_ids_of(sets[i].cpus)));
	for (uint32_t i = 0; i < N_KINDS; i++) {
		(void)snprintf(labels, sizeof labels, "kind=\"%s\"", kind_names[i]);
		sink->counter(sink->ctx, "policy_static_plus_placed_total", "Containers placed.",
			      labels, (double)inst->counters.placed[i]);
	}
	sink->gauge(sink->ctx, "policy_static_plus_shared_requests",
		    "Milli-CPU requested of the shared CPUs.", "", (double)inst->parts);
	relief_report(&inst->relief.counters, sink);
	sink->counter(sink->ctx, "policy_static_plus_refused_total",
		      "Containers that could not get exclusive CPUs.", "",
		      (double)inst->counters.refused);
	return 0;
}
