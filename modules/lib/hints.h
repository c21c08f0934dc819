/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology hints: which NUMA nodes suit each resource that a container asks for, and one answer for
 * all of them.
 *
 * A hint is a set of nodes, or any of them, and says whether it is preferred. Every resource has a
 * list of hints; a resource that has no opinion has none. Nodes are bits of their numbers: machines
 * with nodes of 64 and more have no hints.
 */
#ifndef NRI_RP_LIB_HINTS_H
#define NRI_RP_LIB_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#define HINTS_ANY UINT64_MAX /* as nodes of a hint: any */
#define HINTS_MAX 512u /* of one list; what is more is not looked at */
#define HINTS_RESOURCES_MAX 8u
#define HINTS_ALL_MASKS_NODES 8u /* with more nodes only small sets of them are tried */

enum hints_policy {
	HINTS_NONE,
	HINTS_BEST_EFFORT,
	HINTS_RESTRICTED,
	HINTS_SINGLE_NUMA_NODE,
	HINTS_NUMERIC,
	N_HINTS_POLICIES
};
extern const char *const hints_policy_names[N_HINTS_POLICIES];
#define HINTS_POLICY_CHOICES "none|best-effort|restricted|single-numa-node|numeric"

struct hint {
	uint64_t nodes;
	bool preferred;
};

struct hints {
	const struct hint *
		list; /* NULL: no opinion, which every node suits; not NULL and n 0: nothing fits */
	uint32_t n;
	bool align; /* numeric: its nodes have to be those of the others that are aligned */
};

/*
 * Merges the lists of n resources of a machine with these nodes. True: the policy admits. `ret` has
 * a hint for each resource, the same for all of them but with numeric; with HINTS_NONE, and where
 * any node will do under single-numa-node, its nodes are HINTS_ANY.
 */
bool hints_merge(enum hints_policy policy, uint64_t nodes, const struct hints *resources,
		 uint32_t n, struct hint *ret);

/*
 * The subsets of `nodes` that have `least` nodes or more, small ones first, then by value: all of
 * them on machines with at most HINTS_ALL_MASKS_NODES, else those with least + 1 at most. How many;
 * at most HINTS_MAX.
 */
uint32_t hints_masks(uint64_t nodes, uint32_t least, uint64_t ret[HINTS_MAX]);

static inline uint32_t hints_size(uint64_t nodes)
{
	return (uint32_t)__builtin_popcountll(nodes);
}

#endif
