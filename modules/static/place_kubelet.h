/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choice of exclusive CPUs as the kubelet's static CPU manager makes it; kubelet_take() is the
 * entry point.
 *
 * The functions have no state and no notion of containers; equal arguments give equal results, and
 * the lower id wins a tie. They choose exactly n CPUs from `free`, which is any subset of the
 * online CPUs.
 */
#pragma once

#include <nri-rp/lib/machine.h>

/* Mask of CPU manager options. */
#define OPT_FULL_PCPUS_ONLY 0x01u
#define OPT_STRICT_RESERVATION 0x02u
#define OPT_DISTRIBUTE_NUMA 0x04u
#define OPT_ALIGN_CACHE 0x08u
#define OPT_ALIGN_SOCKET 0x10u
#define OPT_DISTRIBUTE_CORES 0x20u

/*
 * Chooses n CPUs as the options require. Returns 0, or -RP_ENOSPC if `free` has fewer than n CPUs.
 * n = 0 gives the empty set.
 */
int32_t kubelet_take(const struct machine *m, uint32_t options, struct rp_ids free, uint32_t n,
		     struct rp_idset *ret);

/* ---- the two algorithms, exported for each other and for tests ------------------------------- */

/* Chooses whole units first, and of these the ones with the fewest free CPUs first. */
int32_t kubelet_packed(const struct machine *m, uint32_t options, struct rp_ids free, uint32_t n,
		       struct rp_idset *ret);

/*
 * Chooses n CPUs evenly spread over the smallest sufficient number of NUMA nodes. Returns 0,
 * -RP_ENOSPC, or DISTRIBUTE_NOT if no even split exists and kubelet_packed() must be used.
 *
 * The search is exact for up to ten nodes. With more nodes it ends after DISTRIBUTE_STEPS steps
 * with the best split found so far.
 */
#define DISTRIBUTE_NOT 1
#define DISTRIBUTE_STEPS 1000000u
#define DISTRIBUTE_NODES_MAX 64u /* number of nodes above which CPUs are never distributed */
#define DISTRIBUTE_WIDE 16u /* above this number of nodes, */
#define DISTRIBUTE_WIDE_MAX 4u /* a container is distributed over at most this many nodes */
int32_t kubelet_distributed(const struct machine *m, uint32_t options, struct rp_ids free,
			    uint32_t n, struct rp_idset *ret);

/*
 * Lists the units of a level that have free CPUs, in the order in which the kubelet considers them:
 * units with the fewest free CPUs first, grouped by larger units in the same order. Returns the
 * number of units; the list is in m->ranks until the next call.
 */
uint32_t kubelet_list(const struct machine *m, enum machine_level level, struct rp_ids free);
