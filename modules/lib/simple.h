/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A base for policies whose containers own whole CPUs or share the rest: the bounds of the section
 * (bounds.h), the owners of CPUs (owners.h), CPUs that go online or offline, restarts and dropped
 * transactions. The policy says how many CPUs a container owns and where the others run:
 *
 *	struct rp_plan { SIMPLE_PLAN; … };
 *	struct rp_instance { SIMPLE; … };
 *	static const struct simple_ops ops = {
 *		.life = {SIMPLE_LIFE, .schema = &schema}, .plan_size = sizeof(struct rp_plan),
 *		.wants = …, .shares = …};
 *	LIFE_MODULE("mine", "1.0", ops.life, .summary = "…", .licence = "…");
 *
 * A policy that needs more replaces callbacks of SIMPLE_LIFE by its own ones.
 */
#ifndef NRI_RP_LIB_SIMPLE_H
#define NRI_RP_LIB_SIMPLE_H

#include <nri-rp/lib/bounds.h>
#include <nri-rp/lib/life.h>
#include <nri-rp/lib/owners.h>
#include <nri-rp/lib/section.h>

/* The first member of the policy's struct rp_plan. */
#define SIMPLE_PLAN                                                                                \
	rp_cfg section;                                                                            \
	struct bounds cpus; /* reserved CPUs, and the rest */                                      \
	struct cpualloc *alloc /* chooses CPUs: whole cores first, close to each other */

/* The first member of the policy's struct rp_instance. */
#define SIMPLE                                                                                     \
	LIFE;                                                                                      \
	struct owners owners /* owners of exclusive CPUs */

struct simple_ops {
	struct life_ops life;
	size_t plan_size; /* size of struct rp_plan */
	/* Optional: reads further keys of the section into the zeroed members of a plan. */
	int32_t (*read)(struct rp_instance *inst, rp_cfg section, struct rp_plan *p);
	/* Returns the number of CPUs that a container should own; 0: none. */
	uint32_t (*wants)(const struct rp_instance *inst, const struct rp_ctr_info *info);
	/* Optional: stores the CPUs of a container without exclusive CPUs. `shared` has the CPUs
	 * that no container owns and that are not reserved; without this function the container
	 * gets these. An empty set is replaced by the shared or the reserved CPUs. */
	void (*shares)(const struct rp_instance *inst, const struct rp_ctr_info *info,
		       const struct rp_idset *shared, struct rp_idset *ret);
	/* Optional: true: containers are not pinned. */
	bool (*leaves)(const struct rp_instance *inst);
};

/* The callbacks of the base, as members of struct life_ops. */
#define SIMPLE_LIFE                                                                                \
	.plan = simple_plan, .look = simple_look, .plan_free = simple_plan_free,                   \
	.begin = simple_begin, .sync = simple_sync, .place = simple_place,                         \
	.release = simple_release, .past = simple_past, .rolled_back = simple_rolled_back

int32_t simple_plan(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret);
int32_t simple_look(struct rp_instance *inst, struct rp_plan **ret);
struct rp_plan *simple_plan_free(struct rp_plan *p);
void simple_past(const struct rp_instance *inst, struct reserve_past *ret);
void simple_begin(struct rp_instance *inst);
int32_t simple_rolled_back(struct rp_instance *inst);
int32_t simple_sync(struct rp_instance *inst, rp_txn txn);
int32_t simple_place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);
int32_t simple_release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info);

#endif
