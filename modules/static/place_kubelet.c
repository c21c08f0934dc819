/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed choice of CPUs in the order of the kubelet's CPU manager (place_kubelet.h): whole packages
 * or nodes, caches, cores, then single threads.
 */
#include <stdlib.h>

#include "modules/static/place_kubelet.h"

/* ---- lists of units -------------------------------------------------------------------------- */

static int cmp_u32(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int cmp_ranks(const void *pa, const void *pb)
{
	const struct machine_rank *a = pa, *b = pb;
	int r = cmp_u32(a->group, b->group);
	if (!r)
		r = cmp_u32(a->n_free, b->n_free);
	if (!r)
		r = cmp_u32(a->id, b->id);
	return r ? r : cmp_u32(a->index, b->index);
}

/*
 * Lists the units of a level, grouped by the rank of their unit of level `parent`;
 * MACHINE_N_LEVELS: one group.
 */
static uint32_t list_within(const struct machine *m, enum machine_level level, struct rp_ids free,
			    enum machine_level parent)
{
	const struct machine_level_units *lv = &m->level[level];
	uint32_t n = 0;
	for (uint32_t i = 0; i < lv->n_units; i++) {
		const struct machine_unit *u = &lv->units[i];
		struct machine_rank r = {.n_free = machine_count_free(u, free), .id = u->id};
		if (!r.n_free)
			continue;
		r.index = i;
		if (parent != MACHINE_N_LEVELS)
			r.group = m->place[parent][m->level[parent].unit_of[u->cpus[0]]];
		m->ranks[n++] = r;
	}
	qsort(m->ranks, n, sizeof *m->ranks, cmp_ranks);
	return n;
}

static void remember_places(const struct machine *m, enum machine_level level, uint32_t n)
{
	for (uint32_t i = 0; i < m->level[level].n_units; i++)
		m->place[level][i] = UINT32_MAX;
	for (uint32_t i = 0; i < n; i++)
		m->place[level][m->ranks[i].index] = i;
}

/*
 * Returns nonzero if packages contain NUMA nodes, which is the case with fewer packages than nodes.
 * Otherwise nodes contain packages.
 */
static int packages_first(const struct machine *m)
{
	return m->level[MACHINE_PACKAGE].n_units < m->level[MACHINE_NODE].n_units;
}

uint32_t kubelet_list(const struct machine *m, enum machine_level level, struct rp_ids free)
{
	enum machine_level first = packages_first(m) ? MACHINE_PACKAGE : MACHINE_NODE;
	enum machine_level second = packages_first(m) ? MACHINE_NODE : MACHINE_PACKAGE;
	uint32_t n = list_within(m, first, free, MACHINE_N_LEVELS);
	if (level == first)
		return n;
	remember_places(m, first, n);
	enum machine_level parent = first;
	if (level == MACHINE_CACHE)
		parent = MACHINE_NODE;
	else if (level == MACHINE_CORE)
		parent = second;
	if (parent == second) {
		n = list_within(m, second, free, first);
		remember_places(m, second, n);
	}
	return list_within(m, level, free, parent);
}

/* ---- packed allocation ----------------------------------------------------------------------- */

struct taking {
	const struct machine *m;
	struct rp_idset left; /* CPUs still free */
	struct rp_idset *ret;
	uint32_t need;
};

static void take_cpu(struct taking *t, uint32_t cpu)
{
	rp_idset_del(&t->left, cpu);
	rp_idset_add(t->ret, cpu);
	t->need--;
}

static void take_unit(struct taking *t, const struct machine_unit *u)
{
	for (uint32_t i = 0; i < u->n_cpus; i++)
		take_cpu(t, u->cpus[i]);
}

static void take_full(struct taking *t, enum machine_level level)
{
	uint32_t n = kubelet_list(t->m, level, rp_ids_of(&t->left));
	for (uint32_t i = 0; i < n && t->need; i++) {
		const struct machine_unit *u = &t->m->level[level].units[t->m->ranks[i].index];
		if (t->m->ranks[i].n_free == u->n_cpus && t->need >= u->n_cpus)
			take_unit(t, u);
	}
}

static void take_threads(struct taking *t)
{
	uint32_t n = kubelet_list(t->m, MACHINE_CORE, rp_ids_of(&t->left));
	for (uint32_t i = 0; i < n; i++) {
		const struct machine_unit *u =
			&t->m->level[MACHINE_CORE].units[t->m->ranks[i].index];
		for (uint32_t k = 0; k < u->n_cpus && t->need; k++)
			if (rp_ids_has(rp_ids_of(&t->left), u->cpus[k]))
				take_cpu(t, u->cpus[k]);
	}
}

static int core_is_free(const struct taking *t, const struct machine_unit *core)
{
	return machine_count_free(core, rp_ids_of(&t->left)) == core->n_cpus;
}

/*
 * Takes single threads of a cache's cores in the order of cores. broken: only of cores that are
 * partly in use.
 */
static void take_cache_threads(struct taking *t, const struct machine_unit *cache, int broken)
{
	for (uint32_t i = 0; i < cache->n_cpus; i++) {
		const struct machine_unit *core =
			machine_unit_of(t->m, MACHINE_CORE, cache->cpus[i]);
		if (core->cpus[0] != cache->cpus[i] || (broken && core_is_free(t, core)))
			continue;
		for (uint32_t k = 0; k < core->n_cpus && t->need; k++)
			if (rp_ids_has(rp_ids_of(&t->left), core->cpus[k]))
				take_cpu(t, core->cpus[k]);
	}
}

static void take_from_cache(struct taking *t, const struct machine_unit *cache)
{
	for (uint32_t i = 0; i < cache->n_cpus && t->need; i++) {
		const struct machine_unit *core =
			machine_unit_of(t->m, MACHINE_CORE, cache->cpus[i]);
		if (core_is_free(t, core) && t->need >= core->n_cpus)
			take_unit(t, core);
	}
	take_cache_threads(t, cache, 1);
	take_cache_threads(t, cache, 0);
}

/*
 * Returns true if whole idle cores of the cache cover the missing CPUs, apart from a remainder that
 * is smaller than a core.
 */
static bool has_whole_cores(const struct taking *t, const struct machine_unit *cache)
{
	uint32_t left = t->need;
	for (uint32_t i = 0; i < cache->n_cpus; i++) {
		const struct machine_unit *core =
			machine_unit_of(t->m, MACHINE_CORE, cache->cpus[i]);
		if (core->cpus[0] == cache->cpus[i] && core_is_free(t, core) &&
		    left >= core->n_cpus)
			left -= core->n_cpus;
	}
	return left < t->m->threads;
}

/*
 * Takes whole caches, then the remaining CPUs from the first cache that has all of them free. A
 * cache with enough whole cores is preferred.
 */
static void take_caches(struct taking *t)
{
	take_full(t, MACHINE_CACHE);
	if (!t->need)
		return;
	uint32_t n = kubelet_list(t->m, MACHINE_CACHE, rp_ids_of(&t->left));
	const struct machine_unit *with_room = NULL;
	for (uint32_t i = 0; i < n; i++) {
		const struct machine_unit *cache =
			&t->m->level[MACHINE_CACHE].units[t->m->ranks[i].index];
		if (t->m->ranks[i].n_free < t->need)
			continue;
		if (has_whole_cores(t, cache)) {
			take_from_cache(t, cache);
			return;
		}
		with_room = with_room ? with_room : cache;
	}
	if (with_room)
		take_from_cache(t, with_room);
}

/* Returns the number of siblings with a lower id that a CPU has in the set. */
static uint32_t lower_siblings(const struct machine *m, uint32_t cpu, struct rp_ids in)
{
	const struct machine_unit *core = machine_unit_of(m, MACHINE_CORE, cpu);
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->n_cpus && core->cpus[i] < cpu; i++)
		n += (uint32_t)rp_ids_has(in, core->cpus[i]);
	return n;
}

/* Takes one thread of each core of a package, then a second thread of each, and so on. */
static void take_across_cores(struct taking *t, const struct machine_unit *package)
{
	struct rp_idset was;
	rp_idset_copy(&was, rp_ids_of(&t->left));
	uint32_t seen = 0, n = machine_count_free(package, rp_ids_of(&was));
	for (uint32_t round = 0; seen < n && t->need; round++) {
		for (uint32_t i = 0; i < package->n_cpus && t->need; i++) {
			uint32_t cpu = package->cpus[i];
			if (!rp_ids_has(rp_ids_of(&was), cpu) ||
			    lower_siblings(t->m, cpu, rp_ids_of(&was)) != round)
				continue;
			take_cpu(t, cpu);
			seen++;
		}
	}
}

static void take_spread(struct taking *t)
{
	uint32_t n = kubelet_list(t->m, MACHINE_PACKAGE, rp_ids_of(&t->left));
	for (uint32_t i = 0; i < n && t->need; i++)
		take_across_cores(t, &t->m->level[MACHINE_PACKAGE].units[t->m->ranks[i].index]);
}

int32_t kubelet_packed(const struct machine *m, uint32_t options, struct rp_ids free, uint32_t n,
		       struct rp_idset *ret)
{
	if (rp_ids_count_and(free, rp_ids_of(&m->online)) < n)
		return -RP_ENOSPC;
	struct rp_idset taken;
	rp_idset_clear(&taken);
	struct taking t = {.m = m, .ret = &taken, .need = n};
	rp_idset_and(&t.left, free, rp_ids_of(&m->online));
	take_full(&t, packages_first(m) ? MACHINE_PACKAGE : MACHINE_NODE);
	if (t.need)
		take_full(&t, packages_first(m) ? MACHINE_NODE : MACHINE_PACKAGE);
	if (t.need && (options & OPT_ALIGN_CACHE))
		take_caches(&t);
	if (t.need && (options & OPT_DISTRIBUTE_CORES))
		take_spread(&t);
	if (t.need)
		take_full(&t, MACHINE_CORE);
	if (t.need)
		take_threads(&t);
	rp_idset_copy(ret, rp_ids_of(&taken));
	return 0;
}

int32_t kubelet_take(const struct machine *m, uint32_t options, struct rp_ids free, uint32_t n,
		     struct rp_idset *ret)
{
	int32_t r = DISTRIBUTE_NOT;
	if (options & OPT_DISTRIBUTE_NUMA)
		r = kubelet_distributed(m, options, free, n, ret);
	return r == DISTRIBUTE_NOT ? kubelet_packed(m, options, free, n, ret) : r;
}
