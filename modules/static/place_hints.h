/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choice of the NUMA nodes for exclusive CPUs, as the kubelet's topology manager chooses them for
 * CPUs. hint_find() is the entry point; place_kubelet.h chooses the CPUs within the nodes.
 */
#pragma once

#include <nri-rp/lib/machine.h>

enum hint_policy {
	HINT_NONE,
	HINT_BEST_EFFORT,
	HINT_RESTRICTED,
	HINT_SINGLE_NODE,
};

#define HINT_NODES_MAX 64u
/* Maximum number of steps of a search with align-by-socket or with distances between nodes. */
#define HINT_STEPS 20000u

struct hint {
	int preferred;
	struct rp_idset nodes; /* NUMA nodes of the hint, by number */
	struct rp_idset cpus; /* free CPUs to use first */
};

/* Distances between NUMA nodes with CPUs, in the order of node numbers. */
struct hint_distances {
	uint16_t of[HINT_NODES_MAX][HINT_NODES_MAX];
	uint16_t least; /* smallest distance between two nodes; 0: all distances are equal */
};

/* Reads the distances between the NUMA nodes with CPUs, at most HINT_NODES_MAX. */
void hint_read_distances(const struct modhost *h, const struct machine *m,
			 struct hint_distances *ret);

/*
 * Finds the best set of NUMA nodes for n of the free CPUs. Of sets of equal size the one with the
 * smallest distances wins; distances NULL: all are equal. Returns 0, or -RP_ENOSPC if the policy
 * accepts no set; best-effort accepts every set with enough CPUs. The node has at most
 * HINT_NODES_MAX NUMA nodes with CPUs.
 */
int32_t hint_find(const struct machine *m, const struct hint_distances *distances,
		  enum hint_policy policy, int align_by_socket, struct rp_ids free, uint32_t n,
		  struct hint *ret);
