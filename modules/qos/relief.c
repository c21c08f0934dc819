/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation relief (relief.h): where no NUMA node has room for dedicated CPUs that have to lie
 * in one, main containers of other pods with dedicated CPUs in one node move. Their sidecars
 * follow.
 */
#include "modules/qos/qos.h"

struct qos_relief {
	struct rp_instance *inst;
	rp_pod but; /* the pod that needs room */
	struct room room; /* CPUs that all other pods leave to the pod */
	/* Units are indexes of nodes in the plan, keys are indexes of entries plus 1. */
	struct relief_question q;
	struct ask asks[RELIEF_MOVES_MAX];
};

static bool needs_one_node(const struct ask *a)
{
	return a->level == LEVEL_DEDICATED && !(a->flags & (ASK_EXCLUSIVE | ASK_ALONE)) &&
	       a->numa_number <= 1 && !a->numa_ids && !a->granted;
}

static uint64_t node_bit(const struct rp_plan *p, uint32_t index)
{
	return UINT64_C(1) << p->nodes[index].id;
}

static uint32_t node_index(const struct rp_plan *p, uint64_t nodes)
{
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (node_bit(p, i) == nodes)
			return i;
	return RELIEF_UNITS_MAX;
}

/* Returns the nodes, as bits of node indexes, on which the pod would fit if other containers moved
 * away: they have enough free memory, and the CPU request is ignored. */
static uint64_t relief_suitable(const struct rp_plan *p, const struct ask *a,
				const struct room *room)
{
	struct ask nothing = *a;
	uint64_t nodes, ret = 0;
	nothing.cpu = 0;
	nodes = hints_candidates(p, &nothing, room);
	for (uint32_t i = 0; i < p->n_nodes && i < RELIEF_UNITS_MAX; i++) {
		bool memory = a->mem <= 0 || room->mem_free[i] >= (uint64_t)a->mem;
		bool open = nodes & node_bit(p, i) ||
			    (room->dedicated & node_bit(p, i) &&
			     !((room->exclusive | room->refused) & node_bit(p, i)));
		ret |= memory && open ? UINT64_C(1) << i : 0;
	}
	return ret;
}

static void relief_offer_entries(void *ctx, struct relief_question *q)
{
	const struct qos_relief *own = ctx;
	const struct rp_instance *inst = own->inst;
	for (uint32_t i = 0; i < inst->table.n; i++) {
		const struct entry *e = inst->table.list[i];
		if (e->pod == own->but || e->is.role != ROLE_MAIN || !entry_counts(e) ||
		    hints_size(e->is.nodes) != 1 || e->is.mem_nodes != e->is.nodes)
			continue;
		uint32_t unit = node_index(inst->plan, e->is.nodes);
		if (unit < q->n_units)
			relief_offer(q, unit, 1000 * (int64_t)ask_whole(e->is.cpu), i + 1);
	}
}

static bool relief_accept_entry(void *ctx, uint64_t key, struct relief_item *ret)
{
	const struct qos_relief *own = ctx;
	struct rp_instance *inst = own->inst;
	const struct rp_plan *p = inst->plan;
	const struct entry *e = inst->table.list[key - 1];
	struct rp_ctr_info info = {.size = sizeof info};
	struct rp_idset had;
	struct ask a;
	if (ask_read(inst, e->pod, &a) || !needs_one_node(&a) || a.wished ||
	    !owners_owned(&inst->owners, e->pod, &had) || ctr_info(&inst->h, e->ctr, &info) ||
	    !relief_may_move(&inst->h, &p->relief, &inst->relief.moved, &info, true))
		return false;
	a.cpu = e->is.cpu;
	a.mem = e->is.mem;
	ret->allowed = relief_suitable(p, &a, &own->room);
	ret->cost = relief_cost(true, e->is.mem);
	return ret->allowed & ~(UINT64_C(1) << ret->unit);
}

/* Returns the entry of a move. */
static struct entry *relief_moved_entry(const struct qos_relief *own, uint32_t at)
{
	return own->inst->table.list[own->q.keys[own->q.moves[at].item] - 1];
}

static int32_t move_entries(struct qos_relief *own, const struct rp_ctr_info *other)
{
	struct rp_instance *inst = own->inst;
	const struct rp_plan *p = inst->plan;
	const struct relief_question *q = &own->q;
	struct rp_idset had;
	for (uint32_t i = 0; i < q->n_moves; i++) {
		const struct entry *e = relief_moved_entry(own, i);
		int32_t r = ask_read(inst, e->pod, &own->asks[i]);
		if (r)
			return r;
		(void)owners_release(&inst->owners, e->pod, &had);
	}
	for (uint32_t i = 0; i < q->n_moves; i++) {
		struct entry *e = relief_moved_entry(own, i);
		uint32_t from = p->nodes[q->items[q->moves[i].item].unit].id,
			 to = p->nodes[q->moves[i].to].id;
		own->asks[i].cpu = e->is.cpu;
		own->asks[i].mem = e->is.mem;
		e->is.nodes = e->is.mem_nodes = UINT64_C(1) << to;
		table_changed(inst, e);
		place_give(inst, &own->asks[i], e);
		relief_note_move(&inst->h, &inst->relief.moved, e->ctr);
		inst->relief.n_noted++;
		inst->relief.counters.moved++;
		relief_note_moved(&inst->h, e->ctr, from, to, other);
	}
	return 0;
}

int32_t relief_make_room(struct rp_instance *inst, const struct ask *a, rp_pod but,
			 const struct rp_ctr_info *other)
{
	const struct rp_plan *p = inst->plan;
	if (!p->relief.moves || p->relief.at != RELIEF_ADMISSION || !needs_one_node(a) ||
	    a->flags & (ASK_EVEN | ASK_PAIRING))
		return 0;
	struct qos_relief own;
	struct relief_question *q = &own.q;
	own.inst = inst;
	own.but = but;
	q->ctx = &own;
	q->offer = relief_offer_entries;
	q->accept = relief_accept_entry;
	q->may_move = NULL;
	room_of(inst, but, a, &own.room);
	q->n_units = p->n_nodes < RELIEF_UNITS_MAX ? p->n_nodes : RELIEF_UNITS_MAX;
	for (uint32_t i = 0; i < q->n_units; i++) {
		int64_t rest = hints_rest(p, &own.room, i);
		q->units[i].free = rest > 0 ? rest : 0;
	}
	int32_t n = relief_ask(q, 1000 * (int64_t)ask_whole(a->cpu),
			       relief_suitable(p, a, &own.room), p->relief.moves);
	int32_t r = n > 0 ? move_entries(&own, other) : 0;
	if (n <= 0)
		inst->relief.counters.failed++;
	else if (!r)
		inst->relief.counters.placed++;
	return r ? r : n > 0;
}
