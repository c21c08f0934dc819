/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the podpools policy. podpools.h gives the overview. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/adopt.h"
#include "modules/podpools/podpools.h"

#define SET_TEXT_MAX 256u
#define SYSTEM_NAMESPACE "kube-system"

void pool_name(const struct pool *p, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s[%u]", p->name, p->instance);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Record saved with a container: the pool of its pod. */
struct record {
	uint32_t version, instance;
	char name[POOLS_NAME_MAX + 1];
};
#define RECORD_VERSION 1u

static bool read_record(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	return ctr_record(&inst->h, ctr, RECORD_VERSION, ret, sizeof *ret) &&
	       !ret->name[POOLS_NAME_MAX];
}

static int32_t write_record(struct rp_instance *inst, rp_txn txn, rp_ctr ctr,
			    const struct pool *pool)
{
	struct record rec;
	memset(&rec, 0, sizeof rec);
	rec.version = RECORD_VERSION;
	rec.instance = pool->instance;
	memcpy(rec.name, pool->name, sizeof rec.name);
	return ctr_set_record(&inst->h, txn, ctr, &rec, sizeof rec);
}

/* Returns the index of the pool with this name and instance, or POOLS_MAX. */
static uint32_t find_pool(const struct rp_plan *p, const char *name, uint32_t instance)
{
	for (uint32_t i = 0; i < p->n_pools; i++)
		if (p->pools[i].instance == instance && strcmp(p->pools[i].name, name) == 0)
			return i;
	return POOLS_MAX;
}

/* ---- pods in pools --------------------------------------------------------------------------- */

static int32_t podpools_join(struct rp_instance *inst, rp_pod handle, uint32_t pool)
{
	struct pod *pod = table_make(&inst->pods, handle, sizeof *pod);
	if (!pod)
		return modhost_no_memory(&inst->h);
	if (!pod->n_ctrs++) {
		pod->pool = pool;
		inst->plan->pools[pool].n_pods++;
	}
	return 0;
}

static void podpools_leave(struct rp_instance *inst, rp_pod handle)
{
	struct pod *pod = table_get(&inst->pods, handle);
	if (!pod || --pod->n_ctrs)
		return;
	inst->plan->pools[pod->pool].n_pods--;
	table_del(&inst->pods, handle);
	free(pod);
}

static void forget_pods(struct rp_instance *inst)
{
	table_free(&inst->pods);
	for (uint32_t i = 0; inst->plan && i < inst->plan->n_pools; i++)
		inst->plan->pools[i].n_pods = 0;
}

/* Returns the name of the pool that the pod's annotation names, or the pool for its namespace.
 * An unknown name is logged and means the pool default. */
static const char *podpools_wanted(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const char *name = ctr_annotation(&inst->h, info->ctr, "pool.podpools");
	if (!name)
		return strcmp(info->pod_namespace, SYSTEM_NAMESPACE) == 0 ? "reserved" : "default";
	if (find_pool(inst->plan, name, 0) < POOLS_MAX)
		return name;
	modhost_log(&inst->h, RP_LOG_ERROR, info->ctr,
		    "unknown pool \"%.64s\": using the pool default", name);
	return "default";
}

static bool is_better(const struct pool *a, const struct pool *b)
{
	return (a->fill == FILL_BALANCED && a->n_pods < b->n_pods) ||
	       (a->fill == FILL_PACKED && a->n_pods > b->n_pods);
}

static bool has_room(const struct pool *pool)
{
	return !pool->max_pods || pool->max_pods > (int64_t)pool->n_pods;
}

static uint32_t podpools_choose(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const struct rp_plan *p = inst->plan;
	const char *name = podpools_wanted(inst, info);
	uint32_t best = POOLS_MAX;
	for (uint32_t i = find_pool(p, name, 0);
	     i < p->n_pools && strcmp(p->pools[i].name, name) == 0; i++) {
		const struct pool *pool = &p->pools[i];
		if (has_room(pool) && (best == POOLS_MAX || is_better(pool, &p->pools[best])))
			best = i;
	}
	if (best < POOLS_MAX)
		return best;
	inst->overflowed++;
	modhost_log(&inst->h, RP_LOG_ERROR, info->ctr,
		    "no room in the pools \"%s\": using the pool default", name);
	return POOL_DEFAULT;
}

/* ---- staging in the transaction -------------------------------------------------------------- */

/* Stages the CPUs of a pool for a container. Pods own the CPUs of a configured pool together;
 * the CPUs of reserved and default are owned by no pod. */
static int32_t podpools_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			      uint32_t index)
{
	const struct pool *pool = &inst->plan->pools[index];
	bool own = index > POOL_DEFAULT &&
		   rp_ids_subset(rp_ids_of(&pool->cpus), rp_ids_of(&pool->whole));
	int32_t r = pools_stage(&inst->h, &inst->plan->bounds, txn, info, rp_ids_of(&pool->cpus),
				own ? index : 0, NULL);
	return r ? r : write_record(inst, txn, info->ctr, pool);
}

static void podpools_explain(struct rp_instance *inst, const struct rp_ctr_info *info,
			     uint32_t index)
{
	char name[POOLS_LABEL_MAX], text[SET_TEXT_MAX];
	const struct pool *pool = &inst->plan->pools[index];
	pool_name(pool, name, sizeof name);
	modhost_note(&inst->h, info->ctr, "its pod is in pool %s (%s): CPUs %s, %u pods", name,
		     fill_names[pool->fill],
		     modhost_set_text(rp_ids_of(&pool->cpus), text, sizeof text), pool->n_pods);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static int32_t podpools_put(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct pod *pod = table_get(&inst->pods, info->pod);
	uint32_t index = pod ? pod->pool : podpools_choose(inst, info);
	int32_t r = podpools_join(inst, info->pod, index);
	if (r)
		return r;
	inst->placed++;
	podpools_explain(inst, info, index);
	return podpools_stage(inst, txn, info, index);
}

/* Places a new container. A container that already has a pool is staged again: the request is a
 * repetition after a lost reply, or a resize with different CPU shares. */
static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct pod *pod = table_get(&inst->pods, info->pod);
	struct record rec;
	if (!pod || !read_record(inst, info->ctr, &rec))
		return podpools_put(inst, txn, info);
	return podpools_stage(inst, txn, info, pod->pool);
}

static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct record rec;
	if (!read_record(inst, info->ctr, &rec))
		return 0;
	podpools_leave(inst, info->pod);
	return ctr_forget(&inst->h, txn, info->ctr);
}

/* Returns the pool that the pod of a container without a record names, if the container runs on
 * just the CPUs of the pool; else POOLS_MAX. */
static uint32_t adopted_pool(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const struct rp_plan *p = inst->plan;
	const char *name = ctr_annotation(&inst->h, info->ctr, "pool.podpools");
	struct rp_ids cpus = adopt_cpus(info);
	for (uint32_t i = name && !rp_ids_empty(cpus) ? 0 : p->n_pools; i < p->n_pools; i++)
		if (strcmp(p->pools[i].name, name) == 0 && has_room(&p->pools[i]) &&
		    rp_ids_equal(cpus, rp_ids_of(&p->pools[i].cpus)))
			return i;
	return POOLS_MAX;
}

/* Returns the pool that the container's record names, if the pool has room for the pod; else
 * POOLS_MAX. Except after a reload of the section, the pool must still have the container's
 * CPUs. */
static uint32_t kept_pool(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct record rec;
	if (!read_record(inst, info->ctr, &rec))
		return adopted_pool(inst, info);
	uint32_t i = find_pool(inst->plan, rec.name, rec.instance);
	if (i == POOLS_MAX)
		return i;
	const struct pool *pool = &inst->plan->pools[i];
	bool same = life_may_refuse(inst) || !inst->plan->bounds.pin_cpu ||
		    rp_ids_empty(info->cpus) || rp_ids_equal(info->cpus, rp_ids_of(&pool->cpus)) ||
		    rp_ids_subset(info->cpus, rp_ids_of(&pool->whole));
	return same && (i == POOL_DEFAULT || has_room(pool)) ? i : POOLS_MAX;
}

/* Pass 0 keeps pods in their pools. Pass 1 places the other pods, oldest container first. */
static int32_t sync_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			const struct life_walk *w)
{
	const struct pod *pod = table_get(&inst->pods, info->pod);
	uint32_t index = pod ? pod->pool : kept_pool(inst, info);
	if (index == POOLS_MAX)
		return w->pass ? podpools_put(inst, txn, info) : 0;
	int32_t r = podpools_join(inst, info->pod, index);
	if (!r)
		r = podpools_stage(inst, txn, info, index);
	return r ? r : 1;
}

static int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	forget_pods(inst);
	return life_walk(inst, txn, (struct life_walk){.each = sync_one, .n_passes = 2});
}

/* Counts a container in the index, from its record. */
static int32_t count_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	struct record rec;
	if (!read_record(inst, info->ctr, &rec))
		return 0;
	uint32_t pool = find_pool(inst->plan, rec.name, rec.instance);
	return pool < POOLS_MAX ? podpools_join(inst, info->pod, pool) : -RP_EINVAL;
}

static int32_t rolled_back(struct rp_instance *inst)
{
	forget_pods(inst);
	return life_walk(inst, 0, (struct life_walk){.each = count_one}) ? RP_RESYNC : 0;
}

static void past(const struct rp_instance *inst, struct reserve_past *ret)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset busy;
	rp_idset_clear(&busy);
	for (uint32_t i = POOL_DEFAULT + 1; i < p->n_pools; i++)
		rp_idset_or(&busy, rp_ids_of(&busy), rp_ids_of(&p->pools[i].whole));
	bounds_past(&p->bounds.cpus, rp_ids_of(&busy), ret);
}

static int32_t look(struct rp_instance *inst, struct rp_plan **ret)
{
	struct reserve_past before;
	past(inst, &before);
	if (life_plan_new(inst, inst->section, &before, ret) == 0)
		return 0;
	modhost_log(&inst->h, RP_LOG_WARNING, 0,
		    "too few CPUs are left for the pools: they keep their online CPUs");
	plan_look(&inst->h, inst->plan);
	*ret = inst->plan;
	return 0;
}

static const struct life_ops ops = {
	.plan_size = sizeof(struct rp_plan),
	.fill = plan_fill,
	.plan_fini = plan_fini,
	.look = look,
	.sync = sync_all,
	.place = place,
	.release = release,
	.past = past,
	.rolled_back = rolled_back,
	.fini = forget_pods,
	.schema = &podpools_schema,
	.report_zones = podpools_zones,
	.report_metrics = podpools_metrics,
};

/* The policy uses groups that share CPUs, which need this minor version. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
LIFE_MODULE("podpools", "1.0", ops, .summary = "fixed pools of CPUs with a limited number of pods",
	    .licence = "Apache-2.0");
