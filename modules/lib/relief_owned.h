/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation relief for policies whose containers own CPUs (owners.h). The policy names the CPUs
 * that it could assign, and stages moved containers. This part chooses the moves, records them, and
 * reports them.
 *
 * A container that crosses the border of a NUMA node although it would fit into one node waits.
 * With `at: rebalance` a timer starts the search for waiting containers soon after they were
 * placed, and after each release; rebalancing starts it too.
 */
#ifndef NRI_RP_LIB_RELIEF_OWNED_H
#define NRI_RP_LIB_RELIEF_OWNED_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include <nri-rp/lib/ctr.h>
#include <nri-rp/lib/machine.h>
#include <nri-rp/lib/owners.h>
#include <nri-rp/lib/relief.h>

#define RELIEF_COOKIE UINT64_C(0x7265) /* cookie of the timer */
#define RELIEF_DELAY_MS 20u

struct rp_instance;

struct relief_ops {
	/* Stores the free CPUs that the container could own, without the CPUs that it owns
	 * already. */
	void (*free)(struct rp_instance *inst, const struct rp_ctr_info *info,
		     struct rp_idset *ret);
	/* Chooses n of these CPUs. Returns 0 or an error. */
	int32_t (*choose)(struct rp_instance *inst, const struct rp_ctr_info *info,
			  struct rp_ids from, uint32_t n, struct rp_idset *ret);
	/* Stages sets, memory and record of a container that owns other CPUs now. */
	int32_t (*stage)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 struct rp_ids cpus);
	/* Optional: returns true if the policy does not allow the container to be moved. */
	bool (*is_fixed)(struct rp_instance *inst, const struct rp_ctr_info *info);
};

struct relief_counters {
	uint64_t moved; /* containers moved for others */
	uint64_t placed; /* containers that moves brought into one node */
	uint64_t failed; /* searches without a result */
};

struct relief {
	struct relief_settings set;
	struct relief_moved moved;
	struct relief_counters counters;
	struct ctr_list list; /* memory of relief_rebalance() */
	bool waits; /* a container may wait; false: none does */
	/* State of the transaction since relief_begin(). */
	struct relief_counters counters_before;
	uint32_t n_noted;
};

/* Begins a transaction; earlier changes are final. */
void relief_begin(struct relief *r);
/* Undoes the records of the transaction. */
void relief_undo(struct relief *r);

/* Common arguments of the functions below. */
struct relief_call {
	struct rp_instance *inst;
	const struct modhost *h;
	rp_txn txn;
	struct relief *relief;
	struct owners *owners;
	const struct machine *machine;
	const struct relief_ops *ops;
};

/* The arguments of a policy whose struct rp_instance has the members of LIFE, `relief` and
 * `owners`, and whose plan has the machine. */
#define RELIEF_CALL(inst_, txn_, ops_)                                                             \
	((struct relief_call){.inst = (inst_),                                                     \
			      .h = &(inst_)->h,                                                    \
			      .txn = (txn_),                                                       \
			      .relief = &(inst_)->relief,                                          \
			      .owners = &(inst_)->owners,                                          \
			      .machine = (inst_)->plan->machine,                                   \
			      .ops = (ops_)})

/* Returns true if the CPUs lie in several nodes although as many would fit into one. */
bool relief_crosses(const struct machine *m, struct rp_ids cpus);
/*
 * Frees n CPUs in one node for a container by at most `moves` moves; the container's present CPUs
 * count as free. Returns 1 with the CPUs, which the container does not own yet; 0 if there is no
 * solution and nothing has changed; or an error.
 */
int32_t relief_owned(const struct relief_call *c, const struct rp_ctr_info *info, uint32_t n,
		     uint32_t moves, struct rp_idset *ret);
/* Improves the CPUs of a container that is being placed: if they span several nodes although one
 * node could hold them, moves other containers (only with `at: admission`) and stores CPUs of one
 * node in *cpus. Otherwise the container waits for relief_rebalance(). Returns 1: CPUs replaced; 0:
 * unchanged; or an error. */
int32_t relief_admit(const struct relief_call *c, const struct rp_ctr_info *info,
		     struct rp_idset *cpus);
/* Moves containers so that waiting containers fit into one node, at most `budget` moves (0: any
 * number). Returns the number of moved containers, or an error. */
int32_t relief_rebalance(const struct relief_call *c, uint64_t budget);
/* Calls `help` with each index below n and the moves that it may make, as long as the budget
 * suffices, if something may wait. `help` returns the number of moved containers, or an error.
 * Returns the sum, or the error. */
typedef int32_t (*relief_each_help)(void *ctx, uint32_t i, uint32_t moves);
int32_t relief_each(struct relief *r, uint32_t n, uint64_t budget, relief_each_help help,
		    void *ctx);
/* Arms the timer if a container may wait. Called after a callback that placed or released one. */
void relief_arm(const struct modhost *h, const struct relief *r);
/* Frees the memory. */
void relief_fini(struct relief *r);
/* Reports the counters as a metric of moves by outcome. */
void relief_report(const struct relief_counters *c, const struct rp_metric_sink *sink);

#endif
