/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the topology-aware policy. What the policy does is told in ta.h. */
#include <stdlib.h>

#include "modules/topology-aware/ta.h"

/* ---- configuration --------------------------------------------------------------------------- */

static void look_back(const struct rp_instance *inst, struct reserve_past *ret)
{
	plan_past(inst->plan, ret);
	ledger_exclusive(inst, &ret->busy);
}

static int32_t ta_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	struct settings s;
	int32_t r = settings_read(&inst->h, cfg, &s);
	if (r)
		return r;
	struct reserve_past past;
	if (inst->plan) {
		look_back(inst, &past);
	} else {
		int32_t n =
			ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED); /* may move the list */
		r = reserve_first(&inst->h, inst->list.ctrs, n, &inst->remembered, &past);
	}
	if (!r)
		r = plan_new(&inst->h, &s, &past, ret_plan);
	if (r)
		settings_fini(&s);
	return r;
}

static void take_over(struct rp_instance *inst, struct rp_plan *plan)
{
	if (inst->plan && inst->memory_begun)
		memalloc_keep(inst->plan->mem);
	inst->memory_begun = false;
	ledger_clear(inst);
	plan_free(inst->plan);
	inst->plan = plan;
	inst->n_moved = 0;
	if (classes_configure(inst))
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "CPU classes are not enforced");
}

static void ta_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	inst->reconfigured = inst->plan != NULL;
	take_over(inst, plan);
}

static void ta_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	plan_free(plan);
}

/* ---- containers ------------------------------------------------------------------------------ */

/* Every callback that changes something begins here. */
static int32_t begin(struct rp_instance *inst)
{
	inst->resync = false;
	inst->n_moved = 0;
	ledger_begin(inst);
	if (!inst->plan)
		return modhost_fail(&inst->h, -RP_EAGAIN, "no configuration is in force");
	memalloc_keep(inst->plan->mem);
	inst->memory_begun = memalloc_begin(inst->plan->mem) == 0;
	return inst->memory_begun ? 0 : modhost_fail(&inst->h, -RP_EBUSY, "memory is in use");
}

static int32_t finish(struct rp_instance *inst, int32_t r)
{
	if (r)
		return r;
	classes_apply(inst);
	interrupts_apply(inst);
	return 0;
}

static int32_t stage_result(struct rp_instance *inst, rp_txn txn, const struct request *r,
			    const struct grant *g)
{
	int32_t e = stage_grant(inst, txn, g);
	return e ? e : classes_stage_sched(inst, txn, r);
}

static int32_t allocate(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct request r;
	struct grant *g, *old = ledger_find(inst, info->ctr);
	struct hints *known = old ? old->hints : NULL;
	int32_t e = request_read(inst, info, known, &r);
	if (e)
		return e;
	e = old ? place_again(inst, &r, old, &g) : place(inst, &r, &g);
	if (e)
		inst->counters.refused++;
	else if (old)
		e = sync_retry(inst, txn);
	/* What others got now may be a part of what it shares, or it was one of those that were
	 * tried again. */
	g = e ? NULL : ledger_find(inst, info->ctr);
	if (g)
		e = stage_result(inst, txn, &r, g);
	request_fini(&r);
	return e ? e : stage_others(inst, txn, info->ctr);
}

/* A lost reply makes the runtime ask again: it is then a resize to what it is. */
static int32_t ta_allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info;
	int32_t r = begin(inst);
	if (!r)
		r = ctr_info(&inst->h, ctr, &info);
	return finish(inst, r ? r : allocate(inst, txn, &info));
}

static int32_t ta_update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	inst->counters.resized++;
	return ta_allocate(inst, txn, ctr);
}

static int32_t ta_release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	int32_t r = begin(inst);
	if (r)
		return 0; /* nothing was ever given */
	struct grant *g = ledger_find(inst, ctr);
	if (!g)
		return 0;
	bool cold = (g->flags & GRANT_COLD) != 0;
	r = ledger_reserve(inst, 1);
	if (r)
		return r;
	place_release(inst, g);
	if (cold)
		cold_arm(inst);
	r = sync_retry(inst, txn);
	return finish(inst, r ? r : stage_others(inst, txn, ctr));
}

static int32_t ta_sync(struct rp_instance *inst, rp_txn txn)
{
	int32_t r = begin(inst);
	return finish(inst, r ? r : sync_all(inst, txn));
}

static int32_t new_machine(struct rp_instance *inst, rp_txn txn)
{
	struct rp_plan *p, *old = inst->plan;
	struct reserve_past past;
	look_back(inst, &past);
	past.hotplug = true;
	int32_t r = plan_new(&inst->h, &old->settings, &past, &p);
	if (r)
		return r;
	old->owns_settings = false;
	take_over(inst, p);
	return sync_all(inst, txn);
}

static int32_t ta_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	if (!inst->plan || ev->type < RP_EVENT_STARTED || ev->type > RP_EVENT_PRESSURE)
		return 0;
	int32_t r = begin(inst);
	if (r)
		return r;
	switch (ev->type) {
	case RP_EVENT_STARTED:
		return cold_started(inst, txn, ev->object);
	case RP_EVENT_TIMER:
		classes_timer(inst, ev->cookie);
		return cold_timer(inst, txn);
	case RP_EVENT_REBALANCE:
		return finish(inst, rebalance_all(inst, txn, ev->cookie));
	case RP_EVENT_PRESSURE:
		return finish(inst, rebalance_one(inst, txn, ev->object, ev->cookie));
	default:
		return finish(inst, new_machine(inst, txn));
	}
}

static int32_t ta_rolled_back(struct rp_instance *inst)
{
	if (inst->resync)
		return RP_RESYNC;
	if (inst->memory_begun)
		memalloc_drop(inst->plan->mem);
	inst->memory_begun = false;
	ledger_undo(inst);
	if (inst->plan)
		(void)finish(inst, 0);
	return 0;
}

static void ta_stop(struct rp_instance *inst)
{
	classes_stop(inst);
	irq_stop(inst->irqs);
}

static const struct rp_policy ta_policy = {
	.size = sizeof(struct rp_policy),
	.prepare = ta_prepare,
	.commit = ta_commit,
	.abort = ta_abort,
	.sync = ta_sync,
	.allocate = ta_allocate,
	.update = ta_update,
	.release = ta_release,
	.event = ta_event,
	.rolled_back = ta_rolled_back,
	.stop = ta_stop,
};

/* ---- the module ------------------------------------------------------------------------------ */

static void ta_destroy(struct rp_instance *inst)
{
	if (inst->plan && inst->memory_begun)
		memalloc_keep(inst->plan->mem);
	ledger_clear(inst);
	plan_free(inst->plan);
	table_fini(&inst->ledger.by_ctr);
	table_fini(&inst->ledger.by_pod);
	free(inst->ledger.log);
	free(inst->moved);
	ctr_list_free(&inst->list);
	ctr_list_free(&inst->order);
	cpuclass_free(inst->classes);
	irq_free(inst->irqs);
	free(inst);
}

static int32_t ta_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	int32_t r = modhost_init(&inst->h, host, MODHOST_POLICY);
	inst->h.why = inst->why;
	if (r) {
		ta_destroy(inst);
		return r;
	}
	*ret_inst = inst;
	return 0;
}

static const void *ta_service(struct rp_instance *inst, const char *id)
{
	static const struct {
		const char *id;
		const void *service;
	} services[] = {
		{RP_POLICY_1, &ta_policy}, {RP_SCHEMA_1, &ta_schema},
		{RP_ZONES_1, &ta_zones},   {RP_METRICS_1, &ta_metrics},
		{RP_STATE_1, &ta_state},   {RP_EXTENDED_1, &ta_extended},
	};
	(void)inst;
	for (size_t i = 0; i < sizeof services / sizeof services[0]; i++)
		if (strcmp(id, services[i].id) == 0)
			return services[i].service;
	return NULL;
}

RP_MODULE_DEFINE("topology-aware", "1.0", RP_KIND_POLICY,
		 .summary = "CPUs and memory close to each other, in a tree of pools",
		 .licence = "Apache-2.0", .create = ta_create, .destroy = ta_destroy,
		 .service = ta_service);
