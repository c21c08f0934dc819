/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of CPUs that preserves whole cores, and choice within the best fitting NUMA node. */
#include <nri-rp/lib/machine.h>

struct picking {
	const struct machine_level_units *cores;
	struct rp_idset free, got;
	uint32_t n; /* number of CPUs still to be chosen */
};

static void machine_pack_take(struct picking *k, uint32_t cpu)
{
	if (!k->n || !rp_ids_has(rp_ids_of(&k->free), cpu))
		return;
	rp_idset_del(&k->free, cpu);
	rp_idset_add(&k->got, cpu);
	k->n--;
}

static void take_core(struct picking *k, const struct machine_unit *core)
{
	for (uint32_t i = 0; i < core->n_cpus; i++)
		machine_pack_take(k, core->cpus[i]);
}

static bool is_whole(const struct picking *k, const struct machine_unit *core)
{
	return core->n_cpus > 1 && machine_count_free(core, rp_ids_of(&k->free)) == core->n_cpus;
}

static void complete_broken_cores(struct picking *k)
{
	for (uint32_t i = 0; i < k->cores->n_units && k->n; i++) {
		const struct machine_unit *core = &k->cores->units[i];
		uint32_t n = machine_count_free(core, rp_ids_of(&k->free));
		if (core->n_cpus > 1 && n && n < core->n_cpus)
			take_core(k, core);
	}
}

static void take_whole_cores(struct picking *k)
{
	const struct machine_unit *last = NULL; /* the core of CPU 0 */
	for (uint32_t i = 0; i < k->cores->n_units && k->n > 1; i++) {
		const struct machine_unit *core = &k->cores->units[i];
		if (!is_whole(k, core))
			continue;
		if (core->cpus[0] == 0)
			last = core;
		else
			take_core(k, core);
	}
	if (last && k->n > 1)
		take_core(k, last);
}

/* Takes one CPU of a whole core. In the core of CPU 0, CPU 0 itself is left. */
static void break_core(struct picking *k)
{
	for (uint32_t i = 0; i < k->cores->n_units; i++) {
		const struct machine_unit *core = &k->cores->units[i];
		if (!is_whole(k, core))
			continue;
		machine_pack_take(k, core->cpus[core->cpus[0] == 0]);
		return;
	}
}

static void take_ascending(struct picking *k)
{
	uint32_t cpu = rp_ids_next(rp_ids_of(&k->free), 0);
	for (; k->n && cpu != RP_IDSET_NONE; cpu = rp_ids_next(rp_ids_of(&k->free), cpu))
		machine_pack_take(k, cpu);
	machine_pack_take(k, 0);
}

/* Chooses n free CPUs. Without cores of several threads, the steps for whole cores do nothing. */
void machine_pack(const struct machine *m, struct rp_ids free, uint32_t n, struct rp_idset *ret)
{
	struct picking k = {.cores = &m->level[MACHINE_CORE], .n = n};
	rp_idset_copy(&k.free, free);
	rp_idset_clear(&k.got);
	complete_broken_cores(&k);
	take_whole_cores(&k);
	if (k.n)
		break_core(&k);
	take_ascending(&k);
	*ret = k.got;
}

bool machine_tightest(const struct machine *m, enum machine_level level, struct rp_ids free,
		      uint32_t n, struct rp_idset *ret)
{
	const struct machine_unit *best = NULL;
	uint32_t n_best = UINT32_MAX;
	for (uint32_t i = 0; i < m->level[level].n_units; i++) {
		const struct machine_unit *unit = &m->level[level].units[i];
		uint32_t has = machine_count_free(unit, free);
		if (has < n || has >= n_best)
			continue;
		best = unit;
		n_best = has;
	}
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

/* Returns the unit of a level with most of the free CPUs. */
static const struct machine_unit *find_widest(const struct machine *m, enum machine_level level,
					      struct rp_ids free)
{
	const struct machine_level_units *units = &m->level[level];
	const struct machine_unit *widest = &units->units[0];
	uint32_t most = 0;
	for (uint32_t i = 0; i < units->n_units; i++) {
		uint32_t has = machine_count_free(&units->units[i], free);
		if (has <= most)
			continue;
		most = has;
		widest = &units->units[i];
	}
	return widest;
}

/* Moves the free CPUs of whole units, the widest first, to `kept` until one unit has room for the
 * rest. Returns the number of CPUs of that rest; 0: the CPUs of the units do not suffice. */
static uint32_t keep_widest(const struct machine *m, enum machine_level level, uint32_t n,
			    struct rp_idset *free, struct rp_idset *kept)
{
	struct rp_idset unit;
	while (!machine_tightest(m, level, rp_ids_of(free), n, &unit)) {
		machine_add_free(find_widest(m, level, rp_ids_of(free)), rp_ids_of(free), &unit);
		uint32_t has = rp_ids_count(rp_ids_of(&unit));
		if (!has || has >= n)
			return 0;
		rp_idset_or(kept, rp_ids_of(kept), rp_ids_of(&unit));
		rp_idset_andnot(free, rp_ids_of(free), rp_ids_of(&unit));
		n -= has;
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
