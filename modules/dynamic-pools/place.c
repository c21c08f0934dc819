/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "modules/dynamic-pools/dynamic-pools.h"
#include "modules/lib/glob.h"

#define SYSTEM_NAMESPACE "kube-system"
#define RECORD_VERSION 1u

bool place_record(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	const struct modhost *h = &inst->h;
	const void *data;
	uint32_t size;
	if (h->cache->get_private(h->ctx, ctr, &data, &size) || size != sizeof *ret)
		return false;
	memcpy(ret, data, sizeof *ret);
	return ret->version == RECORD_VERSION;
}

static uint32_t by_namespace(const struct rp_plan *p, const char *name)
{
	uint32_t i = 0;
	while (i < p->n && !glob_any(&p->types[i].namespaces, name))
		i++;
	return i;
}

static int32_t by_annotation(struct rp_instance *inst, const struct rp_ctr_info *info,
			     const char *name, bool new, uint32_t *ret, const char **ret_why)
{
	*ret = plan_find(inst->plan, name);
	*ret_why = "its annotation names it";
	if (*ret < inst->plan->n)
		return 0;
	if (new)
		return modhost_fail(&inst->h, -RP_EINVAL, "no dynamicPool for annotation \"%.64s\"",
				    name);
	modhost_log(&inst->h, RP_LOG_WARNING, info->ctr,
		    "there is no pool \"%.64s\" any more: it is in shared", name);
	*ret = POOL_SHARED;
	*ret_why = "the pool that its annotation names is gone";
	return 0;
}

int32_t place_choose(struct rp_instance *inst, const struct rp_ctr_info *info, bool new,
		     uint32_t *ret, const char **ret_why)
{
	const struct rp_plan *p = inst->plan;
	const char *namespace = info->pod_namespace;
	bool system = strcmp(namespace, SYSTEM_NAMESPACE) == 0 ||
		      glob_any(&p->system_namespaces, namespace);
	const char *name = ctr_annotation(&inst->h, info->ctr, "dynamic-pool.dynamic-pools");
	int32_t r = 0;
	if (!system && info->cpu_request <= 0 && info->cpu_limit <= 0) {
		*ret = POOL_SHARED;
		*ret_why = "it asks for no CPU";
	} else if (name) {
		r = by_annotation(inst, info, name, new, ret, ret_why);
	} else {
		*ret = system ? POOL_RESERVED : by_namespace(p, namespace);
		*ret_why = *ret < p->n ? "by its namespace" : "no pool has its namespace";
		*ret = *ret < p->n ? *ret : POOL_SHARED;
	}
	if (!r && *ret == POOL_RESERVED && rp_ids_empty(rp_ids_of(&p->bounds.reserved))) {
		*ret = POOL_SHARED;
		*ret_why = "no CPU is reserved";
	}
	return r;
}

int32_t place_join(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		   uint32_t pool, bool overflows)
{
	int64_t mcpu = overflows || info->cpu_request < 0 ? 0 : info->cpu_request;
	const struct record rec = {RECORD_VERSION, pool, mcpu, overflows, 0};
	inst->plan->pools[pool].n_ctrs++;
	inst->plan->pools[pool].mcpu += mcpu;
	inst->waiting = inst->waiting || overflows;
	return inst->h.cache->set_private(inst->h.ctx, txn, info->ctr, &rec, sizeof rec);
}

void place_leave(struct rp_instance *inst, const struct record *rec)
{
	struct pool *pool = &inst->plan->pools[rec->pool];
	pool->n_ctrs--;
	pool->mcpu -= rec->mcpu;
}

struct rp_ids place_cpus(const struct rp_plan *p, uint32_t pool)
{
	struct rp_ids cpus = rp_ids_of(&p->pools[pool].cpus);
	if (!rp_ids_empty(cpus))
		return cpus;
	return rp_ids_empty(rp_ids_of(&p->bounds.reserved)) ? cpualloc_online(p->alloc)
							    : rp_ids_of(&p->bounds.reserved);
}

int32_t place_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	struct record rec;
	if (!place_record(inst, info->ctr, &rec))
		return 0;
	bool own = rec.pool >= N_BUILT_IN && !rp_ids_empty(rp_ids_of(&p->pools[rec.pool].cpus));
	int32_t r =
		pools_stage(h, &p->bounds, txn, info, place_cpus(p, rec.pool), own ? rec.pool : 0);
	if (!r)
		r = h->cache->set_text(h->ctx, txn, info->ctr, RP_F_CPU_CLASS,
				       p->types[rec.pool].cpu_class);
	if (r)
		return r;
	return h->cache->set_degraded(
		h->ctx, txn, info->ctr,
		rec.overflows ? "not enough CPUs for its pool: it runs on those of shared" : NULL);
}
