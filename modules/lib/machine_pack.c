/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of CPUs that preserves whole cores, and choice within the best fitting NUMA node. */
#include <nri-rp/lib/machine.h>

#include "modules/lib/private/pick.h"

/* Returns true if the core has several threads, all of them free. */
static bool is_whole(const struct pick *k, const struct machine_unit *core)
{
	return core->n_cpus > 1 && pick_is_free(k, core);
}

static void pack_broken_cores(struct pick *k, const struct machine_level_units *cores)
{
	for (uint32_t i = 0; i < cores->n_units && k->n; i++)
		if (cores->units[i].n_cpus > 1 && !pick_is_free(k, &cores->units[i]))
			pick_unit(k, &cores->units[i]);
}

static void pack_whole_cores(struct pick *k, const struct machine_level_units *cores)
{
	const struct machine_unit *last = NULL; /* the core of CPU 0 */
	for (uint32_t i = 0; i < cores->n_units && k->n > 1; i++) {
		const struct machine_unit *core = &cores->units[i];
		if (!is_whole(k, core))
			continue;
		if (core->cpus[0] == 0)
			last = core;
		else
			pick_unit(k, core);
	}
	if (last && k->n > 1)
		pick_unit(k, last);
}

/* Takes one CPU of a whole core. In the core of CPU 0, CPU 0 itself is left. */
static void pack_break_core(struct pick *k, const struct machine_level_units *cores)
{
	uint32_t i = 0;
	while (i < cores->n_units && !is_whole(k, &cores->units[i]))
		i++;
	if (i < cores->n_units)
		pick_cpu(k, cores->units[i].cpus[cores->units[i].cpus[0] == 0]);
}

/* Chooses n free CPUs. */
void machine_pack(const struct machine *m, struct rp_ids free, uint32_t n, struct rp_idset *ret)
{
	const struct machine_level_units *cores = &m->level[MACHINE_CORE];
	struct rp_idset from, got;
	struct pick k = {m, &from, &got, n};
	rp_idset_copy(&from, free);
	rp_idset_clear(&got);
	if (cores->n_units < m->n_cpus) {
		pack_broken_cores(&k, cores);
		pack_whole_cores(&k, cores);
		pack_break_core(&k, cores);
	}
	for (uint32_t cpu = rp_ids_next(free, 0); k.n && cpu != RP_IDSET_NONE;
	     cpu = rp_ids_next(free, cpu))
		pick_cpu(&k, cpu);
	pick_cpu(&k, 0);
	*ret = got;
}

bool machine_tightest(const struct machine *m, enum machine_level level, struct rp_ids free,
		      uint32_t n, struct rp_idset *ret)
{
	const struct machine_unit *widest, *best = pick_tightest(m, level, free, n, &widest);
	rp_idset_clear(ret);
	if (best)
		machine_add_free(best, free, ret);
	return best != NULL;
}

/* ---- best fit -------------------------------------------------------------------------------- */

/* A NUMA node as a candidate for n CPUs. */
struct fit {
	uint32_t n_free, n_package; /* free CPUs of the node, and of its package */
	bool broken; /* whole cores are wanted, and the node has too few */
};

static bool fit_is_better(const struct fit *a, const struct fit *b)
{
	if (a->broken != b->broken)
		return b->broken;
	return a->n_free != b->n_free ? a->n_free < b->n_free : a->n_package < b->n_package;
}

static struct fit fit_of(const struct machine *m, const struct machine_unit *node,
			 struct rp_ids free, uint32_t n, bool cores)
{
	const struct machine_unit *package = machine_unit_of(m, MACHINE_PACKAGE, node->cpus[0]);
	struct fit f = {.n_free = machine_count_free(node, free),
			.n_package = package ? machine_count_free(package, free) : 0};
	if (cores && m->threads > 1) {
		struct rp_idset own, whole;
		rp_idset_clear(&own);
		machine_add_free(node, free, &own);
		machine_whole_cores(m, rp_ids_of(&own), &whole);
		f.broken = rp_ids_count(rp_ids_of(&whole)) < n - n % m->threads;
	}
	return f;
}

/* Moves the free CPUs of whole units, the widest first, to `kept` until one unit has room for the
 * rest. Returns the number of CPUs of that rest; 0: the CPUs of the units do not suffice. */
static uint32_t keep_widest(const struct machine *m, enum machine_level level, uint32_t n,
			    struct rp_idset *free, struct rp_idset *kept)
{
	const struct machine_unit *widest;
	while (!pick_tightest(m, level, rp_ids_of(free), n, &widest)) {
		struct rp_idset unit;
		if (!widest)
			return 0;
		rp_idset_clear(&unit);
		machine_add_free(widest, rp_ids_of(free), &unit);
		rp_idset_or(kept, rp_ids_of(kept), rp_ids_of(&unit));
		rp_idset_andnot(free, rp_ids_of(free), rp_ids_of(&unit));
		n -= rp_ids_count(rp_ids_of(&unit));
	}
	return n;
}

static const struct machine_unit *find_node(const struct machine *m, struct rp_ids free, uint32_t n,
					    bool cores)
{
	const struct machine_level_units *nodes = &m->level[MACHINE_NODE];
	const struct machine_unit *best = NULL;
	struct fit best_fit = {0};
	for (uint32_t i = 0; i < nodes->n_units; i++) {
		struct fit f = fit_of(m, &nodes->units[i], free, n, cores);
		if (f.n_free < n || (best && !fit_is_better(&f, &best_fit)))
			continue;
		best = &nodes->units[i];
		best_fit = f;
	}
	return best;
}

bool machine_narrow(const struct machine *m, struct rp_idset *free, uint32_t n, bool cores)
{
	static const enum machine_level levels[] = {MACHINE_PACKAGE, MACHINE_NODE};
	const struct machine_unit *node;
	struct rp_idset left = *free, kept, near;
	bool one = true;
	if (!n || rp_ids_count(rp_ids_of(free)) < n)
		return false;
	rp_idset_clear(&kept);
	for (uint32_t i = 0; !(node = find_node(m, rp_ids_of(&left), n, cores)); i++) {
		n = i < 2 ? keep_widest(m, levels[i], n, &left, &kept) : 0;
		if (!n)
			return false; /* a part of the CPUs is in no unit */
		if (machine_tightest(m, levels[i], rp_ids_of(&left), n, &near))
			left = near;
		one = false;
	}
	rp_idset_clear(&near);
	machine_add_free(node, rp_ids_of(&left), &near);
	rp_idset_or(free, rp_ids_of(&kept), rp_ids_of(&near));
	return one;
}
