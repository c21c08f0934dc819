/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the static policy. static.h describes the policy and its files. */
#include "modules/lib/private/node_devices.h"
#include "modules/static/pod_set.h"

/* ---- configuration --------------------------------------------------------------------------- */

static void past(const struct rp_instance *inst, struct reserve_past *ret)
{
	const struct rp_plan *p = inst->plan;
	*ret = (struct reserve_past){.cpus = p->reserved, .busy = inst->owners.taken};
	if (p->settings.reserved.kind == AMOUNT_CPUS)
		ret->listed = p->settings.reserved.cpus;
}

static void allocatable(const struct rp_instance *inst, struct rp_idset *ret)
{
	plan_assignable(inst->plan, ret);
}

static int32_t reserve(struct rp_instance *inst)
{
	return plan_reserve(&inst->h, inst->plan, &inst->remembered);
}

/* ---- containers ------------------------------------------------------------------------------ */

static void begin(struct rp_instance *inst)
{
	owners_begin(&inst->owners);
	if (inst->plan)
		(void)place_relief(inst, 0); /* reads the settings, which relief_arm() needs */
}

static int32_t rolled_back(struct rp_instance *inst)
{
	owners_undo(&inst->owners);
	return 0;
}

/* Stages the shared CPUs for the containers that use them if these CPUs changed. */
static int32_t static_follow(struct rp_instance *inst, rp_txn txn, const struct rp_idset *before,
			     rp_ctr except)
{
	struct rp_idset now;
	plan_shared(inst->plan, &inst->owners, &now);
	if (rp_ids_equal(rp_ids_of(before), rp_ids_of(&now)) || rp_ids_empty(rp_ids_of(&now)))
		return 0;
	return stage_sharers(inst, txn, rp_ids_of(&now), except);
}

static int32_t static_share(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset shared;
	if (place_follows(inst, info)) {
		int32_t e = place_followed(inst, info, &shared);
		inst->counters.placed += !e;
		inst->counters.refused += e != 0;
		return e ? e : stage_followed(inst, txn, info, rp_ids_of(&shared));
	}
	if (pod_set_shares(inst, info, &shared))
		return pod_set_stage(inst, txn, info, rp_ids_of(&shared));
	plan_shared(inst->plan, &inst->owners, &shared);
	if (rp_ids_empty(rp_ids_of(&shared)))
		return modhost_fail(&inst->h, -RP_ENOSPC, SHARED_EMPTY_TEXT);
	place_explain_shared(inst, info);
	int32_t r = stage_shared(inst, txn, info, rp_ids_of(&shared));
	return r ? r : stage_degraded(inst, txn, info->ctr, NULL);
}

static int32_t static_give(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			   const struct placing *p)
{
	struct rp_idset had;
	(void)owners_release(&inst->owners, info->ctr, &had);
	owners_give(&inst->owners, rp_ids_of(&p->cpus), info->ctr);
	pod_set_return(inst, info->pod, rp_ids_of(&had));
	place_explain(inst, info, p);
	return stage_exclusive(inst, txn, info, rp_ids_of(&p->cpus));
}

/*
 * Assigns exclusive CPUs to a container. The runtime repeats a request if the reply was lost; the
 * container then keeps the CPUs it already owns.
 */
static int32_t give_exclusive(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct placing p;
	struct rp_idset own;
	int64_t n = place_wanted(inst, info);
	uint32_t n_own = owners_owned(&inst->owners, info->ctr, &own);
	if (pod_set_ensure(inst, txn, info, &p) ||
	    (!pod_set_take(inst, info, rp_ids_of(&own), n, &p) &&
	     (n_own ? place_resize(inst, info->ctr, rp_ids_of(&own), n, &p)
		    : place_find(inst, info->ctr, n, &p)))) {
		inst->counters.refused++;
		inst->waiting = true;
		place_explain_refused(inst, info, &p);
		return modhost_fail(&inst->h, -RP_ENOSPC, "%s", p.text);
	}
	if (!n_own && !(info->flags & RP_CTR_POD_RESOURCES) && !inst->plan->settings.pod_scope &&
	    !place_is_bound(inst, info->ctr)) {
		const struct relief_call c = place_relief(inst, txn);
		int32_t r = relief_admit(&c, info, &p.cpus);
		if (r < 0)
			return r;
		if (r)
			(void)snprintf(p.text, sizeof p.text, "CPUs of one NUMA node");
	}
	inst->counters.placed++;
	return static_give(inst, txn, info, &p);
}

/*
 * Places or resizes a container for its current request. Released CPUs are offered to waiting
 * containers before they become shared.
 */
static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset before, own;
	int64_t n = place_wanted(inst, info);
	plan_shared(inst->plan, &inst->owners, &before);
	bool freed = pod_set_free_stopped(inst);
	uint32_t n_own = owners_owned(&inst->owners, info->ctr, &own);
	if (!n) {
		struct placing p;
		(void)owners_release(&inst->owners, info->ctr, &own);
		pod_set_return(inst, info->pod, rp_ids_of(&own));
		/* A pod that gets no CPU set for lack of CPUs uses the shared CPUs. */
		if ((info->flags & RP_CTR_POD_RESOURCES) && !place_follows(inst, info) &&
		    pod_set_ensure(inst, txn, info, &p) && pod_set_exists(inst, info->pod))
			return modhost_fail(&inst->h, -RP_ENOSPC, "the pod's own CPUs: %s", p.text);
	}
	int32_t r = n ? give_exclusive(inst, txn, info) : 0;
	if (!r && (n_own > n || freed))
		r = sync_retry(inst, txn, info->ctr);
	if (!r && !n)
		r = static_share(inst, txn, info);
	if (!r)
		r = pod_set_follow(inst, txn, info->pod, info->ctr);
	relief_arm(&inst->h, &inst->relief);
	return r ? r : static_follow(inst, txn, &before, info->ctr);
}

/* Puts a container that runs although it was refused on the shared CPUs. */
static int32_t unmanaged(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset shared;
	plan_shared(inst->plan, &inst->owners, &shared);
	int32_t r = rp_ids_empty(rp_ids_of(&shared))
			    ? 0
			    : stage_shared(inst, txn, info, rp_ids_of(&shared));
	return r || !place_follows(inst, info)
		       ? r
		       : stage_degraded(inst, txn, info->ctr, SYNC_FOLLOW_TEXT);
}

static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset before, had;
	plan_shared(inst->plan, &inst->owners, &before);
	bool freed = pod_set_free_stopped(inst);
	if (!owners_release(&inst->owners, info->ctr, &had) && !freed)
		return 0;
	pod_set_return(inst, info->pod, rp_ids_of(&had));
	int32_t r = pod_set_follow(inst, txn, info->pod, info->ctr);
	if (!r)
		r = sync_retry(inst, txn, info->ctr);
	relief_arm(&inst->h, &inst->relief);
	return r ? r : static_follow(inst, txn, &before, info->ctr);
}

/* Moves containers so that containers spread over several NUMA nodes fit into one. */
static int32_t rebalance(struct rp_instance *inst, rp_txn txn, uint64_t n_moves)
{
	struct rp_idset before;
	const struct relief_call c = place_relief(inst, txn);
	plan_shared(inst->plan, &inst->owners, &before);
	int32_t r = relief_rebalance(&c, n_moves);
	return r < 0 ? r : static_follow(inst, txn, &before, 0);
}

static int32_t removed(struct rp_instance *inst, rp_txn txn, rp_pod pod)
{
	struct rp_idset before;
	plan_shared(inst->plan, &inst->owners, &before);
	if (!pod_set_free(inst, pod))
		return 0;
	int32_t r = sync_retry(inst, txn, 0);
	return r ? r : static_follow(inst, txn, &before, 0);
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* Returns the devices for claims. *cpus receives their CPUs: those that can become exclusive,
 * without the isolated ones. */
static struct node_devices static_devices(struct rp_instance *inst, struct rp_idset *cpus)
{
	plan_assignable(inst->plan, cpus);
	rp_idset_andnot(cpus, rp_ids_of(cpus), rp_ids_of(&inst->plan->iso));
	return (struct node_devices){.h = &inst->h,
				     .list = &inst->list,
				     .assignable = rp_ids_of(cpus),
				     .isolation = &inst->plan->settings.isolation};
}

static int32_t devices(struct rp_instance *inst, const struct rp_devices_sink *sink)
{
	struct rp_idset assignable;
	const struct node_devices of = static_devices(inst, &assignable);
	return node_devices_report(&of, sink);
}

static int32_t claim(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     const char *device)
{
	struct rp_idset assignable, cpus;
	const struct node_devices of = static_devices(inst, &assignable);
	int32_t r = node_devices_open(&of, info, device, &cpus);
	if (r)
		return r;
	inst->within = &cpus;
	r = place(inst, txn, info);
	inst->within = NULL;
	return r;
}

static const struct life_ops ops = {
	.part = &isolation_part,
	.isolation = offsetof(struct rp_plan, settings.isolation),
	.plan_size = sizeof(struct rp_plan),
	.fill = plan_fill,
	.check = plan_check_owners,
	.plan_fini = plan_fini,
	.begin = begin,
	.sync = sync_all,
	.rebalance = rebalance,
	.place = place,
	.release = release,
	.removed = removed,
	.unmanaged = unmanaged,
	.rolled_back = rolled_back,
	.schema = &static_schema,
	.report_zones = static_zones,
	.report_metrics = static_metrics,
	.relief = offsetof(struct rp_instance, relief),
	.past = past,
	.allocatable = allocatable,
	.devices = devices,
	.claim = claim,
	.reserve = reserve,
};

LIFE_MODULE("static", "1.0", ops,
	    .summary = "exclusive CPUs for Guaranteed pods, like the kubelet's static CPU manager",
	    .licence = "Apache-2.0");
