/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of CPUs from a set. All orders are by number, so equal input gives equal results. */
#include "modules/lib/private/pick.h"
#include "modules/qos/qos.h"

static const struct machine_unit *node_unit(const struct rp_plan *p, uint32_t i, bool last)
{
	const struct node *node = &p->nodes[last ? p->n_nodes - 1 - i : i];
	return &p->machine->level[MACHINE_NODE].units[node->unit];
}

/* ---- by node --------------------------------------------------------------------------------- */

/* Returns the next CPU of the node that is in `from`; MACHINE_NOWHERE: none. `at` counts the
 * checked CPUs. */
static uint32_t next_thread(const struct machine_unit *u, const struct rp_idset *from, bool last,
			    uint32_t *at)
{
	while (*at < u->n_cpus) {
		uint32_t cpu = u->cpus[last ? u->n_cpus - 1 - *at : *at];
		(*at)++;
		if (rp_ids_has(rp_ids_of(from), cpu))
			return cpu;
	}
	return MACHINE_NOWHERE;
}

/* Returns the next unit of a level on the node that is wholly free and not larger than needed. */
static const struct machine_unit *next_unit(const struct pick *k, const struct machine_unit *node,
					    enum machine_level level, bool last, uint32_t *at)
{
	uint32_t cpu;
	while ((cpu = next_thread(node, k->from, last, at)) != MACHINE_NOWHERE) {
		const struct machine_unit *unit = machine_unit_of(k->m, level, cpu);
		if (unit && unit->n_cpus <= k->n && pick_is_free(k, unit))
			return unit;
	}
	return NULL;
}

/* Takes units of a level from the nodes in turn. */
static void take_by_node(const struct rp_plan *p, struct pick *k, enum machine_level level,
			 bool last)
{
	uint32_t at[NODES_MAX] = {0};
	for (bool more = true; more && k->n;) {
		more = false;
		for (uint32_t i = 0; i < p->n_nodes && k->n; i++) {
			const struct machine_unit *unit =
				next_unit(k, node_unit(p, i, last), level, last, &at[i]);
			if (!unit)
				continue;
			pick_unit(k, unit);
			more = true;
		}
	}
}

void take_threads(const struct rp_plan *p, struct rp_idset *from, uint32_t n, bool last,
		  struct rp_idset *ret)
{
	struct pick k = {p->machine, from, ret, n};
	take_by_node(p, &k, MACHINE_THREAD, last);
}

void take_cores(const struct rp_plan *p, struct rp_idset *from, uint32_t n, bool last,
		struct rp_idset *ret)
{
	struct pick k = {p->machine, from, ret, n};
	take_by_node(p, &k, MACHINE_CORE, last);
	take_by_node(p, &k, MACHINE_THREAD, last);
}

/* ---- by distance ----------------------------------------------------------------------------- */

static void take_sockets(struct pick *k)
{
	const struct machine_level_units *sockets = &k->m->level[MACHINE_PACKAGE];
	for (uint32_t i = 0; i < sockets->n_units; i++)
		if (sockets->units[i].n_cpus <= k->n && pick_is_free(k, &sockets->units[i]))
			pick_unit(k, &sockets->units[i]);
}

/* Takes whole cores, then single threads, first threads beside busy ones. Cores are ranked by the
 * free CPUs of their socket, then by their own, fewest first. */
static void take_ranked(struct pick *k)
{
	const struct machine *m = k->m;
	const struct machine_level_units *sockets = &m->level[MACHINE_PACKAGE];
	for (uint32_t s = 0; s < sockets->n_units; s++)
		m->place[MACHINE_PACKAGE][s] =
			machine_count_free(&sockets->units[s], rp_ids_of(k->from));
	uint32_t n = pick_rank(m, MACHINE_CORE, rp_ids_of(k->from), MACHINE_PACKAGE);
	pick_whole(k, MACHINE_CORE, n);
	for (int whole = 0; whole < 2; whole++)
		for (uint32_t i = 0; k->n && i < n; i++) {
			const struct machine_unit *u = pick_ranked(m, MACHINE_CORE, i);
			if ((m->ranks[i].n_free == u->n_cpus) == whole)
				pick_unit(k, u);
		}
}

void take_topology(const struct rp_plan *p, struct rp_idset *from, uint32_t n, struct rp_idset *ret)
{
	const struct machine *m = p->machine;
	const struct machine_unit *largest, *cache = NULL;
	struct pick k = {m, from, ret, n};
	struct rp_idset near;
	take_sockets(&k);
	while (k.n && !(cache = pick_tightest(m, MACHINE_CACHE, rp_ids_of(from), k.n, &largest)) &&
	       largest)
		pick_unit(&k, largest);
	if (!k.n)
		return;
	rp_idset_copy(&near, cache ? rp_ids_none() : rp_ids_of(from));
	if (cache)
		machine_add_free(cache, rp_ids_of(from), &near);
	rp_idset_andnot(from, rp_ids_of(from), rp_ids_of(&near));
	k.from = &near;
	take_ranked(&k);
	rp_idset_or(from, rp_ids_of(from), rp_ids_of(&near));
}
