/* SPDX-License-Identifier: Apache-2.0 */
/* The table of containers and grants, an index over the records in the host's cache. */
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/room.h"
#include "modules/qos/qos.h"

bool record_is_sound(const struct record *rec)
{
	return rec->version == RECORD_VERSION && rec->level < N_LEVELS && rec->role < N_ROLES &&
	       memchr(rec->pool, '\0', sizeof rec->pool);
}

/* Reads a record of version 1, which has no separate nodes for memory. */
static bool read_former(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	if (!ctr_record(&inst->h, ctr, 1, ret, RECORD_1_SIZE))
		return false;
	ret->version = RECORD_VERSION;
	ret->mem_nodes = ret->nodes;
	return true;
}

bool record_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	return (ctr_record(&inst->h, ctr, RECORD_VERSION, ret, sizeof *ret) ||
		read_former(inst, ctr, ret)) &&
	       record_is_sound(ret) && ret->role != ROLE_GRANT;
}

struct entry *table_find(const struct rp_instance *inst, rp_ctr ctr)
{
	for (uint32_t i = inst->table.n; i--;)
		if (inst->table.keys[i].ctr == ctr)
			return inst->table.list[i];
	return NULL;
}

struct entry *table_next(const struct rp_instance *inst, rp_pod pod, uint32_t *at)
{
	const struct table *t = &inst->table;
	while (*at < t->n)
		if (t->keys[t->n - ++*at].pod == pod)
			return t->list[t->n - *at];
	return NULL;
}

static struct entry *find_role(const struct rp_instance *inst, rp_pod pod, enum role first,
			       enum role last)
{
	uint32_t at = 0;
	struct entry *e = table_next(inst, pod, &at);
	while (e && (e->is.role < first || e->is.role > last))
		e = table_next(inst, pod, &at);
	return e;
}

struct entry *table_main(const struct rp_instance *inst, rp_pod pod)
{
	return find_role(inst, pod, ROLE_MAIN, ROLE_MAIN);
}

struct entry *table_grant(const struct rp_instance *inst, rp_pod pod)
{
	return find_role(inst, pod, ROLE_GRANT, ROLE_GRANT);
}

struct entry *table_of_uid(const struct rp_instance *inst, uint64_t uid, uint32_t *at)
{
	const struct table *t = &inst->table;
	while (*at < t->n && t->keys[*at].uid != uid)
		(*at)++;
	return *at < t->n ? t->list[(*at)++] : NULL;
}

bool table_has_pod(const struct rp_instance *inst, rp_pod pod)
{
	return find_role(inst, pod, ROLE_MAIN, ROLE_SIDECAR) != NULL;
}

int32_t table_add(struct rp_instance *inst, const struct entry *e)
{
	struct table *t = &inst->table;
	uint32_t cap = t->cap;
	struct entry *new = malloc(sizeof *new);
	if (!new || !room_for(&t->list, &cap, t->n + 1, sizeof *t->list) ||
	    !room_for(&t->keys, &t->cap, t->n + 1, sizeof *t->keys)) {
		free(new);
		return modhost_no_memory(&inst->h);
	}
	*new = *e;
	if (e->changed && t->n < t->first_changed)
		t->first_changed = t->n;
	t->keys[t->n] = (struct key){e->pod, e->ctr, e->is.uid};
	t->list[t->n++] = new;
	pools_count(inst, e, true);
	return 0;
}

static uint32_t table_index(const struct table *t, const struct entry *e)
{
	uint32_t i = t->n - 1;
	while (t->list[i] != e)
		i--;
	return i;
}

void table_changed(struct rp_instance *inst, struct entry *e)
{
	e->changed = true;
	inst->table.first_changed = 0;
	inst->pools.counted = false;
}

void table_replace(struct rp_instance *inst, struct entry *e, const struct entry *now)
{
	*e = *now;
	inst->table.keys[table_index(&inst->table, e)].uid = e->is.uid;
	table_changed(inst, e);
}

void table_remove(struct rp_instance *inst, struct entry *e)
{
	struct table *t = &inst->table;
	uint32_t i = table_index(t, e), left = --t->n - i;
	pools_count(inst, e, false);
	free(e);
	memmove(&t->list[i], &t->list[i + 1], left * sizeof *t->list);
	memmove(&t->keys[i], &t->keys[i + 1], left * sizeof *t->keys);
	t->first_changed -= i < t->first_changed;
}

void table_clear(struct rp_instance *inst)
{
	for (uint32_t i = 0; i < inst->table.n; i++)
		free(inst->table.list[i]);
	inst->table.n = inst->table.first_changed = 0;
	inst->pools.counted = false;
}

static int32_t table_do_load(struct rp_instance *inst, rp_ctr ctr)
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
	    e.is.role != ROLE_INIT && !(e.is.set & SET_LOOSE))
		owners_give(&inst->owners, info.cpus, info.pod);
	return table_add(inst, &e);
}

int32_t table_load(struct rp_instance *inst)
{
	int32_t n = ctr_list(&inst->h, &inst->list, RP_ORDER_CREATED), r = n < 0 ? n : 0;
	table_clear(inst);
	owners_clear(&inst->owners);
	if (!r)
		r = admit_load(inst);
	for (int32_t i = 0; !r && i < n; i++)
		r = table_do_load(inst, inst->list.ctrs[i]);
	if (!r)
		place_loose(inst);
	if (!r)
		advise_learn(inst);
	return r;
}
