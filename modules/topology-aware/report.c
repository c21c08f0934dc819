/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a topology zone for each pool, metrics, and the notes that explain a placement. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/line.h"
#include <nri-rp/lib/text.h>
#include <nri-rp/lib/zones.h>
#include "modules/topology-aware/report.h"
#include "modules/topology-aware/topology-aware.h"

/* ---- reasons --------------------------------------------------------------------------------- */

/*
 * Writes the score of a pool in parentheses, such as "(3400m CPU left)" or "(100m CPU too few)",
 * with isolated CPUs, affinity and hints if the request has any.
 */
static void say_score(const struct rp_plan *p, const struct request *r, const struct score *s,
		      struct line *l)
{
	line_say(l, " (");
	line_number(l, s->shared < 0 ? -s->shared : s->shared);
	line_say(l, s->shared < 0 ? "m CPU too few" : "m CPU left");
	if (r->isolate && s->isolated >= 0)
		line_printf(l, ", %lld isolated CPUs left", (long long)s->isolated);
	else if (r->isolate)
		line_say(l, p->pools[s->pool].n_isolated ? ", not enough isolated CPUs"
							 : ", no isolated CPUs");
	if (r->weighted)
		line_printf(l, ", affinity %g", p->affinity[s->pool]);
	if (r->hints)
		line_printf(l, ", hints %g", s->hint_all);
	if (!s->memory->offers)
		line_say(l, ", no memory");
	line_say(l, ")");
}

void report_choice(struct rp_instance *inst, const struct request *r, const struct scoring *s)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	struct line best = {0}, second = {0};
	if (!h->explain)
		return;
	bool only = s->second.pool == NO_POOL;
	line_say(&best, "chose ");
	line_say(&best, p->pools[s->best.pool].name);
	line_say(&best, only ? ", the only pool" : " of ");
	if (!only) {
		line_number(&best, p->n_pools);
		line_say(&best, " pools");
	}
	say_score(p, r, &s->best, &best);
	modhost_note_line(h, r->info.ctr, best.text);
	if (only)
		return;
	line_say(&second, "runner-up ");
	line_say(&second, p->pools[s->second.pool].name);
	say_score(p, r, &s->second, &second);
	line_say(&second, "; rule: ");
	line_say(&second, s->rule);
	int64_t best_whole = (int64_t)s->by_best, second_whole = (int64_t)s->by_second;
	if (s->by_best != (double)best_whole || s->by_second != (double)second_whole) {
		line_printf(&second, ", %.3f against %.3f", s->by_best, s->by_second);
	} else if (best_whole != second_whole) {
		line_say(&second, ", ");
		line_number(&second, best_whole);
		line_say(&second, " against ");
		line_number(&second, second_whole);
	}
	modhost_note_line(h, r->info.ctr, second.text);
}

void report_none(struct rp_instance *inst, const struct request *r, const struct score *nearest)
{
	struct line l = {0};
	if (!inst->h.explain)
		return;
	line_printf(&l, "none of %u pools is sufficient; the nearest is %s", inst->plan->n_pools,
		    inst->plan->pools[nearest->pool].name);
	say_score(inst->plan, r, nearest, &l);
	modhost_note_line(&inst->h, r->info.ctr, l.text);
}

void report_grant(struct rp_instance *inst, const struct request *r, const struct grant *g)
{
	static const char *const kinds[N_GRANT_TYPES] = {"shared", "reserved", "untouched"};
	const struct modhost *h = &inst->h;
	struct line l = {0};
	char text[TA_TEXT_MAX];
	if (!h->explain)
		return;
	line_say(&l, inst->plan->pools[g->pool].name);
	if (!g->exclusive) {
		line_say(&l, ": ");
		line_number(&l, g->portion);
		line_say(&l, "m of its ");
		line_say(&l, kinds[g->type]);
		line_say(&l, " CPUs");
	} else {
		line_say(&l, ": exclusive CPUs ");
		line_say(&l, modhost_set_text(cpus_ids(g->exclusive), text, sizeof text));
		if (r->prio != CPUALLOC_NONE) {
			line_say(&l, ", priority ");
			line_say(&l, cpualloc_prio_names[r->prio]);
		}
		line_say(&l, g->portion ? ", and a part of its shared CPUs" : "");
	}
	modhost_note_line(h, g->ctr, l.text);
}

/* ---- zones ----------------------------------------------------------------------------------- */

/* Reports the distances from a NUMA node pool to the other NUMA node pools. */
static void report_costs(struct rp_instance *inst, const struct rp_zone_sink *sink,
			 const struct pool *pool)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	if (pool->level != RP_LEVEL_NODE)
		return;
	for (uint32_t i = 0; i < p->n_pools; i++) {
		const struct pool *other = &p->pools[i];
		uint32_t d = other->level == RP_LEVEL_NODE
				     ? h->topology->distance(h->ctx, pool->id, other->id)
				     : 0;
		if (d)
			sink->cost(sink->ctx, other->name, d);
	}
}

static void report_zone(struct rp_instance *inst, const struct rp_zone_sink *sink, uint32_t id)
{
	const struct rp_plan *p = inst->plan;
	const struct pool *pool = &p->pools[id];
	memalloc_mask mask = tree_memory(pool, MEMALLOC_ALL_TYPES);
	struct rp_idset nodes;
	int64_t cpus = 1000 * ((int64_t)pool->n_cap_sharable + pool->n_reserved);
	int64_t room = ledger_room(p, id, true), memory = memalloc_capacity(p->mem, mask);
	memalloc_ids(p->mem, mask, &nodes);
	sink->zone(sink->ctx, pool->name, tree_kind(pool),
		   pool->parent == NO_POOL ? "" : p->pools[pool->parent].name);
	sink->resource(sink->ctx, "cpu", cpus, cpus, room > 0 ? room : 0);
	sink->resource(sink->ctx, "memory", memory, memory, memalloc_available(p->mem, mask));
	zones_hugepages(&inst->h, sink, rp_ids_of(&nodes));
	zones_attribute(sink, "memory set", rp_ids_of(&nodes));
	zones_attribute(sink, "shared cpuset", plan_ids(p, pool->sharable));
	if (pool->n_reserved)
		zones_attribute(sink, "reserved cpuset", plan_ids(p, pool->reserved));
	if (pool->n_isolated)
		zones_attribute(sink, "isolated cpuset", plan_ids(p, pool->cap_isolated));
	report_costs(inst, sink, pool);
}

/*
 * Reports the descendants of a pool, children in the order of their numbers and each before its own
 * descendants.
 */
static void report_below(struct rp_instance *inst, const struct rp_zone_sink *sink, uint32_t parent)
{
	for (uint32_t i = 0; i < inst->plan->n_pools; i++) {
		if (inst->plan->pools[i].parent != parent)
			continue;
		report_zone(inst, sink, i);
		report_below(inst, sink, i);
	}
}

int32_t ta_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	report_below(inst, sink, NO_POOL);
	return 0;
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* The values of a pool that are reported as metrics, in the order of report_measure(). */
static const struct {
	const char *name, *help;
	bool with_cpus, with_mems;
} measures[] = {
	{"policy_topologyaware_zone_cpu_capacity_cores", "CPUs of the pool.", true, true},
	{"policy_topologyaware_zone_cpu_shared_capacity_cores",
	 "CPUs of the pool that are shared or reserved.", false, false},
	{"policy_topologyaware_zone_cpu_shared_assigned_cores",
	 "Shared CPU granted to containers of this pool.", false, false},
	{"policy_topologyaware_zone_cpu_shared_available_cores",
	 "Shared CPU that can still be granted.", false, false},
	{"policy_topologyaware_zone_mem_capacity_bytes", "Bytes of memory near the pool.", false,
	 true},
	{"policy_topologyaware_zone_mem_assigned_bytes",
	 "Bytes of memory near the pool granted to containers.", false, true},
	{"policy_topologyaware_zone_mem_available_bytes",
	 "Bytes of memory near the pool that can still be granted.", false, true},
	{"policy_topologyaware_zone_containers", "Containers placed in this pool.", false, false},
	{"policy_topologyaware_zone_shared_containers",
	 "Containers of the pool with a grant of shared CPU.", false, false},
};
#define N_MEASURES (sizeof measures / sizeof *measures)

static double report_measure(const struct rp_plan *p, uint32_t id, uint32_t what)
{
	const struct pool *pool = &p->pools[id];
	memalloc_mask mask = tree_memory(pool, MEMALLOC_ALL_TYPES);
	uint32_t n_sharers = 0;
	for (const struct grant *g = pool->grants; g; g = g->pool_next)
		n_sharers += g->portion != 0;
	const double values[N_MEASURES] = {
		pool->n_cpus,
		pool->n_sharable + pool->n_reserved,
		(double)(pool->shared_own + pool->reserved_own) / 1000,
		(double)ledger_room(p, id, true) / 1000,
		(double)memalloc_capacity(p->mem, mask),
		(double)memalloc_usage(p->mem, mask),
		(double)memalloc_available(p->mem, mask),
		pool->n_grants[GRANT_NORMAL] + pool->n_grants[GRANT_RESERVED] +
			pool->n_grants[GRANT_PRESERVE],
		n_sharers,
	};
	return values[what];
}

static void measure_pool(const struct rp_plan *p, const struct rp_metric_sink *sink, uint32_t what,
			 uint32_t id, struct text *labels)
{
	const struct pool *pool = &p->pools[id];
	struct rp_idset nodes;
	text_clear(labels);
	text_label(labels, "zone", pool->name);
	if (measures[what].with_cpus)
		text_label_set(labels, "cpus", NULL, plan_ids(p, pool->cpus));
	if (measures[what].with_mems) {
		memalloc_ids(p->mem, tree_memory(pool, MEMALLOC_ALL_TYPES), &nodes);
		text_label_set(labels, "mems", NULL, rp_ids_of(&nodes));
	}
	if (!labels->failed)
		sink->gauge(sink->ctx, measures[what].name, measures[what].help, text_of(labels),
			    report_measure(p, id, what));
}

static uint32_t count_flag(const struct rp_plan *p, uint32_t flag)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->n_pools; i++)
		for (const struct grant *g = p->pools[i].grants; g; g = g->pool_next)
			n += (g->flags & flag) != 0;
	return n;
}

int32_t ta_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	const struct rp_plan *p = inst->plan;
	struct text labels = {0};
	for (uint32_t what = 0; what < N_MEASURES; what++)
		for (uint32_t i = 0; i < p->n_pools; i++)
			measure_pool(p, sink, what, i, &labels);
	text_fini(&labels);
	sink->gauge(sink->ctx, "policy_topologyaware_overflow_containers",
		    "Containers on the reserved CPUs because no shared CPU was left.", "",
		    count_flag(p, GRANT_OVERFLOW));
	sink->gauge(sink->ctx, "policy_topologyaware_misplaced_containers",
		    "Running containers that could not be placed as requested.", "",
		    count_flag(p, GRANT_MISPLACED));
	relief_report(&inst->relief.counters, sink);
	sink->counter(sink->ctx, "policy_topologyaware_placements_total", "Containers placed.", "",
		      (double)inst->counters.placed);
	sink->counter(sink->ctx, "policy_topologyaware_refusals_total",
		      "Containers and resizes refused.", "", (double)inst->counters.refused);
	sink->counter(sink->ctx, "policy_topologyaware_rebalanced_total",
		      "Containers moved to a better place.", "", (double)inst->counters.rebalanced);
	sink->counter(sink->ctx, "policy_topologyaware_resizes_total", "Requested resizes.", "",
		      (double)inst->counters.resized);
	return 0;
}
