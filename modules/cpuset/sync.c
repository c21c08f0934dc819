/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything at once: annotated containers have what their pods name, integer ones keep a set that is still right, the others of them get
 * one, and the rest shares what is left. A container that cannot have what it should is marked, and looked at again whenever CPUs come
 * free; after a reload such a thing is an error, which leaves the former configuration in force.
 */
#include <stdlib.h>

#include "modules/cpuset/cpuset.h"

#define SHORT_TEXT "it has fewer CPUs than it asks for"

static int32_t give(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		    struct rp_ids cpus, const char *reason)
{
	books_add(&inst->books, c->class, cpus);
	if (reason)
		inst->waiting = true;
	return stage_own(inst, txn, c, cpus, reason);
}

/* A reload is refused rather than that a container loses what it has. */
static bool must_not_lose(const struct rp_instance *inst, const struct looked *c)
{
	return inst->strict && !(c->info.flags & RP_CTR_DEGRADED);
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
		modhost_log(&inst->h, RP_LOG_WARNING, c->info.ctr,
			    "none of the CPUs that its pod names can be used; it is shared");
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
	books_free(inst, c, &free);
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
	books_free(inst, c, &free);
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
		books_free(inst, c, &keep);
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
	const char *reason = c->n ? SHORT_TEXT : NULL;
	books_pool(inst, &pool);
	c->class = CLASS_SHARED;
	books_add(&inst->books, CLASS_SHARED, rp_ids_none());
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
static int32_t sync_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, enum pass pass)
{
	struct looked c;
	int32_t r = look_at(inst, ctr, &c);
	if (r || (c.info.flags & RP_CTR_PRESERVE_CPU))
		return r ? r : 1;
	if (pass == PASS_SHARED)
		r = sync_shared(inst, txn, &c);
	else if (pass == PASS_ANNOTATED && c.class == CLASS_ANNOTATED)
		r = sync_annotated(inst, txn, &c);
	else if (pass != PASS_ANNOTATED && c.class == CLASS_INTEGER &&
		 (pass == PASS_PLACE || is_right(inst, &c)))
		r = sync_integer(inst, txn, &c);
	else
		return 0;
	if (r < 0)
		return r;
	return r == 0 && (pass == PASS_SHARED || c.class != CLASS_SHARED);
}

int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), r = n < 0 ? n : 0;
	books_clear(&inst->books);
	inst->waiting = inst->overlapping = false;
	for (enum pass pass = 0; r >= 0 && pass < N_PASSES; pass++)
		for (int32_t i = 0; r >= 0 && i < n; i++) {
			r = inst->list.ctrs[i] ? sync_one(inst, txn, inst->list.ctrs[i], pass) : 0;
			if (r > 0)
				inst->list.ctrs[i] = 0;
		}
	if (r >= 0 && inst->overlapping) {
		inst->overlapping = false;
		r = stage_sharers(inst, txn, 0);
	}
	if (r >= 0 && inst->strict)
		r = place_check_pool(inst);
	if (r < 0)
		return r;
	inst->synced = true;
	inst->strict = false;
	return 0;
}

/* 1: it has got what it lacked. */
static int32_t retry_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct looked c;
	struct record rec;
	struct rp_idset free, more;
	int32_t r = look_at(inst, ctr, &c);
	if (r || !(c.info.flags & RP_CTR_DEGRADED) || (c.info.flags & RP_CTR_PRESERVE_CPU) ||
	    c.class != CLASS_INTEGER)
		return r;
	(void)record_read(inst, ctr, &rec);
	struct rp_ids had = rec.class == CLASS_INTEGER ? c.info.cpus : rp_ids_none();
	uint32_t n = rp_ids_count(had);
	books_free(inst, &c, &free);
	if (n > c.n || rp_ids_count(rp_ids_of(&free)) < c.n - n) {
		inst->waiting = true;
		return 0;
	}
	pick_near(inst, rp_ids_of(&free), c.n - n, &more);
	rp_idset_or(&more, rp_ids_of(&more), had);
	books_del(&inst->books, rec.class, had);
	r = give(inst, txn, &c, rp_ids_of(&more), NULL);
	return r ? r : 1;
}

int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	if (!inst->waiting)
		return 0;
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), r = n < 0 ? n : 0, given = 0;
	inst->waiting = false;
	for (int32_t i = 0; r >= 0 && i < n; i++) {
		r = inst->list.ctrs[i] != except ? retry_one(inst, txn, inst->list.ctrs[i]) : 0;
		given += r > 0;
	}
	return r < 0 ? r : given;
}
