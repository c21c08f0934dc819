/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "modules/cpuset/cpuset.h"

#define NAMED_GROUP 1u /* annotated containers may share what they own */

bool record_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	*ret = (struct record){.class = CLASS_SHARED};
	return ctr_record(&inst->h, ctr, RECORD_VERSION, ret, sizeof *ret) &&
	       ret->class < N_CLASSES;
}

static int32_t record_write(struct rp_instance *inst, rp_txn txn, const struct looked *c,
			    enum cpuset_class class, bool memory)
{
	const struct record rec = {.version = RECORD_VERSION,
				   .class = (uint16_t) class,
				   .flags = (uint16_t)((memory ? RECORD_MEMORY : 0) |
						       (c->forbids ? RECORD_FORBIDS : 0)),
				   .n = c->n};
	return ctr_set_record(&inst->h, txn, c->info.ctr, &rec, sizeof rec);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

/* Pins its memory to the nodes of its CPUs, or takes that back. The empty set would mean "as it is" to the runtime. */
static int32_t stage_memory(struct rp_instance *inst, rp_txn txn, const struct looked *c,
			    enum cpuset_class class, struct rp_ids cpus, bool *ret_pinned)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	struct record was;
	struct rp_idset nodes;
	*ret_pinned = false;
	if (c->info.flags & RP_CTR_PRESERVE_MEM)
		return 0;
	(void)record_read(inst, c->info.ctr, &was);
	bool pin = (class == CLASS_ANNOTATED && p->pin_memory) ||
		   (class == CLASS_INTEGER && p->numa_aware);
	if (!pin && !(was.flags & RECORD_MEMORY))
		return 0;
	rp_idset_clear(&nodes);
	if (pin)
		ctr_memory_near(h, cpus, &nodes);
	*ret_pinned = !rp_ids_empty(rp_ids_of(&nodes));
	return ctr_set_memory(h, txn, c->info.ctr, rp_ids_of(&nodes));
}

/* ---- one container ------------------------------------------------------------------------------------------------- */

static int32_t stage_sets(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, enum cpuset_class class,
			  struct rp_ids cpus, const char *reason)
{
	bool own = class != CLASS_SHARED && !inst->overlapping;
	const struct ctr_stage s = {.cpus = cpus,
				    .own = own ? cpus : rp_ids_none(),
				    .group = class == CLASS_ANNOTATED ? NAMED_GROUP : 0,
				    .degraded = reason};
	return ctr_stage(&inst->h, txn, ctr, &s);
}

int32_t stage_own(struct rp_instance *inst, rp_txn txn, const struct looked *c, struct rp_ids cpus,
		  const char *reason)
{
	bool pinned;
	int32_t r = stage_sets(inst, txn, c->info.ctr, c->class, cpus, reason);
	if (!r)
		r = stage_memory(inst, txn, c, c->class, cpus, &pinned);
	return r ? r : record_write(inst, txn, c, c->class, pinned);
}

int32_t stage_shared(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     struct rp_ids pool, const char *reason)
{
	struct rp_idset cpus;
	bool pinned;
	rp_idset_copy(&cpus, pool);
	if (c->forbids)
		rp_idset_andnot(&cpus, pool, rp_ids_of(&c->forbidden));
	if (rp_ids_empty(rp_ids_of(&cpus))) {
		rp_idset_copy(&cpus, pool);
		reason = "all shared CPUs are forbidden to it by its annotation";
	}
	int32_t r = stage_sets(inst, txn, c->info.ctr, CLASS_SHARED, rp_ids_of(&cpus), reason);
	if (!r)
		r = stage_memory(inst, txn, c, CLASS_SHARED, rp_ids_of(&cpus), &pinned);
	return r ? r : record_write(inst, txn, c, CLASS_SHARED, false);
}

/* ---- all that share ------------------------------------------------------------------------------------------------ */

struct follow {
	struct rp_ids pool;
	bool overlapping_was;
};

/* The set alone, which is all that has changed for most of them; and those who own CPUs own them alone, unless nothing is left for others. */
static int32_t follow(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		      const struct life_walk *w)
{
	const struct modhost *h = &inst->h;
	const struct follow *f = w->arg;
	struct looked c;
	struct record rec;
	(void)record_read(inst, info->ctr, &rec);
	if (rec.class != CLASS_SHARED)
		return inst->overlapping == f->overlapping_was
			       ? 0
			       : h->cache->set_exclusive(h->ctx, txn, info->ctr,
							 inst->overlapping ? rp_ids_none()
									   : info->cpus);
	if (rp_ids_empty(f->pool))
		return 0;
	if (!(rec.flags & RECORD_FORBIDS))
		return h->cache->set_cpus(h->ctx, txn, info->ctr, f->pool);
	look_at(inst, info, &c);
	return stage_shared(inst, txn, &c, f->pool, NULL);
}

int32_t stage_sharers(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	struct rp_idset pool;
	pool_shared(inst, &pool);
	bool empty = rp_ids_empty(rp_ids_of(&pool));
	struct follow f = {.pool = rp_ids_of(&pool), .overlapping_was = inst->overlapping};
	inst->overlapping = empty && inst->n_shared;
	if (inst->overlapping && !f.overlapping_was)
		modhost_log(&inst->h, RP_LOG_WARNING, 0,
			    "shared CPU pool is empty, %u containers overlap with others",
			    inst->n_shared);
	if (empty && inst->overlapping == f.overlapping_was)
		return 0;
	return life_walk(
		inst, txn,
		(struct life_walk){
			.each = follow, .order = RP_ORDER_CREATED, .except = except, .arg = &f});
}
