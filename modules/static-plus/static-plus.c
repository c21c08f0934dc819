/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the static-plus policy. What the policy does is told in static-plus.h. */
#include <stdlib.h>

#include "modules/static-plus/static-plus.h"

static int32_t plus_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	struct rp_plan *p;
	int32_t r = plan_new(&inst->h, cfg, false, &p);
	if (!r)
		r = plan_check_owners(&inst->h, p, rp_ids_of(&inst->owners.taken));
	else
		return r;
	if (r)
		plan_free(p);
	else
		*ret_plan = p;
	return r;
}

static void plus_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	plan_free(inst->plan);
	inst->plan = plan;
}

static void plus_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	plan_free(plan);
}

/* Every callback that places begins here. */
static int32_t begin(struct rp_instance *inst)
{
	owners_begin(&inst->owners);
	inst->parts_before = inst->parts;
	return inst->plan ? 0 : modhost_fail(&inst->h, -RP_EAGAIN, "no configuration is in force");
}

static int32_t plus_sync(struct rp_instance *inst, rp_txn txn)
{
	int32_t r = begin(inst);
	return r ? r : sync_all(inst, txn);
}

static int32_t place(struct rp_instance *inst, rp_txn txn, const struct wish *w)
{
	struct rp_idset had, slice;
	struct record rec;
	bool known = stage_read(inst, w->info.ctr, &rec);
	uint32_t n = owners_release(&inst->owners, w->info.ctr, &had);
	int32_t r = 0;
	rp_idset_clear(&slice);
	if (w->full) {
		r = place_slice(inst, w, rp_ids_of(&had), &slice);
		owners_give(&inst->owners, rp_ids_of(r ? &had : &slice), w->info.ctr);
	}
	if (r)
		return r;
	place_explain(inst, w, rp_ids_of(&slice));
	r = stage_ctr(inst, txn, w, NULL);
	if (r || (!known && w->kind == KIND_SYSTEM))
		return r;
	if (!known && w->kind == KIND_SHARED)
		return stage_last_sharer(inst, txn, w);
	r = n > w->full ? sync_retry(inst, txn, w->info.ctr) : 0;
	return r ? r : stage_sharers(inst, txn);
}

static int32_t plus_update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct wish w;
	int32_t r = begin(inst);
	if (!r)
		r = wish_of(inst, ctr, &w);
	if (r)
		return r;
	if (w.info.flags & RP_CTR_PRESERVE_CPU) {
		modhost_note(&inst->h, ctr, "annotated to keep its CPUs: left alone");
		return 0;
	}
	return place(inst, txn, &w);
}

static int32_t plus_release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct record rec;
	struct rp_idset had;
	if (begin(inst) || !stage_read(inst, ctr, &rec))
		return 0; /* nothing was ever given */
	uint32_t n = owners_release(&inst->owners, ctr, &had);
	int32_t r = inst->h.cache->set_private(inst->h.ctx, txn, ctr, NULL, 0);
	if (!r)
		r = inst->h.cache->set_exclusive(inst->h.ctx, txn, ctr, rp_ids_none());
	if (r || (!n && stage_forget_sharer(inst, &rec)))
		return r;
	if (!r)
		r = sync_retry(inst, txn, ctr);
	return r ? r : stage_sharers(inst, txn);
}

/* It runs although it was refused: among those who share, until there is room. */
static int32_t plus_unmanaged(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct wish w;
	int32_t r = begin(inst);
	if (!r)
		r = wish_of(inst, ctr, &w);
	if (r || w.info.flags & RP_CTR_PRESERVE_CPU)
		return r;
	inst->waiting = true;
	w.part = w.info.cpu_request;
	w.kind = KIND_SHARED;
	r = stage_ctr(inst, txn, &w, "it was refused and runs all the same");
	return r ? r : stage_sharers(inst, txn);
}

static int32_t plus_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	struct rp_plan *p;
	if (ev->type != RP_EVENT_TOPOLOGY || !inst->plan)
		return 0;
	int32_t r = plan_new(&inst->h, inst->plan->section, true, &p);
	if (r)
		return r;
	plus_commit(inst, p);
	return plus_sync(inst, txn);
}

static int32_t plus_rolled_back(struct rp_instance *inst)
{
	owners_undo(&inst->owners);
	inst->parts = inst->parts_before;
	inst->waiting = true; /* perhaps */
	return 0;
}

static const struct rp_policy policy = {
	.size = sizeof(struct rp_policy),
	.prepare = plus_prepare,
	.commit = plus_commit,
	.abort = plus_abort,
	.sync = plus_sync,
	.allocate =
		plus_update, /* a lost reply makes the runtime ask again: what was given is kept */
	.update = plus_update,
	.release = plus_release,
	.event = plus_event,
	.rolled_back = plus_rolled_back,
	.unmanaged = plus_unmanaged,
};

static void plus_destroy(struct rp_instance *inst)
{
	plan_free(inst->plan);
	ctr_list_free(&inst->list);
	free(inst);
}

static int32_t plus_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	return modhost_instance(host, sizeof(struct rp_instance), MODHOST_POLICY, ret_inst);
}

static const void *plus_service(struct rp_instance *inst, const char *id)
{
	static const struct modhost_service services[] = {
		{RP_POLICY_1, &policy},
		{RP_SCHEMA_1, &plus_schema},
		{RP_ZONES_1, &plus_zones},
		{RP_METRICS_1, &plus_metrics},
		{NULL, NULL},
	};
	(void)inst;
	return modhost_service(services, id);
}

RP_MODULE_DEFINE("static-plus", "1.0", RP_KIND_POLICY,
		 .summary = "whole CPUs for whoever asks for them, the rest of a request among the "
			    "shared ones",
		 .licence = "Apache-2.0", .create = plus_create, .destroy = plus_destroy,
		 .service = plus_service);
