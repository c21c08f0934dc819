/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation relief (relief.h): where no NUMA node has room for dedicated CPUs that have to lie
 * in one, main containers of other pods with dedicated CPUs in one node move. Their sidecars
 * follow.
 */
#include <stdlib.h>

#include "modules/qos/qos.h"

struct qos_relief {
	struct room room; /* CPUs that all other pods leave to the pod */
	uint32_t n_items;
	struct relief_unit units[RELIEF_UNITS_MAX]; /* units by index of the plan's nodes */
	struct relief_item items[RELIEF_ITEMS_MAX];
	uint32_t entries[RELIEF_ITEMS_MAX]; /* indexes of the items' entries in the table */
	struct relief_move moves[RELIEF_MOVES_MAX];
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

static void add_item(struct rp_instance *inst, uint32_t at, struct qos_relief *ret)
{
	const struct rp_plan *p = inst->plan;
	const struct entry *e = inst->table.list[at];
	struct rp_ctr_info info = {.size = sizeof info};
	struct rp_idset own;
	struct ask a;
	if (e->is.role != ROLE_MAIN || !entry_counts(e) || hints_size(e->is.nodes) != 1 ||
	    e->is.mem_nodes != e->is.nodes || ask_read(inst, e->pod, &a) || !needs_one_node(&a) ||
	    a.wished || !owners_owned(&inst->owners, e->pod, &own) ||
	    node_index(p, e->is.nodes) == RELIEF_UNITS_MAX || ctr_info(&inst->h, e->ctr, &info) ||
	    !relief_may_move(&inst->h, &p->relief, &inst->relief.moved, &info, true))
		return;
	a.cpu = e->is.cpu;
	a.mem = e->is.mem;
	ret->entries[ret->n_items] = at;
	ret->items[ret->n_items++] = (struct relief_item){
		.unit = node_index(p, e->is.nodes),
		.size = 1000 * (int64_t)ask_whole(e->is.cpu),
		.allowed = relief_suitable(p, &a, &ret->room),
		.cost = RELIEF_COST_EXCLUSIVE + (e->is.mem > 0 ? e->is.mem : 0),
	};
}

static int32_t move_entries(struct rp_instance *inst, struct qos_relief *q, uint32_t n,
			    const struct rp_ctr_info *other)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset had;
	for (uint32_t i = 0; i < n; i++) {
		const struct entry *e = inst->table.list[q->entries[q->moves[i].item]];
		int32_t r = ask_read(inst, e->pod, &q->asks[i]);
		if (r)
			return r;
		(void)owners_release(&inst->owners, e->pod, &had);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct entry *e = inst->table.list[q->entries[q->moves[i].item]];
		uint32_t from = p->nodes[q->items[q->moves[i].item].unit].id,
			 to = p->nodes[q->moves[i].to].id;
		q->asks[i].cpu = e->is.cpu;
		q->asks[i].mem = e->is.mem;
		e->is.nodes = e->is.mem_nodes = UINT64_C(1) << to;
		table_changed(inst, e);
		place_give(inst, &q->asks[i], e);
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
	uint32_t unit;
	if (!p->relief.moves || p->relief.at != RELIEF_ADMISSION || !needs_one_node(a) ||
	    a->flags & (ASK_EVEN | ASK_PAIRING))
		return 0;
	struct qos_relief *q = calloc(1, sizeof *q);
	if (!q)
		return modhost_no_memory(&inst->h);
	room_of(inst, but, a, &q->room);
	uint32_t n_units = p->n_nodes < RELIEF_UNITS_MAX ? p->n_nodes : RELIEF_UNITS_MAX;
	for (uint32_t i = 0; i < n_units; i++) {
		int64_t rest = hints_rest(p, &q->room, i);
		q->units[i].free = rest > 0 ? rest : 0;
	}
	for (uint32_t i = 0; i < inst->table.n && q->n_items < RELIEF_ITEMS_MAX; i++)
		if (inst->table.list[i]->pod != but)
			add_item(inst, i, q);
	int32_t n = relief_find(q->units, n_units, q->items, q->n_items,
				1000 * (int64_t)ask_whole(a->cpu), relief_suitable(p, a, &q->room),
				p->relief.moves, q->moves, &unit);
	int32_t r = n > 0 ? move_entries(inst, q, (uint32_t)n, other) : 0;
	free(q);
	if (n <= 0)
		inst->relief.counters.failed++;
	else if (!r)
		inst->relief.counters.placed++;
	return r ? r : n > 0;
}
