/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the dynamic-pools policy. dynamic-pools.h gives the overview. */
#include <stdlib.h>
#include <string.h>

#include "modules/dynamic-pools/dynamic-pools.h"
#include <nri-rp/lib/glob.h>

#define SYSTEM_NAMESPACE "kube-system"
#define ANNOTATION "dynamic-pool.dynamic-pools"

/* ---- plans and saved pools ------------------------------------------------------------------- */

static void past(const struct rp_instance *inst, struct reserve_past *ret)
{
	bounds_past(&inst->plan->bounds.cpus, rp_ids_none(), ret);
}

static int32_t make_plan(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret)
{
	struct reserve_past before;
	struct pool had;
	int32_t r = life_past(inst, &before);
	(void)saved_find(inst, pool_names[POOL_RESERVED], &had);
	before.cpus = had.cpus;
	return r ? r : life_plan_new(inst, section, &before, ret);
}

/* Creates a plan that prefers the previous CPUs of the pools. A plan that sync() refused is not
 * saved as previous state. */
static int32_t plan(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret)
{
	int32_t r = inst->changed ? 0 : saved_keep(inst);
	return r ? r : make_plan(inst, section, ret);
}

static int32_t look(struct rp_instance *inst, struct rp_plan **ret)
{
	int32_t r = saved_keep(inst);
	return r ? r : make_plan(inst, inst->section, ret);
}

static int32_t save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	int32_t r = saved_keep(inst);
	*ret_data = inst->saved.data;
	*ret_size = inst->saved.size;
	return r;
}

static int32_t load(struct rp_instance *inst, const void *data, uint32_t size)
{
	struct rp_plan *too_early = inst->plan;
	int32_t r = saved_load(inst, data, size);
	if (r || !too_early)
		return r;
	r = make_plan(inst, inst->section, &inst->plan);
	if (r)
		return r;
	plan_fini(too_early);
	free(too_early);
	return 0;
}

static void begin(struct rp_instance *inst)
{
	memcpy(inst->plan->before, inst->plan->pools, inst->plan->n * sizeof *inst->plan->pools);
	inst->in_sync = false;
}

static int32_t rolled_back(struct rp_instance *inst)
{
	/* Restores the pools even before a resync, because the next plan prefers their CPUs. */
	memcpy(inst->plan->pools, inst->plan->before, inst->plan->n * sizeof *inst->plan->pools);
	return inst->in_sync ? RP_RESYNC : 0;
}

/* ---- choice of the pool ---------------------------------------------------------------------- */

static struct pool_choice by_namespace(const struct rp_plan *p, const char *namespace)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (glob_any(&p->types[i].namespaces, namespace))
			return (struct pool_choice){i, "by its namespace", p->types[i].at, false};
	return (struct pool_choice){POOL_SHARED, "no pool matches its namespace", NULL, false};
}

static struct pool_choice by_name(const struct rp_plan *p, const char *name)
{
	uint32_t i = plan_pool(p, name);
	if (i < p->n)
		return (struct pool_choice){i, "by its annotation", p->types[i].at, false};
	return (struct pool_choice){
		POOL_SHARED, "the pool in its annotation was removed: using shared", NULL, true};
}

struct pool_choice dynpools_choose(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const struct rp_plan *p = inst->plan;
	const char *name = ctr_annotation(&inst->h, info->ctr, ANNOTATION);
	bool system = strcmp(info->pod_namespace, SYSTEM_NAMESPACE) == 0 ||
		      glob_any(&p->system_namespaces, info->pod_namespace);
	struct pool_choice c = {POOL_RESERVED, "its namespace is reserved", NULL, false};
	if (!system && info->cpu_request <= 0 && info->cpu_limit <= 0)
		c = (struct pool_choice){POOL_SHARED, "it requests no CPU", NULL, false};
	else if (name)
		c = by_name(p, name);
	else if (!system)
		c = by_namespace(p, info->pod_namespace);
	if (c.pool == POOL_RESERVED && rp_ids_empty(rp_ids_of(&p->bounds.cpus.reserved)))
		c = (struct pool_choice){POOL_SHARED, "no CPU is reserved", NULL, false};
	return c;
}

int32_t dynpools_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		       uint32_t pool, const char *degraded)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	int32_t r = pools_stage(h, &p->bounds, txn, info, rp_ids_of(&p->pools[pool].cpus),
				pool < N_BUILT_IN ? 0 : pool, degraded);
	return r ? r
		 : h->cache->set_text(h->ctx, txn, info->ctr, RP_F_CPU_CLASS,
				      p->types[pool].cpu_class);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* Resizes all pools. Returns a bit for each pool whose CPUs changed. */
static uint64_t resize_pools(struct rp_plan *p)
{
	uint32_t sizes[POOLS_MAX];
	if (!size_fits(p))
		return 0; /* too few CPUs are online */
	size_all(p, sizes);
	return size_apply(p, p->pools, rp_ids_of(&p->bounds.cpus.rest), sizes);
}

/* Resizes all pools and stages the containers of changed pools. The caller stages `except`. */
static int32_t dynamic_pools_settle(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	uint64_t changed = resize_pools(inst->plan);
	inst->resized += changed != 0;
	return members_stage(inst, txn, changed, except);
}

static int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	inst->in_sync = true;
	int32_t r = members_sync(inst, txn);
	if (!r)
		r = members_adopt(inst, txn);
	(void)resize_pools(inst->plan);
	return r ? r : members_stage(inst, txn, UINT64_MAX, 0);
}

static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct pool_choice c = dynpools_choose(inst, info);
	bool known = members_known(inst, info->ctr);
	if (c.odd && !known)
		return modhost_fail(&inst->h, -RP_EINVAL, "no dynamicPool for annotation \"%.64s\"",
				    ctr_annotation(&inst->h, info->ctr, ANNOTATION));
	int32_t r = members_join(inst, txn, info);
	inst->placed += r > 0;
	inst->refused += !r;
	if (!r)
		return modhost_fail(&inst->h, -RP_ENOSPC, "not enough CPUs");
	if (r > 0)
		r = known ? members_retry(inst, txn, info->ctr) : 0;
	if (!r)
		r = dynamic_pools_settle(inst, txn, info->ctr);
	return r ? r : members_stage_one(inst, txn, info);
}

static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	int32_t r = members_leave(inst, txn, info);
	if (r > 0)
		r = members_retry(inst, txn, info->ctr);
	return r ? r : dynamic_pools_settle(inst, txn, info->ctr);
}

/* Puts a refused container that runs anyway into the pool shared, if shared can have a CPU. */
static int32_t unmanaged(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	int32_t r = members_overflow(inst, txn, info);
	if (!r && !size_fits(inst->plan))
		r = modhost_fail(&inst->h, -RP_ENOSPC, "not enough CPUs");
	if (!r)
		r = dynamic_pools_settle(inst, txn, info->ctr);
	return r ? r : members_stage_one(inst, txn, info);
}

static int32_t rebalance(struct rp_instance *inst, rp_txn txn, uint64_t n_moves)
{
	(void)n_moves; /* containers never move between pools */
	int32_t r = members_weigh(inst, txn);
	return r ? r : dynamic_pools_settle(inst, txn, 0);
}

static void fini(struct rp_instance *inst)
{
	free(inst->saved.data);
}

static const struct rp_state state = {.size = sizeof(struct rp_state), .save = save, .load = load};

static const struct life_ops ops = {
	.plan = plan,
	.look = look,
	.plan_size = sizeof(struct rp_plan),
	.fill = plan_fill,
	.plan_fini = plan_fini,
	.begin = begin,
	.sync = sync_all,
	.place = place,
	.release = release,
	.unmanaged = unmanaged,
	.rebalance = rebalance,
	.past = past,
	.rolled_back = rolled_back,
	.fini = fini,
	.schema = &dynpools_schema,
	.report_zones = dynpools_zones,
	.report_metrics = dynpools_metrics,
	.state = &state,
};

/* The policy uses groups that share CPUs, which need this minor version. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
LIFE_MODULE("dynamic-pools", "1.0", ops, .summary = "pools of CPUs sized by requests and load",
	    .licence = "Apache-2.0");
