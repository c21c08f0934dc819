/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings applied to the current node: CPU sets, allocators and the tree of pools. plan_build()
 * builds a plan, tree_build() its pools. Grants of containers are recorded in place_ledger.h.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/topology-aware/config.h"
#include <nri-rp/lib/machine.h>
#include <nri-rp/lib/memalloc.h>
#include <nri-rp/lib/reserve.h>

#define NO_POOL UINT32_MAX

/* ---- pools (plan_tree.c) --------------------------------------------------------------------- */

#define POOL_NAME_MAX 64u
#define N_MEM_TYPES 3u /* MEMALLOC_DRAM, _PMEM, _HBM */

enum grant_type { GRANT_NORMAL, GRANT_RESERVED, GRANT_PRESERVE, N_GRANT_TYPES };

struct grant;

/*
 * A pool: a part of the node whose CPUs and memory containers get. Pools are numbered in
 * post-order: the descendants of pool P have the numbers P.first … P-1, and the root is the last
 * pool. Sets have plan.n_words words. Sums include the pool and its descendants. Amounts of CPU are
 * milli-CPU.
 */
struct pool {
	char name[POOL_NAME_MAX];
	uint32_t parent; /* parent pool; NO_POOL: this pool is the root */
	uint32_t first; /* lowest number of a descendant; its own number if it is a leaf */
	uint32_t depth; /* distance to the root; 0: root */
	uint32_t level; /* level of the pool in the topology, RP_LEVEL_… */
	uint32_t id; /* the kernel's number of the socket, die, node or cache */
	uint32_t package; /* the kernel's number of the socket; unused in a virtual root */
	memalloc_mask mem[N_MEM_TYPES]; /* memory nodes near the pool, by memory type */
	uint32_t mem_group; /* index into plan.groups; pools of one group have the same memory */
	memalloc_mask nodes; /* NUMA nodes with a CPU in the pool */

	/* Capacity of the pool. */
	uint64_t *cpus, *cap_sharable, *cap_isolated, *reserved;
	/* Free CPUs as bit sets, granted amounts in milli-CPU, and numbers of grants. */
	uint64_t *own;
	uint32_t n_cpus, n_cap_sharable, n_reserved;

	/* Free capacity and granted amounts. */
	uint64_t *sharable, *isolated;
	uint32_t n_sharable, n_isolated;
	uint64_t generation; /* number of changes of `sharable` so far */
	int64_t shared_own, shared_sum, reserved_own, reserved_sum;
	uint32_t zero_own, zero_sum; /* containers without CPU request (GRANT_ZERO) */
	uint32_t n_grants[N_GRANT_TYPES]; /* grants of this pool, without descendants */
	/* Grants of this pool; those of shared CPUs precede *unshared. */
	struct grant *grants, **unshared;
	bool changed; /* `sharable` has changed since ledger_begin() */
	/* The unit of relief_question that contains the pool; RELIEF_UNITS_MAX: none. Computed by
	 * place_relief.c. */
	uint32_t unit;

	/*
	 * CPUs that can become exclusive, computed by ledger_slices(). whole_slice leaves the
	 * shares promised in descendants; slice also leaves the shares promised in this pool and
	 * above.
	 */
	uint64_t *whole_slice, *slice;
	uint32_t n_whole_slice, n_slice;
	/* generation of sharable when the slices were computed; 0: never */
	uint64_t slice_generation;
	int64_t slice_limit; /* maximum number of CPUs in slice */
	bool slice_stale; /* a child's slice changed: recompute whole_slice */
};

struct rp_plan;

/*
 * Builds the tree of pools from the topology of the node. plan_reserve() fills the CPU sets that
 * depend on the configuration.
 */
int32_t tree_build(const struct modhost *h, struct rp_plan *p);
/* Frees the pools of a plan. */
void tree_free(struct rp_plan *p);
/* Returns the index of the pool of that name; NO_POOL: none. */
uint32_t tree_find(const struct rp_plan *p, const char *name);
/* Returns the wanted level if the tree has it, otherwise the next level towards the root. */
uint32_t tree_level(const struct rp_plan *p, uint32_t wanted);
/* Returns the memory nodes near a pool that have one of the memory types in `types`. */
memalloc_mask tree_memory(const struct pool *pool, uint32_t types);
const char *tree_kind(const struct pool *pool); /* zone type: "socket", "numa node" … */

/* Cached answer of the memory allocator for the pools that have the same memory. */
struct memory_group {
	/* offers: a zone exists; exact: the zone has exactly the requested memory types */
	bool known, offers, exact;
	bool complete; /* the pools have memory of all requested types */
	uint32_t n_nodes; /* number of nodes of the offered zone */
	int64_t capacity;
};

/* ---- plans (plan.c) -------------------------------------------------------------------------- */

struct rp_plan {
	const struct modhost *h; /* services of the policy instance, which outlives the plan */
	struct settings settings;
	struct machine *machine;
	struct cpualloc *cpus;
	struct memalloc *mem;
	uint32_t n_words; /* 64-bit words of each CPU set */
	uint32_t n_pools, root;
	struct pool *pools;
	uint64_t *words; /* memory of the CPU sets of all pools */
	uint32_t n_mem_groups;
	struct rp_idset online, allowed, isolated, reserved;
	uint32_t mem_types; /* memory types of the node */
	bool cold_start; /* cold starts are possible with the memory types of the node */
	uint32_t burstable_level;
	struct rp_idset prio_cpus[3]; /* CPUs by priority, for the comparison of pools */
	/* Allocator answers for the request being scored, indexed by pool.mem_group. */
	struct memory_group *groups;
	/* Scratch arrays, indexed by pool: free milli-CPU, affinity sums, weights of affinities. */
	int64_t *room;
	double *affinity, *weight;
};

/* Reads the topology of the node and builds a plan without grants from the settings.
 * past->hotplug: CPUs that went offline are no error. */
int32_t plan_build(const struct modhost *h, struct rp_plan *p, const struct reserve_past *past);
void plan_fini(struct rp_plan *p);
/* Chooses the reserved CPUs of a plan without grants again and recomputes its pools. */
int32_t plan_reserve(const struct modhost *h, struct rp_plan *p, const struct reserve_past *past);

/* Resets a pool to its full capacity without grants. */
void plan_empty_pool(const struct rp_plan *p, struct pool *pool);

static inline struct rp_ids plan_ids(const struct rp_plan *p, const uint64_t *set)
{
	return (struct rp_ids){set, p->n_words, 0};
}

/* Returns true if a pool is `above` or one of its descendants. */
static inline bool pool_is_within(const struct rp_plan *p, uint32_t pool, uint32_t above)
{
	return pool <= above && pool >= p->pools[above].first;
}
