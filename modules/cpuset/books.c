/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "modules/cpuset/cpuset.h"

void books_clear(struct books *b)
{
	memset(b, 0, sizeof *b);
}

void books_add(struct books *b, enum cpuset_class class, struct rp_ids cpus)
{
	b->n[class]++;
	if (class == CLASS_SHARED)
		return;
	RP_IDS_EACH (cpu, cpus) {
		if (class == CLASS_ANNOTATED) {
			b->refs[cpu]++;
			rp_idset_add(&b->named, cpu);
		} else {
			rp_idset_add(&b->owned, cpu);
		}
	}
}

void books_del(struct books *b, enum cpuset_class class, struct rp_ids cpus)
{
	if (b->n[class])
		b->n[class]--;
	if (class == CLASS_SHARED)
		return;
	RP_IDS_EACH (cpu, cpus) {
		if (class == CLASS_INTEGER) {
			rp_idset_del(&b->owned, cpu);
		} else if (b->refs[cpu] && !--b->refs[cpu]) {
			rp_idset_del(&b->named, cpu);
		}
	}
}

int32_t books_load(struct rp_instance *inst)
{
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), r = n < 0 ? n : 0;
	books_clear(&inst->books);
	inst->overlapping = false;
	for (int32_t i = 0; !r && i < n; i++) {
		struct rp_ctr_info info = {.size = sizeof info};
		struct record rec;
		r = inst->h.cache->get_ctr(inst->h.ctx, inst->list.ctrs[i], &info);
		if (r || !record_read(inst, info.ctr, &rec))
			continue;
		books_add(&inst->books, rec.class, info.cpus);
		if (rec.class != CLASS_SHARED && rp_ids_empty(info.exclusive))
			inst->overlapping = true;
	}
	inst->stale = r != 0;
	return r;
}

void books_pool(const struct rp_instance *inst, struct rp_idset *ret)
{
	rp_idset_andnot(ret, rp_ids_of(&inst->plan->allowed), rp_ids_of(&inst->books.named));
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&inst->books.owned));
}

void books_free(const struct rp_instance *inst, const struct looked *c, struct rp_idset *ret)
{
	books_pool(inst, ret);
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&inst->plan->reserved));
	if (c->forbids)
		rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&c->forbidden));
}
