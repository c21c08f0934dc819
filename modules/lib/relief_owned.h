/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation relief for policies whose containers own CPUs (owners.h). The policy says which
 * CPUs it could give, and stages what comes of a move; here are the choice of the moves, their
 * bookkeeping, and what is shown of them.
 *
 * A container that crosses the border of a NUMA node although it would fit into one waits. With
 * `at: rebalance` a timer helps the waiting containers soon after they were placed, and after each
 * release; rebalancing helps them too.
 */
#ifndef NRI_RP_LIB_RELIEF_OWNED_H
#define NRI_RP_LIB_RELIEF_OWNED_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/lib/ctr.h"
#include "modules/lib/machine.h"
#include "modules/lib/owners.h"
#include "modules/lib/relief.h"

#define RELIEF_COOKIE UINT64_C(0x7265) /* of the timer */
#define RELIEF_DELAY_MS 20u

struct rp_instance;

struct relief_ops {
	/* CPUs that could become the container's own, without those that it has. */
	void (*free)(struct rp_instance *inst, const struct rp_ctr_info *info,
		     struct rp_idset *ret);
	/* n of these CPUs. 0 or an error. */
	int32_t (*choose)(struct rp_instance *inst, const struct rp_ctr_info *info,
			  struct rp_ids from, uint32_t n, struct rp_idset *ret);
	/* The container owns other CPUs by now: its sets, memory and record follow. */
	int32_t (*stage)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 struct rp_ids cpus);
	/* Optional: may this one not be moved for a reason of the policy's? */
	bool (*is_fixed)(struct rp_instance *inst, const struct rp_ctr_info *info);
};

struct relief_counters {
	uint64_t moved; /* containers that were moved for others */
	uint64_t placed; /* containers that got one node by that */
	uint64_t failed; /* no list of moves was found */
};

struct relief {
	struct relief_settings set;
	struct relief_moved moved;
	struct relief_counters counters;
	struct ctr_list list;
	bool waits; /* perhaps some container waits for room in one node; only ever too true */
	/* Since relief_begin(). */
	struct relief_counters counters_before;
	uint32_t n_noted;
};

/* A transaction begins: what came before is final. */
void relief_begin(struct relief *r);
void relief_undo(struct relief *r);

/* What all functions below have in common. */
struct relief_call {
	struct rp_instance *inst;
	const struct modhost *h;
	rp_txn txn;
	struct relief *relief;
	struct owners *owners;
	const struct machine *machine;
	const struct relief_ops *ops;
};

/* Does a set of CPUs lie in several nodes although n would fit into one? */
bool relief_crosses(const struct machine *m, struct rp_ids cpus);
/*
 * Makes room in one node for n CPUs of a container, whose CPUs of now count as free, by at most
 * `moves` moves. Returns 1 with the CPUs, which the container does not own yet; 0: no room can be
 * made, nothing is changed; or an error.
 */
int32_t relief_owned(const struct relief_call *c, const struct rp_ctr_info *info, uint32_t n,
		     uint32_t moves, struct rp_idset *ret);
/* For a container that is being placed and would get `cpus`: with `at: admission` these become CPUs
 * of one node, else the container waits. The same results. */
int32_t relief_admit(const struct relief_call *c, const struct rp_ctr_info *info,
		     struct rp_idset *cpus);
/* Helps containers that wait, with at most `budget` containers moved (0: any number). Returns how
 * many were moved, or an error. */
int32_t relief_rebalance(const struct relief_call *c, uint64_t budget);
/* Arms the timer if some container may wait; after a callback that placed or released one. */
void relief_arm(const struct modhost *h, const struct relief *r);
void relief_fini(struct relief *r);
/* The metric of moves, by outcome. */
void relief_report(const struct relief_counters *c, const struct rp_metric_sink *sink);

#endif
