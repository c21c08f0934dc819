/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places all containers. Containers with a correct slice keep it; containers without one get their
 * slice afterwards. If too few CPUs are free, a container uses shared CPUs, is marked as degraded,
 * and is retried whenever CPUs become free.
 */
#include <string.h>

#include "modules/lib/private/adopt.h"
#include "modules/static-plus/static-plus.h"

/*
 * Returns the slice of a container. CPUs assigned by another policy are adopted if no other
 * container uses them.
 */
static struct rp_ids own_cpus(struct rp_instance *inst, const struct wish *w, struct rp_ids common)
{
	struct record rec;
	if (stage_read(inst, w->info->ctr, &rec))
		return w->info->exclusive;
	struct rp_ids cpus = adopt_cpus(w->info);
	return inst->synced || rp_ids_overlap(cpus, common) ? rp_ids_none() : cpus;
}

static bool is_right(const struct rp_instance *inst, const struct wish *w, struct rp_ids own)
{
	struct rp_idset usable, of_pool;
	rp_idset_and(&of_pool, own, rp_ids_of(&inst->plan->pool));
	rp_idset_or(&usable, rp_ids_of(&inst->plan->pool), rp_ids_of(&inst->plan->isolated));
	return w->full && rp_ids_count(own) == w->full &&
	       place_leaves_some(inst, rp_ids_count(rp_ids_of(&of_pool))) &&
	       rp_ids_subset(own, rp_ids_of(&usable)) &&
	       !rp_ids_overlap(own, rp_ids_of(&inst->owners.taken));
}

static int32_t sync_do_keep(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			    const struct life_walk *walk)
{
	const struct wish w = wish_of(info);
	struct rp_ids own = own_cpus(inst, &w, rp_ids_of((const struct rp_idset *)walk->arg));
	if (is_right(inst, &w, own))
		owners_give(&inst->owners, own, info->ctr);
	return 0;
}

/*
 * Assigns its slice to a container. Returns 1 on success. Without enough CPUs the container's whole
 * request is added to the shared CPUs, and the function returns 0 or an error.
 */
static int32_t place_one(struct rp_instance *inst, rp_txn txn, struct wish *w)
{
	char why[MODHOST_TEXT_MAX] = "";
	struct rp_idset slice;
	inst->h.why = why;
	int32_t r = place_slice(inst, w, rp_ids_none(), &slice);
	inst->h.why = NULL;
	if (!r) {
		owners_give(&inst->owners, rp_ids_of(&slice), w->info->ctr);
		place_explain(inst, w, rp_ids_of(&slice));
		r = stage_ctr(inst, txn, w, NULL);
		return r ? r : 1;
	}
	if (r != -RP_ENOSPC)
		return r;
	w->part = w->info->cpu_request;
	w->kind = KIND_SHARED;
	return stage_ctr(inst, txn, w, why);
}

static bool lacks_slice(const struct rp_instance *inst, const struct wish *w)
{
	struct rp_idset own;
	return w->full && !owners_owned(&inst->owners, w->info->ctr, &own);
}

/*
 * Stages a container. The first pass stages containers with a slice or without need of one; the
 * second pass places the others.
 */
static int32_t sync_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			const struct life_walk *walk)
{
	struct wish w = wish_of(info);
	struct rp_idset slice;
	if (walk->pass)
		return place_one(inst, txn, &w);
	if (lacks_slice(inst, &w))
		return 0;
	(void)owners_owned(&inst->owners, info->ctr, &slice);
	if (!inst->synced)
		place_explain(inst, &w, rp_ids_of(&slice));
	int32_t r = stage_ctr(inst, txn, &w, NULL);
	return r ? r : 1;
}

int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	struct rp_idset common;
	struct life_walk kept = {.each = sync_do_keep, .order = RP_ORDER_SYNC, .arg = &common};
	struct life_walk all = {.each = sync_one, .order = RP_ORDER_SYNC, .n_passes = 2};
	/* Which containers wait for relief is unknown after a start: assume that some do. */
	inst->relief.waits = true;
	owners_clear(&inst->owners);
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_SYNC);
	int32_t r = n < 0 ? n : adopt_common(&inst->h, inst->list.ctrs, (uint32_t)n, &common);
	if (!r)
		r = life_walk(inst, txn, kept);
	if (r >= 0)
		r = life_walk(inst, txn, all);
	return r < 0 ? r : stage_sharers(inst, txn);
}

static int32_t retry_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *walk)
{
	struct wish w = wish_of(info);
	return lacks_slice(inst, &w) && (info->flags & RP_CTR_DEGRADED) ? place_one(inst, txn, &w)
									: 0;
}

int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	int32_t r = life_retry(inst, txn, except, retry_one);
	return r < 0 ? r : 0;
}
