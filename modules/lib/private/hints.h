/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging of topology hints: each resource that a container requests has hints about suitable NUMA
 * nodes, and the result is one answer for all resources.
 *
 * A hint is a set of nodes, or any nodes, and may be preferred. A resource without an opinion has
 * no list. Nodes are bits by their number; machines with node numbers of 64 and above have no
 * hints.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HINTS_ANY UINT64_MAX /* nodes of a hint that accepts any */
#define HINTS_MAX 512u /* hints of one list; further ones are ignored */
#define HINTS_RESOURCES_MAX 8u
#define HINTS_ALL_MASKS_NODES 8u /* number of nodes above which only small sets are tried */

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
	/* NULL: no opinion, every node suits; not NULL and n 0: no node fits */
	const struct hint *list;
	uint32_t n;
	/* numeric policy: the resource's nodes must equal the nodes of the other aligned
	 * resources */
	bool align;
};

/*
 * Merges the lists of n resources of a machine with these nodes. Returns true if the policy admits
 * the container. Stores a hint for each resource in `ret`, which is the same for all except with
 * the numeric policy. With HINTS_NONE, and if any node suits under single-numa-node, its nodes are
 * HINTS_ANY.
 */
bool hints_merge(enum hints_policy policy, uint64_t nodes, const struct hints *resources,
		 uint32_t n, struct hint *ret);

/*
 * Stores the subsets of `nodes` with at least `least` nodes, small ones first, then by value. On
 * machines with more than HINTS_ALL_MASKS_NODES nodes only subsets of up to least + 1 nodes.
 * Returns their number, at most HINTS_MAX.
 */
uint32_t hints_masks(uint64_t nodes, uint32_t least, uint64_t ret[HINTS_MAX]);

/* Returns the number of nodes. */
static inline uint32_t hints_size(uint64_t nodes)
{
	return (uint32_t)__builtin_popcountll(nodes);
}
