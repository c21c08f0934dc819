/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places all containers. Containers with a correct exclusive set keep it, waiting containers get
 * exclusive CPUs next, and the other containers share the remaining CPUs. A container without the
 * exclusive CPUs it is entitled to uses shared CPUs and is retried whenever CPUs become free.
 */
#include <stdlib.h>

#include "modules/lib/private/adopt.h"
#include "modules/static/pod_set.h"

/*
 * Returns the exclusive CPUs of a container. CPUs assigned by another policy are adopted if this
 * policy could have chosen them. Which of them that policy treated as exclusive is unknown, so only
 * CPUs that no other container uses count.
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

/* Returns nonzero if the CPUs are a valid exclusive set of n CPUs for the container. */
static int still_right(const struct rp_instance *inst, struct rp_ids own, int64_t n)
{
	const struct rp_plan *plan = inst->plan;
	struct rp_idset usable;
	rp_idset_or(&usable, rp_ids_of(&plan->all), rp_ids_of(&plan->iso));
	return n && rp_ids_count(own) == n && rp_ids_subset(own, rp_ids_of(&usable)) &&
	       !rp_ids_overlap(own, rp_ids_of(&inst->owners.taken)) &&
	       (plan->settings.pod_scope ||
		isolation_permits(&inst->h, &plan->settings.isolation, own));
}

struct syncing {
	struct rp_idset common; /* CPUs in the CPU sets of several containers */
	struct rp_idset kept; /* exclusive CPUs that containers keep */
	struct rp_idset shared;
	bool enough; /* shared CPUs are left in addition to the reserved ones */
};

/* Registers the exclusive CPUs of a container that can keep them. */
static int32_t sync_keep_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			     const struct life_walk *w)
{
	const struct syncing *s = w->arg;
	struct rp_ids own = own_cpus(inst, info, rp_ids_of(&s->common));
	if (still_right(inst, own, place_wanted(inst, info)))
		owners_give(&inst->owners, own, info->ctr);
	return 0;
}

/* Registers the CPUs that schedulers chose: after those that other containers keep, and first for
 * the containers that already have exclusive CPUs. */
static int32_t sync_follow_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			       const struct life_walk *w)
{
	struct rp_idset cpus;
	if (rp_ids_empty(info->exclusive) == (w->pass != 0) && place_follows(inst, info))
		(void)place_followed(inst, info, &cpus);
	return 0;
}

/*
 * Assigns exclusive CPUs to a waiting container. Returns 1 with the reason in p if too few are
 * free.
 */
static int32_t try_exclusive(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			     struct placing *p)
{
	int64_t n = place_wanted(inst, info);
	if (pod_set_ensure(inst, txn, info, p) ||
	    (!pod_set_take(inst, info, rp_ids_none(), n, p) && place_find(inst, info->ctr, n, p)))
		return 1;
	owners_give(&inst->owners, rp_ids_of(&p->cpus), info->ctr);
	place_explain(inst, info, p);
	return 0;
}

static int32_t place_waiting(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			     const struct life_walk *w)
{
	struct placing p;
	struct rp_idset own;
	if (!place_wanted(inst, info) || owners_owned(&inst->owners, info->ctr, &own) ||
	    !try_exclusive(inst, txn, info, &p))
		return 0;
	modhost_log(&inst->h, RP_LOG_WARNING, info->ctr, "%s; using shared CPUs for now", p.text);
	modhost_note(&inst->h, info->ctr, "no exclusive CPUs: %s", p.text);
	inst->waiting = true;
	return stage_degraded(inst, txn, info->ctr, p.text);
}

/*
 * Returns the CPUs for containers without exclusive CPUs. If no shared CPUs are left, running
 * containers use the reserved CPUs and the function returns false.
 */
static bool share_where(const struct rp_instance *inst, struct rp_idset *ret)
{
	plan_shared(inst->plan, &inst->owners, ret);
	if (!rp_ids_empty(rp_ids_of(ret)))
		return true;
	rp_idset_andnot(ret, rp_ids_of(&inst->plan->reserved), rp_ids_of(&inst->owners.taken));
	return false;
}

static int32_t stage_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	const struct syncing *s = w->arg;
	struct rp_idset own;
	int32_t r = 0;
	bool follows = place_follows(inst, info);
	if (follows && owners_owned(&inst->owners, pod_set_owner(info->pod), &own))
		return stage_followed(inst, txn, info, rp_ids_of(&own));
	if (owners_owned(&inst->owners, info->ctr, &own)) {
		if (!inst->synced && rp_ids_subset(rp_ids_of(&own), rp_ids_of(&s->kept)))
			modhost_note(&inst->h, info->ctr, "keeps its exclusive CPUs");
		return stage_exclusive(inst, txn, info, rp_ids_of(&own));
	}
	if (!follows && pod_set_shares(inst, info, &own))
		return pod_set_stage(inst, txn, info, rp_ids_of(&own));
	inst->waiting = inst->waiting || follows || !s->enough;
	if (follows) {
		modhost_log(&inst->h, RP_LOG_WARNING, info->ctr, SYNC_FOLLOW_TEXT);
		r = stage_degraded(inst, txn, info->ctr, SYNC_FOLLOW_TEXT);
	} else if (!place_wanted(inst, info)) {
		place_explain_shared(inst, info);
		r = stage_degraded(inst, txn, info->ctr, s->enough ? NULL : SHARED_EMPTY_TEXT);
	}
	return r || rp_ids_empty(rp_ids_of(&s->shared))
		       ? r
		       : stage_shared(inst, txn, info, rp_ids_of(&s->shared));
}

int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	struct syncing s;
	struct life_walk w = {.order = RP_ORDER_SYNC, .arg = &s};
	/* Which containers wait for relief is unknown after a start: assume that some do. */
	inst->relief.waits = true;
	owners_clear(&inst->owners);
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_SYNC);
	int32_t r = n < 0 ? n : adopt_common(&inst->h, inst->list.ctrs, (uint32_t)n, &s.common);
	w.each = sync_keep_one;
	r = r ? r : life_walk(inst, txn, w);
	w.each = sync_follow_one;
	w.n_passes = 2;
	r = r ? r : life_walk(inst, txn, w);
	w.n_passes = 1;
	place_followed_pods(inst);
	s.kept = inst->owners.taken;
	pod_set_restore(inst);
	w.each = place_waiting;
	r = r ? r : life_walk(inst, txn, w);
	s.enough = share_where(inst, &s.shared);
	w.each = stage_one;
	return r ? r : life_walk(inst, txn, w);
}

static int32_t retry_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	struct placing p;
	struct rp_idset own, shared;
	if (owners_owned(&inst->owners, info->ctr, &own))
		return 0;
	if (place_follows(inst, info)) {
		if (!(info->flags & RP_CTR_DEGRADED))
			return 0;
		if (!place_followed(inst, info, &own))
			return stage_followed(inst, txn, info, rp_ids_of(&own));
	} else if (place_wanted(inst, info)) {
		if (!try_exclusive(inst, txn, info, &p))
			return stage_exclusive(inst, txn, info, rp_ids_of(&p.cpus));
	} else if (!(info->flags & RP_CTR_DEGRADED)) {
		return 0;
	} else if (share_where(inst, &shared)) {
		return stage_degraded(inst, txn, info->ctr, NULL);
	}
	inst->waiting = true;
	return 0;
}

int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	return life_retry(inst, txn, except, retry_one);
}
