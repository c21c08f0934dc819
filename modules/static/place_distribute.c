/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option distribute-cpus-across-numa: distributes the CPUs of a container evenly over NUMA nodes.
 * The search tries all combinations of the smallest sufficient number of nodes. Each node gives the
 * same number of groups; a group is a core with full-pcpus-only, otherwise a CPU. The remaining
 * groups are taken in rounds from some of the nodes. The best split leaves the free CPUs of the
 * node most evenly spread; the first one found wins a tie.
 *
 * kubelet_distributed() is the entry point.
 */
#include "modules/static/place_kubelet.h"

/* Combination of positions in the list of nodes. */
struct positions {
	uint32_t n;
	uint32_t at[DISTRIBUTE_NODES_MAX];
};

struct split {
	struct positions nodes; /* nodes that give `each` CPUs */
	struct positions extra; /* nodes that give the remaining groups in rounds */
	uint32_t each;
	uint64_t score; /* standard deviation of the free CPUs after the split, in thousandths */
	int one_package;
	int found;
};

struct search {
	const struct machine *m;
	uint32_t options, n, group;
	uint32_t n_nodes;
	uint32_t unit[DISTRIBUTE_NODES_MAX]; /* index of the node, by position */
	uint32_t n_free[DISTRIBUTE_NODES_MAX];
	int64_t mean; /* mean of the free CPUs after the split, in thousandths */
	uint32_t steps;
	struct split best;
};

static uint32_t groups_of(const struct search *s, uint32_t n_cpus)
{
	return n_cpus / s->group * s->group;
}

/*
 * Advances to the next combination of p->n out of `total` positions in lexicographic order. Returns
 * 0 after the last one.
 */
static int next_combination(struct positions *p, uint32_t total)
{
	uint32_t i = p->n;
	while (i && p->at[i - 1] == total - p->n + i - 1)
		i--;
	if (!i)
		return 0;
	p->at[i - 1]++;
	for (; i < p->n; i++)
		p->at[i] = p->at[i - 1] + 1;
	return 1;
}

static void first_combination(struct positions *p, uint32_t n)
{
	p->n = n;
	for (uint32_t i = 0; i < n; i++)
		p->at[i] = i;
}

static uint64_t square_of(const struct search *s, uint32_t n_free)
{
	int64_t d = (int64_t)n_free * 1000 - s->mean;
	return (uint64_t)(d * d);
}

/*
 * Returns nonzero if the score of a sum is below `score`. The score is sqrt(sum / nodes), rounded:
 * the largest r with (2r - 1)² · nodes <= 4 · sum. The comparison uses integers, so that
 * floating-point rounding never decides a tie.
 */
static int score_below(const struct search *s, uint64_t sum, uint64_t score)
{
	return score && 4 * sum < (2 * score - 1) * (2 * score - 1) * s->n_nodes;
}

static uint64_t score_of(const struct search *s, uint64_t sum)
{
	uint64_t r = 0;
	for (uint64_t bit = UINT64_C(1) << 24; bit; bit >>= 1)
		if (!score_below(s, sum, r + bit))
			r += bit;
	return r;
}

static void place_distribute_consider(struct search *s, uint64_t sum, const struct split *split,
				      const struct positions *extra)
{
	if (s->best.found && split->one_package == s->best.one_package &&
	    !score_below(s, sum, s->best.score))
		return;
	s->best = *split;
	if (extra)
		s->best.extra = *extra;
	s->best.score = score_of(s, sum);
	s->best.found = 1;
}

/*
 * Takes `rest` CPUs from the nodes in rounds and subtracts them from `after`, the free CPUs by
 * node. Returns 0 if the nodes have too few.
 */
static int hand_out(struct search *s, const struct positions *nodes, uint32_t rest, uint32_t *after)
{
	uint32_t room = 0;
	for (uint32_t i = 0; i < nodes->n; i++)
		room += groups_of(s, after[nodes->at[i]]);
	if (room < rest)
		return 0;
	while (rest) {
		for (uint32_t i = 0; i < nodes->n && rest; i++) {
			if (after[nodes->at[i]] < s->group)
				continue;
			after[nodes->at[i]] -= s->group;
			rest -= s->group;
			s->steps++;
		}
	}
	return 1;
}

static uint64_t sum_of(const struct search *s, const uint32_t *after)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < s->n_nodes; i++)
		sum += square_of(s, after[i]);
	return sum;
}

/* Tries all subsets of nodes that can give the remaining CPUs, large subsets first. */
static void try_remainders(struct search *s, const struct split *split, uint32_t rest,
			   const uint32_t *after)
{
	struct positions able = {.n = 0};
	for (uint32_t i = 0; i < split->nodes.n; i++)
		if (after[split->nodes.at[i]] >= s->group)
			able.at[able.n++] = split->nodes.at[i];
	for (uint32_t k = able.n; k; k--) {
		struct positions choice;
		first_combination(&choice, k);
		do {
			struct positions extra = {.n = k};
			uint32_t now[DISTRIBUTE_NODES_MAX];
			for (uint32_t i = 0; i < k; i++)
				extra.at[i] = able.at[choice.at[i]];
			for (uint32_t i = 0; i < s->n_nodes; i++)
				now[i] = after[i];
			s->steps += s->n_nodes;
			if (hand_out(s, &extra, rest, now))
				place_distribute_consider(s, sum_of(s, now), split, &extra);
			if (s->steps > DISTRIBUTE_STEPS)
				return;
		} while (next_combination(&choice, able.n));
	}
}

static int is_one_package(const struct search *s, const struct positions *p)
{
	const struct machine_level_units *nodes = &s->m->level[MACHINE_NODE];
	const uint32_t *package_of = s->m->level[MACHINE_PACKAGE].unit_of;
	for (uint32_t i = 1; i < p->n; i++)
		if (package_of[nodes->units[s->unit[p->at[i]]].cpus[0]] !=
		    package_of[nodes->units[s->unit[p->at[0]]].cpus[0]])
			return 0;
	return 1;
}

/*
 * Computes the number of CPUs that each node of the combination gives. Returns 0 if a node has too
 * few.
 */
static int even_part(const struct search *s, const struct positions *p, uint32_t *ret)
{
	uint64_t n_free = 0, grouped = 0;
	uint32_t poorest = UINT32_MAX;
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t f = s->n_free[p->at[i]];
		n_free += f;
		grouped += groups_of(s, f);
		poorest = f < poorest ? f : poorest;
	}
	if (n_free < s->n || grouped < s->n)
		return 0;
	*ret = groups_of(s, s->n / p->n);
	if ((s->options & OPT_ALIGN_SOCKET) && groups_of(s, poorest) < *ret)
		*ret = groups_of(s, poorest);
	return poorest >= *ret;
}

static void try_nodes(struct search *s, const struct positions *p)
{
	struct split split = {.nodes = *p};
	if (!even_part(s, p, &split.each))
		return;
	if (s->options & OPT_ALIGN_SOCKET)
		split.one_package = is_one_package(s, p);
	if (s->best.found && s->best.one_package && !split.one_package)
		return;
	uint32_t after[DISTRIBUTE_NODES_MAX];
	for (uint32_t i = 0; i < s->n_nodes; i++)
		after[i] = s->n_free[i];
	for (uint32_t i = 0; i < p->n; i++)
		after[p->at[i]] -= split.each;
	uint32_t rest = s->n - split.each * p->n;
	if (rest)
		try_remainders(s, &split, rest, after);
	else
		place_distribute_consider(s, sum_of(s, after), &split, NULL);
}

static int is_perfect(const struct search *s)
{
	return s->best.found && s->best.score == 0 &&
	       (s->best.one_package || !(s->options & OPT_ALIGN_SOCKET));
}

static void find_split(struct search *s)
{
	uint32_t group = s->group;
	uint32_t all_groups = (s->m->n_cpus - 1) / group + 1;
	uint32_t per_node = (all_groups - 1) / s->m->level[MACHINE_NODE].n_units + 1;
	uint32_t need = (s->n - 1) / group + 1;
	uint32_t min = (need - 1) / per_node + 1;
	uint32_t max = need < s->n_nodes ? need : s->n_nodes;
	if (s->n_nodes > DISTRIBUTE_WIDE && max > DISTRIBUTE_WIDE_MAX)
		max = DISTRIBUTE_WIDE_MAX;
	for (uint32_t k = min; k <= max && !s->best.found; k++) {
		struct positions p;
		first_combination(&p, k);
		do {
			s->steps += s->n_nodes;
			try_nodes(s, &p);
		} while (!is_perfect(s) && s->steps <= DISTRIBUTE_STEPS &&
			 next_combination(&p, s->n_nodes));
	}
}

static void take_from_node(const struct search *s, uint32_t position, uint32_t n,
			   struct rp_idset *left, struct rp_idset *taken)
{
	const struct machine_unit *node = &s->m->level[MACHINE_NODE].units[s->unit[position]];
	struct rp_idset from, part;
	rp_idset_clear(&from);
	machine_add_free(node, rp_ids_of(left), &from);
	/* Cannot fail, because the search counted the node's free CPUs. */
	(void)kubelet_packed(s->m, s->options, rp_ids_of(&from), n, &part);
	rp_idset_or(taken, rp_ids_of(taken), rp_ids_of(&part));
	rp_idset_andnot(left, rp_ids_of(left), rp_ids_of(&part));
}

static void take_split(const struct search *s, struct rp_ids free, struct rp_idset *ret)
{
	const struct split *b = &s->best;
	struct rp_idset left, taken;
	rp_idset_copy(&left, free);
	rp_idset_clear(&taken);
	for (uint32_t i = 0; i < b->nodes.n; i++)
		take_from_node(s, b->nodes.at[i], b->each, &left, &taken);
	uint32_t rest = s->n - b->each * b->nodes.n;
	while (rest) {
		for (uint32_t i = 0; i < b->extra.n && rest; i++) {
			const struct machine_unit *node =
				&s->m->level[MACHINE_NODE].units[s->unit[b->extra.at[i]]];
			if (machine_count_free(node, rp_ids_of(&left)) < s->group)
				continue;
			take_from_node(s, b->extra.at[i], s->group, &left, &taken);
			rest -= s->group;
		}
	}
	rp_idset_copy(ret, rp_ids_of(&taken));
}

int32_t kubelet_distributed(const struct machine *m, uint32_t options, struct rp_ids free,
			    uint32_t n, struct rp_idset *ret)
{
	struct rp_idset from;
	rp_idset_and(&from, free, rp_ids_of(&m->online));
	uint32_t n_free = rp_ids_count(rp_ids_of(&from));
	if (n_free < n)
		return -RP_ENOSPC;
	struct search s = {.m = m, .options = options, .n = n, .group = 1};
	if (options & OPT_FULL_PCPUS_ONLY)
		s.group = m->threads;
	s.n_nodes = kubelet_list(m, MACHINE_NODE, rp_ids_of(&from));
	if (!n || n % s.group || s.n_nodes > DISTRIBUTE_NODES_MAX)
		return DISTRIBUTE_NOT;
	for (uint32_t i = 0; i < s.n_nodes; i++) {
		s.unit[i] = m->ranks[i].index;
		s.n_free[i] = m->ranks[i].n_free;
	}
	/* The number of CPUs that stay free is the same for all splits. */
	s.mean = ((int64_t)(n_free - n) * 2000 + s.n_nodes) / (2 * (int64_t)s.n_nodes);
	find_split(&s);
	if (!s.best.found)
		return DISTRIBUTE_NOT;
	take_split(&s, rp_ids_of(&from), ret);
	return 0;
}
