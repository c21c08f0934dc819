/* SPDX-License-Identifier: Apache-2.0 */
/* Counts containers in pools. A container's record contains its pool and the amount counted there.
 * Pools are resized and members staged by the caller. */
#include "modules/lib/private/adopt.h"
#include "modules/dynamic-pools/dynamic-pools.h"

#define RECORD_VERSION 1u
#define WHY_OVERFLOW "too few CPUs for its pool"

struct record {
	uint32_t version, pool;
	int64_t mcpu; /* CPU request counted in the pool */
	uint32_t overflows, pad;
};

static bool read_record(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	return ctr_record(&inst->h, ctr, RECORD_VERSION, ret, sizeof *ret);
}

bool members_known(const struct rp_instance *inst, rp_ctr ctr)
{
	struct record rec;
	return read_record(inst, ctr, &rec);
}

/* ---- counting -------------------------------------------------------------------------------- */

static void members_count(struct rp_plan *p, const struct record *rec, int sign)
{
	if (rec->pool >= p->n)
		return;
	p->pools[rec->pool].n_ctrs += (uint32_t)sign;
	p->pools[rec->pool].mcpu += sign * rec->mcpu;
}

/* Reads the record of a container that is in a pool of the plan. Returns false if the record names
 * a pool that does not exist, as the bytes of another version may. */
static bool read_placed(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	return read_record(inst, ctr, ret) && ret->pool < inst->plan->n;
}

static void forget_counts(struct rp_plan *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		p->pools[i].n_ctrs = 0;
		p->pools[i].mcpu = 0;
	}
}

static struct record record_of(const struct rp_ctr_info *info, const struct pool_choice *c)
{
	return (struct record){.version = RECORD_VERSION,
			       .pool = c->pool,
			       .mcpu = ctr_counted_cpu(info) > 0 ? ctr_counted_cpu(info) : 0};
}

static int32_t keep_record(struct rp_instance *inst, rp_txn txn, rp_ctr ctr,
			   const struct record *rec, const struct pool_choice *c)
{
	if (c->odd)
		modhost_log(&inst->h, RP_LOG_WARNING, ctr, "%s", c->why);
	modhost_decided_by(&inst->h, ctr, c->at, "pool %s: %s", inst->plan->pools[c->pool].name,
			   c->why);
	return ctr_set_record(&inst->h, txn, ctr, rec, sizeof *rec);
}

/* Adds a container that is not counted yet to its pool. Results as of members_join(). */
static int32_t members_do_join(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct pool_choice c = dynpools_choose(inst, info);
	const struct record rec = record_of(info, &c);
	members_count(inst->plan, &rec, 1);
	if (!size_fits(inst->plan)) {
		members_count(inst->plan, &rec, -1);
		return 0;
	}
	int32_t r = keep_record(inst, txn, info->ctr, &rec, &c);
	return r ? r : 1;
}

int32_t members_join(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct record had;
	if (read_record(inst, info->ctr, &had))
		members_count(inst->plan, &had, -1);
	return members_do_join(inst, txn, info);
}

int32_t members_overflow(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct pool_choice c = {POOL_SHARED, WHY_OVERFLOW, NULL, false};
	const struct record rec = {RECORD_VERSION, c.pool, 0, true, 0};
	members_count(inst->plan, &rec, 1);
	inst->waiting = true;
	return keep_record(inst, txn, info->ctr, &rec, &c);
}

int32_t members_leave(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct record had;
	if (!read_record(inst, info->ctr, &had))
		return 0;
	members_count(inst->plan, &had, -1);
	int32_t r = ctr_forget(&inst->h, txn, info->ctr);
	return r ? r : 1;
}

/* ---- walks ----------------------------------------------------------------------------------- */

int32_t members_stage_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct record rec;
	if (!read_placed(inst, info->ctr, &rec))
		return 0;
	return dynpools_stage(inst, txn, info, rec.pool, rec.overflows ? WHY_OVERFLOW : NULL);
}

static int32_t count_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	const struct pool_choice c = dynpools_choose(inst, info);
	const struct record rec = record_of(info, &c);
	members_count(inst->plan, &rec, 1);
	return 0;
}

static int32_t join_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			const struct life_walk *w)
{
	struct record had;
	bool last = w->pass + 1 == w->n_passes;
	if (!last && (!read_record(inst, info->ctr, &had) || had.overflows))
		return 0;
	int32_t r = members_do_join(inst, txn, info);
	if (r || !last)
		return r;
	if (life_may_refuse(inst) && read_record(inst, info->ctr, &had) && !had.overflows)
		return modhost_fail(&inst->h, -RP_ENOSPC,
				    "container %s/%s/%s: not enough CPUs for its pool",
				    info->pod_namespace, info->pod_name, info->name);
	return members_overflow(inst, txn, info);
}

int32_t members_sync(struct rp_instance *inst, rp_txn txn)
{
	const struct record keeper = {RECORD_VERSION, POOL_SHARED, 0, 0, 0};
	struct rp_plan *p = inst->plan;
	forget_counts(p);
	int32_t r = life_walk(inst, txn, (struct life_walk){.each = count_one});
	bool too_many = !size_fits(p);
	forget_counts(p);
	members_count(p, &keeper, too_many);
	if (!r)
		r = life_walk(inst, txn,
			      (struct life_walk){.each = join_one,
						 .order = RP_ORDER_SYNC,
						 .n_passes = 2,
						 .pass = !too_many});
	members_count(p, &keeper, -too_many);
	return r < 0 ? r : 0;
}

/* ---- CPUs of another policy, or of a lost store ---------------------------------------------- */

struct adopting {
	struct rp_idset online;
	struct rp_idset common; /* CPUs of containers of several pools */
};

/* Adds the CPUs on which a container runs to its pool. A container on all CPUs was not pinned. */
static int32_t adopt_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	struct rp_plan *p = inst->plan;
	struct adopting *a = w->arg;
	struct record rec;
	struct rp_idset cpus, both;
	rp_idset_and(&cpus, adopt_cpus(info), rp_ids_of(&p->bounds.cpus.rest));
	if (!read_placed(inst, info->ctr, &rec) || rec.pool == POOL_RESERVED || rec.overflows ||
	    rp_ids_subset(rp_ids_of(&a->online), adopt_cpus(info)))
		return 0;
	for (uint32_t i = POOL_SHARED; i < p->n; i++) {
		rp_idset_and(&both, rp_ids_of(&cpus), rp_ids_of(&p->pools[i].cpus));
		if (i != rec.pool)
			rp_idset_or(&a->common, rp_ids_of(&a->common), rp_ids_of(&both));
	}
	rp_idset_or(&p->pools[rec.pool].cpus, rp_ids_of(&p->pools[rec.pool].cpus),
		    rp_ids_of(&cpus));
	return 0;
}

int32_t members_adopt(struct rp_instance *inst, rp_txn txn)
{
	struct rp_plan *p = inst->plan;
	struct adopting a;
	bool any = inst->synced;
	for (uint32_t i = POOL_SHARED; i < p->n; i++)
		any = any || !rp_ids_empty(rp_ids_of(&p->pools[i].cpus));
	if (any)
		return 0;
	rp_idset_clear(&a.common);
	modhost_set(&inst->h, RP_CPUS_ONLINE, &a.online);
	int32_t r = life_walk(inst, txn, (struct life_walk){.each = adopt_one, .arg = &a});
	for (uint32_t i = POOL_SHARED; i < p->n; i++)
		rp_idset_andnot(&p->pools[i].cpus, rp_ids_of(&p->pools[i].cpus),
				rp_ids_of(&a.common));
	return r;
}

/* ---- staging --------------------------------------------------------------------------------- */

static int32_t stage_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	struct record rec;
	if (!read_placed(inst, info->ctr, &rec) || !(*(const uint64_t *)w->arg >> rec.pool & 1))
		return 0;
	return members_stage_one(inst, txn, info);
}

int32_t members_stage(struct rp_instance *inst, rp_txn txn, uint64_t pools, rp_ctr except)
{
	const struct life_walk w = {.each = stage_one, .except = except, .arg = &pools};
	return pools ? life_walk(inst, txn, w) : 0;
}

static int32_t retry_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	struct record rec;
	if (!read_record(inst, info->ctr, &rec) || !rec.overflows)
		return 0;
	int32_t r = members_join(inst, txn, info);
	if (r > 0)
		return members_stage_one(inst, txn, info);
	members_count(inst->plan, &rec, 1);
	inst->waiting = true;
	return r;
}

int32_t members_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	return life_retry(inst, txn, except, retry_one);
}

static int32_t weigh_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	struct rp_usage usage;
	struct record rec;
	if (read_placed(inst, info->ctr, &rec) && modhost_usage(&inst->h, info->ctr, &usage) &&
	    usage.cpu > 0)
		inst->plan->pools[rec.pool].weight += usage.cpu;
	return 0;
}

int32_t members_weigh(struct rp_instance *inst, rp_txn txn)
{
	for (uint32_t i = 0; i < inst->plan->n; i++)
		inst->plan->pools[i].weight = 0;
	return life_walk(inst, txn, (struct life_walk){.each = weigh_one});
}
