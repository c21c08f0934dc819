/* SPDX-License-Identifier: Apache-2.0 */
/* Fragmentation relief (relief_owned.h) for exclusive containers of the static policy. */
#include "modules/static/static.h"

static void free_cpus(struct rp_instance *inst, const struct rp_ctr_info *info,
		      struct rp_idset *ret)
{
	place_candidates(inst, ret);
}

static int32_t choose_cpus(struct rp_instance *inst, const struct rp_ctr_info *info,
			   struct rp_ids from, uint32_t n, struct rp_idset *ret)
{
	return plan_take(inst->plan, from, n, ret);
}

/*
 * Returns true for containers that must stay: containers whose CPUs belong to their pod,
 * containers with isolated or meanwhile reserved CPUs, and containers near devices or huge pages.
 */
static bool is_fixed(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct rp_idset own;
	(void)owners_owned(&inst->owners, info->ctr, &own);
	return inst->plan->settings.pod_scope || info->flags & RP_CTR_POD_RESOURCES ||
	       rp_ids_overlap(rp_ids_of(&own), rp_ids_of(&inst->plan->iso)) ||
	       rp_ids_overlap(rp_ids_of(&own), rp_ids_of(&inst->plan->reserved)) ||
	       place_is_bound(inst, info->ctr);
}

static const struct relief_ops ops = {
	.free = free_cpus,
	.choose = choose_cpus,
	.stage = stage_exclusive,
	.is_fixed = is_fixed,
};

struct relief_call place_relief(struct rp_instance *inst, rp_txn txn)
{
	inst->relief.set = inst->plan->settings.relief;
	if (inst->plan->settings.options & OPT_DISTRIBUTE_NUMA)
		inst->relief.set.moves = 0;
	return RELIEF_CALL(inst, txn, &ops);
}
