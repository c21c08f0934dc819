/* SPDX-License-Identifier: Apache-2.0 */
/* What one container gets, and which others have to move for it. */
#include <stdlib.h>
#include <string.h>

#include "modules/cpuset/cpuset.h"

static int32_t refuse(struct rp_instance *inst, int32_t code)
{
	inst->counters.refused++;
	return code;
}

int32_t place_check_pool(struct rp_instance *inst)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset pool;
	uint32_t least = p->min_shared >= 0 ? (uint32_t)p->min_shared : inst->n_shared ? 1 : 0;
	pool_shared(inst, &pool);
	if (rp_ids_count(rp_ids_of(&pool)) >= least)
		return 0;
	return modhost_fail(&inst->h, -RP_ENOSPC, "would leave fewer than %u shared CPUs", least);
}

static void explain(struct rp_instance *inst, const struct looked *c, struct rp_ids cpus,
		    const char *how)
{
	char text[SET_TEXT_MAX];
	modhost_note(&inst->h, c->info.ctr, "%s: %s", class_names[c->class], c->why);
	modhost_note(&inst->h, c->info.ctr, "%s: %s", how,
		     modhost_set_text(cpus, text, sizeof text));
}

/* ---- integer containers ---------------------------------------------------------------------------------------------- */

/* n more CPUs for a container, whose `own` it keeps. */
static int32_t find(struct rp_instance *inst, const struct looked *c, struct rp_ids own, uint32_t n,
		    struct rp_idset *ret)
{
	struct rp_idset free;
	pool_free(inst, c, &free);
	uint32_t n_free = rp_ids_count(rp_ids_of(&free));
	if (n_free < n)
		return modhost_fail(&inst->h, -RP_ENOSPC, INSUFFICIENT_TEXT, n, n_free);
	pick_near(inst, rp_ids_of(&free), n, ret);
	rp_idset_or(ret, rp_ids_of(ret), own);
	return 0;
}

static int32_t own(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		   const struct rp_idset *cpus, const char *how)
{
	pool_add(inst, c->class, c->info.ctr, rp_ids_of(cpus));
	int32_t r = place_check_pool(inst);
	if (r)
		return refuse(inst, r);
	inst->counters.placed[c->class]++;
	explain(inst, c, rp_ids_of(cpus), how);
	r = stage_sharers(inst, txn, c->info.ctr);
	return r ? r : stage_own(inst, txn, c, rp_ids_of(cpus), NULL);
}

static int32_t place_integer(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	struct rp_idset cpus;
	int32_t r = find(inst, c, rp_ids_none(), c->n, &cpus);
	if (r) {
		inst->waiting = true;
		return refuse(inst, r);
	}
	return own(inst, txn, c, &cpus, "broken cores first, then whole ones");
}

int32_t place_resize(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     struct rp_ids had)
{
	struct rp_idset cpus;
	uint32_t n = rp_ids_count(had);
	if (n == c->n)
		return 0;
	if (c->n < n) {
		pick(inst->plan, had, c->n, &cpus);
	} else {
		int32_t r = find(inst, c, had, c->n - n, &cpus);
		if (r)
			return refuse(inst, r);
	}
	pool_del(inst, CLASS_INTEGER, c->info.ctr, had);
	return own(inst, txn, c, &cpus, c->n < n ? "keeps some of its CPUs" : "gets more CPUs");
}

/* ---- annotated containers -------------------------------------------------------------------------------------------- */

struct victim {
	struct looked c;
	uint32_t n_forbidden;
	uint32_t order; /* of creation */
};

static int by_difficulty(const void *a, const void *b)
{
	const struct victim *x = a, *y = b;
	if (x->n_forbidden != y->n_forbidden)
		return x->n_forbidden > y->n_forbidden ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

struct victims {
	struct rp_ids named;
	struct victim *list;
	uint32_t n, order;
};

static int32_t add_victim(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			  const struct life_walk *w)
{
	struct victims *v = w->arg;
	struct record rec;
	(void)txn;
	v->order++;
	if (!rp_ids_overlap(info->cpus, v->named) || !record_read(inst, info->ctr, &rec) ||
	    rec.class != CLASS_INTEGER)
		return 0;
	struct victim *list = realloc(v->list, (v->n + 1u) * sizeof *list);
	if (!list)
		return modhost_fail(&inst->h, -RP_ENOMEM, "out of memory");
	v->list = list;
	struct victim *last = &list[v->n++];
	look_at(inst, info, &last->c);
	last->c.class = CLASS_INTEGER;
	last->order = v->order;
	last->n_forbidden =
		rp_ids_count_and(rp_ids_of(&last->c.forbidden), rp_ids_of(&inst->plan->allowed));
	return 0;
}

/* The integer containers on these CPUs, those for which there is least choice first. */
static int32_t find_victims(struct rp_instance *inst, struct victims *v)
{
	int32_t r = life_walk(
		inst, 0,
		(struct life_walk){.each = add_victim, .order = RP_ORDER_CREATED, .arg = v});
	if (v->n > 1)
		qsort(v->list, v->n, sizeof *v->list, by_difficulty);
	return r;
}

static int32_t move(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		    struct rp_ids named)
{
	const struct modhost *h = &inst->h;
	struct rp_idset free, cpus;
	uint32_t n = rp_ids_count(c->info.cpus);
	pool_del(inst, CLASS_INTEGER, c->info.ctr, c->info.cpus);
	pool_free(inst, c, &free);
	rp_idset_andnot(&free, rp_ids_of(&free), named);
	uint32_t n_free = rp_ids_count(rp_ids_of(&free));
	if (n_free < n)
		return modhost_fail(h, -RP_ENOSPC,
				    "cannot reallocate conflicting containers: cannot reallocate "
				    "integer container %s: " INSUFFICIENT_TEXT,
				    c->info.id, n, n_free);
	pick_near(inst, rp_ids_of(&free), n, &cpus);
	pool_add(inst, CLASS_INTEGER, c->info.ctr, rp_ids_of(&cpus));
	explain(inst, c, rp_ids_of(&cpus), "moved for a pod that names some of its CPUs");
	inst->counters.moved++;
	return stage_own(inst, txn, c, rp_ids_of(&cpus),
			 n < c->n ? "it has fewer CPUs than it asks for" : NULL);
}

static int32_t place_annotated(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	struct rp_idset named, owned;
	int32_t r = named_cpus(inst, c, &named);
	if (r)
		return refuse(inst, r);
	struct victims v = {.named = rp_ids_of(&named)};
	pool_of(inst, CLASS_INTEGER, &owned);
	if (rp_ids_overlap(v.named, rp_ids_of(&owned)))
		r = find_victims(inst, &v);
	for (uint32_t i = 0; !r && i < v.n; i++)
		r = move(inst, txn, &v.list[i].c, v.named);
	free(v.list);
	return r ? refuse(inst, r) : own(inst, txn, c, &named, "named by its pod");
}

/* ---- all --------------------------------------------------------------------------------------------------------------- */

static int32_t place_shared(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	struct rp_idset pool, own;
	pool_shared(inst, &pool);
	rp_idset_copy(&own, rp_ids_of(&pool));
	if (c->forbids)
		rp_idset_andnot(&own, rp_ids_of(&pool), rp_ids_of(&c->forbidden));
	if (rp_ids_empty(rp_ids_of(&own)))
		return refuse(inst, modhost_fail(&inst->h, -RP_ENOSPC, POOL_EMPTY_TEXT));
	pool_add(inst, CLASS_SHARED, c->info.ctr, rp_ids_none());
	inst->counters.placed[CLASS_SHARED]++;
	explain(inst, c, rp_ids_of(&own), "what nobody owns");
	return stage_shared(inst, txn, c, rp_ids_of(&pool), NULL);
}

int32_t place_new(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	switch (c->class) {
	case CLASS_ANNOTATED:
		return place_annotated(inst, txn, c);
	case CLASS_INTEGER:
		return place_integer(inst, txn, c);
	default:
		return place_shared(inst, txn, c);
	}
}
