/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic-pools policy: pools of CPUs that are as large as their containers' requests, rounded
 * up. What nobody asks for goes to the pools that work most, as it was measured at the last
 * rebalancing, or to the pool shared as long as nothing was. A container never moves to another
 * pool; its pool grows and shrinks around it.
 *
 *	AVAILABLE = RESERVED, a pool that never changes + REST, which the other pools divide
 *
 * A pool without containers has no CPUs, but for shared. Who is in which pool is kept with the
 * containers, what the pools look like in the module's state; the plan's pools are an index over
 * both.
 *
 *	config.c  section and machine → pools
 *	report.c  zones, metrics
 *	size.c    how large each is
 *	dynamic-pools.c  which pool a container is in, and its life
 */
#ifndef DYNAMIC_POOLS_H
#define DYNAMIC_POOLS_H

#include <nri-rp/host.h>

#include "modules/lib/blocks.h"
#include "modules/lib/life.h"
#include "modules/lib/pools.h"

#define POOLS_MAX 48u /* all of them fit into a module's state */
#define POOL_RESERVED 0u
#define POOL_SHARED 1u
#define N_BUILT_IN 2u
extern const char *const pool_names[N_BUILT_IN];

struct pool_type {
	rp_cfg at; /* NULL: nothing is said of it */
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
	struct pools_pool before[POOLS_MAX]; /* as they were when the transaction began */
};

struct rp_instance {
	LIFE;
	struct pools_saved saved;
	bool in_sync;
	uint64_t placed, refused, resized;
};

extern const struct rp_schema dynpools_schema;
int32_t plan_new(const struct modhost *h, rp_cfg section, const struct reserve_past *past,
		 struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */

/* Is there a CPU for each that the pools need? */
bool size_fits(const struct rp_plan *p);
/* By requests and weights; reserved has 0. What the pools need fits. */
void size_all(const struct rp_plan *p, uint32_t ret[POOLS_MAX]);
/* What they need, but for reserved. */
void size_needed(const struct rp_plan *p, uint32_t ret[POOLS_MAX]);

extern const struct rp_zones dynpools_zones;
extern const struct rp_metrics dynpools_metrics;

#endif
