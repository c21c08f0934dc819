/* SPDX-License-Identifier: Apache-2.0 */
/* What the dynamic-pools policy does is told in dynamic-pools.h. */
#include <stdlib.h>
#include <string.h>

#include "modules/dynamic-pools/dynamic-pools.h"
#include "modules/lib/glob.h"

#define SYSTEM_NAMESPACE "kube-system"
#define RECORD_VERSION 1u

/* What is kept with a container. */
struct record {
	uint32_t version, pool;
	int64_t mcpu; /* what it counts for there */
	uint32_t overflows; /* it is in shared for want of CPUs */
	uint32_t pad;
};

static bool read_record(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	return ctr_record(&inst->h, ctr, RECORD_VERSION, ret, sizeof *ret);
}

/* ---- plans, and what there was before -------------------------------------------------------------------------------- */

static int32_t keep_pools(struct rp_instance *inst)
{
	const struct rp_plan *p = inst->plan;
	return p ? pools_save(&inst->h, &inst->saved, p->pools, p->n) : 0;
}

static int32_t make_plan(struct rp_instance *inst, rp_cfg section, bool hotplug,
			 struct rp_plan **ret)
{
	struct reserve_past past = {.hotplug = hotplug};
	struct pools_pool had;
	(void)pools_saved_find(&inst->saved, pool_names[POOL_RESERVED], &had);
	past.cpus = had.cpus;
	int32_t r = plan_new(&inst->h, section, &past, ret);
	if (!r)
		pools_carry(&inst->saved, (*ret)->pools + POOL_SHARED, (*ret)->n - POOL_SHARED,
			    rp_ids_of(&(*ret)->bounds.rest));
	return r;
}

static int32_t plan(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret)
{
	int32_t r = keep_pools(inst);
	return r ? r : make_plan(inst, section, false, ret);
}

static int32_t look(struct rp_instance *inst, struct rp_plan **ret)
{
	int32_t r = keep_pools(inst);
	return r ? r : make_plan(inst, inst->plan->bounds.section, true, ret);
}

static int32_t save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	int32_t r = keep_pools(inst);
	*ret_data = inst->saved.bytes;
	*ret_size = inst->saved.size;
	return r;
}

static int32_t load(struct rp_instance *inst, const void *data, uint32_t size)
{
	struct rp_plan *too_early = inst->plan;
	int32_t r = pools_load(&inst->h, &inst->saved, data, size);
	if (!r && too_early)
		r = make_plan(inst, too_early->bounds.section, false, &inst->plan);
	if (inst->plan != too_early)
		plan_free(too_early);
	return r;
}

static void begin(struct rp_instance *inst)
{
	memcpy(inst->plan->before, inst->plan->pools, inst->plan->n * sizeof *inst->plan->pools);
	inst->in_sync = false;
}

static int32_t rolled_back(struct rp_instance *inst)
{
	memcpy(inst->plan->pools, inst->plan->before, inst->plan->n * sizeof *inst->plan->pools);
	return inst->in_sync ? RP_RESYNC : 0;
}

/* ---- which pool ---------------------------------------------------------------------------------------------------------- */

struct choice {
	uint32_t pool;
	const char *why;
	const char *missing; /* the pool that there is not */
};

static struct choice by_namespace(const struct rp_plan *p, const char *namespace)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (glob_any(&p->types[i].namespaces, namespace))
			return (struct choice){i, "by its namespace", NULL};
	return (struct choice){POOL_SHARED, "no pool has its namespace", NULL};
}

static struct choice by_name(const struct rp_plan *p, const char *name)
{
	uint32_t i = pools_find(p->pools, p->n, name);
	if (i < p->n)
		return (struct choice){i, "its annotation names it", NULL};
	return (struct choice){POOL_SHARED, "the pool that its annotation names is gone", name};
}

static struct choice choose(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const struct rp_plan *p = inst->plan;
	const char *name = ctr_annotation(&inst->h, info->ctr, "dynamic-pool.dynamic-pools");
	bool system = strcmp(info->pod_namespace, SYSTEM_NAMESPACE) == 0 ||
		      glob_any(&p->system_namespaces, info->pod_namespace);
	struct choice c = {POOL_RESERVED, "its namespace is reserved", NULL};
	if (!system && info->cpu_request <= 0 && info->cpu_limit <= 0)
		c = (struct choice){POOL_SHARED, "it asks for no CPU", NULL};
	else if (name)
		c = by_name(p, name);
	else if (!system)
		c = by_namespace(p, info->pod_namespace);
	if (c.pool == POOL_RESERVED && rp_ids_empty(rp_ids_of(&p->bounds.reserved)))
		c = (struct choice){POOL_SHARED, "no CPU is reserved", NULL};
	return c;
}

static struct record record_of(const struct rp_ctr_info *info, uint32_t pool)
{
	return (struct record){.version = RECORD_VERSION,
			       .pool = pool,
			       .mcpu = info->cpu_request > 0 ? info->cpu_request : 0};
}

static void count(struct rp_instance *inst, const struct record *rec, int sign)
{
	struct pools_pool *pool = &inst->plan->pools[rec->pool];
	pool->n_ctrs += (uint32_t)sign;
	pool->mcpu += sign * rec->mcpu;
}

static int32_t keep_record(struct rp_instance *inst, rp_txn txn, rp_ctr ctr,
			   const struct record *rec, const char *why)
{
	modhost_decided_by(&inst->h, ctr, inst->plan->types[rec->pool].at, "pool %s: %s",
			   inst->plan->pools[rec->pool].name, why);
	return ctr_set_record(&inst->h, txn, ctr, rec, sizeof *rec);
}

/* 1: it counts in the pool that it is for; 0: there are too few CPUs for that. */
static int32_t join(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct choice c = choose(inst, info);
	const struct record rec = record_of(info, c.pool);
	count(inst, &rec, 1);
	if (!size_fits(inst->plan)) {
		count(inst, &rec, -1);
		return 0;
	}
	if (c.missing)
		modhost_log(&inst->h, RP_LOG_WARNING, info->ctr,
			    "there is no pool \"%.64s\" any more: it is in shared", c.missing);
	int32_t r = keep_record(inst, txn, info->ctr, &rec, c.why);
	return r ? r : 1;
}

static int32_t overflow(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct record rec = {RECORD_VERSION, POOL_SHARED, 0, true, 0};
	count(inst, &rec, 1);
	inst->waiting = true;
	return keep_record(inst, txn, ctr, &rec, "there are too few CPUs for the pool it is for");
}

/* ---- what that means for it -------------------------------------------------------------------------------------------- */

static int32_t stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	struct record rec;
	if (!read_record(inst, info->ctr, &rec))
		return 0;
	int32_t r = pools_stage(
		h, &p->bounds, txn, info, rp_ids_of(&p->pools[rec.pool].cpus),
		rec.pool < N_BUILT_IN ? 0 : rec.pool,
		rec.overflows ? "too few CPUs for its pool: it runs on those of shared" : NULL);
	return r ? r
		 : h->cache->set_text(h->ctx, txn, info->ctr, RP_F_CPU_CLASS,
				      p->types[rec.pool].cpu_class);
}

/* `arg`: bits of the pools that have changed. */
static int32_t stage_changed(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			     const struct life_walk *w)
{
	struct record rec;
	bool changed =
		read_record(inst, info->ctr, &rec) && *(const uint64_t *)w->arg >> rec.pool & 1;
	return changed ? stage(inst, txn, info) : 0;
}

static uint64_t change_sizes(struct rp_plan *p)
{
	uint32_t sizes[POOLS_MAX];
	if (!size_fits(p))
		return 0;
	size_all(p, sizes);
	return pools_resize(p->alloc, p->pools + POOL_SHARED, p->n - POOL_SHARED,
			    rp_ids_of(&p->bounds.rest), sizes + POOL_SHARED)
	       << POOL_SHARED;
}

/* `except` gets its CPUs otherwise. */
static int32_t resize(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	uint64_t changed = change_sizes(inst->plan);
	inst->resized += changed != 0;
	return changed ? life_walk(inst, txn,
				   (struct life_walk){.each = stage_changed,
						      .order = RP_ORDER_CREATED,
						      .except = except,
						      .arg = &changed})
		       : 0;
}

/* ---- its life ------------------------------------------------------------------------------------------------------------ */

static int32_t count_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	const struct record rec = record_of(info, choose(inst, info).pool);
	(void)txn;
	(void)w;
	count(inst, &rec, 1);
	return 0;
}

static void forget_counts(struct rp_plan *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		p->pools[i].n_ctrs = 0;
		p->pools[i].mcpu = 0;
	}
}

/* Those that had room before have it first. */
static int32_t join_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			const struct life_walk *w)
{
	struct record had;
	bool last = w->pass + 1 == w->n_passes;
	if (!last && (!read_record(inst, info->ctr, &had) || had.overflows))
		return 0;
	int32_t r = join(inst, txn, info);
	return r || !last ? r : overflow(inst, txn, info->ctr);
}

/* Where not all of them fit, shared keeps a CPU for those that do not. */
static int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	struct rp_plan *p = inst->plan;
	uint64_t all = UINT64_MAX;
	inst->in_sync = true;
	forget_counts(p);
	int32_t r = life_walk(inst, txn, (struct life_walk){.each = count_one});
	bool too_many = !size_fits(p);
	forget_counts(p);
	p->pools[POOL_SHARED].n_ctrs += too_many;
	if (!r)
		r = life_walk(inst, txn,
			      (struct life_walk){.each = join_one,
						 .order = RP_ORDER_SYNC,
						 .n_passes = 2,
						 .pass = !too_many});
	p->pools[POOL_SHARED].n_ctrs -= too_many;
	(void)change_sizes(p);
	return r < 0 ? r
		     : life_walk(inst, txn, (struct life_walk){.each = stage_changed, .arg = &all});
}

static int32_t retry_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	struct record had;
	(void)w;
	if (!read_record(inst, info->ctr, &had) || !had.overflows)
		return 0;
	count(inst, &had, -1);
	int32_t r = join(inst, txn, info);
	if (r > 0)
		return stage(inst, txn, info);
	count(inst, &had, 1);
	inst->waiting = true;
	return r;
}

/* CPUs have come free, or more are needed. */
static int32_t settle(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	int32_t r = life_retry(inst, txn, ctr, retry_one);
	return r ? r : resize(inst, txn, ctr);
}

static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct record had;
	const char *missing = choose(inst, info).missing;
	bool known = read_record(inst, info->ctr, &had);
	if (known)
		count(inst, &had, -1);
	else if (missing)
		return modhost_fail(&inst->h, -RP_EINVAL, "no dynamicPool for annotation \"%.64s\"",
				    missing);
	int32_t r = join(inst, txn, info);
	inst->placed += r > 0;
	inst->refused += !r;
	if (!r)
		return modhost_fail(&inst->h, -RP_ENOSPC, "not enough CPUs");
	if (r > 0)
		r = known ? settle(inst, txn, info->ctr) : resize(inst, txn, info->ctr);
	return r ? r : stage(inst, txn, info);
}

static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct record had;
	if (!read_record(inst, info->ctr, &had))
		return 0;
	count(inst, &had, -1);
	int32_t r = ctr_forget(&inst->h, txn, info->ctr);
	return r ? r : settle(inst, txn, info->ctr);
}

/* It runs although it was refused: in shared, if that can have a CPU. */
static int32_t unmanaged(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	int32_t r = overflow(inst, txn, info->ctr);
	if (!r && !size_fits(inst->plan))
		r = modhost_fail(&inst->h, -RP_ENOSPC, "not enough CPUs");
	if (!r)
		r = resize(inst, txn, info->ctr);
	return r ? r : stage(inst, txn, info);
}

/* `arg`: the host's service that knows. */
static int32_t weigh(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     const struct life_walk *w)
{
	const struct rp_host_usage *service = w->arg;
	struct rp_usage usage = {.size = sizeof usage};
	struct record rec;
	(void)txn;
	if (service && read_record(inst, info->ctr, &rec) &&
	    service->get(inst->h.ctx, info->ctr, &usage) == 0 && usage.cpu > 0)
		inst->plan->pools[rec.pool].weight += usage.cpu;
	return 0;
}

static int32_t rebalance(struct rp_instance *inst, rp_txn txn, uint64_t n_moves)
{
	const void *usage = inst->h.host->service(inst->h.ctx, RP_HOST_USAGE_1);
	(void)n_moves; /* nobody moves to another pool */
	for (uint32_t i = 0; i < inst->plan->n; i++)
		inst->plan->pools[i].weight = 0;
	int32_t r = life_walk(inst, txn, (struct life_walk){.each = weigh, .arg = (void *)usage});
	return r ? r : resize(inst, txn, 0);
}

static void fini(struct rp_instance *inst)
{
	free(inst->saved.bytes);
}

static const struct rp_state state = {.size = sizeof(struct rp_state), .save = save, .load = load};

static const struct life_ops ops = {
	.plan = plan,
	.look = look,
	.plan_free = plan_free,
	.begin = begin,
	.sync = sync_all,
	.place = place,
	.release = release,
	.unmanaged = unmanaged,
	.rebalance = rebalance,
	.rolled_back = rolled_back,
	.fini = fini,
	.schema = &dynpools_schema,
	.zones = &dynpools_zones,
	.metrics = &dynpools_metrics,
	.state = &state,
};

/* Groups that share CPUs. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
LIFE_MODULE("dynamic-pools", "1.0", ops, .summary = "pools of CPUs that follow requests and load",
	    .licence = "Apache-2.0");
