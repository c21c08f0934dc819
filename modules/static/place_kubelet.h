/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CPUs an exclusive container gets: the placement of the kubelet's static CPU manager.
 *
 * Nothing here knows containers or keeps state. The same question has the same answer; ties go to
 * the lower id. All functions take CPUs from `free`, which may be any subset of the online CPUs,
 * and write a set of exactly n of them.
 */
#ifndef STATIC_PLACE_KUBELET_H
#define STATIC_PLACE_KUBELET_H

#include "modules/lib/machine.h"

/* Options of the CPU manager, a mask. */
#define OPT_FULL_PCPUS_ONLY 0x01u
#define OPT_STRICT_RESERVATION 0x02u
#define OPT_DISTRIBUTE_NUMA 0x04u
#define OPT_ALIGN_CACHE 0x08u
#define OPT_ALIGN_SOCKET 0x10u
#define OPT_DISTRIBUTE_CORES 0x20u

/* 0, or -RP_ENOSPC when `free` has fewer than n. n = 0 gives the empty set. */
int32_t kubelet_take(const struct machine *m, uint32_t options, struct rp_ids free, uint32_t n,
		     struct rp_idset *ret);

/* ---- the two ways, for each other and for tests ---------------------------------------------- */

/* Whole units first, the fullest ones first. */
int32_t kubelet_packed(const struct machine *m, uint32_t options, struct rp_ids free, uint32_t n,
		       struct rp_idset *ret);

/*
 * Spread evenly over the fewest NUMA nodes that can hold it. 0; -RP_ENOSPC; or DISTRIBUTE_NOT when
 * no even split exists and kubelet_packed has to do it.
 *
 * The search is exact up to ten nodes. On larger machines it ends after DISTRIBUTE_STEPS steps with
 * the best found so far.
 */
#define DISTRIBUTE_NOT 1
#define DISTRIBUTE_STEPS 1000000u
#define DISTRIBUTE_NODES_MAX 64u /* on machines with more nodes nothing is distributed */
#define DISTRIBUTE_WIDE 16u /* with more nodes than this, */
#define DISTRIBUTE_WIDE_MAX 4u /* at most so many share a container */
int32_t kubelet_distributed(const struct machine *m, uint32_t options, struct rp_ids free,
			    uint32_t n, struct rp_idset *ret);

/*
 * The units of a level that have free CPUs, in the order in which the kubelet considers them: those
 * with the fewest free CPUs first, within the larger units likewise. Returns how many; the list is
 * in m->ranks until the next call.
 */
uint32_t kubelet_list(const struct machine *m, enum machine_level level, struct rp_ids free);

#endif
