/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the qos policy. What the policy does is told in qos.h. */
#include <stdlib.h>
#include <string.h>

#include "modules/qos/qos.h"

static int32_t qos_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	struct rp_plan *p;
	int32_t r = plan_new(&inst->h, cfg, false, &p);
	if (r)
		return r;
	r = plan_check_owners(&inst->h, p, rp_ids_of(&inst->owners.taken));
	if (r)
		plan_free(p);
	else
		*ret_plan = p;
	return r;
}

static void qos_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	plan_free(inst->plan);
	inst->plan = plan;
}

static void qos_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	plan_free(plan);
}

/* Every callback that places begins here. */
static int32_t begin(struct rp_instance *inst)
{
	inst->past_before = inst->past;
	return inst->plan ? 0 : modhost_fail(&inst->h, -RP_EAGAIN, "no configuration is in force");
}

static int32_t qos_sync(struct rp_instance *inst, rp_txn txn)
{
	int32_t r = begin(inst);
	return r ? r : sync_all(inst, txn);
}

static int32_t forget(struct rp_instance *inst, rp_txn txn, struct entry *e)
{
	struct rp_idset had;
	rp_pod pod = e->pod;
	bool main = e->is.role == ROLE_MAIN;
	table_remove(inst, e);
	if (!table_has_pod(inst, pod))
		(void)owners_release(&inst->owners, pod, &had);
	return main ? admit_unuse(inst, txn, pod) : 0;
}

static int32_t qos_allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info;
	int32_t r = begin(inst);
	if (!r)
		r = ctr_info(&inst->h, ctr, &info);
	if (r)
		return r;
	/* a lost reply makes the runtime ask again: what was given is kept */
	struct entry *e = table_find(inst, ctr);
	if (e)
		e->changed = true;
	else
		r = place_new(inst, txn, &info, true);
	if (!r)
		r = stage_all(inst, txn);
	e = table_find(inst, ctr);
	return r || !e ? r : env_stage(inst, txn, &info, e);
}

static int32_t qos_update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info;
	int32_t r = begin(inst);
	if (!r)
		r = ctr_info(&inst->h, ctr, &info);
	struct entry *e = r ? NULL : table_find(inst, ctr);
	if (!e)
		return r;
	r = place_resize(inst, &info, e);
	if (!r)
		r = sync_retry(inst, txn);
	return r ? r : stage_all(inst, txn);
}

static int32_t qos_release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	if (begin(inst))
		return 0; /* nothing was ever given */
	struct entry *e = table_find(inst, ctr);
	if (!e)
		return 0;
	inst->past.sized = true;
	int32_t r = forget(inst, txn, e);
	if (!r)
		r = h->cache->set_private(h->ctx, txn, ctr, NULL, 0);
	if (!r)
		r = h->cache->set_exclusive(h->ctx, txn, ctr, rp_ids_none());
	if (!r)
		r = sync_retry(inst, txn);
	return r ? r : stage_all(inst, txn);
}

static int32_t qos_unmanaged(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct rp_ctr_info info;
	int32_t r = begin(inst);
	if (!r)
		r = ctr_info(&inst->h, ctr, &info);
	if (!r)
		r = place_lost(inst, &info);
	return r ? r : stage_all(inst, txn);
}

static int32_t qos_admit_pod(struct rp_instance *inst, rp_txn txn, rp_pod pod)
{
	int32_t r = begin(inst);
	return r ? r : admit_pod(inst, txn, pod);
}

static int32_t qos_pod_removed(struct rp_instance *inst, rp_txn txn, rp_pod pod)
{
	if (begin(inst))
		return 0; /* nothing was ever given */
	int32_t r = admit_end(inst, txn, pod);
	if (!r && inst->waiting) {
		r = sync_retry(inst, txn);
		r = r ? r : stage_all(inst, txn);
	}
	return r;
}

static int32_t look_at_machine(struct rp_instance *inst, rp_txn txn)
{
	struct rp_plan *p;
	int32_t r = plan_new(&inst->h, inst->plan->section, true, &p);
	if (r)
		return r;
	qos_commit(inst, p);
	return sync_all(inst, txn);
}

static int32_t qos_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	if (begin(inst))
		return 0;
	if (ev->type == RP_EVENT_TOPOLOGY)
		return look_at_machine(inst, txn);
	return ev->type == RP_EVENT_TIMER ? sync_ramp(inst, txn) : 0;
}

static int32_t qos_rolled_back(struct rp_instance *inst)
{
	inst->past = inst->past_before;
	inst->staged = 0;
	inst->waiting = true; /* perhaps */
	return !inst->plan || table_load(inst) || pools_make(inst) ? RP_RESYNC : 0;
}

static const struct rp_policy policy = {
	.size = sizeof(struct rp_policy),
	.prepare = qos_prepare,
	.commit = qos_commit,
	.abort = qos_abort,
	.sync = qos_sync,
	.allocate = qos_allocate,
	.update = qos_update,
	.release = qos_release,
	.event = qos_event,
	.rolled_back = qos_rolled_back,
	.unmanaged = qos_unmanaged,
	.admit_pod = qos_admit_pod,
	.pod_removed = qos_pod_removed,
};

/* ---- what is kept of the past ------------------------------------------------------------------------------------------ */

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
	struct saved head;
	if (size < sizeof head)
		return -RP_EINVAL;
	memcpy(&head, data, sizeof head);
	if (head.version != SAVED_VERSION || head.nw > RP_IDSET_WORDS ||
	    size != sizeof head + head.nw * sizeof(uint64_t))
		return -RP_EINVAL;
	inst->past = (struct past){.sized = head.sized != 0, .overlap = head.overlap != 0};
	inst->past.reclaim.nw = head.nw;
	memcpy(inst->past.reclaim.w, (const char *)data + sizeof head, head.nw * sizeof(uint64_t));
	return 0;
}

static const struct rp_state state = {
	.size = sizeof(struct rp_state), .save = qos_save, .load = qos_load};

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

static void qos_destroy(struct rp_instance *inst)
{
	plan_free(inst->plan);
	ctr_list_free(&inst->ctrs);
	free(inst->table.list);
	free(inst->pods);
	free(inst);
}

static int32_t qos_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	return modhost_instance(host, sizeof(struct rp_instance), MODHOST_POLICY, ret_inst);
}

static const void *qos_service(struct rp_instance *inst, const char *id)
{
	static const struct modhost_service services[] = {
		{RP_POLICY_1, &policy},	      {RP_SCHEMA_1, &qos_schema}, {RP_ZONES_1, &qos_zones},
		{RP_METRICS_1, &qos_metrics}, {RP_STATE_1, &state},	  {NULL, NULL},
	};
	(void)inst;
	return modhost_service(services, id);
}

/* Groups that share CPUs, what is kept with pods. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
RP_MODULE_DEFINE("qos", "1.0", RP_KIND_POLICY,
		 .summary = "levels of service: dedicated, shared, reclaimed and system CPUs, by "
			    "what pods say",
		 .licence = "Apache-2.0", .create = qos_create, .destroy = qos_destroy,
		 .service = qos_service);
