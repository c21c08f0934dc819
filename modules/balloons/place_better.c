/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebalancing of running containers. A container that was created when CPUs were scarce may
 * share a balloon with unrelated containers, be apart from its pod, or have a balloon that spans
 * several nodes. It stays there after CPUs have become free. Rebalancing looks for three
 * improvements:
 *
 *	a balloon with a stronger tie to the container, by the order of the methods that
 *	choose balloons, or a balloon of the same type where fewer containers share as many CPUs;
 *	memory nearer to the CPUs of the container;
 *	better CPUs for a whole balloon (place_compact.c).
 *
 * Every move improves the place of the moved container and worsens no other, except that shared
 * idle CPUs may be lost, so rebalancing terminates. All containers of a balloon that gets other
 * CPUs count as moved.
 */
#include <string.h>

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/balloons/stage.h"

#define WORK_MAX 1024u /* largest number of work units per event; a checked container costs one */
#define WORK_BALLOON 8u /* number of work units for a search for better CPUs */
#define WORK_SEARCH 64u /* number of balloons that are compared for one work unit */

struct rebalancing {
	struct rp_instance *inst;
	rp_txn txn;
	/* budget: number of containers that may be moved; 0: any number */
	uint64_t budget, n_moved;
	uint32_t work;
};

static bool may_move(const struct rebalancing *r, uint64_t n)
{
	return !r->budget || r->budget - r->n_moved >= n;
}

static int32_t has_moved(struct rebalancing *r, struct member *m)
{
	int32_t e = state_count_move(r->inst->state, m);
	if (e)
		return e;
	m->balloon->dirty = true;
	r->n_moved++;
	r->inst->counters.rebalanced++;
	return pin_record(r->inst, r->txn, m);
}

/* ---- another balloon ------------------------------------------------------------------------- */

/* Returns true if exactly one other member is in the balloon for the sake of this member. */
static bool is_needed(const struct member *m)
{
	struct company c = choose_company(m);
	return c.in_group == 1 || c.in_space == 1 ||
	       (c.in_pod == 1 && !m->balloon->type->spread_pods);
}

/* Returns the number of CPUs that members of the balloon may use now. */
static uint32_t count_allowed(const struct balloon *b)
{
	return b->n_cpus + rp_ids_count(rp_ids_of(&b->shared));
}

/* Returns a balloon of the same type with as much room and as many CPUs, where fewer containers
 * would share each CPU, or NULL. Resizes no balloon. */
static struct balloon *less_crowded(struct rp_instance *inst, const struct member *m,
				    const struct rp_ctr_info *info)
{
	const struct balloon *b = m->balloon;
	int64_t rest = b->request - m->request;
	if (b->n_parts || b->n_members < 2 ||
	    balloon_wanted(b->type, rest > 0 ? rest : 1) != b->n_cpus)
		return NULL;
	struct balloon *to = choose_roomier(inst, info, b);
	if (!to || count_allowed(to) < count_allowed(b) ||
	    balloon_avail(to) - to->request - m->request < balloon_avail(b) - b->request)
		return NULL;
	uint64_t there = (uint64_t)to->n_cpus * b->n_members,
		 here = (uint64_t)b->n_cpus * (to->n_members + 1u);
	return there > here ? to : NULL;
}

/* Returns true if a balloon with a stronger tie can exist. This cheap check skips most
 * containers that are already well placed. */
static bool has_hope(const struct state *s, const struct member *m, enum tie tie)
{
	const struct type *t = m->balloon->type;
	const struct member *first = table_get(&s->by_pod, m->pod);
	if (*t->group_by || (tie > TIE_SPACE && t->per_namespace))
		return true;
	if (tie > TIE_POD && !t->spread_pods && (first != m || m->pod_next))
		return true;
	return tie > TIE_OWN && t->prefer_new;
}

static bool memory_fits(const struct state *s, const struct member *m, struct rp_ids cpus)
{
	struct rp_idset nodes;
	memalloc_mask zone, mask;
	if (!s->memory || memalloc_zone(s->memory, m->ctr, &zone))
		return true;
	rp_idset_clear(&nodes);
	RP_IDS_EACH (cpu, cpus)
		rp_idset_add(&nodes, s->plan->machine->node_of[cpu]);
	mask = memalloc_mask_of(s->memory, rp_ids_of(&nodes));
	return !(zone & ~mask) || memalloc_available(s->memory, mask) >= m->mem_limit;
}

/* Returns true if the balloon spans no more packages, dies or nodes than with its CPUs `before`.
 * A balloon without CPUs passes. */
static bool is_no_wider(const struct plan_machine *m, struct rp_ids before, const struct balloon *b)
{
	for (uint32_t i = TREE_PACKAGE; !rp_ids_empty(before) && i <= TREE_NUMA; i++)
		if (compact_count(m, (enum tree_level)i, rp_ids_of(&b->cpus)) >
		    compact_count(m, (enum tree_level)i, before))
			return false;
	return true;
}

/* Joins c->balloon after m has left its balloon. Returns 1, 0 if the new place is not
 * acceptable, or -RP_ENOMEM. */
static int32_t join_other(struct rebalancing *r, const struct member *m,
			  const struct rp_ctr_info *info, struct choice *c)
{
	struct state *s = r->inst->state;
	struct balloon *to = c->balloon;
	struct rp_idset before = to->cpus;
	int32_t e = choose_join(r->inst, info, c);
	if (e)
		return e == -RP_ENOMEM ? e : 0;
	struct member *now = state_member(s, info->ctr);
	now->fresh = false;
	now->follow = true;
	now->moves = m->moves;
	return (c->created || is_no_wider(s->plan->machine, rp_ids_of(&before), to)) &&
	       memory_fits(s, m, rp_ids_of(&to->cpus));
}

static int32_t try_other(struct rebalancing *r, struct member *m, const struct rp_ctr_info *info,
			 enum tie tie, struct choice *c)
{
	struct state *s = r->inst->state;
	struct balloon *was = m->balloon;
	struct balloon *to = tie == TIE_NONE ? less_crowded(r->inst, m, info) : NULL;
	const char *why;
	if (!to && !has_hope(s, m, tie))
		return 0;
	state_detach(s, m);
	int32_t e = s->failed_undo ? -RP_ENOMEM : balloon_shrink(s, was, &why);
	if (e)
		return e;
	choose_stronger(r->inst, info, tie, c);
	if (!c->balloon && to) {
		c->balloon = to;
		c->method = "fewer containers share its CPUs";
	}
	return c->balloon ? join_other(r, m, info, c) : 0;
}

static int32_t move_container(struct rebalancing *r, struct member *m,
			      const struct rp_ctr_info *info)
{
	struct rp_instance *inst = r->inst;
	struct state *s = inst->state;
	struct choice c = {.type = m->balloon->type};
	char from[BALLOON_NAME_MAX], to[BALLOON_NAME_MAX], cpus[200];
	enum tie tie = choose_tie(m);
	if (tie == TIE_GROUP || !inst->plan->pin_cpu || is_needed(m))
		return 0;
	balloon_name(m->balloon, from, sizeof from);
	r->work += s->n / WORK_SEARCH;
	uint32_t mark = state_mark(s);
	int32_t e = try_other(r, m, info, tie, &c);
	if (e <= 0) {
		state_undo_to(s, mark);
		return e;
	}
	m = state_member(s, info->ctr);
	balloon_name(m->balloon, to, sizeof to);
	modhost_note(&inst->h, info->ctr, "rebalanced from %s to %s: %s; CPUs %s", from, to,
		     c.method, modhost_set_text(rp_ids_of(&m->balloon->cpus), cpus, sizeof cpus));
	e = has_moved(r, m);
	return e ? e : 1;
}

/* ---- nearer memory --------------------------------------------------------------------------- */

static int32_t move_memory(struct rebalancing *r, struct member *m)
{
	static const char note[] = "rebalanced: there is room for its memory near its CPUs";
	struct memalloc *mem = r->inst->state->memory;
	struct memalloc_offer offer;
	memalloc_mask zone;
	struct memalloc_request req = {
		.id = UINT64_MAX,
		.size = m->mem_limit,
		.nodes = m->balloon->nodes,
		.types = m->memory_types,
		.priority = MEMALLOC_PRIO_BURSTABLE,
	};
	if (!mem || !req.nodes || memalloc_zone(mem, m->ctr, &zone) ||
	    memalloc_offer(mem, &req, &offer) || !(zone & ~offer.zone) ||
	    memalloc_available(mem, offer.zone) < m->mem_limit)
		return 0;
	m->follow = true;
	modhost_note(&r->inst->h, m->ctr, note);
	return has_moved(r, m);
}

static int32_t look_at_container(struct rebalancing *r, rp_ctr ctr, bool cpus, bool memory)
{
	struct rp_ctr_info info = {.size = sizeof info};
	const struct modhost *h = &r->inst->h;
	struct member *m = state_member(r->inst->state, ctr);
	r->work++;
	if (!m || m->preserve_memory || !may_move(r, 1) || relief_must_stay(h, ctr) ||
	    h->cache->get_ctr(h->ctx, ctr, &info) || info.state == RP_STATE_CREATING ||
	    info.state == RP_STATE_EXITED)
		return 0;
	int32_t e = cpus ? move_container(r, m, &info) : 0;
	if (!e && memory)
		e = move_memory(r, m);
	return e < 0 ? e : 0;
}

/* ---- other CPUs ------------------------------------------------------------------------------ */

/* Returns the number of CPUs that members could use: the balloon's CPUs and shared idle CPUs. */
static uint32_t count_usable(const struct state *s, const struct balloon *b)
{
	struct rp_idset all;
	rp_idset_clear(&all);
	if (b->type->share >= 0)
		plan_machine_surround(s->plan->machine, (enum tree_level)b->type->share,
				      rp_ids_of(&b->cpus), &all);
	rp_idset_and(&all, rp_ids_of(&all), rp_ids_of(&s->free));
	rp_idset_and(&all, rp_ids_of(&all), rp_ids_of(&s->plan->sharable));
	return rp_ids_count(rp_ids_of(&all)) + b->n_cpus;
}

bool better_memory_fits(const struct state *s, const struct balloon *b)
{
	for (uint32_t i = 0; i < b->n_members; i++)
		if (b->members[i]->preserve_memory ||
		    !memory_fits(s, b->members[i], rp_ids_of(&b->cpus)))
			return false;
	return true;
}

static bool has_fixed_member(const struct rebalancing *r, const struct balloon *b)
{
	for (uint32_t i = 0; i < b->n_members; i++)
		if (relief_must_stay(&r->inst->h, b->members[i]->ctr))
			return true;
	return false;
}

static int32_t look_at_balloon(struct rebalancing *r, struct balloon *b)
{
	struct state *s = r->inst->state;
	char cpus[200];
	const char *why;
	if (!r->inst->plan->pin_cpu || !b->n_cpus || claims_has(b) || !may_move(r, b->n_members) ||
	    has_fixed_member(r, b))
		return 0;
	r->work += WORK_BALLOON;
	uint32_t mark = state_mark(s), usable = count_usable(s, b);
	struct rp_idset before = b->cpus;
	int32_t e = compact(s, b, &why);
	/* The parts of a composite balloon may have moved apart. */
	if (e <= 0 || count_usable(s, b) < usable || !better_memory_fits(s, b) ||
	    !is_no_wider(s->plan->machine, rp_ids_of(&before), b)) {
		state_undo_to(s, mark);
		return e < 0 ? e : 0;
	}
	(void)modhost_set_text(rp_ids_of(&b->cpus), cpus, sizeof cpus);
	e = 0;
	for (uint32_t i = 0; i < b->n_members && !e; i++) {
		struct member *m = b->members[i];
		m->follow = true;
		modhost_note(&r->inst->h, m->ctr, "rebalanced within %s[%u]: %s; CPUs %s",
			     b->type->name, b->instance, why, cpus);
		e = has_moved(r, m);
	}
	return e;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Retries waiting containers after moves. Returns -RP_ENOMEM if an undo failed for lack of
 * memory: the state is wrong and has to be rebuilt. */
static int32_t place_better_finish(const struct rebalancing *r, int32_t e)
{
	if (!e && r->n_moved)
		e = sync_retry(r->inst, r->txn);
	if (!e && r->inst->state->failed_undo)
		e = -RP_ENOMEM;
	return e == -RP_ENOMEM ? modhost_fail(&r->inst->h, e, "out of memory") : e;
}

/* Checks containers first, then balloons. The next event continues where this one has used up
 * its work budget. */
int32_t rebalance_all(struct rp_instance *inst, rp_txn txn, uint64_t budget)
{
	struct rebalancing r = {.inst = inst, .txn = txn, .budget = budget};
	struct state *s = inst->state;
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_SYNC), e = 0;
	if (n < 0)
		return n;
	uint32_t n_ctrs = (uint32_t)n, total = n_ctrs + s->n,
		 first = inst->rebalance_at < total ? inst->rebalance_at : 0;
	inst->rebalance_at = 0;
	for (uint32_t i = 0; i < total && !e && (!budget || r.n_moved < budget); i++) {
		uint32_t at = (first + i) % total;
		if (r.work >= WORK_MAX) {
			inst->rebalance_at = at;
			break;
		}
		if (at < n_ctrs)
			e = look_at_container(&r, inst->list.ctrs[at], true, true);
		else if (at - n_ctrs < s->n)
			e = look_at_balloon(&r, s->list[at - n_ctrs]);
	}
	return place_better_finish(&r, e);
}

int32_t rebalance_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint64_t lacks)
{
	struct rebalancing r = {.inst = inst, .txn = txn, .budget = 1};
	bool cpus = (lacks & RP_PRESSURE_CPU) != 0, memory = (lacks & RP_PRESSURE_MEMORY) != 0;
	return cpus || memory ? place_better_finish(&r, look_at_container(&r, ctr, cpus, memory))
			      : 0;
}
