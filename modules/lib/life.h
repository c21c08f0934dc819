/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a policy: the parts of the callbacks that are the same in every policy. A policy
 * provides its own parts as a struct life_ops, begins its struct rp_instance with LIFE, and is
 * defined with LIFE_MODULE. The host's callbacks are implemented here:
 *
 *   prepare        ops.plan, or ops.fill and ops.check; an error leaves the active plan. A section
 *                  that was active before is accepted again: if it is refused, these are called
 *                  once more with life_past() saying that only the machine has changed
 *   commit, abort  activate or free the plan; there is none before the first commit
 *   sync           ops.begin, ops.sync; after it `synced` is true and `changed` false
 *   allocate       ops.begin, ops.place; a container annotated to keep its CPUs is left unchanged,
 *                  here and below
 *   update         ops.begin, ops.resize, or ops.place without one
 *   unmanaged      ops.begin, ops.unmanaged; the container is tried again when CPUs become free
 *   release        ops.begin, ops.release
 *   event          after a change of the machine: ops.look, or a new plan for the active section,
 *                  then as sync; to rebalance:
 *                  ops.begin, ops.rebalance, if there is one; ops.pressure, ops.started,
 *                  ops.timer, ops.posted and ops.runtime likewise
 *   rolled_back    ops.rolled_back
 *   stop, destroy  ops.stop, ops.fini
 *
 * From sync on, ops.done follows each of these that changes something and succeeds.
 *
 * A callback that places without a plan fails with -RP_EAGAIN. Release then does nothing, as no
 * container was placed.
 */
#ifndef NRI_RP_LIB_LIFE_H
#define NRI_RP_LIB_LIFE_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include <nri-rp/lib/bytes.h>
#include <nri-rp/lib/ctr.h>
#include <nri-rp/lib/reserve.h>

/* A part of the life that several policies share. All functions are called where the policy's own
 * ones are, before them. */
struct life_part {
	/* Stages what follows from the placements of a callback. all: after sync(). Returns 0 or an
	 * error. */
	int32_t (*stage)(struct rp_instance *inst, rp_txn txn, bool all);
	void (*done)(struct rp_instance *inst);
	void (*stop)(struct rp_instance *inst);
	void (*fini)(struct rp_instance *inst);
};

/* The policy's own parts. All functions run on the main thread; errors have a message
 * (modhost_fail). */
struct life_ops {
	/* the policy handles containers that are annotated to keep their CPUs too */
	bool sees_preserved;
	/* a container that was refused and runs unmanaged is not tried again before the next
	 * sync */
	bool leaves_unmanaged;
	/* Optional: initializes the instance. fini() follows also after an error. */
	int32_t (*init)(struct rp_instance *inst);
	/* Builds a plan from section and machine, checked against the active one. Optional with
	 * `fill`, below. */
	int32_t (*plan)(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret);
	/* Builds a plan after CPUs went online or offline. Missing CPUs are no error, as the
	 * configuration is unchanged. May return the active plan. Optional: without it the active
	 * section is planned again. */
	int32_t (*look)(struct rp_instance *inst, struct rp_plan **ret);
	/* Frees a plan. Accepts NULL; returns NULL. Not with `fill`. */
	struct rp_plan *(*plan_free)(struct rp_plan *p);
	/* Optional: called before and after the active plan is replaced. */
	void (*leave)(struct rp_instance *inst);
	void (*enter)(struct rp_instance *inst);
	/* Optional: begins a transaction of one or several of the following calls. */
	void (*begin)(struct rp_instance *inst);
	/* Places all containers. May return the sum of a walk. */
	int32_t (*sync)(struct rp_instance *inst, rp_txn txn);
	/* Places a new container. An error refuses it. */
	int32_t (*place)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
	/* Releases the resources of a container that has ended. */
	int32_t (*release)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
	/* Optional: places a container again whose requests have changed. */
	int32_t (*resize)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
	/* Optional: stages a container that was refused but runs (onPolicyError: unmanaged). */
	int32_t (*unmanaged)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
	/* Optional: moves containers to better places; n_moves: limit of moves, 0: none. */
	int32_t (*rebalance)(struct rp_instance *inst, rp_txn txn, uint64_t n_moves);
	/* Optional: the container's pressure has changed; lacks: RP_PRESSURE_…, 0: none. */
	int32_t (*pressure)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint64_t lacks);
	/* Optional: handles the start of a container. */
	int32_t (*started)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
	/* Optional: a timer that the policy armed has expired. */
	int32_t (*timer)(struct rp_instance *inst, rp_txn txn, uint64_t cookie);
	/* Optional, both or none: `admit` is called before the first container of a pod, `removed`
	 * after its last one (rp_policy.admit_pod, pod_removed). */
	int32_t (*admit)(struct rp_instance *inst, rp_txn txn, rp_pod pod);
	int32_t (*removed)(struct rp_instance *inst, rp_txn txn, rp_pod pod);
	/* Optional: an event that the policy posted from any thread (rp_host_work.post), with
	 * ev->cookie and ev->data. */
	int32_t (*posted)(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev);
	/* Optional: a different runtime is connected, or its capabilities have changed. */
	int32_t (*runtime)(struct rp_instance *inst, rp_txn txn);
	/*
	 * Optional: reserved CPUs that persist over runs of the daemon (reserve.h). `past` stores
	 * what the active plan reserves, and in `busy` the CPUs that belong to containers.
	 * `reserve`, which needs `past`, reserves again in the plan by `remembered` if no container
	 * was placed yet. Without it a plan that was made before the state was loaded is unchanged.
	 */
	void (*past)(const struct rp_instance *inst, struct reserve_past *ret);
	int32_t (*reserve)(struct rp_instance *inst);
	/* Optional: stores the CPUs that containers may be assigned by the active plan
	 * (nri-rp.allocation/1). */
	void (*allocatable)(const struct rp_instance *inst, struct rp_idset *ret);
	/* Optional, with `allocatable`: rp_allocation.memory; called only with a plan. */
	int32_t (*memory)(struct rp_instance *inst, rp_ctr ctr, const struct rp_memory_sink *sink);
	/* Restores the state of the last begin. Returns 0, or RP_RESYNC if that state is no longer
	 * known. */
	int32_t (*rolled_back)(struct rp_instance *inst);
	/* Optional: updates what is outside of the transaction, such as CPU classes and
	 * interrupts. */
	void (*done)(struct rp_instance *inst);
	/* Optional: as rp_policy.stop. */
	void (*stop)(struct rp_instance *inst);
	/* Optional: frees the memory that the instance owns. */
	void (*fini)(struct rp_instance *inst);
	/* Optional: a shared part, and the offset of its struct isolation_keys in struct rp_plan
	 * (private/isolation.h). own_interrupts: the policy moves interrupts itself. */
	const struct life_part *part;
	uint32_t isolation;
	bool own_interrupts;
	/* Optional, each in place of the service below: reports zones or metrics of the active
	 * plan. */
	int32_t (*report_zones)(struct rp_instance *inst, const struct rp_zone_sink *sink);
	int32_t (*report_metrics)(struct rp_instance *inst, const struct rp_metric_sink *sink);
	/* Services of the module; NULL: none of this kind. */
	const struct rp_schema *schema;
	const struct rp_zones *zones;
	const struct rp_metrics *metrics;
	const struct rp_state *state;
	const struct rp_extended *extended;
	/* Optional, and only together: the devices of the active plan (nri-rp.devices/1), and the
	 * allocation of a claim from one; ops.release releases it. */
	int32_t (*devices)(struct rp_instance *inst, const struct rp_devices_sink *sink);
	int32_t (*claim)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const char *device);
	/* Optional: offset of the struct relief (relief_owned.h) in struct rp_instance. The
	 * library begins, undoes and frees it, saves its moves over restarts, and without `timer`
	 * calls `rebalance` for its timer. */
	uint32_t relief;
	/* Optional, all but `check` only together: size of struct rp_plan, and its contents. `fill`
	 * reads section and machine into a zeroed plan; past: as of life_past(), or zeros without
	 * ops.past. `check` tells whether the plan may follow the active one; it is not called if
	 * only the machine has changed. `plan_fini` frees the members of a plan, also of an
	 * incomplete one. */
	size_t plan_size;
	int32_t (*fill)(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
			struct rp_plan *ret);
	int32_t (*check)(struct rp_instance *inst, struct rp_plan *p);
	void (*plan_fini)(struct rp_plan *p);
};

/* The last sync(): its transaction, and the values that a rollback restores. */
struct life_sync {
	rp_txn txn; /* transaction of the last sync(); 0: none, or rolled back */
	bool synced, changed;
	uint64_t digest;
};

#define LIFE_MEMBERS                                                                               \
	struct modhost h;                                                                          \
	const struct life_ops *ops;                                                                \
	struct rp_plan *plan; /* active; NULL before the first commit */                           \
	struct ctr_list list; /* list of the running walk */                                       \
	rp_txn txn; /* the last one that began */                                                  \
	void *part; /* state of ops.part; NULL: none yet */                                        \
	rp_ctr leaving; /* container that release() is about; 0: none */                           \
	bool synced; /* all containers were placed at least once */                                \
	bool changed; /* the configuration changed since the last sync() */                        \
	bool waiting; /* a container may lack something; false: none does */                       \
	bool lenient; /* ops.plan runs for a section that was active before */                     \
	/* section_digest(), or 0: of the section prepared last, committed last, */                \
	/* active at the last sync(), and active in the previous run */                            \
	uint64_t next_digest, committed_digest, digest, remembered_digest;                         \
	struct life_sync last_sync;                                                                \
	/* reserved CPUs of the previous run, until the first configuration */                     \
	struct reserve_past remembered;                                                            \
	uint8_t reserved_bytes[RESERVE_SAVED_MAX];                                                 \
	struct bytes saved_state; /* state of the policy as saved last */                          \
	rp_cfg section, next_section /* active, and prepared last */

struct life {
	LIFE_MEMBERS;
};

/* The first member of a policy's struct rp_instance; it makes the members of struct life members of
 * the instance. */
#define LIFE                                                                                       \
	union {                                                                                    \
		struct life life;                                                                  \
		struct {                                                                           \
			LIFE_MEMBERS;                                                              \
		};                                                                                 \
	}

/*
 * A walk over the live containers, except those annotated to keep their CPUs, once for each pass,
 * counted from 0. A container for which `each` returns a positive number is finished and skipped in
 * the following passes. An error ends the walk. `each` must not begin another walk.
 */
struct life_walk {
	/* Handles a container. Returns a positive number if the container is finished, 0, or an
	 * error, which ends the walk. */
	int32_t (*each)(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			const struct life_walk *w);
	uint32_t order; /* RP_ORDER_…; 0: by creation */
	int n_passes; /* number of passes over the containers; 0: one */
	rp_ctr except; /* container to skip; 0: none */
	void *arg; /* argument for `each` */
	int pass; /* number of the running pass */
	/* The table of owners whose containers are skipped, without a look-up; NULL: none. */
	const struct owners *skip_owners;
};
/* Runs a walk. Returns the error, or the sum of the positive results. */
int32_t life_walk(struct rp_instance *inst, rp_txn txn, struct life_walk w);
/* Runs one pass in the order of sync() over all containers but `except`, if a container may be
 * waiting. `each` sets `waiting` if one still is. */
int32_t life_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except,
		   int32_t (*each)(struct rp_instance *inst, rp_txn txn,
				   const struct rp_ctr_info *info, const struct life_walk *w));

/* For ops.sync: returns true if a reload has activated another section, so that an error refuses
 * this section. At a start or after a change of the machine an error would leave running containers
 * without a policy: they get what is available instead, and are degraded. */
bool life_may_refuse(const struct rp_instance *inst);

/* For ops.plan and ops.look of a policy with ops.past: stores the past of the next plan, from the
 * active plan or, before the first one, from the saved state. `hotplug` is true in ops.look, and in
 * ops.plan when the section was active before and does not suit the online CPUs any more. */
int32_t life_past(struct rp_instance *inst, struct reserve_past *ret);

/* Builds a plan by ops.fill, for ops.plan and ops.look of a policy that has both. */
int32_t life_plan_new(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		      struct rp_plan **ret);

/* The callbacks of struct rp_module, used by LIFE_MODULE. */
int32_t life_create(const struct rp_host *host, size_t size, const struct life_ops *ops,
		    struct rp_instance **ret);
void life_destroy(struct rp_instance *inst);
const void *life_service(const struct life_ops *ops, const char *id);

/* Defines a policy module, like RP_MODULE_DEFINE. The last arguments are .summary and .licence. */
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
