/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choice of the CPUs that a balloon gets or releases. Each stage narrows the choice for the
 * next:
 *
 *	load	keeps CPUs of one balloon from loading each other
 *	hints	close and far devices, room for CPUs of high priority
 *	steps	one CPU at a time where that makes a difference
 *	tree	the smallest part of the topology with enough CPUs (plan_tree.c)
 *
 * The common allocator makes the remaining choice when a balloon grows.
 */
#include <string.h>

#include "modules/balloons/place.h"

struct problem {
	struct state *s;
	const struct type *type;
	const struct tree *tree;
	struct pct_hints pct;
};

/* Returns the CPUs near a device. For a load class these are the CPUs that it slows now. */
static struct rp_ids near_device(const struct state *s, uint32_t index)
{
	const struct device *d = &s->plan->devices[index];
	if (d->kind == DEVICE_POD)
		return devices_cpus(s, index);
	return rp_ids_of(d->kind == DEVICE_LOAD ? &s->load_cpus[d->load] : &d->cpus);
}

/* ---- tree, steps ----------------------------------------------------------------------------- */

/* Chooses n CPUs one at a time, because each choice changes the criteria for the next one. */
static bool one_by_one(const struct problem *p, bool grow, struct rp_ids current,
		       struct rp_ids free, uint32_t n, struct rp_idset *ret)
{
	struct rp_idset cur, left, one;
	struct rp_idset *to = grow ? &cur : &left, *from = grow ? &left : &cur;
	rp_idset_copy(&cur, current);
	rp_idset_copy(&left, free);
	rp_idset_clear(ret);
	for (uint32_t i = 0; i < n; i++) {
		bool found =
			grow ? tree_grow(p->tree, rp_ids_of(&cur), rp_ids_of(&left), 1,
					 p->type->balancing, &one)
			     : tree_shrink(p->tree, rp_ids_of(&cur), rp_ids_of(&left), 1, &one);
		if (!found)
			return false;
		rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&one));
		rp_idset_or(to, rp_ids_of(to), rp_ids_of(&one));
		rp_idset_andnot(from, rp_ids_of(from), rp_ids_of(&one));
	}
	return true;
}

static bool steps_grow(const struct problem *p, struct rp_ids current, struct rp_ids free,
		       uint32_t n, struct rp_idset *ret)
{
	if (!tree_grow(p->tree, current, free, n, p->type->balancing, ret))
		return false;
	return !p->type->spread_cores || rp_ids_count(rp_ids_of(ret)) == n ||
	       one_by_one(p, true, current, free, n, ret);
}

/* ---- hints ----------------------------------------------------------------------------------- */

static void place_size_narrow(struct rp_idset *from, const struct rp_idset *to, uint32_t n)
{
	if (rp_ids_count(rp_ids_of(to)) >= n)
		rp_idset_copy(from, rp_ids_of(to));
}

static bool hints_grow(const struct problem *p, struct rp_ids current, struct rp_ids free,
		       uint32_t n, struct rp_idset *ret)
{
	const struct type *t = p->type;
	struct rp_idset from, better;
	rp_idset_copy(&from, free);
	for (uint32_t i = 0; i < t->close.n; i++) {
		rp_idset_and(&better, rp_ids_of(&from), near_device(p->s, t->close.list[i]));
		place_size_narrow(&from, &better, n);
	}
	(void)pct_prefer(p->s->pct, &p->pct, n, &from);
	for (uint32_t i = 0; i < t->far.n; i++) {
		rp_idset_andnot(&better, rp_ids_of(&from), near_device(p->s, t->far.list[i]));
		place_size_narrow(&from, &better, n);
	}
	(void)pct_avoid(&p->pct, n, &from);
	return steps_grow(p, current, rp_ids_of(&from), n, ret);
}

/*
 * Splits the CPUs that may be released by one hint; called for the most important hint first.
 * CPUs that the hint does not protect go first. A close device protects the CPUs near it, a far
 * device all others. Moves CPUs that must all be released from *maybe to *sure and lowers *n, or
 * narrows *maybe. Returns true if *maybe has exactly *n CPUs. The caller skips the hint for
 * isolated CPUs: only growing avoids these, and shrinking releases them like others.
 */
static bool place_size_split(struct rp_idset *maybe, struct rp_idset *sure, uint32_t *n,
			     struct rp_ids held, bool far)
{
	struct rp_idset loose;
	if (far)
		rp_idset_and(&loose, rp_ids_of(maybe), held);
	else
		rp_idset_andnot(&loose, rp_ids_of(maybe), held);
	uint32_t n_loose = rp_ids_count(rp_ids_of(&loose));
	if (n_loose >= *n) {
		rp_idset_copy(maybe, rp_ids_of(&loose));
		return n_loose == *n;
	}
	rp_idset_or(sure, rp_ids_of(sure), rp_ids_of(&loose));
	rp_idset_andnot(maybe, rp_ids_of(maybe), rp_ids_of(&loose));
	*n -= n_loose;
	return false;
}

static bool hints_shrink(const struct problem *p, struct rp_ids current, struct rp_ids free,
			 uint32_t n, struct rp_idset *ret)
{
	const struct type *t = p->type;
	struct rp_idset maybe, sure;
	bool done = false;
	rp_idset_copy(&maybe, current);
	rp_idset_clear(&sure);
	for (uint32_t i = 0; i < t->close.n && !done; i++)
		done = place_size_split(&maybe, &sure, &n, near_device(p->s, t->close.list[i]),
					false);
	for (uint32_t i = 0; i < t->far.n && !done; i++)
		if (p->s->plan->devices[t->far.list[i]].kind != DEVICE_ISOLATED)
			done = place_size_split(&maybe, &sure, &n,
						near_device(p->s, t->far.list[i]), true);
	if (!one_by_one(p, false, rp_ids_of(&maybe), free, n, ret))
		return false;
	rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&sure));
	return true;
}

/* ---- load ------------------------------------------------------------------------------------ */

static void load_from(struct state *s, uint32_t load, struct rp_ids cpus)
{
	plan_machine_surround(s->plan->machine, s->plan->loads[load].level, cpus,
			      &s->load_cpus[load]);
}

static void add_loads(struct state *s, const struct type *of, const struct balloon *b)
{
	for (uint32_t i = 0; i < of->loads.n; i++)
		for (uint32_t k = 0; k < b->type->loads.n; k++)
			if (b->type->loads.list[k] == of->loads.list[i])
				load_from(s, of->loads.list[i], rp_ids_of(&b->cpus));
	for (uint32_t i = 0; i < b->n_parts; i++)
		add_loads(s, of, b->parts[i]);
}

/* Finds the CPUs that the load classes of a type slow now. */
static void refresh_loads(struct state *s, const struct type *t, const struct balloon *own)
{
	for (uint32_t i = 0; i < t->loads.n; i++)
		rp_idset_clear(&s->load_cpus[t->loads.list[i]]);
	for (uint32_t i = 0; t->loads.n && i < s->n; i++)
		add_loads(s, t, s->list[i]);
	/* A balloon under construction is not in the list, and not among the parts of its
	 * `whole`. */
	for (; t->loads.n && own; own = own->whole)
		add_loads(s, t, own);
}

static void load_self(struct state *s, const struct type *t, struct rp_ids cpus)
{
	for (uint32_t i = 0; i < t->loads.n; i++)
		load_from(s, t->loads.list[i], cpus);
}

/* Chooses CPUs one at a time, because each adds to the load that the next one avoids. */
static bool load_grow(const struct problem *p, struct rp_ids current, struct rp_ids free,
		      uint32_t n, struct rp_idset *ret)
{
	if (!p->type->overloads_itself)
		return hints_grow(p, current, free, n, ret);
	struct rp_idset cur, left, from;
	load_self(p->s, p->type, current);
	if (!hints_grow(p, current, free, n, &from))
		return false;
	rp_idset_copy(&cur, current);
	rp_idset_copy(&left, free);
	rp_idset_clear(ret);
	for (uint32_t i = 0; i < n; i++) {
		if (i && !hints_grow(p, rp_ids_of(&cur), rp_ids_of(&left), 1, &from))
			return false;
		uint32_t cpu = rp_ids_first(rp_ids_of(&from));
		rp_idset_add(ret, cpu);
		rp_idset_add(&cur, cpu);
		rp_idset_del(&left, cpu);
		load_self(p->s, p->type, rp_ids_of(&cur));
	}
	return true;
}

/* ---- CPU classes ----------------------------------------------------------------------------- */

static void add_high(const struct state *s, const struct balloon *b, const struct balloon *but,
		     struct rp_idset *ret)
{
	for (uint32_t i = 0; i < b->n_parts; i++)
		add_high(s, b->parts[i], but, ret);
	if (b != but && !b->n_parts && pct_is_high(s->pct, b->type->cpu_class))
		rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&b->cpus));
}

void resize_high(const struct state *s, const struct balloon *but, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	if (!pct_has_high(s->pct))
		return;
	if (pct_is_high(s->pct, s->plan->idle_class))
		rp_idset_copy(ret, rp_ids_of(&s->free));
	for (uint32_t i = 0; i < s->n; i++)
		add_high(s, s->list[i], but, ret);
}

/* ---- stages in order ------------------------------------------------------------------------- */

static void place_size_begin(struct problem *p, struct state *s, const struct balloon *b)
{
	const struct plan_machine *m = s->plan->machine;
	p->s = s;
	p->type = b->type;
	p->tree = b->type->spread_cores ? &m->spread : &m->plain;
	refresh_loads(s, b->type, b);
	devices_look(s, b);
}

/* Returns the CPUs from which the size of a balloon is chosen: one of each core if the balloon has
 * whole cores. */
static struct rp_ids place_size_heads(const struct state *s, const struct type *t,
				      struct rp_ids cpus, struct rp_idset *ret)
{
	if (t->core == 1)
		return cpus;
	plan_machine_one_per_core(s->plan->machine, cpus, ret);
	return rp_ids_of(ret);
}

/* Adds the other CPUs of the cores that were chosen from the result of place_size_heads(). */
static void place_size_complete(const struct state *s, const struct type *t, struct rp_idset *cpus)
{
	struct rp_idset heads = *cpus;
	if (t->core > 1)
		plan_machine_surround(s->plan->machine, TREE_CORE, rp_ids_of(&heads), cpus);
}

int32_t resize_grow(struct state *s, const struct balloon *b, uint32_t n, struct rp_idset *ret)
{
	const struct type *t = b->type;
	struct rp_idset from, heads, usable = s->free;
	if (t->core > 1)
		isolation_narrow(s->h, &s->plan->isolation, &usable);
	struct rp_ids free = rp_ids_of(&usable);
	uint32_t n_free = rp_ids_count(free), n_cores = n / (uint32_t)t->core;
	if (n_free < n || n % t->core)
		return -RP_ENOSPC;
	if (n_free == n) {
		rp_idset_copy(ret, free);
		return 0;
	}
	struct problem p;
	place_size_begin(&p, s, b);
	struct rp_idset high;
	resize_high(s, b, &high);
	pct_hint(s->pct, t->cpu_class, n, free, rp_ids_of(&high), &p.pct);
	if (!load_grow(&p, rp_ids_of(&b->cpus), place_size_heads(s, t, free, &heads), n_cores,
		       &from))
		return -RP_ENOSPC;
	place_size_complete(s, t, &from);
	return cpualloc_allocate(s->plan->alloc, &from, n, t->priority, CPUALLOC_DEFAULT, ret);
}

int32_t resize_shrink(struct state *s, const struct balloon *b, uint32_t n, struct rp_idset *ret)
{
	const struct type *t = b->type;
	struct rp_ids own = rp_ids_of(&b->cpus);
	uint32_t n_own = rp_ids_count(own);
	if (n_own < n || n % t->core)
		return -RP_ENOSPC;
	if (n_own == n) {
		rp_idset_copy(ret, own);
		return 0;
	}
	struct problem p;
	place_size_begin(&p, s, b);
	if (p.type->overloads_itself)
		load_self(s, p.type, own);
	struct rp_idset heads;
	if (!hints_shrink(&p, place_size_heads(s, t, own, &heads), rp_ids_of(&s->free),
			  n / (uint32_t)t->core, ret))
		return -RP_ENOSPC;
	place_size_complete(s, t, ret);
	rp_idset_and(ret, rp_ids_of(ret), own);
	return 0;
}

/* ---- comparison of CPU sets ------------------------------------------------------------------ */

void resize_look_at_others(struct state *s, struct balloon *b)
{
	struct rp_idset own = b->cpus;
	rp_idset_clear(&b->cpus);
	refresh_loads(s, b->type, b);
	devices_look(s, b);
	b->cpus = own;
}

uint32_t resize_misses(const struct state *s, const struct type *t, uint32_t hint,
		       struct rp_ids cpus)
{
	struct rp_idset missed;
	if (hint < t->close.n)
		rp_idset_andnot(&missed, cpus, near_device(s, t->close.list[hint]));
	else
		rp_idset_and(&missed, cpus, near_device(s, t->far.list[hint - t->close.n]));
	return rp_ids_count(rp_ids_of(&missed));
}
