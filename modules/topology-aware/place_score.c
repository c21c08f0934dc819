/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pool is best. Two pools are compared by rules, one after the other; the first that tells
 * them apart decides. The best one is found in one walk: the rules are no order that could be
 * sorted by, and need not be.
 */
#include "modules/topology-aware/stage.h"
#include "modules/topology-aware/topology-aware.h"

#define N_RULES 17u
#define AFFINITY "affinity to other containers"

struct compare {
	const struct rp_plan *p;
	const struct request *r;
	uint32_t traits; /* of the request: the rules for these apply */
	const char *rule; /* that decided */
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
	return ret->nodes != 0;
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

/* ---- one pool -------------------------------------------------------------------------------- */

/* Are there CPUs for it where its class likes them? */
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
	ret->unusable = !ret->memory->offers || (r->zero && !pool->n_sharable) ||
			(sliced && ledger_drains(p, id, r->full));
	if (sliced) {
		/* Amounts are no whole CPUs: promises of parts can leave less than it seems. */
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

/* Without isolated CPUs ordinary ones do, where nothing else is demanded. */
bool score_sufficient(const struct request *r, const struct score *s)
{
	return !s->unusable && s->shared >= 0 && (s->isolated >= 0 || !r->strict_isolated);
}

/*
 * ---- two pools; positive: the first wins, negative: the second, 0: as good as each other
 * --------------------------------------
 *
 * How much tells by what: 1: it is the better place, 2: others leave more there, 3: by nothing but
 * its number.
 */
#define BY_LOAD 2
#define BY_ID 3

static int by_number(int64_t a, int64_t b)
{
	return a > b ? 1 : a < b ? -1 : 0;
}

static int by_load(int64_t a, int64_t b)
{
	return BY_LOAD * by_number(a, b);
}

static int by_bool(bool a, bool b)
{
	return (int)a - (int)b;
}

static int by_id(const struct score *a, const struct score *b)
{
	return a->pool < b->pool ? BY_ID : -BY_ID;
}

/* By what is left, where anything is. */
static int by_rest(const struct score *a, const struct score *b, int64_t in_a, int64_t in_b)
{
	int r = by_load(in_a, in_b);
	return in_a <= 0 && in_b <= 0 ? 0 : r ? r : by_id(a, b);
}

static bool worse(const struct score *a, const struct score *b)
{
	return (a->isolated < 0 && b->isolated >= 0) || (a->shared < 0 && b->shared >= 0);
}

static int rule_sufficient(const struct compare *c, const struct score *a, const struct score *b)
{
	int r = by_bool(score_sufficient(c->r, a), score_sufficient(c->r, b));
	if (!r)
		r = by_bool(b->unusable, a->unusable);
	return r ? r : worse(b, a) ? 1 : worse(a, b) ? -1 : 0;
}

static int rule_affinity(const struct compare *c, const struct score *a, const struct score *b)
{
	double x = c->p->affinity[a->pool], y = c->p->affinity[b->pool];
	return x > y ? 1 : x < y ? -1 : 0;
}

static int rule_depth(const struct compare *c, const struct score *a, const struct score *b)
{
	return by_number(c->p->pools[a->pool].depth, c->p->pools[b->pool].depth);
}

static int rule_hints(const struct compare *c, const struct score *a, const struct score *b)
{
	if (a->hint_all != b->hint_all)
		return a->hint_all > b->hint_all ? 1 : -1;
	if (a->hint_all == 0 && a->hint_some != b->hint_some)
		return a->hint_some > b->hint_some ? 1 : -1;
	if (a->hint_all == 0 && a->hint_some == 0)
		return 0;
	int r = rule_depth(c, a, b);
	return r ? r : by_id(a, b);
}

static int rule_types(const struct compare *c, const struct score *a, const struct score *b)
{
	(void)c;
	return by_bool(a->memory->exact, b->memory->exact);
}

static int rule_memory_burst(const struct compare *c, const struct score *a, const struct score *b)
{
	int64_t limit = c->r->info.mem_limit;
	if (!limit)
		return by_number(a->memory->capacity, b->memory->capacity);
	return by_bool(a->memory->capacity >= limit, b->memory->capacity >= limit);
}

static int rule_limit(const struct compare *c, const struct score *a, const struct score *b)
{
	int64_t limit = c->r->info.cpu_limit;
	return by_bool(c->p->room[a->pool] >= limit, c->p->room[b->pool] >= limit);
}

static int rule_level(const struct compare *c, const struct score *a, const struct score *b)
{
	uint32_t target = c->r->level, la = c->p->pools[a->pool].level,
		 lb = c->p->pools[b->pool].level;
	if ((la == target) != (lb == target))
		return la == target ? 1 : -1;
	int r = la == target ? by_load(c->p->room[a->pool], c->p->room[b->pool])
			     : by_bool(la > target, lb > target);
	return r ? r : by_id(a, b);
}

static int rule_tight(const struct compare *c, const struct score *a, const struct score *b)
{
	(void)c;
	if (!a->memory->offers || !b->memory->offers)
		return 0;
	return by_number(b->memory->n_nodes, a->memory->n_nodes);
}

static int rule_has_types(const struct compare *c, const struct score *a, const struct score *b)
{
	(void)c;
	return by_bool(a->memory->complete, b->memory->complete);
}

/* Is there enough of the wanted kind of CPUs? */
static bool has_prio(const struct compare *c, const struct score *s)
{
	int64_t part = c->r->fraction || c->r->full ? c->r->fraction : 1;
	return 1000 * (int64_t)rp_ids_count_and(rp_ids_of(&c->p->prio_cpus[c->r->prio]),
						plan_ids(c->p, c->p->pools[s->pool].sharable)) >=
	       1000 * c->r->full + part;
}

static int rule_class(const struct compare *c, const struct score *a, const struct score *b)
{
	(void)c;
	return by_bool(a->preferred, b->preferred);
}

static int rule_priority(const struct compare *c, const struct score *a, const struct score *b)
{
	return by_bool(has_prio(c, a), has_prio(c, b));
}

static int rule_isolated(const struct compare *c, const struct score *a, const struct score *b)
{
	(void)c;
	return by_rest(a, b, a->isolated, b->isolated);
}

static int rule_exclusive_room(const struct compare *c, const struct score *a,
			       const struct score *b)
{
	(void)c;
	return by_rest(a, b, a->shared, b->shared);
}

static int rule_company(const struct compare *c, const struct score *a, const struct score *b)
{
	return by_load(c->p->pools[b->pool].n_grants[GRANT_NORMAL],
		       c->p->pools[a->pool].n_grants[GRANT_NORMAL]);
}

static int rule_room(const struct compare *c, const struct score *a, const struct score *b)
{
	(void)c;
	return by_load(a->shared, b->shared);
}

/* ---- which rules a request is judged by ------------------------------------------------------ */

enum trait {
	ANY = 0,
	WEIGHTED = 0x1,
	HINTED = 0x2,
	MAY_GROW = 0x4,
	LIMITED = 0x8,
	UNLIMITED = 0x10, /* Burstable, like those with a limit */
	TYPED = 0x20,
	CHOOSY = 0x40, /* high or low priority */
	NORMAL = 0x80,
	ISOLATED = 0x100,
	EXCLUSIVE = 0x200,
};

static uint32_t traits_of(const struct request *r)
{
	bool burstable = r->info.qos == RP_QOS_BURSTABLE && r->type == GRANT_NORMAL;
	bool choosy = r->prio == CPUALLOC_LOW || r->prio == CPUALLOC_HIGH;
	return (r->weighted ? WEIGHTED : 0) | (r->hints ? HINTED : 0) |
	       (r->mem_size != r->info.mem_limit ? MAY_GROW : 0) |
	       (burstable ? r->info.cpu_limit > 0 ? LIMITED : UNLIMITED : 0) |
	       (!r->mem_preserve && r->mem_types ? TYPED : 0) | (choosy ? CHOOSY : 0) |
	       (r->prio == CPUALLOC_NORMAL ? NORMAL : 0) | (r->isolate ? ISOLATED : 0) |
	       (r->full > 0 ? EXCLUSIVE : 0);
}

static const struct {
	int (*compare)(const struct compare *c, const struct score *a, const struct score *b);
	enum trait of; /* whom it applies to */
	const char *name;
} rules[N_RULES] = {
	{rule_sufficient, ANY, "enough CPU and memory"},
	{rule_affinity, WEIGHTED, AFFINITY},
	{rule_hints, HINTED, "topology hints"},
	{rule_types, ANY, "memory of the types asked for"},
	{rule_memory_burst, MAY_GROW, "memory to grow"},
	{rule_limit, LIMITED, "CPU to burst up to the limit"},
	{rule_level, UNLIMITED, "the level for unlimited Burstable containers"},
	{rule_tight, ANY, "fewer memory nodes"},
	{rule_has_types, TYPED, "all memory types near"},
	{rule_class, EXCLUSIVE, "CPUs that suit its CPU class"},
	{rule_priority, CHOOSY, "CPUs of the wanted priority"},
	{rule_depth, ANY, "deeper in the tree"},
	{rule_isolated, ISOLATED, "more isolated CPUs left"},
	{rule_priority, NORMAL, "CPUs of the wanted priority"},
	{rule_exclusive_room, EXCLUSIVE, "more shared CPUs left"},
	{rule_company, ANY, "fewer containers"},
	{rule_room, ANY, "more shared CPUs left"},
};

static int compare(struct compare *c, const struct score *a, const struct score *b)
{
	for (uint32_t i = 0; i < N_RULES; i++) {
		bool applies = rules[i].of == ANY || rules[i].of & c->traits;
		int r = applies ? rules[i].compare(c, a, b) : 0;
		if (!r)
			continue;
		c->rule = rules[i].name;
		return r;
	}
	c->rule = "lower in number";
	return by_id(a, b);
}

/* ---- all pools ------------------------------------------------------------------------------- */

void score_pools(struct rp_instance *inst, const struct request *r, struct scoring *ret)
{
	struct rp_plan *p = inst->plan;
	struct compare c = {.p = p, .r = r, .traits = traits_of(r)};
	for (uint32_t i = 0; i < p->n_mem_groups; i++)
		p->groups[i].known = false;
	ledger_rooms(p);
	if (r->full)
		ledger_slices(p);
	score_pool(inst, r, 0, &ret->best);
	ret->second.pool = NO_POOL;
	ret->rule = "";
	for (uint32_t i = 1; i < p->n_pools; i++) {
		struct score s;
		score_pool(inst, r, i, &s);
		if (compare(&c, &s, &ret->best) > 0) {
			ret->second = ret->best;
			ret->best = s;
		} else if (ret->second.pool == NO_POOL || compare(&c, &s, &ret->second) > 0) {
			ret->second = s;
		}
	}
	if (ret->second.pool != NO_POOL) {
		(void)compare(&c, &ret->best, &ret->second);
		ret->rule = c.rule;
	}
}

/* ---- moving ---------------------------------------------------------------------------------- */

bool score_worth_moving(struct rp_instance *inst, const struct request *r, const struct score *to,
			const struct score *from, bool spread, const char **ret_rule)
{
	struct compare c = {.p = inst->plan, .r = r, .traits = traits_of(r)};
	int by = compare(&c, to, from);
	*ret_rule = c.rule;
	/* Two that each want something else of the other would follow and flee each other for
	 * ever. */
	if (r->averse && strcmp(c.rule, AFFINITY) == 0)
		return false;
	return by == 1 || (spread && by == BY_LOAD && to->shared > from->shared);
}
