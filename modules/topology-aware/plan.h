/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration on the machine as it is: sets of CPUs, allocators, the tree of pools. */
#ifndef TOPOLOGY_AWARE_PLAN_H
#define TOPOLOGY_AWARE_PLAN_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/topology-aware/config.h"
#include "modules/lib/machine.h"
#include "modules/lib/memalloc.h"
#include "modules/lib/reserve.h"

#define NO_POOL UINT32_MAX

/* ---- pools (plan_tree.c) --------------------------------------------------------------------- */

#define POOL_NAME_MAX 64u
#define N_MEM_TYPES 3u /* MEMALLOC_DRAM, _PMEM, _HBM */

enum grant_type { GRANT_NORMAL, GRANT_RESERVED, GRANT_PRESERVE, N_GRANT_TYPES };

struct grant;

/*
 * Pools are numbered in post-order: those below pool P are P.first … P-1, the root is the last.
 * Sets have plan.n_words words. Sums are over the pool and all below it.
 */
struct pool {
	char name[POOL_NAME_MAX];
	uint32_t parent; /* NO_POOL: the root */
	uint32_t first; /* lowest number below it; its own: a leaf */
	uint32_t depth; /* of the root: 0 */
	uint32_t level; /* RP_LEVEL_… */
	uint32_t id; /* the kernel's number of what it stands for */
	uint32_t package; /* kernel's number; of all but a virtual root */
	memalloc_mask mem[N_MEM_TYPES]; /* memory near it, by type */
	uint32_t mem_group; /* pools of one group have the same memory */
	memalloc_mask nodes; /* those with a CPU in it */

	/* What it has. */
	uint64_t *cpus, *cap_sharable, *cap_isolated, *reserved;
	uint64_t *own; /* CPUs that are in no child */
	uint32_t n_cpus, n_cap_sharable, n_reserved;

	/* What is free of it. */
	uint64_t *sharable, *isolated;
	uint32_t n_sharable, n_isolated;
	uint64_t generation; /* of sharable */
	int64_t shared_own, shared_sum, reserved_own, reserved_sum;
	uint32_t zero_own, zero_sum; /* containers that ask for nothing */
	uint32_t n_grants[N_GRANT_TYPES]; /* of this very pool */
	struct grant *grants;
	bool changed; /* sharable, since ledger_begin */

	/* What may be given away of it (ledger_slices): limited by what is promised below it, and
	 * by what is promised here too. */
	uint64_t *whole_slice, *slice;
	uint32_t n_whole_slice, n_slice;
	uint64_t slice_generation; /* that of sharable; 0: not known */
	int64_t slice_limit; /* CPUs that slice may have */
	bool slice_stale; /* that of a child is another one */
};

struct rp_plan;

/* The pools of the machine, with hardware only: sets of CPUs that depend on the configuration
 * follow in pools_fill(). */
int32_t tree_build(const struct modhost *h, struct rp_plan *p);
void tree_free(struct rp_plan *p);
uint32_t tree_find(const struct rp_plan *p, const char *name); /* NO_POOL: there is none */
/* The level that the tree really has for a wanted one. */
uint32_t tree_level(const struct rp_plan *p, uint32_t wanted);
memalloc_mask tree_memory(const struct pool *pool, uint32_t types);
const char *tree_kind(const struct pool *pool); /* "socket", "numa node" … */

/* What the memory allocator says of the pools that have the same memory. */
struct memory_group {
	bool known, offers, exact; /* exact: the zone has all types asked for and no others */
	bool complete; /* the pools have memory of all types asked for */
	uint32_t n_nodes; /* of the zone */
	int64_t capacity;
};

/* ---- all of it (plan.c) ---------------------------------------------------------------------- */

struct rp_plan {
	struct settings settings;
	bool owns_settings;
	struct machine *machine;
	struct cpualloc *cpus;
	struct memalloc *mem;
	uint32_t n_words; /* of every set of CPUs */
	uint32_t n_pools, root;
	struct pool *pools;
	uint64_t *words; /* all sets of all pools */
	uint32_t n_mem_groups;
	struct rp_idset online, allowed, isolated, reserved;
	uint32_t mem_types; /* on the machine */
	bool cold_start; /* memory types allow it */
	uint32_t burstable_level;
	struct rp_idset prio_cpus[3]; /* by priority, as pools are compared */
	struct memory_group
		*groups; /* of the pools by their memory; answers of the running question */
	/* Scratch, by pool. */
	int64_t *room;
	double *affinity, *weight;
};

/* The machine is read anew. past->hotplug: what worked once goes on with the CPUs that are left.
 * The plan takes over the settings if it succeeds. */
int32_t plan_new(const struct modhost *h, const struct settings *s, const struct reserve_past *past,
		 struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */
/* Another set of reserved CPUs for a plan that nobody has used yet. */
int32_t plan_reserve(const struct modhost *h, struct rp_plan *p, const struct reserve_past *past);

/* All of it is free. */
void plan_empty_pool(const struct rp_plan *p, struct pool *pool);

static inline struct rp_ids plan_ids(const struct rp_plan *p, const uint64_t *set)
{
	return (struct rp_ids){set, p->n_words, 0};
}

#endif
