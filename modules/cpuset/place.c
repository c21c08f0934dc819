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
	uint32_t least = p->min_shared >= 0	       ? (uint32_t)p->min_shared
			 : inst->books.n[CLASS_SHARED] ? 1
						       : 0;
	books_pool(inst, &pool);
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
	books_free(inst, c, &free);
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
	books_add(&inst->books, c->class, rp_ids_of(cpus));
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
	books_del(&inst->books, CLASS_INTEGER, had);
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

/* The integer containers on these CPUs, those for which there is least choice first. */
static int32_t find_victims(struct rp_instance *inst, struct rp_ids named, struct victim **ret)
{
	const struct modhost *h = &inst->h;
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), n_found = 0;
	struct victim *list = NULL;
	for (int32_t i = 0; i < n; i++) {
		struct rp_ctr_info info = {.size = sizeof info};
		struct record rec;
		if (h->cache->get_ctr(h->ctx, inst->list.ctrs[i], &info) ||
		    !record_read(inst, info.ctr, &rec) || rec.class != CLASS_INTEGER ||
		    !rp_ids_overlap(info.cpus, named))
			continue;
		struct victim *more = realloc(list, ((size_t)n_found + 1) * sizeof *list);
		if (!more || look_at(inst, info.ctr, &more[n_found].c)) {
			free(more ? more : list);
			return modhost_fail(h, -RP_ENOMEM, "out of memory");
		}
		list = more;
		list[n_found].order = (uint32_t)i;
		list[n_found].n_forbidden = rp_ids_count_and(rp_ids_of(&list[n_found].c.forbidden),
							     rp_ids_of(&inst->plan->allowed));
		list[n_found].c.class = CLASS_INTEGER;
		n_found++;
	}
	if (n_found > 1)
		qsort(list, (size_t)n_found, sizeof *list, by_difficulty);
	*ret = list;
	return n < 0 ? n : n_found;
}

static int32_t move(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		    struct rp_ids named)
{
	const struct modhost *h = &inst->h;
	struct rp_idset free, cpus;
	uint32_t n = rp_ids_count(c->info.cpus);
	books_del(&inst->books, CLASS_INTEGER, c->info.cpus);
	books_free(inst, c, &free);
	rp_idset_andnot(&free, rp_ids_of(&free), named);
	uint32_t n_free = rp_ids_count(rp_ids_of(&free));
	if (n_free < n)
		return modhost_fail(h, -RP_ENOSPC,
				    "cannot reallocate conflicting containers: cannot reallocate "
				    "integer container %s: " INSUFFICIENT_TEXT,
				    c->info.id, n, n_free);
	pick_near(inst, rp_ids_of(&free), n, &cpus);
	books_add(&inst->books, CLASS_INTEGER, rp_ids_of(&cpus));
	explain(inst, c, rp_ids_of(&cpus), "moved for a pod that names some of its CPUs");
	inst->counters.moved++;
	return stage_own(inst, txn, c, rp_ids_of(&cpus),
			 n < c->n ? "it has fewer CPUs than it asks for" : NULL);
}

static int32_t place_annotated(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	struct rp_idset named;
	struct victim *victims = NULL;
	int32_t r = named_cpus(inst, c, &named), n = 0;
	if (r)
		return refuse(inst, r);
	if (rp_ids_overlap(rp_ids_of(&named), rp_ids_of(&inst->books.owned)))
		r = n = find_victims(inst, rp_ids_of(&named), &victims);
	if (r > 0)
		r = 0;
	for (int32_t i = 0; !r && i < n; i++)
		r = move(inst, txn, &victims[i].c, rp_ids_of(&named));
	free(victims);
	if (r) {
		return refuse(inst, r);
	}
	return own(inst, txn, c, &named, "named by its pod");
}

/* ---- all --------------------------------------------------------------------------------------------------------------- */

static int32_t place_shared(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	struct rp_idset pool, own;
	books_pool(inst, &pool);
	rp_idset_copy(&own, rp_ids_of(&pool));
	if (c->forbids)
		rp_idset_andnot(&own, rp_ids_of(&pool), rp_ids_of(&c->forbidden));
	if (rp_ids_empty(rp_ids_of(&own)))
		return refuse(inst, modhost_fail(&inst->h, -RP_ENOSPC, POOL_EMPTY_TEXT));
	books_add(&inst->books, CLASS_SHARED, rp_ids_none());
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
