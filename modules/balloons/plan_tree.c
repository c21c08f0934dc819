/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the topology into trees and finds the best node of a tree. plan_tree.h has the overview. */
#include <stdlib.h>
#include <string.h>

#include "modules/balloons/plan_tree.h"

/* ---- CPUs in tree order ---------------------------------------------------------------------- */

/* Position of a CPU in the topology: its unit at each depth, and the sort keys. */
struct seat {
	uint32_t cpu;
	uint32_t package, die, node, l3, l2, l2_unit, core, class;
	uint32_t position; /* number of lower threads of its core */
};

#define KEYS 8u
#define KEY_CPU 7u

/* Returns key i of a CPU. Two CPUs are below the same node of a depth if they share the keys of
 * that depth and all outer ones; key 0 is the outermost. */
static uint32_t seat_key(const struct seat *s, uint32_t i)
{
	const uint32_t keys[KEYS] = {s->package, s->die,     s->node, s->class,
				     s->l2,	 s->l2_unit, s->core, s->cpu};
	return keys[i];
}

static int seat_cmp(const void *a, const void *b)
{
	for (uint32_t i = 0; i < KEYS; i++) {
		uint32_t x = seat_key(a, i), y = seat_key(b, i);
		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

struct depth {
	uint32_t n_keys; /* number of leading keys that CPUs of a node share */
	uint32_t number; /* key that numbers the nodes */
};

static const struct depth plain_depths[] = {{0, 0}, {1, 0}, {2, 1}, {3, 2}, {6, 4}, {7, 6}, {8, 7}};
static const struct depth spread_depths[] = {{0, 0}, {1, 0}, {2, 1}, {3, 2},
					     {4, 3}, {6, 4}, {7, 6}, {8, 7}};

static bool same_node(const struct seat *a, const struct seat *b, const struct depth *d)
{
	for (uint32_t i = 0; i < d->n_keys; i++)
		if (seat_key(a, i) != seat_key(b, i))
			return false;
	return true;
}

/* Returns the number of a node. Threads are ordered by their core. */
static uint32_t seat_number(const struct seat *s, uint32_t key)
{
	return key == KEY_CPU ? s->core * RP_CPUS_MAX + s->cpu : seat_key(s, key);
}

/* Adds the nodes for seats first … end - 1 at `depth` and below. `parent` is their parent's
 * index. */
static void add_nodes(struct tree *t, const struct seat *seats, uint32_t first, uint32_t end,
		      uint32_t parent, uint32_t depth, const struct depth *depths,
		      uint32_t n_depths, uint32_t n_named)
{
	if (depth == n_depths)
		return;
	for (uint32_t i = first; i < end;) {
		uint32_t last = i + 1, index = t->n_nodes++;
		while (last < end && same_node(&seats[i], &seats[last], &depths[depth]))
			last++;
		struct tree_node *n = &t->nodes[index];
		*n = (struct tree_node){.first = i, .end = last, .parent = parent, .depth = depth};
		if (t->largest[depth] < last - i)
			t->largest[depth] = last - i;
		n->group = depth < n_named ? index : t->nodes[parent].group;
		n->number = depth ? seat_number(&seats[i], depths[depth].number) : 0;
		add_nodes(t, seats, i, last, index, depth + 1, depths, n_depths, n_named);
		t->nodes[index].skip = t->n_nodes;
		i = last;
	}
}

/* Builds a tree. n_named: nodes at depths below this number have names of their own. Deeper
 * nodes are numbered within their last named ancestor. */
static int32_t tree_init(struct tree *t, struct seat *seats, uint32_t n, const struct depth *depths,
			 uint32_t n_depths, uint32_t n_named)
{
	qsort(seats, n, sizeof *seats, seat_cmp);
	t->n_cpus = n;
	t->cpus = calloc(n, sizeof *t->cpus);
	t->nodes = calloc((size_t)n * n_depths, sizeof *t->nodes);
	t->n_current = calloc(n + 1u, sizeof *t->n_current);
	t->n_free = calloc(n + 1u, sizeof *t->n_free);
	if (!t->cpus || !t->nodes || !t->n_current || !t->n_free)
		return -RP_ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		t->cpus[i] = seats[i].cpu;
	add_nodes(t, seats, 0, n, 0, 0, depths, n_depths, n_named);
	return 0;
}

static void tree_fini(struct tree *t)
{
	free(t->cpus);
	free(t->nodes);
	free(t->n_current);
	free(t->n_free);
}

/* ---- topology -------------------------------------------------------------------------------- */

static int32_t read_seat(const struct modhost *h, uint32_t cpu, struct seat *ret)
{
	struct rp_cpu_info info = {.size = offsetof(struct rp_cpu_info, base_khz)};
	struct rp_unit_info core = {.size = sizeof core}, l2 = {.size = sizeof l2},
			    l3 = {.size = sizeof l3};
	int32_t r = h->topology->cpu(h->ctx, cpu, &info);
	if (!r)
		r = h->topology->unit(h->ctx, RP_LEVEL_CORE, info.unit[RP_LEVEL_CORE], &core);
	if (r)
		return r;
	*ret = (struct seat){
		.cpu = cpu,
		.package = info.package_id,
		.die = info.die_id,
		.node = info.node_id,
		.core = rp_ids_first(core.cpus),
	};
	RP_IDS_EACH (sibling, core.cpus)
		ret->position += sibling < cpu;
	/* If the node reports no L2 caches, each core is treated as having one. */
	ret->l2 = ret->core;
	ret->l2_unit = RP_CPUS_MAX + ret->core;
	uint32_t unit = info.unit[RP_LEVEL_L2];
	if (unit != RP_IDSET_NONE && !h->topology->unit(h->ctx, RP_LEVEL_L2, unit, &l2)) {
		ret->l2 = l2.id;
		ret->l2_unit = rp_ids_first(l2.cpus);
	}
	unit = info.unit[RP_LEVEL_L3];
	if (unit != RP_IDSET_NONE && !h->topology->unit(h->ctx, RP_LEVEL_L3, unit, &l3))
		ret->l3 = rp_ids_first(l3.cpus);
	return 0;
}

static int32_t index_cpus(struct plan_machine *m, const struct seat *seats, uint32_t n)
{
	uint32_t *all = calloc((size_t)m->cpu_end * (TREE_N_LEVELS + 4u), sizeof *all);
	if (!all)
		return -RP_ENOMEM;
	for (uint32_t i = 0; i < TREE_N_LEVELS; i++)
		m->at[i] = all + (size_t)i * m->cpu_end;
	m->node_of = all + (size_t)TREE_N_LEVELS * m->cpu_end;
	m->package_of = m->node_of + m->cpu_end;
	m->die_of = m->package_of + m->cpu_end;
	m->l3_of = m->die_of + m->cpu_end;
	const struct tree *t = &m->plain;
	for (uint32_t i = 0; i < t->n_nodes; i++)
		for (uint32_t k = t->nodes[i].first; k < t->nodes[i].end; k++)
			m->at[t->nodes[i].depth][t->cpus[k]] = i;
	for (uint32_t i = 0; i < n; i++) {
		m->node_of[seats[i].cpu] = seats[i].node;
		m->package_of[seats[i].cpu] = seats[i].package;
		m->die_of[seats[i].cpu] = seats[i].die;
		m->l3_of[seats[i].cpu] = seats[i].l3;
	}
	return 0;
}

/* Builds the plain tree without classes, then the other one, whose classes are the positions. */
static int32_t build_trees(struct plan_machine *m, struct seat *seats, uint32_t n)
{
	int32_t r = tree_init(&m->plain, seats, n, plain_depths, TREE_N_LEVELS, TREE_L2);
	for (uint32_t i = 0; i < n; i++)
		seats[i].class = seats[i].position;
	if (!r)
		r = tree_init(&m->spread, seats, n, spread_depths, TREE_DEPTH_MAX, TREE_L2);
	return r ? r : index_cpus(m, seats, n);
}

int32_t plan_machine_new(const struct modhost *h, struct plan_machine **ret)
{
	struct plan_machine *m = calloc(1, sizeof *m);
	if (!m)
		return modhost_no_memory(h);
	modhost_set(h, RP_CPUS_ONLINE, &m->online);
	modhost_set(h, RP_CPUS_ISOLATED, &m->isolated);
	struct rp_ids online = rp_ids_of(&m->online);
	uint32_t n = 0;
	struct seat *seats = calloc(rp_ids_count(online) + 1u, sizeof *seats);
	int32_t r = !seats ? -RP_ENOMEM : rp_ids_empty(online) ? -RP_EINVAL : 0;
	RP_IDS_EACH (cpu, online)
		if (!r)
			r = read_seat(h, cpu, &seats[n++]);
	m->cpu_end = r ? 0 : rp_ids_last(online) + 1;
	if (!r)
		r = build_trees(m, seats, n);
	free(seats);
	if (r) {
		plan_machine_free(m);
		return modhost_fail(h, r, "%s",
				    r == -RP_ENOMEM ? "out of memory"
						    : "the node's CPUs cannot be described");
	}
	*ret = m;
	return 0;
}

struct plan_machine *plan_machine_free(struct plan_machine *m)
{
	if (!m)
		return NULL;
	tree_fini(&m->plain);
	tree_fini(&m->spread);
	free(m->at[0]);
	free(m);
	return NULL;
}

void plan_machine_surround(const struct plan_machine *m, enum tree_level level, struct rp_ids cpus,
			   struct rp_idset *ret)
{
	uint32_t last = UINT32_MAX;
	RP_IDS_EACH (cpu, cpus) {
		if (cpu >= m->cpu_end || !rp_ids_has(rp_ids_of(&m->online), cpu))
			continue;
		uint32_t at = m->at[level][cpu];
		/* Neighbours by id are mostly in the same unit, and comparing the unit is cheap. */
		if (at == last)
			continue;
		last = at;
		const struct tree_node *n = &m->plain.nodes[at];
		for (uint32_t i = n->first; i < n->end; i++)
			rp_idset_add(ret, m->plain.cpus[i]);
	}
}

void plan_machine_one_per_core(const struct plan_machine *m, struct rp_ids cpus,
			       struct rp_idset *ret)
{
	rp_idset_clear(ret);
	RP_IDS_EACH (cpu, cpus) {
		if (cpu >= m->cpu_end)
			continue;
		const struct tree_node *n = &m->plain.nodes[m->at[TREE_CORE][cpu]];
		bool seen = false;
		for (uint32_t i = n->first; i < n->end; i++)
			seen = seen || rp_ids_has(rp_ids_of(ret), m->plain.cpus[i]);
		if (!seen)
			rp_idset_add(ret, cpu);
	}
}

void plan_machine_name(const struct plan_machine *m, enum tree_level level, uint32_t cpu, char *buf,
		       size_t size)
{
	uint32_t p = m->package_of[cpu], d = m->die_of[cpu];
	if (level == TREE_PACKAGE)
		(void)snprintf(buf, size, "p%u", p);
	else if (level == TREE_DIE)
		(void)snprintf(buf, size, "p%ud%u", p, d);
	else
		(void)snprintf(buf, size, "p%ud%un%u", p, d, m->node_of[cpu]);
}

/* ---- search for the best node ---------------------------------------------------------------- */

static void plan_tree_count(const struct tree *t, struct rp_ids set, uint32_t *sums)
{
	for (uint32_t i = 0; i < t->n_cpus; i++)
		sums[i + 1] = sums[i] + (uint32_t)rp_ids_has(set, t->cpus[i]);
}

static uint32_t plan_tree_within(const struct tree_node *n, const uint32_t *sums)
{
	return sums[n->end] - sums[n->first];
}

static int compare_order(const struct tree_node *a, const struct tree_node *b)
{
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	/* Both nodes are parts of one core, in different classes. */
	return a < b ? -1 : a > b;
}

struct wish {
	bool grow, balance;
	uint32_t n;
};

/*
 * Path to the node being visited, compared with the path to the best node so far, depth by
 * depth, by current CPUs and by free CPUs. A negative value prefers the visited node. The value
 * is 0 while the two paths are equal.
 */
struct descent {
	const struct tree *t;
	const struct wish *w;
	const struct tree_node *best; /* best node of the tree so far; NULL: none yet */
	const struct tree_node *way[TREE_DEPTH_MAX]; /* path to `best`, including it */
	int current[TREE_DEPTH_MAX], free[TREE_DEPTH_MAX];
};

static int compare_counts(const struct tree_node *a, const struct tree_node *b,
			  const uint32_t *sums, bool larger)
{
	uint32_t x = plan_tree_within(a, sums), y = plan_tree_within(b, sums);
	if (x == y)
		return 0;
	return (x < y) != larger ? -1 : 1;
}

static void take_best(struct descent *d, const struct tree_node *n)
{
	d->best = n;
	for (uint32_t depth = n->depth + 1; depth-- > 0; n = &d->t->nodes[n->parent]) {
		d->way[depth] = n;
		d->current[depth] = d->free[depth] = 0;
	}
}

static void step_down(struct descent *d, const struct tree_node *n)
{
	uint32_t depth = n->depth;
	const struct tree_node *best = d->way[depth];
	int current = depth ? d->current[depth - 1] : 0, free = depth ? d->free[depth - 1] : 0;
	if (!current)
		current = compare_counts(n, best, d->t->n_current, d->w->grow);
	if (!free)
		free = compare_counts(n, best, d->t->n_free, d->w->grow && d->w->balance);
	d->current[depth] = current;
	d->free[depth] = free;
}

static bool is_better(const struct descent *d, const struct tree_node *n)
{
	if (n->depth != d->best->depth)
		return n->depth > d->best->depth;
	int c = d->current[n->depth];
	if (!c)
		c = d->free[n->depth];
	if (!c)
		c = d->w->grow ? compare_order(n, d->best) : compare_order(d->best, n);
	return c < 0;
}

/* Returns true if no node below n can be better than the best one, which has the largest
 * possible depth. A path that is worse at one depth stays worse below it. */
static bool is_hopeless(const struct descent *d, const struct tree_node *n)
{
	int c = d->current[n->depth];
	/* Free CPUs decide when the current CPUs are equal on the whole path. */
	if (!c && !plan_tree_within(n, d->t->n_current) &&
	    !plan_tree_within(d->way[n->depth], d->t->n_current))
		c = d->free[n->depth];
	return c > 0;
}

/* Returns the largest depth of a node with n CPUs. */
static uint32_t plan_tree_deepest(const struct tree *t, uint32_t n)
{
	uint32_t depth = 0;
	for (uint32_t d = 1; d < TREE_DEPTH_MAX; d++)
		if (t->largest[d] >= n)
			depth = d;
	return depth;
}

static const struct tree_node *find_best(const struct tree *t, const struct wish *w)
{
	const uint32_t *sums = w->grow ? t->n_free : t->n_current;
	struct descent d = {.t = t, .w = w};
	uint32_t depth = plan_tree_deepest(t, w->n);
	for (uint32_t i = 0; i < t->n_nodes;) {
		const struct tree_node *n = &t->nodes[i];
		if (plan_tree_within(n, sums) < w->n) {
			i = n->skip;
			continue;
		}
		i++;
		if (d.best && n->depth <= d.best->depth)
			step_down(&d, n);
		if (!d.best || is_better(&d, n))
			take_best(&d, n);
		else if (d.best->depth == depth && is_hopeless(&d, n))
			i = n->skip;
	}
	return d.best;
}

static bool plan_tree_search(const struct tree *t, struct rp_ids current, struct rp_ids free,
			     const struct wish *w, struct rp_idset *ret)
{
	struct rp_ids from = w->grow ? free : current;
	plan_tree_count(t, current, t->n_current);
	plan_tree_count(t, free, t->n_free);
	const struct tree_node *best = find_best(t, w);
	rp_idset_clear(ret);
	for (uint32_t i = best ? best->first : 0; best && i < best->end; i++)
		if (rp_ids_has(from, t->cpus[i]))
			rp_idset_add(ret, t->cpus[i]);
	return best != NULL;
}

bool tree_grow(const struct tree *t, struct rp_ids current, struct rp_ids free, uint32_t n,
	       bool balance, struct rp_idset *ret)
{
	return plan_tree_search(t, current, free, &(struct wish){true, balance, n}, ret);
}

bool tree_shrink(const struct tree *t, struct rp_ids current, struct rp_ids free, uint32_t n,
		 struct rp_idset *ret)
{
	return plan_tree_search(t, current, free, &(struct wish){false, false, n}, ret);
}
