/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a container's request into exclusive and shared CPUs, and chooses, grows or shrinks its
 * slice.
 */
#include <string.h>

#include <nri-rp/lib/section.h>
#include "modules/static-plus/static-plus.h"

#define SET_TEXT_MAX 256u
#define SYSTEM_NAMESPACE "kube-system"

const char *const kind_names[N_KINDS] = {
	[KIND_SHARED] = "shared",
	[KIND_EXCLUSIVE] = "exclusive",
	[KIND_MIXED] = "mixed",
	[KIND_SYSTEM] = "system",
};

struct wish wish_of(const struct rp_ctr_info *info)
{
	int64_t request = info->cpu_request > 0 ? info->cpu_request : 0;
	bool system = strcmp(info->pod_namespace, SYSTEM_NAMESPACE) == 0;
	bool shares = system || !ctr_may_own_cpus(info);
	int64_t full = shares ? 0 : request / 1000, part = shares ? request : request % 1000;
	return (struct wish){.info = info,
			     .kind = system  ? KIND_SYSTEM
				     : !full ? KIND_SHARED
				     : part  ? KIND_MIXED
					     : KIND_EXCLUSIVE,
			     .full = full > RP_CPUS_MAX ? RP_CPUS_MAX + 1 : (uint32_t)full,
			     .part = part};
}

void place_shared(const struct rp_instance *inst, struct rp_idset *ret)
{
	rp_idset_andnot(ret, rp_ids_of(&inst->plan->pool), rp_ids_of(&inst->owners.taken));
}

bool place_leaves_some(const struct rp_instance *inst, uint32_t n)
{
	struct rp_idset shared;
	place_shared(inst, &shared);
	return !rp_ids_empty(rp_ids_of(&inst->plan->reserved)) ||
	       n < rp_ids_count(rp_ids_of(&shared));
}

static void free_isolated(const struct rp_instance *inst, struct rp_idset *ret)
{
	rp_idset_andnot(ret, rp_ids_of(&inst->plan->isolated), rp_ids_of(&inst->owners.taken));
}

/*
 * Returns true if the container prefers isolated CPUs, which is the default. An annotation with an
 * invalid value is treated as false.
 */
static bool wants_isolated(const struct rp_instance *inst, rp_ctr ctr)
{
	const char *text = ctr_annotation(&inst->h, ctr, "prefer-isolated-cpus");
	int wanted = 1;
	if (text && modhost_parse_bool(text, &wanted)) {
		modhost_note(&inst->h, ctr,
			     "prefer-isolated-cpus: \"%.64s\" is neither true nor false: treated "
			     "as false",
			     text);
		return false;
	}
	return wanted;
}

static int32_t place_take(const struct rp_instance *inst, struct rp_idset *from, uint32_t n,
			  struct rp_idset *ret)
{
	return cpualloc_allocate(inst->plan->alloc, from, n, CPUALLOC_HIGH, CPUALLOC_PLAIN, ret);
}

static int32_t place_do_find(struct rp_instance *inst, const struct wish *w, struct rp_idset *ret)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset from;
	free_isolated(inst, &from);
	if (rp_ids_count(rp_ids_of(&from)) < w->full || !wants_isolated(inst, w->info->ctr)) {
		if (!place_leaves_some(inst, w->full))
			return -RP_ENOSPC;
		place_shared(inst, &from);
	}
	if (!p->parity)
		(void)machine_narrow(p->machine, &from, w->full, true);
	return place_take(inst, &from, w->full, ret);
}

/* Adds CPUs to a slice, always the CPU closest to it; with parity, CPUs of its packages first. */
static int32_t place_grow(struct rp_instance *inst, struct rp_ids own, uint32_t more,
			  struct rp_idset *ret)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset shared, near, added;
	if (!place_leaves_some(inst, more))
		return -RP_ENOSPC;
	place_shared(inst, &shared);
	rp_idset_andnot(&shared, rp_ids_of(&shared), own);
	if (!p->parity)
		return machine_grow(p->machine, own, rp_ids_of(&shared), more, ret);
	machine_surround(p->machine, MACHINE_PACKAGE, own, &near);
	rp_idset_and(&near, rp_ids_of(&near), rp_ids_of(&shared));
	uint32_t n_near = rp_ids_count(rp_ids_of(&near));
	int32_t r = place_take(inst, &near, n_near < more ? n_near : more, &added);
	rp_idset_or(ret, own, rp_ids_of(&added));
	if (r || n_near >= more)
		return r;
	rp_idset_andnot(&shared, rp_ids_of(&shared), rp_ids_of(&added));
	r = place_take(inst, &shared, more - n_near, &added);
	rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&added));
	return r;
}

/* Shrinks a slice to the n CPUs that the allocator chooses from it. */
static int32_t place_shrink(struct rp_instance *inst, struct rp_ids own, uint32_t n,
			    struct rp_idset *ret)
{
	struct rp_idset from;
	rp_idset_copy(&from, own);
	if (!inst->plan->parity)
		(void)machine_narrow(inst->plan->machine, &from, n, true);
	return place_take(inst, &from, n, ret);
}

int32_t place_slice(struct rp_instance *inst, const struct wish *w, struct rp_ids own,
		    struct rp_idset *ret)
{
	uint32_t n = rp_ids_count(own);
	rp_idset_copy(ret, own);
	int32_t r = n == w->full  ? 0
		    : !n	  ? place_do_find(inst, w, ret)
		    : n < w->full ? place_grow(inst, own, w->full - n, ret)
				  : place_shrink(inst, own, w->full, ret);
	if (r != -RP_ENOSPC)
		return r ? modhost_fail(&inst->h, r, "out of memory") : 0;
	inst->counters.refused++;
	inst->waiting = true;
	return modhost_fail(&inst->h, -RP_ENOSPC,
			    "failed to allocate %u exclusive CPUs: not enough capacity", w->full);
}

void place_explain(struct rp_instance *inst, const struct wish *w, struct rp_ids slice)
{
	char text[SET_TEXT_MAX];
	const struct modhost *h = &inst->h;
	inst->counters.placed[w->kind]++;
	switch (w->kind) {
	case KIND_SYSTEM:
		modhost_decided_by(h, w->info->ctr,
				   section_get(h, inst->plan->section, "reservedResources.cpu"),
				   "it is in " SYSTEM_NAMESPACE ": the reserved CPUs");
		return;
	case KIND_SHARED:
		modhost_note(h, w->info->ctr, "requests less than one CPU: shared CPUs");
		return;
	default:
		modhost_note(h, w->info->ctr, "exclusive CPUs %s%s%s",
			     modhost_set_text(slice, text, sizeof text),
			     rp_ids_overlap(slice, rp_ids_of(&inst->plan->isolated))
				     ? ", isolated by the kernel"
				     : "",
			     w->kind == KIND_MIXED ? "; the rest of its request is on shared CPUs"
						   : "");
	}
}

/* ---- relief ---------------------------------------------------------------------------------- */

static void relief_free(struct rp_instance *inst, const struct rp_ctr_info *info,
			struct rp_idset *ret)
{
	place_shared(inst, ret);
}

static int32_t relief_choose(struct rp_instance *inst, const struct rp_ctr_info *info,
			     struct rp_ids from, uint32_t n, struct rp_idset *ret)
{
	struct rp_idset left;
	rp_idset_copy(&left, from);
	return place_take(inst, &left, n, ret);
}

static int32_t relief_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			    struct rp_ids cpus)
{
	const struct wish w = wish_of(info);
	return stage_ctr(inst, txn, &w, NULL);
}

static bool relief_is_fixed(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct rp_idset own;
	(void)owners_owned(&inst->owners, info->ctr, &own);
	return rp_ids_overlap(rp_ids_of(&own), rp_ids_of(&inst->plan->isolated));
}

static const struct relief_ops relief_ops = {
	.free = relief_free,
	.choose = relief_choose,
	.stage = relief_stage,
	.is_fixed = relief_is_fixed,
};

struct relief_call place_relief(struct rp_instance *inst, rp_txn txn)
{
	inst->relief.set = inst->plan->relief;
	return RELIEF_CALL(inst, txn, &relief_ops);
}
