/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "modules/qos/qos.h"

bool record_is_sound(const struct record *rec)
{
	return rec->version == RECORD_VERSION && rec->level < N_LEVELS && rec->role < N_ROLES &&
	       memchr(rec->pool, '\0', sizeof rec->pool);
}

bool record_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	return ctr_record(&inst->h, ctr, RECORD_VERSION, ret, sizeof *ret) &&
	       record_is_sound(ret) && ret->role != ROLE_GRANT;
}

struct entry *table_find(const struct rp_instance *inst, rp_ctr ctr)
{
	for (uint32_t i = 0; i < inst->table.n; i++)
		if (inst->table.list[i].ctr == ctr)
			return &inst->table.list[i];
	return NULL;
}

struct entry *table_main(const struct rp_instance *inst, rp_pod pod)
{
	for (uint32_t i = 0; i < inst->table.n; i++) {
		struct entry *e = &inst->table.list[i];
		if (e->pod == pod && e->is.role == ROLE_MAIN)
			return e;
	}
	return NULL;
}

bool table_has_pod(const struct rp_instance *inst, rp_pod pod)
{
	for (uint32_t i = 0; i < inst->table.n; i++)
		if (inst->table.list[i].pod == pod && inst->table.list[i].is.role < ROLE_INIT)
			return true;
	return false;
}

int32_t table_add(struct rp_instance *inst, const struct entry *e)
{
	struct table *t = &inst->table;
	if (t->n == t->cap) {
		uint32_t cap = t->cap ? 2 * t->cap : 64;
		struct entry *list = realloc(t->list, cap * sizeof *list);
		if (!list)
			return modhost_fail(&inst->h, -RP_ENOMEM, "out of memory");
		t->list = list;
		t->cap = cap;
	}
	t->list[t->n++] = *e;
	return 0;
}

void table_remove(struct rp_instance *inst, struct entry *e)
{
	struct table *t = &inst->table;
	size_t i = (size_t)(e - t->list);
	memmove(e, e + 1, (--t->n - i) * sizeof *e);
}

static int32_t load(struct rp_instance *inst, rp_ctr ctr)
{
	struct rp_ctr_info info;
	struct entry e = {.ctr = ctr};
	if (!record_read(inst, ctr, &e.is))
		return 0;
	int32_t r = ctr_info(&inst->h, ctr, &info);
	if (r)
		return r;
	e.pod = info.pod;
	if (e.is.level == LEVEL_DEDICATED && !(e.is.flags & (ASK_LOST | ASK_WAITS)) &&
	    e.is.role != ROLE_INIT)
		owners_give(&inst->owners, info.cpus, info.pod);
	return table_add(inst, &e);
}

int32_t table_load(struct rp_instance *inst)
{
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), r = n < 0 ? n : 0;
	inst->table.n = 0;
	owners_clear(&inst->owners);
	if (!r)
		r = admit_load(inst);
	for (int32_t i = 0; !r && i < n; i++)
		r = load(inst, inst->list.ctrs[i]);
	return r;
}
