/* SPDX-License-Identifier: Apache-2.0 */
/* Relief for policies with exclusive CPUs: arguments for relief_find(), moves, and the timer of
 * waiting containers. */
#include <nri-rp/lib/relief_owned.h>

/* ---- arguments of relief_find() -------------------------------------------------------------- */

struct owned_question {
	const struct relief_call *c;
	rp_ctr ctr; /* the container that needs room */
	struct rp_idset free;
	struct relief_question q; /* keys are handles of containers */
	/* The containers that are moved. */
	struct rp_ctr_info infos[RELIEF_MOVES_MAX];
	struct rp_idset owned[RELIEF_MOVES_MAX], chosen[RELIEF_MOVES_MAX];
};

static const struct machine_level_units *owned_nodes(const struct machine *m)
{
	return &m->level[MACHINE_NODE];
}

static uint32_t count_nodes(const struct machine *m, struct rp_ids cpus)
{
	struct rp_idset nodes;
	machine_nodes_of(m, cpus, &nodes);
	return rp_ids_count(rp_ids_of(&nodes));
}

bool relief_crosses(const struct machine *m, struct rp_ids cpus)
{
	uint32_t n = rp_ids_count(cpus);
	if (count_nodes(m, cpus) < 2)
		return false;
	for (uint32_t i = 0; i < owned_nodes(m)->n_units; i++)
		if (owned_nodes(m)->units[i].n_cpus >= n)
			return true;
	return false;
}

/* Offers the containers whose CPUs lie in one node, each at the first one of its CPUs. */
static void owned_offer(void *ctx, struct relief_question *q)
{
	const struct owned_question *own = ctx;
	const struct owners *o = own->c->owners;
	const uint32_t *unit_of = owned_nodes(own->c->machine)->unit_of;
	RP_IDS_EACH (first, rp_ids_of(&o->taken)) {
		rp_ctr ctr = o->now[first].owner;
		uint32_t size = 0, n_near = 0;
		if (!ctr || ctr == own->ctr || !owners_is_first(o, first))
			continue;
		for (uint32_t cpu = first; cpu != RP_IDSET_NONE;
		     cpu = owners_next_of(o, cpu), size++)
			n_near += unit_of[cpu] == unit_of[first];
		if (n_near == size && unit_of[first] < q->n_units)
			relief_offer(q, unit_of[first], size, ctr);
	}
}

static bool owned_accept(void *ctx, uint64_t key, struct relief_item *ret)
{
	const struct relief_call *c = ((struct owned_question *)ctx)->c;
	struct rp_ctr_info info;
	if (RP_HAS(c->h->cache, memory)) {
		ret->cost = relief_cost(true, c->h->cache->memory(c->h->ctx, key));
		return true;
	}
	if (ctr_info(c->h, key, &info))
		return false;
	ret->cost = relief_cost(true, info.mem_limit > 0 ? info.mem_limit : info.mem_request);
	return true;
}

static bool owned_may_move(void *ctx, uint64_t key)
{
	const struct relief_call *c = ((struct owned_question *)ctx)->c;
	struct rp_ctr_info info = {.size = sizeof info};
	return !ctr_info(c->h, key, &info) &&
	       relief_may_move(c->h, &c->relief->set, &c->relief->moved, &info, true) &&
	       !(c->ops->is_fixed && c->ops->is_fixed(c->inst, &info));
}

static int32_t owned_ask(const struct relief_call *c, const struct rp_ctr_info *info, uint32_t n,
			 uint32_t moves, struct owned_question *ret)
{
	const struct machine_level_units *nodes = owned_nodes(c->machine);
	struct relief_question *q = &ret->q;
	struct rp_idset own;
	ret->c = c;
	ret->ctr = info->ctr;
	c->ops->free(c->inst, info, &ret->free);
	if (owners_owned(c->owners, info->ctr, &own))
		rp_idset_or(&ret->free, rp_ids_of(&ret->free), rp_ids_of(&own));
	q->ctx = ret;
	q->offer = owned_offer;
	q->accept = owned_accept;
	q->may_move = owned_may_move;
	q->n_units = nodes->n_units < RELIEF_UNITS_MAX ? nodes->n_units : RELIEF_UNITS_MAX;
	for (uint32_t i = 0; i < q->n_units; i++)
		q->units[i].free = machine_count_free(&nodes->units[i], rp_ids_of(&ret->free));
	int32_t r = relief_ask(q, n, UINT64_MAX, moves);
	for (uint32_t i = 0; i < q->n_moves; i++) {
		rp_ctr ctr = q->keys[q->moves[i].item];
		ret->infos[i].size = sizeof ret->infos[i];
		(void)owners_owned(c->owners, ctr, &ret->owned[i]);
		if (ctr_info(c->h, ctr, &ret->infos[i]))
			return -RP_ENOENT;
	}
	return r;
}

/* ---- moves ----------------------------------------------------------------------------------- */

/* Chooses n CPUs of a node that are free after the moves. False: the policy finds none. */
static bool owned_choose(const struct relief_call *c, struct owned_question *q,
			 const struct rp_ctr_info *info, uint32_t unit, uint32_t n,
			 struct rp_idset *ret)
{
	struct rp_idset near;
	rp_idset_clear(&near);
	machine_add_free(&owned_nodes(c->machine)->units[unit], rp_ids_of(&q->free), &near);
	if (c->ops->choose(c->inst, info, rp_ids_of(&near), n, ret) ||
	    rp_ids_count(rp_ids_of(ret)) != n)
		return false;
	rp_idset_andnot(&q->free, rp_ids_of(&q->free), rp_ids_of(ret));
	return true;
}

static bool owned_choose_all(const struct relief_call *c, struct owned_question *own,
			     const struct rp_ctr_info *info, uint32_t n, struct rp_idset *ret)
{
	const struct relief_question *q = &own->q;
	for (uint32_t i = 0; i < q->n_moves; i++)
		rp_idset_or(&own->free, rp_ids_of(&own->free), rp_ids_of(&own->owned[i]));
	if (!owned_choose(c, own, info, q->unit, n, ret))
		return false;
	for (uint32_t i = 0; i < q->n_moves; i++)
		if (!owned_choose(c, own, &own->infos[i], q->moves[i].to,
				  rp_ids_count(rp_ids_of(&own->owned[i])), &own->chosen[i]))
			return false;
	return true;
}

static uint32_t owned_node_id(const struct relief_call *c, uint32_t unit)
{
	return owned_nodes(c->machine)->units[unit].id;
}

static int32_t owned_move(const struct relief_call *c, const struct owned_question *own,
			  const struct rp_ctr_info *info)
{
	const struct relief_question *q = &own->q;
	for (uint32_t i = 0; i < q->n_moves; i++)
		owners_take(c->owners, own->infos[i].ctr, rp_ids_of(&own->owned[i]));
	for (uint32_t i = 0; i < q->n_moves; i++)
		owners_give(c->owners, rp_ids_of(&own->chosen[i]), own->infos[i].ctr);
	for (uint32_t i = 0; i < q->n_moves; i++) {
		const struct rp_ctr_info *moved = &own->infos[i];
		int32_t r = c->ops->stage(c->inst, c->txn, moved, rp_ids_of(&own->chosen[i]));
		if (r)
			return r;
		relief_note_move(c->h, &c->relief->moved, moved->ctr);
		c->relief->n_noted++;
		relief_note_moved(c->h, moved->ctr,
				  owned_node_id(c, q->items[q->moves[i].item].unit),
				  owned_node_id(c, q->moves[i].to), info);
	}
	c->relief->counters.moved += q->n_moves;
	return 0;
}

int32_t relief_owned(const struct relief_call *c, const struct rp_ctr_info *info, uint32_t n,
		     uint32_t moves, struct rp_idset *ret)
{
	struct owned_question own;
	int32_t r = owned_ask(c, info, n, moves, &own);
	if (r >= 0)
		r = owned_choose_all(c, &own, info, n, ret) ? owned_move(c, &own, info)
							    : -RP_ENOSPC;
	if (r == -RP_ENOSPC) {
		c->relief->counters.failed++;
		return 0;
	}
	if (r)
		return r;
	c->relief->counters.placed++;
	relief_note_placed(c->h, info->ctr, owned_node_id(c, own.q.unit), own.q.n_moves);
	return 1;
}

int32_t relief_admit(const struct relief_call *c, const struct rp_ctr_info *info,
		     struct rp_idset *cpus)
{
	const struct relief_settings *s = &c->relief->set;
	if (!s->moves || !relief_crosses(c->machine, rp_ids_of(cpus)))
		return 0;
	int32_t r = 0;
	if (s->at == RELIEF_ADMISSION)
		r = relief_owned(c, info, rp_ids_count(rp_ids_of(cpus)), s->moves, cpus);
	if (r)
		return r;
	c->relief->waits = true;
	modhost_note_line(c->h, info->ctr, "waits for room in one NUMA node");
	return 0;
}

/* ---- waiting containers ---------------------------------------------------------------------- */

/* Moves containers so that a waiting one fits into one node. Returns the number of moved
 * containers, the waiting one included. */
static int32_t relief_help(const struct relief_call *c, rp_ctr ctr, uint32_t moves)
{
	struct rp_ctr_info info = {.size = sizeof info};
	struct rp_idset own, cpus;
	uint64_t moved = c->relief->counters.moved;
	uint32_t n = owners_owned(c->owners, ctr, &own);
	if (!n || !relief_crosses(c->machine, rp_ids_of(&own)) || ctr_info(c->h, ctr, &info))
		return 0;
	c->relief->waits = true;
	if (info.state == RP_STATE_CREATING || info.state == RP_STATE_EXITED ||
	    !relief_may_be_moved(c->h, &c->relief->set, &info, true) ||
	    (c->ops->is_fixed && c->ops->is_fixed(c->inst, &info)))
		return 0;
	int32_t r = relief_owned(c, &info, n, moves, &cpus);
	if (r <= 0)
		return r;
	owners_take(c->owners, ctr, rp_ids_of(&own));
	owners_give(c->owners, rp_ids_of(&cpus), ctr);
	r = c->ops->stage(c->inst, c->txn, &info, rp_ids_of(&cpus));
	return r ? r : (int32_t)(c->relief->counters.moved - moved) + 1;
}

int32_t relief_each(struct relief *r, uint32_t n, uint64_t budget, relief_each_help help, void *ctx)
{
	uint64_t n_moved = 0;
	int32_t moved = 0;
	if (!r->set.moves || !r->waits)
		return 0;
	r->waits = false;
	for (uint32_t i = 0; i < n && moved >= 0; i++) {
		uint64_t left = budget ? budget - n_moved : RELIEF_MOVES_MAX + 1;
		if (!left) {
			r->waits = true;
			break;
		}
		moved = help(ctx, i, left - 1 < r->set.moves ? (uint32_t)left - 1 : r->set.moves);
		n_moved += moved > 0 ? (uint64_t)moved : 0;
	}
	return moved < 0 ? moved : (int32_t)n_moved;
}

static int32_t relief_help_one(void *ctx, uint32_t i, uint32_t moves)
{
	const struct relief_call *c = ctx;
	return relief_help(c, c->relief->list.ctrs[i], moves);
}

int32_t relief_rebalance(const struct relief_call *c, uint64_t budget)
{
	int32_t n = c->relief->waits ? ctr_list(c->h, &c->relief->list, RP_ORDER_SYNC) : 0;
	return n < 0 ? n : relief_each(c->relief, (uint32_t)n, budget, relief_help_one, (void *)c);
}

void relief_arm(const struct modhost *h, const struct relief *r)
{
	if (r->waits && r->set.moves && h->timer)
		(void)h->timer->arm(h->ctx, RELIEF_COOKIE, RELIEF_DELAY_MS);
}

void relief_begin(struct relief *r)
{
	r->counters_before = r->counters;
	r->n_noted = 0;
}

void relief_undo(struct relief *r)
{
	r->counters = r->counters_before;
	relief_forget_moves(&r->moved, r->n_noted);
	r->n_noted = 0;
}

void relief_report(const struct relief_counters *c, const struct rp_metric_sink *sink)
{
	static const char name[] = "policy_relief_moves_total";
	static const char help[] =
		"Containers moved so that others fit into one NUMA node, containers placed in one "
		"node by this, and searches without a result.";
	sink->counter(sink->ctx, name, help, "outcome=\"moved\"", (double)c->moved);
	sink->counter(sink->ctx, name, help, "outcome=\"placed\"", (double)c->placed);
	sink->counter(sink->ctx, name, help, "outcome=\"not_found\"", (double)c->failed);
}

void relief_fini(struct relief *r)
{
	ctr_list_free(&r->list);
}
