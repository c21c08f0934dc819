/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static policy: containers of Guaranteed pods that request whole CPUs get exclusive CPUs. All
 * other containers share the remaining CPUs.
 *
 *	ALL       available and online CPUs without the CPUs that the kernel isolates
 *	ISO       isolated CPUs
 *	RESERVED  CPUs of ALL that never become exclusive
 *	DEFAULT   shared CPUs: ALL without exclusive CPUs (and, with strict-cpu-reservation,
 *	          without RESERVED)
 *
 * The only state is the owner of each CPU (owners.h), which can be read back from the host's cache.
 * DEFAULT is derived from the owners and never stored, so the two cannot disagree. Settings and the
 * current topology make a `struct rp_plan`:
 *
 *	config    settings of a configuration section
 *	plan      CPU sets for settings and topology; checks of a reload
 *	place     placement of one container
 *	          place_hints       choice of NUMA nodes
 *	          place_kubelet     choice of CPUs in the kubelet's order
 *	          place_distribute  even distribution over NUMA nodes
 *	          place_huge        NUMA nodes with the huge pages of a container
 *	          place_devices     NUMA nodes of the devices of a container
 *	          place_relief      moves that let a container fit into one NUMA node
 *	          place_follow      pods whose CPUs a scheduler chose
 *	pod_set   CPU sets of pods (topologyManagerScope: pod)
 *	stage     staging into the transaction
 *	sync      placement of all containers
 *	report    zones, metrics
 *	static.c  callbacks
 */
#pragma once

#include "modules/lib/private/amount.h"
#include "modules/lib/private/isolation.h"
#include <nri-rp/lib/cpualloc.h>
#include <nri-rp/lib/life.h>
#include <nri-rp/lib/machine.h>
#include <nri-rp/lib/owners.h>
#include <nri-rp/lib/relief_owned.h>
#include <nri-rp/lib/reserve.h>
#include "modules/static/place_hints.h"
#include "modules/static/place_kubelet.h"

/* ---- configuration (config.c) ---------------------------------------------------------------- */

struct settings {
	struct amount available, reserved;
	struct relief_settings relief;
	struct isolation_keys isolation;
	uint32_t options; /* mask of OPT_… */
	enum hint_policy hints;
	/* use the allocator of the other policies (cpualloc.h) instead of the kubelet's */
	int common_allocator;
	int relaxed_isolation, disable_quota, pin_memory;
	int pod_scope; /* topologyManagerScope is pod */
	int parity; /* choose NUMA nodes without a hint as the kubelet does */
	/* Configuration nodes that explanations refer to; NULL if the key is absent. */
	rp_cfg section, options_at, hints_at, relaxed_at;
};

extern const struct rp_schema static_schema;
/* Reads and checks a section. Returns 0, or an error with a message. */
int32_t settings_read(const struct modhost *h, rp_cfg section, struct settings *ret);
/* Checks the settings that depend on the topology. Returns 0 or -RP_EINVAL with a message. */
int32_t settings_check(const struct modhost *h, const struct settings *s, const struct machine *m);
/* Returns the name of an OPT_… bit. */
const char *option_name(uint32_t bit);
const char *hint_policy_name(enum hint_policy policy);

/* ---- plans (plan.c) -------------------------------------------------------------------------- */

struct rp_plan {
	struct settings settings;
	struct machine *machine;
	struct cpualloc *common; /* common allocator; NULL: the kubelet's allocator */
	struct rp_idset all, iso, reserved;
	struct hint_distances distances; /* filled only if a topology manager policy is set */
};

/*
 * ops.fill and ops.plan_fini (life.h). past->hotplug: CPUs that went offline are no error, and
 * RESERVED may shrink.
 */
int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p);
void plan_fini(struct rp_plan *p);
/* Chooses RESERVED again for other previous reserved CPUs (reserve.h). */
int32_t plan_reserve(const struct modhost *h, struct rp_plan *p, const struct reserve_past *past);
#define SHARED_LEFT_TEXT "would leave fewer than 1 shared CPUs"
#define SHARED_EMPTY_TEXT "shared pool is empty"
/*
 * ops.check: returns -RP_EBUSY with a message if exclusive CPUs of containers would become
 * unavailable or reserved, or if no shared CPUs would be left.
 */
int32_t plan_check_owners(struct rp_instance *inst, struct rp_plan *p);
/* Chooses n of the free CPUs with the configured allocator. Returns 0 or -RP_ENOSPC. */
int32_t plan_take(const struct rp_plan *p, struct rp_ids free, uint32_t n, struct rp_idset *ret);

/* Returns the CPUs that can become exclusive: ALL and ISO without RESERVED. */
void plan_assignable(const struct rp_plan *p, struct rp_idset *ret);
/* plan_shared() returns DEFAULT, plan_free_isolated() the isolated CPUs without owner. */
void plan_shared(const struct rp_plan *p, const struct owners *l, struct rp_idset *ret);
void plan_free_isolated(const struct rp_plan *p, const struct owners *l, struct rp_idset *ret);

/* ---- the instance (static.c) ----------------------------------------------------------------- */

struct counters {
	uint64_t placed, refused;
};

struct rp_instance {
	LIFE;
	struct owners owners;
	struct relief relief;
	struct counters counters;
	/* CPUs of the device from which a claim is being allocated; NULL: any */
	const struct rp_idset *within;
};

/* ---- placement (place.c) --------------------------------------------------------------------- */

#define PLACE_TEXT_MAX 320u

/*
 * Result of a placement: the CPUs of the container and the rule that chose them, or the reason of a
 * refusal.
 */
struct placing {
	rp_ctr ctr;
	int64_t n;
	struct rp_idset cpus;
	char text[PLACE_TEXT_MAX];
	char hint[PLACE_TEXT_MAX]; /* decision of the topology manager, or "" */
	rp_cfg decided_at;
};

/* Returns the number of exclusive CPUs that a container is entitled to; 0: shared CPUs. */
int64_t place_wanted(const struct rp_instance *inst, const struct rp_ctr_info *info);
/*
 * Chooses n exclusive CPUs for a container without changing any owner. Returns 0, or -RP_ENOSPC
 * with the reason in p->text.
 */
int32_t place_find(struct rp_instance *inst, rp_ctr ctr, int64_t n, struct placing *p);
/* Returns true if a scheduler chose the CPUs of the container's pod (place_follow.c). */
bool place_follows(const struct rp_instance *inst, const struct rp_ctr_info *info);
/* Makes the pod the owner of the CPUs that a scheduler chose, and stores them. Returns 0, or an
 * error with a message; the owners are then unchanged. */
int32_t place_followed(struct rp_instance *inst, const struct rp_ctr_info *info,
		       struct rp_idset *ret);
/* Makes all pods that are not stopped, also those without a live container, the owners of the CPUs
 * that a scheduler chose for them, as far as these are usable. */
void place_followed_pods(struct rp_instance *inst);
/* Writes the reason of a refusal and returns -RP_ENOSPC. */
__attribute__((format(printf, 2, 3))) int32_t place_refuse(struct placing *p, const char *fmt, ...);
/* Chooses p->n of the candidates from the NUMA nodes that the topology manager policy selects. */
int32_t place_take_hinted(const struct rp_plan *plan, struct rp_ids candidates, struct placing *p);
/* Chooses like place_take_hinted(), near the huge pages that the container requests
 * (place_huge.c). */
int32_t place_with_huge(const struct rp_instance *inst, struct rp_ids candidates,
			struct placing *p);
/* Chooses like place_with_huge(), near the devices of the container (place_devices.c). */
int32_t place_near_devices(const struct rp_instance *inst, struct rp_ids candidates,
			   struct placing *p);
/* Returns true if the container requests huge pages (place_huge.c). */
bool place_requests_huge(const struct rp_instance *inst, struct placing *p);
/* Returns true if devices or huge pages bind the container to NUMA nodes, so that relief neither
 * moves the container nor makes room for it (place_devices.c). */
bool place_is_bound(const struct rp_instance *inst, rp_ctr ctr);
/* Chooses n exclusive CPUs for a container that already owns CPUs. Returns like place_find(). */
int32_t place_resize(struct rp_instance *inst, rp_ctr ctr, struct rp_ids own, int64_t n,
		     struct placing *p);
/* Returns the free CPUs that can become exclusive, without isolated CPUs. */
void place_candidates(const struct rp_instance *inst, struct rp_idset *ret);
/* Returns the arguments of a relief_owned.h call in a transaction (place_relief.c). */
struct relief_call place_relief(struct rp_instance *inst, rp_txn txn);
/*
 * Returns nonzero if CPUs that another policy chose for a container could also have been chosen by
 * place_find().
 */
int place_passes(struct rp_instance *inst, rp_ctr ctr, struct rp_ids cpus);
/* Records the notes for `nri-rpctl explain`. */
/* Notes what a refused container wanted. */
void place_explain_refused(struct rp_instance *inst, const struct rp_ctr_info *info,
			   const struct placing *p);
void place_explain(struct rp_instance *inst, const struct rp_ctr_info *info,
		   const struct placing *p);
void place_explain_shared(struct rp_instance *inst, const struct rp_ctr_info *info);

/* ---- staging (stage.c) ----------------------------------------------------------------------- */

/* Stages exclusive CPUs of a container, with memory nodes, quota, status and record. */
int32_t stage_exclusive(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			struct rp_ids cpus);
/* Stages the CPUs that a scheduler chose for the container's pod, without CPU quota. */
int32_t stage_followed(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		       struct rp_ids cpus);
/*
 * Stages the shared CPUs for a container and reverts what stage_exclusive() staged for it earlier.
 */
int32_t stage_shared(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     struct rp_ids shared);
/* Stages the memory nodes of the pod's CPU set, if memory is pinned. Call after stage_shared(). */
int32_t stage_pod_memory(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 struct rp_ids set);
/*
 * Stages the reason why a container lacks what it is entitled to; NULL: no reason.
 * stage_exclusive() includes this step.
 */
int32_t stage_degraded(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *reason);
/* Stages the shared CPUs for all containers without exclusive CPUs, except container `except`. */
int32_t stage_sharers(struct rp_instance *inst, rp_txn txn, struct rp_ids shared, rp_ctr except);
/* Returns nonzero if this policy assigned the container's exclusive CPUs. */
int stage_is_ours(struct rp_instance *inst, rp_ctr ctr);

/* ---- synchronization (sync.c) ---------------------------------------------------------------- */

/* Status of a container without the CPUs that a scheduler chose for its pod. */
#define SYNC_FOLLOW_TEXT "the CPUs that the scheduler chose are not usable; it runs on shared CPUs"

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/*
 * Places containers that share CPUs only because too few exclusive CPUs were free. Called after
 * CPUs became free; skips container `except`.
 */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except);

/* ---- reports (report.c) ---------------------------------------------------------------------- */

int32_t static_zones(struct rp_instance *inst, const struct rp_zone_sink *sink);
int32_t static_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink);
