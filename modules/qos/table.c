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

static uint32_t table_chain(const struct table *t, uint64_t handle)
{
	return (uint32_t)(handle * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (t->n_chains - 1);
}

struct entry *table_find(const struct rp_instance *inst, rp_ctr ctr)
{
	const struct table *t = &inst->table;
	struct entry *e = t->n_chains ? t->of_ctr[table_chain(t, ctr)] : NULL;
	while (e && e->ctr != ctr)
		e = e->next_of_ctr;
	return e;
}

struct entry *table_next(const struct rp_instance *inst, rp_pod pod, const struct entry *after)
{
	const struct table *t = &inst->table;
	struct entry *first = t->n_chains ? t->of_pod[table_chain(t, pod)] : NULL;
	struct entry *e = after ? after->next_of_pod : first;
	while (e && e->pod != pod)
		e = e->next_of_pod;
	return e;
}

static struct entry *find_role(const struct rp_instance *inst, rp_pod pod, enum role first,
			       enum role last)
{
	struct entry *e = table_next(inst, pod, NULL);
	while (e && (e->is.role < first || e->is.role > last))
		e = table_next(inst, pod, e);
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
	while (*at < t->n && t->uids[*at] != uid)
		(*at)++;
	return *at < t->n ? t->list[(*at)++] : NULL;
}

bool table_has_pod(const struct rp_instance *inst, rp_pod pod)
{
	return find_role(inst, pod, ROLE_MAIN, ROLE_SIDECAR) != NULL;
}

static void table_link(struct table *t, struct entry *e)
{
	struct entry **of_pod = &t->of_pod[table_chain(t, e->pod)];
	struct entry **of_ctr = &t->of_ctr[table_chain(t, e->ctr)];
	e->next_of_pod = *of_pod;
	e->next_of_ctr = *of_ctr;
	*of_pod = *of_ctr = e;
}

static void table_unlink(struct table *t, const struct entry *e)
{
	struct entry **at = &t->of_pod[table_chain(t, e->pod)];
	while (*at != e)
		at = &(*at)->next_of_pod;
	*at = e->next_of_pod;
	at = &t->of_ctr[table_chain(t, e->ctr)];
	while (*at != e)
		at = &(*at)->next_of_ctr;
	*at = e->next_of_ctr;
}

/* Makes as many hash chains as there are elements in the lists, and links all entries again. */
static bool table_rehash(struct table *t)
{
	uint32_t n = t->n_chains ? 2 * t->n_chains : 64;
	struct entry **of_pod = calloc(n, sizeof(void *)), **of_ctr = calloc(n, sizeof(void *));
	if (!of_pod || !of_ctr) {
		free(of_pod);
		free(of_ctr);
		return false;
	}
	free(t->of_pod);
	free(t->of_ctr);
	t->of_pod = of_pod;
	t->of_ctr = of_ctr;
	t->n_chains = n;
	for (uint32_t i = 0; i < t->n; i++)
		table_link(t, t->list[i]);
	return true;
}

/* Makes room for one more entry. */
static bool table_grow(struct table *t)
{
	uint32_t cap = t->cap, n_bound = cap;
	return room_for(&t->list, &cap, t->n + 1, sizeof(void *)) &&
	       room_for(&t->bound, &n_bound, t->n + 1, sizeof(void *)) &&
	       room_for(&t->uids, &t->cap, t->n + 1, sizeof *t->uids) &&
	       (t->n < t->n_chains || table_rehash(t));
}

int32_t table_add(struct rp_instance *inst, const struct entry *e)
{
	struct table *t = &inst->table;
	struct entry *new = malloc(sizeof *new);
	if (!new || !table_grow(t)) {
		free(new);
		return modhost_no_memory(&inst->h);
	}
	*new = *e;
	if (e->changed && t->n < t->first_changed)
		t->first_changed = t->n;
	t->uids[t->n] = e->is.uid;
	t->list[t->n++] = new;
	table_link(t, new);
	pools_count(inst, new, true);
	room_count(t, new, true);
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
	if (e->is.role != ROLE_SIDECAR) /* sidecars need no room */
		inst->table.summed = false;
}

void table_replace(struct rp_instance *inst, struct entry *e, const struct entry *now)
{
	e->is = now->is;
	inst->table.uids[table_index(&inst->table, e)] = e->is.uid;
	table_changed(inst, e);
}

void table_remove(struct rp_instance *inst, struct entry *e)
{
	struct table *t = &inst->table;
	uint32_t i = table_index(t, e), left = --t->n - i;
	pools_count(inst, e, false);
	room_count(t, e, false);
	table_unlink(t, e);
	free(e);
	memmove(&t->list[i], &t->list[i + 1], left * sizeof *t->list);
	memmove(&t->uids[i], &t->uids[i + 1], left * sizeof *t->uids);
	t->first_changed -= i < t->first_changed;
}

static void table_empty(struct rp_instance *inst)
{
	struct table *t = &inst->table;
	for (uint32_t i = 0; i < t->n; i++)
		free(t->list[i]);
	for (uint32_t i = 0; i < t->n_chains; i++)
		t->of_pod[i] = t->of_ctr[i] = NULL;
	t->n = t->first_changed = 0;
	t->summed = inst->pools.counted = false;
}

void table_release(struct rp_instance *inst)
{
	struct table *t = &inst->table;
	table_empty(inst);
	free(t->list);
	free(t->uids);
	free(t->bound);
	free(t->of_pod);
	free(t->of_ctr);
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
	table_empty(inst);
	owners_clear(&inst->owners);
	for (int32_t i = 0; !r && i < n; i++)
		r = table_do_load(inst, inst->list.ctrs[i]);
	if (!r)
		r = admit_load(inst);
	if (!r)
		place_loose(inst);
	if (!r)
		advise_learn(inst);
	return r;
}
