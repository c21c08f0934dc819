/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the static-plus policy. static-plus.h describes the policy and its files. */
#include "modules/static-plus/static-plus.h"
#include <nri-rp/lib/bounds.h>

static void past(const struct rp_instance *inst, struct reserve_past *ret)
{
	const struct rp_plan *p = inst->plan;
	*ret = (struct reserve_past){.busy = inst->owners.taken};
	if (p->reserve.kind == AMOUNT_CPUS)
		ret->listed = p->reserve.cpus;
	else
		ret->cpus = p->reserved;
}

static int32_t check(struct rp_instance *inst, struct rp_plan *p)
{
	struct rp_idset usable;
	rp_idset_or(&usable, rp_ids_of(&p->pool), rp_ids_of(&p->isolated));
	return bounds_check_owners(&inst->h, p->section, rp_ids_of(&inst->owners.taken),
				   rp_ids_of(&p->reserved), rp_ids_of(&usable));
}

static void begin(struct rp_instance *inst)
{
	owners_begin(&inst->owners);
	if (inst->plan)
		(void)place_relief(inst, 0); /* reads the settings, which relief_arm() needs */
	inst->parts_before = inst->parts;
}

/*
 * Places or resizes a container. The runtime repeats a request if the reply was lost; the container
 * then keeps its slice.
 */
static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct wish w = wish_of(info);
	struct rp_idset had, slice;
	struct record rec;
	bool known = stage_read(inst, info->ctr, &rec);
	uint32_t n = owners_release(&inst->owners, info->ctr, &had);
	int32_t r = 0;
	rp_idset_clear(&slice);
	if (w.full) {
		const struct relief_call c = place_relief(inst, txn);
		r = place_slice(inst, &w, rp_ids_of(&had), &slice);
		if (!r && !n)
			r = relief_admit(&c, info, &slice);
		r = r < 0 ? r : 0;
		owners_give(&inst->owners, rp_ids_of(r ? &had : &slice), info->ctr);
	}
	if (r)
		return r;
	place_explain(inst, &w, rp_ids_of(&slice));
	r = stage_ctr(inst, txn, &w, NULL);
	if (r || (!known && w.kind == KIND_SYSTEM))
		return r;
	if (!known && w.kind == KIND_SHARED)
		return stage_last_sharer(inst, txn, &w);
	relief_arm(&inst->h, &inst->relief);
	r = n > w.full ? sync_retry(inst, txn, info->ctr) : 0;
	return r ? r : stage_sharers(inst, txn);
}

static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct record rec;
	struct rp_idset had;
	if (!stage_read(inst, info->ctr, &rec))
		return 0;
	uint32_t n = owners_release(&inst->owners, info->ctr, &had);
	int32_t r = ctr_forget(&inst->h, txn, info->ctr);
	if (r || (!n && stage_forget_sharer(inst, &rec)))
		return r;
	relief_arm(&inst->h, &inst->relief);
	r = sync_retry(inst, txn, info->ctr);
	return r ? r : stage_sharers(inst, txn);
}

/* Moves containers so that containers spread over several NUMA nodes fit into one. */
static int32_t rebalance(struct rp_instance *inst, rp_txn txn, uint64_t n_moves)
{
	const struct relief_call c = place_relief(inst, txn);
	int32_t r = relief_rebalance(&c, n_moves);
	return r <= 0 ? r : stage_sharers(inst, txn);
}

/* Stages shared CPUs for a container that was refused but runs (onPolicyError: unmanaged). */
static int32_t unmanaged(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct wish w = {.info = info, .kind = KIND_SHARED, .part = info->cpu_request};
	int32_t r = stage_ctr(inst, txn, &w, "it was refused but runs");
	return r ? r : stage_sharers(inst, txn);
}

static int32_t rolled_back(struct rp_instance *inst)
{
	owners_undo(&inst->owners);
	inst->parts = inst->parts_before;
	return 0;
}

static const struct life_ops ops = {
	.plan_size = sizeof(struct rp_plan),
	.fill = plan_fill,
	.check = check,
	.plan_fini = plan_fini,
	.begin = begin,
	.sync = sync_all,
	.rebalance = rebalance,
	.place = place,
	.release = release,
	.unmanaged = unmanaged,
	.past = past,
	.rolled_back = rolled_back,
	.schema = &plus_schema,
	.report_zones = plus_zones,
	.report_metrics = plus_metrics,
	.relief = offsetof(struct rp_instance, relief),
};

LIFE_MODULE("static-plus", "1.0", ops,
	    .summary = "exclusive CPUs for the whole CPUs of any request, shared CPUs for the rest",
	    .licence = "Apache-2.0");
