/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic-pools policy: CPU pools as large as the CPU requests of their containers, rounded
 * up. CPUs that no container requests go to the pools with the highest CPU usage at the last
 * rebalancing, or to the pool shared until usage has been measured. A container never moves to
 * another pool: its pool grows and shrinks.
 *
 *	AVAILABLE = RESERVED, a pool of fixed CPUs + REST, divided among the other pools
 *
 * A pool without containers has no CPUs, except shared. The pool of each container is saved with
 * the container, and the CPUs of the pools in the state of the module. The pools of the plan are
 * an index of both.
 *
 *	config.c  section and topology → pools    members.c  pools of the containers
 *	report.c  zones, metrics                  size.c     sizes of the pools
 *	saved.c   CPUs saved over restarts
 *	dynamic-pools.c  choice of the pool, and the callbacks
 */
#pragma once

#include <nri-rp/host.h>

#include <nri-rp/lib/blocks.h>
#include <nri-rp/lib/bytes.h>
#include <nri-rp/lib/life.h>
#include "modules/lib/private/pools.h"

#define POOLS_MAX 48u /* limit of the saved state */
#define POOL_RESERVED 0u
#define POOL_SHARED 1u
#define N_BUILT_IN 2u
extern const char *const pool_names[N_BUILT_IN];

struct pool_type {
	rp_cfg at; /* configuration node; NULL: none */
	const char *cpu_class;
	struct texts namespaces;
};

struct pool {
	char name[POOLS_NAME_MAX + 1];
	enum cpualloc_prio prio; /* preferred priority of CPUs */
	uint32_t n_ctrs;
	int64_t mcpu; /* CPU requests of its containers */
	int64_t weight; /* CPU usage of its containers when last measured, at least 0 */
	struct rp_idset cpus;
};

struct rp_plan {
	struct blocks memory;
	struct pools bounds;
	struct cpualloc *alloc;
	struct texts system_namespaces;
	uint32_t n;
	struct pool_type types[POOLS_MAX];
	struct pool pools[POOLS_MAX];
	struct pool before[POOLS_MAX]; /* state of the pools when the transaction began */
};

struct rp_instance {
	LIFE;
	struct bytes saved; /* pools of the previous plan */
	bool in_sync;
	uint64_t placed, refused, resized;
};

extern const struct rp_schema dynpools_schema;
/* ops.fill and ops.plan_fini (life.h). */
int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p);
void plan_fini(struct rp_plan *p);
/* Returns the index of a pool; p->n: there is none. */
uint32_t plan_pool(const struct rp_plan *p, const char *name);

/* Returns true if there are enough CPUs for the needs of all pools. */
bool size_fits(const struct rp_plan *p);
/* Computes the size of each pool from requests and weights; 0 for reserved. The caller has
 * checked size_fits(). */
void size_all(const struct rp_plan *p, uint32_t ret[POOLS_MAX]);
/* Computes the number of CPUs that each pool needs; 0 for reserved. */
void size_needed(const struct rp_plan *p, uint32_t ret[POOLS_MAX]);
/*
 * Resizes pools, which are those of the plan or a copy of them. A pool that shrinks keeps the CPUs
 * that it would choose; one that grows keeps all and receives CPUs of `from` that are left, in the
 * order of the list. Returns the changed pools as bits.
 */
uint64_t size_apply(const struct rp_plan *p, struct pool list[POOLS_MAX], struct rp_ids from,
		    const uint32_t sizes[POOLS_MAX]);

/* ---- saved CPUs and weights (saved.c) -------------------------------------------------------- */

/* Saves the pools of the plan, if there is one. -RP_ENOMEM with a message. */
int32_t saved_keep(struct rp_instance *inst);
/* Loads saved bytes. -RP_EINVAL with a message: not written by saved_keep(). */
int32_t saved_load(struct rp_instance *inst, const void *data, uint32_t size);
/* Stores the saved values of a pool, by name. False: there are none, and ret->cpus is empty. */
bool saved_find(const struct rp_instance *inst, const char *name, struct pool *ret);
/* Restores the saved weights and CPUs in a plan, the CPUs as far as they are not reserved and in no
 * other pool. */
void saved_carry(const struct rp_instance *inst, struct rp_plan *p);

/* ---- choice of the pool (dynamic-pools.c) ---------------------------------------------------- */

struct pool_choice {
	uint32_t pool;
	const char *why; /* explanation for people */
	rp_cfg at; /* the configuration that decided; NULL: none */
	bool odd; /* the explanation is also logged as a warning */
};

/* Chooses the pool of a container. */
struct pool_choice dynpools_choose(struct rp_instance *inst, const struct rp_ctr_info *info);
/* Stages a container in a pool. degraded: why it is not in its own pool; NULL: it is. */
int32_t dynpools_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		       uint32_t pool, const char *degraded);

/*
 * ---- members (members.c) ----------------------------------------------------------------------
 *
 * If the chosen pool has too few CPUs, the container overflows: it is put into the pool shared,
 * where it counts nothing, and waits for capacity in its own pool. Except
 * members_adopt(), these functions do not change the CPUs of pools.
 */

/* Returns true if the container is in a pool. */
bool members_known(const struct rp_instance *inst, rp_ctr ctr);
/* Moves a container from its pool into the one chosen for it. Returns 1, or 0 if there are too few
 * CPUs and the container is in no pool now. */
int32_t members_join(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
/* Puts a container that is in no pool into the pool shared, to wait. */
int32_t members_overflow(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
/* Removes a container that has ended. Returns 1 if it was in a pool, else 0. */
int32_t members_leave(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
/* Tries to move waiting containers into their own pools, after CPUs became free. */
int32_t members_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except);
/*
 * Assigns all containers again. If there are too few CPUs for all, containers that were in their
 * own pools before come first, and the pool shared keeps a CPU for the others.
 */
int32_t members_sync(struct rp_instance *inst, rp_txn txn);
/* Gives the pools the CPUs on which their containers run, if the CPUs of the pools are unknown: the
 * store was lost, or another policy placed the containers. */
int32_t members_adopt(struct rp_instance *inst, rp_txn txn);
/* Stages the members of pools, which are selected by bits of their indexes, except one
 * container. */
int32_t members_stage(struct rp_instance *inst, rp_txn txn, uint64_t pools, rp_ctr except);
/* Stages one container in its pool, if it has one. */
int32_t members_stage_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
/* Sets the weight of each pool to the recent CPU usage of its members in milli-CPU; 0 without
 * measurements. */
int32_t members_weigh(struct rp_instance *inst, rp_txn txn);

/* ---- reports (report.c) ---------------------------------------------------------------------- */

int32_t dynpools_zones(struct rp_instance *inst, const struct rp_zone_sink *sink);
int32_t dynpools_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink);
