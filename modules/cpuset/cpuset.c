/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the cpuset policy. cpuset.h gives the overview. */
#include "modules/cpuset/cpuset.h"
#include "modules/lib/private/node_devices.h"

/* ---- index of the CPUs ----------------------------------------------------------------------- */

void pool_add(struct rp_instance *inst, enum cpuset_class class, rp_ctr ctr, struct rp_ids cpus)
{
	inst->now.n[class]++;
	if (class == CLASS_INTEGER)
		owners_give(&inst->owners, cpus, ctr);
	else if (class == CLASS_ANNOTATED)
		owners_join(&inst->owners, cpus);
}

void pool_del(struct rp_instance *inst, enum cpuset_class class, rp_ctr ctr, struct rp_ids cpus)
{
	inst->now.n[class] -= inst->now.n[class] != 0;
	if (class == CLASS_INTEGER)
		owners_take(&inst->owners, ctr, cpus);
	else if (class == CLASS_ANNOTATED)
		owners_leave(&inst->owners, cpus);
}

void pool_shared(const struct rp_instance *inst, struct rp_idset *ret)
{
	rp_idset_andnot(ret, rp_ids_of(&inst->plan->cpus.available),
			rp_ids_of(&inst->owners.taken));
}

void pool_free(const struct rp_instance *inst, const struct looked *c, struct rp_idset *ret)
{
	rp_idset_andnot(ret, rp_ids_of(&inst->plan->cpus.rest), rp_ids_of(&inst->owners.taken));
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&c->forbidden));
	if (inst->within)
		rp_idset_and(ret, rp_ids_of(ret), rp_ids_of(inst->within));
	isolation_narrow(&inst->h, &inst->plan->isolation, ret);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static void past(const struct rp_instance *inst, struct reserve_past *ret)
{
	bounds_past(&inst->plan->cpus, rp_ids_of(&inst->owners.taken), ret);
}

static void begin(struct rp_instance *inst)
{
	owners_begin(&inst->owners);
	if (inst->plan)
		(void)place_relief(inst, 0); /* reads the settings, which relief_arm() needs */
	inst->before = inst->now;
}

static int32_t rolled_back(struct rp_instance *inst)
{
	owners_undo(&inst->owners);
	inst->now = inst->before;
	return 0;
}

static int32_t cpuset_refused(struct rp_instance *inst, int32_t code)
{
	inst->counters.refused += code != 0;
	return code;
}

/* Removes the container from the index. Returns false if it has no record of this policy. */
static bool cpuset_forget(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct record rec;
	if (!record_read(inst, info->ctr, &rec))
		return false;
	pool_del(inst, rec.class, info->ctr, info->cpus);
	return true;
}

static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct looked c;
	look_at(inst, info, &c);
	(void)cpuset_forget(inst, info); /* a repeated request, after a lost reply */
	int32_t r = place_new(inst, txn, &c);
	relief_arm(&inst->h, &inst->relief);
	return cpuset_refused(inst, r);
}

static int32_t resize(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct looked c;
	struct record rec;
	int32_t r = 0;
	look_at_resized(inst, info, &c);
	(void)record_read(inst, info->ctr, &rec);
	if (c.class == CLASS_ANNOTATED || rec.class == CLASS_ANNOTATED)
		return 0;
	if (c.class == rec.class)
		r = record_write(inst, txn, &c, c.class);
	if (r || (c.class == CLASS_SHARED && rec.class == CLASS_SHARED))
		return r;
	if (c.class == rec.class)
		r = place_resize(inst, txn, &c, info->cpus);
	else if (cpuset_forget(inst, info))
		r = place_new(inst, txn, &c);
	if (!cpuset_refused(inst, r))
		r = sync_retry(inst, txn, info->ctr);
	/* place_new() and place_resize() stage the pool themselves for exclusive CPUs. A container
	 * that shares CPUs now is staged again: sync_retry() may have taken some of them. */
	bool shares = c.class == CLASS_SHARED;
	return r > 0 || (!r && shares) ? stage_sharers(inst, txn, shares ? 0 : info->ctr) : r;
}

static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct rp_plan *p = inst->plan;
	struct record rec;
	if ((info->flags & RP_CTR_PRESERVE_CPU) || !record_read(inst, info->ctr, &rec))
		return 0;
	pool_del(inst, rec.class, info->ctr, info->cpus);
	int32_t r = ctr_forget(&inst->h, txn, info->ctr);
	if (!r)
		r = inst->h.cache->may_wait(inst->h.ctx, txn, (uint32_t)p->update_delay_ms,
					    (uint32_t)p->max_update_delay_ms);
	if (!r)
		r = sync_retry(inst, txn, info->ctr);
	relief_arm(&inst->h, &inst->relief);
	bool changed = r > 0 || rec.class != CLASS_SHARED || inst->now.overlapping;
	return r < 0 || !changed ? r : stage_sharers(inst, txn, info->ctr);
}

/* Helps integer containers whose CPUs span several NUMA nodes. */
static int32_t rebalance(struct rp_instance *inst, rp_txn txn, uint64_t n_moves)
{
	const struct relief_call c = place_relief(inst, txn);
	int32_t r = relief_rebalance(&c, n_moves);
	return r <= 0 ? r : stage_sharers(inst, txn, 0);
}

/* Runs a refused container as a shared container until CPUs for it are free. */
static int32_t unmanaged(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct looked c;
	struct rp_idset pool;
	look_at(inst, info, &c);
	pool_shared(inst, &pool);
	if (rp_ids_empty(rp_ids_of(&pool)))
		return 0;
	pool_add(inst, CLASS_SHARED, info->ctr, rp_ids_none());
	return stage_shared(inst, txn, &c, rp_ids_of(&pool), "it was refused but runs");
}

static struct node_devices cpuset_devices(struct rp_instance *inst)
{
	return (struct node_devices){.h = &inst->h,
				     .list = &inst->list,
				     .assignable = rp_ids_of(&inst->plan->cpus.rest),
				     .isolation = &inst->plan->isolation};
}

static int32_t devices(struct rp_instance *inst, const struct rp_devices_sink *sink)
{
	const struct node_devices of = cpuset_devices(inst);
	return node_devices_report(&of, sink);
}

static int32_t claim(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     const char *device)
{
	struct rp_idset cpus;
	const struct node_devices of = cpuset_devices(inst);
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
	.isolation = offsetof(struct rp_plan, isolation),
	.plan_size = sizeof(struct rp_plan),
	.fill = plan_fill,
	.plan_fini = plan_fini,
	.begin = begin,
	.sync = sync_all,
	.rebalance = rebalance,
	.place = place,
	.resize = resize,
	.release = release,
	.unmanaged = unmanaged,
	.devices = devices,
	.claim = claim,
	.past = past,
	.rolled_back = rolled_back,
	.schema = &cpuset_schema,
	.report_zones = cpuset_zones,
	.report_metrics = cpuset_metrics,
	.relief = offsetof(struct rp_instance, relief),
};

/* The policy uses shared groups and the resources requested from the runtime. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
LIFE_MODULE("cpuset", "1.0", ops,
	    .summary = "CPUs named by pods, whole CPUs for containers that request them, the rest "
		       "for other containers",
	    .licence = "Apache-2.0");
