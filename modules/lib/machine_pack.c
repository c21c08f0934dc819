/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/lib/machine.h"

struct picking {
	const struct machine_level_units *cores;
	struct rp_idset free, got;
	uint32_t n; /* CPUs still to be chosen */
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
		take(k, core->cpus[core->cpus[0] == 0]);
		return;
	}
}

static void take_ascending(struct picking *k)
{
	uint32_t cpu = rp_ids_next(rp_ids_of(&k->free), 0);
	for (; k->n && cpu != RP_IDSET_NONE; cpu = rp_ids_next(rp_ids_of(&k->free), cpu))
		take(k, cpu);
	take(k, 0);
}

/* Without cores of several threads, the steps for whole cores do nothing. */
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
