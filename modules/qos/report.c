/* SPDX-License-Identifier: Apache-2.0 */
/* Zones, allocatable CPUs, memory by node, and metrics. */
#include <nri-rp/lib/zones.h>
#include "modules/qos/qos.h"

int32_t qos_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	const struct pools *pools = &inst->pools;
	struct rp_idset shared;
	rp_idset_clear(&shared);
	for (uint32_t i = 0; i < pools->n; i++)
		rp_idset_or(&shared, rp_ids_of(&shared), rp_ids_of(&pools->list[i].cpus));
	const struct zones_set sets[] = {
		{"shared cpuset", rp_ids_of(&shared)},
		{"reclaimed cpuset", rp_ids_of(&pools->reclaim)},
		{"dedicated cpuset", rp_ids_of(&inst->owners.taken)},
		{"reserved cpuset", rp_ids_of(&inst->plan->reserved)},
	};
	zones_nodes(&inst->h, sink, rp_ids_of(&inst->plan->pool), rp_ids_of(&pools->open), sets,
		    sizeof sets / sizeof *sets);
	return 0;
}

void report_allocatable(const struct rp_instance *inst, struct rp_idset *ret)
{
	*ret = inst->plan->pool;
}

int32_t report_memory(struct rp_instance *inst, rp_ctr ctr, const struct rp_memory_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	const struct entry *e = table_find(inst, ctr);
	uint64_t parts[NODES_MAX];
	if (!e || !e->is.mem_nodes)
		return 0;
	room_memory_of(inst, e, parts);
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (parts[i])
			sink->part(sink->ctx, p->nodes[i].id, parts[i]);
	return 0;
}

/* Writes the label of a pool. Names come from annotations: characters that a label cannot have are
 * replaced by '_'. */
static void report_label(const char *name, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "pool=\"");
	for (; *name && n + 2 < size; name++)
		buf[n++] = (char)(*name == '"' || *name == '\\' || *name < ' ' ? '_' : *name);
	(void)snprintf(buf + n, size - n, "\"");
}

static void report_pool(const struct rp_metric_sink *sink, const char *name, struct rp_ids cpus)
{
	char text[POOL_TEXT_MAX + 16];
	report_label(name, text, sizeof text);
	sink->gauge(sink->ctx, "policy_qos_pool_cpus", "CPUs of pools.", text, rp_ids_count(cpus));
}

static void report_pools(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	const struct pools *pools = &inst->pools;
	char name[POOL_TEXT_MAX], text[POOL_TEXT_MAX + 16];
	report_pool(sink, "reserve", rp_ids_of(&inst->plan->reserved));
	report_pool(sink, "reclaim", rp_ids_of(&pools->reclaim));
	report_pool(sink, "dedicated", rp_ids_of(&inst->owners.taken));
	for (uint32_t i = 0; i < pools->n; i++)
		report_pool(sink, pool_text(&pools->list[i], name),
			    rp_ids_of(&pools->list[i].cpus));
	for (uint32_t i = 0; i < pools->n; i++) {
		report_label(pool_text(&pools->list[i], name), text, sizeof text);
		sink->gauge(sink->ctx, "policy_qos_pool_requests",
			    "Milli-CPU requested by the pods of a pool.", text,
			    (double)pools->list[i].request);
	}
}

static void report_advice(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	char text[POOL_TEXT_MAX + 16];
	for (uint32_t i = 0; i < inst->n_advice; i++) {
		const struct advice *a = &inst->advice[i];
		report_label(a->pool, text, sizeof text);
		sink->gauge(sink->ctx, "policy_qos_advisor_wanted_cpus",
			    "CPUs that the advisor wants a pool to have.", text, a->wanted);
		if (a->used != RP_NOT_SET)
			sink->gauge(sink->ctx, "policy_qos_advisor_used",
				    "Milli-CPU in use in a pool.", text, (double)a->used);
	}
}

int32_t qos_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	static const char *const reasons[N_REFUSALS] = {
		[REFUSED_LEVEL] = "level", [REFUSED_CPU] = "cpu",     [REFUSED_MEMORY] = "memory",
		[REFUSED_HINTS] = "hints", [REFUSED_OTHER] = "other",
	};
	char text[48];
	uint32_t n_lost = 0;
	report_pools(inst, sink);
	report_advice(inst, sink);
	relief_report(&inst->relief.counters, sink);
	for (uint32_t i = 0; i < N_LEVELS; i++) {
		(void)snprintf(text, sizeof text, "level=\"%s\"", level_names[i]);
		sink->counter(sink->ctx, "policy_qos_placed_total", "Containers placed.", text,
			      (double)inst->counters.placed[i]);
	}
	for (uint32_t i = 0; i < N_REFUSALS; i++) {
		(void)snprintf(text, sizeof text, "reason=\"%s\"", reasons[i]);
		sink->counter(sink->ctx, "policy_qos_refused_total", "Pods and containers refused.",
			      text, (double)inst->counters.refused[i]);
	}
	for (uint32_t i = 0; i < inst->table.n; i++)
		n_lost += (inst->table.list[i]->is.flags & ASK_LOST) != 0;
	sink->gauge(sink->ctx, "policy_qos_lost",
		    "Containers without the resources of their level.", "", n_lost);
	return 0;
}
