/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed choice of CPUs in the order of the kubelet's CPU manager (place_kubelet.h): whole packages
 * or nodes, caches, cores, then single threads.
 */
#include "modules/lib/private/pick.h"
#include "modules/static/place_kubelet.h"

/* ---- lists of units -------------------------------------------------------------------------- */

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
	uint32_t n = pick_rank(m, first, free, MACHINE_N_LEVELS);
	if (level == first)
		return n;
	remember_places(m, first, n);
	enum machine_level parent = first;
	if (level == MACHINE_CACHE)
		parent = MACHINE_NODE;
	else if (level == MACHINE_CORE)
		parent = second;
	if (parent == second) {
		n = pick_rank(m, second, free, first);
		remember_places(m, second, n);
	}
	return pick_rank(m, level, free, parent);
}

/* ---- packed allocation ----------------------------------------------------------------------- */

static void take_full(struct pick *k, enum machine_level level)
{
	pick_whole(k, level, kubelet_list(k->m, level, rp_ids_of(k->from)));
}

static void take_threads(struct pick *k)
{
	uint32_t n = kubelet_list(k->m, MACHINE_CORE, rp_ids_of(k->from));
	for (uint32_t i = 0; i < n && k->n; i++)
		pick_unit(k, pick_ranked(k->m, MACHINE_CORE, i));
}

/* Passes over the cores of a cache: each takes CPUs of the cores that it names. */
enum cache_pass { CACHE_WHOLE, CACHE_BROKEN, CACHE_ANY, N_CACHE_PASSES };

/* Takes whole cores, then single threads: of cores that are partly in use, then of any. */
static void take_from_cache(struct pick *k, const struct machine_unit *cache)
{
	for (int pass = CACHE_WHOLE; pass < N_CACHE_PASSES; pass++) {
		for (uint32_t i = 0; i < cache->n_cpus && k->n; i++) {
			const struct machine_unit *core =
				machine_unit_of(k->m, MACHINE_CORE, cache->cpus[i]);
			bool whole = pick_is_free(k, core) && k->n >= core->n_cpus;
			if (pass == CACHE_WHOLE ? whole
						: pass == CACHE_ANY || !pick_is_free(k, core))
				pick_unit(k, core);
		}
	}
}

/*
 * Returns true if whole idle cores of the cache cover the missing CPUs, apart from a remainder that
 * is smaller than a core.
 */
static bool has_whole_cores(const struct pick *k, const struct machine_unit *cache)
{
	uint32_t left = k->n;
	for (uint32_t i = 0; i < cache->n_cpus; i++) {
		const struct machine_unit *core =
			machine_unit_of(k->m, MACHINE_CORE, cache->cpus[i]);
		if (core->cpus[0] == cache->cpus[i] && pick_is_free(k, core) &&
		    left >= core->n_cpus)
			left -= core->n_cpus;
	}
	return left < k->m->threads;
}

/*
 * Takes whole caches, then the remaining CPUs from the first cache that has all of them free. A
 * cache with enough whole cores is preferred.
 */
static void take_caches(struct pick *k)
{
	take_full(k, MACHINE_CACHE);
	if (!k->n)
		return;
	uint32_t n = kubelet_list(k->m, MACHINE_CACHE, rp_ids_of(k->from));
	const struct machine_unit *with_room = NULL;
	for (uint32_t i = 0; i < n; i++) {
		const struct machine_unit *cache = pick_ranked(k->m, MACHINE_CACHE, i);
		if (k->m->ranks[i].n_free < k->n)
			continue;
		if (has_whole_cores(k, cache)) {
			take_from_cache(k, cache);
			return;
		}
		with_room = with_room ? with_room : cache;
	}
	if (with_room)
		take_from_cache(k, with_room);
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
static void take_across_cores(struct pick *k, const struct machine_unit *package)
{
	struct rp_idset was;
	rp_idset_copy(&was, rp_ids_of(k->from));
	uint32_t seen = 0, n = machine_count_free(package, rp_ids_of(&was));
	for (uint32_t round = 0; seen < n && k->n; round++) {
		for (uint32_t i = 0; i < package->n_cpus && k->n; i++) {
			uint32_t cpu = package->cpus[i];
			if (!rp_ids_has(rp_ids_of(&was), cpu) ||
			    lower_siblings(k->m, cpu, rp_ids_of(&was)) != round)
				continue;
			pick_cpu(k, cpu);
			seen++;
		}
	}
}

static void take_spread(struct pick *k)
{
	uint32_t n = kubelet_list(k->m, MACHINE_PACKAGE, rp_ids_of(k->from));
	for (uint32_t i = 0; i < n && k->n; i++)
		take_across_cores(k, pick_ranked(k->m, MACHINE_PACKAGE, i));
}

int32_t kubelet_packed(const struct machine *m, uint32_t options, struct rp_ids free, uint32_t n,
		       struct rp_idset *ret)
{
	if (rp_ids_count_and(free, rp_ids_of(&m->online)) < n)
		return -RP_ENOSPC;
	struct rp_idset from, taken;
	struct pick k = {m, &from, &taken, n};
	rp_idset_clear(&taken);
	rp_idset_and(&from, free, rp_ids_of(&m->online));
	take_full(&k, packages_first(m) ? MACHINE_PACKAGE : MACHINE_NODE);
	if (k.n)
		take_full(&k, packages_first(m) ? MACHINE_NODE : MACHINE_PACKAGE);
	if (k.n && (options & OPT_ALIGN_CACHE))
		take_caches(&k);
	if (k.n && (options & OPT_DISTRIBUTE_CORES))
		take_spread(&k);
	if (k.n)
		take_full(&k, MACHINE_CORE);
	if (k.n)
		take_threads(&k);
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
