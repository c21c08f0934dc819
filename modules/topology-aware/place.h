/* SPDX-License-Identifier: Apache-2.0 */
/* What a container wants, and the pool that it gets. */
#ifndef TOPOLOGY_AWARE_PLACE_H
#define TOPOLOGY_AWARE_PLACE_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/topology-aware/place_ledger.h"
#include "modules/lib/match.h"
#include "modules/lib/pct.h"

/* ---- what a container wants (place_request.c) ------------------------------------------------ */

#define REQUEST_WHY_MAX 200u

struct request {
	struct rp_ctr_info info;
	struct needs needs;
	enum grant_type type;
	int64_t full, fraction;
	bool isolate, strict_isolated, hide_threads, zero;
	enum cpualloc_prio prio;
	uint32_t level; /* of unlimited Burstable containers */
	uint32_t mem_types;
	int64_t mem_size;
	bool mem_preserve, colocate_pod, colocate_ns;
	uint64_t cold_ms;
	struct hints *hints;
	bool strict_hints, pick_by_hints;
	uint32_t class; /* of its exclusive CPUs; CPUCLASS_NONE */
	int32_t sched; /* or SCHEDCLASS_NONE */
	struct irq_ask *irq;
	uint32_t pool_hint; /* NO_POOL */
	const struct grant *had; /* until now, when this is a resize; NULL */
	bool weighted; /* plan.affinity is of use */
	bool selective, averse; /* it has affinities of its own; some are against others */
	rp_cfg decided_at;
	char why[REQUEST_WHY_MAX];
};

/*
 * 0, or an error that refuses the container. `known`: hints from an earlier time, when its devices
 * were known; NULL: there are none, they are made now.
 */
int32_t request_read(struct rp_instance *inst, const struct rp_ctr_info *info, struct hints *known,
		     struct request *ret);
void request_fini(struct request *r);
/* ---- affinity (place_affinity.c) ------------------------------------------------------------- */

/* Fills plan.affinity, by pool. r->weighted tells whether there was anything to count. */
int32_t affinity_weigh(struct rp_instance *inst, struct request *r);

/* ---- hints (place_hints.c) ------------------------------------------------------------------- */

/* From devices, mounts and annotations of a container that is being created. NULL: none. */
int32_t hints_make(struct rp_instance *inst, const struct rp_ctr_info *info, struct hints **ret);
struct hints *hints_ref(struct hints *h);
struct hints *hints_unref(struct hints *h); /* returns NULL; NULL is fine */
/* Adds one; sets may be empty. -RP_ENOMEM; -RP_E2BIG: too many. */
int32_t hints_add(struct hints **h, const char *provider, struct rp_ids cpus, struct rp_ids nodes,
		  struct rp_ids sockets);
/* 0 … 1 for one hint. */
double hint_score(const struct rp_plan *p, uint32_t pool, const struct hint *h);
/* Product of all scores, and of those that are not zero (0: all are). */
void hints_score(const struct rp_plan *p, uint32_t pool, const struct hints *h, double *ret_all,
		 double *ret_some);
/* The first hint that a set of CPUs is not within; NULL: it is within all. */
const struct hint *hints_violated(const struct rp_plan *p, const struct hints *h,
				  struct rp_ids cpus);
const struct hint *hints_memory_violated(const struct rp_plan *p, const struct hints *h,
					 memalloc_mask zone);

/* ---- which pool (place_score.c) -------------------------------------------------------------- */

struct score {
	uint32_t pool;
	bool unusable; /* no memory, nothing to share, or nothing left for others to share */
	bool preferred; /* its exclusive CPUs would be where their class likes them */
	int64_t isolated, shared; /* what would be left */
	double hint_all, hint_some;
	const struct memory_group *memory;
};

struct scoring {
	struct score best;
	struct score second; /* pool NO_POOL: there was one pool only */
	const char *rule; /* the score that the best one is better by */
	double by_best, by_second; /* what both have of it; the same: it is none of the scores */
};

/* Compares all pools. affinity_weigh() goes before. */
void score_pools(struct rp_instance *inst, const struct request *r, struct scoring *ret);
/* One of them, after score_pools(). */
void score_pool(struct rp_instance *inst, const struct request *r, uint32_t pool,
		struct score *ret);
bool score_sufficient(const struct request *r, const struct score *s);
/* Is `to` so much better for one that runs at `from` that it should move? By what it is, not by who
 * else is there; `spread`: also as more is left there. ret_rule: what decides. After
 * score_pools(). */
bool score_worth_moving(struct rp_instance *inst, const struct request *r, const struct score *to,
			const struct score *from, bool spread, const char **ret_rule);
/* What the memory allocator is asked for; false: the pool has none of the types. */
bool memory_request(const struct rp_plan *p, const struct request *r, uint32_t pool,
		    struct memalloc_request *ret);

/* ---- one container (place.c) ----------------------------------------------------------------- */

/* Gives a container its place in the ledger. 0, or an error with its text said and the ledger
 * changed only as far as the log can take back. */
int32_t place(struct rp_instance *inst, const struct request *r, struct grant **ret);
/* The same at the root with whatever is left, for one that runs already and cannot be placed. */
int32_t place_anyhow(struct rp_instance *inst, const struct request *r, const char *reason,
		     struct grant **ret);
/* A resize: takes `old` out and places anew. */
int32_t place_again(struct rp_instance *inst, struct request *r, struct grant *old,
		    struct grant **ret);
/* Takes a grant out of ledger and memory. */
void place_release(struct rp_instance *inst, struct grant *g);

/* ---- room in one NUMA node (place_relief.c) -------------------------------------------------- */

/* For a new container that has just been placed, after the log had n_log entries: moves others if
 * it is spread over nodes and the configuration asks for relief at admission. *ret may be another
 * grant then. */
int32_t relief_at_admission(struct rp_instance *inst, rp_txn txn, struct request *r, uint32_t n_log,
			    struct grant **ret);
/* Helps containers that wait for room in one node, with at most `budget` containers moved (0: any
 * number). Returns how many were moved, or an error. stage_others() follows. */
int32_t relief_help_waiting(struct rp_instance *inst, rp_txn txn, uint64_t budget);

/* ---- better places (place_better.c) ---------------------------------------------------------- */

/* Moves at most `budget` containers (0: any number). */
int32_t rebalance_all(struct rp_instance *inst, rp_txn txn, uint64_t budget);
/* One that has begun to lack something (RP_PRESSURE_…). */
int32_t rebalance_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint64_t lacks);

#endif
