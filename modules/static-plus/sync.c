/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything at once: whoever has a slice that is right keeps it, then those that lack one get theirs. One for which there are too few
 * CPUs shares, says so, and is tried again whenever some come free.
 */
#include <string.h>

#include "modules/lib/adopt.h"
#include "modules/static-plus/static-plus.h"

/* What of its CPUs is its own: of another policy's choice what nobody else has. */
static struct rp_ids own_cpus(struct rp_instance *inst, const struct wish *w, struct rp_ids common)
{
	struct record rec;
	if (stage_read(inst, w->info.ctr, &rec))
		return w->info.exclusive;
	struct rp_ids cpus = adopt_cpus(&w->info);
	return inst->synced || rp_ids_overlap(cpus, common) ? rp_ids_none() : cpus;
}

static bool is_right(const struct rp_instance *inst, const struct wish *w, struct rp_ids own)
{
	struct rp_idset usable;
	rp_idset_or(&usable, rp_ids_of(&inst->plan->pool), rp_ids_of(&inst->plan->isolated));
	return w->full && rp_ids_count(own) == w->full && rp_ids_subset(own, rp_ids_of(&usable)) &&
	       !rp_ids_overlap(own, rp_ids_of(&inst->owners.taken));
}

static bool is_placed(const struct rp_instance *inst, const struct wish *w)
{
	struct rp_idset own;
	return (w->info.flags & RP_CTR_PRESERVE_CPU) || !w->full ||
	       owners_owned(&inst->owners, w->info.ctr, &own);
}

static int32_t keep(struct rp_instance *inst, int32_t n)
{
	struct rp_idset common;
	int32_t r = adopt_common(&inst->h, inst->list.ctrs, (uint32_t)n, &common);
	for (int32_t i = 0; !r && i < n; i++) {
		struct wish w;
		r = wish_of(inst, inst->list.ctrs[i], &w);
		if (r || w.info.flags & RP_CTR_PRESERVE_CPU)
			continue;
		struct rp_ids own = own_cpus(inst, &w, rp_ids_of(&common));
		if (is_right(inst, &w, own))
			owners_give(&inst->owners, own, w.info.ctr);
	}
	return r;
}

/* 1: it has got its slice. Without one it shares, by what it would have beside it. */
static int32_t place_one(struct rp_instance *inst, rp_txn txn, struct wish *w)
{
	char why[MODHOST_TEXT_MAX] = "";
	struct rp_idset slice;
	inst->h.why = why;
	int32_t r = place_slice(inst, w, rp_ids_none(), &slice);
	inst->h.why = NULL;
	if (!r) {
		owners_give(&inst->owners, rp_ids_of(&slice), w->info.ctr);
		place_explain(inst, w, rp_ids_of(&slice));
		r = stage_ctr(inst, txn, w, NULL);
		return r ? r : 1;
	}
	if (r != -RP_ENOSPC)
		return r;
	w->part = w->info.cpu_request;
	w->kind = KIND_SHARED;
	return stage_ctr(inst, txn, w, why);
}

static int32_t stage_kept(struct rp_instance *inst, rp_txn txn, const struct wish *w)
{
	struct rp_idset slice;
	if (w->info.flags & RP_CTR_PRESERVE_CPU)
		return 0;
	(void)owners_owned(&inst->owners, w->info.ctr, &slice);
	if (!inst->synced)
		place_explain(inst, w, rp_ids_of(&slice));
	return stage_ctr(inst, txn, w, NULL);
}

int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	owners_clear(&inst->owners);
	inst->waiting = false;
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_SYNC);
	int32_t r = n < 0 ? n : keep(inst, n);
	for (int placed = 1; placed >= 0; placed--)
		for (int32_t i = 0; r >= 0 && i < n; i++) {
			struct wish w;
			rp_ctr ctr = inst->list.ctrs[i];
			r = ctr ? wish_of(inst, ctr, &w) : 0;
			if (r || !ctr || is_placed(inst, &w) != placed)
				continue;
			inst->list.ctrs[i] = 0;
			r = placed ? stage_kept(inst, txn, &w) : place_one(inst, txn, &w);
		}
	r = r < 0 ? r : stage_sharers(inst, txn);
	inst->synced = inst->synced || !r;
	return r;
}

int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	if (!inst->waiting)
		return 0;
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_SYNC), r = n < 0 ? n : 0;
	inst->waiting = false;
	for (int32_t i = 0; r >= 0 && i < n; i++) {
		struct wish w;
		if (inst->list.ctrs[i] == except)
			continue;
		r = wish_of(inst, inst->list.ctrs[i], &w);
		if (!r && !is_placed(inst, &w) && (w.info.flags & RP_CTR_DEGRADED))
			r = place_one(inst, txn, &w);
	}
	return r < 0 ? r : 0;
}
