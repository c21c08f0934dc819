/* SPDX-License-Identifier: Apache-2.0 */
/* The ranked list of units, and the units with the fewest and most free CPUs. */
#include <stdlib.h>

#include "modules/lib/private/pick.h"

static int pick_compare(const void *pa, const void *pb)
{
	const struct machine_rank *a = pa, *b = pb;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->n_free != b->n_free)
		return a->n_free < b->n_free ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

uint32_t pick_rank(const struct machine *m, enum machine_level level, struct rp_ids free,
		   enum machine_level parent)
{
	const struct machine_level_units *lv = &m->level[level];
	struct rp_idset seen;
	uint32_t n = 0;
	rp_idset_clear(&seen);
	RP_IDS_EACH (cpu, free) {
		uint32_t i = cpu < m->cpu_end ? lv->unit_of[cpu] : MACHINE_NOWHERE;
		if (i == MACHINE_NOWHERE || rp_ids_has(rp_ids_of(&seen), i))
			continue;
		rp_idset_add(&seen, i);
		const struct machine_unit *u = &lv->units[i];
		struct machine_rank r = {0, machine_count_free(u, free), u->id, i};
		if (parent != MACHINE_N_LEVELS)
			r.group = m->place[parent][m->level[parent].unit_of[u->cpus[0]]];
		m->ranks[n++] = r;
	}
	qsort(m->ranks, n, sizeof *m->ranks, pick_compare);
	return n;
}

void pick_whole(struct pick *k, enum machine_level level, uint32_t n_ranks)
{
	for (uint32_t i = 0; i < n_ranks && k->n; i++) {
		const struct machine_unit *u = pick_ranked(k->m, level, i);
		if (k->m->ranks[i].n_free == u->n_cpus && u->n_cpus <= k->n)
			pick_unit(k, u);
	}
}

const struct machine_unit *pick_tightest(const struct machine *m, enum machine_level level,
					 struct rp_ids free, uint32_t n,
					 const struct machine_unit **ret_widest)
{
	const struct machine_level_units *units = &m->level[level];
	const struct machine_unit *tightest = NULL, *widest = NULL;
	uint32_t least = UINT32_MAX, most = 0;
	for (uint32_t i = 0; i < units->n_units; i++) {
		uint32_t has = machine_count_free(&units->units[i], free);
		if (has >= n && has < least) {
			least = has;
			tightest = &units->units[i];
		}
		if (has > most) {
			most = has;
			widest = &units->units[i];
		}
	}
	*ret_widest = widest;
	return tightest;
}
