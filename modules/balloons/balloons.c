/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the balloons policy. balloons.h gives the overview. */
#include <stdlib.h>

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/balloons/report.h"
#include "modules/balloons/stage.h"

#define CLASSES_COOKIE 1u /* timer cookie of the CPU classes */

/* ---- configuration --------------------------------------------------------------------------- */

/* Sets *ret to the CPUs that the current plan reserves, or, before the first configuration, to the
 * CPUs that the saved image reserved. */
static void look_back(const struct rp_instance *inst, struct reserve_past *ret)
{
	if (inst->plan)
		plan_past(inst->plan, ret);
	else
		image_past(&inst->before, ret);
	ret->hotplug = inst->lenient;
}

/* Sets *ret to the CPUs for ordinary containers: the allowed CPUs without reserved CPUs and without
 * the CPUs of the reserved balloon. */
static void allocatable(const struct rp_instance *inst, struct rp_idset *ret)
{
	const struct rp_plan *p = inst->plan;
	const struct state *s = inst->state;
	rp_idset_andnot(ret, rp_ids_of(&p->allowed), rp_ids_of(&p->reserved_cpus));
	for (uint32_t i = 0; s && i < s->n; i++)
		if (s->list[i]->type == p->reserved_type)
			rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&s->list[i]->cpus));
}

static int32_t plan(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret)
{
	struct reserve_past past;
	look_back(inst, &past);
	return life_plan_new(inst, section, &past, ret);
}

static void begin(struct rp_instance *inst)
{
	inst->in_sync = false;
	inst->counters.rebalanced_before = inst->counters.rebalanced;
	inst->relief.set = inst->plan->relief;
	if (inst->state)
		state_begin(inst->state);
}

/* Creates a plan for the changed topology. */
static int32_t look(struct rp_instance *inst, struct rp_plan **ret)
{
	int32_t r = plan(inst, inst->section, ret);
	if (!r)
		(*ret)->idle_at_start = inst->plan->idle_at_start;
	return r;
}

/* Saves an image before the old plan is freed, because the state refers to that plan. */
static void leave(struct rp_instance *inst)
{
	if (inst->state && image_write(inst->state, &inst->before)) {
		bytes_reset(&inst->before); /* no part of an image is restored */
		modhost_log(&inst->h, RP_LOG_ERROR, 0,
			    "out of memory: placing all containers again");
	}
	inst->state = state_free(inst->state);
}

static void enter(struct rp_instance *inst)
{
	const struct rp_plan *p = inst->plan;
	inst->outside_ready = false;
	if (cpuclass_configure(inst->classes, &p->classes, rp_ids_of(&p->allowed)))
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "out of memory: CPU classes are not used");
}

/* ---- containers ------------------------------------------------------------------------------ */

/* Fails with -RP_EAGAIN. A failed sync() leaves no state in which containers can be placed. */
static int32_t no_state(const struct rp_instance *inst)
{
	return modhost_fail(&inst->h, -RP_EAGAIN, "no configuration is active");
}

/* Stages the changes of an operation and returns its result. Every operation ends here. */
static int32_t balloons_end(struct rp_instance *inst, rp_txn txn, int32_t r, struct member *m)
{
	if (r)
		return r;
	r = pin_changed(inst, txn, m);
	if (!r && inst->state->sets_changed)
		r = sync_follow(inst, txn);
	return r ? modhost_fail(&inst->h, r, "CPUs and memory of balloons cannot be set") : 0;
}

static int32_t balloons_place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
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
	r = relief_at_admission(inst, txn, m);
	relief_arm(&inst->h, &inst->relief);
	if (!r)
		r = pin_record(inst, txn, m);
	bool created = info->state == RP_STATE_CREATING && !m->claim;
	if (!r && created)
		r = pin_scheduling(inst, txn, info->ctr, c.type);
	r = balloons_end(inst, txn, r, m);
	return r || !created ? r
			     : mempolicy_stage(&inst->h, txn, info->ctr, &inst->plan->mempolicies,
					       c.type->mempolicy);
}

static int32_t balloons_resize(struct rp_instance *inst, rp_txn txn, struct member *m,
			       const struct rp_ctr_info *info)
{
	struct state *s = inst->state;
	struct balloon *b = m->balloon;
	const char *why = "";
	int64_t was = m->request;
	if (was == ctr_counted_cpu(info) && m->mem_limit == info->mem_limit)
		return 0;
	int32_t r = state_set_request(s, m, ctr_counted_cpu(info), info->mem_limit);
	int64_t want = b->request > 0 ? b->request : 1;
	/* A shrinking member is handled like a leaving one, a growing member like a joining one. */
	if (!r && ctr_counted_cpu(info) < was)
		r = balloon_shrink(s, b, &why);
	else if (!r && balloon_avail(b) < want)
		r = balloon_resize(s, b, want, &why);
	if (!r && ctr_counted_cpu(info) > was && balloon_avail(b) < want) {
		r = -RP_ENOSPC;
		why = "maxCPUs";
	}
	if (r) {
		inst->counters.refused++;
		return modhost_fail(&inst->h, r, "%s[%u] cannot be resized to %lldm: %s",
				    b->type->name, b->instance, (long long)want, why);
	}
	modhost_note(&inst->h, info->ctr, "resized to %lldm: %s[%u] has %u CPUs",
		     (long long)ctr_counted_cpu(info), b->type->name, b->instance,
		     rp_ids_count(rp_ids_of(&b->cpus)));
	return balloons_end(inst, txn, sync_retry(inst, txn), m);
}

static int32_t balloons_update(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	if (!inst->state)
		return no_state(inst);
	struct member *m = state_member(inst->state, info->ctr);
	/* A waiting container may fit with a smaller request. */
	return m ? balloons_resize(inst, txn, m, info)
		 : balloons_end(inst, txn, sync_retry(inst, txn), NULL);
}

static int32_t balloons_allocate(struct rp_instance *inst, rp_txn txn,
				 const struct rp_ctr_info *info)
{
	if (!inst->state)
		return no_state(inst);
	if (choose_untouched(inst, info))
		return pin_leave(inst, txn, info->ctr);
	/* After a lost reply the runtime repeats the request: keep the existing placement. */
	struct member *m = state_member(inst->state, info->ctr);
	return m ? balloons_resize(inst, txn, m, info) : balloons_place(inst, txn, info);
}

static int32_t unmanaged(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	/* The container may run unmanaged without a state. The next sync() finds it by its
	 * record. */
	if (!inst->state)
		return pin_record_roaming(inst, txn, info->ctr);
	if (choose_untouched(inst, info))
		return 0;
	int32_t r = sync_roam(inst, txn, info->ctr);
	return r ? r : pin_changed(inst, txn, NULL);
}

static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const char *why = "";
	if (!inst->state)
		return 0;
	sync_forget(inst, info->ctr);
	struct member *m = state_member(inst->state, info->ctr);
	if (!m)
		return balloons_end(inst, txn, 0, NULL);
	struct balloon *b = m->balloon;
	state_leave(inst->state, m);
	int32_t r = balloon_shrink(inst->state, b, &why);
	if (r)
		return modhost_fail(&inst->h, r, "%s[%u] cannot be shrunk: %s", b->type->name,
				    b->instance, why);
	relief_arm(&inst->h, &inst->relief);
	return balloons_end(inst, txn, sync_retry(inst, txn), NULL);
}

static int32_t rebalance(struct rp_instance *inst, rp_txn txn, uint64_t budget)
{
	if (!inst->state)
		return no_state(inst);
	int32_t n = relief_help_waiting(inst, txn, budget);
	if (n < 0 || (budget && (uint64_t)n >= budget))
		return balloons_end(inst, txn, n < 0 ? n : 0, NULL);
	uint64_t left = budget ? budget - (uint64_t)n : 0;
	return balloons_end(inst, txn, rebalance_all(inst, txn, left), NULL);
}

static int32_t pressure(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint64_t lacks)
{
	return inst->state ? balloons_end(inst, txn, rebalance_one(inst, txn, ctr, lacks), NULL)
			   : no_state(inst);
}

static int32_t timer(struct rp_instance *inst, rp_txn txn, uint64_t cookie)
{
	if (cookie == RELIEF_COOKIE && inst->state) {
		int32_t n = relief_help_waiting(inst, txn, 0);
		return n > 0 ? balloons_end(inst, txn, 0, NULL) : n;
	}
	cpuclass_timer(inst->classes, cookie);
	return 0;
}

static int32_t rolled_back(struct rp_instance *inst)
{
	inst->counters.rebalanced = inst->counters.rebalanced_before;
	/* The image that sync() restores from still exists, so the state can be rebuilt. */
	if (inst->in_sync)
		inst->state = state_free(inst->state);
	return inst->state && state_undo(inst->state) ? 0 : RP_RESYNC;
}

static int32_t claim(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     const char *device)
{
	if (!inst->state)
		return no_state(inst);
	inst->claimed = claims_type(inst->plan, device);
	if (!inst->claimed)
		return modhost_fail(&inst->h, -RP_ENOENT, "this node has no device %s", device);
	int32_t r = balloons_place(inst, txn, info);
	inst->claimed = NULL;
	return r;
}

/* ---- module definition ----------------------------------------------------------------------- */

static int32_t init(struct rp_instance *inst)
{
	inst->classes = cpuclass_new(&inst->h);
	if (!inst->classes)
		return modhost_no_memory(&inst->h);
	cpuclass_retry(inst->classes, CLASSES_COOKIE, NULL, NULL);
	return 0;
}

static void stop(struct rp_instance *inst)
{
	cpuclass_stop(inst->classes);
	irq_stop(inst->irq);
}

static void fini(struct rp_instance *inst)
{
	state_free(inst->state);
	cpuclass_free(inst->classes);
	irq_free(inst->irq);
	free(inst->image.data);
	free(inst->before.data);
	free(inst->unplaced);
}

static const struct life_ops ops = {
	.part = &isolation_part,
	.isolation = offsetof(struct rp_plan, isolation),
	.own_interrupts = true,
	.sees_preserved = true,
	.init = init,
	.plan = plan,
	.look = look,
	.plan_size = sizeof(struct rp_plan),
	.fill = plan_fill,
	.plan_fini = plan_fini,
	.leave = leave,
	.enter = enter,
	.begin = begin,
	.sync = sync_all,
	.place = balloons_allocate,
	.resize = balloons_update,
	.release = release,
	.unmanaged = unmanaged,
	.rebalance = rebalance,
	.pressure = pressure,
	.timer = timer,
	.rolled_back = rolled_back,
	.done = outside_follow,
	.allocatable = allocatable,
	.devices = claims_devices,
	.claim = claim,
	.stop = stop,
	.fini = fini,
	.schema = &balloons_schema,
	.zones = &balloons_zones,
	.metrics = &balloons_metrics,
	.relief = offsetof(struct rp_instance, relief),
	.state = &balloons_state,
	.extended = &balloons_extended,
};

/* The policy uses groups that share CPUs, which need this minor version. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
LIFE_MODULE("balloons", "1.0", ops,
	    .summary = "balloons: sets of CPUs shared by containers and sized by their requests",
	    .licence = "Apache-2.0");
