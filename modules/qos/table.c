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

static uint64_t entry_key(const struct entry *e, enum chain k)
{
	return k == OF_POD ? e->pod : k == OF_CTR ? e->ctr : e->uid;
}

static struct entry **table_chain(const struct table *t, enum chain k, uint64_t key)
{
	uint32_t hash = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32);
	return &t->chains[k * t->n_chains + (hash & (t->n_chains - 1))];
}

/* Returns the next entry with this key after an entry, the latest first; NULL: the first one. */
static struct entry *table_match(const struct table *t, enum chain k, uint64_t key,
				 const struct entry *after)
{
	struct entry *first = t->n_chains ? *table_chain(t, k, key) : NULL;
	struct entry *e = after ? after->next[k] : first;
	while (e && entry_key(e, k) != key)
		e = e->next[k];
	return e;
}

struct entry *table_find(const struct rp_instance *inst, rp_ctr ctr)
{
	return table_match(&inst->table, OF_CTR, ctr, NULL);
}

struct entry *table_next(const struct rp_instance *inst, rp_pod pod, const struct entry *after)
{
	return table_match(&inst->table, OF_POD, pod, after);
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

struct entry *table_of_uid(const struct rp_instance *inst, uint64_t uid, const struct entry *after)
{
	return table_match(&inst->table, OF_UID, uid, after);
}

bool table_has_pod(const struct rp_instance *inst, rp_pod pod)
{
	return find_role(inst, pod, ROLE_MAIN, ROLE_SIDECAR) != NULL;
}

static void table_link(struct table *t, struct entry *e)
{
	for (enum chain k = 0; k < N_CHAINS; k++) {
		struct entry **first = table_chain(t, k, entry_key(e, k));
		if (!entry_key(e, k))
			continue;
		e->next[k] = *first;
		*first = e;
	}
}

static void table_unlink(struct table *t, const struct entry *e)
{
	for (enum chain k = 0; k < N_CHAINS; k++) {
		struct entry **at = table_chain(t, k, entry_key(e, k));
		while (entry_key(e, k) && *at != e)
			at = &(*at)->next[k];
		if (entry_key(e, k))
			*at = e->next[k];
	}
}

/* Makes as many hash chains as there are elements in the lists, and links all entries again. */
static bool table_rehash(struct table *t)
{
	uint32_t n = t->n_chains ? 2 * t->n_chains : 64;
	struct entry **chains = calloc(n, N_CHAINS * sizeof(void *));
	if (!chains)
		return false;
	free(t->chains);
	t->chains = chains;
	t->n_chains = n;
	for (uint32_t i = 0; i < t->n; i++)
		table_link(t, t->list[i]);
	return true;
}

/* Makes room for one more entry. */
static bool table_grow(struct table *t)
{
	uint32_t n_bound = t->cap;
	return room_for(&t->bound, &n_bound, t->n + 1, sizeof(void *)) &&
	       room_for(&t->list, &t->cap, t->n + 1, sizeof(void *)) &&
	       (t->n < t->n_chains || table_rehash(t));
}

/* Adds an entry to the sums of pools and nodes, or removes it. */
static void table_count(struct rp_instance *inst, struct entry *e, bool joins)
{
	pools_count(inst, e, joins);
	room_count(&inst->table, e, joins);
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
	new->uid = e->is.uid;
	new->number = ++t->last_number;
	t->list[t->n++] = new;
	table_link(t, new);
	table_count(inst, new, true);
	return 0;
}

static uint32_t table_index(const struct table *t, const struct entry *e)
{
	uint32_t first = 0, n = t->n;
	for (uint32_t half; n > 1; n -= half) {
		half = n / 2;
		if (t->list[first + half]->number <= e->number)
			first += half;
	}
	return first;
}

void table_mark(struct rp_instance *inst, struct entry *e)
{
	uint32_t i = table_index(&inst->table, e);
	e->changed = true;
	inst->table.first_changed = i < inst->table.first_changed ? i : inst->table.first_changed;
}

void table_changed(struct rp_instance *inst, struct entry *e)
{
	table_mark(inst, e);
	inst->pools.counted = false;
	inst->table.summed = false;
}

void table_resize(struct rp_instance *inst, struct entry *e, int64_t cpu, int64_t mem)
{
	table_count(inst, e, false);
	e->is.cpu = cpu;
	e->is.mem = mem;
	table_count(inst, e, true);
	table_mark(inst, e);
}

void table_replace(struct rp_instance *inst, struct entry *e, const struct entry *now)
{
	table_unlink(&inst->table, e);
	e->is = now->is;
	e->uid = e->is.uid;
	table_link(&inst->table, e);
	table_changed(inst, e);
}

void table_remove(struct rp_instance *inst, struct entry *e)
{
	struct table *t = &inst->table;
	uint32_t i = table_index(t, e), left = --t->n - i;
	table_count(inst, e, false);
	table_unlink(t, e);
	free(e);
	memmove(&t->list[i], &t->list[i + 1], left * sizeof *t->list);
	t->first_changed -= i < t->first_changed;
}

static void table_empty(struct rp_instance *inst)
{
	struct table *t = &inst->table;
	for (uint32_t i = 0; i < t->n; i++)
		free(t->list[i]);
	if (t->n_chains)
		memset(t->chains, 0, t->n_chains * N_CHAINS * sizeof(void *));
	t->n = t->first_changed = 0;
	t->summed = inst->pools.counted = false;
}

void table_release(struct rp_instance *inst)
{
	struct table *t = &inst->table;
	table_empty(inst);
	free(t->list);
	free(t->bound);
	free(t->chains);
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
