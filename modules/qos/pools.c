/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and CPUs of pools. They are computed as a whole, from the requests of main containers and
 * from the CPUs reclaimed before, and not changed step by step. So the same containers have the
 * same pools, whatever the order in which they were created.
 */
#include <stdlib.h>
#include <string.h>

#include "modules/qos/qos.h"

static uint32_t n_of(const struct rp_idset *set)
{
	return rp_ids_count(rp_ids_of(set));
}

static void add_to(struct rp_idset *set, const struct rp_idset *more)
{
	rp_idset_or(set, rp_ids_of(set), rp_ids_of(more));
}

static void take_out(struct rp_idset *set, const struct rp_idset *of)
{
	rp_idset_andnot(set, rp_ids_of(set), rp_ids_of(of));
}

/* ---- requests of pools ----------------------------------------------------------------------- */

static uint64_t node_of(const struct record *rec)
{
	return rec->flags & ASK_BOUND ? rec->nodes : 0;
}

static struct pool *pools_do_find(struct pools *pools, const struct record *rec)
{
	for (uint32_t i = 0; i < pools->n; i++)
		if (pools->list[i].node == node_of(rec) &&
		    !memcmp(pools->list[i].name, rec->pool, sizeof rec->pool))
			return &pools->list[i];
	return NULL;
}

const struct pool *pools_of(const struct rp_instance *inst, const struct record *rec)
{
	return pools_do_find((struct pools *)&inst->pools, rec);
}

static const char *text_of(const char *name, uint64_t node, char text[POOL_TEXT_MAX])
{
	if (node)
		(void)snprintf(text, POOL_TEXT_MAX, "%s-NUMA%d", name, __builtin_ctzll(node));
	else
		memcpy(text, name, strlen(name) + 1);
	return text;
}

const char *pool_text(const struct pool *p, char text[POOL_TEXT_MAX])
{
	return text_of(p->name, p->node, text);
}

const char *pool_text_of(const struct record *rec, char text[POOL_TEXT_MAX])
{
	return text_of(rec->pool, rec->level == LEVEL_SHARED ? node_of(rec) : 0, text);
}

/* Counts an entry on its nodes, and sets the bits of nodes with entries in *mask. */
static void count_nodes(uint32_t on_node[NODES_MAX], uint64_t nodes, bool joins, uint64_t *mask)
{
	for (; nodes; nodes &= nodes - 1) {
		uint32_t node = (uint32_t)__builtin_ctzll(nodes);
		on_node[node] += joins ? 1 : UINT32_MAX;
		*mask = (*mask & ~(UINT64_C(1) << node)) | (uint64_t)(on_node[node] > 0) << node;
	}
}

/* Counts a request in its pool, which is created for the first and removed with the last one.
 * Returns false if there are too many pools. */
static bool count_request(struct pools *pools, const struct record *rec, bool joins)
{
	struct pool *p = pools_do_find(pools, rec);
	if (!p && pools->n == POOLS_MAX)
		return false;
	if (!p) {
		p = &pools->list[pools->n++];
		p->node = node_of(rec);
		p->request = p->n = 0;
		pools->inputs = 0;
		memcpy(p->name, rec->pool, sizeof p->name);
	}
	p->request += joins ? rec->cpu : -rec->cpu;
	p->n += joins ? 1 : UINT32_MAX;
	if (!p->n)
		memmove(p, p + 1, (size_t)(&pools->list[--pools->n] - p) * sizeof *p);
	return true;
}

/* Returns false if the entry's pool is one too many. */
static bool pools_do_count(struct pools *pools, const struct entry *e, bool joins)
{
	const struct record *rec = &e->is;
	uint64_t *const masks[N_LEVELS] = {[LEVEL_SHARED] = &pools->shared,
					   [LEVEL_DEDICATED] = &pools->dedicated,
					   [LEVEL_RECLAIMED] = &pools->reclaimed};
	if (rec->ramp_end_ms && joins &&
	    (!pools->next_ramp_ms || rec->ramp_end_ms < pools->next_ramp_ms))
		pools->next_ramp_ms = rec->ramp_end_ms;
	if (!entry_counts(e))
		return true;
	if (masks[rec->level])
		count_nodes(pools->on_node[rec->level], rec->nodes, joins, masks[rec->level]);
	if (rec->flags & ASK_EXCLUSIVE)
		count_nodes(pools->on_node[N_LEVELS], rec->nodes, joins, &pools->exclusive);
	return rec->level != LEVEL_SHARED || rec->ramp_end_ms || rec->cpu <= 0 ||
	       count_request(pools, rec, joins);
}

void pools_count(struct rp_instance *inst, const struct entry *e, bool joins)
{
	struct pools *pools = &inst->pools;
	bool ends_first = !joins && e->is.ramp_end_ms && e->is.ramp_end_ms == pools->next_ramp_ms;
	if (pools->counted)
		pools->counted = !ends_first && pools_do_count(pools, e, joins);
}

static int32_t look_at_entries(struct rp_instance *inst)
{
	struct pools *pools = &inst->pools;
	pools->n = 0;
	pools->next_ramp_ms = 0;
	pools->inputs = 0;
	pools->shared = pools->dedicated = pools->reclaimed = pools->exclusive = 0;
	memset(pools->on_node, 0, sizeof pools->on_node);
	for (uint32_t i = 0; i < inst->table.n; i++)
		if (!pools_do_count(pools, inst->table.list[i], true))
			return modhost_fail(&inst->h, -RP_E2BIG,
					    "more than %u CPU pools: no room for %s", POOLS_MAX,
					    inst->table.list[i]->is.pool);
	pools->counted = true;
	return 0;
}

static int by_node(const void *a, const void *b)
{
	const struct pool *x = a, *y = b;
	if (x->node != y->node)
		return x->node - 1 < y->node - 1 ? -1 : 1; /* unbound pools come last */
	return strcmp(x->name, y->name);
}

/* ---- distribution ---------------------------------------------------------------------------- */

/* The pools of a node, or the unbound pools; adjacent in the sorted list. */
struct group {
	struct pool *list;
	uint32_t n, sum;
};

static struct group group_at(struct pools *pools, uint32_t first)
{
	struct group g = {&pools->list[first], 0, 0};
	for (uint32_t i = first; i < pools->n && pools->list[i].node == g.list->node; i++) {
		g.n++;
		g.sum += pools->list[i].size;
	}
	return g;
}

static void take_sizes(const struct rp_plan *p, struct group *g, struct rp_idset *from)
{
	for (uint32_t i = 0; i < g->n; i++)
		take_cores(p, from, g->list[i].size, false, &g->list[i].cpus);
}

static struct pool *pools_largest(struct group *g)
{
	struct pool *r = &g->list[0];
	for (uint32_t i = 1; i < g->n; i++)
		if (g->list[i].size > r->size)
			r = &g->list[i];
	return r;
}

/* Distributes all CPUs of `from` by the pools' sizes. If there are fewer CPUs than pools, each pool
 * has all of them. */
static void take_parts(const struct rp_plan *p, struct group *g, struct rp_idset *from)
{
	uint32_t n = n_of(from), sum = 0;
	if (n < g->n) {
		for (uint32_t i = 0; i < g->n; i++)
			rp_idset_copy(&g->list[i].cpus, rp_ids_of(from));
		rp_idset_clear(from);
		return;
	}
	for (uint32_t i = 0; i < g->n; i++) {
		uint64_t part = ((uint64_t)g->list[i].size * n + g->sum - 1) / g->sum;
		g->list[i].size = part ? (uint32_t)part : 1;
		sum += g->list[i].size;
	}
	for (; sum > n; sum--)
		pools_largest(g)->size--;
	take_sizes(p, g, from);
}

/* Distributes CPUs to a group of pools; the rest of `from` is reclaimed. */
static void share_out(struct rp_instance *inst, struct group *g, struct rp_idset *from,
		      bool may_leave)
{
	if (g->sum <= n_of(from) && may_leave && !inst->plan->overlap)
		take_sizes(inst->plan, g, from);
	else
		take_parts(inst->plan, g, from);
	add_to(&inst->pools.reclaim, from);
}

/* Distributes, without reclaiming, all reclaimed CPUs except the minimum to the pools. */
static void give_surplus(struct rp_instance *inst, struct group *g)
{
	struct rp_idset *reclaim = &inst->pools.reclaim;
	uint32_t n = n_of(reclaim), min = inst->plan->min_reclaimed, sum = 0;
	if (!g->n || n <= min)
		return;
	uint32_t surplus = n - min, left = surplus;
	for (uint32_t i = 0; i < g->n; i++)
		sum += n_of(&g->list[i].cpus);
	for (uint32_t i = 0; sum && left && i < g->n; i++) {
		uint32_t part = (uint32_t)((uint64_t)n_of(&g->list[i].cpus) * surplus / sum);
		part = part ? part : 1;
		part = part < left ? part : left;
		take_threads(inst->plan, reclaim, part, false, &g->list[i].cpus);
		left -= part;
	}
}

/* Returns the number of a pool's CPUs on which reclaimed containers run too: the same part as
 * before, at first the part that is not requested. */
static uint32_t pools_lent(const struct rp_instance *inst, const struct pool *p)
{
	uint32_t n = n_of(&p->cpus);
	if (inst->past.overlap)
		return rp_ids_count_and(rp_ids_of(&p->cpus), rp_ids_of(&inst->past.reclaim));
	int64_t rest = 1000 * (int64_t)n - p->request;
	return rest > 0 ? (uint32_t)((rest + 999) / 1000) : 0;
}

static void pools_lend(struct rp_instance *inst, struct group *g)
{
	for (uint32_t i = 0; i < g->n; i++) {
		struct rp_idset from;
		rp_idset_copy(&from, rp_ids_of(&g->list[i].cpus));
		take_cores(inst->plan, &from, pools_lent(inst, &g->list[i]), true,
			   &inst->pools.reclaim);
	}
}

/* Reclaims CPUs although none are left: first CPUs of pools, last CPUs of dedicated pods. */
static void reclaim_anyway(struct rp_instance *inst)
{
	struct rp_idset from;
	rp_idset_copy(&from, rp_ids_of(&inst->pools.open));
	take_threads(inst->plan, &from, inst->plan->min_reclaimed, false, &inst->pools.reclaim);
	if (rp_ids_empty(rp_ids_of(&inst->pools.reclaim)))
		rp_idset_copy(&inst->pools.reclaim, rp_ids_of(&inst->plan->reserved));
	rp_idset_copy(&from, rp_ids_of(&inst->plan->pool));
	if (rp_ids_empty(rp_ids_of(&inst->pools.reclaim)))
		take_threads(inst->plan, &from, inst->plan->min_reclaimed, false,
			     &inst->pools.reclaim);
}

/* ---- all pools ------------------------------------------------------------------------------- */

static void make_sizes(struct rp_instance *inst)
{
	struct pools *pools = &inst->pools;
	for (uint32_t i = 0; i < pools->n; i++) {
		struct pool *p = &pools->list[i];
		int64_t size = ((p->node ? 2 : 1) * p->request + 999) / 1000;
		p->size = advise_size(inst, p, size < RP_CPUS_MAX ? (uint32_t)size : RP_CPUS_MAX);
	}
}

static void make_sets(struct rp_instance *inst)
{
	struct pools *pools = &inst->pools;
	struct rp_idset from, of_node;
	struct group unbound = {NULL, 0, 0};
	for (uint32_t i = 0; i < pools->n;) {
		struct group g = group_at(pools, i);
		i += g.n;
		if (!g.list->node) {
			unbound = g;
			continue;
		}
		plan_cpus_of(inst->plan, g.list->node, &of_node);
		rp_idset_and(&from, rp_ids_of(&of_node), rp_ids_of(&pools->open));
		take_out(&pools->common, &of_node);
		share_out(inst, &g, &from, inst->plan->reclaim);
	}
	rp_idset_copy(&from, rp_ids_of(&pools->common));
	if (unbound.n)
		share_out(inst, &unbound, &from, true);
	else
		add_to(&pools->reclaim, &from);
	if (inst->plan->overlap)
		pools_lend(inst, &unbound);
	else if (!inst->plan->reclaim)
		give_surplus(inst, &unbound);
}

static void digest_word(uint64_t *digest, uint64_t word)
{
	*digest = (*digest ^ word) * 0x100000001b3u;
	*digest ^= *digest >> 29;
}

static void digest_set(uint64_t *digest, const struct rp_idset *set)
{
	for (uint32_t i = 0; i < set->nw; i++)
		if (set->w[i]) {
			digest_word(digest, i);
			digest_word(digest, set->w[i]);
		}
	digest_word(digest, UINT64_MAX);
}

static uint64_t digest_masks(const struct pools *p)
{
	uint64_t digest = 0xcbf29ce484222325u;
	digest_word(&digest, p->shared);
	digest_word(&digest, p->dedicated);
	digest_word(&digest, p->reclaimed);
	digest_word(&digest, p->exclusive);
	return digest;
}

/* Returns a digest of all that the CPUs of a given list of pools depend on. */
static uint64_t digest_inputs(const struct rp_instance *inst)
{
	uint64_t digest = digest_masks(&inst->pools);
	digest_set(&digest, &inst->pools.open);
	for (uint32_t i = 0; i < inst->pools.n; i++)
		digest_word(&digest, inst->pools.list[i].size);
	digest_word(&digest, inst->past.sized);
	return digest;
}

static void pools_digest(struct rp_instance *inst)
{
	struct pools *p = &inst->pools;
	p->digest = p->masks = digest_masks(p);
	digest_set(&p->digest, &p->open);
	for (uint32_t i = 0; i < p->n; i++) {
		digest_word(&p->digest, p->list[i].node);
		for (const char *c = p->list[i].name; *c; c++)
			digest_word(&p->digest, (unsigned char)*c);
		digest_set(&p->digest, &p->list[i].cpus);
	}
	digest_set(&p->digest, &p->common);
	digest_set(&p->digest, &p->reclaim);
	digest_set(&p->digest, &p->unbound_reclaim);
}

int32_t pools_make(struct rp_instance *inst)
{
	struct pools *pools = &inst->pools;
	struct rp_idset cpus;
	int32_t r = pools->counted ? 0 : look_at_entries(inst);
	if (r)
		return r;
	if (!pools->inputs)
		qsort(pools->list, pools->n, sizeof *pools->list, by_node);
	make_sizes(inst);
	rp_idset_andnot(&pools->open, rp_ids_of(&inst->plan->pool), rp_ids_of(&inst->owners.taken));
	plan_cpus_of(inst->plan, pools->exclusive, &cpus);
	take_out(&pools->open, &cpus);
	uint64_t inputs = digest_inputs(inst);
	if (inputs == pools->inputs && !inst->plan->overlap)
		return 0;
	pools->inputs = inputs;
	rp_idset_copy(&pools->common, rp_ids_of(&pools->open));
	rp_idset_clear(&pools->reclaim);
	for (uint32_t i = 0; i < pools->n; i++)
		rp_idset_clear(&pools->list[i].cpus);
	if (inst->past.sized)
		make_sets(inst);
	if (rp_ids_empty(rp_ids_of(&pools->reclaim)))
		reclaim_anyway(inst);
	plan_cpus_of(inst->plan, pools->reclaimed, &cpus);
	rp_idset_andnot(&pools->unbound_reclaim, rp_ids_of(&pools->reclaim), rp_ids_of(&cpus));
	if (rp_ids_empty(rp_ids_of(&pools->unbound_reclaim)))
		rp_idset_copy(&pools->unbound_reclaim, rp_ids_of(&pools->reclaim));
	pools_digest(inst);
	return 0;
}
