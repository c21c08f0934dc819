/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic-pools policy: pools of CPUs that are as large as their containers' requests, rounded up. What nobody asks for goes to the
 * pools that work most, as it was measured at the last rebalancing, or to the pool shared as long as nothing was. A container never moves
 * to another pool; its pool grows and shrinks around it.
 *
 *	AVAILABLE = RESERVED, a pool that never changes + REST, which the other pools divide
 *
 * A pool without containers has no CPUs, but for shared. Who is in which pool is kept with the containers, what the pools look like
 * in the module's state; `pools` is an index over both.
 *
 *	config.c  section and machine → pools     size.c  how large each is, and growing and shrinking
 *	place.c   which pool a container is in    dynamic-pools.c  the callbacks
 *	report.c  zones, metrics
 */
#ifndef DYNAMIC_POOLS_H
#define DYNAMIC_POOLS_H

#include <stdbool.h>

#include <nri-rp/host.h>
#include <nri-rp/policy.h>

#include "modules/lib/blocks.h"
#include "modules/lib/pools.h"

#define POOLS_MAX 48u /* all of them fit into a module's state, and into a word of bits */
#define POOL_RESERVED 0u
#define POOL_SHARED 1u
#define N_BUILT_IN 2u
extern const char *const pool_names[N_BUILT_IN];

/* As it is configured. */
struct pool_type {
	rp_cfg at; /* NULL: nothing is said of it */
	char name[POOLS_NAME_MAX + 1];
	const char *cpu_class;
	struct texts namespaces;
	enum cpualloc_prio prio;
};

/* As it is. */
struct pool {
	struct rp_idset cpus;
	int64_t mcpu; /* what its containers ask for */
	int64_t weight; /* milli-CPU that they used when that was measured last */
	uint32_t n_ctrs;
};

struct rp_plan {
	struct blocks memory;
	struct pools bounds;
	struct cpualloc *alloc;
	struct texts system_namespaces;
	uint32_t n;
	struct pool_type types[POOLS_MAX];
	struct pool *pools; /* n of them, … */
	struct pool *before; /* … and as they were when the callback began */
};

struct rp_instance {
	struct modhost h;
	const struct rp_host_usage *usage; /* NULL: the host does not measure */
	struct rp_plan *plan; /* in force; NULL before the first commit */
	bool waiting; /* perhaps somebody is in shared for want of CPUs; only ever too true */
	bool in_sync;
	uint64_t placed, refused, resized;
	struct pools_saved saved; /* the pools by name, with their weights */
	struct ctr_list list;
};

/* ---- config.c ---------------------------------------------------------------------------------------------------------- */

extern const struct rp_schema dynpools_schema;
int32_t plan_new(const struct modhost *h, rp_cfg section, const struct reserve_past *past,
		 struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */
uint32_t plan_find(const struct rp_plan *p, const char *name); /* p->n: none */
/* What a pool of that name had is its again, as far as it may have these CPUs and no other pool does. */
void plan_carry(struct rp_plan *p, const struct pools_named *had);

/* ---- size.c -------------------------------------------------------------------------------------------------------------- */

/* Is there a CPU for each that the pools need? */
bool size_fits(const struct rp_plan *p);
/* By requests and weights; of all but reserved. What the pools need fits. */
void size_all(const struct rp_plan *p, uint32_t ret[POOLS_MAX]);
/* Shrinks and grows them to that with the fewest moves: bits of the pools that have other CPUs now. */
uint64_t size_change(struct rp_plan *p);
/* CPUs that could go to another pool. */
void size_spare(const struct rp_plan *p, struct rp_idset *ret);

/* ---- place.c -------------------------------------------------------------------------------------------------------------- */

/* What is kept with a container. */
struct record {
	uint32_t version, pool;
	int64_t mcpu; /* what it counts for in its pool */
	uint32_t overflows; /* it is in shared for want of CPUs */
	uint32_t pad;
};
bool place_record(const struct rp_instance *inst, rp_ctr ctr, struct record *ret);
/* Which pool it is for, and why. A pool that there is not is an error for one that is new, and shared for others. */
int32_t place_choose(struct rp_instance *inst, const struct rp_ctr_info *info, bool new,
		     uint32_t *ret, const char **ret_why);
/* Counts it in, or out; the pools have their CPUs by size_change(). */
int32_t place_join(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		   uint32_t pool, bool overflows);
void place_leave(struct rp_instance *inst, const struct record *rec);
/* What follows from its record and its pool. */
int32_t place_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
struct rp_ids place_cpus(const struct rp_plan *p, uint32_t pool);

/* ---- report.c -------------------------------------------------------------------------------------------------------------- */

extern const struct rp_zones dynpools_zones;
extern const struct rp_metrics dynpools_metrics;

#endif
