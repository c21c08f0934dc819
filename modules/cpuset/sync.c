/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places all containers at once. Annotated containers get the CPUs that their pods name. Integer
 * containers keep a CPU set that is still correct. CPUs that a scheduler chose are then given to
 * the containers that lack them, if they are free. The other integer containers are placed, and the
 * rest shares the remaining CPUs.
 *
 * A container that cannot get its CPUs is marked degraded and tried again whenever CPUs become
 * free. After a reload this is an error instead, and the previous configuration stays active.
 */
#include <stdio.h>

#include "modules/cpuset/cpuset.h"

#define SHORT_TEXT "it has fewer CPUs than it requests"
#define NAMED_TEXT "none of the CPUs that its pod names is usable; it runs on shared CPUs"

/* Stages the CPUs and counts the container. Returns 1, or an error. A reason marks the container
 * as degraded. */
static int32_t sync_give(struct rp_instance *inst, rp_txn txn, const struct looked *c,
			 struct rp_ids cpus, const char *reason)
{
	pool_add(inst, c->class, c->info.ctr, cpus);
	inst->waiting = inst->waiting || reason;
	int32_t r = stage_own(inst, txn, c, cpus, reason);
	return r ? r : 1;
}

/* Returns true if sync must fail instead of giving the container less than it has. */
static bool must_not_lose(const struct rp_instance *inst, const struct looked *c)
{
	return life_may_refuse(inst) && !(c->info.flags & RP_CTR_DEGRADED);
}

static int32_t sync_annotated(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	struct rp_idset named;
	int32_t r = must_not_lose(inst, c) && !c->follows ? named_cpus(inst, c, &named) : 0;
	if (r)
		return r;
	bool all = named_here(inst, c, &named);
	if (!rp_ids_empty(rp_ids_of(&named)))
		return sync_give(inst, txn, c, rp_ids_of(&named),
				 all ? NULL
				     : "some of the CPUs that its pod names are missing, or parts "
				       "of cores");
	modhost_log(&inst->h, RP_LOG_WARNING, c->info.ctr, NAMED_TEXT);
	inst->waiting = inst->waiting || c->follows;
	return 0;
}

/* Returns true if the container already has the CPUs that a scheduler chose for its pod. */
static bool sync_has_followed(struct rp_instance *inst, const struct looked *c)
{
	struct rp_idset named;
	return c->follows && record_follows(inst, &c->info) && named_here(inst, c, &named) &&
	       rp_ids_equal(rp_ids_of(&named), c->info.cpus);
}

/* Sets *ret to the CPUs that the container may keep. CPUs assigned by this policy may be fewer
 * than requested. CPUs assigned by the runtime have to be exactly as many as requested. */
static void may_keep(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret)
{
	struct record rec;
	struct rp_idset free;
	bool ours = record_read(inst, c->info.ctr, &rec) && rec.class == CLASS_INTEGER;
	struct rp_ids has = ours ? c->info.cpus : c->info.has_cpus;
	pool_free(inst, c, &free);
	rp_idset_and(ret, has, rp_ids_of(&free));
	isolation_narrow(&inst->h, &inst->plan->isolation, ret);
	uint32_t n = rp_ids_count(rp_ids_of(ret));
	if (n > c->n || (!ours && (n != c->n || rp_ids_count(has) != n)))
		rp_idset_clear(ret);
}

/* Returns true if existing shared containers have neither a shared nor a reserved CPU if cpus get
 * an owner. */
static bool sync_empties_pool(const struct rp_instance *inst, struct rp_ids cpus)
{
	struct rp_idset pool;
	if ((!inst->now.sharers && !inst->now.n[CLASS_SHARED]) || life_may_refuse(inst))
		return false;
	pool_shared(inst, &pool);
	rp_idset_andnot(&pool, rp_ids_of(&pool), cpus);
	return rp_ids_empty(rp_ids_of(&pool)) &&
	       rp_ids_empty(rp_ids_of(&inst->plan->cpus.reserved));
}

static int32_t sync_integer(struct rp_instance *inst, rp_txn txn, const struct looked *c, bool keep)
{
	struct rp_idset has, cpus;
	char whose[WHOSE_MAX];
	may_keep(inst, c, &has);
	if (keep && rp_ids_count(rp_ids_of(&has)) != c->n)
		return 0;
	(void)snprintf(whose, sizeof whose, "container %s/%s: ", c->info.pod_name, c->info.name);
	int32_t r = place_find(inst, c, rp_ids_of(&has), rp_ids_none(), c->n, whose, &cpus);
	if (!r && (keep || !sync_empties_pool(inst, rp_ids_of(&cpus))))
		return sync_give(inst, txn, c, rp_ids_of(&cpus), NULL);
	if (must_not_lose(inst, c))
		return -RP_EBUSY;
	if (rp_ids_empty(rp_ids_of(&has))) {
		pool_free(inst, c, &has);
		rp_idset_and(&has, rp_ids_of(&has), c->info.has_cpus);
		isolation_narrow(&inst->h, &inst->plan->isolation, &has);
	}
	inst->waiting = true;
	uint32_t n = rp_ids_count(rp_ids_of(&has));
	return n && n <= c->n && !sync_empties_pool(inst, rp_ids_of(&has))
		       ? sync_give(inst, txn, c, rp_ids_of(&has), SHORT_TEXT)
		       : 0;
}

static int32_t sync_shared(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	static const char *const reasons[N_CLASSES] = {NULL, SHORT_TEXT, NAMED_TEXT};
	const struct bounds *b = &inst->plan->cpus;
	struct rp_idset pool;
	pool_shared(inst, &pool);
	pool_add(inst, CLASS_SHARED, c->info.ctr, rp_ids_none());
	if (!rp_ids_empty(rp_ids_of(&pool)))
		return stage_shared(inst, txn, c, rp_ids_of(&pool), reasons[c->class]);
	/* Without any shared CPU, a running container gets the reserved CPUs, else all available
	 * ones, even if other containers own them. */
	inst->waiting = true;
	inst->now.overlapping = true;
	return stage_shared(
		inst, txn, c,
		rp_ids_of(rp_ids_empty(rp_ids_of(&b->reserved)) ? &b->available : &b->reserved),
		POOL_EMPTY_TEXT);
}

/* Passes over all containers, in this order. Containers that keep their CPUs come before containers
 * that need a place. */
enum pass { PASS_ANNOTATED, PASS_KEEP, PASS_FOLLOW, PASS_PLACE, PASS_SHARED, N_PASSES };

static int32_t sync_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			const struct life_walk *w)
{
	struct looked c;
	look_at(inst, info, &c);
	if (w->pass == PASS_SHARED)
		return sync_shared(inst, txn, &c);
	if (w->pass == PASS_ANNOTATED && c.class == CLASS_SHARED)
		inst->now.sharers = true;
	bool named = w->pass == PASS_ANNOTATED && c.class == CLASS_ANNOTATED &&
		     (!c.follows || sync_has_followed(inst, &c));
	if (named || (w->pass == PASS_FOLLOW && c.follows))
		return sync_annotated(inst, txn, &c);
	if (w->pass == PASS_ANNOTATED || w->pass == PASS_FOLLOW)
		return 0;
	return c.class == CLASS_INTEGER ? sync_integer(inst, txn, &c, w->pass == PASS_KEEP) : 0;
}

int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	/* Which containers wait for relief is unknown after a start: assume that some do. */
	inst->relief.waits = true;
	owners_clear(&inst->owners);
	inst->now = (struct population){.overlapping = false};
	int32_t r =
		life_walk(inst, txn, (struct life_walk){.each = sync_one, .n_passes = N_PASSES});
	inst->now.sharers = false; /* from here on shared containers are counted */
	if (r >= 0 && inst->now.overlapping) {
		inst->now.overlapping = false;
		r = stage_sharers(inst, txn, 0);
	}
	return r >= 0 && life_may_refuse(inst) ? place_check_pool(inst) : r;
}

/* Returns 1 if the container got CPUs that it lacked, 0 if not, or an error. */
static int32_t retry_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	struct looked c;
	struct record rec;
	struct rp_idset named;
	look_at(inst, info, &c);
	if (!(info->flags & RP_CTR_DEGRADED) || (c.class != CLASS_INTEGER && !c.follows))
		return 0;
	inst->waiting = inst->waiting || c.follows;
	if (c.follows && !named_here(inst, &c, &named))
		return 0;
	(void)record_read(inst, info->ctr, &rec);
	pool_del(inst, rec.class, info->ctr, info->cpus);
	int32_t r = c.follows ? sync_give(inst, txn, &c, rp_ids_of(&named), NULL)
			      : sync_integer(inst, txn, &c, false);
	if (!r)
		pool_add(inst, rec.class, info->ctr, info->cpus);
	return r;
}

int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	return life_retry(inst, txn, except, retry_one);
}
