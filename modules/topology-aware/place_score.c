/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the best pool for a container. Each pool has a vector of scores, and vectors are compared
 * in lexicographic order: the first score that differs decides. So the order is total, and the
 * winner does not depend on the order in which pools are compared.
 */
#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"

#define AFFINITY "affinity to other containers"
#define SCORES_MAX 32u

struct compare {
	const struct rp_plan *p;
	const struct request *r;
	uint8_t rows[SCORES_MAX]; /* rows of `scores` that apply to the request */
	uint32_t n_rows;
	/* Name of the deciding score, and its value for either pool. */
	const char *rule;
	double by_best, by_second;
};

/* ---- memory ---------------------------------------------------------------------------------- */

bool memory_request(const struct rp_plan *p, const struct request *r, uint32_t pool,
		    struct memalloc_request *ret)
{
	*ret = (struct memalloc_request){
		.id = r->info.ctr,
		.size = r->mem_size,
		.types = r->mem_types,
		.priority = memalloc_prio_of(r->info.qos),
	};
	ret->nodes = tree_memory(&p->pools[pool], r->mem_types);
	if (r->mem_preserve) {
		ret->nodes = tree_memory(&p->pools[p->root], MEMALLOC_ALL_TYPES);
		ret->types = memalloc_types(p->mem, ret->nodes);
	}
	memalloc_mask own = p->pools[pool].nodes & memalloc_with_memory(p->mem);
	if (r->info.flags & RP_CTR_CLAIM && own) {
		ret->priority = MEMALLOC_PRIO_RESERVATION;
		ret->nodes = own;
		ret->types = memalloc_types(p->mem, own);
	}
	return ret->nodes != 0;
}

bool memory_has_huge(const struct rp_instance *inst, const struct request *r, memalloc_mask nodes,
		     char *why)
{
	struct rp_idset ids;
	if (!r->huge)
		return true;
	memalloc_ids(inst->plan->mem, nodes, &ids);
	return inst->h.cache->hugepages(inst->h.ctx, 0, r->info.ctr, rp_ids_of(&ids), why,
					PLACE_WHY_MAX) >= 0;
}

static bool has_types(const struct pool *pool, uint32_t types)
{
	for (uint32_t t = 0; t < N_MEM_TYPES; t++)
		if (types & UINT32_C(1) << t && !pool->mem[t])
			return false;
	return true;
}

static const struct memory_group *memory_of(const struct rp_plan *p, const struct request *r,
					    uint32_t pool)
{
	struct memory_group *g = &p->groups[r->mem_preserve ? 0 : p->pools[pool].mem_group];
	struct memalloc_request req;
	struct memalloc_offer offer;
	if (g->known)
		return g;
	*g = (struct memory_group){.known = true,
				   .complete = has_types(&p->pools[pool], r->mem_types)};
	g->capacity = memalloc_capacity(p->mem, tree_memory(&p->pools[pool], r->mem_types));
	if (!memory_request(p, r, pool, &req) || memalloc_offer(p->mem, &req, &offer))
		return g;
	g->offers = true;
	g->n_nodes = (uint32_t)__builtin_popcountll(offer.zone);
	g->exact = memalloc_types(p->mem, offer.zone) == req.types;
	return g;
}

/* ---- score of a pool ------------------------------------------------------------------------- */

/* Returns true if the pool has CPUs that the container's CPU class prefers. */
static bool is_preferred(struct rp_instance *inst, const struct request *r, uint32_t id,
			 bool sliced)
{
	const struct rp_plan *p = inst->plan;
	struct rp_idset from;
	uint32_t n;
	if (!cpuclass_pct(inst->classes))
		return false;
	const uint64_t *slice = ledger_sliceable(p, id, &n);
	rp_idset_copy(&from, plan_ids(p, sliced ? slice : p->pools[id].isolated));
	return classes_narrow(inst, r, &from);
}

void score_pool(struct rp_instance *inst, const struct request *r, uint32_t id, struct score *ret)
{
	const struct rp_plan *p = inst->plan;
	const struct pool *pool = &p->pools[id];
	int64_t part = r->fraction || r->full ? r->fraction : 1;
	*ret = (struct score){.pool = id, .memory = memory_of(p, r, id)};
	ret->isolated = r->isolate ? (int64_t)pool->n_isolated - r->full : 0;
	bool sliced = r->full && !(r->isolate && ret->isolated >= 0);
	ret->shared = p->room[id] - (sliced ? 1000 * r->full : 0) - part;
	char why[PLACE_WHY_MAX];
	ret->unusable = !ret->memory->offers ||
			(r->pod_pool != NO_POOL && !pool_is_within(p, id, r->pod_pool)) ||
			!memory_has_huge(inst, r, tree_memory(pool, r->mem_types), why) ||
			(r->zero && !pool->n_sharable) || (sliced && ledger_drains(p, id, r->full));
	if (sliced) {
		/*
		 * Promised fractions of CPUs can leave fewer whole CPUs than the free amount
		 * suggests.
		 */
		uint32_t n;
		(void)ledger_sliceable(p, id, &n);
		int64_t whole = 1000 * ((int64_t)n - r->full);
		if (whole < 0 && whole < ret->shared)
			ret->shared = whole;
	}
	if (r->hints)
		hints_score(p, id, r->hints, &ret->hint_all, &ret->hint_some);
	if (r->full && r->class != CPUCLASS_NONE)
		ret->preferred = is_preferred(inst, r, id, sliced);
}

/*
 * Returns true if the pool fits the request. Ordinary CPUs replace missing isolated CPUs unless
 * isolated CPUs are required.
 */
bool score_sufficient(const struct request *r, const struct score *s)
{
	return !s->unusable && s->shared >= 0 && (s->isolated >= 0 || !r->strict_isolated);
}

/* ---- scores of a pool: of two pools the one with the higher score is better ------------------ */

/* Defines a score by one expression of the comparison c and the pool's score s. */
#define SCORE(name, ...)                                                                           \
	static double name(const struct compare *c, const struct score *s)                         \
	{                                                                                          \
		return __VA_ARGS__;                                                                \
	}

static bool is_hinted(const struct score *s)
{
	return s->hint_all != 0 || s->hint_some != 0;
}

static double score_sufficiency(const struct compare *c, const struct score *s)
{
	int what = score_sufficient(c->r, s) ? 8 : s->unusable ? 0 : 4;
	/* Missing shared CPUs weigh more than missing isolated CPUs. */
	return what + 2 * (s->shared >= 0) + (s->isolated >= 0);
}

SCORE(score_affinity, c->p->affinity[s->pool])
SCORE(score_depth, c->p->pools[s->pool].depth)
SCORE(score_number, -(double)s->pool)
SCORE(score_all_hints, s->hint_all)
SCORE(score_some_hints, s->hint_all == 0 ? s->hint_some : 0)
SCORE(score_hinted_depth, is_hinted(s) ? score_depth(c, s) : 0)
SCORE(score_hinted_number, is_hinted(s) ? score_number(c, s) : 0)
SCORE(score_types, s->memory->exact)

static double score_memory_burst(const struct compare *c, const struct score *s)
{
	int64_t limit = c->r->info.mem_limit;
	return limit ? (double)(s->memory->capacity >= limit) : (double)s->memory->capacity;
}

/*
 * Rates how far the container can burst towards its limit. If no pool has that much free CPU, the
 * pool with the most is best.
 */
static double score_limit(const struct compare *c, const struct score *s)
{
	int64_t room = c->p->room[s->pool], limit = c->r->info.cpu_limit;
	if (c->p->settings.parity)
		return room >= limit;
	return (double)(room < limit ? room : limit);
}

static double score_level(const struct compare *c, const struct score *s)
{
	uint32_t target = c->r->level, level = c->p->pools[s->pool].level;
	return level == target ? 2 : level > target;
}

static double score_level_room(const struct compare *c, const struct score *s)
{
	bool there = c->p->pools[s->pool].level == c->r->level;
	return there ? (double)c->p->room[s->pool] : 0;
}

SCORE(score_memory_nodes, s->memory->offers ? -(double)s->memory->n_nodes : -(double)UINT32_MAX)
SCORE(score_has_types, s->memory->complete)
SCORE(score_class, s->preferred)

/* Returns 1 if the pool has enough CPUs of the requested priority, otherwise 0. */
static double score_priority(const struct compare *c, const struct score *s)
{
	int64_t part = c->r->fraction || c->r->full ? c->r->fraction : 1;
	return 1000 * (int64_t)rp_ids_count_and(rp_ids_of(&c->p->prio_cpus[c->r->prio]),
						plan_ids(c->p, c->p->pools[s->pool].sharable)) >=
	       1000 * c->r->full + part;
}

SCORE(score_isolated, s->isolated > 0 ? (double)s->isolated : 0)
SCORE(score_isolated_number, s->isolated > 0 ? score_number(c, s) : 0)
SCORE(score_exclusive_room, s->shared > 0 ? (double)s->shared : 0)
SCORE(score_exclusive_number, s->shared > 0 ? score_number(c, s) : 0)
/* Prefers the pool with the least free CPU, so that other pools keep large free areas. */
SCORE(score_tightness, -(double)s->shared)

/* Prefers the pool whose parent has the least free CPU. */
static double score_tightness_above(const struct compare *c, const struct score *s)
{
	uint32_t parent = c->p->pools[s->pool].parent;
	return parent == NO_POOL ? 0 : -(double)c->p->room[parent];
}

SCORE(score_company, -(double)c->p->pools[s->pool].n_grants[GRANT_NORMAL])
SCORE(score_room, (double)s->shared)
/* ---- the vector of scores -------------------------------------------------------------------- */

enum trait {
	ANY = 0,
	WEIGHTED = 0x1,
	HINTED = 0x2,
	MAY_GROW = 0x4,
	LIMITED = 0x8,
	UNLIMITED = 0x10, /* Burstable without CPU limit; LIMITED: Burstable with limit */
	TYPED = 0x20,
	CHOOSY = 0x40, /* high or low CPU priority requested */
	NORMAL = 0x80,
	ISOLATED = 0x100,
	EXCLUSIVE = 0x200,
	BALANCED = 0x400, /* exclusive CPUs with balanced packing */
	TIGHT = 0x800, /* exclusive CPUs with tight packing */
};

static uint32_t traits_of(const struct rp_plan *p, const struct request *r)
{
	enum trait packing = p->settings.tight ? TIGHT : BALANCED;
	bool burstable = r->info.qos == RP_QOS_BURSTABLE && r->type == GRANT_NORMAL;
	bool choosy = r->prio == CPUALLOC_LOW || r->prio == CPUALLOC_HIGH;
	return (r->weighted ? WEIGHTED : 0) | (r->hints ? HINTED : 0) |
	       (r->mem_size != r->info.mem_limit ? MAY_GROW : 0) |
	       (burstable ? r->info.cpu_limit > 0 ? LIMITED : UNLIMITED : 0) |
	       (!r->mem_preserve && r->mem_types ? TYPED : 0) | (choosy ? CHOOSY : 0) |
	       (r->prio == CPUALLOC_NORMAL ? NORMAL : 0) | (r->isolate ? ISOLATED : 0) |
	       (r->full > 0 ? EXCLUSIVE | packing : 0);
}

/* Kind of a score: which property of a pool it rates. */
enum kind {
	BETTER = 1, /* suitability of the pool for the container */
	BY_LOAD = 2, /* free capacity, which depends on other containers */
	BY_NUMBER = 3,
};

#define LIKED_PRIORITY "CPUs of the wanted priority"
#define MORE_SHARED "more shared CPUs left"

static const struct {
	double (*score)(const struct compare *c, const struct score *s);
	enum trait of; /* trait of the requests that the score applies to */
	enum kind kind;
	const char *name;
} scores[] = {
	{score_sufficiency, ANY, BETTER, "enough CPU and memory"},
	{score_affinity, WEIGHTED, BETTER, AFFINITY},
	{score_all_hints, HINTED, BETTER, "topology hints"},
	{score_some_hints, HINTED, BETTER, "topology hints"},
	{score_hinted_depth, HINTED, BETTER, "topology hints, deeper in the tree"},
	{score_hinted_number, HINTED, BY_NUMBER, "topology hints, lower pool number"},
	{score_types, ANY, BETTER, "memory of the requested types"},
	{score_memory_burst, MAY_GROW, BETTER, "memory to grow"},
	{score_limit, LIMITED, BETTER, "CPU to burst up to the limit"},
	{score_level, UNLIMITED, BETTER, "the level for unlimited Burstable containers"},
	{score_level_room, UNLIMITED, BY_LOAD, "more room at that level"},
	{score_number, UNLIMITED, BY_NUMBER, "lower pool number"},
	{score_memory_nodes, ANY, BETTER, "fewer memory nodes"},
	{score_has_types, TYPED, BETTER, "all memory types near"},
	{score_class, EXCLUSIVE, BETTER, "CPUs that suit its CPU class"},
	{score_priority, CHOOSY, BETTER, LIKED_PRIORITY},
	{score_depth, ANY, BETTER, "deeper in the tree"},
	{score_isolated, ISOLATED, BY_LOAD, "more isolated CPUs left"},
	{score_isolated_number, ISOLATED, BY_NUMBER, "lower pool number"},
	{score_priority, NORMAL, BETTER, LIKED_PRIORITY},
	{score_exclusive_room, BALANCED, BY_LOAD, MORE_SHARED},
	{score_exclusive_number, BALANCED, BY_NUMBER, "lower pool number"},
	{score_tightness, TIGHT, BY_LOAD, "larger holes left in other pools"},
	{score_tightness_above, TIGHT, BY_LOAD, "larger holes left in other pools"},
	{score_company, ANY, BY_LOAD, "fewer containers"},
	{score_room, ANY, BY_LOAD, MORE_SHARED},
	{score_number, ANY, BY_NUMBER, "lower pool number"},
};
#define N_SCORES (sizeof scores / sizeof scores[0])
_Static_assert(N_SCORES <= SCORES_MAX, "more scores than a comparison has room for");

static struct compare compare_for(const struct rp_plan *p, const struct request *r)
{
	struct compare c = {.p = p, .r = r};
	uint32_t traits = traits_of(p, r);
	for (uint32_t i = 0; i < N_SCORES; i++)
		if (scores[i].of == ANY || scores[i].of & traits)
			c.rows[c.n_rows++] = (uint8_t)i;
	return c;
}

/* Compares two pools. Returns the kind of the first score that differs, negative if the second pool
 * is better. */
static int place_score_compare(struct compare *c, const struct score *a, const struct score *b)
{
	for (uint32_t k = 0; k < c->n_rows; k++) {
		uint32_t i = c->rows[k];
		double x = scores[i].score(c, a), y = scores[i].score(c, b);
		if (x == y)
			continue;
		c->rule = scores[i].name;
		c->by_best = x;
		c->by_second = y;
		return x > y ? (int)scores[i].kind : -(int)scores[i].kind;
	}
	return 0; /* equal in all scores: the same pool */
}

/* ---- all pools ------------------------------------------------------------------------------- */

void score_begin(struct rp_plan *p, const struct request *r)
{
	for (uint32_t i = 0; i < p->n_mem_groups; i++)
		p->groups[i].known = false;
	ledger_rooms(p);
	if (r->full)
		ledger_slices(p);
}

void score_pools(struct rp_instance *inst, const struct request *r, struct scoring *ret)
{
	struct rp_plan *p = inst->plan;
	struct compare c = compare_for(p, r);
	score_begin(p, r);
	score_pool(inst, r, 0, &ret->best);
	ret->second.pool = NO_POOL;
	ret->rule = "";
	for (uint32_t i = 1; i < p->n_pools; i++) {
		struct score s;
		score_pool(inst, r, i, &s);
		if (place_score_compare(&c, &s, &ret->best) > 0) {
			ret->second = ret->best;
			ret->best = s;
		} else if (ret->second.pool == NO_POOL ||
			   place_score_compare(&c, &s, &ret->second) > 0) {
			ret->second = s;
		}
	}
	if (ret->second.pool != NO_POOL) {
		(void)place_score_compare(&c, &ret->best, &ret->second);
		ret->rule = c.rule;
		ret->by_best = c.by_best;
		ret->by_second = c.by_second;
	}
}

/* ---- moving ---------------------------------------------------------------------------------- */

bool score_worth_moving(struct rp_instance *inst, const struct request *r, const struct score *to,
			const struct score *from, bool spread, const char **ret_rule)
{
	struct compare c = compare_for(inst->plan, r);
	int by = place_score_compare(&c, to, from);
	*ret_rule = c.rule;
	/* Two containers with opposite affinities to each other would move forever. */
	if (r->averse && strcmp(c.rule, AFFINITY) == 0)
		return false;
	return by == BETTER || (spread && by == BY_LOAD && to->shared > from->shared);
}
