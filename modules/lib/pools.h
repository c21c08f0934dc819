/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of CPUs that several containers share: what is there to be divided into pools, what being
 * in a pool means for a container, and the pools as attributes of zones. Which pools there are, how
 * large, and who is in which, is the policy's own.
 */
#ifndef NRI_RP_LIB_POOLS_H
#define NRI_RP_LIB_POOLS_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/lib/bounds.h"
#include "modules/lib/ctr.h"

#define POOLS_NAME_MAX 63u /* bytes of a pool's name */
#define POOLS_LABEL_MAX (POOLS_NAME_MAX + 17u) /* with the number of an instance and the NUL */

/* Rows of a schema for what pools_read() reads. */
#define POOLS_KEYS                                                                                 \
	BOUNDS_KEYS("What the pool reserved has.",                                                 \
		    "Its CPUs: a set, or a quantity that is rounded up to whole CPUs."),           \
		{.path = "pinCPU",                                                                 \
		 .type = RP_T_BOOL,                                                                \
		 .fallback = "true",                                                               \
		 .doc = "Containers run on the CPUs of their pool."},                              \
	{                                                                                          \
		.path = "pinMemory", .type = RP_T_BOOL, .fallback = "true",                        \
		.doc = "Containers get their memory from the NUMA nodes of their pool's CPUs."     \
	}

/* What is divided. */
struct pools {
	rp_cfg section;
	bool pin_cpu, pin_memory;
	struct bounds cpus;
};

/*
 * Reads a section against the machine as it is. `past`: what was reserved before, of a quantity
 * (reserve.h). An error names the place. That CPUs are to be reserved, and none is available, is
 * one unless past->hotplug.
 */
int32_t pools_read(const struct modhost *h, rp_cfg section, struct cpualloc *a,
		   const struct reserve_past *past, struct pools *ret);

/*
 * Stages that the container is in a pool with these CPUs, or in one that has none on line, which
 * runs on the reserved ones, or on all when there are none of those either: its CPUs and memory
 * nodes as far as they are pinned, its shares if it has a request, and SHARED_CPUS in its data
 * file. group: 0, or the number by which a pool is told from others whose CPUs nobody else may
 * have. degraded: why this is not what it asks for, or NULL.
 */
int32_t pools_stage(const struct modhost *h, const struct pools *p, rp_txn txn,
		    const struct rp_ctr_info *info, struct rp_ids cpus, uint32_t group,
		    const char *degraded);

struct pools_zone {
	char label[POOLS_LABEL_MAX]; /* the attribute is "LABEL cpuset" */
	struct rp_ids cpus;
};
/* Zones of NUMA nodes (zones.h) that have the pools as attributes. -RP_ENOMEM. */
int32_t pools_zones(const struct modhost *h, const struct pools *p, const struct rp_zone_sink *sink,
		    struct rp_ids free, const struct pools_zone *zones, uint32_t n);

/* ---- pools that grow and shrink -------------------------------------------------------------- */

struct pools_pool {
	char name[POOLS_NAME_MAX + 1];
	enum cpualloc_prio prio; /* of the CPUs that it prefers */
	uint32_t n_ctrs;
	int64_t mcpu; /* what its containers ask for */
	int64_t weight; /* at least 0; the policy's own */
	struct rp_idset cpus;
};

uint32_t pools_find(const struct pools_pool *list, uint32_t n,
		    const char *name); /* n: there is none */
void pools_name(struct pools_pool *pool, const char *name);

/*
 * Makes each of n pools, 64 at most, as large as `sizes` says: those that shrink keep what they
 * would have chosen of their CPUs, those that grow keep all and get what `from` has left, those
 * that come first before. Bits of the pools that have other CPUs now.
 */
uint64_t pools_resize(struct cpualloc *a, struct pools_pool *list, uint32_t n, struct rp_ids from,
		      const uint32_t *sizes);

/* Gauges of each pool: policy_NAME_cpus, _containers, _requests, _weight. */
void pools_gauges(const struct rp_metric_sink *sink, const char *name,
		  const struct pools_pool *list, uint32_t n);

/* CPUs and weights of pools, by name, over restarts and reloads: a policy's state (nri-rp.state/1).
 * All zeros: nothing is known. */
struct pools_saved {
	uint8_t *bytes;
	uint32_t size, cap;
};
int32_t pools_save(const struct modhost *h, struct pools_saved *s, const struct pools_pool *list,
		   uint32_t n); /* -RP_ENOMEM with a message */
/* Bytes from elsewhere: -RP_EINVAL with a message when these are not what pools_save() makes. */
int32_t pools_load(const struct modhost *h, struct pools_saved *s, const void *data, uint32_t size);
/* What a pool of that name had; none if there was no such pool. False: there was none. */
bool pools_saved_find(const struct pools_saved *s, const char *name, struct pools_pool *ret);
/* What pools of these names had is theirs again, as far as `from` has it and no other of them. */
void pools_carry(const struct pools_saved *s, struct pools_pool *list, uint32_t n,
		 struct rp_ids from);

#endif
