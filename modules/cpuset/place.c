/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the CPUs of one container, and moves integer containers off CPUs that a pod names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/cpuset/cpuset.h"

#define SET_TEXT_MAX 128u

int32_t place_check_pool(struct rp_instance *inst)
{
	struct rp_idset pool;
	int64_t least = inst->plan->min_shared;
	if (least == MIN_SHARED_DEFAULT)
		least = inst->now.n[CLASS_SHARED] != 0;
	pool_shared(inst, &pool);
	if (rp_ids_count(rp_ids_of(&pool)) >= least)
		return 0;
	return modhost_fail(&inst->h, -RP_ENOSPC, "would leave fewer than %u shared CPUs",
			    (uint32_t)least);
}

static void place_do_explain(struct rp_instance *inst, const struct looked *c, struct rp_ids cpus,
			     const char *how)
{
	char text[SET_TEXT_MAX];
	modhost_note(&inst->h, c->info.ctr, "%s: %s", class_names[c->class], c->why);
	modhost_note(&inst->h, c->info.ctr, "%s: %s", how,
		     modhost_set_text(cpus, text, sizeof text));
}

static int32_t place_own(struct rp_instance *inst, rp_txn txn, const struct looked *c,
			 const struct rp_idset *cpus, const char *how)
{
	pool_add(inst, c->class, c->info.ctr, rp_ids_of(cpus));
	int32_t r = place_check_pool(inst);
	if (r)
		return r;
	inst->counters.placed[c->class]++;
	place_do_explain(inst, c, rp_ids_of(cpus), how);
	r = stage_sharers(inst, txn, c->info.ctr);
	return r ? r : stage_own(inst, txn, c, rp_ids_of(cpus), NULL);
}

/* ---- integer containers ---------------------------------------------------------------------- */

/* Picks n of the free CPUs, as close together as the configuration requires. */
static void place_pick(const struct rp_plan *p, struct rp_ids free, uint32_t n,
		       struct rp_idset *ret)
{
	struct rp_idset near, nearer;
	rp_idset_copy(&near, free);
	if (p->numa_aware)
		(void)machine_narrow(p->machine, &near, n, false);
	if (p->shared_cache &&
	    machine_tightest(p->machine, MACHINE_CACHE, rp_ids_of(&near), n, &nearer))
		near = nearer;
	machine_pack(p->machine, rp_ids_of(&near), n, ret);
}

/* Adds up to n free CPUs of the cores that `keep` takes in part. Returns their number. */
static uint32_t place_complete(const struct rp_plan *p, struct rp_ids keep, struct rp_idset *free,
			       uint32_t n, struct rp_idset *ret)
{
	struct rp_idset own;
	uint32_t done = 0;
	machine_surround(p->machine, MACHINE_CORE, keep, &own);
	rp_idset_and(&own, rp_ids_of(&own), rp_ids_of(free));
	RP_IDS_EACH (cpu, rp_ids_of(&own)) {
		if (done == n)
			break;
		rp_idset_add(ret, cpu);
		rp_idset_del(free, cpu);
		done++;
	}
	return done;
}

int32_t place_find(struct rp_instance *inst, const struct looked *c, struct rp_ids keep,
		   struct rp_ids avoid, uint32_t n, const char *whose, struct rp_idset *ret)
{
	struct rp_idset free;
	uint32_t need = n - rp_ids_count(keep);
	rp_idset_clear(ret);
	int32_t r = isolation_check_number(&inst->h, &inst->plan->isolation, whose, n);
	if (r)
		return r;
	pool_free(inst, c, &free);
	rp_idset_andnot(&free, rp_ids_of(&free), avoid);
	rp_idset_andnot(&free, rp_ids_of(&free), keep);
	uint32_t n_free = rp_ids_count(rp_ids_of(&free));
	if (n_free < need)
		return modhost_fail(&inst->h, -RP_ENOSPC,
				    "%sinsufficient free CPUs: need %u, have %u", whose, need,
				    n_free);
	if (inst->plan->numa_aware && !rp_ids_empty(keep))
		return machine_grow(inst->plan->machine, keep, rp_ids_of(&free), need, ret);
	struct rp_idset more;
	need -= place_complete(inst->plan, keep, &free, need, ret);
	place_pick(inst->plan, rp_ids_of(&free), need, &more);
	rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&more));
	rp_idset_or(ret, rp_ids_of(ret), keep);
	return 0;
}

static int32_t place_integer(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	struct rp_idset cpus;
	int32_t r = place_find(inst, c, rp_ids_none(), rp_ids_none(), c->n, "", &cpus);
	const struct relief_call call = place_relief(inst, txn);
	if (!r)
		r = relief_admit(&call, &c->info, &cpus);
	r = r < 0 ? r : 0;
	return r ? r
		 : place_own(inst, txn, c, &cpus,
			     inst->plan->numa_aware
				     ? "of the fullest NUMA node with room, broken cores first"
				     : "broken cores first, then whole ones");
}

int32_t place_resize(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     struct rp_ids had)
{
	struct rp_idset cpus;
	uint32_t n = rp_ids_count(had);
	int32_t r = 0;
	/* A degraded container whose request fits its CPUs now ceases to be degraded. */
	if (n == c->n && !(c->info.flags & RP_CTR_DEGRADED))
		return 0;
	if (c->n <= n)
		machine_pack(inst->plan->machine, had, c->n, &cpus);
	else
		r = place_find(inst, c, had, rp_ids_none(), c->n, "", &cpus);
	if (r)
		return r;
	pool_del(inst, CLASS_INTEGER, c->info.ctr, had);
	return place_own(inst, txn, c, &cpus,
			 c->n > n   ? "gets more CPUs"
			 : c->n < n ? "keeps some of its CPUs"
				    : "keeps its CPUs");
}

/* ---- annotated containers -------------------------------------------------------------------- */

struct victim {
	struct looked c;
	uint32_t n_forbidden;
};

/* Orders containers by their number of forbidden CPUs, highest first, then by age, oldest first. */
static int by_difficulty(const void *a, const void *b)
{
	const struct victim *x = a, *y = b;
	if (x->n_forbidden != y->n_forbidden)
		return x->n_forbidden > y->n_forbidden ? -1 : 1;
	if (x->c.info.created_ns != y->c.info.created_ns)
		return x->c.info.created_ns < y->c.info.created_ns ? -1 : 1;
	return strcmp(x->c.info.id, y->c.info.id);
}

/* Finds the owners of the CPUs, each with one entry. Every CPU must have an owner. Empties *cpus.
 * Returns the number of entries, or an error. */
static int32_t find_victims(struct rp_instance *inst, struct rp_idset *cpus, struct victim *ret)
{
	struct rp_ctr_info info;
	int32_t n = 0;
	for (; !rp_ids_empty(rp_ids_of(cpus)); n++) {
		uint32_t cpu = rp_ids_first(rp_ids_of(cpus));
		int32_t r = ctr_info(&inst->h, inst->owners.now[cpu].owner, &info);
		if (r)
			return r;
		look_at(inst, &info, &ret[n].c);
		ret[n].c.class = CLASS_INTEGER;
		ret[n].n_forbidden = rp_ids_count_and(rp_ids_of(&ret[n].c.forbidden),
						      rp_ids_of(&inst->plan->cpus.available));
		rp_idset_andnot(cpus, rp_ids_of(cpus), info.cpus);
		rp_idset_del(cpus, cpu);
	}
	qsort(ret, (size_t)n, sizeof *ret, by_difficulty);
	return n;
}

static int32_t place_move(struct rp_instance *inst, rp_txn txn, const struct looked *c,
			  struct rp_ids named)
{
	char whose[WHOSE_MAX];
	struct rp_idset cpus, others;
	uint32_t n = rp_ids_count(c->info.cpus);
	rp_idset_clear(&others);
	(void)snprintf(whose, sizeof whose,
		       "cannot reallocate conflicting containers: cannot reallocate integer "
		       "container %s: ",
		       c->info.id);
	pool_del(inst, CLASS_INTEGER, c->info.ctr, c->info.cpus);
	if (inst->plan->numa_aware) {
		pool_free(inst, c, &others);
		rp_idset_and(&others, rp_ids_of(&others), c->info.cpus);
		rp_idset_andnot(&others, rp_ids_of(&others), named);
	}
	int32_t r = place_find(inst, c, rp_ids_of(&others), named, n, whose, &cpus);
	if (r)
		return r;
	pool_add(inst, CLASS_INTEGER, c->info.ctr, rp_ids_of(&cpus));
	place_do_explain(inst, c, rp_ids_of(&cpus), "moved because a pod names some of its CPUs");
	inst->counters.moved++;
	return stage_own(inst, txn, c, rp_ids_of(&cpus),
			 n < c->n ? "it has fewer CPUs than it requests" : NULL);
}

static int32_t move_victims(struct rp_instance *inst, rp_txn txn, struct rp_ids named)
{
	struct rp_idset taken;
	owners_given(&inst->owners, &taken);
	rp_idset_and(&taken, rp_ids_of(&taken), named);
	struct victim *list = calloc(rp_ids_count(rp_ids_of(&taken)) + 1u, sizeof *list);
	if (!list)
		return modhost_no_memory(&inst->h);
	int32_t n = find_victims(inst, &taken, list), r = n < 0 ? n : 0;
	for (int32_t i = 0; !r && i < n; i++)
		r = place_move(inst, txn, &list[i].c, named);
	free(list);
	return r;
}

static int32_t place_annotated(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	struct rp_idset named;
	int32_t r = named_cpus(inst, c, &named);
	if (!r)
		r = move_victims(inst, txn, rp_ids_of(&named));
	return r ? r
		 : place_own(inst, txn, c, &named,
			     c->follows ? "chosen by the scheduler" : "named by its pod");
}

/* ---- shared containers, all classes ---------------------------------------------------------- */

static int32_t place_shared(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	struct rp_idset pool, cpus;
	pool_shared(inst, &pool);
	rp_idset_andnot(&cpus, rp_ids_of(&pool), rp_ids_of(&c->forbidden));
	if (rp_ids_empty(rp_ids_of(&cpus)))
		return modhost_fail(&inst->h, -RP_ENOSPC, POOL_EMPTY_TEXT);
	pool_add(inst, CLASS_SHARED, c->info.ctr, rp_ids_none());
	inst->counters.placed[CLASS_SHARED]++;
	place_do_explain(inst, c, rp_ids_of(&cpus), "shared CPUs");
	return stage_shared(inst, txn, c, rp_ids_of(&pool), NULL);
}

int32_t place_new(struct rp_instance *inst, rp_txn txn, const struct looked *c)
{
	return (c->class == CLASS_ANNOTATED ? place_annotated
		: c->class == CLASS_INTEGER ? place_integer
					    : place_shared)(inst, txn, c);
}

/* ---- relief ---------------------------------------------------------------------------------- */

static void relief_free(struct rp_instance *inst, const struct rp_ctr_info *info,
			struct rp_idset *ret)
{
	struct looked c;
	look_at(inst, info, &c);
	pool_free(inst, &c, ret);
}

static int32_t relief_choose(struct rp_instance *inst, const struct rp_ctr_info *info,
			     struct rp_ids from, uint32_t n, struct rp_idset *ret)
{
	place_pick(inst->plan, from, n, ret);
	return 0;
}

static int32_t relief_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			    struct rp_ids cpus)
{
	struct looked c;
	look_at(inst, info, &c);
	c.class = CLASS_INTEGER;
	return stage_own(inst, txn, &c, cpus, NULL);
}

/* Returns true for containers that relief must not move: containers with fewer CPUs than requested,
 * and containers with forbidden CPUs. */
static bool relief_is_fixed(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct looked c;
	look_at(inst, info, &c);
	return c.forbids || info->flags & RP_CTR_DEGRADED;
}

static const struct relief_ops relief_ops = {
	.free = relief_free,
	.choose = relief_choose,
	.stage = relief_stage,
	.is_fixed = relief_is_fixed,
};

struct relief_call place_relief(struct rp_instance *inst, rp_txn txn)
{
	inst->relief.set = inst->plan->relief;
	return RELIEF_CALL(inst, txn, &relief_ops);
}
