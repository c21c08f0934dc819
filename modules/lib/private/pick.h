/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Picks n CPUs of a set, unit by unit: whole free units of a level, then parts of units, both in a
 * ranked order. The policy chooses the levels and the groups of the order.
 */
#pragma once

#include <nri-rp/lib/machine.h>

struct pick {
	const struct machine *m;
	struct rp_idset *from, *ret; /* CPUs move from one set to the other */
	uint32_t n; /* number of CPUs still to be picked */
};

/* Picks a CPU if it is in `from` and needed. */
static inline void pick_cpu(struct pick *k, uint32_t cpu)
{
	if (!k->n || !rp_ids_has(rp_ids_of(k->from), cpu))
		return;
	rp_idset_del(k->from, cpu);
	rp_idset_add(k->ret, cpu);
	k->n--;
}

/* Picks the CPUs of a unit in ascending order, as far as they are in `from` and needed. */
static inline void pick_unit(struct pick *k, const struct machine_unit *u)
{
	for (uint32_t i = 0; i < u->n_cpus && k->n; i++)
		pick_cpu(k, u->cpus[i]);
}

/* Returns true if all CPUs of the unit are in `from`. */
static inline bool pick_is_free(const struct pick *k, const struct machine_unit *u)
{
	return machine_count_free(u, rp_ids_of(k->from)) == u->n_cpus;
}

/*
 * Lists the units of a level that have free CPUs in m->ranks, by their groups, then fewest free
 * CPUs first. The group of a unit is the number that m->place has for its unit of level `parent`;
 * MACHINE_N_LEVELS: one group. Returns the number of units.
 */
uint32_t pick_rank(const struct machine *m, enum machine_level level, struct rp_ids free,
		   enum machine_level parent);
/* Returns unit i of the list. */
static inline const struct machine_unit *pick_ranked(const struct machine *m,
						     enum machine_level level, uint32_t i)
{
	return &m->level[level].units[m->ranks[i].index];
}
/* Picks the units of the list that were free when it was made and are not larger than needed. */
void pick_whole(struct pick *k, enum machine_level level, uint32_t n_ranks);

/* Returns the unit of a level with the fewest free CPUs, but at least n; NULL: none has n. Stores
 * the unit with most of them; NULL: none has any. */
const struct machine_unit *pick_tightest(const struct machine *m, enum machine_level level,
					 struct rp_ids free, uint32_t n,
					 const struct machine_unit **ret_widest);
