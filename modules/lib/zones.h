/* SPDX-License-Identifier: Apache-2.0 */
/* Zones for policies whose CPUs are those of NUMA nodes: one zone a node, named "NUMA node #N",
 * with its distances as costs. */
#ifndef NRI_RP_LIB_ZONES_H
#define NRI_RP_LIB_ZONES_H

#include <nri-rp/policy.h>

#include "modules/lib/host.h"

/* The part of it in a node is an attribute of the node's zone, empty or not. */
struct zones_set {
	const char *name; /* "shared cpuset" */
	struct rp_ids cpus;
};

/* Of each node's CPUs: `allocatable` may be given to containers, `free` could be given to another
 * one now. */
void zones_nodes(const struct modhost *h, const struct rp_zone_sink *sink,
		 struct rp_ids allocatable, struct rp_ids free, const struct zones_set *sets,
		 uint32_t n);

/* An attribute of the zone that is being told, empty or not. */
void zones_attribute(const struct rp_zone_sink *sink, const char *name, struct rp_ids ids);

#endif
