/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of CPUs from a set. All orders are by number, so equal input gives equal results. */
#include <stdlib.h>

#include "modules/qos/qos.h"

static void take_move(struct rp_idset *from, uint32_t cpu, struct rp_idset *ret)
{
	rp_idset_del(from, cpu);
	rp_idset_add(ret, cpu);
}

static void move_unit(const struct machine_unit *u, struct rp_idset *from, struct rp_idset *ret)
{
	for (uint32_t i = 0; i < u->n_cpus; i++)
		if (rp_ids_has(rp_ids_of(from), u->cpus[i]))
			take_move(from, u->cpus[i], ret);
}

static bool is_free(const struct machine_unit *u, const struct rp_idset *from)
{
	return machine_count_free(u, rp_ids_of(from)) == u->n_cpus;
}

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

void take_threads(const struct rp_plan *p, struct rp_idset *from, uint32_t n, bool last,
		  struct rp_idset *ret)
{
	uint32_t at[NODES_MAX] = {0};
	for (bool more = true; more && n;) {
		more = false;
		for (uint32_t i = 0; i < p->n_nodes && n; i++) {
			uint32_t cpu = next_thread(node_unit(p, i, last), from, last, &at[i]);
			if (cpu == MACHINE_NOWHERE)
				continue;
			take_move(from, cpu, ret);
			more = true;
			n--;
		}
	}
}

/* Returns the next core of the node that is wholly in `from` and has at most n CPUs. */
static const struct machine_unit *next_core(const struct rp_plan *p, const struct machine_unit *u,
					    const struct rp_idset *from, bool last, uint32_t n,
					    uint32_t *at)
{
	uint32_t cpu;
	while ((cpu = next_thread(u, from, last, at)) != MACHINE_NOWHERE) {
		const struct machine_unit *core = machine_unit_of(p->machine, MACHINE_CORE, cpu);
		if (core && core->n_cpus <= n && is_free(core, from))
			return core;
	}
	return NULL;
}

void take_cores(const struct rp_plan *p, struct rp_idset *from, uint32_t n, bool last,
		struct rp_idset *ret)
{
	uint32_t at[NODES_MAX] = {0};
	for (bool more = true; more && n;) {
		more = false;
		for (uint32_t i = 0; i < p->n_nodes && n; i++) {
			const struct machine_unit *core =
				next_core(p, node_unit(p, i, last), from, last, n, &at[i]);
			if (!core)
				continue;
			move_unit(core, from, ret);
			more = true;
			n -= core->n_cpus;
		}
	}
	take_threads(p, from, n, last, ret);
}

/* ---- by distance ----------------------------------------------------------------------------- */

static uint32_t take_sockets(const struct rp_plan *p, struct rp_idset *from, uint32_t n,
			     struct rp_idset *ret)
{
	const struct machine_level_units *sockets = &p->machine->level[MACHINE_PACKAGE];
	for (uint32_t i = 0; i < sockets->n_units; i++) {
		const struct machine_unit *u = &sockets->units[i];
		if (u->n_cpus > n || !is_free(u, from))
			continue;
		move_unit(u, from, ret);
		n -= u->n_cpus;
	}
	return n;
}

/* Returns the cache with the fewest free CPUs, but at least n; NULL: none. *ret_largest: the cache
 * with most free CPUs; NULL: there are none. */
static const struct machine_unit *best_cache(const struct rp_plan *p, const struct rp_idset *from,
					     uint32_t n, const struct machine_unit **ret_largest)
{
	const struct machine_level_units *caches = &p->machine->level[MACHINE_CACHE];
	const struct machine_unit *best = NULL;
	uint32_t n_best = UINT32_MAX, n_largest = 0;
	*ret_largest = NULL;
	for (uint32_t i = 0; i < caches->n_units; i++) {
		uint32_t n_free = machine_count_free(&caches->units[i], rp_ids_of(from));
		if (n_free >= n && n_free < n_best) {
			best = &caches->units[i];
			n_best = n_free;
		}
		if (n_free > n_largest) {
			*ret_largest = &caches->units[i];
			n_largest = n_free;
		}
	}
	return best;
}

static int by_rank(const void *a, const void *b)
{
	const struct machine_rank *x = a, *y = b;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->n_free != y->n_free)
		return x->n_free < y->n_free ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Ranks cores with free CPUs: by the free CPUs of their socket, then by their own, fewest first. */
static uint32_t rank_cores(const struct rp_plan *p, const struct rp_idset *from)
{
	const struct machine *m = p->machine;
	const struct machine_level_units *sockets = &m->level[MACHINE_PACKAGE];
	const struct machine_level_units *cores = &m->level[MACHINE_CORE];
	uint32_t n = 0;
	for (uint32_t s = 0; s < sockets->n_units; s++) {
		uint32_t n_socket = machine_count_free(&sockets->units[s], rp_ids_of(from));
		for (uint32_t i = 0; n_socket && i < cores->n_units; i++) {
			const struct machine_unit *u = &cores->units[i];
			uint32_t n_free = sockets->unit_of[u->cpus[0]] == s
						  ? machine_count_free(u, rp_ids_of(from))
						  : 0;
			if (n_free)
				m->ranks[n++] = (struct machine_rank){n_socket, n_free, u->id, i};
		}
	}
	qsort(m->ranks, n, sizeof *m->ranks, by_rank);
	return n;
}

/* Takes whole cores, then single threads, first threads beside busy ones. */
static void take_ranked(const struct rp_plan *p, struct rp_idset *from, uint32_t n,
			struct rp_idset *ret)
{
	const struct machine *m = p->machine;
	uint32_t n_ranks = rank_cores(p, from);
	for (uint32_t i = 0; i < n_ranks; i++) {
		const struct machine_unit *u = &m->level[MACHINE_CORE].units[m->ranks[i].index];
		if (m->ranks[i].n_free != u->n_cpus || u->n_cpus > n)
			continue;
		move_unit(u, from, ret);
		n -= u->n_cpus;
	}
	for (int whole = 0; whole < 2; whole++)
		for (uint32_t i = 0; n && i < n_ranks; i++) {
			const struct machine_unit *u =
				&m->level[MACHINE_CORE].units[m->ranks[i].index];
			if ((m->ranks[i].n_free == u->n_cpus) != whole)
				continue;
			for (uint32_t k = 0; n && k < u->n_cpus; k++)
				if (rp_ids_has(rp_ids_of(from), u->cpus[k])) {
					take_move(from, u->cpus[k], ret);
					n--;
				}
		}
}

void take_topology(const struct rp_plan *p, struct rp_idset *from, uint32_t n, struct rp_idset *ret)
{
	const struct machine_unit *largest, *cache;
	n = take_sockets(p, from, n, ret);
	while (n && !(cache = best_cache(p, from, n, &largest)) && largest) {
		uint32_t n_had = rp_ids_count(rp_ids_of(ret));
		move_unit(largest, from, ret);
		n -= rp_ids_count(rp_ids_of(ret)) - n_had;
	}
	if (!n)
		return;
	if (!cache) {
		take_ranked(p, from, n, ret);
		return;
	}
	struct rp_idset near;
	rp_idset_clear(&near);
	machine_add_free(cache, rp_ids_of(from), &near);
	rp_idset_andnot(from, rp_ids_of(from), rp_ids_of(&near));
	take_ranked(p, &near, n, ret);
	rp_idset_or(from, rp_ids_of(from), rp_ids_of(&near));
}
