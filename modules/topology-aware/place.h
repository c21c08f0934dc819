/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement of one container: reads its request, scores the pools, and records the chosen pool,
 * CPUs and memory in the ledger. Staging into the transaction follows in stage.h.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/topology-aware/place_ledger.h"
#include "modules/lib/private/match.h"
#include "modules/lib/private/node_devices.h"
#include "modules/lib/private/pct.h"

/* ---- requests (place_request.c) -------------------------------------------------------------- */

#define REQUEST_WHY_MAX 200u

struct request {
	struct rp_ctr_info info;
	struct needs needs;
	enum grant_type type;
	int64_t full, fraction;
	bool isolate, strict_isolated, hide_threads, zero;
	enum cpualloc_prio prio;
	uint32_t level; /* preferred RP_LEVEL_… of a Burstable container without CPU limit */
	uint32_t mem_types;
	int64_t mem_size;
	bool mem_preserve;
	bool huge; /* the container requests huge pages, which are counted on its memory nodes */
	uint64_t cold_ms; /* duration of the cold start; 0: none */
	uint64_t cold_until; /* end of a cold start that has begun; 0: not begun */
	uint32_t warm_types; /* memory types after the cold start */
	struct hints *hints;
	bool strict_hints, pick_by_hints;
	uint32_t class; /* CPU class of the exclusive CPUs, or CPUCLASS_NONE */
	int32_t sched; /* scheduling class index, or SCHEDCLASS_NONE */
	struct irq_ask *irq;
	uint32_t pool_hint; /* pool to prefer if it suffices, or NO_POOL */
	bool hint_suffices; /* pool_hint suffices: no other pool is compared */
	/* pool that the container stays within, or NO_POOL; that of the device for a claim */
	uint32_t pod_pool;
	const struct grant *had; /* previous grant if this is a resize, otherwise NULL */
	bool weighted; /* plan.affinity holds weights for this request */
	/* selective: annotated with affinities; averse: some of their weights are negative */
	bool selective, averse;
	rp_cfg decided_at;
	char why[REQUEST_WHY_MAX];
	/* the container's own annotation needs exclusive CPUs, which this request does not have */
	bool ineligible;
	/* error of the first invalid annotation, which is ignored; "": none */
	char problem[REQUEST_WHY_MAX];
};

/*
 * Reads the request of a container from its resources, annotations and the configuration. Returns
 * 0, or an error that refuses the container. An invalid annotation of a container that exists
 * already is ignored, so that the container keeps the rest of its request. known: topology hints
 * made when the container was created, while its devices were known; NULL: make hints now. The
 * caller releases ret with request_fini().
 */
int32_t request_read(struct rp_instance *inst, const struct rp_ctr_info *info, struct hints *known,
		     struct request *ret);
/*
 * Adapts the request of an existing container to its cold start so far. A cold start that has begun
 * continues until its end, and a container that runs without one does not begin one. before: facts
 * of its previous grant; NULL: unknown.
 */
void request_follow_cold(struct request *r, const struct grant_facts *before);
/* Returns a request without CPUs, memory and annotations. */
struct request request_of(const struct rp_instance *inst, const struct rp_ctr_info *info);
/* Warns of an invalid annotation that was ignored. */
void request_warn(const struct rp_instance *inst, const struct request *r);
/* Releases hints and interrupt patterns of a request. */
void request_fini(struct request *r);
/* ---- affinity (place_affinity.c) ------------------------------------------------------------- */

/*
 * Fills plan.affinity with one weight per pool. Sets r->weighted if any container contributed a
 * weight.
 */
int32_t affinity_weigh(struct rp_instance *inst, struct request *r);
/* Returns the part of a pool's weight that comes from its parent and further ancestors, after
 * affinity_weigh() has set r->weighted. */
double affinity_of_ancestors(const struct rp_plan *p, uint32_t parent);

/* ---- pods as one request (place_pod.c) ------------------------------------------------------- */

/*
 * Returns the smallest pool that has all that the container's pod requests, counting what its other
 * containers have there already. NO_POOL: colocatePods is not strict, the cluster has not reported
 * the pod, or no pool has so much.
 */
uint32_t place_pod_pool(struct rp_instance *inst, const struct request *r);

/* ---- claims (place_claim.c) ------------------------------------------------------------------ */

/* Returns the largest pool of a single NUMA node with all these CPUs, or NO_POOL. */
uint32_t claim_pool(const struct rp_plan *p, struct rp_ids cpus);
/* Returns the smallest pool that has all these CPUs; NO_POOL: there are no CPUs. */
uint32_t claim_smallest(const struct rp_plan *p, struct rp_ids cpus);
/* Returns the devices for claims that the configuration enables, with these CPUs. */
struct node_devices claim_devices(struct rp_instance *inst, struct rp_ids cpus);
/* Stores the CPUs that claims have or could get now. */
void claim_cpus(struct rp_instance *inst, struct rp_idset *ret);

/* ---- hints (place_hints.c) ------------------------------------------------------------------- */

/*
 * Makes topology hints from the devices, mounts and annotations of a container that is being
 * created. *ret is NULL if there are none.
 */
int32_t hints_make(struct rp_instance *inst, const struct rp_ctr_info *info, struct hints **ret);
/* Hints are shared by requests and grants and counted by users. */
struct hints *hints_ref(struct hints *h);
struct hints *hints_unref(struct hints *h); /* accepts NULL; returns NULL */
/* Adds a hint; each set may be empty. Returns 0, -RP_ENOMEM, or -RP_E2BIG if the list is full. */
int32_t hints_add(struct hints **h, const char *provider, struct rp_ids cpus, struct rp_ids nodes,
		  struct rp_ids sockets);
/* Returns how well a pool satisfies one hint, from 0 to 1. */
double hint_score(const struct rp_plan *p, uint32_t pool, const struct hint *h);
/*
 * Computes the product of the scores of all hints, and the product of the scores that are not zero
 * (0 if all scores are zero).
 */
void hints_score(const struct rp_plan *p, uint32_t pool, const struct hints *h, double *ret_all,
		 double *ret_some);
/*
 * Returns the first hint that a set of CPUs is not within, or NULL if the set satisfies all hints.
 */
const struct hint *hints_violated(const struct rp_plan *p, const struct hints *h,
				  struct rp_ids cpus);
const struct hint *hints_memory_violated(const struct rp_plan *p, const struct hints *h,
					 memalloc_mask zone);

/* ---- choice of the pool (place_score.c) ------------------------------------------------------ */

struct score {
	uint32_t pool;
	bool unusable; /* no memory, no shared CPUs, or no shared CPUs left for other containers */
	bool preferred; /* the pool has exclusive CPUs where the CPU class prefers them */
	/* isolated CPUs and milli-CPU of shared CPUs left after the placement */
	int64_t isolated, shared;
	double hint_all, hint_some;
	const struct memory_group *memory;
};

struct scoring {
	struct score best;
	struct score second; /* second.pool is NO_POOL if there is only one pool */
	const char *rule; /* name of the score that decided between best and second */
	double by_best, by_second; /* values of the deciding score; equal: no score decided */
};

/* Computes the free amounts that the scores of all pools depend on. */
void score_begin(struct rp_plan *p, const struct request *r);
/* Compares all pools and returns the best two. The caller calls affinity_weigh() first. */
void score_pools(struct rp_instance *inst, const struct request *r, struct scoring *ret);
/* Computes the score of one pool. The caller calls score_begin() or score_pools() first. */
void score_pool(struct rp_instance *inst, const struct request *r, uint32_t pool,
		struct score *ret);
bool score_sufficient(const struct request *r, const struct score *s);
/*
 * Returns true if a running container should move from pool `from` to pool `to`. Properties of the
 * pools count, but not the load by other containers. spread: more free shared CPUs in `to` is a
 * reason too. *ret_rule receives the name of the deciding score. The caller calls score_pools()
 * first.
 */
bool score_worth_moving(struct rp_instance *inst, const struct request *r, const struct score *to,
			const struct score *from, bool spread, const char **ret_rule);
/*
 * Fills the request for the memory allocator. Returns false if the pool has none of the requested
 * memory types.
 */
bool memory_request(const struct rp_plan *p, const struct request *r, uint32_t pool,
		    struct memalloc_request *ret);
/* Checks that these memory nodes have the huge pages that the container requests. Returns false
 * with the reason in `why`, of PLACE_WHY_MAX bytes. */
#define PLACE_WHY_MAX 160u
bool memory_has_huge(const struct rp_instance *inst, const struct request *r, memalloc_mask nodes,
		     char *why);

/* ---- placement (place.c) --------------------------------------------------------------------- */

/*
 * Places a container: finds pool, CPUs and memory and adds a grant to the ledger. Returns 0, or an
 * error with its message set; the log can undo all changes made until then.
 */
int32_t place(struct rp_instance *inst, const struct request *r, struct grant **ret);
/*
 * Places a running container that fits nowhere at the root pool, on the CPUs that are left there,
 * and marks the grant as misplaced for `reason`.
 */
int32_t place_anyhow(struct rp_instance *inst, const struct request *r, const char *reason,
		     struct grant **ret);
/* Resizes a container: removes its previous grant `old` and places the container again. */
int32_t place_again(struct rp_instance *inst, struct request *r, struct grant *old,
		    struct grant **ret);
/* Removes a grant from the ledger and releases its memory. */
void place_release(struct rp_instance *inst, struct grant *g);

/* State to which a failed attempt returns. */
struct place_mark {
	uint32_t n_log, n_moved, n_noted; /* lengths of the ledger's log, `moved` and relief */
};
struct place_mark place_mark(const struct rp_instance *inst);
/* Begins the changes of memory that place_return() undoes; earlier ones become final. */
void place_begin_memory(struct rp_instance *inst);
/* Undoes the changes since the mark. The changes of memory began with it or later. */
void place_return(struct rp_instance *inst, const struct place_mark *mark);

/* ---- fragmentation relief (place_relief.c) --------------------------------------------------- */

/*
 * Moves other containers if the new container was spread over NUMA nodes and the configuration
 * requests relief at admission. The container has just been placed; `before` is the state before
 * that. *ret is the grant of the container and may be replaced.
 */
int32_t relief_at_admission(struct rp_instance *inst, rp_txn txn, struct request *r,
			    const struct place_mark *before, struct grant **ret);
/*
 * Moves containers so that waiting containers fit into one NUMA node; at most `budget` containers
 * move (0: no limit). Returns the number of moved containers, or an error. The caller calls
 * stage_others() afterwards.
 */
int32_t relief_help_waiting(struct rp_instance *inst, rp_txn txn, uint64_t budget);

/* ---- rebalancing (place_better.c) ------------------------------------------------------------ */

/* Moves containers to better pools, at most `budget` of them (0: no limit). */
int32_t rebalance_all(struct rp_instance *inst, rp_txn txn, uint64_t budget);
/* Moves a container under pressure to a better pool. lacks: RP_PRESSURE_… flags. */
int32_t rebalance_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint64_t lacks);
