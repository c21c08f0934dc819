/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the podpools policy. What the policy does is told in podpools.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/podpools/podpools.h"

#define SET_TEXT_MAX 256u
#define SYSTEM_NAMESPACE "kube-system"

void pool_name(const struct pool *p, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s[%u]", p->name, p->instance);
}

/* ---- records ------------------------------------------------------------------------------------------------------------ */

/* The pool that a container's pod is in. */
struct record {
	uint32_t version, instance;
	char name[POOLS_NAME_MAX + 1];
};
#define RECORD_VERSION 1u

static bool read_record(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	const struct modhost *h = &inst->h;
	const void *data;
	uint32_t size;
	if (h->cache->get_private(h->ctx, ctr, &data, &size) || size != sizeof *ret)
		return false;
	memcpy(ret, data, sizeof *ret);
	return ret->version == RECORD_VERSION && !ret->name[POOLS_NAME_MAX];
}

static int32_t write_record(struct rp_instance *inst, rp_txn txn, rp_ctr ctr,
			    const struct pool *pool)
{
	struct record rec;
	memset(&rec, 0, sizeof rec);
	rec.version = RECORD_VERSION;
	rec.instance = pool->instance;
	memcpy(rec.name, pool->name, sizeof rec.name);
	return inst->h.cache->set_private(inst->h.ctx, txn, ctr, &rec, sizeof rec);
}

/* POOLS_MAX: there is none of that name and number. */
static uint32_t find_pool(const struct rp_plan *p, const char *name, uint32_t instance)
{
	for (uint32_t i = 0; i < p->n_pools; i++)
		if (p->pools[i].instance == instance && strcmp(p->pools[i].name, name) == 0)
			return i;
	return POOLS_MAX;
}

/* ---- pods in pools -------------------------------------------------------------------------------------------------------- */

static struct pod *find_pod(struct rp_instance *inst, rp_pod handle)
{
	struct pod *pod;
	HASH_FIND(hh, inst->pods, &handle, sizeof handle, pod);
	return pod;
}

static int32_t join(struct rp_instance *inst, rp_pod handle, uint32_t pool)
{
	struct pod *pod = find_pod(inst, handle);
	if (!pod) {
		pod = calloc(1, sizeof *pod);
		if (!pod)
			return modhost_fail(&inst->h, -RP_ENOMEM, "out of memory");
		pod->pod = handle;
		pod->pool = pool;
		HASH_ADD(hh, inst->pods, pod, sizeof pod->pod, pod);
		if (!find_pod(inst, handle)) {
			free(pod);
			return modhost_fail(&inst->h, -RP_ENOMEM, "out of memory");
		}
		inst->plan->pools[pool].n_pods++;
	}
	pod->n_ctrs++;
	return 0;
}

static void leave(struct rp_instance *inst, rp_pod handle)
{
	struct pod *pod = find_pod(inst, handle);
	if (!pod || --pod->n_ctrs)
		return;
	inst->plan->pools[pod->pool].n_pods--;
	HASH_DEL(inst->pods, pod);
	free(pod);
}

static void forget_pods(struct rp_instance *inst)
{
	struct pod *pod, *next;
	HASH_ITER (hh, inst->pods, pod, next) {
		HASH_DEL(inst->pods, pod);
		free(pod);
	}
	for (uint32_t i = 0; inst->plan && i < inst->plan->n_pools; i++)
		inst->plan->pools[i].n_pods = 0;
}

/* The name that a pod gives, or the one that its namespace does. */
static const char *wanted(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const char *name = ctr_annotation(&inst->h, info->ctr, "pool.podpools");
	if (!name)
		return strcmp(info->pod_namespace, SYSTEM_NAMESPACE) == 0 ? "reserved" : "default";
	if (find_pool(inst->plan, name, 0) < POOLS_MAX)
		return name;
	modhost_log(&inst->h, RP_LOG_ERROR, info->ctr,
		    "there is no pool \"%.64s\": it goes to the pool default", name);
	return "default";
}

static bool is_better(const struct pool *a, const struct pool *b)
{
	return (a->fill == FILL_BALANCED && a->n_pods < b->n_pods) ||
	       (a->fill == FILL_PACKED && a->n_pods > b->n_pods);
}

static uint32_t choose(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const struct rp_plan *p = inst->plan;
	const char *name = wanted(inst, info);
	uint32_t best = POOLS_MAX;
	for (uint32_t i = find_pool(p, name, 0);
	     i < p->n_pools && strcmp(p->pools[i].name, name) == 0; i++) {
		const struct pool *pool = &p->pools[i];
		bool room = !pool->max_pods || pool->max_pods > (int64_t)pool->n_pods;
		if (room && (best == POOLS_MAX || is_better(pool, &p->pools[best])))
			best = i;
	}
	if (best < POOLS_MAX)
		return best;
	inst->overflowed++;
	modhost_log(&inst->h, RP_LOG_ERROR, info->ctr,
		    "there is no room in the pools \"%s\": it goes to the pool default", name);
	return POOL_DEFAULT;
}

/* ---- into the transaction ------------------------------------------------------------------------------------------------------ */

/* The CPUs of a user's pool are those of its pods together. */
static int32_t stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     uint32_t index)
{
	const struct pool *pool = &inst->plan->pools[index];
	bool own = index > POOL_DEFAULT &&
		   rp_ids_subset(rp_ids_of(&pool->cpus), rp_ids_of(&pool->whole));
	int32_t r = pools_stage(&inst->h, &inst->plan->bounds, txn, info, rp_ids_of(&pool->cpus),
				own ? index : 0);
	return r ? r : write_record(inst, txn, info->ctr, pool);
}

static void explain(struct rp_instance *inst, const struct rp_ctr_info *info, uint32_t index)
{
	char name[POOLS_LABEL_MAX], text[SET_TEXT_MAX];
	const struct pool *pool = &inst->plan->pools[index];
	pool_name(pool, name, sizeof name);
	modhost_note(&inst->h, info->ctr, "its pod is in pool %s (%s): CPUs %s, %u pods", name,
		     fill_names[pool->fill],
		     modhost_set_text(rp_ids_of(&pool->cpus), text, sizeof text), pool->n_pods);
}

/* ---- callbacks -------------------------------------------------------------------------------------------------------------------- */

/* 1: there is nothing to do about it. */
static int32_t begin(struct rp_instance *inst, rp_ctr ctr, struct rp_ctr_info *ret)
{
	if (!inst->plan)
		return modhost_fail(&inst->h, -RP_EAGAIN, "no configuration is in force");
	int32_t r = ctr_info(&inst->h, ctr, ret);
	return r ? r : (ret->flags & RP_CTR_PRESERVE_CPU) != 0;
}

static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct pod *pod = find_pod(inst, info->pod);
	uint32_t index = pod ? pod->pool : choose(inst, info);
	int32_t r = join(inst, info->pod, index);
	if (r)
		return r;
	inst->placed++;
	explain(inst, info, index);
	return stage(inst, txn, info, index);
}

static int32_t podpools_update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info;
	struct record rec;
	int32_t r = begin(inst, ctr, &info);
	if (r)
		return r < 0 ? r : 0;
	if (!read_record(inst, ctr, &rec))
		return place(inst, txn, &info);
	return stage(inst, txn, &info, find_pod(inst, info.pod)->pool);
}

static int32_t podpools_release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info;
	struct record rec;
	if (begin(inst, ctr, &info) || !read_record(inst, ctr, &rec))
		return 0;
	leave(inst, info.pod);
	int32_t r = inst->h.cache->set_exclusive(inst->h.ctx, txn, ctr, rp_ids_none());
	return r ? r : inst->h.cache->set_private(inst->h.ctx, txn, ctr, NULL, 0);
}

/* The pool that its record names, if that is still what it was; POOLS_MAX: it is to be placed. */
static uint32_t kept_pool(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct record rec;
	if (!read_record(inst, info->ctr, &rec))
		return POOLS_MAX;
	uint32_t i = find_pool(inst->plan, rec.name, rec.instance);
	if (i == POOLS_MAX)
		return i;
	const struct pool *pool = &inst->plan->pools[i];
	bool same = !inst->plan->bounds.pin_cpu || rp_ids_empty(info->cpus) ||
		    rp_ids_equal(info->cpus, rp_ids_of(&pool->cpus)) ||
		    rp_ids_subset(info->cpus, rp_ids_of(&pool->whole));
	bool room = i == POOL_DEFAULT || !pool->max_pods || pool->max_pods > (int64_t)pool->n_pods;
	return same && room ? i : POOLS_MAX;
}

static int32_t sync_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			bool keep)
{
	const struct pod *pod = find_pod(inst, info->pod);
	uint32_t index = pod ? pod->pool : kept_pool(inst, info);
	if (index == POOLS_MAX)
		return keep ? 0 : place(inst, txn, info);
	int32_t r = join(inst, info->pod, index);
	if (!r)
		r = stage(inst, txn, info, index);
	return r ? r : 1;
}

/* Pods that can stay in their pool do, then the others find one, those that came first before. */
static int32_t podpools_sync(struct rp_instance *inst, rp_txn txn)
{
	if (!inst->plan)
		return modhost_fail(&inst->h, -RP_EAGAIN, "no configuration is in force");
	forget_pods(inst);
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), r = n < 0 ? n : 0;
	for (int keep = 1; keep >= 0; keep--)
		for (int32_t i = 0; r >= 0 && i < n; i++) {
			struct rp_ctr_info info;
			rp_ctr ctr = inst->list.ctrs[i];
			r = ctr ? ctr_info(&inst->h, ctr, &info) : 0;
			if (r || !ctr || (info.flags & RP_CTR_PRESERVE_CPU))
				continue;
			r = sync_one(inst, txn, &info, keep);
			if (r > 0)
				inst->list.ctrs[i] = 0;
		}
	return r < 0 ? r : 0;
}

static int32_t podpools_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	struct rp_plan *p;
	if (ev->type != RP_EVENT_TOPOLOGY || !inst->plan)
		return 0;
	if (plan_new(&inst->h, inst->plan->bounds.section, &p) == 0) {
		plan_free(inst->plan);
		inst->plan = p;
	} else {
		modhost_log(&inst->h, RP_LOG_WARNING, 0,
			    "too few CPUs are left for the pools: they keep what is on line of "
			    "theirs");
		plan_look(&inst->h, inst->plan);
	}
	return podpools_sync(inst, txn);
}

/* The index is made anew from what containers have. */
static int32_t podpools_rolled_back(struct rp_instance *inst)
{
	if (!inst->plan)
		return 0;
	forget_pods(inst);
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), r = n < 0 ? n : 0;
	for (int32_t i = 0; !r && i < n; i++) {
		struct rp_ctr_info info;
		struct record rec;
		r = ctr_info(&inst->h, inst->list.ctrs[i], &info);
		if (r || !read_record(inst, info.ctr, &rec))
			continue;
		uint32_t pool = find_pool(inst->plan, rec.name, rec.instance);
		r = pool < POOLS_MAX ? join(inst, info.pod, pool) : -RP_EINVAL;
	}
	return r ? RP_RESYNC : 0;
}

static int32_t podpools_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	return plan_new(&inst->h, cfg, ret_plan);
}

static void podpools_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	plan_free(inst->plan);
	inst->plan = plan;
}

static void podpools_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	plan_free(plan);
}

static const struct rp_policy policy = {
	.size = sizeof(struct rp_policy),
	.prepare = podpools_prepare,
	.commit = podpools_commit,
	.abort = podpools_abort,
	.sync = podpools_sync,
	.allocate =
		podpools_update, /* of one that is known, as the first reply was lost: the same again */
	.update = podpools_update,
	.release = podpools_release,
	.event = podpools_event,
	.rolled_back = podpools_rolled_back,
};

static void podpools_destroy(struct rp_instance *inst)
{
	forget_pods(inst);
	plan_free(inst->plan);
	ctr_list_free(&inst->list);
	free(inst);
}

static int32_t podpools_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	return modhost_instance(host, sizeof(struct rp_instance), MODHOST_POLICY, ret_inst);
}

static const void *podpools_service(struct rp_instance *inst, const char *id)
{
	static const struct modhost_service services[] = {
		{RP_POLICY_1, &policy},
		{RP_SCHEMA_1, &podpools_schema},
		{RP_ZONES_1, &podpools_zones},
		{RP_METRICS_1, &podpools_metrics},
		{NULL, NULL},
	};
	(void)inst;
	return modhost_service(services, id);
}

/* Groups that share CPUs. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
RP_MODULE_DEFINE("podpools", "1.0", RP_KIND_POLICY,
		 .summary = "fixed pools of CPUs that hold so many pods each",
		 .licence = "Apache-2.0", .create = podpools_create, .destroy = podpools_destroy,
		 .service = podpools_service);
