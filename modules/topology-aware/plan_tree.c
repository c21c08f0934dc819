/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the tree of pools from the topology of the node. A level that would only repeat its parent
 * is omitted: the only NUMA node of a socket, dies that are not divided into clusters, and a single
 * L3 cache. NUMA nodes without memory have no pool; their CPUs belong to the parent pool only.
 */
#include <stdio.h>
#include <stdlib.h>

#include "modules/lib/private/room.h"
#include "modules/topology-aware/plan.h"

#define POOLS_MAX 8192u /* as many as CPUs, because a node has no more L3 caches than CPUs */
#define N_SETS 9u /* CPU sets of a pool */

struct unit {
	uint32_t id;
	struct rp_ids cpus;
	memalloc_mask node; /* the node, in the list of nodes */
};

struct units {
	struct unit *list;
	uint32_t n;
};

struct builder {
	const struct modhost *h;
	const struct memalloc *mem;
	struct pool *pools;
	struct rp_idset *cpus; /* CPUs of each pool */
	uint32_t n, cap_pools, cap_cpus;
	struct units packages, dies, nodes, caches;
};

/* ---- units of the topology ------------------------------------------------------------------- */

static int by_id(const void *pa, const void *pb)
{
	const struct unit *a = pa, *b = pb;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	uint32_t x = rp_ids_first(a->cpus), y = rp_ids_first(b->cpus);
	return x < y ? -1 : x > y;
}

static int32_t read_units(const struct builder *b, uint32_t level, struct units *ret)
{
	const struct rp_host_topology *t = b->h->topology;
	uint32_t n = t->n_units(b->h->ctx, level);
	ret->list = calloc(n ? n : 1, sizeof *ret->list);
	if (!ret->list)
		return modhost_no_memory(b->h);
	for (uint32_t i = 0; i < n; i++) {
		struct rp_unit_info info = {.size = sizeof info};
		struct rp_idset id;
		memalloc_mask node = 0;
		int32_t r = t->unit(b->h->ctx, level, i, &info);
		if (r)
			return modhost_fail(b->h, r,
					    "the host does not report a part of the machine");
		if (rp_ids_empty(info.cpus))
			continue;
		if (level == RP_LEVEL_NODE) {
			rp_idset_clear(&id);
			rp_idset_add(&id, info.id);
			node = memalloc_mask_of(b->mem, rp_ids_of(&id));
		}
		ret->list[ret->n++] = (struct unit){info.id, info.cpus, node};
	}
	qsort(ret->list, ret->n, sizeof *ret->list, by_id);
	return 0;
}

static uint32_t count_within(const struct units *units, struct rp_ids cpus)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < units->n; i++)
		n += (uint32_t)rp_ids_overlap(units->list[i].cpus, cpus);
	return n;
}

static uint32_t cluster_of(const struct modhost *h, uint32_t cpu)
{
	struct rp_cpu_info info = {.size = offsetof(struct rp_cpu_info, base_khz)};
	return h->topology->cpu(h->ctx, cpu, &info) ? 0 : info.cluster_id;
}

/* Returns true if the CPUs belong to more than one cluster. */
static bool is_clustered(const struct modhost *h, struct rp_ids cpus)
{
	uint32_t first = rp_ids_first(cpus);
	RP_IDS_EACH (cpu, cpus) {
		if (cluster_of(h, cpu) != cluster_of(h, first))
			return true;
	}
	return false;
}

static bool dies_count(const struct builder *b, struct rp_ids package)
{
	bool clustered = false;
	for (uint32_t i = 0; i < b->dies.n; i++)
		if (rp_ids_subset(b->dies.list[i].cpus, package))
			clustered |= is_clustered(b->h, b->dies.list[i].cpus);
	return clustered && count_within(&b->dies, package) > 1;
}

/* ---- pools, children before their parent ----------------------------------------------------- */

/*
 * Adds a pool after its descendants. Pools from number `first` on that have no parent become its
 * children.
 */
static int32_t add_pool(struct builder *b, uint32_t first, uint32_t level, uint32_t id,
			struct rp_ids cpus, const char *name)
{
	if (b->n == POOLS_MAX)
		return modhost_fail(b->h, -RP_E2BIG, "the machine has more than %u parts", b->n);
	if (!room_for(&b->pools, &b->cap_pools, b->n + 1, sizeof *b->pools) ||
	    !room_for(&b->cpus, &b->cap_cpus, b->n + 1, sizeof *b->cpus))
		return modhost_no_memory(b->h);
	struct pool *p = &b->pools[b->n];
	*p = (struct pool){.parent = NO_POOL, .first = first, .level = level, .id = id};
	(void)snprintf(p->name, sizeof p->name, "%s", name);
	rp_idset_copy(&b->cpus[b->n], cpus);
	for (uint32_t i = first; i < b->n; i++)
		if (b->pools[i].parent == NO_POOL)
			b->pools[i].parent = b->n;
	b->n++;
	return 0;
}

static int32_t add_caches(struct builder *b, struct rp_ids cpus, const char *above)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < b->caches.n; i++)
		n += (uint32_t)rp_ids_subset(b->caches.list[i].cpus, cpus);
	int32_t r = 0;
	for (uint32_t i = 0; n > 1 && !r && i < b->caches.n; i++) {
		const struct unit *u = &b->caches.list[i];
		char name[POOL_NAME_MAX];
		if (!rp_ids_subset(u->cpus, cpus))
			continue;
		(void)snprintf(name, sizeof name, "%.32s/L3 cache #%u", above, u->id);
		r = add_pool(b, b->n, RP_LEVEL_L3, u->id, u->cpus, name);
	}
	return r;
}

static int32_t add_nodes(struct builder *b, struct rp_ids cpus)
{
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < b->nodes.n; i++) {
		const struct unit *u = &b->nodes.list[i];
		struct rp_idset here;
		char name[POOL_NAME_MAX];
		rp_idset_and(&here, u->cpus, cpus);
		if (rp_ids_empty(rp_ids_of(&here)) || !(u->node & memalloc_with_memory(b->mem)))
			continue;
		uint32_t first = b->n;
		(void)snprintf(name, sizeof name, "NUMA node #%u", u->id);
		r = add_caches(b, rp_ids_of(&here), name);
		if (!r)
			r = add_pool(b, first, RP_LEVEL_NODE, u->id, rp_ids_of(&here), name);
	}
	return r;
}

/* Adds the pools below a die, or below a socket without die pools. */
static int32_t add_below(struct builder *b, struct rp_ids cpus, const char *name)
{
	return count_within(&b->nodes, cpus) > 1 ? add_nodes(b, cpus) : add_caches(b, cpus, name);
}

static int32_t add_dies(struct builder *b, const struct unit *package)
{
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < b->dies.n; i++) {
		const struct unit *u = &b->dies.list[i];
		char name[POOL_NAME_MAX];
		if (!rp_ids_subset(u->cpus, package->cpus))
			continue;
		uint32_t first = b->n;
		(void)snprintf(name, sizeof name, "die #%u/%u", package->id, u->id);
		r = add_below(b, u->cpus, name);
		if (!r)
			r = add_pool(b, first, RP_LEVEL_DIE, u->id, u->cpus, name);
	}
	return r;
}

static int32_t add_socket(struct builder *b, const struct unit *package)
{
	uint32_t first = b->n;
	char name[POOL_NAME_MAX];
	(void)snprintf(name, sizeof name, "socket #%u", package->id);
	int32_t r = dies_count(b, package->cpus) ? add_dies(b, package)
						 : add_below(b, package->cpus, name);
	if (!r)
		r = add_pool(b, first, RP_LEVEL_PACKAGE, package->id, package->cpus, name);
	for (uint32_t i = first; !r && i < b->n; i++)
		b->pools[i].package = package->id;
	return r;
}

static int32_t add_all(struct builder *b, struct rp_ids online)
{
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < b->packages.n; i++)
		r = add_socket(b, &b->packages.list[i]);
	if (r || b->packages.n == 1)
		return r;
	return add_pool(b, 0, RP_LEVEL_SYSTEM, 0, online, "root");
}

/* ---- sets and memory ------------------------------------------------------------------------- */

static void copy_words(uint64_t *dst, struct rp_ids src, uint32_t n_words)
{
	for (uint32_t i = 0; i < n_words; i++)
		dst[i] = rp_ids_word(src, i);
}

static void hand_out_words(struct rp_plan *p, struct pool *pool, uint64_t *w)
{
	uint64_t **sets[N_SETS] = {&pool->cpus,	    &pool->cap_sharable, &pool->cap_isolated,
				   &pool->reserved, &pool->own,		 &pool->sharable,
				   &pool->isolated, &pool->slice,	 &pool->whole_slice};
	for (uint32_t i = 0; i < N_SETS; i++)
		*sets[i] = w + (size_t)i * p->n_words;
}

static int32_t make_sets(struct builder *b, struct rp_plan *p)
{
	p->words = calloc((size_t)b->n * N_SETS * p->n_words, sizeof *p->words);
	if (!p->words)
		return modhost_no_memory(b->h);
	for (uint32_t i = b->n; i-- > 0;) {
		struct pool *pool = &b->pools[i];
		hand_out_words(p, pool, p->words + (size_t)i * N_SETS * p->n_words);
		copy_words(pool->cpus, rp_ids_of(&b->cpus[i]), p->n_words);
		copy_words(pool->own, rp_ids_of(&b->cpus[i]), p->n_words);
		pool->n_cpus = rp_ids_count(rp_ids_of(&b->cpus[i]));
		pool->depth = pool->parent == NO_POOL ? 0 : b->pools[pool->parent].depth + 1;
		if (pool->parent == NO_POOL)
			continue;
		for (uint32_t w = 0; w < p->n_words; w++)
			b->pools[pool->parent].own[w] &= ~pool->cpus[w];
	}
	return 0;
}

static void add_memory(const struct rp_plan *p, struct pool *pool, memalloc_mask nodes)
{
	for (uint32_t t = 0; t < N_MEM_TYPES; t++)
		pool->mem[t] |= nodes & memalloc_of_types(p->mem, UINT32_C(1) << t);
	/*
	 * Nodes with CPUs but without memory are treated as DRAM: the allocator extends a request
	 * for them to neighbouring nodes.
	 */
	pool->mem[0] |= nodes & ~memalloc_with_memory(p->mem);
}

/*
 * Assigns memory nodes to pools: the nodes of the pool's CPUs, and memory-only nodes to the pools
 * with the closest CPU nodes. The root has all memory.
 */
static void find_memory(const struct builder *b, struct rp_plan *p)
{
	struct rp_idset memory;
	modhost_set(b->h, RP_NODES_MEMORY, &memory);
	memalloc_mask all = memalloc_mask_of(p->mem, rp_ids_of(&memory)), with_cpus = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		struct pool *pool = &p->pools[i];
		for (uint32_t k = 0; k < b->nodes.n; k++)
			if (rp_ids_overlap(b->nodes.list[k].cpus, rp_ids_of(&b->cpus[i])))
				pool->nodes |= b->nodes.list[k].node;
		with_cpus |= pool->nodes;
		add_memory(p, pool, pool->parent == NO_POOL ? all : pool->nodes);
	}
	for (memalloc_mask left = all & ~with_cpus; left; left &= left - 1) {
		memalloc_mask near = memalloc_nearest(p->mem, left & -left, with_cpus);
		for (uint32_t i = 0; i < b->n; i++)
			if (p->pools[i].nodes & near)
				add_memory(p, &p->pools[i], left & -left);
	}
}

/* Numbers the groups of pools that have the same memory nodes. */
static void group_by_memory(struct rp_plan *p)
{
	for (uint32_t i = 0; i < p->n_pools; i++) {
		struct pool *pool = &p->pools[i];
		pool->mem_group = p->n_mem_groups;
		for (uint32_t k = 0; k < i && pool->mem_group == p->n_mem_groups; k++)
			if (memcmp(p->pools[k].mem, pool->mem, sizeof pool->mem) == 0)
				pool->mem_group = p->pools[k].mem_group;
		if (pool->mem_group == p->n_mem_groups)
			p->n_mem_groups++;
	}
}

int32_t tree_build(const struct modhost *h, struct rp_plan *p)
{
	struct builder b = {.h = h, .mem = p->mem};
	struct units *const lists[] = {&b.packages, &b.dies, &b.nodes, &b.caches};
	const uint32_t levels[] = {RP_LEVEL_PACKAGE, RP_LEVEL_DIE, RP_LEVEL_NODE, RP_LEVEL_L3};
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < 4; i++)
		r = read_units(&b, levels[i], lists[i]);
	if (!r)
		r = add_all(&b, rp_ids_of(&p->online));
	if (!r)
		r = make_sets(&b, p);
	p->pools = b.pools;
	p->n_pools = b.n;
	if (!r) {
		p->root = b.n - 1;
		find_memory(&b, p);
		group_by_memory(p);
	}
	free(b.cpus);
	for (uint32_t i = 0; i < 4; i++)
		free(lists[i]->list);
	return r;
}

void tree_free(struct rp_plan *p)
{
	free(p->words);
	free(p->pools);
	p->words = NULL;
	p->pools = NULL;
	p->n_pools = 0;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

uint32_t tree_find(const struct rp_plan *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_pools; i++)
		if (strcmp(p->pools[i].name, name) == 0)
			return i;
	return NO_POOL;
}

uint32_t tree_level(const struct rp_plan *p, uint32_t wanted)
{
	for (uint32_t i = 0; i < p->n_pools; i++)
		if (p->pools[i].level <= wanted)
			return p->pools[i].level;
	return RP_LEVEL_PACKAGE;
}

memalloc_mask tree_memory(const struct pool *pool, uint32_t types)
{
	memalloc_mask mask = 0;
	for (uint32_t t = 0; t < N_MEM_TYPES; t++)
		if (types & UINT32_C(1) << t)
			mask |= pool->mem[t];
	return mask;
}

const char *tree_kind(const struct pool *pool)
{
	static const char *const kinds[] = {
		[RP_LEVEL_SYSTEM] = "virtual node",
		[RP_LEVEL_PACKAGE] = "socket",
		[RP_LEVEL_DIE] = "die",
		[RP_LEVEL_NODE] = "numa node",
		[RP_LEVEL_L3] = "L3 cache",
	};
	return kinds[pool->level];
}
