/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a zone for each NUMA node, and metrics. */
#include <stdio.h>

#include "modules/cpuset/cpuset.h"
#include <nri-rp/lib/zones.h>

/* Sets *ret to the CPUs of the containers of each class. */
static void sets_of(const struct rp_instance *inst, struct rp_idset ret[N_CLASSES])
{
	pool_shared(inst, &ret[CLASS_SHARED]);
	owners_given(&inst->owners, &ret[CLASS_INTEGER]);
	rp_idset_andnot(&ret[CLASS_ANNOTATED], rp_ids_of(&inst->owners.taken),
			rp_ids_of(&ret[CLASS_INTEGER]));
}

int32_t cpuset_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset of[N_CLASSES], free;
	sets_of(inst, of);
	rp_idset_andnot(&free, rp_ids_of(&of[CLASS_SHARED]), rp_ids_of(&p->cpus.reserved));
	const struct zones_set sets[] = {
		{"annotated cpuset", rp_ids_of(&of[CLASS_ANNOTATED])},
		{"integer cpuset", rp_ids_of(&of[CLASS_INTEGER])},
		{"shared cpuset", rp_ids_of(&of[CLASS_SHARED])},
		{"reserved cpuset", rp_ids_of(&p->cpus.reserved)},
	};
	zones_nodes(&inst->h, sink, rp_ids_of(&p->cpus.available), rp_ids_of(&free), sets,
		    sizeof sets / sizeof *sets);
	return 0;
}

int32_t cpuset_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	struct rp_idset sets[N_CLASSES];
	char labels[32];
	sets_of(inst, sets);
	for (uint32_t i = 0; i < N_CLASSES; i++) {
		(void)snprintf(labels, sizeof labels, "class=\"%s\"", class_names[i]);
		sink->gauge(sink->ctx, "policy_cpuset_cpus",
			    "CPUs by the class of their containers.", labels,
			    rp_ids_count(rp_ids_of(&sets[i])));
		sink->gauge(sink->ctx, "policy_cpuset_containers", "Containers by class.", labels,
			    inst->now.n[i]);
		sink->counter(sink->ctx, "policy_cpuset_placed_total", "Containers placed.", labels,
			      (double)inst->counters.placed[i]);
	}
	sink->counter(sink->ctx, "policy_cpuset_moved_total",
		      "Integer containers moved for pods that named their CPUs.", "",
		      (double)inst->counters.moved);
	relief_report(&inst->relief.counters, sink);
	sink->counter(sink->ctx, "policy_cpuset_refused_total", "Containers refused.", "",
		      (double)inst->counters.refused);
	return 0;
}
