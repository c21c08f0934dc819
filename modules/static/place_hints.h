/* SPDX-License-Identifier: Apache-2.0 */
/* Which NUMA nodes a container should get its CPUs from: the kubelet's topology manager, as far as
 * CPUs are concerned. */
#ifndef STATIC_PLACE_HINTS_H
#define STATIC_PLACE_HINTS_H

#include "modules/lib/machine.h"

enum hint_policy {
	HINT_NONE,
	HINT_BEST_EFFORT,
	HINT_RESTRICTED,
	HINT_SINGLE_NODE,
};

#define HINT_NODES_MAX 64u
/* With align-by-socket the search for a set of nodes may have to turn back; it gives up after so
 * many steps. */
#define HINT_STEPS 20000u

struct hint {
	int preferred;
	struct rp_idset nodes; /* by number */
	struct rp_idset cpus; /* free CPUs to take first */
};

/* Distances of nodes with CPUs, in the order of their numbers. */
struct hint_distances {
	uint16_t of[HINT_NODES_MAX][HINT_NODES_MAX];
	uint16_t least; /* of two nodes; 0: all are equally far from each other */
};

/* Reads the distances of a machine of at most HINT_NODES_MAX nodes with CPUs. */
void hint_read_distances(const struct modhost *h, const struct machine *m,
			 struct hint_distances *ret);

/*
 * The best set of nodes for n of the free CPUs. Of sets of one size the one whose nodes are
 * nearest to each other; distances NULL: all are equally far. 0, or -RP_ENOSPC when there is none
 * that the policy accepts (best-effort accepts any that is large enough). At most HINT_NODES_MAX
 * nodes with CPUs.
 */
int32_t hint_find(const struct machine *m, const struct hint_distances *distances,
		  enum hint_policy policy, int align_by_socket, struct rp_ids free, uint32_t n,
		  struct hint *ret);

#endif
