/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything at once: who has a set that is still right keeps it, then those that wait for exclusive CPUs get some, and the rest shares
 * what is left. A container that cannot have what it is entitled to shares too and is retried whenever CPUs come free.
 */
#include <stdlib.h>

#include "modules/lib/adopt.h"
#include "modules/static/static.h"

/*
 * What of the container's CPUs is exclusively its own. Another policy's choice is taken over, if it is one that we could have made; what it
 * called exclusive is not known any more, so it is what nobody else runs on.
 */
static struct rp_ids own_cpus(struct rp_instance *inst, const struct rp_ctr_info *info,
			      struct rp_ids common)
{
	if (stage_is_ours(inst, info->ctr))
		return info->exclusive;
	struct rp_ids cpus = adopt_cpus(info);
	if (inst->synced || (info->flags & RP_CTR_DEGRADED) || rp_ids_overlap(cpus, common) ||
	    rp_ids_overlap(cpus, rp_ids_of(&inst->plan->reserved)) ||
	    !place_passes(inst, info->ctr, cpus))
		return rp_ids_none();
	return cpus;
}

/* Is it what the container would be given? */
static int still_right(const struct rp_instance *inst, struct rp_ids own, int64_t n)
{
	const struct rp_plan *plan = inst->plan;
	struct rp_idset usable;
	rp_idset_or(&usable, rp_ids_of(&plan->all), rp_ids_of(&plan->iso));
	return n && rp_ids_count(own) == n && rp_ids_subset(own, rp_ids_of(&usable)) &&
	       !rp_ids_overlap(own, rp_ids_of(&inst->owners.taken));
}

/* Fills inst->entries with those that are to be placed at all, and gives those that can keep their CPUs what they have. */
static int32_t keep_what_is_right(struct rp_instance *inst)
{
	struct rp_idset common;
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_SYNC), n_entries = 0;
	struct sync_entry *entries =
		n > 0 ? realloc(inst->entries, (uint32_t)n * sizeof *entries) : NULL;
	if (n > 0 && !entries)
		return modhost_fail(&inst->h, -RP_ENOMEM, "out of memory");
	inst->entries = entries ? entries : inst->entries;
	int32_t r = n < 0 ? n : adopt_common(&inst->h, inst->list.ctrs, (uint32_t)n, &common);
	for (int32_t i = 0; !r && i < n; i++) {
		struct rp_ctr_info info;
		r = ctr_info(&inst->h, inst->list.ctrs[i], &info);
		if (r || info.flags & RP_CTR_PRESERVE_CPU)
			continue;
		struct rp_ids own = own_cpus(inst, &info, rp_ids_of(&common));
		struct sync_entry *e = &inst->entries[n_entries++];
		*e = (struct sync_entry){.ctr = info.ctr, .n_wanted = place_wanted(&info)};
		e->kept = still_right(inst, own, e->n_wanted);
		if (e->kept)
			owners_give(&inst->owners, own, e->ctr);
	}
	return r ? r : n_entries;
}

/* Exclusive CPUs for one that waits: 1 when there are none, with the reason in p. */
static int32_t try_exclusive(struct rp_instance *inst, const struct rp_ctr_info *info,
			     struct placing *p)
{
	if (place_find(inst, info->ctr, place_wanted(info), p))
		return 1;
	owners_give(&inst->owners, rp_ids_of(&p->cpus), info->ctr);
	place_explain(inst, info, p);
	return 0;
}

static int32_t place_waiting(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct placing p;
	struct rp_ctr_info info;
	int32_t r = ctr_info(&inst->h, ctr, &info);
	if (r || !try_exclusive(inst, &info, &p))
		return r;
	modhost_log(&inst->h, RP_LOG_WARNING, ctr, "%s; it shares CPUs for now", p.text);
	modhost_note(&inst->h, ctr, "no exclusive CPUs: %s", p.text);
	inst->waiting = 1;
	return stage_degraded(inst, txn, ctr, p.text);
}

/* Where containers share. When nothing is left for that, those that run already have to make do with the reserved CPUs. */
static int share_where(const struct rp_instance *inst, struct rp_idset *ret)
{
	plan_shared(inst->plan, &inst->owners, ret);
	if (!rp_ids_empty(rp_ids_of(ret)))
		return 1;
	rp_idset_andnot(ret, rp_ids_of(&inst->plan->reserved), rp_ids_of(&inst->owners.taken));
	return 0;
}

static int32_t stage_entry(struct rp_instance *inst, rp_txn txn, const struct sync_entry *e,
			   struct rp_ids shared, int enough)
{
	struct rp_ctr_info info;
	struct rp_idset own;
	int32_t r = ctr_info(&inst->h, e->ctr, &info);
	if (r)
		return r;
	if (owners_owned(&inst->owners, e->ctr, &own)) {
		if (e->kept && !inst->synced)
			modhost_note(&inst->h, e->ctr, "keeps the exclusive CPUs that it had");
		return stage_exclusive(inst, txn, &info, rp_ids_of(&own));
	}
	if (!enough)
		inst->waiting = 1;
	if (!e->n_wanted) {
		place_explain_shared(inst, &info);
		r = stage_degraded(inst, txn, e->ctr, enough ? NULL : SHARED_EMPTY_TEXT);
	}
	return r || rp_ids_empty(shared) ? r : stage_shared(inst, txn, &info, shared);
}

int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	owners_clear(&inst->owners);
	inst->waiting = 0;
	int32_t n = keep_what_is_right(inst), r = n < 0 ? n : 0;
	for (int32_t i = 0; !r && i < n; i++)
		if (inst->entries[i].n_wanted && !inst->entries[i].kept)
			r = place_waiting(inst, txn, inst->entries[i].ctr);
	struct rp_idset shared;
	int enough = share_where(inst, &shared);
	for (int32_t i = 0; !r && i < n; i++)
		r = stage_entry(inst, txn, &inst->entries[i], rp_ids_of(&shared), enough);
	if (!r)
		inst->synced = 1;
	return r;
}

static int32_t retry_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, int enough)
{
	struct placing p;
	struct rp_ctr_info info;
	struct rp_idset own;
	int32_t r = ctr_info(&inst->h, ctr, &info);
	if (r || (info.flags & RP_CTR_PRESERVE_CPU) || owners_owned(&inst->owners, ctr, &own))
		return r;
	if (place_wanted(&info)) {
		if (!try_exclusive(inst, &info, &p))
			return stage_exclusive(inst, txn, &info, rp_ids_of(&p.cpus));
		inst->waiting = 1;
		return 0;
	}
	if (!(info.flags & RP_CTR_DEGRADED))
		return 0;
	if (enough)
		return stage_degraded(inst, txn, ctr, NULL);
	inst->waiting = 1;
	return 0;
}

int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	if (!inst->waiting)
		return 0;
	struct rp_idset shared;
	int enough = share_where(inst, &shared);
	inst->waiting = 0;
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_SYNC), r = n < 0 ? n : 0;
	for (int32_t i = 0; !r && i < n; i++)
		if (inst->list.ctrs[i] != except)
			r = retry_one(inst, txn, inst->list.ctrs[i], enough);
	return r;
}
