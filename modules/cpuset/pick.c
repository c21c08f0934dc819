/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CPUs an integer container gets: broken cores are used up first, whole cores stay whole as long as they can, and CPU 0 is given
 * away last. Cores are walked by their lowest CPU; nothing but that makes CPUs near to each other, unless numaAware does.
 */
#include "modules/cpuset/cpuset.h"

struct picking {
	const struct machine_level_units *cores;
	struct rp_idset free, got;
	uint32_t n; /* missing */
};

static void take(struct picking *k, uint32_t cpu)
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
		take(k, core->cpus[i]);
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
	const struct machine_unit *last = NULL; /* that of CPU 0 */
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

/* Breaks a core for one CPU: that of CPU 0, but leaves CPU 0 itself. */
static void break_core(struct picking *k)
{
	const struct machine_unit *first = NULL;
	for (uint32_t i = 0; i < k->cores->n_units; i++) {
		const struct machine_unit *core = &k->cores->units[i];
		if (!is_whole(k, core))
			continue;
		if (core->cpus[0] == 0) {
			take(k, core->cpus[1]);
			return;
		}
		if (!first)
			first = core;
	}
	if (first)
		take(k, first->cpus[0]);
}

static void take_ascending(struct picking *k)
{
	struct rp_idset rest = k->free;
	RP_IDS_EACH (cpu, rp_ids_of(&rest))
		if (cpu)
			take(k, cpu);
	take(k, 0);
}

/* Where no core has several threads, all that is done for whole cores does nothing. */
void pick(const struct rp_plan *p, struct rp_ids free, uint32_t n, struct rp_idset *ret)
{
	struct picking k = {.cores = &p->machine->level[MACHINE_CORE], .n = n};
	rp_idset_copy(&k.free, free);
	rp_idset_clear(&k.got);
	complete_broken_cores(&k);
	take_whole_cores(&k);
	if (k.n)
		break_core(&k);
	take_ascending(&k);
	*ret = k.got;
}

/* The unit of a level with the fewest free CPUs that are enough. */
static bool smallest_unit(const struct machine_level_units *level, struct rp_ids free, uint32_t n,
			  struct rp_idset *ret)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t i = 0; i < level->n_units; i++) {
		uint32_t has = machine_count_free(&level->units[i], free);
		if (has < n || has >= best)
			continue;
		best = has;
		rp_idset_clear(ret);
		machine_add_free(&level->units[i], free, ret);
	}
	return best != UINT32_MAX;
}

void pick_near(const struct rp_instance *inst, struct rp_ids free, uint32_t n, struct rp_idset *ret)
{
	static const enum machine_level levels[] = {MACHINE_PACKAGE, MACHINE_NODE, MACHINE_CACHE};
	const struct rp_plan *p = inst->plan;
	struct rp_idset near, nearer;
	rp_idset_copy(&near, free);
	for (uint32_t i = 0; p->numa_aware && i < (p->shared_cache ? 3u : 2u); i++)
		if (smallest_unit(&p->machine->level[levels[i]], rp_ids_of(&near), n, &nearer))
			near = nearer;
	pick(p, rp_ids_of(&near), n, ret);
}
