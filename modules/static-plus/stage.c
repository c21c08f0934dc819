/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages CPUs, CPU shares, status and record of containers, and the CPUs of all containers on
 * shared CPUs.
 */
#include <string.h>

#include "modules/static-plus/static-plus.h"

#define RECORD_VERSION 1u

bool stage_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	return ctr_record(&inst->h, ctr, RECORD_VERSION, ret, sizeof *ret) && ret->kind < N_KINDS;
}

static bool stage_shares(uint32_t kind)
{
	return kind == KIND_SHARED || kind == KIND_MIXED;
}

/*
 * Replaces an empty set by another one, because a running container needs a CPU even if all
 * reserved CPUs are offline.
 */
static void stage_else(struct rp_idset *set, const struct rp_idset *other)
{
	if (rp_ids_empty(rp_ids_of(set)))
		rp_idset_copy(set, rp_ids_of(other));
}

static void stage_system_cpus(const struct rp_instance *inst, struct rp_idset *ret)
{
	struct rp_idset shared;
	place_shared(inst, &shared);
	*ret = inst->plan->reserved;
	stage_else(ret, &shared);
	stage_else(ret, &inst->plan->machine->online);
}

static int32_t stage_sets(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, struct rp_ids shared,
			  struct rp_ids slice)
{
	const struct modhost *h = &inst->h;
	struct rp_idset cpus;
	rp_idset_or(&cpus, shared, slice);
	int32_t r = h->cache->set_cpus(h->ctx, txn, ctr, rp_ids_of(&cpus));
	if (!r)
		r = h->cache->set_exclusive(h->ctx, txn, ctr, slice);
	return r ? r : ctr_set_data_sets(h, txn, ctr, shared, slice);
}

static int64_t stage_weight(const struct wish *w)
{
	return w->kind == KIND_EXCLUSIVE ? 1000 * (int64_t)w->full : w->part;
}

int32_t stage_ctr(struct rp_instance *inst, rp_txn txn, const struct wish *w, const char *reason)
{
	const struct modhost *h = &inst->h;
	const struct record rec = {RECORD_VERSION, w->kind, w->part};
	struct rp_idset slice, system;
	int32_t r = 0;
	rp_ctr ctr = w->info->ctr;
	stage_system_cpus(inst, &system);
	(void)owners_owned(&inst->owners, ctr, &slice);
	/* stage_sharers() stages the CPUs of containers that use shared CPUs. */
	if (w->kind == KIND_SYSTEM)
		r = stage_sets(inst, txn, ctr, rp_ids_of(&system), rp_ids_none());
	else if (w->kind == KIND_EXCLUSIVE)
		r = stage_sets(inst, txn, ctr, rp_ids_none(), rp_ids_of(&slice));
	/* A container that uses its pod's request keeps the kubelet's shares. */
	bool of_pod = (w->info->flags & RP_CTR_POD_RESOURCES) && !stage_weight(w) &&
		      w->info->asked_shares != RP_NOT_SET;
	if (!r)
		r = of_pod ? h->cache->set_int(h->ctx, txn, ctr, RP_F_SHARES, w->info->asked_shares)
			   : ctr_set_shares(h, txn, ctr, stage_weight(w));
	if (!r)
		r = h->cache->set_degraded(h->ctx, txn, ctr, reason);
	return r ? r : ctr_set_record(h, txn, ctr, &rec, sizeof rec);
}

/*
 * Returns the capacity of the shared CPUs in milli-CPU. *wide receives the shared and the reserved
 * CPUs.
 */
static int64_t look_at_shared(const struct rp_instance *inst, struct rp_idset *shared,
			      struct rp_idset *wide)
{
	place_shared(inst, shared);
	rp_idset_or(wide, rp_ids_of(shared), rp_ids_of(&inst->plan->reserved));
	stage_else(wide, &inst->plan->machine->online);
	return 1000 * (int64_t)rp_ids_count(rp_ids_of(shared));
}

/* Adds a request to the sum, and stages the slice and the shared CPUs for it. */
static int32_t stage_part(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, int64_t part,
			  struct rp_ids slice)
{
	struct rp_idset shared, wide;
	int64_t left = look_at_shared(inst, &shared, &wide) - inst->parts;
	inst->parts += part;
	return stage_sets(inst, txn, ctr, rp_ids_of(left > 0 ? &shared : &wide), slice);
}

int32_t stage_last_sharer(struct rp_instance *inst, rp_txn txn, const struct wish *w)
{
	return stage_part(inst, txn, w->info->ctr, w->part, rp_ids_none());
}

bool stage_forget_sharer(struct rp_instance *inst, const struct record *rec)
{
	struct rp_idset shared, wide;
	bool used_up = inst->parts >= look_at_shared(inst, &shared, &wide);
	inst->parts -= stage_shares(rec->kind) ? rec->part : 0;
	return !used_up || !stage_shares(rec->kind);
}

/* Stages the CPUs of one container on shared CPUs and adds its request to the sum. */
static int32_t stage_sharer(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			    const struct life_walk *w)
{
	struct rp_idset shared, slice;
	struct record rec;
	if (!stage_read(inst, info->ctr, &rec))
		return 0;
	if (rec.kind == KIND_SYSTEM && rp_ids_empty(rp_ids_of(&inst->plan->reserved))) {
		stage_system_cpus(inst, &shared);
		return stage_sets(inst, txn, info->ctr, rp_ids_of(&shared), rp_ids_none());
	}
	if (!stage_shares(rec.kind))
		return 0;
	(void)owners_owned(&inst->owners, info->ctr, &slice);
	return stage_part(inst, txn, info->ctr, rec.part, rp_ids_of(&slice));
}

/*
 * Containers use the shared CPUs in the order of their creation. Once the capacity is used up,
 * further containers get the reserved CPUs as well.
 */
int32_t stage_sharers(struct rp_instance *inst, rp_txn txn)
{
	inst->parts = 0;
	return life_walk(inst, txn, (struct life_walk){.each = stage_sharer});
}
