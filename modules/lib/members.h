/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of pools (pools.h): who counts in which pool, with how much, kept with each container.
 * One for which there are too few CPUs in the pool that it is for is in a pool of last resort,
 * where it counts for nothing, and waits for room in its own.
 *
 * All calls are those of a policy with a life (life.h), in a transaction. What pools look like is
 * not touched: that follows when the members are known (pools_resize()), and then members_stage()
 * makes it so for the members of the pools that have changed.
 */
#ifndef NRI_RP_LIB_MEMBERS_H
#define NRI_RP_LIB_MEMBERS_H

#include "modules/lib/life.h"
#include "modules/lib/pools.h"

struct members_choice {
	uint32_t pool;
	const char *why; /* for people */
	rp_cfg at; /* the configuration that decided, or NULL */
	bool odd; /* a warning says why, too */
};

struct members {
	struct pools_pool *(*pools)(struct rp_instance *inst, uint32_t *ret_n);
	struct members_choice (*choose)(struct rp_instance *inst, const struct rp_ctr_info *info);
	bool (*fits)(struct rp_instance *inst); /* are there CPUs for those who count? */
	/* It is in this pool; degraded: why it is not in its own, or NULL. */
	int32_t (*stage)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 uint32_t pool, const char *degraded);
	uint32_t last_resort;
};

bool members_known(const struct rp_instance *inst, rp_ctr ctr);
/* It leaves the pool that it was in, and counts in the one that it is for: 1. 0: there are too few
 * CPUs, and it is in none. */
int32_t members_join(struct rp_instance *inst, const struct members *m, rp_txn txn,
		     const struct rp_ctr_info *info);
int32_t members_overflow(struct rp_instance *inst, const struct members *m, rp_txn txn,
			 const struct rp_ctr_info *info);
/* It is gone. 1: it was in a pool. */
int32_t members_leave(struct rp_instance *inst, const struct members *m, rp_txn txn,
		      const struct rp_ctr_info *info);
/* CPUs have come free: those that wait for some have another try. */
int32_t members_retry(struct rp_instance *inst, const struct members *m, rp_txn txn, rp_ctr except);
/*
 * All join anew. If there are too few CPUs for all, those that had room before have it first, and
 * the pool of last resort keeps a CPU for those that do not.
 */
int32_t members_sync(struct rp_instance *inst, const struct members *m, rp_txn txn);
/* Stages the members of pools, by their bits, but for `except`. */
int32_t members_stage(struct rp_instance *inst, const struct members *m, rp_txn txn, uint64_t pools,
		      rp_ctr except);
int32_t members_stage_one(struct rp_instance *inst, const struct members *m, rp_txn txn,
			  const struct rp_ctr_info *info);
/* Milli-CPU that the members of each pool have used of late become its weight; 0 where nothing is
 * measured. */
int32_t members_weigh(struct rp_instance *inst, const struct members *m, rp_txn txn);

#endif
