/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain and slow model of topology-aware: the tree, its free resources, scores, and the
 * comparison of two pools. All numbers are computed each time. Topologies have at most 64 CPUs.
 */
#ifndef TEST_UNIT_T_TA_MODEL_H
#define TEST_UNIT_T_TA_MODEL_H

#include "test/unit/t_seed.h"
#include "test/unit/t_ta.h"

#define N_HELD 24u
#define N_PODS 6u
#define N_POOLS 64u
#define N_NODES 16u
#define NONE (-1)

enum { DRAM = 1, PMEM = 2, HBM = 4, N_TYPES = 3 };
enum kind { NORMAL, RESERVED };
enum priority { HIGH, MIDDLE, LOW, ANY };

struct pool {
	char name[96];
	int parent;
	unsigned depth, level;
	uint64_t cpus;
	uint64_t memory[N_TYPES]; /* nodes */
};

/* Annotations of a pod; -1: not set. */
struct notes {
	int shared, isolated, required, reserved, priority, level, types;
	char likes[2], hates[2]; /* the first of the two names and the second; 0: none */
	bool hides;
};

/* A container with its requirements as the policy sees them, and its allocation. */
struct held {
	rp_ctr ctr;
	unsigned pod, qos;
	char name[2];
	int64_t request, limit, mem_size, mem_limit;
	uint64_t hint[2]; /* CPUs near its devices */
	unsigned n_hints;
	/* asked for */
	enum kind asked;
	int64_t full, fraction;
	bool isolate, strict;
	enum priority priority;
	unsigned level, types;
	/* allocation */
	int pool;
	enum kind kind;
	uint64_t exclusive, zone;
	int64_t portion;
	bool zero, odd;
};

struct model {
	struct fake_host *f;
	struct seed *seed;
	struct rp_cpu_info cpu[64];
	uint64_t online, allowed, isolated, reserved, efficient;
	struct pool pools[N_POOLS];
	int n_pools;
	unsigned n_nodes, n_cpu_nodes;
	int64_t node_bytes[N_NODES];
	unsigned node_type[N_NODES];
	uint32_t distance[N_NODES][N_NODES];
	/* the configuration */
	bool prefer_isolated, prefer_shared, colocate_pods, colocate_namespaces;
	enum priority priority;
	unsigned level;
	char config[1024];
	struct notes notes[N_PODS];
	struct held held[N_HELD];
	unsigned n_held;
};

static unsigned count(uint64_t set)
{
	return (unsigned)__builtin_popcountll(set);
}

static uint64_t bit(unsigned i)
{
	return UINT64_C(1) << i;
}

static uint64_t word(struct rp_ids ids)
{
	return rp_ids_word(ids, 0);
}

static uint64_t parsed(const char *list)
{
	struct rp_idset set;
	assert_int_equal(rp_idset_parse(&set, list, RP_CPUS_MAX), 0);
	return word(rp_ids_of(&set));
}

static const char *list(uint64_t set, char *text, size_t size)
{
	struct rp_ids ids = {&set, 1, 0};
	(void)rp_ids_format(ids, text, (uint32_t)size);
	return text;
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Closes a pool: pools since `first` that have no parent become its children. */
static void add_pool(struct model *m, int first, unsigned level, uint64_t cpus, const char *name)
{
	assert_true(m->n_pools < (int)N_POOLS);
	struct pool *p = &m->pools[m->n_pools];
	*p = (struct pool){.parent = NONE, .level = level, .cpus = cpus};
	(void)snprintf(p->name, sizeof p->name, "%s", name);
	for (int i = first; i < m->n_pools; i++)
		if (m->pools[i].parent == NONE)
			m->pools[i].parent = m->n_pools;
	m->n_pools++;
}

enum number { PACKAGE, DIE, NODE, CACHE };

static uint32_t number_of(const struct model *m, unsigned cpu, enum number what)
{
	const struct rp_cpu_info *i = &m->cpu[cpu];
	return what == PACKAGE ? i->package_id
	       : what == DIE   ? i->die_id
	       : what == NODE  ? i->node_id
			       : i->unit[RP_LEVEL_L3];
}

/* CPUs among `of` that have this number; CPUs that have any lower one are not asked about. */
static uint64_t cpus_with(const struct model *m, uint64_t of, enum number what, uint32_t number)
{
	uint64_t set = 0;
	for (unsigned cpu = 0; cpu < 64; cpu++)
		if (of & bit(cpu) && number_of(m, cpu, what) == number)
			set |= bit(cpu);
	return set;
}

static unsigned count_numbers(const struct model *m, uint64_t of, enum number what)
{
	unsigned n = 0;
	for (uint32_t number = 0; number < 64; number++)
		n += cpus_with(m, of, what, number) != 0;
	return n;
}

static void add_caches(struct model *m, uint64_t cpus, const char *above)
{
	unsigned n = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t number = 0; number < 64; number++) {
			uint64_t cache = cpus_with(m, m->online, CACHE, number);
			char name[96];
			if (!cache || cache & ~cpus)
				continue;
			n += pass == 0;
			(void)snprintf(name, sizeof name, "%.40s/L3 cache #%u", above, number);
			if (pass == 1 && n > 1)
				add_pool(m, m->n_pools, RP_LEVEL_L3, cache, name);
		}
	}
}

static void add_below(struct model *m, uint64_t cpus, const char *above)
{
	if (count_numbers(m, cpus, NODE) < 2) {
		add_caches(m, cpus, above);
		return;
	}
	for (uint32_t node = 0; node < m->n_nodes; node++) {
		uint64_t here = cpus_with(m, cpus, NODE, node);
		char name[96];
		int first = m->n_pools;
		if (!here || !m->node_bytes[node])
			continue;
		(void)snprintf(name, sizeof name, "NUMA node #%u", node);
		add_caches(m, here, name);
		add_pool(m, first, RP_LEVEL_NODE, here, name);
	}
}

static bool has_clusters(const struct model *m, uint64_t die)
{
	uint32_t first = m->cpu[__builtin_ctzll(die)].cluster_id;
	for (unsigned cpu = 0; cpu < 64; cpu++)
		if (die & bit(cpu) && m->cpu[cpu].cluster_id != first)
			return true;
	return false;
}

static void add_socket(struct model *m, uint32_t package)
{
	uint64_t cpus = cpus_with(m, m->online, PACKAGE, package);
	int first = m->n_pools;
	bool clusters = false;
	char name[96], die_name[96];
	(void)snprintf(name, sizeof name, "socket #%u", package);
	for (uint32_t die = 0; die < 64; die++) {
		uint64_t part = cpus_with(m, cpus, DIE, die);
		clusters |= part && has_clusters(m, part);
	}
	if (!clusters || count_numbers(m, cpus, DIE) < 2) {
		add_below(m, cpus, name);
	} else {
		for (uint32_t die = 0; die < 64; die++) {
			uint64_t part = cpus_with(m, cpus, DIE, die);
			int below = m->n_pools;
			if (!part)
				continue;
			(void)snprintf(die_name, sizeof die_name, "die #%u/%u", package, die);
			add_below(m, part, die_name);
			add_pool(m, below, RP_LEVEL_DIE, part, die_name);
		}
	}
	add_pool(m, first, RP_LEVEL_PACKAGE, cpus, name);
}

/* Nodes with CPUs of the pool, and memory alone that is closest to one of them. The root has all
 * that has memory. */
static void add_memory(struct model *m, struct pool *p)
{
	uint64_t own = 0;
	for (unsigned cpu = 0; cpu < 64; cpu++)
		if (p->cpus & bit(cpu))
			own |= bit(m->cpu[cpu].node_id);
	for (unsigned s = 0; s < m->n_nodes; s++) {
		bool near = own & bit(s);
		uint32_t least = UINT32_MAX;
		for (unsigned i = 0; i < m->n_cpu_nodes; i++)
			if (m->distance[s][i] < least)
				least = m->distance[s][i];
		for (unsigned i = 0; s >= m->n_cpu_nodes && i < m->n_cpu_nodes; i++)
			near |= m->distance[s][i] == least && own & bit(i);
		if (p->parent == NONE)
			near = m->node_bytes[s] != 0;
		for (unsigned t = 0; near && t < N_TYPES; t++)
			if (m->node_type[s] == bit(t))
				p->memory[t] |= bit(s);
	}
}

static void build_tree(struct model *m)
{
	unsigned n_packages = count_numbers(m, m->online, PACKAGE);
	for (uint32_t package = 0; package < n_packages; package++)
		add_socket(m, package);
	if (n_packages > 1)
		add_pool(m, 0, RP_LEVEL_SYSTEM, m->online, "root");
	for (int i = m->n_pools; i-- > 0;) {
		struct pool *p = &m->pools[i];
		p->depth = p->parent == NONE ? 0 : m->pools[p->parent].depth + 1;
		add_memory(m, p);
	}
}

static bool is_within(const struct model *m, int pool, int top)
{
	while (pool != NONE && pool != top)
		pool = m->pools[pool].parent;
	return pool == top;
}

static unsigned links(const struct model *m, int from, int to)
{
	return m->pools[from].depth > m->pools[to].depth
		       ? m->pools[from].depth - m->pools[to].depth
		       : m->pools[to].depth - m->pools[from].depth;
}

/* ---- free resources -------------------------------------------------------------------------- */

static uint64_t taken(const struct model *m)
{
	uint64_t set = 0;
	for (unsigned i = 0; i < m->n_held; i++)
		set |= m->held[i].exclusive;
	return set;
}

static uint64_t sharable(const struct model *m, int pool)
{
	return m->pools[pool].cpus & m->allowed & ~m->isolated & ~m->reserved & ~taken(m);
}

static uint64_t isolated(const struct model *m, int pool)
{
	return m->pools[pool].cpus & m->allowed & m->isolated & ~m->reserved & ~taken(m);
}

static int64_t left_here(const struct model *m, int pool)
{
	int64_t left = 1000 * (int64_t)count(sharable(m, pool));
	for (unsigned i = 0; i < m->n_held; i++)
		if (m->held[i].kind == NORMAL && is_within(m, m->held[i].pool, pool))
			left -= m->held[i].portion;
	return left;
}

static int64_t room(const struct model *m, int pool)
{
	int64_t least = INT64_MAX;
	for (int at = pool; at != NONE; at = m->pools[at].parent)
		if (left_here(m, at) < least)
			least = left_here(m, at);
	for (unsigned i = 0; i < m->n_held; i++)
		if (m->held[i].zero && is_within(m, m->held[i].pool, pool))
			return least - 1;
	return least;
}

static int64_t reserved_room(const struct model *m)
{
	int64_t left = 1000 * (int64_t)count(m->reserved);
	for (unsigned i = 0; i < m->n_held; i++)
		if (m->held[i].kind == RESERVED)
			left -= m->held[i].portion;
	return left;
}

static bool is_leaf(const struct model *m, int pool)
{
	for (int i = 0; i < m->n_pools; i++)
		if (m->pools[i].parent == pool)
			return false;
	return true;
}

/* Returns the number of CPUs that a pool can allocate, with its containers keeping theirs if
 * `limited`. */
static int64_t sliceable(const struct model *m, int pool, bool limited)
{
	uint64_t own = sharable(m, pool);
	int64_t n = 0, most = room(m, pool) / 1000;
	for (int i = 0; i < m->n_pools; i++) {
		if (m->pools[i].parent != pool)
			continue;
		own &= ~m->pools[i].cpus;
		n += sliceable(m, i, true);
	}
	n += count(own);
	if ((limited || is_leaf(m, pool)) && n > most)
		n = most > 0 ? most : 0;
	return n;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static unsigned types_of(const struct model *m, uint64_t nodes)
{
	unsigned types = 0;
	for (unsigned i = 0; i < m->n_nodes; i++)
		if (nodes & bit(i))
			types |= m->node_type[i];
	return types;
}

static uint64_t with_memory(const struct model *m, unsigned types)
{
	uint64_t nodes = 0;
	for (unsigned i = 0; i < m->n_nodes; i++)
		if (m->node_bytes[i] && m->node_type[i] & types)
			nodes |= bit(i);
	return nodes;
}

static uint64_t memory_of(const struct model *m, int pool, unsigned types)
{
	uint64_t nodes = 0;
	for (unsigned t = 0; t < N_TYPES; t++)
		if (types & bit(t))
			nodes |= m->pools[pool].memory[t];
	return nodes;
}

static uint64_t expand(const struct model *m, uint64_t zone, unsigned types)
{
	uint64_t added = 0;
	for (unsigned t = 0; t < N_TYPES; t++) {
		uint32_t smallest = UINT32_MAX;
		uint64_t others = types & bit(t) ? with_memory(m, (unsigned)bit(t)) & ~zone : 0;
		for (unsigned i = 0; others && i < m->n_nodes; i++) {
			uint32_t least = UINT32_MAX;
			if (!(zone & bit(i)))
				continue;
			for (unsigned k = 0; k < m->n_nodes; k++)
				if (others & bit(k) && m->distance[i][k] < least)
					least = m->distance[i][k];
			if (least > smallest)
				continue;
			smallest = least;
			for (unsigned k = 0; k < m->n_nodes; k++)
				if (others & bit(k) && m->distance[i][k] == least)
					added |= bit(k);
		}
	}
	return added;
}

/* Returns the nodes of an offer; 0: none. */
static uint64_t offered(const struct model *m, int pool, unsigned types)
{
	uint64_t zone = memory_of(m, pool, types);
	if (!zone)
		return 0;
	zone |= expand(m, zone, types & ~types_of(m, zone));
	if (zone & with_memory(m, types))
		zone &= with_memory(m, types);
	return zone;
}

/* ---- requirements of a container ------------------------------------------------------------- */

static void ask_shared(struct held *c)
{
	c->full = 0;
	c->fraction = c->request;
	c->isolate = c->strict = false;
}

static void ask_whole(const struct model *m, struct held *c, bool annotated_only)
{
	const struct notes *n = &m->notes[c->pod];
	int noted = n->required >= 0 ? n->required : n->isolated;
	c->full = c->request / 1000;
	c->fraction = c->request % 1000;
	c->isolate = noted >= 0 ? noted : !annotated_only && m->prefer_isolated;
	c->strict = c->isolate && n->required >= 0;
}

static bool is_reserved(const struct model *m, const struct held *c)
{
	int noted = m->notes[c->pod].reserved;
	return noted == 1 ||
	       (noted < 0 && c->pod == 0); /* the first pod's namespace is kube-system */
}

static void classify(const struct model *m, struct held *c)
{
	const struct notes *n = &m->notes[c->pod];
	bool shared = n->shared >= 0 ? n->shared : m->prefer_shared;
	c->asked = NORMAL;
	c->priority = m->priority;
	ask_shared(c);
	if (is_reserved(m, c))
		c->asked = RESERVED;
	else if (c->qos == RP_QOS_BEST_EFFORT)
		c->fraction = 0;
	if (c->asked == RESERVED || c->qos != RP_QOS_GUARANTEED)
		return;
	if (n->priority >= 0)
		c->priority = (enum priority)n->priority;
	if (c->request < 1000)
		return;
	if (c->request < 2000) {
		if (!shared)
			ask_whole(m, c, false);
	} else if (c->request % 1000) {
		if (n->shared == 0)
			ask_whole(m, c, false);
	} else if (!shared) {
		ask_whole(m, c, true);
	}
}

static unsigned existing(const struct model *m, unsigned level)
{
	for (int i = 0; i < m->n_pools; i++)
		if (m->pools[i].level <= level)
			return m->pools[i].level;
	return RP_LEVEL_PACKAGE;
}

static void ask(const struct model *m, struct held *c)
{
	const struct notes *n = &m->notes[c->pod];
	unsigned present = types_of(m, with_memory(m, DRAM | PMEM | HBM));
	classify(m, c);
	c->level = existing(m, n->level >= 0 ? RP_LEVEL_SYSTEM + (unsigned)n->level
					     : RP_LEVEL_SYSTEM + m->level);
	c->types = (n->types >= 0 ? (unsigned)n->types : DRAM | PMEM) & present;
	if (!c->types)
		c->types = (DRAM | PMEM) & present;
}

/* ---- scores ---------------------------------------------------------------------------------- */

static double affinity(const struct model *m, const struct held *c, int pool)
{
	const struct notes *n = &m->notes[c->pod];
	char likes = 0, hates = 0;
	double sum = 0;
	for (unsigned i = 0; i < 2 && n->likes[0]; i++)
		if (n->likes[i] == c->name[0])
			likes = n->likes[1 - i];
	for (unsigned i = 0; i < 2 && n->hates[0]; i++)
		if (n->hates[i] == c->name[0])
			hates = n->hates[1 - i];
	for (unsigned i = 0; i < m->n_held; i++) {
		const struct held *o = &m->held[i];
		bool explicit = likes || hates;
		int weight = 0;
		if (o->ctr == c->ctr ||
		    !(is_within(m, o->pool, pool) || is_within(m, pool, o->pool)))
			continue;
		if (o->pod == c->pod)
			weight = explicit ? (o->name[0] == likes) - (o->name[0] == hates)
					  : 10 * m->colocate_pods;
		/* Pods with odd numbers are in one namespace, those with even ones in another, but
		 * for the first. */
		if (!explicit && m->colocate_namespaces && (o->pod == 0) == (c->pod == 0) &&
		    o->pod % 2 == c->pod % 2)
			weight += 10;
		double part = weight;
		for (unsigned k = links(m, o->pool, pool); k > 0; k--)
			part *= 0.75;
		sum += part;
	}
	return sum;
}

struct score {
	int pool;
	int64_t isolated, shared, room, capacity;
	double affinity, all, some;
	uint64_t zone;
	bool exact, complete, unusable, has_priority;
	unsigned company;
};

static void score_hints(const struct model *m, const struct held *c, struct score *s)
{
	s->all = s->some = 1;
	bool any = false;
	for (unsigned i = 0; i < c->n_hints; i++) {
		double near =
			(double)count(c->hint[i] & m->pools[s->pool].cpus) / count(c->hint[i]);
		s->all *= near;
		any |= near > 0;
		s->some *= near > 0 ? near : 1;
	}
	if (!any)
		s->some = 0;
}

static uint64_t with_priority(const struct model *m, enum priority priority)
{
	if (m->efficient)
		return priority == LOW ? m->efficient : m->online & ~m->efficient;
	return priority == MIDDLE ? m->online : 0;
}

/* Returns true if the allocation would empty a shared set, which is not allowed. */
static bool would_empty(const struct model *m, const struct held *c, int pool, bool slices)
{
	if (!c->full && !c->fraction)
		return !sharable(m, pool);
	for (unsigned i = 0; slices && i < m->n_held; i++) {
		const struct held *o = &m->held[i];
		if (o->zero && o->pool != pool && is_within(m, pool, o->pool) &&
		    count(sharable(m, o->pool)) <= c->full)
			return true;
	}
	return false;
}

static struct score score(const struct model *m, const struct held *c, int pool)
{
	struct score s = {.pool = pool, .room = room(m, pool)};
	int64_t part = c->full || c->fraction ? c->fraction : 1;
	s.isolated = c->isolate ? (int64_t)count(isolated(m, pool)) - c->full : 0;
	bool slices = c->full && !(c->isolate && s.isolated >= 0);
	s.shared = s.room - (slices ? 1000 * c->full : 0) - part;
	if (slices && sliceable(m, pool, false) < c->full) {
		int64_t whole = 1000 * (sliceable(m, pool, false) - c->full);
		s.shared = s.shared < whole ? s.shared : whole;
	}
	s.affinity = affinity(m, c, pool);
	score_hints(m, c, &s);
	s.zone = offered(m, pool, c->types);
	s.unusable = !s.zone || would_empty(m, c, pool, slices);
	s.exact = types_of(m, s.zone) == c->types;
	uint64_t near = memory_of(m, pool, c->types);
	for (unsigned i = 0; i < m->n_nodes; i++)
		s.capacity += near & bit(i) ? m->node_bytes[i] : 0;
	s.complete = true;
	for (unsigned t = 0; t < N_TYPES; t++)
		if (c->types & bit(t) && !m->pools[pool].memory[t])
			s.complete = false;
	s.has_priority = c->priority != ANY &&
			 1000 * (int64_t)count(with_priority(m, c->priority) & sharable(m, pool)) >=
				 1000 * c->full + part;
	for (unsigned i = 0; i < m->n_held; i++)
		s.company += m->held[i].kind == NORMAL && m->held[i].pool == pool;
	return s;
}

static bool suffices(const struct held *c, const struct score *s)
{
	return !s->unusable && s->shared >= 0 && (s->isolated >= 0 || !c->strict);
}

/* ---- two pools: 1: the first is better, -1: the second --------------------------------------- */

static bool lacks(const struct score *a, const struct score *b)
{
	return (a->isolated < 0 && b->isolated >= 0) || (a->shared < 0 && b->shared >= 0);
}

#define PREFER(x, y)                                                                               \
	do {                                                                                       \
		if ((x) != (y))                                                                    \
			return (x) > (y) ? 1 : -1;                                                 \
	} while (0)

static int lower(const struct score *a, const struct score *b)
{
	return a->pool < b->pool ? 1 : -1;
}

static int by_level(const struct model *m, const struct held *c, const struct score *a,
		    const struct score *b)
{
	unsigned x = m->pools[a->pool].level, y = m->pools[b->pool].level;
	PREFER(x == c->level, y == c->level);
	if (x == c->level)
		PREFER(a->room, b->room);
	else
		PREFER(x > c->level, y > c->level);
	return lower(a, b);
}

/* Rules 6 and later; the deeper one and so on. */
static int by_cpus(const struct model *m, const struct held *c, const struct score *a,
		   const struct score *b)
{
	if (c->qos == RP_QOS_BURSTABLE && c->limit)
		PREFER(a->room >= c->limit, b->room >= c->limit);
	if (c->qos == RP_QOS_BURSTABLE && !c->limit)
		return by_level(m, c, a, b);
	if (a->zone && b->zone)
		PREFER(count(b->zone), count(a->zone));
	PREFER(a->complete, b->complete);
	if (c->priority == LOW || c->priority == HIGH)
		PREFER(a->has_priority, b->has_priority);
	PREFER(m->pools[a->pool].depth, m->pools[b->pool].depth);
	if (c->isolate && (a->isolated > 0 || b->isolated > 0)) {
		PREFER(a->isolated, b->isolated);
		return lower(a, b);
	}
	if (c->priority == MIDDLE)
		PREFER(a->has_priority, b->has_priority);
	if (c->full && (a->shared > 0 || b->shared > 0)) {
		PREFER(a->shared, b->shared);
		return lower(a, b);
	}
	PREFER(b->company, a->company);
	PREFER(a->shared, b->shared);
	return lower(a, b);
}

static int compare(const struct model *m, const struct held *c, const struct score *a,
		   const struct score *b)
{
	PREFER(suffices(c, a), suffices(c, b));
	PREFER(b->unusable, a->unusable);
	if (lacks(b, a) || lacks(a, b))
		return lacks(b, a) ? 1 : -1;
	PREFER(a->affinity, b->affinity);
	if (c->n_hints) {
		PREFER(a->all, b->all);
		if (a->all == 0)
			PREFER(a->some, b->some);
		if (a->all != 0 || a->some != 0) {
			PREFER(m->pools[a->pool].depth, m->pools[b->pool].depth);
			return lower(a, b);
		}
	}
	PREFER(a->exact, b->exact);
	if (c->mem_size != c->mem_limit) {
		if (c->mem_limit)
			PREFER(a->capacity >= c->mem_limit, b->capacity >= c->mem_limit);
		else
			PREFER(a->capacity, b->capacity);
	}
	return by_cpus(m, c, a, b);
}

/* ---- placing --------------------------------------------------------------------------------- */

static struct score choose(const struct model *m, const struct held *c, int before)
{
	struct score sorted[N_POOLS];
	for (int i = 0; i < m->n_pools; i++) {
		struct score s = score(m, c, i);
		int at = i;
		for (; at > 0 && compare(m, c, &s, &sorted[at - 1]) > 0; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = s;
	}
	for (int i = 0; i < m->n_pools; i++)
		if (sorted[i].pool == before && suffices(c, &sorted[i]))
			return sorted[i];
	return sorted[0];
}

/* Chooses the place: c->pool and c->kind, and in *ret_from the CPUs for its exclusive ones.
 * Returns false if it is refused. */
static bool place(const struct model *m, struct held *c, const struct held *had, uint64_t *ret_from)
{
	int root = m->n_pools - 1;
	c->pool = root;
	c->kind = c->asked;
	*ret_from = 0;
	if (c->kind == RESERVED && reserved_room(m) < c->fraction)
		c->kind = NORMAL;
	else if (c->kind == NORMAL)
		c->pool = choose(m, c, had && had->kind == NORMAL ? had->pool : NONE).pool;
	if (c->kind == RESERVED)
		return true;
	if (!offered(m, c->pool, c->types) || would_empty(m, c, c->pool, false))
		return false;
	int64_t sliced = 0;
	if (c->full && had && had->pool == c->pool && count(had->exclusive) == c->full) {
		*ret_from = had->exclusive;
		sliced = count(had->exclusive & ~m->isolated);
	} else if (c->full && c->isolate && count(isolated(m, c->pool)) >= c->full) {
		*ret_from = isolated(m, c->pool);
	} else if (c->full) {
		*ret_from = sharable(m, c->pool);
		sliced = c->full;
		if (c->strict || would_empty(m, c, c->pool, true) ||
		    room(m, c->pool) < 1000 * c->full || sliceable(m, c->pool, false) < c->full)
			return false;
	}
	return !c->fraction || room(m, c->pool) - 1000 * sliced >= c->fraction;
}

#endif
