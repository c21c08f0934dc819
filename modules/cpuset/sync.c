/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything at once: annotated containers have what their pods name, integer ones keep a set that is still right, the others of them get
 * one, and the rest shares what is left. A container that cannot have what it should is marked, and looked at again whenever CPUs come
 * free; after a reload such a thing is an error, which leaves the former configuration in force.
 */
#include <stdlib.h>

#include "modules/cpuset/cpuset.h"

#define SHORT_TEXT "it has fewer CPUs than it asks for"
#define NAMED_TEXT "none of the CPUs that its pod names can be used; it is shared"

static int32_t give(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		    struct rp_ids cpus, const char *reason)
{
	pool_add(inst, c->class, c->info.ctr, cpus);
	if (reason)
		inst->waiting = true;
	return stage_own(inst, txn, c, cpus, reason);
}

/* A reload, which is refused rather than that a container loses what it has. */
static bool is_strict(const struct rp_instance *inst)
{
	return inst->synced && inst->changed;
}

static bool must_not_lose(const struct rp_instance *inst, const struct looked *c)
{
	return is_strict(inst) && !(c->info.flags & RP_CTR_DEGRADED);
}

static int32_t sync_annotated(struct rp_instance *inst, rp_txn txn, struct looked *c)
{
	struct rp_idset named, all;
	char why[LIST_WHY_MAX];
	uint32_t beyond;
	if (must_not_lose(inst, c)) {
		int32_t r = named_cpus(inst, c, &named);
		return r ? r : give(inst, txn, c, rp_ids_of(&named), NULL);
	}
	named_here(inst, c, &named);
	if (rp_ids_empty(rp_ids_of(&named))) {
		modhost_log(&inst->h, RP_LOG_WARNING, c->info.ctr, NAMED_TEXT);
		c->class = CLASS_SHARED;
		return 0;
	}
	const char *text =
		inst->h.cache->pod_annotation(inst->h.ctx, c->info.pod, inst->plan->named_key);
	bool complete = text && list_parse(text, &all, &beyond, why) && !beyond &&
			rp_ids_equal(rp_ids_of(&all), rp_ids_of(&named));
	return give(inst, txn, c, rp_ids_of(&named),
		    complete ? NULL : "some of the CPUs that its pod names are not there");
}

/* What it has and may keep: CPUs that this policy gave it, else where the runtime has it. */
static void may_keep(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret)
{
	struct record rec;
	struct rp_idset free;
	bool ours = record_read(inst, c->info.ctr, &rec) && rec.class == CLASS_INTEGER;
	struct rp_ids has = ours ? c->info.cpus : c->info.has_cpus;
	pool_free(inst, c, &free);
	rp_idset_and(ret, has, rp_ids_of(&free));
	/* a set of another size was not given by what it asks for now */
	if (!ours && (rp_ids_count(has) != c->n || !rp_ids_equal(has, rp_ids_of(ret))))
		rp_idset_clear(ret);
	if (rp_ids_count(rp_ids_of(ret)) > c->n)
		rp_idset_clear(ret);
}

static int32_t sync_integer(struct rp_instance *inst, rp_txn txn, struct looked *c)
{
	struct rp_idset keep, free, more;
	may_keep(inst, c, &keep);
	uint32_t n = rp_ids_count(rp_ids_of(&keep));
	pool_free(inst, c, &free);
	rp_idset_andnot(&free, rp_ids_of(&free), rp_ids_of(&keep));
	uint32_t n_free = rp_ids_count(rp_ids_of(&free));
	if (n + n_free >= c->n) {
		pick_near(inst, rp_ids_of(&free), c->n - n, &more);
		rp_idset_or(&keep, rp_ids_of(&keep), rp_ids_of(&more));
		return give(inst, txn, c, rp_ids_of(&keep), NULL);
	}
	if (must_not_lose(inst, c))
		return modhost_fail(&inst->h, -RP_EBUSY, "container %s/%s: " INSUFFICIENT_TEXT,
				    c->info.pod_name, c->info.name, c->n - n, n_free);
	if (!n) {
		pool_free(inst, c, &keep);
		rp_idset_and(&keep, rp_ids_of(&keep), c->info.has_cpus);
		n = rp_ids_count(rp_ids_of(&keep));
	}
	inst->waiting = true;
	if (n && n <= c->n)
		return give(inst, txn, c, rp_ids_of(&keep), SHORT_TEXT);
	return 1;
}

enum pass { PASS_ANNOTATED, PASS_KEEP, PASS_PLACE, PASS_SHARED, N_PASSES };

/* May the integer container be left as it is? Those that may come first. */
static bool is_right(struct rp_instance *inst, const struct looked *c)
{
	struct rp_idset keep;
	may_keep(inst, c, &keep);
	return rp_ids_count(rp_ids_of(&keep)) == c->n;
}

static int32_t sync_shared(struct rp_instance *inst, rp_txn txn, struct looked *c)
{
	struct rp_idset pool;
	const char *reason = c->class == CLASS_ANNOTATED ? NAMED_TEXT : c->n ? SHORT_TEXT : NULL;
	pool_shared(inst, &pool);
	c->class = CLASS_SHARED;
	pool_add(inst, CLASS_SHARED, c->info.ctr, rp_ids_none());
	if (!rp_ids_empty(rp_ids_of(&pool)))
		return stage_shared(inst, txn, c, rp_ids_of(&pool), reason);
	/* nobody who runs is left without a CPU: the reserved ones, else all that may be used, whoever owns them */
	inst->waiting = true;
	inst->overlapping = true;
	struct rp_ids any =
		rp_ids_of(rp_ids_empty(rp_ids_of(&inst->plan->reserved)) ? &inst->plan->allowed
									 : &inst->plan->reserved);
	return stage_shared(inst, txn, c, any, POOL_EMPTY_TEXT);
}

/* 1: the pass has placed it. */
static int32_t sync_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			const struct life_walk *w)
{
	struct looked c;
	int32_t r;
	look_at(inst, info, &c);
	if (w->pass == PASS_SHARED)
		r = sync_shared(inst, txn, &c);
	else if (w->pass == PASS_ANNOTATED && c.class == CLASS_ANNOTATED)
		r = sync_annotated(inst, txn, &c);
	else if (w->pass != PASS_ANNOTATED && c.class == CLASS_INTEGER &&
		 (w->pass == PASS_PLACE || is_right(inst, &c)))
		r = sync_integer(inst, txn, &c);
	else
		return 0;
	if (r < 0)
		return r;
	return r == 0 && (w->pass == PASS_SHARED || c.class != CLASS_SHARED);
}

int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	owners_clear(&inst->owners);
	inst->n_shared = 0;
	inst->overlapping = false;
	int32_t r = life_walk(inst, txn,
			      (struct life_walk){.each = sync_one,
						 .order = RP_ORDER_CREATED,
						 .n_passes = N_PASSES});
	if (r >= 0 && inst->overlapping) {
		inst->overlapping = false;
		r = stage_sharers(inst, txn, 0);
	}
	if (r >= 0 && is_strict(inst))
		r = place_check_pool(inst);
	return r < 0 ? r : 0;
}

/* 1: it has got what it lacked. */
static int32_t retry_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			 const struct life_walk *w)
{
	struct looked c;
	struct record rec;
	struct rp_idset free, more;
	(void)w;
	if (!(info->flags & RP_CTR_DEGRADED))
		return 0;
	look_at(inst, info, &c);
	if (c.class != CLASS_INTEGER)
		return 0;
	(void)record_read(inst, info->ctr, &rec);
	struct rp_ids had = rec.class == CLASS_INTEGER ? info->cpus : rp_ids_none();
	uint32_t n = rp_ids_count(had);
	pool_free(inst, &c, &free);
	if (n > c.n || rp_ids_count(rp_ids_of(&free)) < c.n - n) {
		inst->waiting = true;
		return 0;
	}
	pick_near(inst, rp_ids_of(&free), c.n - n, &more);
	rp_idset_or(&more, rp_ids_of(&more), had);
	pool_del(inst, rec.class, info->ctr, had);
	int32_t r = give(inst, txn, &c, rp_ids_of(&more), NULL);
	return r ? r : 1;
}

int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	return life_retry(inst, txn, except, retry_one);
}
