/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the qos policy; qos.h describes what the policy does. */
#include <stdlib.h>
#include <string.h>

#include "modules/qos/qos.h"

static void past(const struct rp_instance *inst, struct reserve_past *ret)
{
	const struct rp_plan *p = inst->plan;
	const struct rp_ids listed = rp_ids_of(&p->listed);
	rp_idset_copy(&ret->cpus, rp_ids_empty(listed) ? rp_ids_of(&p->reserved) : rp_ids_none());
	rp_idset_copy(&ret->listed, listed);
	rp_idset_copy(&ret->busy, rp_ids_of(&inst->owners.taken));
	ret->hotplug = false;
}

/* Copies only the words in use of the set, which has room for all CPU numbers. */
static void past_copy(struct past *to, const struct past *from)
{
	to->sized = from->sized;
	to->overlap = from->overlap;
	rp_idset_copy(&to->reclaim, rp_ids_of(&from->reclaim));
}

static void begin(struct rp_instance *inst)
{
	past_copy(&inst->past_before, &inst->past);
}

static int32_t qos_forget(struct rp_instance *inst, struct entry *e)
{
	struct rp_idset had;
	rp_pod pod = e->pod;
	bool main = e->is.role == ROLE_MAIN;
	table_remove(inst, e);
	if (!table_has_pod(inst, pod))
		(void)owners_release(&inst->owners, pod, &had);
	return main ? admit_unuse(inst, pod) : 0;
}

static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	/* The runtime repeats a request whose reply was lost: keep the placement. */
	struct entry *e = table_find(inst, info->ctr);
	int32_t r = 0;
	if (e)
		table_mark(inst, e);
	else
		r = place_new(inst, txn, info, PLACE_CREATED);
	if (!r)
		r = stage_checked(inst, txn);
	e = table_find(inst, info->ctr);
	return r || !e ? r : env_stage(inst, txn, info, e);
}

static int32_t resize(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct entry *e = table_find(inst, info->ctr);
	int32_t r = e ? place_resize(inst, txn, info, e) : 0;
	if (!r)
		r = sync_retry(inst, txn);
	return r ? r : stage_checked(inst, txn);
}

static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct entry *e = table_find(inst, info->ctr);
	if (!e) /* dedicated CPUs may have been left to a container that was not pinned */
		return inst->pools.overlapping ? stage_all(inst, txn) : 0;
	inst->past.sized = true;
	int32_t r = qos_forget(inst, e);
	if (!r)
		r = ctr_forget(&inst->h, txn, info->ctr);
	if (!r)
		r = sync_retry(inst, txn);
	return r ? r : stage_all(inst, txn);
}

static void enter(struct rp_instance *inst)
{
	inst->pools.counted = false;
}

static int32_t unmanaged(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	int32_t r = place_lost(inst, info);
	return r ? r : stage_all(inst, txn);
}

static int32_t timer(struct rp_instance *inst, rp_txn txn, uint64_t cookie)
{
	return cookie == ADVISE_TIMER ? advise_now(inst, txn) : sync_ramp(inst, txn);
}

static int32_t removed(struct rp_instance *inst, rp_txn txn, rp_pod pod)
{
	int32_t r = admit_end(inst, txn, pod);
	if (r || !inst->waiting)
		return r;
	r = sync_retry(inst, txn);
	return r ? r : stage_all(inst, txn);
}

static int32_t rolled_back(struct rp_instance *inst)
{
	inst->past = inst->past_before;
	inst->staged = 0;
	return table_load(inst) || pools_make(inst) ? RP_RESYNC : 0;
}

/* ---- saved state ----------------------------------------------------------------------------- */

#define SAVED_VERSION 1u

struct saved {
	uint32_t version;
	uint8_t sized, overlap, pad[2];
	uint32_t nw, pad2;
};

static int32_t qos_save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	const struct rp_idset *set = &inst->past.reclaim;
	struct saved head = {.version = SAVED_VERSION,
			     .sized = inst->past.sized,
			     .overlap = inst->past.overlap,
			     .nw = inst->past.overlap ? set->nw : 0};
	memcpy(inst->saved, &head, sizeof head);
	memcpy(inst->saved + sizeof head, set->w, head.nw * sizeof *set->w);
	*ret_data = inst->saved;
	*ret_size = (uint32_t)(sizeof head + head.nw * sizeof *set->w);
	return 0;
}

static int32_t qos_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	struct bytes_left left = bytes_of(data, size);
	struct rp_idset reclaim;
	struct saved head;
	if (!bytes_take(&left, &head, sizeof head) || head.version != SAVED_VERSION ||
	    !bytes_take_set(&left, head.nw, &reclaim) || bytes_n_left(&left))
		return -RP_EINVAL;
	inst->past = (struct past){
		.sized = head.sized != 0, .overlap = head.overlap != 0, .reclaim = reclaim};
	return 0;
}

static const struct rp_state state = {
	.size = sizeof(struct rp_state), .save = qos_save, .load = qos_load};

/* ---- instance -------------------------------------------------------------------------------- */

static void fini(struct rp_instance *inst)
{
	table_release(inst);
	free(inst->pods);
}

static const struct life_ops ops = {
	.plan_size = sizeof(struct rp_plan),
	.fill = plan_fill,
	.check = plan_check,
	.plan_fini = plan_fini,
	.enter = enter,
	.begin = begin,
	.sync = sync_all,
	.place = place,
	.release = release,
	.resize = resize,
	.unmanaged = unmanaged,
	.timer = timer,
	.admit = admit_pod,
	.removed = removed,
	.allocatable = report_allocatable,
	.memory = report_memory,
	.past = past,
	.rolled_back = rolled_back,
	.done = sync_arm,
	.fini = fini,
	.schema = &qos_schema,
	.report_zones = qos_zones,
	.report_metrics = qos_metrics,
	.relief = offsetof(struct rp_instance, relief),
	.state = &state,
};

/* The policy requires groups that share CPUs, and private data of pods. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
LIFE_MODULE(
	"qos", "1.0", ops,
	.summary =
		"levels of service: dedicated, shared, reclaimed and system CPUs, chosen by pods",
	.licence = "Apache-2.0");
