/* SPDX-License-Identifier: Apache-2.0 */
/* Policies whose containers own whole CPUs or share the rest. */
#include <nri-rp/lib/simple.h>

#include <stdlib.h>

struct rp_plan {
	SIMPLE_PLAN;
};

struct rp_instance {
	SIMPLE;
};

static const struct simple_ops *simple_of(const struct rp_instance *inst)
{
	return (const struct simple_ops *)(const void *)inst->ops;
}

static const struct rp_idset *simple_rest(const struct rp_instance *inst)
{
	return &inst->plan->cpus.rest;
}

/* ---- configuration --------------------------------------------------------------------------- */

struct rp_plan *simple_plan_free(struct rp_plan *p)
{
	if (p)
		cpualloc_free(p->alloc);
	free(p);
	return NULL;
}

/* Checks a configuration and builds a plan, which may be dropped: the active one is unchanged. */
int32_t simple_plan(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret)
{
	const struct modhost *h = &inst->h;
	const struct simple_ops *ops = simple_of(inst);
	struct reserve_past past;
	int32_t r = life_past(inst, &past);
	struct rp_plan *p = r ? NULL : calloc(1, ops->plan_size);
	if (r)
		return r;
	if (!p || cpualloc_new(h->topology, h->ctx, &p->alloc)) {
		free(p);
		return modhost_no_memory(h);
	}
	p->section = section;
	r = bounds_read(h, section, p->alloc, &past, true, &p->cpus);
	bool any = !rp_ids_empty(rp_ids_of(&p->cpus.reserved)) ||
		   !rp_ids_empty(rp_ids_of(&p->cpus.listed));
	if (!r && !past.hotplug && (!any || rp_ids_empty(rp_ids_of(&p->cpus.rest))))
		r = modhost_refuse(h, section_get(h, section, "reservedResources.cpu"),
				   "the reserved CPUs and the rest need one CPU each at least");
	if (!r && ops->read)
		r = ops->read(inst, section, p);
	*ret = r ? simple_plan_free(p) : p;
	return r;
}

int32_t simple_look(struct rp_instance *inst, struct rp_plan **ret)
{
	return simple_plan(inst, inst->plan->section, ret);
}

/* Stores the reserved CPUs, which stay reserved over reloads, restarts and CPUs that go offline.
 * Exclusive CPUs of containers are not reserved while other CPUs are available. */
void simple_past(const struct rp_instance *inst, struct reserve_past *ret)
{
	bounds_past(&inst->plan->cpus, rp_ids_of(&inst->owners.taken), ret);
}

/* ---- placement ------------------------------------------------------------------------------- */

/* Gives a container its CPUs, or none. At least one CPU remains for containers that share. */
static bool simple_give(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct rp_idset own, free;
	uint32_t n = simple_of(inst)->wants(inst, info);
	if (owners_owned(&inst->owners, info->ctr, &own) == n)
		return true;
	(void)owners_release(&inst->owners, info->ctr, &own);
	rp_idset_andnot(&free, rp_ids_of(simple_rest(inst)), rp_ids_of(&inst->owners.taken));
	if (n == 0 || n >= rp_ids_count(rp_ids_of(&free)))
		return n == 0;
	(void)cpualloc_allocate(inst->plan->alloc, &free, n, CPUALLOC_NORMAL, CPUALLOC_DEFAULT,
				&own); /* there are enough */
	owners_give(&inst->owners, rp_ids_of(&own), info->ctr);
	return true;
}

/* Stores the CPUs of a container after simple_give(). A container whose own CPUs are all offline
 * runs on the shared ones. */
static void simple_cpus(const struct rp_instance *inst, const struct rp_ctr_info *info,
			const struct rp_idset *own, struct rp_idset *ret)
{
	const struct simple_ops *ops = simple_of(inst);
	struct rp_idset shared;
	rp_idset_andnot(&shared, rp_ids_of(simple_rest(inst)), rp_ids_of(&inst->owners.taken));
	if (!rp_ids_empty(rp_ids_of(own)))
		*ret = *own;
	else if (ops->shares)
		ops->shares(inst, info, &shared, ret);
	else
		*ret = shared;
	if (rp_ids_empty(rp_ids_of(ret)))
		*ret = rp_ids_empty(rp_ids_of(&shared)) ? inst->plan->cpus.reserved : shared;
}

/* Stages the decision for a container; an unchanged one costs nothing. */
static int32_t simple_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct simple_ops *ops = simple_of(inst);
	struct rp_idset own, cpus;
	if (ops->leaves && ops->leaves(inst))
		return ctr_forget(&inst->h, txn, info->ctr);
	uint32_t n = owners_owned(&inst->owners, info->ctr, &own);
	simple_cpus(inst, info, &own, &cpus);
	return ctr_stage(
		&inst->h, txn, info->ctr,
		&(struct ctr_stage){
			.cpus = rp_ids_of(&cpus),
			.own = rp_ids_of(&own),
			.degraded = ops->wants(inst, info) == n
					    ? NULL
					    : "not enough CPUs to make its CPUs exclusive"});
}

/* Says which kind of CPUs a container has, as `nri-rpctl explain` shows. */
static void simple_note(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct rp_idset own, cpus;
	uint32_t n = owners_owned(&inst->owners, info->ctr, &own);
	simple_cpus(inst, info, &own, &cpus);
	bool is_reserved = rp_ids_subset(rp_ids_of(&cpus), rp_ids_of(&inst->plan->cpus.reserved));
	modhost_note(&inst->h, info->ctr, "namespace %s: %s CPUs", info->pod_namespace,
		     n		   ? "exclusive"
		     : is_reserved ? "reserved"
				   : "shared");
}

/* Gives free CPUs to containers that lack some (pass 0), then stages all containers (pass 1). */
static int32_t settle_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			  const struct life_walk *w)
{
	if (w->pass == 0)
		(void)simple_give(inst, info);
	return w->pass == 0 ? 0 : simple_stage(inst, txn, info);
}

static int32_t simple_settle(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	return life_walk(inst, txn,
			 (struct life_walk){.each = settle_one,
					    .order = RP_ORDER_SYNC,
					    .n_passes = 2,
					    .except = except});
}

int32_t simple_place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset before = inst->owners.taken;
	if (!simple_give(inst, info))
		return modhost_fail(&inst->h, -RP_ENOSPC, "fewer than %u CPUs are free",
				    simple_of(inst)->wants(inst, info));
	simple_note(inst, info);
	bool same = rp_ids_equal(rp_ids_of(&before), rp_ids_of(&inst->owners.taken));
	int32_t r = same ? 0 : simple_settle(inst, txn, info->ctr);
	return r ? r : simple_stage(inst, txn, info);
}

/* Releases a container. Other containers change only if the container owned CPUs. */
int32_t simple_release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset had;
	return owners_release(&inst->owners, info->ctr, &had) ? simple_settle(inst, txn, info->ctr)
							      : 0;
}

/* Restores the CPUs that a container owns from the cache, if they are still valid. */
static int32_t simple_keep(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			   const struct life_walk *w)
{
	(void)txn, (void)w;
	uint32_t n = rp_ids_count(info->exclusive),
		 n_taken = rp_ids_count(rp_ids_of(&inst->owners.taken));
	if (n == simple_of(inst)->wants(inst, info) &&
	    n + n_taken < rp_ids_count(rp_ids_of(simple_rest(inst))) &&
	    rp_ids_subset(info->exclusive, rp_ids_of(simple_rest(inst))) &&
	    !rp_ids_overlap(info->exclusive, rp_ids_of(&inst->owners.taken)))
		owners_give(&inst->owners, info->exclusive, info->ctr);
	return 0;
}

int32_t simple_sync(struct rp_instance *inst, rp_txn txn)
{
	owners_clear(&inst->owners);
	int32_t r = life_walk(inst, txn,
			      (struct life_walk){.each = simple_keep, .order = RP_ORDER_SYNC});
	return r ? r : simple_settle(inst, txn, 0);
}

void simple_begin(struct rp_instance *inst)
{
	owners_begin(&inst->owners);
}

int32_t simple_rolled_back(struct rp_instance *inst)
{
	owners_undo(&inst->owners);
	return 0;
}
