/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of pools (pools.h): the pool of each container and the amount that it counts there, saved
 * with the container. If the chosen pool has too few CPUs, the container overflows: it is put into
 * the pool of last resort, where it counts nothing, and waits for capacity in its own pool.
 *
 * All functions are for policies with a life (life.h), in a transaction. They do not change the
 * CPUs of pools: the policy resizes the pools afterwards (pools_resize()) and stages the members of
 * changed pools with members_stage().
 */
#pragma once

#include <nri-rp/lib/life.h>
#include "modules/lib/private/pools.h"

struct members_choice {
	uint32_t pool;
	const char *why; /* explanation for people */
	rp_cfg at; /* the configuration that decided; NULL: none */
	bool odd; /* the explanation is also logged as a warning */
};

/* The policy's part. */
struct members {
	/* Returns the pools of the plan. */
	struct pools_pool *(*pools)(struct rp_instance *inst, uint32_t *ret_n);
	/* Chooses the pool of a container. */
	struct members_choice (*choose)(struct rp_instance *inst, const struct rp_ctr_info *info);
	/* true if the CPUs suffice for the counted members */
	bool (*fits)(struct rp_instance *inst);
	/* Stages a container in a pool. degraded: why it is not in its own pool; NULL: it is. */
	int32_t (*stage)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 uint32_t pool, const char *degraded);
	uint32_t last_resort; /* index of the pool of last resort */
};

/* Returns true if the container is in a pool. */
bool members_known(const struct rp_instance *inst, rp_ctr ctr);
/* Moves a container from its pool into the one chosen for it. Returns 1, or 0 if there are too few
 * CPUs and the container is in no pool now. */
int32_t members_join(struct rp_instance *inst, const struct members *m, rp_txn txn,
		     const struct rp_ctr_info *info);
/* Puts a container that is in no pool into the pool of last resort, to wait. */
int32_t members_overflow(struct rp_instance *inst, const struct members *m, rp_txn txn,
			 const struct rp_ctr_info *info);
/* Removes a container that has ended. Returns 1 if it was in a pool, else 0. */
int32_t members_leave(struct rp_instance *inst, const struct members *m, rp_txn txn,
		      const struct rp_ctr_info *info);
/* Tries to move waiting containers into their own pools, after CPUs became free. */
int32_t members_retry(struct rp_instance *inst, const struct members *m, rp_txn txn, rp_ctr except);
/*
 * Assigns all containers again. If there are too few CPUs for all, containers that were in their
 * own pools before come first, and the pool of last resort keeps a CPU for the others.
 */
int32_t members_sync(struct rp_instance *inst, const struct members *m, rp_txn txn);
/* Stages the members of pools, which are selected by bits of their indexes, except one
 * container. */
int32_t members_stage(struct rp_instance *inst, const struct members *m, rp_txn txn, uint64_t pools,
		      rp_ctr except);
/* Stages one container in its pool, if it has one. */
int32_t members_stage_one(struct rp_instance *inst, const struct members *m, rp_txn txn,
			  const struct rp_ctr_info *info);
/* Sets the weight of each pool to the recent CPU usage of its members in milli-CPU; 0 without
 * measurements. */
int32_t members_weigh(struct rp_instance *inst, const struct members *m, rp_txn txn);
