/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the balloons policy. What the policy does is told in balloons.h. */
#include <stdlib.h>
#include <string.h>

#include "modules/balloons/balloons.h"

#define CLASSES_COOKIE 1u /* timer */

/* ---- configuration --------------------------------------------------------------------------- */

/* What was reserved: now, or, before the first configuration, when the state was saved. */
static void look_back(const struct rp_instance *inst, struct reserve_past *ret)
{
	if (inst->plan)
		plan_past(inst->plan, ret);
	else
		image_past(&inst->before, ret);
}

static int32_t balloons_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	struct reserve_past past;
	look_back(inst, &past);
	return plan_new(&inst->h, cfg, &past, ret_plan);
}

static void use_plan(struct rp_instance *inst, struct rp_plan *plan)
{
	/* The state is about the old plan: what is needed of it outlives that as an image. */
	if (inst->state && image_write(inst->state, &inst->before))
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "out of memory: containers are placed anew");
	inst->state = state_free(inst->state);
	plan_free(inst->plan);
	inst->plan = plan;
	inst->outside_ready = false;
	if (cpuclass_configure(inst->classes, &plan->classes, rp_ids_of(&plan->allowed)))
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "out of memory: CPU classes are not used");
}

static void balloons_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	use_plan(inst, plan);
}

static void balloons_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	plan_free(plan);
}

/* ---- containers ------------------------------------------------------------------------------ */

static int32_t begin(struct rp_instance *inst)
{
	inst->in_sync = false;
	if (!inst->plan || !inst->state)
		return modhost_fail(&inst->h, -RP_EAGAIN, "no configuration is in force");
	state_begin(inst->state);
	return 0;
}

/* Every operation ends here. */
static int32_t end(struct rp_instance *inst, rp_txn txn, int32_t r, struct member *m)
{
	if (r)
		return r;
	r = pin_changed(inst, txn, m);
	if (!r && inst->state->sets_changed)
		r = sync_follow(inst, txn);
	if (r)
		return modhost_fail(&inst->h, r, "CPUs and memory of balloons can not be set");
	outside_follow(inst);
	return 0;
}

static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct choice c;
	int32_t r = choose_type(inst, info, &c);
	if (!r)
		r = choose_balloon(inst, info, &c);
	if (!r)
		r = choose_join(inst, info, &c);
	if (r) {
		inst->counters.refused++;
		return modhost_fail(&inst->h, r, "%s", c.error);
	}
	inst->counters.placed++;
	report_placed(inst, info, &c);
	struct member *m = state_member(inst->state, info->ctr);
	r = pin_record(inst, txn, m);
	if (!r && info->state == RP_STATE_CREATING)
		r = pin_scheduling(inst, txn, info->ctr, c.type);
	return end(inst, txn, r, m);
}

static int32_t resize(struct rp_instance *inst, rp_txn txn, struct member *m,
		      const struct rp_ctr_info *info)
{
	struct state *s = inst->state;
	struct balloon *b = m->balloon;
	const char *why = "";
	int64_t was = m->request;
	if (was == info->cpu_request && m->mem_limit == info->mem_limit)
		return 0;
	int32_t r = state_set_request(s, m, info->cpu_request, info->mem_limit);
	int64_t want = b->request > 0 ? b->request : 1;
	/* As if it had left, or as if another one had joined. */
	if (!r && info->cpu_request < was)
		r = balloon_shrink(s, b, &why);
	else if (!r && balloon_avail(b) < want)
		r = balloon_resize(s, b, want, &why);
	if (!r && info->cpu_request > was && balloon_avail(b) < want) {
		r = -RP_ENOSPC;
		why = "maxCPUs";
	}
	if (r) {
		inst->counters.refused++;
		return modhost_fail(&inst->h, r, "%s[%u] can not be resized to %lldm: %s",
				    b->type->name, b->instance, (long long)want, why);
	}
	modhost_note(&inst->h, info->ctr, "resized to %lldm: %s[%u] has %u CPUs",
		     (long long)info->cpu_request, b->type->name, b->instance,
		     rp_ids_count(rp_ids_of(&b->cpus)));
	return end(inst, txn, sync_retry(inst, txn), m);
}

static int32_t balloons_update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info;
	int32_t r = begin(inst);
	if (!r)
		r = ctr_info(&inst->h, ctr, &info);
	if (r)
		return r;
	struct member *m = state_member(inst->state, ctr);
	/* One that waits may have a place with less. */
	return m ? resize(inst, txn, m, &info) : end(inst, txn, sync_retry(inst, txn), NULL);
}

static int32_t balloons_allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info;
	int32_t r = begin(inst);
	if (!r)
		r = ctr_info(&inst->h, ctr, &info);
	if (r)
		return r;
	if (choose_untouched(inst, &info))
		return 0;
	/* A lost reply makes the runtime ask again: what was given then is kept. */
	struct member *m = state_member(inst->state, ctr);
	return m ? resize(inst, txn, m, &info) : place(inst, txn, &info);
}

static int32_t balloons_unmanaged(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	/* It may run all the same; the next sync() finds it by its record. */
	if (!inst->plan || !inst->state)
		return pin_record_roaming(inst, txn, ctr);
	struct rp_ctr_info info;
	int32_t r = begin(inst);
	if (!r)
		r = ctr_info(&inst->h, ctr, &info);
	if (r || choose_untouched(inst, &info))
		return r;
	r = sync_roam(inst, txn, ctr);
	return r ? r : pin_changed(inst, txn, NULL);
}

static int32_t balloons_release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const char *why = "";
	if (begin(inst))
		return 0; /* nothing was ever given */
	sync_forget(inst, ctr);
	struct member *m = state_member(inst->state, ctr);
	if (!m)
		return end(inst, txn, 0, NULL);
	struct balloon *b = m->balloon;
	state_leave(inst->state, m);
	int32_t r = balloon_shrink(inst->state, b, &why);
	if (r)
		return modhost_fail(&inst->h, r, "%s[%u] can not be shrunk: %s", b->type->name,
				    b->instance, why);
	return end(inst, txn, sync_retry(inst, txn), NULL);
}

static int32_t balloons_sync(struct rp_instance *inst, rp_txn txn)
{
	inst->in_sync = true;
	if (!inst->plan)
		return modhost_fail(&inst->h, -RP_EAGAIN, "no configuration is in force");
	int32_t r = sync_all(inst, txn);
	if (!r)
		outside_follow(inst);
	return r;
}

static int32_t use_new_machine(struct rp_instance *inst, rp_txn txn)
{
	struct rp_plan *p;
	struct reserve_past past;
	/* Without a new plan the state stays, and of what came before nothing is taken back. */
	inst->in_sync = false;
	if (inst->state)
		state_begin(inst->state);
	look_back(inst, &past);
	past.hotplug = true;
	int32_t r = plan_new(&inst->h, inst->plan->section, &past, &p);
	if (r)
		return r;
	p->idle_at_start = inst->plan->idle_at_start;
	use_plan(inst, p);
	return balloons_sync(inst, txn);
}

static int32_t balloons_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	if (!inst->plan)
		return 0;
	if (ev->type == RP_EVENT_TOPOLOGY)
		return use_new_machine(inst, txn);
	if (ev->type == RP_EVENT_TIMER)
		cpuclass_timer(inst->classes, ev->cookie);
	if (ev->type != RP_EVENT_REBALANCE && ev->type != RP_EVENT_PRESSURE)
		return 0;
	int32_t r = begin(inst);
	if (!r)
		r = ev->type == RP_EVENT_REBALANCE
			    ? rebalance_all(inst, txn, ev->cookie)
			    : rebalance_one(inst, txn, ev->object, ev->cookie);
	return end(inst, txn, r, NULL);
}

static int32_t balloons_rolled_back(struct rp_instance *inst)
{
	/* What sync() was to restore is still there. */
	if (inst->in_sync)
		inst->state = state_free(inst->state);
	if (!inst->state || !state_undo(inst->state))
		return RP_RESYNC;
	outside_follow(inst);
	return 0;
}

static void balloons_stop(struct rp_instance *inst)
{
	cpuclass_stop(inst->classes);
	irq_stop(inst->irq);
}

static const struct rp_policy balloons_policy = {
	.size = sizeof(struct rp_policy),
	.prepare = balloons_prepare,
	.commit = balloons_commit,
	.abort = balloons_abort,
	.sync = balloons_sync,
	.allocate = balloons_allocate,
	.update = balloons_update,
	.release = balloons_release,
	.event = balloons_event,
	.rolled_back = balloons_rolled_back,
	.stop = balloons_stop,
	.unmanaged = balloons_unmanaged,
};

/* ---- the module ------------------------------------------------------------------------------ */

static void balloons_destroy(struct rp_instance *inst)
{
	state_free(inst->state);
	plan_free(inst->plan);
	cpuclass_free(inst->classes);
	irq_free(inst->irq);
	free(inst->image.data);
	free(inst->before.data);
	ctr_list_free(&inst->list);
	free(inst->waiting);
	free(inst);
}

static int32_t balloons_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	int32_t r = modhost_init(&inst->h, host, MODHOST_POLICY);
	if (!r) {
		inst->classes = cpuclass_new(&inst->h);
		inst->irq = irq_new(&inst->h);
		if (!inst->classes || !inst->irq)
			r = modhost_no_memory(&inst->h);
		else
			cpuclass_retry(inst->classes, CLASSES_COOKIE, NULL, NULL);
	}
	if (r) {
		balloons_destroy(inst);
		return r;
	}
	*ret_inst = inst;
	return 0;
}

static const void *balloons_service(struct rp_instance *inst, const char *id)
{
	static const struct {
		const char *id;
		const void *service;
	} services[] = {
		{RP_POLICY_1, &balloons_policy}, {RP_SCHEMA_1, &balloons_schema},
		{RP_ZONES_1, &balloons_zones},	 {RP_METRICS_1, &balloons_metrics},
		{RP_STATE_1, &balloons_state},	 {RP_EXTENDED_1, &balloons_extended},
	};
	(void)inst;
	for (size_t i = 0; i < sizeof services / sizeof services[0]; i++)
		if (strcmp(id, services[i].id) == 0)
			return services[i].service;
	return NULL;
}

/* Groups that share CPUs. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
RP_MODULE_DEFINE("balloons", "1.0", RP_KIND_POLICY,
		 .summary = "containers share balloons, sets of CPUs that follow their requests",
		 .licence = "Apache-2.0", .create = balloons_create, .destroy = balloons_destroy,
		 .service = balloons_service);
