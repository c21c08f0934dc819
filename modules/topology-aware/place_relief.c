/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation relief (relief.h): moves containers to other NUMA nodes so that a container with
 * exclusive CPUs fits into one node instead of several. Moved containers are placed again with the
 * normal rules. The moves are undone unless each of these containers is in one node and no memory
 * of other containers moved.
 */
#include <string.h>

#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"

struct relief_plan {
	struct rp_instance *inst;
	const struct rp_ctr_info *asks; /* the container that needs room */
	struct relief_question q; /* keys are handles of containers */
	uint32_t pools[RELIEF_UNITS_MAX]; /* index of the pool of each unit */
	struct grant *grants[RELIEF_MOVES_MAX]; /* previous grant of each moved container */
	int n_zone[RELIEF_MOVES_MAX]; /* number of memory nodes of each of these grants */
};

/* ---- units and items ------------------------------------------------------------------------- */

static int64_t request_size(const struct request *r)
{
	return 1000 * r->full + r->fraction;
}

static bool is_unit(const struct rp_plan *p, uint32_t pool)
{
	uint32_t parent = p->pools[pool].parent;
	return __builtin_popcountll(p->pools[pool].nodes) == 1 &&
	       (parent == NO_POOL || __builtin_popcountll(p->pools[parent].nodes) > 1);
}

static void find_units(struct rp_plan *p, const struct request *r, struct relief_plan *ret)
{
	ledger_rooms(p);
	ledger_slices(p);
	struct relief_question *q = &ret->q;
	q->n_units = 0;
	for (uint32_t i = 0; i < p->n_pools; i++) {
		uint32_t n;
		p->pools[i].unit = RELIEF_UNITS_MAX;
		if (!is_unit(p, i) || q->n_units == RELIEF_UNITS_MAX)
			continue;
		for (uint32_t k = p->pools[i].first; k <= i; k++)
			p->pools[k].unit = q->n_units;
		(void)ledger_sliceable(p, i, &n);
		int64_t free = p->room[i], whole = 1000 * (int64_t)n + r->fraction;
		free = r->full && whole < free ? whole : free;
		ret->pools[q->n_units] = i;
		q->units[q->n_units++].free = free > 0 ? free : 0;
	}
}

static bool has_isolated(const struct rp_plan *p, const struct grant *g)
{
	return g->exclusive && rp_ids_overlap(cpus_ids(g->exclusive), rp_ids_of(&p->isolated));
}

static void place_relief_offer(void *ctx, struct relief_question *q)
{
	const struct relief_plan *m = ctx;
	const struct rp_plan *p = m->inst->plan;
	const struct ledger *l = &m->inst->ledger;
	for (uint32_t i = 0; i < l->n_grants; i++) {
		const struct ledger_size *s = &l->sizes[i];
		uint32_t unit = p->pools[s->pool].unit;
		if (s->size && s->ctr != m->asks->ctr && unit < q->n_units)
			relief_offer_cost(q, unit, s->size, s->cost, s->ctr);
	}
}

/* Returns the units whose affinity is at least that of a pool, as bits; plan.affinity is set. */
static uint64_t units_as_near(const struct relief_plan *m, const struct request *r, uint32_t pool)
{
	const struct rp_plan *p = m->inst->plan;
	uint64_t units = r->weighted ? 0 : UINT64_MAX;
	for (uint32_t i = 0; r->weighted && i < m->q.n_units; i++)
		if (p->affinity[m->pools[i]] >= p->affinity[pool])
			units |= UINT64_C(1) << i;
	return units;
}

/* Returns true if the container has an affinity to another one in the unit; plan.affinity is set.
 */
static bool is_near_another(const struct relief_plan *m, const struct request *r, uint32_t unit)
{
	const struct rp_plan *p = m->inst->plan;
	uint32_t pool = m->pools[unit], parent = p->pools[pool].parent;
	return r->weighted && p->affinity[pool] > affinity_of_ancestors(p, parent);
}

/* Returns true if the configuration places a container near the one that needs room. */
static bool is_colocated(const struct relief_plan *m, const struct rp_ctr_info *info)
{
	const struct settings *s = &m->inst->plan->settings;
	return (s->colocate_pods && info->pod == m->asks->pod) ||
	       (s->colocate_namespaces && strcmp(info->pod_namespace, m->asks->pod_namespace) == 0);
}

/* Names the units to which colocation lets a container move. */
static bool place_relief_accept(void *ctx, uint64_t key, struct relief_item *ret)
{
	const struct relief_plan *m = ctx;
	struct rp_instance *inst = m->inst;
	struct rp_ctr_info info = {.size = sizeof info};
	if (ctr_info(&inst->h, key, &info) || is_colocated(m, &info))
		return false;
	struct request r = request_of(inst, &info);
	if (affinity_weigh(inst, &r) || is_near_another(m, &r, ret->unit))
		return false;
	ret->allowed = units_as_near(m, &r, m->pools[ret->unit]);
	return true;
}

static bool place_relief_may_move(void *ctx, uint64_t key)
{
	struct rp_instance *inst = ((struct relief_plan *)ctx)->inst;
	const struct grant *g = ledger_find(inst, key);
	struct rp_ctr_info info = {.size = sizeof info};
	if (has_isolated(inst->plan, g) || ctr_info(&inst->h, g->ctr, &info) ||
	    !relief_may_move(&inst->h, &inst->plan->settings.relief, &inst->relief.moved, &info,
			     g->exclusive != NULL))
		return false;
	struct request r = request_of(inst, &info);
	return !affinity_weigh(inst, &r) && !r.selective;
}

/*
 * Finds the moves that free one node for a container without grant in the ledger. The node must
 * have as much affinity as pool `from`, where the container would be placed without moves. Returns
 * 0, or -RP_ENOSPC if there are none.
 */
static int32_t find_moves(struct rp_instance *inst, struct request *r, uint32_t from,
			  uint32_t max_moves, struct relief_plan *ret)
{
	const struct settings *s = &inst->plan->settings;
	ret->inst = inst;
	ret->asks = &r->info;
	ret->q.ctx = ret;
	ret->q.offer = place_relief_offer;
	ret->q.accept = s->colocate_pods || s->colocate_namespaces ? place_relief_accept : NULL;
	ret->q.may_move = place_relief_may_move;
	find_units(inst->plan, r, ret);
	int32_t n = affinity_weigh(inst, r);
	if (n)
		return n;
	n = relief_ask(&ret->q, request_size(r), units_as_near(ret, r, from), max_moves);
	return n < 0 ? n : 0;
}

/* ---- moving ---------------------------------------------------------------------------------- */

/* Returns the smallest sufficient pool at or below the pool `unit`, or NO_POOL. */
static uint32_t find_within(struct rp_instance *inst, const struct request *r, uint32_t unit)
{
	struct rp_plan *p = inst->plan;
	struct request asked = *r;
	if (asked.pod_pool == NO_POOL)
		asked.pod_pool = place_pod_pool(inst, r);
	score_begin(p, r);
	for (uint32_t i = p->pools[unit].first; i <= unit; i++) {
		struct score s;
		score_pool(inst, &asked, i, &s);
		if (score_sufficient(&asked, &s))
			return i;
	}
	return NO_POOL;
}

/*
 * Places a container in a unit without moving the memory of other containers. Returns 0,
 * -RP_ENOSPC, or another error.
 */
static int32_t place_within(struct rp_instance *inst, struct request *r, uint32_t unit,
			    struct grant **ret)
{
	const struct rp_plan *p = inst->plan;
	uint32_t n_moved = inst->n_moved;
	int32_t e = affinity_weigh(inst, r);
	if (e)
		return e;
	r->pool_hint = find_within(inst, r, unit);
	if (r->pool_hint == NO_POOL || r->strict_isolated || r->selective)
		return -RP_ENOSPC;
	r->hint_suffices = true;
	e = place(inst, r, ret);
	if (e)
		return e;
	return pool_is_within(p, (*ret)->pool, unit) && inst->n_moved == n_moved ? 0 : -RP_ENOSPC;
}

/* Returns the number of memory nodes of a container; 0: its memory is not accounted. */
static int place_relief_n_zone(const struct rp_instance *inst, rp_ctr ctr)
{
	memalloc_mask zone;
	return memalloc_zone(inst->plan->mem, ctr, &zone) ? 0 : __builtin_popcountll(zone);
}

/*
 * Places a container at the target of its move and stages it. Returns -RP_ENOSPC if it does not get
 * the same amounts there, or needs more memory nodes.
 */
static int32_t move_item(struct rp_instance *inst, rp_txn txn, const struct relief_plan *m,
			 uint32_t at, const struct rp_ctr_info *other)
{
	const struct rp_plan *p = inst->plan;
	const struct relief_move *move = &m->q.moves[at];
	const struct grant *old = m->grants[at];
	struct rp_ctr_info info = {.size = sizeof info};
	struct request r;
	struct grant *g;
	int32_t e = ctr_info(&inst->h, old->ctr, &info);
	if (!e)
		e = request_read(inst, &info, old->hints, &r);
	if (e)
		return -RP_ENOSPC;
	r.mem_types = old->mem_types;
	r.cold_ms = 0;
	e = place_within(inst, &r, m->pools[move->to], &g);
	if (!e && (r.full != (int64_t)cpus_count(old->exclusive) || r.fraction != old->portion ||
		   place_relief_n_zone(inst, old->ctr) > m->n_zone[at]))
		e = -RP_ENOSPC;
	if (!e)
		e = stage_grant(inst, txn, g);
	request_fini(&r);
	if (e)
		return e;
	relief_note_move(&inst->h, &inst->relief.moved, old->ctr);
	inst->relief.n_noted++;
	inst->relief.counters.moved++;
	relief_note_moved(&inst->h, old->ctr, p->pools[m->pools[m->q.items[move->item].unit]].id,
			  p->pools[m->pools[move->to]].id, other);
	return 0;
}

static int32_t apply_moves(struct rp_instance *inst, rp_txn txn, struct request *r,
			   struct relief_plan *m, struct grant **ret)
{
	int32_t e = ledger_reserve(inst, 2 * (RELIEF_MOVES_MAX + 1));
	if (e)
		return e;
	for (uint32_t i = 0; i < m->q.n_moves; i++) {
		m->grants[i] = ledger_find(inst, m->q.keys[m->q.moves[i].item]);
		m->n_zone[i] = place_relief_n_zone(inst, m->grants[i]->ctr);
		place_release(inst, m->grants[i]);
	}
	e = place_within(inst, r, m->pools[m->q.unit], ret);
	for (uint32_t i = 0; !e && i < m->q.n_moves; i++)
		e = move_item(inst, txn, m, i, &r->info);
	if (e)
		return e;
	inst->relief.counters.placed++;
	relief_note_placed(&inst->h, r->info.ctr, inst->plan->pools[m->pools[m->q.unit]].id,
			   m->q.n_moves);
	return 0;
}

/* ---- containers that need relief ------------------------------------------------------------- */

/*
 * Returns true if a container with exclusive CPUs is spread over NUMA nodes although it fits into
 * one.
 */
static bool is_spread(const struct rp_plan *p, const struct grant *g)
{
	struct rp_idset nodes;
	if (!g->exclusive || g->type != GRANT_NORMAL ||
	    (g->portion && __builtin_popcountll(p->pools[g->pool].nodes) < 2))
		return false;
	machine_nodes_of(p->machine, cpus_ids(g->exclusive), &nodes);
	if (!g->portion && rp_ids_count(rp_ids_of(&nodes)) < 2)
		return false;
	for (uint32_t i = 0; i < p->n_pools; i++)
		if (is_unit(p, i) && 1000 * (int64_t)p->pools[i].n_cap_sharable >= grant_size(g))
			return true;
	return false;
}

int32_t relief_at_admission(struct rp_instance *inst, rp_txn txn, struct request *r,
			    const struct place_mark *before, struct grant **ret)
{
	const struct relief_settings *s = &inst->plan->settings.relief;
	if (!s->moves || !is_spread(inst->plan, *ret))
		return 0;
	if (s->at != RELIEF_ADMISSION) {
		inst->relief.waits = true;
		modhost_note_line(&inst->h, r->info.ctr, "waits for room in one NUMA node");
		return 0;
	}
	struct relief_plan m;
	struct request fresh = *r;
	uint32_t from = (*ret)->pool;
	place_return(inst, before);
	int32_t e = find_moves(inst, r, from, s->moves, &m);
	if (!e)
		e = apply_moves(inst, txn, r, &m, ret);
	if (e != -RP_ENOSPC)
		return e;
	*r = fresh;
	inst->relief.waits = true;
	inst->relief.counters.failed++;
	place_return(inst, before);
	e = place(inst, r, ret);
	if (!e)
		modhost_note_line(&inst->h, r->info.ctr, "waits for room in one NUMA node");
	return e;
}

/*
 * Moves containers for one that waits for a single NUMA node. Returns the number of moved
 * containers, including the waiting one, or an error.
 */
static int32_t place_relief_do_help(struct rp_instance *inst, rp_txn txn, rp_ctr ctr,
				    uint32_t moves)
{
	struct rp_plan *p = inst->plan;
	struct rp_ctr_info info = {.size = sizeof info};
	struct grant *g, *old = ledger_find(inst, ctr);
	struct request r;
	if (!old || grant_is_fixed(old) || has_isolated(p, old) || !is_spread(p, old) ||
	    ctr_info(&inst->h, ctr, &info))
		return 0;
	inst->relief.waits = true;
	if (info.state == RP_STATE_CREATING || info.state == RP_STATE_EXITED ||
	    !relief_may_be_moved(&inst->h, &p->settings.relief, &info, true) ||
	    request_read(inst, &info, old->hints, &r))
		return 0;
	if (r.cold_ms) /* the cold start has ended */
		r.mem_types = old->mem_types;
	r.cold_ms = 0;
	const struct place_mark before = place_mark(inst);
	struct relief_plan m;
	int32_t e = ledger_reserve(inst, 1);
	if (!e) {
		place_begin_memory(inst);
		place_release(inst, old);
		e = find_moves(inst, &r, old->pool, moves, &m);
	}
	if (!e)
		e = apply_moves(inst, txn, &r, &m, &g);
	if (!e)
		e = stage_grant(inst, txn, g);
	request_fini(&r);
	inst->resync = true;
	if (e == -RP_ENOSPC) {
		inst->relief.counters.failed++;
		place_return(inst, &before);
		return 0;
	}
	return e ? e : (int32_t)m.q.n_moves + 1;
}

struct relief_walk {
	struct rp_instance *inst;
	rp_txn txn;
};

static int32_t place_relief_help_one(void *ctx, uint32_t i, uint32_t moves)
{
	const struct relief_walk *w = ctx;
	return place_relief_do_help(w->inst, w->txn, w->inst->relief.list.ctrs[i], moves);
}

int32_t relief_help_waiting(struct rp_instance *inst, rp_txn txn, uint64_t budget)
{
	struct relief_walk w = {inst, txn};
	struct relief *r = &inst->relief;
	int32_t n = r->waits ? ctr_list(&inst->h, &r->list, RP_ORDER_SYNC) : 0;
	return n < 0 ? n : relief_each(r, (uint32_t)n, budget, place_relief_help_one, &w);
}
