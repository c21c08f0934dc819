/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CPUs an integer container gets: broken cores are used up first, whole cores stay whole as long as they can, and CPU 0 is given
 * away last. Cores are walked by their lowest CPU; nothing but that makes CPUs near to each other, unless numaAware does.
 */
#include "modules/cpuset/cpuset.h"

struct picking {
	const struct rp_plan *p;
	struct rp_idset free, got;
	uint32_t n; /* missing */
};

static uint32_t count_free(const struct picking *k, const struct core *c)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n; i++)
		n += rp_ids_has(rp_ids_of(&k->free), k->p->threads[c->first + i]) != 0;
	return n;
}

static void take(struct picking *k, uint32_t cpu)
{
	if (!k->n || !rp_ids_has(rp_ids_of(&k->free), cpu))
		return;
	rp_idset_del(&k->free, cpu);
	rp_idset_add(&k->got, cpu);
	k->n--;
}

static void take_core(struct picking *k, const struct core *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		take(k, k->p->threads[c->first + i]);
}

static bool has_cpu0(const struct picking *k, const struct core *c)
{
	return c->n && k->p->threads[c->first] == 0;
}

static bool is_whole(const struct picking *k, const struct core *c)
{
	return c->n > 1 && count_free(k, c) == c->n;
}

static void complete_broken_cores(struct picking *k)
{
	for (uint32_t i = 0; i < k->p->n_cores && k->n; i++) {
		uint32_t n = count_free(k, &k->p->cores[i]);
		if (n && n < k->p->cores[i].n)
			take_core(k, &k->p->cores[i]);
	}
}

static void take_whole_cores(struct picking *k)
{
	const struct core *last = NULL; /* that of CPU 0 */
	for (uint32_t i = 0; i < k->p->n_cores && k->n > 1; i++) {
		const struct core *c = &k->p->cores[i];
		if (!is_whole(k, c))
			continue;
		if (has_cpu0(k, c))
			last = c;
		else
			take_core(k, c);
	}
	if (last && k->n > 1)
		take_core(k, last);
}

/* Breaks a core for one CPU: that of CPU 0, but leaves CPU 0 itself. */
static void break_core(struct picking *k)
{
	const struct core *first = NULL;
	for (uint32_t i = 0; i < k->p->n_cores; i++) {
		const struct core *c = &k->p->cores[i];
		if (!is_whole(k, c))
			continue;
		if (has_cpu0(k, c)) {
			take(k, k->p->threads[c->first + 1]);
			return;
		}
		if (!first)
			first = c;
	}
	if (first)
		take(k, k->p->threads[first->first]);
}

static void take_ascending(struct picking *k)
{
	struct rp_idset rest = k->free;
	RP_IDS_EACH (cpu, rp_ids_of(&rest))
		if (cpu)
			take(k, cpu);
	take(k, 0);
}

void pick(const struct rp_plan *p, struct rp_ids free, uint32_t n, struct rp_idset *ret)
{
	struct picking k = {.p = p, .n = n};
	rp_idset_copy(&k.free, free);
	rp_idset_clear(&k.got);
	if (p->smt) {
		complete_broken_cores(&k);
		take_whole_cores(&k);
		if (k.n)
			break_core(&k);
	}
	take_ascending(&k);
	*ret = k.got;
}

/* The unit of a level with the fewest free CPUs that are enough. */
static bool smallest_unit(const struct modhost *h, uint32_t level, struct rp_ids free, uint32_t n,
			  struct rp_idset *ret)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t i = 0; i < h->topology->n_units(h->ctx, level); i++) {
		struct rp_unit_info unit = {.size = sizeof unit};
		if (h->topology->unit(h->ctx, level, i, &unit))
			continue;
		uint32_t has = rp_ids_count_and(unit.cpus, free);
		if (has < n || has >= best)
			continue;
		best = has;
		rp_idset_and(ret, unit.cpus, free);
	}
	return best != UINT32_MAX;
}

void pick_near(const struct rp_instance *inst, struct rp_ids free, uint32_t n, struct rp_idset *ret)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset near, nearer;
	rp_idset_copy(&near, free);
	if (p->numa_aware) {
		static const uint32_t levels[] = {RP_LEVEL_PACKAGE, RP_LEVEL_NODE, RP_LEVEL_LLC};
		for (uint32_t i = 0; i < (p->shared_cache ? 3u : 2u); i++)
			if (smallest_unit(&inst->h, levels[i], rp_ids_of(&near), n, &nearer))
				near = nearer;
	}
	pick(p, rp_ids_of(&near), n, ret);
}
