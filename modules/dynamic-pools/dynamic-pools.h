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
 *	config.c  section and topology → pools
 *	report.c  zones, metrics
 *	size.c    sizes of the pools
 *	dynamic-pools.c  choice of the pool, and the callbacks
 */
#pragma once

#include <nri-rp/host.h>

#include <nri-rp/lib/blocks.h>
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

struct rp_plan {
	struct blocks memory;
	struct pools bounds;
	struct cpualloc *alloc;
	struct texts system_namespaces;
	uint32_t n;
	struct pool_type types[POOLS_MAX];
	struct pools_pool pools[POOLS_MAX];
	struct pools_pool before[POOLS_MAX]; /* state of the pools when the transaction began */
};

struct rp_instance {
	LIFE;
	struct bytes saved; /* pools of the previous plan */
	bool in_sync;
	uint64_t placed, refused, resized;
};

extern const struct rp_schema dynpools_schema;
int32_t plan_new(const struct modhost *h, rp_cfg section, const struct reserve_past *past,
		 struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */

/* Returns true if there are enough CPUs for the needs of all pools. */
bool size_fits(const struct rp_plan *p);
/* Computes the size of each pool from requests and weights; 0 for reserved. The caller has
 * checked size_fits(). */
void size_all(const struct rp_plan *p, uint32_t ret[POOLS_MAX]);
/* Computes the number of CPUs that each pool needs; 0 for reserved. */
void size_needed(const struct rp_plan *p, uint32_t ret[POOLS_MAX]);

int32_t dynpools_zones(struct rp_instance *inst, const struct rp_zone_sink *sink);
int32_t dynpools_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink);
