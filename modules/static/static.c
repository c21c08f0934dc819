/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the static policy. What the policy does is told in static.h. */
#include <stdlib.h>
#include <string.h>

#include "modules/static/static.h"

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static void look_back(const struct rp_instance *inst, struct reserve_past *ret)
{
	plan_past(inst->plan, ret);
	ret->busy = inst->owners.taken;
}

static int32_t static_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	struct settings s;
	int32_t r = settings_read(&inst->h, cfg, &s);
	if (r)
		return r;
	const struct rp_plan *old = inst->plan;
	struct rp_plan *p;
	struct reserve_past past;
	if (old) {
		look_back(inst, &past);
	} else {
		int32_t n =
			ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED); /* may move the list */
		r = reserve_first(&inst->h, inst->list.ctrs, n, &inst->remembered, &past);
	}
	if (!r)
		r = plan_new(&inst->h, &s, &past, &p);
	if (r)
		return r;
	if (old)
		r = plan_check_owners(&inst->h, p, old, &inst->owners);
	if (r) {
		plan_free(p);
		return r;
	}
	*ret_plan = p;
	return 0;
}

static void static_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	plan_free(inst->plan);
	inst->plan = plan;
}

static void static_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	plan_free(plan);
}

/* ---- containers -------------------------------------------------------------------------------------------------- */

/* Every callback that places begins here. */
static int32_t begin(struct rp_instance *inst)
{
	owners_begin(&inst->owners);
	return inst->plan ? 0 : modhost_fail(&inst->h, -RP_EAGAIN, "no configuration is in force");
}

/* Moves the containers that share when the CPUs for that are others than before. */
static int32_t follow(struct rp_instance *inst, rp_txn txn, const struct rp_idset *before,
		      rp_ctr except)
{
	struct rp_idset now;
	plan_shared(inst->plan, &inst->owners, &now);
	if (rp_ids_equal(rp_ids_of(before), rp_ids_of(&now)) || rp_ids_empty(rp_ids_of(&now)))
		return 0;
	return stage_sharers(inst, txn, rp_ids_of(&now), except);
}

static int32_t share(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset shared;
	plan_shared(inst->plan, &inst->owners, &shared);
	if (rp_ids_empty(rp_ids_of(&shared)))
		return modhost_fail(&inst->h, -RP_ENOSPC, SHARED_EMPTY_TEXT);
	place_explain_shared(inst, info);
	int32_t r = stage_shared(inst, txn, info, rp_ids_of(&shared));
	return r ? r : stage_degraded(inst, txn, info->ctr, NULL);
}

static int32_t give(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		    const struct placing *p)
{
	struct rp_idset had;
	(void)owners_release(&inst->owners, info->ctr, &had);
	owners_give(&inst->owners, rp_ids_of(&p->cpus), info->ctr);
	place_explain(inst, info, p);
	return stage_exclusive(inst, txn, info, rp_ids_of(&p->cpus));
}

/* Places a container that has `own` CPUs (none when it is new) by what it asks for now. */
static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     const struct rp_idset *own)
{
	struct placing p;
	int64_t n = place_wanted(info);
	int has = !rp_ids_empty(rp_ids_of(own));
	if (!n) {
		struct rp_idset had;
		(void)owners_release(&inst->owners, info->ctr, &had);
		return share(inst, txn, info);
	}
	if (has ? place_resize(inst, info->ctr, rp_ids_of(own), n, &p)
		: place_find(inst, info->ctr, n, &p)) {
		inst->counters.refused++;
		inst->waiting = 1;
		return modhost_fail(&inst->h, -RP_ENOSPC, "%s", p.text);
	}
	inst->counters.placed++;
	return give(inst, txn, info, &p);
}

static int32_t static_update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info;
	struct rp_idset before, own;
	int32_t r = begin(inst);
	if (!r)
		r = ctr_info(&inst->h, ctr, &info);
	if (r)
		return r;
	if (info.flags & RP_CTR_PRESERVE_CPU) {
		modhost_note(&inst->h, ctr, "annotated to keep its CPUs: left alone");
		return 0;
	}
	plan_shared(inst->plan, &inst->owners, &before);
	uint32_t n_own = owners_owned(&inst->owners, ctr, &own);
	r = place(inst, txn, &info, &own);
	if (!r && n_own > place_wanted(&info))
		r = sync_retry(inst, txn, ctr);
	return r ? r : follow(inst, txn, &before, ctr);
}

/* A lost reply makes the runtime ask again: what was given then is kept, as in an update that changes nothing. */
static int32_t static_allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return static_update(inst, txn, ctr);
}

static int32_t static_release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_idset before, had;
	int32_t r = begin(inst);
	if (r)
		return 0; /* nothing was ever given */
	plan_shared(inst->plan, &inst->owners, &before);
	if (!owners_release(&inst->owners, ctr, &had))
		return 0;
	r = sync_retry(inst, txn, ctr);
	return r ? r : follow(inst, txn, &before, ctr);
}

static int32_t static_sync(struct rp_instance *inst, rp_txn txn)
{
	int32_t r = begin(inst);
	return r ? r : sync_all(inst, txn);
}

static int32_t static_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	if (ev->type != RP_EVENT_TOPOLOGY || !inst->plan)
		return 0;
	struct rp_plan *p;
	struct reserve_past past;
	look_back(inst, &past);
	past.hotplug = true;
	int32_t r = plan_new(&inst->h, &inst->plan->settings, &past, &p);
	if (r)
		return r;
	static_commit(inst, p);
	return static_sync(inst, txn);
}

static int32_t static_rolled_back(struct rp_instance *inst)
{
	owners_undo(&inst->owners);
	inst->waiting = 1; /* perhaps */
	return 0;
}

static const struct rp_policy static_policy = {
	.size = sizeof(struct rp_policy),
	.prepare = static_prepare,
	.commit = static_commit,
	.abort = static_abort,
	.sync = static_sync,
	.allocate = static_allocate,
	.update = static_update,
	.release = static_release,
	.event = static_event,
	.rolled_back = static_rolled_back,
};

/* ---- the module -------------------------------------------------------------------------------------------------- */

static void static_destroy(struct rp_instance *inst)
{
	plan_free(inst->plan);
	ctr_list_free(&inst->list);
	free(inst->entries);
	free(inst);
}

static int32_t static_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	return modhost_instance(host, sizeof(struct rp_instance), MODHOST_POLICY, ret_inst);
}

static const void *static_service(struct rp_instance *inst, const char *id)
{
	static const struct modhost_service services[] = {
		{RP_POLICY_1, &static_policy}, {RP_SCHEMA_1, &static_schema},
		{RP_ZONES_1, &static_zones},   {RP_METRICS_1, &static_metrics},
		{RP_STATE_1, &static_state},   {NULL, NULL},
	};
	(void)inst;
	return modhost_service(services, id);
}

RP_MODULE_DEFINE(
	"static", "1.0", RP_KIND_POLICY,
	.summary = "exclusive CPUs for Guaranteed pods, as the kubelet's static CPU manager",
	.licence = "Apache-2.0", .create = static_create, .destroy = static_destroy,
	.service = static_service);
