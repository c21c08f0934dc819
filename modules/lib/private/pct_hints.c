/* SPDX-License-Identifier: Apache-2.0 */
/* Room for CPUs of high priority: suggestions where to choose CPUs, and the capacity of a class. */
#include "modules/lib/private/pct_impl.h"

/* ---- hints ----------------------------------------------------------------------------------- */

bool pct_is_high(const struct pct *p, uint32_t class)
{
	return p && class < CPUCLASS_MAX && (p->high >> class & 1);
}

bool pct_has_high(const struct pct *p)
{
	return p && p->high;
}

struct room {
	uint32_t index, room, free;
};

/* Returns how many more CPUs of the punit can be high. */
static uint32_t left_of(const struct pct_punit *u, struct rp_ids high)
{
	uint32_t used = rp_ids_count_and(high, rp_ids_of(&u->cpus));
	return u->most > used ? u->most - used : 0;
}

static struct room room_of(const struct pct_punit *u, struct rp_ids free, struct rp_ids high)
{
	return (struct room){0, left_of(u, high), rp_ids_count_and(free, rp_ids_of(&u->allowed))};
}

/* Inserts by more room first, then more free CPUs; equals keep their order. */
static void pct_hints_insert(struct pct_hints *hints, struct room *sorted, struct room new)
{
	uint32_t at = hints->n_reserve++;
	for (; at; at--) {
		const struct room *r = &sorted[at - 1];
		if (r->room > new.room || (r->room == new.room && r->free >= new.free))
			break;
		sorted[at] = sorted[at - 1];
	}
	sorted[at] = new;
}

static void reserve_punits(const struct pct *p, uint32_t n, struct rp_ids free, struct rp_ids high,
			   struct pct_hints *ret, struct room *sorted)
{
	for (uint32_t i = 0; i < p->n_punits; i++) {
		struct room r = room_of(&p->punits[i], free, high);
		r.index = i;
		if (p->punits[i].eligible && r.room >= n && r.free >= n)
			pct_hints_insert(ret, sorted, r);
	}
}

static void reserve_packages(const struct pct *p, uint32_t n, struct rp_ids free,
			     struct rp_ids high, struct pct_hints *ret, struct room *sorted)
{
	for (uint32_t i = 0; i < p->n_packages; i++) {
		struct room all = {.index = i};
		uint32_t fit = 0;
		for (uint32_t k = 0; k < p->n_punits; k++) {
			if (p->punits[k].package_id != p->packages[i].id || !p->punits[k].eligible)
				continue;
			struct room r = room_of(&p->punits[k], free, high);
			all.room += r.room;
			all.free += r.free;
			fit += r.room < r.free ? r.room : r.free;
		}
		if (fit >= n)
			pct_hints_insert(ret, sorted, all);
	}
}

static void avoid_high(const struct pct *p, struct rp_ids high, struct pct_hints *ret)
{
	rp_idset_clear(&ret->avoid);
	for (uint32_t i = 0; i < p->n_punits; i++) {
		const struct pct_punit *u = &p->punits[i];
		if (rp_ids_overlap(high, rp_ids_of(&u->cpus)))
			rp_idset_or(&ret->avoid, rp_ids_of(&ret->avoid), rp_ids_of(&u->allowed));
	}
	ret->has_avoid = !rp_ids_empty(rp_ids_of(&ret->avoid));
}

/* Finds punits with enough room, else packages. */
static void pct_hints_reserve(const struct pct *p, uint32_t n, struct rp_ids free,
			      struct rp_ids high, struct pct_hints *ret)
{
	struct room sorted[PCT_PUNITS_MAX] = {{0, 0, 0}};
	reserve_punits(p, n, free, high, ret, sorted);
	if (!ret->n_reserve) {
		ret->packages = true;
		reserve_packages(p, n, free, high, ret, sorted);
	}
	for (uint32_t i = 0; i < ret->n_reserve; i++)
		ret->reserve[i] = (uint16_t)sorted[i].index;
}

void pct_hint(const struct pct *p, uint32_t class, uint32_t n, struct rp_ids free,
	      struct rp_ids high, struct pct_hints *ret)
{
	ret->has_clos = ret->has_avoid = ret->packages = false;
	ret->n_reserve = 0;
	if (!p || !n)
		return;
	int8_t clos = pct_clos_of_class(p, class);
	if (clos != PCT_NO_CLOS) {
		rp_idset_clear(&ret->clos);
		RP_IDS_EACH (cpu, free)
			if (cpu < p->n_cpus && p->cpus[cpu].now == clos)
				rp_idset_add(&ret->clos, cpu);
		ret->has_clos = rp_ids_count(rp_ids_of(&ret->clos)) >= n;
	}
	if (!pct_is_high(p, class)) {
		if (p->high)
			avoid_high(p, high, ret);
		return;
	}
	pct_hints_reserve(p, n, free, high, ret);
}

static bool pct_hints_narrow(struct rp_idset *from, const struct rp_idset *to, uint32_t n)
{
	if (rp_ids_count(rp_ids_of(to)) < n)
		return false;
	rp_idset_copy(from, rp_ids_of(to));
	return true;
}

bool pct_prefer(const struct pct *p, const struct pct_hints *hints, uint32_t n,
		struct rp_idset *from)
{
	struct rp_idset better;
	bool done = false;
	if (hints->has_clos) {
		rp_idset_and(&better, rp_ids_of(from), rp_ids_of(&hints->clos));
		done = pct_hints_narrow(from, &better, n);
	}
	for (uint32_t i = 0; i < hints->n_reserve; i++) {
		const struct rp_idset *set = hints->packages
						     ? &p->packages[hints->reserve[i]].allowed
						     : &p->punits[hints->reserve[i]].allowed;
		rp_idset_and(&better, rp_ids_of(from), rp_ids_of(set));
		if (pct_hints_narrow(from, &better, n))
			return true;
	}
	return done;
}

bool pct_avoid(const struct pct_hints *hints, uint32_t n, struct rp_idset *from)
{
	struct rp_idset better;
	if (!hints->has_avoid)
		return false;
	rp_idset_andnot(&better, rp_ids_of(from), rp_ids_of(&hints->avoid));
	return pct_hints_narrow(from, &better, n);
}

uint32_t pct_misses(const struct pct *p, uint32_t class, struct rp_ids high, struct rp_ids cpus)
{
	uint32_t n = 0;
	for (uint32_t i = 0; p && i < p->n_punits; i++) {
		const struct pct_punit *u = &p->punits[i];
		uint32_t here = rp_ids_count_and(cpus, rp_ids_of(&u->cpus));
		uint32_t room = left_of(u, high);
		if (!pct_is_high(p, class))
			n += rp_ids_overlap(high, rp_ids_of(&u->cpus)) ? here : 0;
		else if (!u->eligible || here > room)
			n += u->eligible ? here - room : here;
	}
	return n;
}

/* ---- the extended resource ------------------------------------------------------------------- */

int64_t pct_capacity(const struct pct *p, uint32_t class, struct rp_ids held)
{
	struct rp_idset left;
	int64_t n = 0;
	if (!pct_is_high(p, class)) {
		rp_idset_andnot(&left, rp_ids_of(&p->allowed), held);
		return rp_ids_count(rp_ids_of(&left));
	}
	for (uint32_t i = 0; i < p->n_punits; i++) {
		const struct pct_punit *u = &p->punits[i];
		rp_idset_andnot(&left, rp_ids_of(&u->allowed), held);
		uint32_t free = rp_ids_count(rp_ids_of(&left));
		if (u->eligible)
			n += free < u->least ? free : u->least;
	}
	return n;
}
