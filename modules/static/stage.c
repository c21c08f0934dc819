/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages CPUs, memory nodes, CPU quota, status and record of containers. place.c and sync.c decide
 * which CPUs a container gets.
 */
#include <stdlib.h>
#include <string.h>

#include "modules/static/pod_set.h"

#define QUOTA_PERIOD_US 100000
#define QUOTA_MIN_US 1000

/*
 * Record saved with each container with exclusive CPUs. It marks the CPU set as assigned by this
 * policy and lists what to revert when the container shares CPUs again. Written and read on the
 * same node.
 */
struct record {
	uint32_t version;
	uint32_t flags;
};
#define RECORD_VERSION 1u
#define RECORD_MEMORY 0x1u /* memory nodes of the container were pinned */
#define RECORD_QUOTA 0x2u /* CPU quota of the container was removed */
#define RECORD_GROUP 0x4u /* container shared its CPUs with its pod */

static bool read_record(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	return ctr_record(&inst->h, ctr, RECORD_VERSION, ret, sizeof *ret);
}

int stage_is_ours(struct rp_instance *inst, rp_ctr ctr)
{
	struct record rec;
	return read_record(inst, ctr, &rec);
}

/* ---- quota and memory ------------------------------------------------------------------------ */

/* Removes the CPU quota, or restores the one that the kubelet sets for the container's limit. */
static int32_t stage_quota(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			   int lift, uint32_t was)
{
	const struct modhost *h = &inst->h;
	int64_t quota = info->cpu_limit * (QUOTA_PERIOD_US / 1000);
	int32_t r = 0;
	if (!lift && !(was & RECORD_QUOTA))
		return 0;
	if (lift || info->cpu_limit <= 0)
		quota = -1;
	else if (quota < QUOTA_MIN_US)
		quota = QUOTA_MIN_US;
	if (!lift)
		r = h->cache->set_int(h->ctx, txn, info->ctr, RP_F_PERIOD, QUOTA_PERIOD_US);
	return r ? r : h->cache->set_int(h->ctx, txn, info->ctr, RP_F_QUOTA, quota);
}

/* Fills in the memory nodes of a container with exclusive CPUs; empty: its memory is not pinned. */
static void memory_of(const struct rp_instance *inst, const struct rp_ctr_info *info,
		      struct rp_ids cpus, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	if ((inst->plan->settings.pin_memory || info->flags & RP_CTR_CLAIM) &&
	    !(info->flags & RP_CTR_PRESERVE_MEM))
		ctr_memory_for(&inst->h, info->ctr, cpus, ret);
}

static int32_t stage_memory(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			    const struct rp_idset *nodes, uint32_t was)
{
	const struct modhost *h = &inst->h;
	if (!rp_ids_empty(rp_ids_of(nodes)))
		return h->cache->set_mems(h->ctx, txn, info->ctr, rp_ids_of(nodes));
	if (!(was & RECORD_MEMORY))
		return 0;
	return ctr_set_memory(h, txn, info->ctr, rp_ids_none());
}

/* ---- CPUs of a container --------------------------------------------------------------------- */

int32_t stage_degraded(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *reason)
{
	return inst->h.cache->set_degraded(inst->h.ctx, txn, ctr, reason);
}

/* Stages exclusive CPUs of a container, or of its group. lift: without CPU quota. */
static int32_t stage_own(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 struct rp_ids cpus, bool lift, uint32_t group)
{
	const struct modhost *h = &inst->h;
	struct record was = {0}, rec = {.version = RECORD_VERSION};
	(void)read_record(inst, info->ctr, &was);
	struct rp_idset nodes;
	memory_of(inst, info, cpus, &nodes);
	rec.flags = (lift ? RECORD_QUOTA : 0) | (group ? RECORD_GROUP : 0) |
		    (rp_ids_empty(rp_ids_of(&nodes)) ? 0 : RECORD_MEMORY);
	/* The container keeps CPUs that the configuration no longer allows. */
	const char *blemish = rp_ids_overlap(cpus, rp_ids_of(&inst->plan->reserved))
				      ? "some of its exclusive CPUs are now reserved"
				      : NULL;
	if (blemish)
		modhost_log(h, RP_LOG_WARNING, info->ctr, "%s", blemish);
	int32_t r =
		ctr_stage(h, txn, info->ctr,
			  &(struct ctr_stage){
				  .cpus = cpus, .own = cpus, .group = group, .degraded = blemish});
	if (!r)
		r = stage_memory(inst, txn, info, &nodes, was.flags);
	if (!r)
		r = stage_quota(inst, txn, info, lift, was.flags);
	if (!r)
		r = ctr_set_data_sets(h, txn, info->ctr, rp_ids_none(), cpus);
	return r ? r : ctr_set_record(h, txn, info->ctr, &rec, sizeof rec);
}

int32_t stage_exclusive(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			struct rp_ids cpus)
{
	const struct settings *s = &inst->plan->settings;
	/* With rounding to whole cores, the quota keeps the container to its limit. */
	bool lift = s->disable_quota && (s->isolation.threads < 2 ||
					 (int64_t)rp_ids_count(cpus) * 1000 <= info->cpu_limit);
	return stage_own(inst, txn, info, cpus, lift, 0);
}

int32_t stage_followed(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		       struct rp_ids cpus)
{
	return stage_own(inst, txn, info, cpus, true, pod_set_group(info->pod));
}

int32_t stage_shared(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		     struct rp_ids shared)
{
	const struct modhost *h = &inst->h;
	struct record was;
	int32_t r = h->cache->set_cpus(h->ctx, txn, info->ctr, shared);
	if (!r)
		r = h->cache->set_exclusive(h->ctx, txn, info->ctr, rp_ids_none());
	if (!r && inst->plan->settings.pod_scope)
		r = h->cache->set_group(h->ctx, txn, info->ctr, 0);
	if (!r)
		r = ctr_set_data_sets(h, txn, info->ctr, shared, rp_ids_none());
	if (r || !read_record(inst, info->ctr, &was))
		return r;
	struct rp_idset none;
	rp_idset_clear(&none);
	r = stage_memory(inst, txn, info, &none, was.flags);
	if (!r && was.flags & RECORD_GROUP)
		r = h->cache->set_group(h->ctx, txn, info->ctr, 0);
	if (!r)
		r = stage_quota(inst, txn, info, 0, was.flags);
	return r ? r : h->cache->set_private(h->ctx, txn, info->ctr, NULL, 0);
}

int32_t stage_pod_memory(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 struct rp_ids set)
{
	const struct record rec = {.version = RECORD_VERSION, .flags = RECORD_MEMORY};
	struct rp_idset nodes;
	memory_of(inst, info, set, &nodes);
	if (rp_ids_empty(rp_ids_of(&nodes)))
		return 0;
	int32_t r = stage_memory(inst, txn, info, &nodes, 0);
	return r ? r : ctr_set_record(&inst->h, txn, info->ctr, &rec, sizeof rec);
}

/* ---- containers on shared CPUs --------------------------------------------------------------- */

struct follow {
	struct rp_ids shared;
	const char *text;
};

static int32_t stage_do_follow(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			       const struct life_walk *w)
{
	const struct modhost *h = &inst->h;
	const struct follow *f = w->arg;
	if (!rp_ids_empty(info->exclusive))
		return 0;
	int32_t r = h->cache->set_cpus(h->ctx, txn, info->ctr, f->shared);
	return r ? r : h->cache->set_data(h->ctx, txn, info->ctr, "SHARED_CPUS", f->text);
}

int32_t stage_sharers(struct rp_instance *inst, rp_txn txn, struct rp_ids shared, rp_ctr except)
{
	char text[CTR_DATA_MAX + 1];
	struct follow f = {shared, ctr_data_text(&inst->h, "SHARED_CPUS", shared, text)};
	return life_walk(inst, txn,
			 (struct life_walk){.each = stage_do_follow,
					    .except = except,
					    .arg = &f,
					    .skip_owners = &inst->owners});
}
