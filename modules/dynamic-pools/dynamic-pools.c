/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the dynamic-pools policy. What the policy does is told in dynamic-pools.h. */
#include <stdlib.h>
#include <string.h>

#include "modules/dynamic-pools/dynamic-pools.h"

/* ---- configurations and what there was before ------------------------------------------------------------------------ */

static int32_t save(struct rp_instance *inst)
{
	const struct rp_plan *p = inst->plan;
	int32_t r = 0;
	if (!p)
		return 0; /* what was loaded, if anything was */
	pools_save_begin(&inst->saved);
	for (uint32_t i = 0; !r && i < p->n; i++)
		r = pools_save(&inst->h, &inst->saved, p->types[i].name, p->pools[i].weight,
			       rp_ids_of(&p->pools[i].cpus));
	return r;
}

static int32_t prepare(struct rp_instance *inst, rp_cfg cfg, bool hotplug, struct rp_plan **ret)
{
	struct reserve_past past = {.hotplug = hotplug};
	struct pools_named had;
	uint32_t at = 0;
	int32_t r = save(inst);
	while (!r && pools_saved_next(&inst->saved, &at, &had))
		if (strcmp(had.name, pool_names[POOL_RESERVED]) == 0)
			past.cpus = had.cpus;
	return r ? r : plan_new(&inst->h, cfg, &past, ret);
}

static int32_t dynpools_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	return prepare(inst, cfg, false, ret_plan);
}

static void dynpools_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	struct pools_named had;
	uint32_t at = 0;
	while (pools_saved_next(&inst->saved, &at, &had))
		plan_carry(plan, &had);
	plan_free(inst->plan);
	inst->plan = plan;
}

static void dynpools_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	plan_free(plan);
}

/* Every callback that places begins here. */
static int32_t begin(struct rp_instance *inst)
{
	struct rp_plan *p = inst->plan;
	inst->in_sync = false;
	if (!p)
		return modhost_fail(&inst->h, -RP_EAGAIN, "no configuration is in force");
	memcpy(p->before, p->pools, p->n * sizeof *p->pools);
	return 0;
}

static bool is_left_alone(const struct rp_ctr_info *info)
{
	return (info->flags & RP_CTR_PRESERVE_CPU) != 0;
}

static void explain(const struct rp_instance *inst, const struct rp_ctr_info *info, uint32_t pool,
		    const char *why)
{
	const struct pool_type *t = &inst->plan->types[pool];
	modhost_decided_by(&inst->h, info->ctr, t->at, "pool %s: %s", t->name, why);
}

/* The pools have their sizes; who is in one that has changed gets its CPUs. `except` gets them otherwise. */
static int32_t resize(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	uint64_t changed = size_change(inst->plan);
	if (!changed)
		return 0;
	inst->resized++;
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), r = n < 0 ? n : 0;
	for (int32_t i = 0; !r && i < n; i++) {
		rp_ctr ctr = inst->list.ctrs[i];
		struct rp_ctr_info info;
		struct record rec;
		if (ctr == except || !place_record(inst, ctr, &rec) || !(changed >> rec.pool & 1))
			continue;
		r = ctr_info(&inst->h, ctr, &info);
		if (!r)
			r = place_stage(inst, txn, &info);
	}
	return r;
}

/* ---- everything at once ---------------------------------------------------------------------------------------------- */

/* Calls `each` for the containers of the list; one that it returns 1 for is not looked at again. */
static int32_t walk(struct rp_instance *inst, rp_txn txn, int32_t n,
		    int32_t (*each)(struct rp_instance *, rp_txn, const struct rp_ctr_info *))
{
	int32_t r = n < 0 ? n : 0;
	for (int32_t i = 0; r >= 0 && i < n; i++) {
		struct rp_ctr_info info;
		rp_ctr ctr = inst->list.ctrs[i];
		if (!ctr)
			continue;
		r = ctr_info(&inst->h, ctr, &info);
		if (r || is_left_alone(&info))
			continue;
		r = each(inst, txn, &info);
		if (r > 0)
			inst->list.ctrs[i] = 0;
	}
	return r < 0 ? r : 0;
}

static int32_t count(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	uint32_t pool;
	const char *why;
	(void)txn;
	int32_t r = place_choose(inst, info, false, &pool, &why);
	if (r)
		return r;
	inst->plan->pools[pool].n_ctrs++;
	inst->plan->pools[pool].mcpu += info->cpu_request > 0 ? info->cpu_request : 0;
	return 0;
}

static void forget_counts(struct rp_plan *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		p->pools[i].n_ctrs = 0, p->pools[i].mcpu = 0;
}

static int32_t join_if_room(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			    bool *ret_joined)
{
	uint32_t pool;
	const char *why;
	struct record was, now;
	bool known = place_record(inst, info->ctr, &was);
	int32_t r = place_choose(inst, info, false, &pool, &why);
	if (!r)
		r = place_join(inst, txn, info, pool, false);
	*ret_joined = size_fits(inst->plan);
	if (!r && *ret_joined)
		explain(inst, info, pool, why);
	if (r || *ret_joined || !place_record(inst, info->ctr, &now))
		return r;
	place_leave(inst, &now);
	return inst->h.cache->set_private(inst->h.ctx, txn, info->ctr, known ? &was : NULL,
					  known ? sizeof was : 0);
}

/* Those that had room before have it first. */
static int32_t keep(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct record rec;
	bool joined;
	if (!place_record(inst, info->ctr, &rec) || rec.overflows)
		return 0;
	int32_t r = join_if_room(inst, txn, info, &joined);
	return r ? r : joined;
}

static int32_t join_or_overflow(struct rp_instance *inst, rp_txn txn,
				const struct rp_ctr_info *info)
{
	bool joined;
	int32_t r = join_if_room(inst, txn, info, &joined);
	if (r || joined)
		return r;
	explain(inst, info, POOL_SHARED, "there are not enough CPUs for the pool that it is for");
	return place_join(inst, txn, info, POOL_SHARED, true);
}

/* Where not all of them fit, shared keeps a CPU for those that do not. */
static int32_t dynpools_sync(struct rp_instance *inst, rp_txn txn)
{
	int32_t r = begin(inst);
	if (r)
		return r;
	struct pool *shared = &inst->plan->pools[POOL_SHARED];
	inst->in_sync = true;
	inst->waiting = false;
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_SYNC);
	forget_counts(inst->plan);
	r = walk(inst, txn, n, count);
	bool all_fit = size_fits(inst->plan);
	forget_counts(inst->plan);
	shared->n_ctrs = !all_fit;
	if (!r && !all_fit)
		r = walk(inst, txn, n, keep);
	if (!r)
		r = walk(inst, txn, n, join_or_overflow);
	shared->n_ctrs -= !all_fit;
	(void)size_change(inst->plan);
	if (!r)
		n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED);
	return r ? r : walk(inst, txn, n, place_stage);
}

static int32_t retry_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct record rec;
	bool joined;
	if (!place_record(inst, info->ctr, &rec) || !rec.overflows)
		return 0;
	int32_t r = join_if_room(inst, txn, info, &joined);
	inst->waiting = inst->waiting || !joined;
	if (r || !joined)
		return r;
	place_leave(inst, &rec);
	return place_stage(inst, txn, info);
}

/* CPUs have come free: those that were waiting for some get them. */
static int32_t retry(struct rp_instance *inst, rp_txn txn)
{
	if (!inst->waiting)
		return 0;
	inst->waiting = false;
	return walk(inst, txn, ctr_list(&inst->h, &inst->list, RP_ORDER_SYNC), retry_one);
}

/* ---- one container --------------------------------------------------------------------------------------------------------- */

static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	uint32_t pool;
	const char *why;
	struct record rec;
	bool known = place_record(inst, info->ctr, &rec);
	int32_t r = place_choose(inst, info, !known, &pool, &why);
	if (r)
		return r;
	if (known)
		place_leave(inst, &rec);
	r = place_join(inst, txn, info, pool, false);
	if (r)
		return r;
	if (!size_fits(inst->plan)) {
		inst->refused++;
		return modhost_fail(&inst->h, -RP_ENOSPC, "not enough CPUs");
	}
	inst->placed++;
	explain(inst, info, pool, why);
	if (known)
		r = retry(inst, txn);
	if (!r)
		r = resize(inst, txn, info->ctr);
	return r ? r : place_stage(inst, txn, info);
}

static int32_t dynpools_update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info;
	int32_t r = begin(inst);
	if (!r)
		r = ctr_info(&inst->h, ctr, &info);
	if (r)
		return r;
	if (!is_left_alone(&info))
		return place(inst, txn, &info);
	modhost_note(&inst->h, ctr, "annotated to keep its CPUs: left alone");
	return 0;
}

static int32_t dynpools_release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	struct record rec;
	if (begin(inst) || !place_record(inst, ctr, &rec))
		return 0;
	place_leave(inst, &rec);
	int32_t r = h->cache->set_exclusive(h->ctx, txn, ctr, rp_ids_none());
	if (!r)
		r = h->cache->set_private(h->ctx, txn, ctr, NULL, 0);
	if (!r)
		r = retry(inst, txn);
	return r ? r : resize(inst, txn, ctr);
}

/* It runs although it was refused: in shared, if that can have a CPU. */
static int32_t dynpools_unmanaged(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info;
	int32_t r = begin(inst);
	if (!r)
		r = ctr_info(&inst->h, ctr, &info);
	if (r || is_left_alone(&info))
		return r;
	r = place_join(inst, txn, &info, POOL_SHARED, true);
	if (r)
		return r;
	if (!size_fits(inst->plan))
		return modhost_fail(&inst->h, -RP_ENOSPC, "not enough CPUs");
	r = resize(inst, txn, ctr);
	return r ? r : place_stage(inst, txn, &info);
}

/* ---- events ------------------------------------------------------------------------------------------------------------------ */

/* How much the containers of each pool have used since the last measurement but one. */
static int32_t weigh(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_usage usage = {.size = sizeof usage};
	struct record rec;
	(void)txn;
	if (inst->usage && place_record(inst, info->ctr, &rec) &&
	    inst->usage->get(inst->h.ctx, info->ctr, &usage) == 0 && usage.cpu > 0)
		inst->plan->pools[rec.pool].weight += usage.cpu;
	return 0;
}

static int32_t rebalance(struct rp_instance *inst, rp_txn txn)
{
	int32_t r = begin(inst);
	for (uint32_t i = 0; !r && i < inst->plan->n; i++)
		inst->plan->pools[i].weight = 0;
	if (!r)
		r = walk(inst, txn, ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), weigh);
	return r ? r : resize(inst, txn, 0);
}

static int32_t new_machine(struct rp_instance *inst, rp_txn txn)
{
	struct rp_plan *p;
	int32_t r = prepare(inst, inst->plan->bounds.section, true, &p);
	if (r)
		return r;
	dynpools_commit(inst, p);
	return dynpools_sync(inst, txn);
}

static int32_t dynpools_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	if (!inst->plan)
		return 0;
	if (ev->type == RP_EVENT_TOPOLOGY)
		return new_machine(inst, txn);
	return ev->type == RP_EVENT_REBALANCE ? rebalance(inst, txn) : 0;
}

static int32_t dynpools_rolled_back(struct rp_instance *inst)
{
	struct rp_plan *p = inst->plan;
	inst->waiting = true; /* perhaps */
	if (!p || inst->in_sync)
		return p ? RP_RESYNC : 0;
	memcpy(p->pools, p->before, p->n * sizeof *p->pools);
	return 0;
}

static int32_t dynpools_save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	int32_t r = save(inst);
	*ret_data = inst->saved.bytes;
	*ret_size = inst->saved.size;
	return r;
}

static int32_t dynpools_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	struct rp_plan *too_early = inst->plan, *p;
	int32_t r = pools_load(&inst->h, &inst->saved, data, size);
	if (r || !too_early)
		return r;
	inst->plan = NULL;
	r = prepare(inst, too_early->bounds.section, false, &p);
	inst->plan = too_early;
	if (!r)
		dynpools_commit(inst, p);
	return r;
}

static const struct rp_state state = {
	.size = sizeof(struct rp_state), .save = dynpools_save, .load = dynpools_load};

static const struct rp_policy policy = {
	.size = sizeof(struct rp_policy),
	.prepare = dynpools_prepare,
	.commit = dynpools_commit,
	.abort = dynpools_abort,
	.sync = dynpools_sync,
	.allocate = dynpools_update, /* of one that is known, as a reply was lost: the same again */
	.update = dynpools_update,
	.release = dynpools_release,
	.event = dynpools_event,
	.rolled_back = dynpools_rolled_back,
	.unmanaged = dynpools_unmanaged,
};

static void dynpools_destroy(struct rp_instance *inst)
{
	plan_free(inst->plan);
	ctr_list_free(&inst->list);
	free(inst->saved.bytes);
	free(inst);
}

static int32_t dynpools_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	int32_t r = modhost_instance(host, sizeof(struct rp_instance), MODHOST_POLICY, ret_inst);
	if (!r)
		(*ret_inst)->usage = host->service(host->ctx, RP_HOST_USAGE_1);
	return r;
}

static const void *dynpools_service(struct rp_instance *inst, const char *id)
{
	static const struct modhost_service services[] = {
		{RP_POLICY_1, &policy},	       {RP_SCHEMA_1, &dynpools_schema},
		{RP_ZONES_1, &dynpools_zones}, {RP_METRICS_1, &dynpools_metrics},
		{RP_STATE_1, &state},	       {NULL, NULL},
	};
	(void)inst;
	return modhost_service(services, id);
}

/* Groups that share CPUs. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
RP_MODULE_DEFINE("dynamic-pools", "1.0", RP_KIND_POLICY,
		 .summary = "pools of CPUs that follow requests and load", .licence = "Apache-2.0",
		 .create = dynpools_create, .destroy = dynpools_destroy,
		 .service = dynpools_service);
