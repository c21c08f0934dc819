/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.controller/1: the interface of a controller module.
 *
 * A controller applies decisions that the runtime cannot apply: cache ways, block I/O classes, CPU
 * frequencies. Its callbacks run on the main thread and must not block: they submit work to the
 * host's worker (host.h), and report() its result. Only pre_create takes part in a request: it may
 * stage values (cache.h) of the container being created and may refuse the container.
 *
 * rp.conf decides for each controller how its failures are treated: `required` (a failure fails the
 * request, or the start of the daemon), `optional` (the same for requests, but a failing start only
 * disables the controller), `relaxed` (default: failures are logged and shown in status).
 */
#ifndef NRI_RP_CONTROLLER_H
#define NRI_RP_CONTROLLER_H

#include <nri-rp/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_CONTROLLER_1 "nri-rp.controller/1"

/* Results of report(), shown in status. */
#define RP_APPLY_PENDING 0u
#define RP_APPLY_DONE 1u
#define RP_APPLY_PARTIAL 2u
#define RP_APPLY_FAILED 3u

/* Kinds of changes, a bit mask for post_update(). */
#define RP_CHANGED_CPUS 0x01u
#define RP_CHANGED_MEMS 0x02u
#define RP_CHANGED_CPU_SHARE 0x04u /* shares, quota, period */
#define RP_CHANGED_MEMORY 0x08u /* memory limit, RP_F_TOPTIER_LIMIT */
#define RP_CHANGED_CLASS 0x10u /* RDT, block I/O or CPU class */

/* Responsibilities of a controller, a bit mask for rp_controller.takes. While a controller with
 * RP_TAKES_RDT_CLASS or RP_TAKES_BLOCKIO_CLASS runs, the classes are not sent to the runtime. */
#define RP_TAKES_RDT_CLASS 0x01u
#define RP_TAKES_BLOCKIO_CLASS 0x02u
/* The controller writes CPU shares, quota and memory limit in cgroups of containers. Decided values
 * are still sent to the runtime, but the host does not restore them when a cgroup differs. [since
 * 1.3] */
#define RP_TAKES_AMOUNTS 0x04u
/* The controller writes RP_F_TOPTIER_LIMIT. Without such a controller the host warns that the limit
 * has no effect. [since 1.3] */
#define RP_TAKES_TOPTIER_LIMIT 0x08u

struct rp_controller {
	uint32_t size;
	uint32_t pad;
	/* prepare, commit and abort: as in rp_policy (policy.h). */
	int32_t (*prepare)(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan);
	void (*commit)(struct rp_instance *inst, struct rp_plan *plan);
	void (*abort)(struct rp_instance *inst, struct rp_plan *plan);
	/*
	 * Starts controlling, after the first commit(). -RP_ENOTSUP: this machine has nothing to
	 * control.
	 *
	 * start() may follow a stop(), with or without a commit() in between: when the policy
	 * refused the configuration that was to end the controller, or when the section's key
	 * `enable` became false.
	 */
	int32_t (*start)(struct rp_instance *inst);
	/* Stops controlling and restores what the controller changed. Runs before the policy
	 * applies its new configuration. */
	void (*stop)(struct rp_instance *inst);
	/* Hooks for events of a container, each optional, called in the order of `controllers:` in
	 * rp.conf. */
	int32_t (*pre_create)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
	int32_t (*post_start)(struct rp_instance *inst, rp_ctr ctr);
	int32_t (*post_update)(struct rp_instance *inst, rp_ctr ctr, uint32_t changed);
	int32_t (*post_stop)(struct rp_instance *inst, rp_ctr ctr);
	uint32_t takes; /* RP_TAKES_…; may change with each commit() */
	uint32_t pad2;
	/* Checks everything again: containers or machine may have changed without a hook. Called
	 * after a Synchronize, after a commit() while there are containers, and when CPUs or nodes
	 * went online or offline. list() of cache.h returns the containers. */
	void (*sync)(struct rp_instance *inst);
	/* Handles a timer of nri-rp.host.timer/1 that has expired. */
	void (*timer)(struct rp_instance *inst, uint64_t cookie);
	/* Optional. Reads figures of containers on the worker and reports them with figure()
	 * (host.h). Called only when figures are collected. */
	void (*measure)(struct rp_instance *inst);
};

#ifdef __cplusplus
}
#endif
#endif
