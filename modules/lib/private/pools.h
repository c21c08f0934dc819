/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of CPUs that containers share: the CPUs that can be divided into pools, the staging of a
 * container in a pool, and pools as attributes of zones. The policy decides which pools there are,
 * their sizes and their members.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include <nri-rp/lib/bounds.h>
#include <nri-rp/lib/ctr.h>
#include <nri-rp/lib/section.h>

#define POOLS_NAME_MAX 63u /* largest size of a pool's name, in bytes */
/* size of a buffer for a pool's name, an instance number and the NUL */
#define POOLS_LABEL_MAX (POOLS_NAME_MAX + 17u)

/* Rows of a schema for the keys that pools_read() reads. */
#define POOLS_KEYS                                                                                 \
	BOUNDS_KEYS("Resources of the pool reserved.",                                             \
		    "CPUs of the pool: a set, or a quantity that is rounded up to whole CPUs."),   \
		SECTION_BOOL("pinCPU", "true", "Containers run on the CPUs of their pool."),       \
		SECTION_BOOL(                                                                      \
			"pinMemory", "true",                                                       \
			"Containers get their memory from the NUMA nodes of their pool's CPUs.")

/* The section's settings and the CPUs to be divided. */
struct pools {
	rp_cfg section;
	bool pin_cpu, pin_memory;
	struct bounds cpus;
};

/*
 * Reads a section, applied to the online CPUs. `past`: what was reserved before (reserve.h). An
 * error names the place. If CPUs are to be reserved and none is available, that is an error unless
 * past->hotplug.
 */
int32_t pools_read(const struct modhost *h, rp_cfg section, struct cpualloc *a,
		   const struct reserve_past *past, struct pools *ret);

/*
 * Stages a container in a pool with these CPUs. If none of them is online, it runs on the reserved
 * CPUs, or on all if there are none. Stages CPUs and memory nodes as far as they are pinned, the
 * shares if it has a request, and SHARED_CPUS in its data file. group: number of a pool with
 * exclusive CPUs, or 0. degraded: why the container has less than it requests; NULL: it has all.
 */
int32_t pools_stage(const struct modhost *h, const struct pools *p, rp_txn txn,
		    const struct rp_ctr_info *info, struct rp_ids cpus, uint32_t group,
		    const char *degraded);

struct pools_zone {
	char label[POOLS_LABEL_MAX]; /* the attribute is named "LABEL cpuset" */
	struct rp_ids cpus;
};
/* Reports zones of NUMA nodes (zones.h) with the pools as attributes. -RP_ENOMEM. */
int32_t pools_zones(const struct modhost *h, const struct pools *p, const struct rp_zone_sink *sink,
		    struct rp_ids free, const struct pools_zone *zones, uint32_t n);
