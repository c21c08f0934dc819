/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a policy: what every policy does in the same way around its decision. A policy gives
 * what is its own as a struct life_ops, begins its struct rp_instance with LIFE, and is defined
 * with LIFE_MODULE. The host's callbacks are here:
 *
 *	prepare        ops.plan; an error leaves the plan in force. A section that was active before
 *                     is accepted again: where ops.plan refuses it, ops.plan is called once more
 *                     with life_past() saying that only the machine has changed
 *	commit, abort  one plan is in force, or none before the first commit
 *	sync           ops.begin, ops.sync; after it `synced` is true and `changed` false
 *	allocate       ops.begin, ops.place; a container that is annotated to keep its CPUs is left
 *                     alone, here and below
 *	update         ops.begin, ops.resize, or ops.place where there is none
 *	unmanaged      ops.begin, ops.unmanaged; what was refused is tried again when CPUs come free
 *	release        ops.begin, ops.release
 *	event          the machine has changed: ops.look, then as sync; to rebalance: ops.begin,
 *                     ops.rebalance, if there is one; ops.pressure, ops.started, ops.timer,
 *                     ops.posted and ops.runtime likewise
 *	rolled_back    ops.rolled_back
 *	stop, destroy  ops.stop, ops.fini
 *
 * ops.done follows each of these that changes something and succeeds, from sync on.
 *
 * A callback that places without a plan fails with -RP_EAGAIN; nothing was ever given then, so that
 * release has nothing to do.
 */
#ifndef NRI_RP_LIB_LIFE_H
#define NRI_RP_LIB_LIFE_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/lib/bytes.h"
#include "modules/lib/ctr.h"
#include "modules/lib/reserve.h"

struct life_ops {
	/* Containers that are annotated to keep their CPUs are the policy's business, too. */
	bool sees_preserved;
	/* One that was refused and runs all the same stays the host's until the next sync. */
	bool leaves_unmanaged;
	int32_t (*init)(struct rp_instance *inst); /* optional; fini() follows an error, too */
	/* The plan that section and machine make, checked against what is in force. An error with a
	 * message. */
	int32_t (*plan)(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret);
	/* The same after CPUs have come or gone: what is missing is no error, as the configuration
	 * was fine. May give the plan in force. */
	int32_t (*look)(struct rp_instance *inst, struct rp_plan **ret);
	struct rp_plan *(*plan_free)(struct rp_plan *p); /* returns NULL; NULL is fine */
	/* Optional: another plan will be in force in a moment, or is by now. */
	void (*leave)(struct rp_instance *inst);
	void (*enter)(struct rp_instance *inst);
	/* Optional: a transaction begins, of one or several of the following. */
	void (*begin)(struct rp_instance *inst);
	int32_t (*sync)(struct rp_instance *inst, rp_txn txn); /* may give the sum of a walk */
	int32_t (*place)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
	int32_t (*release)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
	int32_t (*resize)(struct rp_instance *inst, rp_txn txn,
			  const struct rp_ctr_info *info); /* optional */
	int32_t (*unmanaged)(struct rp_instance *inst, rp_txn txn,
			     const struct rp_ctr_info *info); /* optional */
	int32_t (*rebalance)(struct rp_instance *inst, rp_txn txn,
			     uint64_t n_moves); /* optional; as many at most, 0: any number */
	/* Optional: one has begun or ceased to lack something, RP_PRESSURE_… */
	int32_t (*pressure)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint64_t lacks);
	int32_t (*started)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr); /* optional */
	/* Optional: a timer that the policy has armed. */
	int32_t (*timer)(struct rp_instance *inst, rp_txn txn, uint64_t cookie);
	/* Optional, admit only with removed: pods before and after their containers
	 * (rp_policy.admit_pod, pod_removed). */
	int32_t (*admit)(struct rp_instance *inst, rp_txn txn, rp_pod pod);
	int32_t (*removed)(struct rp_instance *inst, rp_txn txn, rp_pod pod);
	/* Optional: an event that the policy has posted from any thread (rp_host_work.post):
	 * ev->cookie and ev->data. */
	int32_t (*posted)(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev);
	/* Optional: another runtime is connected, or it can do other things than before. */
	int32_t (*runtime)(struct rp_instance *inst, rp_txn txn);
	/*
	 * Optional: reserved CPUs that outlive the daemon's run (reserve.h). `past` returns what
	 * the plan in force reserves, and in `busy` what belongs to containers. `reserve`, which
	 * needs `past`, reserves again under the plan, as `remembered` says, if no container was
	 * placed yet; without it a plan made before the state was loaded is unchanged.
	 */
	void (*past)(const struct rp_instance *inst, struct reserve_past *ret);
	int32_t (*reserve)(struct rp_instance *inst);
	/* Optional: the CPUs that containers may be given under the plan in force
	 * (nri-rp.allocation/1). */
	void (*allocatable)(const struct rp_instance *inst, struct rp_idset *ret);
	/* Optional, with `allocatable`: rp_allocation.memory, under a plan. */
	int32_t (*memory)(struct rp_instance *inst, rp_ctr ctr, const struct rp_memory_sink *sink);
	/* All is as it was at the last begin; RP_RESYNC: this is not known any more. */
	int32_t (*rolled_back)(struct rp_instance *inst);
	/* Optional: what goes beside the transaction follows what is so by now. */
	void (*done)(struct rp_instance *inst);
	void (*stop)(struct rp_instance *inst); /* optional; as rp_policy.stop */
	void (*fini)(struct rp_instance *inst); /* optional: what the instance has of its own */
	/* Services of the module; NULL: it has none of that kind. */
	const struct rp_schema *schema;
	const struct rp_zones *zones;
	const struct rp_metrics *metrics;
	const struct rp_state *state;
	const struct rp_extended *extended;
};

/* The last sync(): its transaction, and what a rollback of that restores. */
struct life_sync {
	rp_txn txn; /* 0: none, or rolled back */
	bool synced, changed;
	uint64_t digest;
};

#define LIFE_MEMBERS                                                                               \
	struct modhost h;                                                                          \
	const struct life_ops *ops;                                                                \
	struct rp_plan *plan; /* in force; NULL before the first commit */                         \
	struct ctr_list list; /* of the walk that is under way */                                  \
	rp_txn txn; /* the last one that began */                                                  \
	bool synced; /* everything was placed at least once */                                     \
	bool changed; /* another configuration is in force since the last sync() */                \
	bool waiting; /* perhaps somebody lacks something; only ever too true */                   \
	bool lenient; /* ops.plan runs for a section that was active before */                     \
	/* section_digest(), or 0: of the section prepared last, committed last, */                \
	/* active at the last sync(), and active in the previous run */                            \
	uint64_t next_digest, committed_digest, digest, remembered_digest;                         \
	struct life_sync last_sync;                                                                \
	/* reserved CPUs of the previous run, until the first configuration */                     \
	struct reserve_past remembered;                                                            \
	uint8_t reserved_bytes[RESERVE_SAVED_MAX];                                                 \
	struct bytes saved_state /* the state as saved last */

struct life {
	LIFE_MEMBERS;
};

/* The first member of a policy's struct rp_instance: its members are the instance's. */
#define LIFE                                                                                       \
	union {                                                                                    \
		struct life life;                                                                  \
		struct {                                                                           \
			LIFE_MEMBERS;                                                              \
		};                                                                                 \
	}

/*
 * A walk over live containers but those that are annotated to keep their CPUs, once for each pass
 * from 0. A container for which `each` returns a positive number is done, and left out of the
 * following passes. An error ends the walk. `each` must not begin a walk of its own.
 */
struct life_walk {
	int32_t (*each)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			const struct life_walk *w);
	uint32_t order; /* RP_ORDER_…; 0 is by creation */
	int n_passes; /* 0: one */
	rp_ctr except; /* is left out; 0: nobody */
	void *arg; /* for `each` */
	int pass; /* that is under way */
};
/* The error, or the sum of what was positive. */
int32_t life_walk(struct rp_instance *inst, rp_txn txn, struct life_walk w);
/* One pass in the order of sync() over all but `except`, when somebody may be waiting; `each` says
 * so by `waiting` if somebody still is. */
int32_t life_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except,
		   int32_t (*each)(struct rp_instance *inst, rp_txn txn,
				   const struct rp_ctr_info *info, const struct life_walk *w));

/* For ops.sync: returns true if another section than before was activated by a reload, so that
 * an error refuses that. An error at a start, or after the machine has changed, would leave
 * containers that run without a policy: they get what there is instead, and are degraded. */
bool life_may_refuse(const struct rp_instance *inst);

/* With ops.past, for ops.plan and ops.look: the past of the next plan, by the one in force or,
 * before the first, by what is remembered. `hotplug` is true in ops.look, and in ops.plan when the
 * section was active before and does not suit the online CPUs any more. */
int32_t life_past(struct rp_instance *inst, struct reserve_past *ret);

int32_t life_create(const struct rp_host *host, size_t size, const struct life_ops *ops,
		    struct rp_instance **ret);
void life_destroy(struct rp_instance *inst);
const void *life_service(const struct life_ops *ops, const char *id);

/* As RP_MODULE_DEFINE; then .summary and .licence. */
#define LIFE_MODULE(name_, version_, ops_, ...)                                                    \
	static int32_t life_module_create(const struct rp_host *host, struct rp_instance **ret)    \
	{                                                                                          \
		return life_create(host, sizeof(struct rp_instance), &(ops_), ret);                \
	}                                                                                          \
	static const void *life_module_service(struct rp_instance *inst, const char *id)           \
	{                                                                                          \
		(void)inst;                                                                        \
		return life_service(&(ops_), id);                                                  \
	}                                                                                          \
	RP_MODULE_DEFINE(name_, version_, RP_KIND_POLICY, .create = life_module_create,            \
			 .destroy = life_destroy, .service = life_module_service, __VA_ARGS__)

#endif
