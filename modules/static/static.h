/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static policy: containers of Guaranteed pods that ask for whole CPUs get them for themselves,
 * all others share the rest.
 *
 *	ALL       available ∩ online, without the CPUs that the kernel isolates
 *	ISO       the isolated ones
 *	RESERVED  a part of ALL that nobody gets exclusively
 *	DEFAULT   where everybody else runs: ALL without what is given away (and, with
 *                strict-cpu-reservation, without RESERVED)
 *
 * The only state is who owns which CPU (owners.h). DEFAULT is derived from it and never stored, so
 * the two cannot disagree; the owners in turn can be read back from the host's cache. A
 * configuration and the machine as it is now make a `struct rp_plan`:
 *
 *	config    section → settings
 *	plan      settings + machine → sets; refusals of a reload
 *	place     what one container gets
 *	          place_hints       from which NUMA nodes
 *	          place_kubelet     which CPUs, as the kubelet chooses them
 *	          place_distribute  the same, across NUMA nodes
 *	          place_relief      which others move so that one NUMA node has room
 *	pod_set   sets of pods (topologyManagerScope: pod)
 *	stage     into the transaction
 *	sync      everything at once
 *	report    zones, metrics
 *	static.c  the callbacks
 */
#ifndef STATIC_STATIC_H
#define STATIC_STATIC_H

#include "modules/lib/amount.h"
#include "modules/lib/cpualloc.h"
#include "modules/lib/life.h"
#include "modules/lib/machine.h"
#include "modules/lib/owners.h"
#include "modules/lib/relief_owned.h"
#include "modules/lib/reserve.h"
#include "modules/static/place_hints.h"
#include "modules/static/place_kubelet.h"

/* ---- configuration (config.c) ---------------------------------------------------------------- */

struct settings {
	struct amount available, reserved;
	struct relief_settings relief;
	uint32_t options; /* OPT_… */
	enum hint_policy hints;
	int common_allocator; /* that of the other policies instead of the kubelet's */
	int relaxed_isolation, disable_quota, pin_memory;
	int pod_scope; /* topologyManagerScope: pod */
	int parity; /* NUMA nodes that no hint names are chosen as the kubelet does */
	/* For explanations; NULL where the key is not there. */
	rp_cfg section, options_at, hints_at, relaxed_at;
};

extern const struct rp_schema static_schema;
int32_t settings_read(const struct modhost *h, rp_cfg section, struct settings *ret);
/* Settings that depend on the machine. */
int32_t settings_check(const struct modhost *h, const struct settings *s, const struct machine *m);
/* Name of an option bit. */
const char *option_name(uint32_t bit);
const char *hint_policy_name(enum hint_policy policy);

/* ---- a configuration on a machine (plan.c) --------------------------------------------------- */

struct rp_plan {
	struct settings settings;
	struct machine *machine;
	struct cpualloc *common; /* NULL: the kubelet's allocator is used */
	struct rp_idset all, iso, reserved;
	struct hint_distances distances; /* read where a topology manager policy is set */
};

/* The machine is read anew. past->hotplug: what worked once has to go on with the CPUs that are
 * left, a smaller RESERVED is no error. */
int32_t plan_new(const struct modhost *h, const struct settings *s, const struct reserve_past *past,
		 struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */
/* Chooses RESERVED again with another past. */
int32_t plan_reserve(const struct modhost *h, struct rp_plan *p, const struct reserve_past *past);
#define SHARED_LEFT_TEXT "would leave fewer than 1 shared CPUs"
#define SHARED_EMPTY_TEXT "shared pool is empty"
/* -RP_EBUSY when after `old` owners of CPUs would lose some or get into the reserved ones, or
 * nothing would be left to share. */
int32_t plan_check_owners(const struct modhost *h, const struct rp_plan *p,
			  const struct rp_plan *old, const struct owners *l);
/* n of the free CPUs by the configured allocator: 0 or -RP_ENOSPC. */
int32_t plan_take(const struct rp_plan *p, struct rp_ids free, uint32_t n, struct rp_idset *ret);

/* What can be given away at all: ALL and ISO without RESERVED. */
void plan_assignable(const struct rp_plan *p, struct rp_idset *ret);
/* DEFAULT, and the isolated CPUs that nobody has. */
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
};

/* ---- what one container gets (place.c) ------------------------------------------------------- */

#define PLACE_TEXT_MAX 320u

/* The CPUs found for a container and the rule that found them; or why there are none. */
struct placing {
	rp_ctr ctr;
	int64_t n;
	struct rp_idset cpus;
	char text[PLACE_TEXT_MAX];
	char hint[PLACE_TEXT_MAX]; /* what the topology manager had to say; "" */
	rp_cfg decided_at;
};

/* How many exclusive CPUs it is entitled to; 0: it shares. */
int64_t place_wanted(const struct rp_ctr_info *info);
/* 0, or -RP_ENOSPC with the reason in p->text. Nothing is changed. */
int32_t place_find(struct rp_instance *inst, rp_ctr ctr, int64_t n, struct placing *p);
/* The same for a container that owns CPUs already. */
int32_t place_resize(struct rp_instance *inst, rp_ctr ctr, struct rp_ids own, int64_t n,
		     struct placing *p);
/* CPUs that containers could be given, but for isolated ones. */
void place_candidates(const struct rp_instance *inst, struct rp_idset *ret);
/* What relief_owned.h asks for in a transaction (place_relief.c). */
struct relief_call place_relief(struct rp_instance *inst, rp_txn txn);
/* May these CPUs, which somebody else chose for it, pass as what place_find gives? */
int place_passes(struct rp_instance *inst, rp_ctr ctr, struct rp_ids cpus);
/* Notes for `nri-rpctl explain`. */
void place_explain(struct rp_instance *inst, const struct rp_ctr_info *info,
		   const struct placing *p);
void place_explain_shared(struct rp_instance *inst, const struct rp_ctr_info *info);

/* ---- into the transaction (stage.c) ---------------------------------------------------------- */

int32_t stage_exclusive(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			struct rp_ids cpus);
int32_t stage_shared(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     struct rp_ids shared);
/* Why it does not have what it should; NULL: all is well. stage_exclusive does it by itself. */
int32_t stage_degraded(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *reason);
/* Moves everybody who shares, but for one container, to the shared CPUs. */
int32_t stage_sharers(struct rp_instance *inst, rp_txn txn, struct rp_ids shared, rp_ctr except);
/* Was this exclusive set given by this policy? */
int stage_is_ours(struct rp_instance *inst, rp_ctr ctr);

/* ---- everything at once (sync.c) ------------------------------------------------------------- */

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* After CPUs came free: places those who had to share for want of them. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except);

/* ---- reports (report.c) ---------------------------------------------------------------------- */

extern const struct rp_zones static_zones;
extern const struct rp_metrics static_metrics;

#endif
