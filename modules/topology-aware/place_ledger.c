/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledger of grants and free capacity of the pools. Exclusive CPUs are removed from the free sets of
 * their pool, its ancestors and its descendants. Amounts count in their pool and its ancestors. The
 * log can undo each addition and removal exactly and without allocating memory.
 */
#include <stdlib.h>

#include <nri-rp/lib/text.h>
#include "modules/lib/private/room.h"
#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"

/* ---- namespaces ------------------------------------------------------------------------------ */

static struct space *space_find(const struct ledger *l, uint64_t hash, const char *name)
{
	struct space *s = table_get(&l->spaces, hash);
	while (s && strcmp(s->name, name) != 0)
		s = s->next;
	return s;
}

/* Returns the namespace for one more grant; NULL: out of memory. */
static struct space *space_use(struct rp_instance *inst, const char *name)
{
	struct ledger *l = &inst->ledger;
	uint64_t hash = text_hash(name);
	struct space *s = space_find(l, hash, name);
	if (!s) {
		s = calloc(1, sizeof *s + inst->plan->n_pools * sizeof *s->n_at);
		if (!s)
			return NULL;
		s->ledger = l;
		s->next = table_get(&l->spaces, hash);
		s->hash = hash;
		s->name = strdup(name);
		if (!s->name || table_put(&l->spaces, hash, s)) {
			free(s->name);
			free(s);
			return NULL;
		}
	}
	s->n_users++;
	return s;
}

static void space_unref(struct space *s)
{
	if (!s || --s->n_users)
		return;
	struct table *spaces = &s->ledger->spaces;
	struct space *first = table_get(spaces, s->hash), *before = first;
	while (before != s && before->next != s)
		before = before->next;
	if (before != s)
		before->next = s->next;
	else if (s->next)
		(void)table_put(spaces, s->hash, s->next); /* replaces, which cannot fail */
	else
		table_del(spaces, s->hash);
	free(s->name);
	free(s);
}

const uint32_t *ledger_of_namespace(const struct rp_instance *inst, const char *name)
{
	const struct space *s = space_find(&inst->ledger, text_hash(name), name);
	return s ? s->n_at : NULL;
}

/* ---- grants ---------------------------------------------------------------------------------- */

struct grant *grant_new(struct rp_instance *inst, const struct request *r, uint32_t pool,
			struct rp_ids exclusive, struct hints *hints)
{
	int32_t e = 0;
	struct grant *g = calloc(1, sizeof *g);
	if (!g)
		return NULL;
	g->ctr = r->info.ctr;
	g->pod = r->info.pod;
	g->pool = pool;
	g->claim = r->info.flags & RP_CTR_CLAIM;
	g->exclusive = cpus_new(exclusive, &e);
	g->class = g->exclusive ? r->class : CPUCLASS_NONE;
	g->irq = g->exclusive ? irq_ask_ref(r->irq) : NULL;
	g->hints = hints_ref(hints);
	if (!inst->plan->settings.colocate_namespaces)
		return e ? grant_free(g) : g;
	g->space = space_use(inst, r->info.pod_namespace);
	return e || !g->space ? grant_free(g) : g;
}

struct grant *grant_copy(const struct grant *from)
{
	int32_t r = 0;
	struct grant *g = malloc(sizeof *g);
	if (!g)
		return NULL;
	*g = *from;
	g->in = g->queued = false;
	g->hints = hints_ref(from->hints);
	g->irq = irq_ask_ref(from->irq);
	g->exclusive = cpus_new(cpus_ids(from->exclusive), &r);
	if (g->space)
		g->space->n_users++;
	g->reason = from->reason ? strdup(from->reason) : NULL;
	return r || (from->reason && !g->reason) ? grant_free(g) : g;
}

struct grant *grant_free(struct grant *g)
{
	if (!g)
		return NULL;
	space_unref(g->space);
	hints_unref(g->hints);
	irq_ask_unref(g->irq);
	free(g->exclusive);
	free(g->reason);
	free(g);
	return NULL;
}

bool grant_is_fixed(const struct grant *g)
{
	const uint32_t odd = GRANT_LACKS | GRANT_COLD | GRANT_PRESERVE_MEM;
	return g->claim || g->type != GRANT_NORMAL || g->flags & odd || g->hints || !grant_size(g);
}

/* ---- tables ---------------------------------------------------------------------------------- */

int32_t ledger_reserve(struct rp_instance *inst, uint32_t n)
{
	struct ledger *l = &inst->ledger;
	return table_reserve(&l->by_ctr, n) || table_reserve(&l->by_pod, n) ||
			       !room_for(&l->log, &l->cap_log, l->n_log + n, sizeof *l->log) ||
			       !room_for(&l->sizes, &l->cap_sizes, l->n_grants + n,
					 sizeof *l->sizes)
		       ? modhost_no_memory(&inst->h)
		       : 0;
}

void ledger_exclusive(const struct rp_instance *inst, struct rp_idset *ret)
{
	const struct rp_plan *p = inst->plan;
	const struct pool *root = &p->pools[p->root];
	struct rp_idset isolated;
	rp_idset_andnot(ret, plan_ids(p, root->cap_sharable), plan_ids(p, root->sharable));
	rp_idset_andnot(&isolated, plan_ids(p, root->cap_isolated), plan_ids(p, root->isolated));
	rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&isolated));
}

struct grant *ledger_find(const struct rp_instance *inst, rp_ctr ctr)
{
	return table_get(&inst->ledger.by_ctr, ctr);
}

struct grant *ledger_of_pod(const struct rp_instance *inst, rp_pod pod)
{
	return table_get(&inst->ledger.by_pod, pod);
}

/* ---- sets and sums --------------------------------------------------------------------------- */

static bool move_words(uint64_t *set, const uint64_t *capacity, const struct cpus *cpus, bool take)
{
	uint64_t changed = 0;
	for (uint32_t i = 0; i < cpus->nw; i++) {
		uint64_t now = take ? set[i] & ~cpus->w[i] : set[i] | (capacity[i] & cpus->w[i]);
		changed |= now ^ set[i];
		set[i] = now;
	}
	return changed != 0;
}

static void move_cpus(const struct rp_plan *p, struct pool *pool, const struct cpus *cpus,
		      bool take)
{
	bool shared = move_words(pool->sharable, pool->cap_sharable, cpus, take);
	bool isolated = move_words(pool->isolated, pool->cap_isolated, cpus, take);
	if (isolated)
		pool->n_isolated = rp_ids_count(plan_ids(p, pool->isolated));
	if (!shared)
		return;
	pool->n_sharable = rp_ids_count(plan_ids(p, pool->sharable));
	pool->generation++;
	pool->changed = true;
}

/*
 * Takes the CPUs and amounts of a grant from its pool, the pool's ancestors and its descendants, or
 * returns them.
 */
static void place_ledger_account(struct rp_instance *inst, const struct grant *g, bool take)
{
	struct ledger *l = &inst->ledger;
	const struct rp_plan *p = inst->plan;
	int64_t sign = take ? 1 : -1;
	int64_t shared = g->type == GRANT_NORMAL ? sign * g->portion : 0;
	int64_t reserved = g->type == GRANT_RESERVED ? sign * g->portion : 0;
	struct pool *own = &p->pools[g->pool];
	own->shared_own += shared;
	own->reserved_own += reserved;
	/*
	 * A misplaced container uses the reserved CPUs if no shared CPU is left, so it needs none.
	 */
	if ((g->flags & (GRANT_ZERO | GRANT_MISPLACED)) == GRANT_ZERO)
		own->zero_own += (uint32_t)sign;
	own->n_grants[g->type] += (uint32_t)sign;
	for (uint32_t i = g->pool; i != NO_POOL; i = p->pools[i].parent) {
		struct pool *pool = &p->pools[i];
		pool->shared_sum += shared;
		pool->reserved_sum += reserved;
		if (g->flags & GRANT_ZERO)
			pool->zero_sum += (uint32_t)sign;
		if (g->exclusive)
			move_cpus(p, pool, g->exclusive, take);
	}
	for (uint32_t i = own->first; g->exclusive && i < g->pool; i++)
		move_cpus(p, &p->pools[i], g->exclusive, take);
	l->n_grants += (uint32_t)sign;
	if (g->flags & GRANT_WAITS)
		l->n_waiting += (uint32_t)sign;
	if (g->flags & GRANT_COLD)
		l->n_cold += (uint32_t)sign;
	l->irqs_changed |= g->irq != NULL;
	l->classes_changed |= g->exclusive != NULL;
}

/* Puts a grant into the list of its pool, of which the grants of shared CPUs are the first part. */
static void ledger_list(struct pool *pool, struct grant *g)
{
	bool shares = grant_shares(g);
	g->pool_link = shares ? &pool->grants : pool->unshared;
	g->pool_next = *g->pool_link;
	*g->pool_link = g;
	if (g->pool_next)
		g->pool_next->pool_link = &g->pool_next;
	if (shares && pool->unshared == &pool->grants)
		pool->unshared = &g->pool_next;
}

static void ledger_unlist(struct pool *pool, struct grant *g)
{
	*g->pool_link = g->pool_next;
	if (g->pool_next)
		g->pool_next->pool_link = g->pool_link;
	if (pool->unshared == &g->pool_next)
		pool->unshared = g->pool_link;
}

static void link_grant(struct rp_instance *inst, struct grant *g)
{
	struct pool *pool = &inst->plan->pools[g->pool];
	uint32_t size = grant_is_fixed(g) ? 0 : (uint32_t)grant_size(g);
	g->at = inst->ledger.n_grants;
	inst->ledger.sizes[g->at] = (struct ledger_size){
		g->ctr, g->pool, size, relief_cost(g->exclusive != NULL, g->mem_size)};
	place_ledger_account(inst, g, true);
	/* cannot fail: ledger_reserve() was called */
	(void)table_put(&inst->ledger.by_ctr, g->ctr, g);
	g->pod_prev = NULL;
	g->pod_next = ledger_of_pod(inst, g->pod);
	if (g->pod_next)
		g->pod_next->pod_prev = g;
	(void)table_put(&inst->ledger.by_pod, g->pod, g);
	if (g->space)
		g->space->n_at[g->pool]++;
	ledger_list(pool, g);
	g->in = true;
}

static void unlink_grant(struct rp_instance *inst, struct grant *g)
{
	struct ledger *l = &inst->ledger;
	place_ledger_account(inst, g, false);
	/* the last one fills the gap */
	l->sizes[g->at] = l->sizes[l->n_grants];
	ledger_find(inst, l->sizes[g->at].ctr)->at = g->at;
	table_del(&l->by_ctr, g->ctr);
	if (g->pod_next)
		g->pod_next->pod_prev = g->pod_prev;
	if (g->pod_prev)
		g->pod_prev->pod_next = g->pod_next;
	else if (g->pod_next)
		(void)table_put(&l->by_pod, g->pod, g->pod_next);
	else
		table_del(&l->by_pod, g->pod);
	if (g->space)
		g->space->n_at[g->pool]--;
	ledger_unlist(&inst->plan->pools[g->pool], g);
	g->in = false;
}

void ledger_add(struct rp_instance *inst, struct grant *g)
{
	link_grant(inst, g);
	inst->ledger.log[inst->ledger.n_log++] = (struct ledger_entry){g, true};
}

void ledger_remove(struct rp_instance *inst, struct grant *g)
{
	unlink_grant(inst, g);
	inst->ledger.log[inst->ledger.n_log++] = (struct ledger_entry){g, false};
}

/* Clears the log and frees its grants that are no longer in the ledger. */
static void drop_log(struct rp_instance *inst)
{
	struct ledger *l = &inst->ledger;
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->n_log; i++) {
		struct grant *g = l->log[i].grant;
		if (g->in || g->queued)
			continue;
		g->queued = true;
		l->log[n++].grant = g;
	}
	for (uint32_t i = 0; i < n; i++)
		grant_free(l->log[i].grant);
	l->n_log = 0;
}

void ledger_begin(struct rp_instance *inst)
{
	drop_log(inst);
	for (uint32_t i = 0; inst->plan && i < inst->plan->n_pools; i++)
		inst->plan->pools[i].changed = false;
}

static void take_back(struct rp_instance *inst, uint32_t n_log)
{
	struct ledger *l = &inst->ledger;
	for (uint32_t i = l->n_log; i-- > n_log;) {
		if (l->log[i].added)
			unlink_grant(inst, l->log[i].grant);
		else
			link_grant(inst, l->log[i].grant);
	}
}

void ledger_undo(struct rp_instance *inst)
{
	take_back(inst, 0);
	drop_log(inst);
}

void ledger_undo_to(struct rp_instance *inst, uint32_t n_log)
{
	struct ledger *l = &inst->ledger;
	take_back(inst, n_log);
	for (uint32_t i = n_log; i < l->n_log; i++)
		/* a grant is added only once, so no earlier entry refers to it */
		if (l->log[i].added)
			grant_free(l->log[i].grant);
	l->n_log = n_log;
}

void ledger_clear(struct rp_instance *inst)
{
	struct ledger *l = &inst->ledger;
	struct rp_plan *p = inst->plan;
	drop_log(inst);
	for (uint32_t i = 0; p && i < p->n_pools; i++) {
		while (p->pools[i].grants) {
			struct grant *g = p->pools[i].grants;
			p->pools[i].grants = g->pool_next;
			grant_free(g);
		}
		plan_empty_pool(p, &p->pools[i]);
	}
	table_clear(&l->by_ctr);
	table_clear(&l->by_pod);
	l->n_grants = l->n_waiting = l->n_cold = 0;
	l->irqs_changed = l->classes_changed = true;
}

/* ---- free amounts ---------------------------------------------------------------------------- */

static int64_t left_in(const struct pool *pool)
{
	return 1000 * (int64_t)pool->n_sharable - pool->shared_sum;
}

int64_t ledger_room(const struct rp_plan *p, uint32_t pool, bool zero)
{
	int64_t room = INT64_MAX;
	for (uint32_t i = pool; i != NO_POOL; i = p->pools[i].parent)
		if (left_in(&p->pools[i]) < room)
			room = left_in(&p->pools[i]);
	return room - (zero && p->pools[pool].zero_sum ? 1 : 0);
}

void ledger_rooms(struct rp_plan *p)
{
	for (uint32_t i = p->n_pools; i-- > 0;) {
		int64_t room = left_in(&p->pools[i]);
		uint32_t parent = p->pools[i].parent;
		p->room[i] = parent != NO_POOL && p->room[parent] < room ? p->room[parent] : room;
	}
	for (uint32_t i = 0; i < p->n_pools; i++)
		p->room[i] -= p->pools[i].zero_sum ? 1 : 0;
}

bool ledger_drains(const struct rp_plan *p, uint32_t pool, int64_t n)
{
	for (uint32_t i = p->pools[pool].parent; i != NO_POOL; i = p->pools[i].parent)
		if (p->pools[i].zero_own && p->pools[i].n_sharable <= n)
			return true;
	return false;
}

int64_t ledger_reserved_room(const struct rp_plan *p, uint32_t pool)
{
	int64_t room = INT64_MAX;
	if (!p->pools[pool].n_reserved)
		return -1;
	for (uint32_t i = pool; i != NO_POOL; i = p->pools[i].parent) {
		int64_t left = 1000 * (int64_t)p->pools[i].n_reserved - p->pools[i].reserved_sum;
		if (left < room)
			room = left;
	}
	return room;
}

/* ---- slices: CPUs that can become exclusive -------------------------------------------------- */

static void fill_whole_slice(const struct rp_plan *p, struct pool *pool, uint32_t id)
{
	uint64_t *w = pool->whole_slice;
	memcpy(w, pool->own, p->n_words * sizeof *w);
	/*
	 * The last child has the number before its parent's. The previous child has the number
	 * before the child's first descendant.
	 */
	for (uint32_t next = id; next > pool->first;) {
		const struct pool *child = &p->pools[next - 1];
		for (uint32_t i = 0; i < p->n_words; i++)
			w[i] |= child->slice[i];
		next = child->first;
	}
	for (uint32_t i = 0; i < p->n_words; i++)
		w[i] &= pool->sharable[i];
	struct rp_idset cores;
	rp_idset_copy(&cores, plan_ids(p, w));
	isolation_narrow(p->h, &p->settings.isolation, &cores);
	for (uint32_t i = 0; i < p->n_words; i++)
		w[i] = rp_ids_word(rp_ids_of(&cores), i);
	pool->n_whole_slice = rp_ids_count(rp_ids_of(&cores));
}

/*
 * Computes the CPUs that are left after reserving the shares promised to containers of the pool.
 * limit: largest number of CPUs.
 */
static void fill_slice(const struct rp_plan *p, struct pool *pool, int64_t limit)
{
	struct rp_idset from, taken;
	if (p->settings.isolation.threads > 1)
		limit -= limit % p->settings.isolation.threads;
	if (limit >= pool->n_whole_slice) {
		memcpy(pool->slice, pool->whole_slice, p->n_words * sizeof(uint64_t));
		pool->n_slice = pool->n_whole_slice;
		return;
	}
	rp_idset_copy(&from, plan_ids(p, pool->whole_slice));
	rp_idset_clear(&taken);
	pool->n_slice = limit > 0 ? (uint32_t)limit : 0;
	if (limit > 0 && cpualloc_allocate(p->cpus, &from, pool->n_slice, CPUALLOC_NONE,
					   CPUALLOC_DEFAULT, &taken))
		pool->n_slice = 0;
	for (uint32_t i = 0; i < p->n_words; i++)
		pool->slice[i] = rp_ids_word(rp_ids_of(&taken), i);
}

void ledger_slices(struct rp_plan *p)
{
	for (uint32_t i = 0; i < p->n_pools; i++) {
		struct pool *pool = &p->pools[i];
		int64_t limit = p->room[i] / 1000;
		bool stale = pool->slice_stale || pool->slice_generation != pool->generation;
		if (!stale && pool->slice_limit == limit)
			continue;
		if (stale)
			fill_whole_slice(p, pool, i);
		fill_slice(p, pool, limit);
		pool->slice_generation = pool->generation;
		pool->slice_limit = limit;
		pool->slice_stale = false;
		if (pool->parent != NO_POOL)
			p->pools[pool->parent].slice_stale = true;
	}
}

const uint64_t *ledger_sliceable(const struct rp_plan *p, uint32_t pool, uint32_t *ret_n)
{
	const struct pool *of = &p->pools[pool];
	bool leaf = of->first == pool;
	*ret_n = leaf ? of->n_slice : of->n_whole_slice;
	return leaf ? of->slice : of->whole_slice;
}
