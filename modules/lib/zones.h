/* SPDX-License-Identifier: Apache-2.0 */
/* Zones for policies that assign CPUs by NUMA node: one zone per node, named "NUMA node #N", with
 * distances as costs. */
#ifndef NRI_RP_LIB_ZONES_H
#define NRI_RP_LIB_ZONES_H

#include <nri-rp/policy.h>

#include <nri-rp/lib/host.h>

/* A CPU set that becomes an attribute of each node's zone: the part in the node, empty or not. */
struct zones_set {
	const char *name; /* name of the attribute, such as "shared cpuset" */
	struct rp_ids cpus;
};

/* Reports the zones. Of each node's CPUs, `allocatable` may be assigned to containers and `free`
 * are available now. */
void zones_nodes(const struct modhost *h, const struct rp_zone_sink *sink,
		 struct rp_ids allocatable, struct rp_ids free, const struct zones_set *sets,
		 uint32_t n);

/* Adds the huge pages of these memory nodes together as resources of the zone begun last. */
void zones_hugepages(const struct modhost *h, const struct rp_zone_sink *sink, struct rp_ids nodes);

/* Adds a set as an attribute of the zone begun last, empty or not. */
void zones_attribute(const struct rp_zone_sink *sink, const char *name, struct rp_ids ids);

#endif
