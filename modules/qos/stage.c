/* SPDX-License-Identifier: Apache-2.0 */
/* Stages the CPUs and memory nodes of all entries that a change of the pools concerns. */
#include <string.h>

#include "modules/qos/qos.h"

#define LOST_TEXT "no room for the resources of its level: it runs on CPUs that are not exclusive"

/* ---- CPUs ------------------------------------------------------------------------------------ */

/* Replaces an empty set by another one: a running container needs CPUs. */
static void or_else(struct rp_idset *set, const struct rp_idset *other)
{
	if (rp_ids_empty(rp_ids_of(set)))
		rp_idset_copy(set, rp_ids_of(other));
}

static void of_nodes(const struct rp_plan *p, uint64_t nodes, const struct rp_idset *from,
		     struct rp_idset *ret)
{
	plan_cpus_of(p, nodes, ret);
	rp_idset_and(ret, rp_ids_of(ret), rp_ids_of(from));
}

static void shared_cpus(const struct rp_instance *inst, const struct record *rec,
			struct rp_idset *ret)
{
	const struct pool *pool = rec->ramp_end_ms ? NULL : pools_of(inst, rec);
	rp_idset_clear(ret);
	if (pool)
		rp_idset_copy(ret, rp_ids_of(&pool->cpus));
	else if (rec->flags & ASK_BOUND)
		of_nodes(inst->plan, rec->nodes, &inst->pools.open, ret);
	or_else(ret, &inst->pools.common);
	or_else(ret, &inst->plan->reserved);
	or_else(ret, &inst->plan->machine->online);
}

static void reclaimed_cpus(const struct rp_instance *inst, const struct record *rec,
			   struct rp_idset *ret)
{
	rp_idset_clear(ret);
	if (rec->nodes)
		of_nodes(inst->plan, rec->nodes, &inst->pools.reclaim, ret);
	or_else(ret, &inst->pools.unbound_reclaim);
}

static bool begins_with(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Stores the CPUs of pools with this name or prefix; all CPUs if there are none. */
static void system_cpus(const struct rp_instance *inst, const struct record *rec,
			struct rp_idset *ret)
{
	const struct pools *pools = &inst->pools;
	char text[POOL_TEXT_MAX];
	rp_idset_clear(ret);
	if (*rec->pool) {
		for (uint32_t i = 0; i < pools->n; i++)
			if (begins_with(pool_text(&pools->list[i], text), rec->pool))
				rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&pools->list[i].cpus));
		if (begins_with("reserve", rec->pool))
			rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&inst->plan->reserved));
		if (begins_with("reclaim", rec->pool))
			rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&pools->reclaim));
	}
	if (rec->flags & ASK_BOUND)
		or_else(ret, &pools->open);
	or_else(ret, &inst->plan->machine->online);
}

void stage_cpus_of(const struct rp_instance *inst, const struct entry *e, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	if (e->is.role >= ROLE_INIT || (e->is.flags & ASK_WAITS))
		return;
	if (e->is.flags & ASK_LOST) {
		rp_idset_andnot(ret, rp_ids_of(&inst->plan->pool), rp_ids_of(&inst->owners.taken));
		or_else(ret, &inst->plan->reserved);
		or_else(ret, &inst->plan->machine->online);
	} else if (e->is.level == LEVEL_DEDICATED) {
		(void)owners_owned(&inst->owners, e->pod, ret);
	} else if (e->is.level == LEVEL_SHARED) {
		shared_cpus(inst, &e->is, ret);
	} else if (e->is.level == LEVEL_RECLAIMED) {
		reclaimed_cpus(inst, &e->is, ret);
	} else {
		system_cpus(inst, &e->is, ret);
	}
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Stores the nodes that have memory. A node without memory is replaced by the nearest node with
 * memory. */
static void memory_at(const struct rp_instance *inst, uint64_t nodes, struct rp_idset *ret)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset cpus;
	rp_idset_clear(&cpus);
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (nodes >> p->nodes[i].id & 1)
			machine_add_free(&p->machine->level[MACHINE_NODE].units[p->nodes[i].unit],
					 rp_ids_of(&p->machine->online), &cpus);
	ctr_memory_near(&inst->h, rp_ids_of(&cpus), ret);
}

void stage_mems_of(const struct rp_instance *inst, const struct entry *e, struct rp_idset *ret)
{
	const struct pools *pools = &inst->pools;
	struct rp_idset all;
	uint64_t without = 0;
	rp_idset_clear(ret);
	if (e->is.role >= ROLE_INIT || (e->is.flags & ASK_WAITS))
		return;
	modhost_set(&inst->h, RP_NODES_MEMORY, &all);
	if (e->is.nodes && !(e->is.flags & ASK_LOST)) {
		memory_at(inst, e->is.mem_nodes, ret);
		or_else(ret, &all);
		return;
	}
	if (e->is.level == LEVEL_SHARED)
		without = pools->shared | pools->dedicated;
	else if (e->is.level == LEVEL_RECLAIMED)
		without = pools->reclaimed | (inst->plan->reclaim ? 0 : pools->exclusive);
	else if (e->is.flags & ASK_BOUND)
		without = pools->exclusive;
	struct rp_ids not = {&without, e->is.flags & ASK_LOST ? 0 : 1, 0};
	rp_idset_andnot(ret, rp_ids_of(&all), not );
	or_else(ret, &all);
}

/* ---- staging --------------------------------------------------------------------------------- */

/* Returns true if the entry runs on dedicated CPUs of other pods, which are then no longer
 * exclusive. */
static bool stage_overlaps(const struct rp_instance *inst, const struct entry *e)
{
	struct rp_idset cpus;
	if (e->is.role >= ROLE_INIT ||
	    (e->is.level == LEVEL_DEDICATED && !(e->is.flags & ASK_LOST)))
		return false;
	stage_cpus_of(inst, e, &cpus);
	return rp_ids_overlap(rp_ids_of(&cpus), rp_ids_of(&inst->owners.taken));
}

/* Returns true if the policy does not pin the container, and the host keeps it off exclusive
 * CPUs. */
static bool stage_is_loose(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const struct entry *e = table_find(inst, info->ctr);
	if (info->flags & (RP_CTR_PRESERVE_CPU | RP_CTR_CLAIM) || info->ctr == inst->leaving)
		return false;
	return !e || e->is.role >= ROLE_INIT || (e->is.flags & ASK_WAITS);
}

bool stage_starves(const struct rp_instance *inst, char *ret_name, uint32_t size)
{
	struct rp_idset left, isolated;
	struct ctr_list list = {0};
	struct rp_ctr_info info;
	modhost_set(&inst->h, RP_CPUS_ISOLATED, &isolated);
	rp_idset_andnot(&left, rp_ids_of(&inst->plan->machine->online),
			rp_ids_of(&inst->owners.taken));
	rp_idset_andnot(&left, rp_ids_of(&left), rp_ids_of(&isolated));
	if (!rp_ids_empty(rp_ids_of(&left)) || !inst->plan->pin_cpu)
		return false;
	bool starves = false;
	int32_t n = ctr_list(&inst->h, &list, RP_ORDER_CREATED);
	for (int32_t i = 0; !starves && i < n; i++) {
		starves = !ctr_info(&inst->h, list.ctrs[i], &info) && stage_is_loose(inst, &info);
		if (starves)
			(void)snprintf(ret_name, size, "%s/%s/%s", info.pod_namespace,
				       info.pod_name, info.name);
	}
	ctr_list_free(&list);
	return starves;
}

/* Returns true if any entry overlaps, or if a container that is not pinned has to. With the sets of
 * the last staging, only changed entries can overlap that did not before. */
static bool anybody_overlaps(const struct rp_instance *inst, bool same_sets)
{
	bool is_clear = same_sets && !inst->pools.overlapping;
	if (rp_ids_empty(rp_ids_of(&inst->owners.taken)))
		return false;
	for (uint32_t i = is_clear ? inst->table.first_changed : 0; i < inst->table.n; i++)
		if (stage_overlaps(inst, inst->table.list[i]))
			return true;
	char name[CTR_NAME_MAX];
	return stage_starves(inst, name, sizeof name);
}

/* Stages the CPUs of an entry while pinCPU is off: all CPUs, if the container was pinned before. */
static int32_t stage_loose(struct rp_instance *inst, rp_txn txn, const struct entry *e,
			   const char *degraded)
{
	struct rp_ctr_info info;
	struct rp_idset online;
	int32_t r = ctr_info(&inst->h, e->ctr, &info);
	if (r || rp_ids_empty(info.cpus))
		return r ? r : inst->h.cache->set_degraded(inst->h.ctx, txn, e->ctr, degraded);
	modhost_set(&inst->h, RP_CPUS_ONLINE, &online);
	return ctr_stage(&inst->h, txn, e->ctr,
			 &(struct ctr_stage){.cpus = rp_ids_of(&online), .degraded = degraded});
}

/* Stages the CPUs of an entry. Containers of a pod share its dedicated CPUs: they form a group,
 * numbered by the first of them. */
static int32_t stage_cpus(struct rp_instance *inst, rp_txn txn, struct entry *e)
{
	struct rp_idset cpus;
	stage_cpus_of(inst, e, &cpus);
	struct rp_ids ids = rp_ids_of(&cpus);
	bool lost = e->is.flags & ASK_LOST;
	bool own = e->is.level == LEVEL_DEDICATED && !lost && !inst->pools.overlapping;
	e->is.set &= ~SET_LOOSE;
	if (!inst->plan->pin_cpu) {
		e->is.set |= SET_LOOSE;
		return stage_loose(inst, txn, e, lost ? LOST_TEXT : NULL);
	}
	if (rp_ids_empty(ids))
		return inst->h.cache->set_degraded(inst->h.ctx, txn, e->ctr,
						   lost ? LOST_TEXT : NULL);
	return ctr_stage(&inst->h, txn, e->ctr,
			 &(struct ctr_stage){.cpus = ids,
					     .own = own ? ids : rp_ids_none(),
					     .group = own ? rp_ids_first(ids) + 1 : 0,
					     .degraded = lost ? LOST_TEXT : NULL});
}

static int32_t stage_memory(struct rp_instance *inst, rp_txn txn, const struct entry *e)
{
	struct rp_ctr_info info;
	struct rp_idset mems;
	int32_t r = ctr_info(&inst->h, e->ctr, &info);
	if (r || (info.flags & RP_CTR_PRESERVE_MEM))
		return r;
	if (!inst->plan->pin_memory)
		return ctr_pin_memory(&inst->h, txn, &info, false, rp_ids_none());
	stage_mems_of(inst, e, &mems);
	if (rp_ids_empty(rp_ids_of(&mems)))
		return 0;
	return inst->h.cache->set_mems(inst->h.ctx, txn, e->ctr, rp_ids_of(&mems));
}

/* Stages an entry, but its memory nodes only if they may have changed. */
static int32_t stage_entry(struct rp_instance *inst, rp_txn txn, struct entry *e, bool mems)
{
	int32_t r = stage_cpus(inst, txn, e);
	if (!r && (mems || e->changed))
		r = stage_memory(inst, txn, e);
	if (!r && e->changed)
		r = level_stage(inst, txn, e->ctr, &e->is);
	if (!r && e->changed)
		r = ctr_set_record(&inst->h, txn, e->ctr, &e->is, sizeof e->is);
	e->changed = false;
	return r;
}

/* Returns true if the CPUs and memory nodes of the entry depend on the pools. */
static bool stage_follows_pools(const struct entry *e)
{
	return e->is.level != LEVEL_DEDICATED || e->is.flags & ASK_LOST || !e->is.nodes;
}

static int32_t stage_made(struct rp_instance *inst, rp_txn txn)
{
	int32_t r = 0;
	inst->past.reclaim = inst->pools.reclaim;
	inst->past.overlap = inst->plan->overlap && inst->pools.n;
	bool was = inst->pools.overlapping;
	inst->pools.overlapping = anybody_overlaps(inst, inst->staged == inst->pools.digest);
	bool all = !inst->staged || was != inst->pools.overlapping;
	bool pools = all || inst->staged != inst->pools.digest;
	bool mems = all || inst->staged_masks != inst->pools.masks;
	inst->staged = inst->pools.digest;
	inst->staged_masks = inst->pools.masks;
	for (uint32_t i = pools ? 0 : inst->table.first_changed; !r && i < inst->table.n; i++) {
		struct entry *e = inst->table.list[i];
		if (e->ctr && (all || e->changed || (pools && stage_follows_pools(e))))
			r = stage_entry(inst, txn, e, mems);
	}
	if (!r)
		inst->table.first_changed = inst->table.n;
	return r;
}

int32_t stage_all(struct rp_instance *inst, rp_txn txn)
{
	int32_t r = pools_make(inst);
	return r ? r : stage_made(inst, txn);
}

int32_t stage_checked(struct rp_instance *inst, rp_txn txn)
{
	int32_t r = pools_make(inst);
	if (!r)
		r = place_check(inst);
	return r ? r : stage_made(inst, txn);
}
