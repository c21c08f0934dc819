/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the cpuset policy. What the policy does is told in cpuset.h. */
#include <stdlib.h>
#include <string.h>

#include "modules/cpuset/cpuset.h"

static int32_t cpuset_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	return plan_new(&inst->h, cfg, ret_plan);
}

static void cpuset_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	plan_free(inst->plan);
	inst->plan = plan;
	inst->strict = inst->synced;
}

static void cpuset_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	plan_free(plan);
}

static int32_t cpuset_sync(struct rp_instance *inst, rp_txn txn)
{
	inst->stale = true;
	return sync_all(inst, txn);
}

/* Every callback about one container begins here. 1: there is nothing to do about it. */
static int32_t begin(struct rp_instance *inst, rp_ctr ctr, struct looked *ret)
{
	if (!inst->plan)
		return modhost_fail(&inst->h, -RP_EAGAIN, "no configuration is in force");
	inst->stale = true;
	int32_t r = look_at(inst, ctr, ret);
	return r ? r : (ret->info.flags & RP_CTR_PRESERVE_CPU) != 0;
}

/* Takes what it has out of the books; false: they know nothing of it. */
static bool forget(struct rp_instance *inst, const struct looked *c)
{
	struct record rec;
	if (!record_read(inst, c->info.ctr, &rec))
		return false;
	books_del(&inst->books, rec.class, c->info.cpus);
	return true;
}

static int32_t cpuset_allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct looked c;
	int32_t r = begin(inst, ctr, &c);
	if (r)
		return r < 0 ? r : 0;
	(void)forget(inst, &c); /* the reply to its first creation was lost */
	return place_new(inst, txn, &c);
}

static int32_t cpuset_update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct looked c;
	struct record rec;
	int32_t r = begin(inst, ctr, &c);
	if (r)
		return r < 0 ? r : 0;
	(void)record_read(inst, ctr, &rec);
	if (c.class == CLASS_ANNOTATED || rec.class == CLASS_ANNOTATED ||
	    (c.class == CLASS_SHARED && rec.class == CLASS_SHARED))
		return 0;
	if (c.class == rec.class)
		r = place_resize(inst, txn, &c, c.info.cpus);
	else if (forget(inst, &c))
		r = place_new(inst, txn, &c);
	if (!r)
		r = sync_retry(inst, txn, ctr);
	/* who has got CPUs to itself has told the others already */
	return r > 0 || (!r && c.class == CLASS_SHARED) ? stage_sharers(inst, txn, ctr) : r;
}

static int32_t cpuset_release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct looked c;
	int32_t r = begin(inst, ctr, &c);
	if (r || !forget(inst, &c))
		return r < 0 ? r : 0;
	const struct modhost *h = &inst->h;
	r = h->cache->set_private(h->ctx, txn, ctr, NULL, 0);
	if (!r)
		r = h->cache->set_exclusive(h->ctx, txn, ctr, rp_ids_none());
	if (!r)
		r = sync_retry(inst, txn, ctr);
	return r < 0 ? r : stage_sharers(inst, txn, ctr);
}

/* It runs although it was refused: among those who share, until there is room. */
static int32_t cpuset_unmanaged(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct looked c;
	int32_t r = begin(inst, ctr, &c);
	if (r)
		return r < 0 ? r : 0;
	struct rp_idset pool;
	books_pool(inst, &pool);
	inst->waiting = true;
	if (rp_ids_empty(rp_ids_of(&pool)))
		return 0;
	books_add(&inst->books, CLASS_SHARED, rp_ids_none());
	return stage_shared(inst, txn, &c, rp_ids_of(&pool),
			    "it was refused and runs all the same");
}

static int32_t cpuset_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	if (ev->type != RP_EVENT_TOPOLOGY || !inst->plan)
		return 0;
	inst->stale = true;
	int32_t r = plan_look(&inst->h, inst->plan);
	return r ? r : sync_all(inst, txn);
}

static int32_t cpuset_rolled_back(struct rp_instance *inst)
{
	if (!inst->stale)
		return 0;
	return books_load(inst) ? RP_RESYNC : 0;
}

static const struct rp_policy policy = {
	.size = sizeof(struct rp_policy),
	.prepare = cpuset_prepare,
	.commit = cpuset_commit,
	.abort = cpuset_abort,
	.sync = cpuset_sync,
	.allocate = cpuset_allocate,
	.update = cpuset_update,
	.release = cpuset_release,
	.event = cpuset_event,
	.rolled_back = cpuset_rolled_back,
	.unmanaged = cpuset_unmanaged,
};

static int32_t cpuset_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	return modhost_instance(host, sizeof(struct rp_instance), MODHOST_POLICY, ret_inst);
}

static void cpuset_destroy(struct rp_instance *inst)
{
	plan_free(inst->plan);
	ctr_list_free(&inst->list);
	free(inst);
}

static const void *cpuset_service(struct rp_instance *inst, const char *id)
{
	static const struct modhost_service services[] = {
		{RP_POLICY_1, &policy},
		{RP_SCHEMA_1, &cpuset_schema},
		{RP_ZONES_1, &cpuset_zones},
		{RP_METRICS_1, &cpuset_metrics},
		{NULL, NULL},
	};
	(void)inst;
	return modhost_service(services, id);
}

/* Groups that share CPUs, amounts as the runtime asked for them. */
#undef RP_MIN_HOST_MINOR
#define RP_MIN_HOST_MINOR 3u
RP_MODULE_DEFINE(
	"cpuset", "1.0", RP_KIND_POLICY,
	.summary = "pods name their CPUs, whole CPUs for containers that ask for them, the rest "
		   "for everybody else",
	.licence = "Apache-2.0", .create = cpuset_create, .destroy = cpuset_destroy,
	.service = cpuset_service);
