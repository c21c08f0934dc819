/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation relief (relief.h): moves balloons to other NUMA nodes so that a balloon that
 * spans several nodes fits into one. Composite balloons, the reserved balloon, balloons near
 * devices, and balloons whose memory would not fit are not moved.
 */
#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/balloons/stage.h"

struct balloon_relief {
	struct rp_instance *inst;
	const struct balloon *but; /* the balloon that needs room */
	/* Units are NUMA nodes by number, keys are indexes of balloons plus 1. */
	struct relief_question q;
	struct rp_idset cpus[RELIEF_UNITS_MAX]; /* CPUs of each node */
};

/* ---- movable balloons ------------------------------------------------------------------------ */

static uint32_t node_of(const struct state *s, const struct balloon *b)
{
	return s->plan->machine->node_of[rp_ids_first(rp_ids_of(&b->cpus))];
}

static uint32_t count_nodes(const struct state *s, const struct balloon *b)
{
	return compact_count(s->plan->machine, TREE_NUMA, rp_ids_of(&b->cpus));
}

static bool is_fixed(const struct state *s, const struct balloon *b)
{
	return b->n_parts || b->type == s->plan->reserved_type || b->near || b->type->close.n ||
	       !b->n_cpus || !b->n_members;
}

/* Returns true if all members of the balloon may be moved. `lately`: also requires that no
 * member was moved a short time ago. */
static bool members_may_move(struct rp_instance *inst, const struct balloon *b, bool lately)
{
	const struct relief_settings *set = &inst->plan->relief;
	for (uint32_t i = 0; i < b->n_members; i++) {
		struct rp_ctr_info info = {.size = sizeof info};
		const struct member *m = b->members[i];
		if (m->preserve_memory || m->claim || ctr_info(&inst->h, m->ctr, &info) ||
		    !(lately ? relief_may_move(&inst->h, set, &inst->relief.moved, &info, true)
			     : relief_may_be_moved(&inst->h, set, &info, true)))
			return false;
	}
	return true;
}

static int64_t place_relief_memory(const struct balloon *b)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < b->n_members; i++)
		sum += b->members[i]->mem_limit;
	return sum;
}

static void find_units(const struct state *s, struct balloon_relief *ret)
{
	const struct plan_machine *m = s->plan->machine;
	ret->q.n_units = 0;
	for (uint32_t i = 0; i < RELIEF_UNITS_MAX; i++)
		rp_idset_clear(&ret->cpus[i]);
	RP_IDS_EACH (cpu, rp_ids_of(&s->plan->allowed)) {
		uint32_t node = cpu < m->cpu_end ? m->node_of[cpu] : RELIEF_UNITS_MAX;
		if (node >= RELIEF_UNITS_MAX)
			continue;
		rp_idset_add(&ret->cpus[node], cpu);
		ret->q.n_units = node >= ret->q.n_units ? node + 1 : ret->q.n_units;
	}
	for (uint32_t i = 0; i < ret->q.n_units; i++)
		ret->q.units[i].free =
			rp_ids_count_and(rp_ids_of(&s->free), rp_ids_of(&ret->cpus[i]));
}

/* Offers the balloons in one node. One of many containers would be as many moves. */
static void place_relief_offer(void *ctx, struct relief_question *q)
{
	const struct balloon_relief *own = ctx;
	const struct state *s = own->inst->state;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct balloon *b = s->list[i];
		if (b != own->but && !is_fixed(s, b) && b->n_members <= RELIEF_MOVES_MAX &&
		    count_nodes(s, b) == 1 && node_of(s, b) < q->n_units)
			relief_offer(q, node_of(s, b), b->n_cpus, i + 1);
	}
}

static struct balloon *place_relief_balloon(const struct balloon_relief *own, uint64_t key)
{
	return own->inst->state->list[key - 1];
}

static bool place_relief_accept(void *ctx, uint64_t key, struct relief_item *ret)
{
	const struct balloon_relief *own = ctx;
	const struct balloon *b = place_relief_balloon(own, key);
	ret->cost = relief_cost(true, place_relief_memory(b));
	return members_may_move(own->inst, b, true);
}

/* Returns the balloon of a move. */
static struct balloon *place_relief_moved(const struct balloon_relief *own, uint32_t at)
{
	return place_relief_balloon(own, own->q.keys[own->q.moves[at].item]);
}

/* ---- moves ----------------------------------------------------------------------------------- */

/* Frees the CPUs of the balloon. */
static void drain_cpus(struct state *s, struct balloon *b)
{
	state_save(s, b);
	rp_idset_or(&s->free, rp_ids_of(&s->free), rp_ids_of(&b->cpus));
	rp_idset_clear(&b->cpus);
	b->n_cpus = 0;
}

/* Assigns n CPUs of a node to a balloon without CPUs. Returns 0, -RP_ENOSPC or -RP_ENOMEM. */
static int32_t fill_from(struct state *s, struct balloon *b, uint32_t n, struct rp_ids node)
{
	struct rp_idset all = s->free, got;
	rp_idset_and(&s->free, rp_ids_of(&all), node);
	int32_t r = resize_grow(s, b, n, &got);
	s->free = all;
	if (r)
		return r;
	rp_idset_copy(&b->cpus, rp_ids_of(&got));
	rp_idset_andnot(&s->free, rp_ids_of(&s->free), rp_ids_of(&got));
	balloon_count_cpus(b);
	return better_memory_fits(s, b) ? 0 : -RP_ENOSPC;
}

static int32_t apply_moves(struct state *s, struct balloon *b, const struct balloon_relief *q)
{
	uint32_t n = b->n_cpus;
	state_save_free(s);
	drain_cpus(s, b);
	for (uint32_t i = 0; i < q->q.n_moves; i++)
		drain_cpus(s, place_relief_moved(q, i));
	int32_t r = fill_from(s, b, n, rp_ids_of(&q->cpus[q->q.unit]));
	for (uint32_t i = 0; i < q->q.n_moves && !r; i++) {
		const struct relief_move *m = &q->q.moves[i];
		r = fill_from(s, place_relief_moved(q, i), (uint32_t)q->q.items[m->item].size,
			      rp_ids_of(&q->cpus[m->to]));
	}
	return r;
}

static int32_t tell_moved(struct rp_instance *inst, rp_txn txn, const struct balloon_relief *q,
			  const struct rp_ctr_info *other)
{
	for (uint32_t i = 0; i < q->q.n_moves; i++) {
		const struct relief_move *move = &q->q.moves[i];
		struct balloon *b = place_relief_moved(q, i);
		b->dirty = true;
		inst->relief.counters.moved++;
		for (uint32_t k = 0; k < b->n_members; k++) {
			struct member *m = b->members[k];
			m->follow = true;
			relief_note_move(&inst->h, &inst->relief.moved, m->ctr);
			inst->relief.n_noted++;
			relief_note_moved(&inst->h, m->ctr, q->q.items[move->item].unit, move->to,
					  other);
			int32_t r = pin_record(inst, txn, m);
			if (r)
				return r;
		}
	}
	return 0;
}

/* Returns the number of balloons moved, including b; 0 if there is no way; or an error. */
static int32_t place_relief_relieve(struct rp_instance *inst, rp_txn txn, struct balloon *b,
				    rp_ctr ctr, uint32_t moves)
{
	struct state *s = inst->state;
	struct rp_ctr_info info = {.size = sizeof info};
	struct balloon_relief own;
	struct relief_question *q = &own.q;
	if (ctr_info(&inst->h, ctr, &info))
		return 0;
	uint32_t mark = state_mark(s);
	find_units(s, &own);
	RP_IDS_EACH (cpu, rp_ids_of(&b->cpus))
		if (s->plan->machine->node_of[cpu] < q->n_units)
			q->units[s->plan->machine->node_of[cpu]].free++;
	own.inst = inst;
	own.but = b;
	q->ctx = &own;
	q->offer = place_relief_offer;
	q->accept = place_relief_accept;
	q->may_move = NULL;
	int32_t r = relief_ask(q, b->n_cpus, UINT64_MAX, moves);
	if (r >= 0)
		r = apply_moves(s, b, &own);
	if (r == -RP_ENOSPC) {
		state_undo_to(s, mark);
		inst->relief.counters.failed++;
		return s->failed_undo ? -RP_ENOMEM : 0;
	}
	b->dirty = true;
	if (!r)
		r = tell_moved(inst, txn, &own, &info);
	if (r)
		return r;
	inst->relief.counters.placed++;
	relief_note_placed(&inst->h, ctr, q->unit, q->n_moves);
	return (int32_t)q->n_moves + 1;
}

/* ---- spread balloons ------------------------------------------------------------------------- */

static bool is_spread(const struct state *s, const struct balloon *b)
{
	const struct plan_machine *m = s->plan->machine;
	if (is_fixed(s, b) || b->type->balancing || count_nodes(s, b) < 2)
		return false;
	RP_IDS_EACH (cpu, rp_ids_of(&s->plan->allowed)) {
		const struct tree_node *n = &m->plain.nodes[m->at[TREE_NUMA][cpu]];
		if (n->end - n->first >= b->n_cpus)
			return true;
	}
	return false;
}

int32_t relief_at_admission(struct rp_instance *inst, rp_txn txn, const struct member *m)
{
	const struct relief_settings *set = &inst->plan->relief;
	struct balloon *b = m->balloon;
	if (!inst->plan->pin_cpu || !set->moves || !is_spread(inst->state, b))
		return 0;
	inst->relief.waits = true;
	int32_t r = 0;
	/* Existing members move together with the balloon. */
	bool may = b->n_members == 1 || members_may_move(inst, b, false);
	if (set->at == RELIEF_ADMISSION && may)
		r = place_relief_relieve(inst, txn, b, m->ctr, set->moves);
	if (!r)
		modhost_note_line(&inst->h, m->ctr, "waits for room in one NUMA node");
	return r < 0 ? r : 0;
}

static int32_t place_relief_help(struct rp_instance *inst, rp_txn txn, struct balloon *b,
				 uint32_t moves)
{
	if (!is_spread(inst->state, b))
		return 0;
	inst->relief.waits = true;
	if (!members_may_move(inst, b, false))
		return 0;
	int32_t r = place_relief_relieve(inst, txn, b, b->members[0]->ctr, moves);
	for (uint32_t i = 0; r > 0 && i < b->n_members; i++) {
		b->members[i]->follow = true;
		int32_t e = pin_record(inst, txn, b->members[i]);
		r = e ? e : r;
	}
	return r;
}

struct relief_walk {
	struct rp_instance *inst;
	rp_txn txn;
};

static int32_t place_relief_help_one(void *ctx, uint32_t i, uint32_t moves)
{
	const struct relief_walk *w = ctx;
	return place_relief_help(w->inst, w->txn, w->inst->state->list[i], moves);
}

int32_t relief_help_waiting(struct rp_instance *inst, rp_txn txn, uint64_t budget)
{
	struct relief_walk w = {inst, txn};
	return !inst->plan->pin_cpu ? 0
				    : relief_each(&inst->relief, inst->state->n, budget,
						  place_relief_help_one, &w);
}
