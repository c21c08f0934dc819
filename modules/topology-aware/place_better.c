/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebalancing of running containers. A container placed on a full node may have got a wider pool,
 * more distant memory or no isolated CPUs. Rebalancing improves its placement after capacity has
 * become free.
 *
 * Each container is placed again with the normal rules and moves only if another pool suits it
 * better. Fewer containers in the other pool are a reason only for a container under CPU pressure.
 * A container moves only for its own benefit, so that moves come to an end.
 *
 * Containers that preserve CPUs or memory and containers in a cold start never move. No move pushes
 * the memory of another container to other nodes. A move changes only the number of shared CPUs of
 * other containers.
 */
#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"

#define WORK_MAX 4096u /* largest number of containers that are checked per event */
#define WORK_AFFINITY 16u /* containers matched against affinities in the time of one check */

struct attempt {
	struct rp_instance *inst;
	struct grant *old;
	struct request r;
	memalloc_mask zone; /* current memory zone of the container */
	struct place_mark before; /* state to return to if the attempt fails */
	bool spread;
	/* Target of the move. */
	uint32_t pool;
	memalloc_mask new_zone; /* new memory zone if only the memory moves; otherwise 0 */
	const char *rule;
};

/* ---- comparison ------------------------------------------------------------------------------ */

static bool is_left_alone(const struct grant *g)
{
	return g->claim || g->type == GRANT_PRESERVE ||
	       g->flags & (GRANT_PRESERVE_MEM | GRANT_COLD) ||
	       (g->type == GRANT_RESERVED && !(g->flags & GRANT_LACKS));
}

/*
 * Returns true if the grant has the amounts that the request now results in. A new configuration
 * may change the amounts.
 */
static bool is_as_asked(const struct attempt *a)
{
	return a->r.full == cpus_count(a->old->exclusive) && a->r.fraction == a->old->portion &&
	       a->r.mem_size == a->old->mem_size;
}

static bool place_better_nearer(const struct memalloc *m, const struct memalloc_request *want,
				memalloc_mask zone, memalloc_mask than)
{
	bool exact = memalloc_types(m, zone) == want->types,
	     was_exact = memalloc_types(m, than) == want->types;
	int far = __builtin_popcountll(zone & ~want->nodes),
	    was_far = __builtin_popcountll(than & ~want->nodes);
	if (exact != was_exact)
		return exact;
	return far != was_far ? far < was_far
			      : __builtin_popcountll(zone) < __builtin_popcountll(than);
}

static bool memory_is_better(struct attempt *a)
{
	const struct rp_plan *p = a->inst->plan;
	struct memalloc_request want;
	struct memalloc_offer offer;
	if (!p->settings.pin_memory || !memory_request(p, &a->r, a->old->pool, &want) ||
	    memalloc_offer(p->mem, &want, &offer) ||
	    !place_better_nearer(p->mem, &want, offer.zone, a->zone))
		return false;
	a->new_zone = offer.zone;
	a->rule = "memory nearer to its CPUs";
	return true;
}

static bool isolated_is_better(struct attempt *a, const struct score *here)
{
	a->rule = "isolated CPUs";
	return a->r.isolate && here->isolated >= 0 && score_sufficient(&a->r, here) &&
	       !rp_ids_subset(cpus_ids(a->old->exclusive), rp_ids_of(&a->inst->plan->isolated));
}

static bool reserved_is_better(struct attempt *a)
{
	const struct rp_plan *p = a->inst->plan;
	a->pool = p->root;
	a->rule = "reserved CPUs";
	return p->pools[p->root].n_reserved && ledger_reserved_room(p, p->root) >= a->r.fraction;
}

/*
 * Finds a better place for a container whose grant has been removed from the ledger. Returns false
 * if there is none.
 */
static bool place_better_look(struct attempt *a)
{
	struct rp_instance *inst = a->inst;
	struct scoring s;
	struct score here;
	if (a->r.type != GRANT_NORMAL)
		return a->r.type == GRANT_RESERVED && reserved_is_better(a);
	if (affinity_weigh(inst, &a->r))
		return false;
	score_pools(inst, &a->r, &s);
	a->pool = s.best.pool;
	if (a->old->flags & GRANT_LACKS) {
		a->rule = "it gets what it requests";
		return score_sufficient(&a->r, &s.best);
	}
	if (!is_as_asked(a))
		return false;
	score_pool(inst, &a->r, a->old->pool, &here);
	if (a->pool != a->old->pool && score_sufficient(&a->r, &s.best) &&
	    score_worth_moving(inst, &a->r, &s.best, &here, a->spread, &a->rule))
		return true;
	a->pool = a->old->pool;
	return isolated_is_better(a, &here) || memory_is_better(a);
}

/* ---- moving ---------------------------------------------------------------------------------- */

static void place_better_tell(const struct attempt *a, const struct grant *g)
{
	const struct modhost *h = &a->inst->h;
	const struct rp_plan *p = a->inst->plan;
	const char *to = p->pools[g->pool].name;
	char nodes[TA_TEXT_MAX];
	struct rp_idset was;
	if (a->new_zone) {
		memalloc_ids(p->mem, a->zone, &was);
		modhost_note(h, g->ctr,
			     "rebalanced within %s: its memory was on nodes %s; rule: %s", to,
			     modhost_set_text(rp_ids_of(&was), nodes, sizeof nodes), a->rule);
	} else {
		modhost_note(h, g->ctr, "rebalanced from %s to %s; rule: %s",
			     p->pools[a->old->pool].name, to, a->rule);
	}
}

static int32_t move_memory(struct attempt *a, struct grant **ret)
{
	struct rp_instance *inst = a->inst;
	struct memalloc_request want;
	memalloc_mask zone;
	(void)memory_request(inst->plan, &a->r, a->old->pool, &want);
	struct grant *g = grant_copy(a->old);
	if (!g)
		return modhost_no_memory(&inst->h);
	int32_t r = memalloc_allocate(inst->plan->mem, &want, &zone);
	if (r) {
		grant_free(g);
		return r;
	}
	g->mem_types = want.types;
	ledger_add(inst, g);
	*ret = g;
	return stage_note_moves(inst);
}

/*
 * Returns true if the container reached the intended pool and no memory of other containers moved.
 */
static bool came_true(const struct attempt *a, const struct grant *g)
{
	return a->inst->n_moved == a->before.n_moved && g->pool == a->pool &&
	       !(g->flags & GRANT_LACKS);
}

/*
 * Tries to move a container. Returns 1 if it moved, 0 if the caller has to undo the attempt, or an
 * error that ends the rebalancing.
 */
static int32_t place_better_attempt(struct attempt *a, rp_txn txn)
{
	struct rp_instance *inst = a->inst;
	struct grant *g;
	int32_t e = ledger_reserve(inst, 2);
	if (e)
		return e;
	(void)memalloc_zone(inst->plan->mem, a->old->ctr, &a->zone);
	place_release(inst, a->old);
	if (!place_better_look(a))
		return 0;
	a->r.pool_hint = a->r.type == GRANT_NORMAL ? a->pool : NO_POOL;
	e = a->new_zone ? move_memory(a, &g) : place(inst, &a->r, &g);
	if (e)
		return e == -RP_ENOMEM ? e : 0;
	if (!came_true(a, g))
		return 0;
	place_better_tell(a, g);
	e = stage_grant(inst, txn, g);
	return e ? e : 1;
}

/*
 * Moves a container if a better place exists and undoes a failed attempt. Returns like attempt();
 * *ret_work receives the work spent.
 */
static int32_t place_better_consider(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, bool spread,
				     uint32_t *ret_work)
{
	struct rp_ctr_info info;
	struct attempt a = {.inst = inst, .old = ledger_find(inst, ctr), .spread = spread};
	*ret_work = 0;
	if (!a.old || is_left_alone(a.old) || relief_must_stay(&inst->h, ctr) ||
	    ctr_info(&inst->h, ctr, &info) || info.state == RP_STATE_CREATING ||
	    info.state == RP_STATE_EXITED)
		return 0;
	place_begin_memory(inst);
	*ret_work = 1;
	if (request_read(inst, &info, a.old->hints, &a.r))
		return 0; /* an annotation is invalid: do not move the container */
	if (a.r.cold_ms) /* the cold start has ended */
		a.r.mem_types = a.old->mem_types;
	a.r.cold_ms = 0;
	a.before = place_mark(inst);
	int32_t e = place_better_attempt(&a, txn);
	if (!e)
		place_return(inst, &a.before);
	*ret_work += a.r.selective ? inst->ledger.n_grants / WORK_AFFINITY : 0;
	/*
	 * After a move the memory allocator can no longer return to its state at the begin of the
	 * event.
	 */
	inst->resync |= e > 0;
	inst->counters.rebalanced += e > 0;
	request_fini(&a.r);
	return e;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool has_work(const struct rp_instance *inst)
{
	return inst->plan->settings.pin_cpu || inst->plan->settings.pin_memory;
}

static uint32_t start_at(const struct rp_instance *inst, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (inst->order.ctrs[i] == inst->rebalance_from)
			return i;
	return 0;
}

int32_t rebalance_all(struct rp_instance *inst, rp_txn txn, uint64_t budget)
{
	int32_t n = has_work(inst) ? ctr_list(&inst->h, &inst->order, RP_ORDER_SYNC) : 0, r = 0;
	uint32_t work = 0, cost, first;
	uint64_t n_moved = 0;
	if (n <= 0)
		return n;
	first = start_at(inst, (uint32_t)n);
	inst->rebalance_from = 0;
	for (uint32_t i = 0; r >= 0 && i < (uint32_t)n && (!budget || n_moved < budget); i++) {
		rp_ctr ctr = inst->order.ctrs[(first + i) % (uint32_t)n];
		if (work >= WORK_MAX) {
			inst->rebalance_from = ctr;
			break;
		}
		r = place_better_consider(inst, txn, ctr, false, &cost);
		work += cost;
		n_moved += r > 0;
	}
	if (r < 0)
		return r;
	return n_moved ? stage_others(inst, txn, 0) : 0;
}

int32_t rebalance_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint64_t lacks)
{
	uint32_t cost;
	const struct grant *g = ledger_find(inst, ctr);
	if (!has_work(inst) || !g || !(lacks & (RP_PRESSURE_CPU | RP_PRESSURE_MEMORY)))
		return 0;
	/*
	 * Another pool offers the same number of exclusive CPUs, so only containers with shared
	 * CPUs benefit.
	 */
	bool spread = lacks & RP_PRESSURE_CPU && (g->portion > 0 || !g->exclusive);
	int32_t r = place_better_consider(inst, txn, ctr, spread, &cost);
	return r > 0 ? stage_others(inst, txn, 0) : r;
}
