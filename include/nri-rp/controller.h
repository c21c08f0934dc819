/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.controller/1: what a controller module does.
 *
 * A controller carries out what was decided and cannot be said to the runtime: cache ways, block
 * I/O, frequencies. Hooks run on the main thread and must not block: they put the work into the
 * host's worker (host.h) and report with report() when it is done. pre_create alone is in-band: it
 * may stage values (cache.h) of the container being created and may refuse it.
 *
 * How failures count is up to rp.conf, per controller: `required` (its failure fails the request,
 * or the start), `optional` (the same for requests, but a failing start only disables it),
 * `relaxed` (default: logged and shown in status).
 */
#ifndef NRI_RP_CONTROLLER_H
#define NRI_RP_CONTROLLER_H

#include <nri-rp/policy.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_CONTROLLER_1 "nri-rp.controller/1"

/* Results that report() takes and status shows. */
#define RP_APPLY_PENDING 0u
#define RP_APPLY_DONE 1u
#define RP_APPLY_PARTIAL 2u
#define RP_APPLY_FAILED 3u

/* What changed, a mask for post_update. */
#define RP_CHANGED_CPUS 0x01u
#define RP_CHANGED_MEMS 0x02u
#define RP_CHANGED_CPU_SHARE 0x04u /* shares, quota, period */
#define RP_CHANGED_MEMORY 0x08u /* limits, RP_F_TOPTIER_LIMIT */
#define RP_CHANGED_CLASS 0x10u /* RDT, block I/O or CPU class */

/* Classes that a controller gives containers itself, a mask: while it runs the runtime is not told
 * of them. */
#define RP_TAKES_RDT_CLASS 0x01u
#define RP_TAKES_BLOCKIO_CLASS 0x02u
/* CPU shares, quota and memory limit in cgroups of the container are the controller's to write: the
 * runtime is told of those that are decided, but what is found there instead is not put back.
 * [since 1.3] */
#define RP_TAKES_AMOUNTS 0x04u
/* It writes RP_F_TOPTIER_LIMIT: without such a controller people are told that nobody does.
 * [since 1.3] */
#define RP_TAKES_TOPTIER_LIMIT 0x08u

struct rp_controller {
	uint32_t size;
	uint32_t pad;
	int32_t (*prepare)(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan);
	void (*commit)(struct rp_instance *inst, struct rp_plan *plan);
	void (*abort)(struct rp_instance *inst, struct rp_plan *plan);
	/*
	 * After the first commit(). -RP_ENOTSUP: this machine has nothing to control. It may follow
	 * a stop(), with or without a commit() in between: when the policy has refused the
	 * configuration that was to end the controller, or when the section's key `enable` has
	 * become false. What is put back by stop() comes before what the policy does with its new
	 * configuration.
	 */
	int32_t (*start)(struct rp_instance *inst);
	void (*stop)(struct rp_instance *inst);
	/* Hooks, each optional, in the order of `controllers:` in rp.conf. */
	int32_t (*pre_create)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
	int32_t (*post_start)(struct rp_instance *inst, rp_ctr ctr);
	int32_t (*post_update)(struct rp_instance *inst, rp_ctr ctr, uint32_t changed);
	int32_t (*post_stop)(struct rp_instance *inst, rp_ctr ctr);
	uint32_t takes; /* RP_TAKES_…; may be another one after each commit() */
	uint32_t pad2;
	/* Containers or machine may be others than before, and no hook has told so: after a
	 * Synchronize, after a commit() with containers there, when CPUs or nodes came or went.
	 * list() of cache.h has them all. */
	void (*sync)(struct rp_instance *inst);
	/* A timer of nri-rp.host.timer/1 has gone off. */
	void (*timer)(struct rp_instance *inst, uint64_t cookie);
	/* Figures of containers are collected now: the controller reads those that it has on the
	 * worker and tells them by figure() of host.h. Only called when figures are wanted. */
	void (*measure)(struct rp_instance *inst);
};

#ifdef __cplusplus
}
#endif
#endif
