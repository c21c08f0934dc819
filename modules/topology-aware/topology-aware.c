/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the topology-aware policy. topology-aware.h describes the policy and its files. */
#include <stdlib.h>

#include "modules/topology-aware/report.h"
#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/sync.h"
#include "modules/topology-aware/topology-aware.h"

/* ---- configuration --------------------------------------------------------------------------- */

static void past(const struct rp_instance *inst, struct reserve_past *ret)
{
	const struct rp_plan *p = inst->plan;
	*ret = (struct reserve_past){0};
	if (p->settings.reserved.kind == AMOUNT_QUANTITY)
		rp_idset_copy(&ret->cpus, rp_ids_of(&p->reserved));
	if (p->settings.reserved.kind == AMOUNT_CPUS)
		rp_idset_copy(&ret->listed, rp_ids_of(&p->settings.reserved.cpus));
	ledger_exclusive(inst, &ret->busy);
}

static void allocatable(const struct rp_instance *inst, struct rp_idset *ret)
{
	const struct rp_plan *p = inst->plan;
	rp_idset_andnot(ret, rp_ids_of(&p->allowed), rp_ids_of(&p->reserved));
}

static int32_t reserve(struct rp_instance *inst)
{
	return inst->ledger.n_grants ? 0 : plan_reserve(&inst->h, inst->plan, &inst->remembered);
}

static void log_nothing(void *ctx, uint32_t level, uint64_t object, const char *text)
{
}

/* Reads the section and builds a plan. After a change of the machine, warnings about the section
 * have been logged already. */
static int32_t fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *before,
		    struct rp_plan *p)
{
	struct modhost h = inst->h;
	struct rp_host silent = *h.host;
	silent.log = log_nothing;
	if (before->hotplug)
		h.host = &silent;
	int32_t r = settings_read(&h, section, &p->settings);
	return r ? r : plan_build(&inst->h, p, before);
}

static void leave(struct rp_instance *inst)
{
	memalloc_keep(inst->plan->mem);
	ledger_clear(inst);
	inst->n_moved = 0;
	inst->replaced = true;
}

static void enter(struct rp_instance *inst)
{
	inst->ledger.irqs_changed = inst->ledger.classes_changed = true;
	if (classes_configure(inst))
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "CPU classes are not enforced");
}

/* ---- containers ------------------------------------------------------------------------------ */

static void begin(struct rp_instance *inst)
{
	inst->resync = false;
	inst->n_moved = 0;
	ledger_begin(inst);
	inst->relief.set = inst->plan->settings.relief;
	place_begin_memory(inst);
}

static void done(struct rp_instance *inst)
{
	classes_apply(inst);
	interrupts_apply(inst);
}

static int32_t stage_result(struct rp_instance *inst, rp_txn txn, const struct request *r,
			    const struct grant *g)
{
	int32_t e = stage_grant(inst, txn, g);
	if (!e)
		e = classes_stage_sched(inst, txn, r);
	return e ? e : classes_stage_mempolicy(inst, txn, r);
}

/*
 * Places a container and stages the result. The runtime repeats a creation if the reply was lost;
 * the repetition is treated as a resize. within: pool of a claim's device, else NO_POOL.
 */
static int32_t topology_aware_give(struct rp_instance *inst, rp_txn txn,
				   const struct rp_ctr_info *info, uint32_t within)
{
	struct request r;
	struct grant *g, *old = ledger_find(inst, info->ctr);
	struct hints *known = old ? old->hints : NULL;
	int32_t e = request_read(inst, info, known, &r);
	if (e)
		return e;
	if (r.ineligible) { /* the resize would take the exclusive CPUs away */
		e = modhost_fail(&inst->h, -RP_EINVAL, "%s", r.problem);
		request_fini(&r);
		inst->counters.refused++;
		return e;
	}
	request_warn(inst, &r);
	r.pod_pool = within;
	request_follow_cold(&r, old ? &old->facts : NULL);
	const struct place_mark before = place_mark(inst);
	e = old ? place_again(inst, &r, old, &g) : place(inst, &r, &g);
	if (!e && !old)
		e = relief_at_admission(inst, txn, &r, &before, &g);
	relief_arm(&inst->h, &inst->relief);
	if (e)
		inst->counters.refused++;
	else if (old)
		e = sync_retry(inst, txn);
	/* sync_retry() may have changed the shared CPUs of this container or replaced its grant. */
	g = e ? NULL : ledger_find(inst, info->ctr);
	if (g)
		e = stage_result(inst, txn, &r, g);
	request_fini(&r);
	return e ? e : stage_others(inst, txn, info->ctr);
}

static int32_t topology_aware_place(struct rp_instance *inst, rp_txn txn,
				    const struct rp_ctr_info *info)
{
	return topology_aware_give(inst, txn, info, NO_POOL);
}

static int32_t resize(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	inst->counters.resized++;
	return topology_aware_place(inst, txn, info);
}

static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct grant *g = ledger_find(inst, info->ctr);
	if (!g)
		return 0;
	bool cold = (g->flags & GRANT_COLD) != 0;
	int32_t r = ledger_reserve(inst, 1);
	if (r)
		return r;
	place_release(inst, g);
	if (cold)
		cold_arm(inst);
	relief_arm(&inst->h, &inst->relief);
	r = sync_retry(inst, txn);
	return r ? r : stage_others(inst, txn, info->ctr);
}

static int32_t rebalance(struct rp_instance *inst, rp_txn txn, uint64_t budget)
{
	int32_t n = relief_help_waiting(inst, txn, budget);
	if (n < 0 || (budget && (uint64_t)n >= budget))
		return n < 0 ? n : stage_others(inst, txn, 0);
	int32_t r = rebalance_all(inst, txn, budget ? budget - (uint64_t)n : 0);
	return r || !n ? r : stage_others(inst, txn, 0);
}

static int32_t timer(struct rp_instance *inst, rp_txn txn, uint64_t cookie)
{
	if (cookie == RELIEF_COOKIE) {
		int32_t n = relief_help_waiting(inst, txn, 0);
		return n <= 0 ? n : stage_others(inst, txn, 0);
	}
	if (inst->classes)
		cpuclass_timer(inst->classes, cookie);
	return cold_timer(inst, txn);
}

static int32_t rolled_back(struct rp_instance *inst)
{
	if (inst->resync)
		return RP_RESYNC;
	memalloc_drop(inst->plan->mem);
	ledger_undo(inst);
	return 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static int32_t devices(struct rp_instance *inst, const struct rp_devices_sink *sink)
{
	struct rp_idset cpus;
	claim_cpus(inst, &cpus);
	const struct node_devices of = claim_devices(inst, rp_ids_of(&cpus));
	return node_devices_report(&of, sink);
}

static int32_t claim(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     const char *device)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset cpus;
	if (!p->settings.pin_cpu)
		return modhost_fail(&inst->h, -RP_ENOSPC,
				    "device %s has no exclusive CPUs: pinCPU is false", device);
	const struct node_devices of =
		claim_devices(inst, plan_ids(p, p->pools[p->root].cap_sharable));
	int32_t r = node_devices_open(&of, info, device, &cpus);
	if (r)
		return r;
	uint32_t pool = node_devices_is_node(device) ? claim_pool(p, rp_ids_of(&cpus))
						     : claim_smallest(p, rp_ids_of(&cpus));
	if (pool == NO_POOL)
		return modhost_fail(&inst->h, -RP_ENOENT, "no pool has the CPUs of device %s",
				    device);
	return topology_aware_give(inst, txn, info, pool);
}

/* ---- the module ------------------------------------------------------------------------------ */

static int32_t init(struct rp_instance *inst)
{
	inst->h.why = inst->why;
	return 0;
}

static void stop(struct rp_instance *inst)
{
	cpuclass_stop(inst->classes);
	irq_stop(inst->irqs);
}

static void fini(struct rp_instance *inst)
{
	if (inst->plan)
		leave(inst);
	table_fini(&inst->ledger.by_ctr);
	table_fini(&inst->ledger.by_pod);
	table_fini(&inst->ledger.spaces);
	free(inst->ledger.sizes);
	free(inst->ledger.log);
	free(inst->moved);
	ctr_list_free(&inst->order);
	cpuclass_free(inst->classes);
	irq_free(inst->irqs);
}

static const struct life_ops ops = {
	.part = &isolation_part,
	.isolation = offsetof(struct rp_plan, settings.isolation),
	.own_interrupts = true,
	.sees_preserved = true,
	.leaves_unmanaged = true,
	.init = init,
	.plan_size = sizeof(struct rp_plan),
	.fill = fill,
	.plan_fini = plan_fini,
	.leave = leave,
	.enter = enter,
	.begin = begin,
	.sync = sync_all,
	.place = topology_aware_place,
	.resize = resize,
	.release = release,
	.rebalance = rebalance,
	.pressure = rebalance_one,
	.started = cold_started,
	.timer = timer,
	.rolled_back = rolled_back,
	.done = done,
	.stop = stop,
	.fini = fini,
	.schema = &ta_schema,
	.report_zones = ta_zones,
	.report_metrics = ta_metrics,
	.relief = offsetof(struct rp_instance, relief),
	.past = past,
	.allocatable = allocatable,
	.devices = devices,
	.claim = claim,
	.reserve = reserve,
	.extended = &ta_extended,
};

LIFE_MODULE("topology-aware", "1.0", ops,
	    .summary = "CPUs and memory near each other, in a tree of pools",
	    .licence = "Apache-2.0");
