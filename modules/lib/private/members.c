/* SPDX-License-Identifier: Apache-2.0 */
/* Counting of containers in pools. A container's record contains its pool and the amount counted
 * there. */
#include "modules/lib/private/members.h"

#include <nri-rp/host.h>

#define RECORD_VERSION 1u
#define WHY_OVERFLOW "too few CPUs for its pool"

struct record {
	uint32_t version, pool;
	int64_t mcpu; /* CPU request counted in the pool */
	uint32_t overflows, pad;
};

static struct life *life_of(const struct rp_instance *inst)
{
	return (struct life *)inst;
}

static bool read_record(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	return ctr_record(&life_of(inst)->h, ctr, RECORD_VERSION, ret, sizeof *ret);
}

bool members_known(const struct rp_instance *inst, rp_ctr ctr)
{
	struct record rec;
	return read_record(inst, ctr, &rec);
}

/* ---- counting -------------------------------------------------------------------------------- */

static void members_count(struct rp_instance *inst, const struct members *m,
			  const struct record *rec, int sign)
{
	uint32_t n;
	struct pools_pool *list = m->pools(inst, &n);
	if (rec->pool >= n)
		return;
	list[rec->pool].n_ctrs += (uint32_t)sign;
	list[rec->pool].mcpu += sign * rec->mcpu;
}

/* Reads the record of a container that is in a pool of the plan. Returns false if the record names
 * a pool that does not exist, as the bytes of another version may. */
static bool read_placed(struct rp_instance *inst, const struct members *m, rp_ctr ctr,
			struct record *ret)
{
	uint32_t n;
	(void)m->pools(inst, &n);
	return read_record(inst, ctr, ret) && ret->pool < n;
}

static void forget_counts(struct rp_instance *inst, const struct members *m)
{
	uint32_t n;
	struct pools_pool *list = m->pools(inst, &n);
	for (uint32_t i = 0; i < n; i++) {
		list[i].n_ctrs = 0;
		list[i].mcpu = 0;
	}
}

static struct record record_of(const struct rp_ctr_info *info, const struct members_choice *c)
{
	return (struct record){.version = RECORD_VERSION,
			       .pool = c->pool,
			       .mcpu = ctr_counted_cpu(info) > 0 ? ctr_counted_cpu(info) : 0};
}

static int32_t keep_record(struct rp_instance *inst, const struct members *m, rp_txn txn,
			   rp_ctr ctr, const struct record *rec, const struct members_choice *c)
{
	uint32_t n;
	const struct modhost *h = &life_of(inst)->h;
	if (c->odd)
		modhost_log(h, RP_LOG_WARNING, ctr, "%s", c->why);
	modhost_decided_by(h, ctr, c->at, "pool %s: %s", m->pools(inst, &n)[c->pool].name, c->why);
	return ctr_set_record(h, txn, ctr, rec, sizeof *rec);
}

/* Adds a container that is not counted yet to its pool. Results as of members_join(). */
static int32_t members_do_join(struct rp_instance *inst, const struct members *m, rp_txn txn,
			       const struct rp_ctr_info *info)
{
	const struct members_choice c = m->choose(inst, info);
	const struct record rec = record_of(info, &c);
	members_count(inst, m, &rec, 1);
	if (!m->fits(inst)) {
		members_count(inst, m, &rec, -1);
		return 0;
	}
	int32_t r = keep_record(inst, m, txn, info->ctr, &rec, &c);
	return r ? r : 1;
}

int32_t members_join(struct rp_instance *inst, const struct members *m, rp_txn txn,
		     const struct rp_ctr_info *info)
{
	struct record had;
	if (read_record(inst, info->ctr, &had))
		members_count(inst, m, &had, -1);
	return members_do_join(inst, m, txn, info);
}

int32_t members_overflow(struct rp_instance *inst, const struct members *m, rp_txn txn,
			 const struct rp_ctr_info *info)
{
	const struct members_choice c = {m->last_resort, WHY_OVERFLOW, NULL, false};
	const struct record rec = {RECORD_VERSION, c.pool, 0, true, 0};
	members_count(inst, m, &rec, 1);
	life_of(inst)->waiting = true;
	return keep_record(inst, m, txn, info->ctr, &rec, &c);
}

int32_t members_leave(struct rp_instance *inst, const struct members *m, rp_txn txn,
		      const struct rp_ctr_info *info)
{
	struct record had;
	if (!read_record(inst, info->ctr, &had))
		return 0;
	members_count(inst, m, &had, -1);
	int32_t r = ctr_forget(&life_of(inst)->h, txn, info->ctr);
	return r ? r : 1;
}

/* ---- walks ----------------------------------------------------------------------------------- */

int32_t members_stage_one(struct rp_instance *inst, const struct members *m, rp_txn txn,
			  const struct rp_ctr_info *info)
{
	struct record rec;
	if (!read_placed(inst, m, info->ctr, &rec))
		return 0;
	return m->stage(inst, txn, info, rec.pool, rec.overflows ? WHY_OVERFLOW : NULL);
}

static int32_t count_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	const struct members *m = w->arg;
	const struct members_choice c = m->choose(inst, info);
	const struct record rec = record_of(info, &c);
	members_count(inst, m, &rec, 1);
	return 0;
}

static int32_t join_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			const struct life_walk *w)
{
	struct record had;
	bool last = w->pass + 1 == w->n_passes;
	if (!last && (!read_record(inst, info->ctr, &had) || had.overflows))
		return 0;
	int32_t r = members_do_join(inst, w->arg, txn, info);
	return r || !last ? r : members_overflow(inst, w->arg, txn, info);
}

int32_t members_sync(struct rp_instance *inst, const struct members *m, rp_txn txn)
{
	const struct record keeper = {RECORD_VERSION, m->last_resort, 0, 0, 0};
	struct life_walk w = {.each = count_one, .arg = (void *)m};
	forget_counts(inst, m);
	int32_t r = life_walk(inst, txn, w);
	bool too_many = !m->fits(inst);
	forget_counts(inst, m);
	members_count(inst, m, &keeper, too_many);
	w = (struct life_walk){.each = join_one,
			       .order = RP_ORDER_SYNC,
			       .n_passes = 2,
			       .pass = !too_many,
			       .arg = (void *)m};
	if (!r)
		r = life_walk(inst, txn, w);
	members_count(inst, m, &keeper, -too_many);
	return r < 0 ? r : 0;
}

struct some {
	const struct members *m;
	uint64_t pools;
};

static int32_t stage_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	const struct some *some = w->arg;
	struct record rec;
	if (!read_placed(inst, some->m, info->ctr, &rec) || !(some->pools >> rec.pool & 1))
		return 0;
	return members_stage_one(inst, some->m, txn, info);
}

int32_t members_stage(struct rp_instance *inst, const struct members *m, rp_txn txn, uint64_t pools,
		      rp_ctr except)
{
	struct some some = {m, pools};
	const struct life_walk w = {.each = stage_one, .except = except, .arg = &some};
	return pools ? life_walk(inst, txn, w) : 0;
}

static int32_t retry_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	const struct members *m = w->arg;
	struct record rec;
	if (!read_record(inst, info->ctr, &rec) || !rec.overflows)
		return 0;
	int32_t r = members_join(inst, m, txn, info);
	if (r > 0)
		return members_stage_one(inst, m, txn, info);
	members_count(inst, m, &rec, 1);
	life_of(inst)->waiting = true;
	return r;
}

int32_t members_retry(struct rp_instance *inst, const struct members *m, rp_txn txn, rp_ctr except)
{
	const struct life_walk w = {
		.each = retry_one, .order = RP_ORDER_SYNC, .except = except, .arg = (void *)m};
	if (!life_of(inst)->waiting)
		return 0;
	life_of(inst)->waiting = false;
	return life_walk(inst, txn, w);
}

static int32_t members_do_weigh(struct rp_instance *inst, rp_txn txn,
				const struct rp_ctr_info *info, const struct life_walk *w)
{
	const struct members *m = w->arg;
	struct rp_usage usage;
	struct record rec;
	uint32_t n;
	if (read_placed(inst, m, info->ctr, &rec) &&
	    modhost_usage(&life_of(inst)->h, info->ctr, &usage) && usage.cpu > 0)
		m->pools(inst, &n)[rec.pool].weight += usage.cpu;
	return 0;
}

int32_t members_weigh(struct rp_instance *inst, const struct members *m, rp_txn txn)
{
	uint32_t n;
	struct pools_pool *list = m->pools(inst, &n);
	for (uint32_t i = 0; i < n; i++)
		list[i].weight = 0;
	return life_walk(inst, txn, (struct life_walk){.each = members_do_weigh, .arg = (void *)m});
}
