/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search for the best set of NUMA nodes. A set of nodes is a hint if it has n free CPUs. A hint is
 * preferred if no smaller set could hold n CPUs on an empty node; with align-by-socket, if no
 * smaller set of packages could. The order of hints is: preferred hints first, then fewer nodes,
 * then smaller distances, then the lower mask (node i is bit i).
 *
 * Instead of all 2^nodes masks, the search finds the lowest mask of each size from the top bit
 * down. It omits a node if the nodes below it suffice. If distances differ, the search continues
 * for a set with smaller distances, and backtracks as soon as a set cannot become better than the
 * best one so far.
 */
#include <stdlib.h>
#include <string.h>

#include "modules/static/place_hints.h"

#define DISTANCE_UNKNOWN 1000u /* larger than all distances that firmware reports */

struct search {
	const struct machine *m;
	uint32_t n_nodes;
	/* NUMA nodes in ascending order of their numbers */
	const struct machine_unit *node[HINT_NODES_MAX];
	uint32_t n_free[HINT_NODES_MAX];
	uint32_t package[HINT_NODES_MAX];
	/* most[i][k]: largest sum of free CPUs of k of the first i nodes */
	uint32_t most[HINT_NODES_MAX + 1][HINT_NODES_MAX + 1];
	uint32_t packages; /* number of packages that the set must touch; 0: any */
	uint32_t steps; /* steps so far, counted if packages or distances matter */
	/* distances between hinted nodes; NULL: distances do not matter */
	const struct hint_distances *distances;
	uint32_t far, best_far; /* sums of distances of the chosen nodes and of the best set */
	uint32_t best[HINT_NODES_MAX], n_best;
	uint32_t chosen[HINT_NODES_MAX], n_chosen;
	/* in_package: chosen nodes by package; n_touched: number of packages with chosen nodes */
	uint32_t in_package[HINT_NODES_MAX], n_touched;
};

static int cmp_nodes(const void *pa, const void *pb)
{
	const struct machine_unit *const *a = pa, *const *b = pb;
	return (*a)->id < (*b)->id ? -1 : (*a)->id > (*b)->id;
}

static int cmp_down(const void *pa, const void *pb)
{
	const uint32_t *a = pa, *b = pb;
	return *a < *b ? 1 : -(*a > *b);
}

/*
 * Returns the package of a node. With more packages than nodes the result is unused, because
 * settings_check() refuses align-by-socket.
 */
static uint32_t package_of(const struct machine *m, const struct machine_unit *node)
{
	uint32_t p = m->level[MACHINE_PACKAGE].unit_of[node->cpus[0]];
	return p < HINT_NODES_MAX ? p : HINT_NODES_MAX - 1;
}

/* Prepares a search: sorts the nodes by number and computes `most`. */
static void init_search(struct search *s, const struct machine *m,
			const struct hint_distances *distances, struct rp_ids free)
{
	const struct machine_level_units *nodes = &m->level[MACHINE_NODE];
	s->m = m;
	s->distances = distances && distances->least ? distances : NULL;
	s->far = 0;
	s->n_best = 0;
	s->n_nodes = nodes->n_units;
	s->steps = 0;
	s->n_chosen = 0;
	s->n_touched = 0;
	memset(s->in_package, 0, sizeof s->in_package);
	for (uint32_t i = 0; i < s->n_nodes; i++)
		s->node[i] = &nodes->units[i];
	qsort(s->node, s->n_nodes, sizeof(s->node[0]), cmp_nodes);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		s->n_free[i] = machine_count_free(s->node[i], free);
		s->package[i] = package_of(m, s->node[i]);
	}
	for (uint32_t i = 0; i <= s->n_nodes; i++)
		s->most[i][0] = 0;
	for (uint32_t i = 1; i <= s->n_nodes; i++) {
		for (uint32_t k = 1; k <= i; k++) {
			uint32_t with = s->most[i - 1][k - 1] + s->n_free[i - 1];
			uint32_t without = k < i ? s->most[i - 1][k] : 0;
			s->most[i][k] = with > without ? with : without;
		}
	}
}

/* Returns the sum of the distances between a node and the chosen nodes. */
static uint32_t distance_to_chosen(const struct search *s, uint32_t node)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; s->distances && i < s->n_chosen; i++)
		sum += s->distances->of[node][s->chosen[i]];
	return sum;
}

static void place_hints_push(struct search *s, uint32_t node)
{
	s->far += distance_to_chosen(s, node);
	s->chosen[s->n_chosen++] = node;
	s->n_touched += s->in_package[s->package[node]]++ == 0;
}

static void place_hints_pop(struct search *s)
{
	uint32_t node = s->chosen[--s->n_chosen];
	s->n_touched -= --s->in_package[s->package[node]] == 0;
	s->far -= distance_to_chosen(s, node);
}

/*
 * Records a sufficient set if its distances are smaller than those of the best set. Returns 1 if
 * the search is finished.
 */
static int keep_chosen(struct search *s)
{
	if (!s->distances || s->n_chosen < 2)
		return 1;
	if (!s->n_best || s->far < s->best_far) {
		memcpy(s->best, s->chosen, s->n_chosen * sizeof s->chosen[0]);
		s->n_best = s->n_chosen;
		s->best_far = s->far;
	}
	return 0;
}

/*
 * Returns nonzero if k more nodes cannot make a better set than the best one, or the steps are used
 * up.
 */
static int is_too_far(struct search *s, uint32_t k)
{
	if (!s->n_best)
		return 0;
	uint32_t pairs = k * s->n_chosen + k * (k - 1) / 2;
	return s->far + pairs * s->distances->least >= s->best_far || s->steps++ >= HINT_STEPS;
}

/*
 * Chooses k of the first i nodes that together have `need` free CPUs. Returns 1 if the search is
 * finished.
 */
static int place_hints_choose(struct search *s, uint32_t i, uint32_t k, uint32_t need)
{
	if (!k)
		return !need && (!s->packages || s->n_touched == s->packages) && keep_chosen(s);
	if (i < k || s->most[i][k] < need || is_too_far(s, k))
		return 0;
	if (s->packages && (s->n_touched > s->packages || s->n_touched + k < s->packages ||
			    s->steps++ >= HINT_STEPS))
		return 0;
	if (place_hints_choose(s, i - 1, k, need))
		return 1;
	uint32_t has = s->n_free[i - 1];
	place_hints_push(s, i - 1);
	if (place_hints_choose(s, i - 1, k - 1, need > has ? need - has : 0))
		return 1;
	place_hints_pop(s);
	return 0;
}

static int find_of_size(struct search *s, uint32_t k, uint32_t n, uint32_t packages)
{
	s->packages = packages;
	while (s->n_chosen)
		place_hints_pop(s);
	s->n_best = 0;
	if (place_hints_choose(s, s->n_nodes, k, n))
		return 1;
	for (uint32_t i = 0; i < s->n_best; i++)
		place_hints_push(s, s->best[i]);
	return s->n_best != 0;
}

/*
 * Returns the smallest number of nodes that could hold n CPUs if all CPUs were free; 0: all nodes
 * are too small.
 */
static uint32_t fewest_nodes(const struct search *s, uint32_t n)
{
	uint32_t size[HINT_NODES_MAX] = {0}, sum = 0;
	for (uint32_t i = 0; i < s->n_nodes; i++)
		size[i] = s->node[i]->n_cpus;
	qsort(size, s->n_nodes, sizeof size[0], cmp_down);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		sum += size[i];
		if (sum >= n)
			return i + 1;
	}
	return 0;
}

static int find_preferred(struct search *s, uint32_t n, uint32_t fewest, int align_by_socket)
{
	if (!align_by_socket)
		return fewest && find_of_size(s, fewest, n, 0);
	uint32_t per_package = s->n_nodes / s->m->level[MACHINE_PACKAGE].n_units;
	if (!per_package) /* NUMA nodes are larger than packages */
		per_package = 1;
	uint32_t packages = (fewest + per_package - 1) / per_package;
	for (uint32_t k = 1; fewest && k <= s->n_nodes; k++)
		if (find_of_size(s, k, n, k == fewest ? 0 : packages))
			return 1;
	return 0;
}

static int find_any(struct search *s, uint32_t n)
{
	for (uint32_t k = 1; k <= s->n_nodes; k++)
		if (find_of_size(s, k, n, 0))
			return 1;
	return 0;
}

static void place_hints_collect(const struct search *s, int align_by_socket, struct rp_ids free,
				struct hint *ret)
{
	const struct machine_level_units *packages = &s->m->level[MACHINE_PACKAGE];
	rp_idset_clear(&ret->nodes);
	rp_idset_clear(&ret->cpus);
	for (uint32_t i = 0; i < s->n_chosen; i++) {
		uint32_t at = s->chosen[i];
		rp_idset_add(&ret->nodes, s->node[at]->id);
		machine_add_free(align_by_socket ? &packages->units[s->package[at]] : s->node[at],
				 free, &ret->cpus);
	}
}

void hint_read_distances(const struct modhost *h, const struct machine *m,
			 struct hint_distances *ret)
{
	const struct machine_level_units *nodes = &m->level[MACHINE_NODE];
	const struct machine_unit *node[HINT_NODES_MAX];
	uint16_t most = 0;
	*ret = (struct hint_distances){.least = UINT16_MAX};
	for (uint32_t i = 0; i < nodes->n_units; i++)
		node[i] = &nodes->units[i];
	qsort(node, nodes->n_units, sizeof node[0], cmp_nodes);
	for (uint32_t a = 0; a < nodes->n_units; a++) {
		for (uint32_t b = 0; b < nodes->n_units; b++) {
			uint32_t d = h->topology->distance(h->ctx, node[a]->id, node[b]->id);
			uint16_t far = d && d < DISTANCE_UNKNOWN ? (uint16_t)d : DISTANCE_UNKNOWN;
			ret->of[a][b] = far;
			if (a == b)
				continue;
			ret->least = far < ret->least ? far : ret->least;
			most = far > most ? far : most;
		}
	}
	if (most <= ret->least)
		ret->least = 0;
}

int32_t hint_find(const struct machine *m, const struct hint_distances *distances,
		  enum hint_policy policy, int align_by_socket, struct rp_ids free, uint32_t n,
		  struct hint *ret)
{
	struct search s;
	init_search(&s, m, distances, free);
	uint32_t fewest = fewest_nodes(&s, n);
	int preferred = find_preferred(&s, n, fewest, align_by_socket);
	if (!preferred && (policy != HINT_BEST_EFFORT || !find_any(&s, n)))
		return -RP_ENOSPC;
	if (policy == HINT_SINGLE_NODE && s.n_chosen != 1)
		return -RP_ENOSPC;
	ret->preferred = preferred;
	place_hints_collect(&s, align_by_socket, free, ret);
	return 0;
}
