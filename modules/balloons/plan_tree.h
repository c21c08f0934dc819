/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The online CPUs as a tree: system, package, die, NUMA node, L2 cache, core, thread. A second tree
 * serves balloons that prefer separate cores. It splits the CPUs of a node by their position in
 * their core (the "class") before it splits them by caches and cores.
 *
 * The nodes are an array in depth-first order, with children ordered by number. The CPUs of a node
 * are a range of the array of CPUs, so one pass over the CPUs counts a set below every node.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/host.h>

enum tree_level {
	TREE_SYSTEM,
	TREE_PACKAGE,
	TREE_DIE,
	TREE_NUMA,
	TREE_L2,
	TREE_CORE,
	TREE_THREAD,
	TREE_N_LEVELS
};
/* largest depth of a tree: its levels, and the level of the class */
#define TREE_DEPTH_MAX (TREE_N_LEVELS + 1u)

struct tree_node {
	uint32_t first, end; /* range of its CPUs: cpus[first] … cpus[end - 1] */
	uint32_t parent; /* the root is its own parent */
	uint32_t depth;
	uint32_t skip; /* next node in the array that is not below this one */
	uint32_t group, number; /* order among the nodes of a depth */
};

struct tree {
	uint32_t n_cpus, n_nodes;
	uint32_t *cpus;
	struct tree_node *nodes;
	uint32_t largest[TREE_DEPTH_MAX]; /* CPUs of the largest node of each depth */
	uint32_t *n_current, *n_free; /* scratch: number of the first i CPUs that are in each set */
};

/* Topology as the policy uses it. Created again after CPU hotplug. */
struct plan_machine {
	struct tree plain, spread;
	struct rp_idset online, isolated;
	uint32_t cpu_end; /* highest id of a CPU, plus 1 */
	uint32_t *at[TREE_N_LEVELS]; /* node of the plain tree, by level and CPU */
	uint32_t *node_of; /* NUMA node number of each CPU */
	uint32_t *package_of, *die_of; /* the kernel's package and die ids of each CPU */
	uint32_t *l3_of; /* lowest CPU with the same L3 cache, for each CPU */
};

/* Reads the topology. Returns 0, or -RP_ENOMEM or -RP_EINVAL with a message. */
int32_t plan_machine_new(const struct modhost *h, struct plan_machine **ret);
struct plan_machine *plan_machine_free(struct plan_machine *m); /* returns NULL */

/* Adds to *ret all CPUs of the units of a level that contain one of `cpus`. */
void plan_machine_surround(const struct plan_machine *m, enum tree_level level, struct rp_ids cpus,
			   struct rp_idset *ret);
/* Sets *ret to the lowest CPU of `cpus` on each core. */
void plan_machine_one_per_core(const struct plan_machine *m, struct rp_ids cpus,
			       struct rp_idset *ret);
/* Writes the name of the unit of a level that contains a CPU, such as "p0d0n1". */
void plan_machine_name(const struct plan_machine *m, enum tree_level level, uint32_t cpu, char *buf,
		       size_t size);

/*
 * Finds the deepest node with at least n free CPUs (grow) or n current CPUs (shrink), and sets
 * *ret to its free or current CPUs. Among several, growing prefers the most current CPUs, then
 * the most (balance) or the fewest free CPUs. Shrinking prefers the fewest current CPUs, then
 * the fewest free CPUs. Returns false if there is none.
 */
bool tree_grow(const struct tree *t, struct rp_ids current, struct rp_ids free, uint32_t n,
	       bool balance, struct rp_idset *ret);
bool tree_shrink(const struct tree *t, struct rp_ids current, struct rp_ids free, uint32_t n,
		 struct rp_idset *ret);
