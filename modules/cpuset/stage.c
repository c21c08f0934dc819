/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "modules/cpuset/cpuset.h"

#define NAMED_GROUP 1u /* annotated containers may share what they own */

bool record_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	const struct modhost *h = &inst->h;
	const void *data;
	uint32_t size;
	*ret = (struct record){.class = CLASS_SHARED};
	if (h->cache->get_private(h->ctx, ctr, &data, &size) || size != sizeof *ret)
		return false;
	struct record rec;
	memcpy(&rec, data, sizeof rec);
	if (rec.version != RECORD_VERSION || rec.class >= N_CLASSES)
		return false;
	*ret = rec;
	return true;
}

static int32_t record_write(struct rp_instance *inst, rp_txn txn, const struct looked *c,
			    enum cpuset_class class, bool memory)
{
	const struct record rec = {.version = RECORD_VERSION,
				   .class = (uint16_t) class,
				   .flags = (uint16_t)((memory ? RECORD_MEMORY : 0) |
						       (c->forbids ? RECORD_FORBIDS : 0)),
				   .n = c->n};
	return inst->h.cache->set_private(inst->h.ctx, txn, c->info.ctr, &rec, sizeof rec);
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
	const struct modhost *h = &inst->h;
	bool own = class != CLASS_SHARED && !inst->overlapping;
	int32_t r = h->cache->set_cpus(h->ctx, txn, ctr, cpus);
	if (!r)
		r = h->cache->set_exclusive(h->ctx, txn, ctr, own ? cpus : rp_ids_none());
	if (!r)
		r = h->cache->set_group(h->ctx, txn, ctr,
					class == CLASS_ANNOTATED ? NAMED_GROUP : 0);
	return r ? r : h->cache->set_degraded(h->ctx, txn, ctr, reason);
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

/* The set alone, which is all that has changed for most of them. */
static int32_t follow(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const struct record *rec,
		      struct rp_ids pool)
{
	struct looked c;
	if (!(rec->flags & RECORD_FORBIDS))
		return inst->h.cache->set_cpus(inst->h.ctx, txn, ctr, pool);
	int32_t r = look_at(inst, ctr, &c);
	return r ? r : stage_shared(inst, txn, &c, pool, NULL);
}

/* Those who own CPUs own them alone, unless nothing is left for those who share. */
static int32_t own_again(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	return h->cache->set_exclusive(h->ctx, txn, info->ctr,
				       inst->overlapping ? rp_ids_none() : info->cpus);
}

int32_t stage_sharers(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	struct rp_idset pool;
	books_pool(inst, &pool);
	bool empty = rp_ids_empty(rp_ids_of(&pool)), was = inst->overlapping;
	inst->overlapping = empty && inst->books.n[CLASS_SHARED];
	if (inst->overlapping && !was)
		modhost_log(&inst->h, RP_LOG_WARNING, 0,
			    "shared CPU pool is empty, %u containers overlap with others",
			    inst->books.n[CLASS_SHARED]);
	if (empty && inst->overlapping == was)
		return 0;
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), r = n < 0 ? n : 0;
	for (int32_t i = 0; !r && i < n; i++) {
		struct rp_ctr_info info = {.size = sizeof info};
		struct record rec;
		r = inst->list.ctrs[i] == except
			    ? 0
			    : inst->h.cache->get_ctr(inst->h.ctx, inst->list.ctrs[i], &info);
		if (r || inst->list.ctrs[i] == except || (info.flags & RP_CTR_PRESERVE_CPU))
			continue;
		(void)record_read(inst, info.ctr, &rec);
		if (rec.class != CLASS_SHARED)
			r = inst->overlapping == was ? 0 : own_again(inst, txn, &info);
		else if (!empty)
			r = follow(inst, txn, info.ctr, &rec, rp_ids_of(&pool));
	}
	return r;
}
