/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Better CPUs for a balloon that grew while other balloons were in its way. Candidates follow
 * the rules of growth: the largest part of the balloon within one unit is kept and the rest
 * moves to it, or all CPUs are chosen again. A candidate is better if it improves one criterion
 * and worsens none. The criteria are the hints of the type and the distance between the CPUs.
 * Whole cores decide between candidates that are equal in these.
 */
#include <string.h>

#include "modules/balloons/place.h"

/* ---- comparison ------------------------------------------------------------------------------ */

struct comparison {
	bool worse;
	const char *why; /* first criterion that is better; NULL: none yet */
};

/* Compares one criterion, where a smaller value is better. */
static void place_compact_compare(struct comparison *c, uint32_t before, uint32_t after,
				  const char *what)
{
	c->worse = c->worse || after > before;
	if (after < before && !c->why)
		c->why = what;
}

uint32_t compact_count(const struct plan_machine *m, enum tree_level level, struct rp_ids cpus)
{
	struct rp_idset seen;
	uint32_t n = 0;
	rp_idset_clear(&seen);
	RP_IDS_EACH (cpu, cpus) {
		uint32_t first = m->plain.nodes[m->at[level][cpu]].first;
		n += !rp_ids_has(rp_ids_of(&seen), first);
		rp_idset_add(&seen, first);
	}
	return n;
}

static uint32_t count_l3(const struct plan_machine *m, struct rp_ids cpus)
{
	struct rp_idset seen;
	rp_idset_clear(&seen);
	RP_IDS_EACH (cpu, cpus)
		rp_idset_add(&seen, m->l3_of[cpu]);
	return rp_ids_count(rp_ids_of(&seen));
}

static uint32_t count_odd(const struct rp_plan *p, const struct type *t, struct rp_ids cpus)
{
	struct rp_idset odd;
	struct rp_ids wanted = cpualloc_prio_cpus(p->alloc, t->priority);
	if (t->priority == CPUALLOC_NONE || rp_ids_empty(wanted))
		return 0;
	rp_idset_andnot(&odd, cpus, wanted);
	return rp_ids_count(rp_ids_of(&odd));
}

static void compare_hints(struct comparison *c, const struct state *s, const struct type *t,
			  struct rp_ids before, struct rp_ids after)
{
	for (uint32_t i = 0; i < t->close.n + t->far.n; i++)
		place_compact_compare(c, resize_misses(s, t, i, before),
				      resize_misses(s, t, i, after),
				      i < t->close.n ? "nearer to what its type prefers"
						     : "farther from what its type avoids");
	place_compact_compare(c, count_odd(s->plan, t, before), count_odd(s->plan, t, after),
			      "CPUs of its priority");
}

/* Compares how many CPUs are badly placed for the CPU class of the balloon: high-priority CPUs
 * where Speed Select has no room for them, other CPUs among high-priority ones. */
static void compare_classes(struct comparison *c, const struct state *s, const struct balloon *b,
			    struct rp_ids before, struct rp_ids after)
{
	struct rp_idset high;
	if (!s->pct)
		return;
	resize_high(s, b, &high);
	place_compact_compare(c, pct_misses(s->pct, b->type->cpu_class, rp_ids_of(&high), before),
			      pct_misses(s->pct, b->type->cpu_class, rp_ids_of(&high), after),
			      "room for CPUs of high priority");
}

static void compare_places(struct comparison *c, const struct plan_machine *m, struct rp_ids before,
			   struct rp_ids after)
{
	static const struct {
		enum tree_level level;
		const char *what;
	} levels[] = {
		{TREE_PACKAGE, "fewer packages"},
		{TREE_DIE, "fewer dies"},
		{TREE_NUMA, "fewer NUMA nodes"},
	};
	for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
		place_compact_compare(c, compact_count(m, levels[i].level, before),
				      compact_count(m, levels[i].level, after), levels[i].what);
	place_compact_compare(c, count_l3(m, before), count_l3(m, after), "fewer L3 caches");
}

static bool hides_threads(const struct balloon *b)
{
	while (b->whole)
		b = b->whole;
	for (uint32_t i = 0; i < b->n_members; i++)
		if (b->members[i]->hide_threads)
			return true;
	return false;
}

/* Returns the level at which the balloon prefers many units; TREE_SYSTEM: none. */
static enum tree_level spread_level(const struct state *s, const struct balloon *b)
{
	const struct type *t = b->type;
	enum tree_level level = TREE_SYSTEM;
	for (uint32_t i = 0; i < t->loads.n; i++) {
		const struct load_class *l = &s->plan->loads[t->loads.list[i]];
		if (t->overloads_itself && level != TREE_L2)
			level = l->level;
	}
	return level == TREE_SYSTEM && (t->spread_cores || hides_threads(b)) ? TREE_CORE : level;
}

/* Returns the reason why CPUs `after` are better for the balloon than `before`, or NULL if they
 * are not. resize_look_at_others() was called before. */
static const char *place_compact_better(const struct state *s, const struct balloon *b,
					struct rp_ids before, struct rp_ids after)
{
	const struct plan_machine *m = s->plan->machine;
	struct comparison c = {false, NULL};
	enum tree_level spread = spread_level(s, b);
	compare_hints(&c, s, b->type, before, after);
	compare_classes(&c, s, b, before, after);
	compare_places(&c, m, before, after);
	if (spread != TREE_SYSTEM)
		place_compact_compare(&c, compact_count(m, spread, after),
				      compact_count(m, spread, before),
				      spread == TREE_CORE ? "more cores" : "more L2 caches");
	if (spread == TREE_SYSTEM && !c.why)
		place_compact_compare(&c, compact_count(m, TREE_CORE, before),
				      compact_count(m, TREE_CORE, after), "whole cores");
	return c.worse ? NULL : c.why;
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* Finds the unit of a level that has room for the whole balloon and already contains most of its
 * CPUs. Sets *ret_keep to the balloon's CPUs in the unit and *ret_unit to all CPUs of the unit.
 * Returns false if there is no such unit or it contains the whole balloon. */
static bool place_compact_densest(const struct state *s, enum tree_level level,
				  const struct balloon *b, struct rp_idset *ret_keep,
				  struct rp_idset *ret_unit)
{
	struct rp_idset left, here, room, unit, one;
	uint32_t most = 0;
	rp_idset_copy(&left, rp_ids_of(&b->cpus));
	while (!rp_ids_empty(rp_ids_of(&left))) {
		rp_idset_clear(&unit);
		rp_idset_clear(&one);
		rp_idset_add(&one, rp_ids_first(rp_ids_of(&left)));
		plan_machine_surround(s->plan->machine, level, rp_ids_of(&one), &unit);
		rp_idset_and(&here, rp_ids_of(&b->cpus), rp_ids_of(&unit));
		rp_idset_and(&room, rp_ids_of(&s->free), rp_ids_of(&unit));
		rp_idset_andnot(&left, rp_ids_of(&left), rp_ids_of(&unit));
		uint32_t n = rp_ids_count(rp_ids_of(&here));
		if (n <= most || n + rp_ids_count(rp_ids_of(&room)) < b->n_cpus)
			continue;
		most = n;
		rp_idset_copy(ret_keep, rp_ids_of(&here));
		rp_idset_copy(ret_unit, rp_ids_of(&unit));
	}
	return most && most < b->n_cpus;
}

/* Computes the CPUs of the balloon if it kept `keep` and grew again, within `unit` unless that
 * is empty. Returns 0, -RP_ENOSPC or -RP_ENOMEM. */
static int32_t grow_again(struct state *s, struct balloon *b, struct rp_ids keep,
			  struct rp_ids unit, struct rp_idset *ret)
{
	struct rp_idset free = s->free, own = b->cpus;
	uint32_t n = b->n_cpus - rp_ids_count(keep);
	rp_idset_or(&s->free, rp_ids_of(&free), rp_ids_of(&own));
	rp_idset_andnot(&s->free, rp_ids_of(&s->free), keep);
	if (!rp_ids_empty(unit))
		rp_idset_and(&s->free, rp_ids_of(&s->free), unit);
	rp_idset_copy(&b->cpus, keep);
	int32_t r = resize_grow(s, b, n, ret);
	s->free = free;
	b->cpus = own;
	if (!r)
		rp_idset_or(ret, rp_ids_of(ret), keep);
	return r;
}

struct attempt {
	struct state *s;
	struct balloon *b;
	struct rp_idset best;
	/* why the candidate is better; NULL: no candidate is better than the current CPUs */
	const char *why;
};

static int32_t place_compact_consider(struct attempt *a, struct rp_ids keep, struct rp_ids unit)
{
	struct rp_idset candidate;
	const char *why;
	int32_t r = grow_again(a->s, a->b, keep, unit, &candidate);
	if (r)
		return r == -RP_ENOMEM ? r : 0;
	resize_look_at_others(a->s, a->b);
	/* The candidate must be better than the best so far. The reason compares it with the
	 * current CPUs. */
	if (!place_compact_better(a->s, a->b, rp_ids_of(&a->best), rp_ids_of(&candidate)))
		return 0;
	why = place_compact_better(a->s, a->b, rp_ids_of(&a->b->cpus), rp_ids_of(&candidate));
	if (!why)
		return 0;
	a->why = why;
	rp_idset_copy(&a->best, rp_ids_of(&candidate));
	return 0;
}

static int32_t place_compact_improve(struct state *s, struct balloon *b, const char **ret_why)
{
	static const enum tree_level levels[] = {TREE_NUMA, TREE_DIE, TREE_PACKAGE};
	struct attempt a = {.s = s, .b = b, .best = b->cpus};
	struct rp_ids own = rp_ids_of(&b->cpus);
	int32_t r = 0;
	if (!b->n_cpus)
		return 0;
	for (size_t i = 0; i < sizeof levels / sizeof levels[0] && !r; i++) {
		struct rp_idset keep, unit;
		if (place_compact_densest(s, levels[i], b, &keep, &unit))
			r = place_compact_consider(&a, rp_ids_of(&keep), rp_ids_of(&unit));
	}
	if (!r)
		r = place_compact_consider(&a, rp_ids_none(), rp_ids_none());
	if (r || !a.why)
		return r;
	state_save(s, b);
	state_save_free(s);
	rp_idset_or(&s->free, rp_ids_of(&s->free), own);
	rp_idset_andnot(&s->free, rp_ids_of(&s->free), rp_ids_of(&a.best));
	rp_idset_copy(&b->cpus, rp_ids_of(&a.best));
	*ret_why = a.why;
	return 1;
}

int32_t compact(struct state *s, struct balloon *b, const char **ret_why)
{
	int32_t found = b->n_parts ? 0 : place_compact_improve(s, b, ret_why);
	struct rp_idset all;
	rp_idset_clear(&all);
	for (uint32_t i = 0; i < b->n_parts; i++) {
		int32_t r = compact(s, b->parts[i], ret_why);
		if (r < 0)
			return r;
		found |= r;
		rp_idset_or(&all, rp_ids_of(&all), rp_ids_of(&b->parts[i]->cpus));
	}
	if (found && b->n_parts) {
		state_save(s, b);
		rp_idset_copy(&b->cpus, rp_ids_of(&all));
	}
	return found;
}
