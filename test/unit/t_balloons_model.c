/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which balloon a container joins and which CPUs balloons get or give up: a plain, slow reading of
 * the rules beside the real module, on random machines, types and loads. The model keeps balloons
 * of its own; after each step both have to be the same. Of several CPUs that would do the common
 * allocator takes some, which has a model of its own (t_cpualloc_model).
 */
#include "test/unit/t_balloons.h"
#include "test/unit/t_seed.h"

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/balloons/stage.h"

#define N_MACHINES 2000u
#define N_STEPS 150u
#define N_TYPES 8u
#define N_BALLOONS 64u
#define N_HELD 24u
#define N_HINTS 16u
#define N_DEVICES 3u
#define N_LOADS 2u
#define DEPTHS 8u

struct held {
	rp_ctr ctr;
	unsigned pod;
	int64_t request;
};

struct bubble {
	unsigned type;
	uint64_t cpus;
	struct held held[N_HELD];
	unsigned n_held;
};

/* Topology hints of a type: CPUs to be close to and CPUs to be far from. */
struct likes {
	uint64_t close[N_HINTS], far[N_HINTS];
	bool far_isolated[N_HINTS];
	unsigned n_close, n_far;
	unsigned loads; /* the number of its load class and 1; 0: it has none */
	bool overloads;
};

/* Order of the CPUs. */
struct keys {
	uint32_t package, die, node, class, l2, l2_id, core;
};

struct model {
	struct fake_host *f;
	struct seed *seed;
	struct cpualloc *alloc;
	uint64_t online, isolated, free;
	struct keys keys[64];
	uint64_t sets
		[2][DEPTHS]
		[64]; /* plain and spread tree: by depth, the CPUs of the node that a CPU is in */
	unsigned n_types;
	const struct type *types[N_TYPES];
	struct likes likes[N_TYPES];
	unsigned load_level[N_LOADS]; /* depth in the plain tree */
	bool overloads[N_LOADS];
	struct bubble balloons[N_BALLOONS];
	unsigned n;
	char config[4096];
};

static unsigned count(uint64_t set)
{
	return (unsigned)__builtin_popcountll(set);
}

static uint64_t bit(unsigned i)
{
	return UINT64_C(1) << i;
}

static uint64_t word(struct rp_ids ids)
{
	return rp_ids_word(ids, 0);
}

static uint64_t lowest(uint64_t set)
{
	return set & (~set + 1);
}

static const char *list(uint64_t set, char *text, size_t size)
{
	struct rp_ids ids = {&set, 1, 0};
	(void)rp_ids_format(ids, text, (uint32_t)size);
	return text;
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Returns true if both CPUs are in the same node of this depth. */
static bool together(const struct model *m, bool spread, unsigned depth, unsigned a, unsigned b)
{
	const struct keys *x = &m->keys[a], *y = &m->keys[b];
	const bool same[DEPTHS] = {true,
				   x->package == y->package,
				   x->die == y->die,
				   x->node == y->node,
				   !spread || x->class == y->class,
				   x->l2 == y->l2,
				   x->core == y->core,
				   a == b};
	for (unsigned i = 0; i <= depth; i++)
		if (!same[i])
			return false;
	return true;
}

/* The plain tree has no classes: its depth 4 is as depth 3 and belongs to no node. */
static bool has_depth(bool spread, unsigned depth)
{
	return spread || depth != 4;
}

static void build_trees(struct model *m)
{
	for (unsigned spread = 0; spread < 2; spread++)
		for (unsigned depth = 0; depth < DEPTHS; depth++)
			for (unsigned a = 0; a < 64; a++)
				for (unsigned b = 0; b < 64; b++)
					if (m->online & bit(a) && m->online & bit(b) &&
					    together(m, spread, depth, a, b))
						m->sets[spread][depth][a] |= bit(b);
}

struct want {
	bool spread, grow, balance;
	unsigned n;
	uint64_t current, free;
};

/* -1: a comes first. */
static int before(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

/* By number; the same core in several classes is in their order. */
static int natural(const struct model *m, const struct want *w, unsigned depth, unsigned a,
		   unsigned b)
{
	const struct keys *x = &m->keys[a], *y = &m->keys[b];
	int r = before(x->package, y->package);
	r = r ? r : before(x->die, y->die);
	r = r ? r : before(x->node, y->node);
	r = r || depth != 5 ? r : before(x->l2_id, y->l2_id);
	r = r || depth < 6 ? r : before(x->core, y->core);
	r = r || !w->spread ? r : before(x->class, y->class);
	return r ? r : before(a, b);
}

/* Returns true if a's node of this depth is better than the best node so far. */
static bool is_better(const struct model *m, const struct want *w, unsigned depth, unsigned a,
		      unsigned best_depth, unsigned best)
{
	if (depth != best_depth)
		return depth > best_depth;
	const uint64_t(*sets)[64] = m->sets[w->spread];
	for (unsigned k = 0; k <= depth; k++) {
		unsigned x = count(w->current & sets[k][a]), y = count(w->current & sets[k][best]);
		if (x != y)
			return w->grow ? x > y : x < y;
	}
	for (unsigned k = 0; k <= depth; k++) {
		unsigned x = count(w->free & sets[k][a]), y = count(w->free & sets[k][best]);
		if (x != y)
			return w->grow && w->balance ? x > y : x < y;
	}
	int r = natural(m, w, depth, a, best);
	return w->grow ? r < 0 : r > 0;
}

/* The CPUs of the best node of the tree; 0: there is none. */
static uint64_t best_node(const struct model *m, const struct want *w)
{
	uint64_t from = w->grow ? w->free : w->current, found = 0;
	unsigned best = 0, best_depth = 0;
	for (unsigned depth = 0; depth < DEPTHS; depth++) {
		for (unsigned cpu = 0; cpu < 64 && has_depth(w->spread, depth); cpu++) {
			uint64_t node = m->sets[w->spread][depth][cpu];
			if (lowest(node) != bit(cpu) || count(from & node) < w->n)
				continue;
			if (found && !is_better(m, w, depth, cpu, best_depth, best))
				continue;
			found = from & node;
			best = cpu;
			best_depth = depth;
		}
	}
	return found;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Chooses one CPU at a time where the size of the step changes the result. */
static uint64_t by_steps(const struct model *m, struct want w)
{
	uint64_t taken = 0;
	unsigned n = w.n;
	if (w.grow) {
		taken = best_node(m, &w);
		if (!w.spread || count(taken) == n)
			return taken;
		taken = 0;
	}
	w.n = 1;
	for (unsigned i = 0; i < n; i++) {
		uint64_t one = best_node(m, &w);
		assert_int_equal(count(one), 1);
		taken |= one;
		w.current = w.grow ? w.current | one : w.current & ~one;
		w.free = w.grow ? w.free & ~one : w.free | one;
	}
	return taken;
}

static uint64_t by_hints_growing(const struct model *m, const struct likes *l, struct want w)
{
	uint64_t all = w.free;
	for (unsigned i = 0; i < l->n_close + l->n_far; i++) {
		uint64_t near = i < l->n_close ? l->close[i] : all & ~l->far[i - l->n_close];
		if (count(w.free & near) >= w.n)
			w.free &= near;
	}
	return by_steps(m, w);
}

/* How much hints would miss a CPU: the first one counts more than all that come after it. */
static uint64_t weight(const struct likes *l, unsigned cpu)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < l->n_close; i++)
		sum = 2 * sum + !!(l->close[i] & bit(cpu));
	/* Isolated CPUs are released like other CPUs. */
	for (unsigned i = 0; i < l->n_far; i++)
		sum = l->far_isolated[i] ? sum : 2 * sum + !(l->far[i] & bit(cpu));
	return sum;
}

static uint64_t by_hints_shrinking(const struct model *m, const struct likes *l, struct want w)
{
	uint64_t sure = 0, maybe = 0, limit = 0;
	/* The weight of the n-th CPU in the order of weights. */
	for (unsigned cpu = 0; cpu < 64; cpu++) {
		unsigned lighter = 0, as_light = 0;
		for (unsigned o = 0; o < 64; o++) {
			lighter += w.current & bit(o) && weight(l, o) < weight(l, cpu);
			as_light += w.current & bit(o) && weight(l, o) == weight(l, cpu);
		}
		if (w.current & bit(cpu) && lighter < w.n && lighter + as_light >= w.n)
			limit = weight(l, cpu);
	}
	for (unsigned cpu = 0; cpu < 64; cpu++) {
		if (w.current & bit(cpu) && weight(l, cpu) < limit)
			sure |= bit(cpu);
		if (w.current & bit(cpu) && weight(l, cpu) == limit)
			maybe |= bit(cpu);
	}
	w.n -= count(sure);
	w.current = maybe;
	return sure | by_steps(m, w);
}

static uint64_t surroundings(const struct model *m, unsigned depth, uint64_t cpus)
{
	uint64_t set = 0;
	for (unsigned cpu = 0; cpu < 64; cpu++)
		if (cpus & bit(cpu))
			set |= m->sets[0][depth][cpu];
	return set;
}

/* Returns the current hints of a type: loads are at the CPUs of their balloons. */
static struct likes likes_of(const struct model *m, unsigned type, uint64_t own)
{
	struct likes l = m->likes[type];
	uint64_t cpus = own;
	if (!l.loads)
		return l;
	for (unsigned i = 0; i < m->n; i++)
		if (m->likes[m->balloons[i].type].loads == l.loads)
			cpus |= m->balloons[i].cpus;
	l.far_isolated[l.n_far] = false;
	l.far[l.n_far++] = surroundings(m, m->load_level[l.loads - 1], cpus);
	return l;
}

static uint64_t by_load(const struct model *m, unsigned type, struct want w)
{
	struct likes l = likes_of(m, type, w.current);
	if (!w.grow)
		return by_hints_shrinking(m, &l, w);
	uint64_t from = by_hints_growing(m, &l, w), taken = 0;
	if (!l.overloads)
		return from;
	for (unsigned n = w.n; from; w.n = 1) {
		uint64_t one = lowest(from);
		taken |= one;
		if (count(taken) == n)
			break;
		w.current |= one;
		w.free &= ~one;
		w.n = 1;
		l = likes_of(m, type, w.current);
		from = by_hints_growing(m, &l, w);
	}
	return taken;
}

/* ---- balloons -------------------------------------------------------------------------------- */

static bool grow(struct model *m, struct bubble *b, unsigned n)
{
	const struct type *t = m->types[b->type];
	uint64_t from = m->free;
	struct want w = {t->spread_cores, true, t->balancing, n, b->cpus, m->free};
	struct rp_idset set = {.nw = 1}, got;
	if (count(m->free) < n)
		return false;
	if (count(m->free) > n)
		from = by_load(m, b->type, w);
	assert_true(count(from) >= n);
	rp_idset_clear(&set);
	for (unsigned cpu = 0; cpu < 64; cpu++)
		if (from & bit(cpu))
			rp_idset_add(&set, cpu);
	assert_int_equal(cpualloc_allocate(m->alloc, &set, n, t->priority, CPUALLOC_DEFAULT, &got),
			 0);
	b->cpus |= word(rp_ids_of(&got));
	m->free &= ~word(rp_ids_of(&got));
	return true;
}

static void shrink(struct model *m, struct bubble *b, unsigned n)
{
	const struct type *t = m->types[b->type];
	uint64_t gone = b->cpus;
	struct want w = {t->spread_cores, false, t->balancing, n, b->cpus, m->free};
	if (count(b->cpus) > n)
		gone = by_load(m, b->type, w);
	assert_int_equal(count(gone), n);
	b->cpus &= ~gone;
	m->free |= gone;
}

static bool resize(struct model *m, struct bubble *b, int64_t mcpu)
{
	const struct type *t = m->types[b->type];
	int64_t n = (mcpu + 999) / 1000, has = count(b->cpus);
	if (t->max_cpus && n > t->max_cpus)
		n = t->max_cpus;
	if (n < t->min_cpus)
		n = t->min_cpus;
	if (n < has)
		shrink(m, b, (unsigned)(has - n));
	return n <= has || grow(m, b, (unsigned)(n - has));
}

static int64_t requests(const struct bubble *b)
{
	int64_t sum = 0;
	for (unsigned i = 0; i < b->n_held; i++)
		sum += b->held[i].request;
	return sum;
}

static int64_t avail(const struct bubble *b)
{
	return 1000 * (int64_t)count(b->cpus);
}

static int64_t max_avail(const struct model *m, const struct bubble *b)
{
	int64_t max = m->types[b->type]->max_cpus, all = count(b->cpus) + count(m->free);
	return 1000 * (max && max < all ? max : all);
}

static unsigned count_type(const struct model *m, unsigned type)
{
	unsigned n = 0;
	for (unsigned i = 0; i < m->n; i++)
		n += m->balloons[i].type == type;
	return n;
}

static struct bubble *make_one(struct model *m, unsigned type)
{
	const struct type *t = m->types[type];
	struct bubble b = {.type = type};
	if (t->max_balloons && count_type(m, type) >= t->max_balloons)
		return NULL;
	if (!resize(m, &b, 1000 * t->min_cpus))
		return NULL;
	assert_true(m->n < N_BALLOONS);
	m->balloons[m->n] = b;
	return &m->balloons[m->n++];
}

static void drop(struct model *m, struct bubble *b)
{
	unsigned at = (unsigned)(b - m->balloons);
	m->free |= b->cpus;
	m->n--;
	memmove(b, b + 1, (m->n - at) * sizeof *b);
}

/* ---- choosing -------------------------------------------------------------------------------- */

enum how { AS_IT_IS, INFLATED, SAME_POD, EMPTY };

static bool may_join(const struct model *m, const struct bubble *b, enum how how,
		     const struct held *c)
{
	int64_t has = how == AS_IT_IS ? avail(b) : max_avail(m, b);
	bool pod = how != SAME_POD;
	for (unsigned i = 0; i < b->n_held; i++)
		pod |= b->held[i].pod == c->pod;
	/* Even one that asks for nothing needs a CPU to run on. */
	return pod && (how != EMPTY || !b->n_held) && has - requests(b) >= c->request &&
	       (b->cpus || max_avail(m, b) >= 1000);
}

/* Most room, fewest containers, first in the list. */
static struct bubble *best_of(struct model *m, unsigned type, enum how how, const struct held *c)
{
	struct bubble *best = NULL;
	int64_t most = 0;
	for (unsigned i = 0; i < m->n; i++) {
		struct bubble *b = &m->balloons[i];
		int64_t room = (how == INFLATED ? max_avail(m, b) : avail(b)) - requests(b);
		if (b->type != type || !may_join(m, b, how, c))
			continue;
		if (how == EMPTY)
			return b;
		if (best && (room < most || (room == most && b->n_held >= best->n_held)))
			continue;
		best = b;
		most = room;
	}
	return best;
}

static struct bubble *new_one(struct model *m, unsigned type, const struct held *c)
{
	struct bubble *b = best_of(m, type, EMPTY, c);
	if (b || !m->free || count(m->free) < m->types[type]->min_cpus)
		return b;
	b = make_one(m, type);
	if (b && (max_avail(m, b) < c->request || max_avail(m, b) < 1000)) {
		drop(m, b);
		return NULL;
	}
	return b;
}

static struct bubble *choose(struct model *m, unsigned type, const struct held *c)
{
	const struct type *t = m->types[type];
	struct bubble *b = t->spread_pods ? NULL : best_of(m, type, SAME_POD, c);
	if (!b && t->prefer_new)
		b = new_one(m, type, c);
	if (!b)
		b = best_of(m, type, AS_IT_IS, c);
	if (!b)
		b = best_of(m, type, INFLATED, c);
	if (!b && !t->prefer_new)
		b = new_one(m, type, c);
	return b;
}

static int64_t at_least_1(int64_t mcpu)
{
	return mcpu > 1 ? mcpu : 1;
}

static bool join(struct model *m, unsigned type, const struct held *c)
{
	struct bubble *b = choose(m, type, c);
	if (!b)
		return false;
	int64_t want = at_least_1(requests(b) + c->request);
	if (avail(b) < want && (!resize(m, b, want) || avail(b) < want))
		return false;
	b->held[b->n_held++] = *c;
	return true;
}

static void leave(struct model *m, struct bubble *b, unsigned i)
{
	b->held[i] = b->held[--b->n_held];
	if (b->n_held)
		assert_true(resize(m, b, at_least_1(requests(b))));
	else if (count_type(m, b->type) > m->types[b->type]->min_balloons)
		drop(m, b);
	else
		assert_true(resize(m, b, 0));
}

static bool change(struct model *m, struct bubble *b, unsigned i, int64_t request)
{
	bool less = request < b->held[i].request;
	b->held[i].request = request;
	int64_t want = at_least_1(requests(b));
	if (less)
		return resize(m, b, want);
	return avail(b) >= want || (resize(m, b, want) && avail(b) >= want);
}

/* ---- both sides ------------------------------------------------------------------------------ */

static void print(const struct model *m)
{
	const struct state *s = fake_instance(m->f)->state;
	char text[256];
	printf("%s\nCPUs %s\n", m->config, list(m->online, text, sizeof text));
	for (unsigned i = 0; i < m->n_types; i++) {
		const struct likes *l = &m->likes[i];
		printf("%s likes", m->types[i]->name);
		for (unsigned k = 0; k < l->n_close + l->n_far; k++)
			printf("%s %s", k == l->n_close ? ", not" : "",
			       list(k < l->n_close ? l->close[k] : l->far[k - l->n_close], text,
				    sizeof text));
		printf("\n");
	}
	for (unsigned i = 0; i < m->n; i++) {
		const struct bubble *b = &m->balloons[i];
		printf("model: %s %s, %u containers, %lldm\n", m->types[b->type]->name,
		       list(b->cpus, text, sizeof text), b->n_held, (long long)requests(b));
	}
	for (unsigned i = 0; i < s->n; i++) {
		const struct balloon *b = s->list[i];
		printf("module: %s %s, %u containers, %lldm\n", b->type->name,
		       list(word(rp_ids_of(&b->cpus)), text, sizeof text), b->n_members,
		       (long long)b->request);
	}
}

static bool is_same(const struct model *m, const struct bubble *b, const struct balloon *real)
{
	bool same = m->types[b->type] == real->type && b->cpus == word(rp_ids_of(&real->cpus)) &&
		    b->n_held == real->n_members;
	for (unsigned i = 0; same && i < b->n_held; i++) {
		const struct member *found =
			state_member(fake_instance(m->f)->state, b->held[i].ctr);
		same = found && found->balloon == real && found->request == b->held[i].request;
	}
	return same;
}

static void check(const struct model *m, const char *what)
{
	const struct state *s = fake_instance(m->f)->state;
	bool same = s->n == m->n && word(rp_ids_of(&s->free)) == m->free;
	for (unsigned i = 0; same && i < m->n; i++)
		same = is_same(m, &m->balloons[i], s->list[i]);
	if (same)
		return;
	print(m);
	fail_msg("%s", what);
}

/* ---- random machines and types --------------------------------------------------------------- */

static struct fake_machine random_machine(struct seed *s, char *isolated, size_t size)
{
	struct fake_machine k = {
		.packages = 1 + draw(s, 2),
		.dies = 1 + once_in(s, 4),
		.nodes = 1 + draw(s, 2),
		.cores = 1 + draw(s, 4),
		.threads = 1 + draw(s, 2),
		.siblings = once_in(s, 2),
		.l2_cores = draw(s, 3),
	};
	if (k.cores < 4 && once_in(s, 4))
		k.e_cores = 2;
	if (once_in(s, 3)) {
		unsigned first = 2 + draw(s, 6);
		(void)snprintf(isolated, size, "%u-%u", first, first + draw(s, 3));
		k.isolated = isolated;
	}
	return k;
}

static void read_machine(struct model *m)
{
	struct modhost h;
	struct rp_idset set;
	assert_int_equal(modhost_init(&h, fake_rp_host(m->f), MODHOST_POLICY), 0);
	modhost_set(&h, RP_CPUS_ONLINE, &set);
	m->online = m->free = word(rp_ids_of(&set));
	assert_true(set.nw <= 1);
	modhost_set(&h, RP_CPUS_ISOLATED, &set);
	m->isolated = word(rp_ids_of(&set));
	assert_int_equal(cpualloc_new(h.topology, h.ctx, &m->alloc), 0);
	for (unsigned cpu = 0; cpu < 64; cpu++) {
		struct rp_cpu_info info = {.size = sizeof info};
		struct rp_unit_info core = {.size = sizeof core}, l2 = {.size = sizeof l2};
		if (!(m->online & bit(cpu)))
			continue;
		assert_int_equal(h.topology->cpu(h.ctx, cpu, &info), 0);
		assert_int_equal(
			h.topology->unit(h.ctx, RP_LEVEL_CORE, info.unit[RP_LEVEL_CORE], &core), 0);
		assert_int_equal(h.topology->unit(h.ctx, RP_LEVEL_L2, info.unit[RP_LEVEL_L2], &l2),
				 0);
		m->keys[cpu] = (struct keys){
			.package = info.package_id,
			.die = info.die_id,
			.node = info.node_id,
			.class = count(word(core.cpus) & (bit(cpu) - 1)),
			.l2 = rp_ids_first(l2.cpus),
			.l2_id = l2.id,
			.core = rp_ids_first(core.cpus),
		};
	}
	build_trees(m);
}

static const char *yes(struct seed *s, unsigned in)
{
	return once_in(s, in) ? "true" : "false";
}

static void say_limits(struct seed *s, char *text, size_t size)
{
	unsigned min = draw(s, 3), balloons = once_in(s, 3) ? 1 + draw(s, 2) : 0;
	size_t n = (size_t)snprintf(text, size, "minCPUs: %u, minBalloons: %u", min, balloons);
	if (once_in(s, 2))
		n += (size_t)snprintf(text + n, size - n, ", maxCPUs: %u", min + 1 + draw(s, 4));
	if (once_in(s, 3))
		(void)snprintf(text + n, size - n, ", maxBalloons: %u", balloons + 1 + draw(s, 2));
}

/* A type in words, and what it likes: devices by number, N_DEVICES stands for isolated CPUs. */
static void random_type(struct model *m, unsigned i, const uint64_t *near, bool *liked, char *text,
			size_t size)
{
	static const char *const priorities[] = {"high", "normal", "low", "none"};
	struct seed *s = m->seed;
	struct likes *l = &m->likes[i];
	char limits[128], paths[128] = "";
	const char *loads = "";
	say_limits(s, limits, sizeof limits);
	for (unsigned d = 0; d <= N_DEVICES; d++) {
		size_t n = strlen(paths);
		liked[d] = once_in(s, 4);
		if (!liked[d])
			continue;
		l->close[l->n_close++] = near[d];
		if (d < N_DEVICES)
			(void)snprintf(paths + n, sizeof paths - n, "%s/sys/devices/d%u",
				       n ? ", " : "", d);
	}
	if (once_in(s, 3)) {
		l->loads = 1 + draw(s, N_LOADS);
		l->overloads = m->overloads[l->loads - 1];
		loads = l->loads == 1 ? "l0" : "l1";
	}
	(void)snprintf(text, size,
		       "{name: t%u, %s, preferNewBalloons: %s, preferSpreadingPods: %s, "
		       "allocatorTopologyBalancing: %s, preferSpreadOnPhysicalCores: %s, "
		       "allocatorPriority: %s, preferIsolCpus: %s, preferCloseToDevices: [%s], "
		       "loads: [%s]}",
		       i, limits, yes(s, 3), yes(s, 2), yes(s, 2), yes(s, 3),
		       priorities[draw(s, 4)], liked[N_DEVICES] ? "true" : "false", paths, loads);
}

/* Makes each type avoid the hints of other types: isolated CPUs first, then devices in the order of
 * their first mention. */
static void avoid(struct model *m, const uint64_t *near, const bool (*liked)[N_DEVICES + 1])
{
	unsigned order[N_DEVICES + 1] = {N_DEVICES}, n = 1;
	for (unsigned i = 1; i < m->n_types; i++)
		for (unsigned d = 0; d < N_DEVICES; d++) {
			bool known = !liked[i][d];
			for (unsigned k = 0; k < n; k++)
				known |= order[k] == d;
			if (!known)
				order[n++] = d;
		}
	for (unsigned i = 0; i < m->n_types; i++) {
		struct likes *l = &m->likes[i];
		for (unsigned k = 0; k < n; k++) {
			if (liked[i][order[k]])
				continue;
			l->far_isolated[l->n_far] = order[k] == N_DEVICES;
			l->far[l->n_far++] = near[order[k]];
		}
	}
}

static void add_devices(struct model *m, uint64_t *ret_near)
{
	for (unsigned i = 0; i < N_DEVICES; i++) {
		char path[48], cpus[256];
		ret_near[i] = 0;
		for (unsigned cpu = 0; cpu < 64; cpu++)
			if (m->online & bit(cpu) && once_in(m->seed, 3))
				ret_near[i] |= bit(cpu);
		if (!ret_near[i])
			ret_near[i] = lowest(m->online);
		(void)snprintf(path, sizeof path, "/sys/devices/d%u", i);
		fake_device(m->f, path, path, list(ret_near[i], cpus, sizeof cpus), "0");
	}
	ret_near[N_DEVICES] = m->isolated;
}

/* The first balloons are there: types of high priority have made theirs first. */
static bool make_first(struct model *m)
{
	static const enum cpualloc_prio order[] = {CPUALLOC_HIGH, CPUALLOC_NORMAL, CPUALLOC_LOW,
						   CPUALLOC_NONE};
	for (unsigned p = 0; p < 4; p++)
		for (unsigned i = 0; i < m->n_types; i++)
			while (m->types[i]->priority == order[p] &&
			       count_type(m, i) < m->types[i]->min_balloons)
				if (!make_one(m, i))
					return false;
	return true;
}

/* False: the module refuses the configuration, whose first balloons are too many. */
static bool configure(struct model *m)
{
	struct seed *s = m->seed;
	uint64_t near[N_DEVICES + 1];
	bool liked[N_TYPES][N_DEVICES + 1] = {{0}};
	unsigned n_own = 1 + draw(s, 4);
	add_devices(m, near);
	m->overloads[0] = once_in(s, 2);
	m->overloads[1] = once_in(s, 2);
	m->n_types = n_own + 2;
	size_t n = (size_t)snprintf(
		m->config, sizeof m->config,
		"{parity: true, reservedResources: {cpu: 1}, loadClasses: [{name: l0, level: core, "
		"overloadsLevelInBalloon: %s}, {name: l1, level: l2cache, "
		"overloadsLevelInBalloon: %s}], balloonTypes: [",
		m->overloads[0] ? "true" : "false", m->overloads[1] ? "true" : "false");
	for (unsigned i = 1; i <= n_own; i++) {
		char type[640];
		random_type(m, i, near, liked[i], type, sizeof type);
		n += (size_t)snprintf(m->config + n, sizeof m->config - n, "%s%s",
				      i > 1 ? ", " : "", type);
	}
	(void)snprintf(m->config + n, sizeof m->config - n, "]}");
	assert_int_equal(fake_policy_open(m->f, &rp_module_1), 0);
	if (fake_configure(m->f, m->config)) {
		if (!strstr(fake_error(m->f), "cannot create the first"))
			fail_msg("%s\n%s", m->config, fake_error(m->f));
		return false;
	}
	const struct rp_plan *p = fake_instance(m->f)->plan;
	assert_int_equal(p->n_types, m->n_types);
	for (unsigned i = 0; i < m->n_types; i++)
		m->types[i] = &p->types[i];
	assert_ptr_equal(m->types[0], p->reserved_type);
	avoid(m, near, (const bool(*)[N_DEVICES + 1]) liked);
	if (!make_first(m))
		fail_msg("%s\nis too much", m->config);
	check(m, "in the beginning");
	return true;
}

/* ---- random events --------------------------------------------------------------------------- */

static struct held *any(struct model *m, struct bubble **ret_balloon, unsigned n)
{
	for (unsigned i = 0;; i++) {
		struct bubble *b = &m->balloons[i];
		*ret_balloon = b;
		if (n < b->n_held)
			return &b->held[n];
		n -= b->n_held;
	}
}

static int64_t random_request(struct seed *s)
{
	static const int64_t requests[] = {0, 100, 500, 999, 1000, 1500, 2000, 3000, 4500};
	return requests[draw(s, 9)];
}

/* Either both have done it or neither has. */
static void settle(struct model *m, struct model *then, bool fits, int32_t r, const char *what)
{
	if (fits)
		*m = *then;
	free(then);
	if (fits != (r == 0)) {
		print(m);
		fail_msg("%s", what);
	}
	check(m, what);
}

static void enter(struct model *m)
{
	struct seed *s = m->seed;
	unsigned type = draw(s, m->n_types);
	struct held c = {.pod = draw(s, 8), .request = random_request(s)};
	char annotation[128], pod[16], what[128];
	(void)snprintf(annotation, sizeof annotation, BALLOON "%s", m->types[type]->name);
	(void)snprintf(pod, sizeof pod, "p%u", c.pod);
	c.ctr = fake_ctr(
		m->f, &(struct fake_ctr){.name = "c",
					 .pod_name = pod,
					 .qos = c.request ? RP_QOS_BURSTABLE : RP_QOS_BEST_EFFORT,
					 .cpu_request = c.request,
					 .annotations = annotation});
	struct model *then = malloc(sizeof *then);
	assert_non_null(then);
	*then = *m;
	bool fits = join(then, type, &c);
	int32_t r = fake_allocate(m->f, c.ctr);
	(void)snprintf(what, sizeof what, "a container of %s, pod %u, %lldm: %s",
		       m->types[type]->name, c.pod, (long long)c.request,
		       r ? fake_error(m->f) : "placed");
	settle(m, then, fits, r, what);
}

static void change_one(struct model *m, struct bubble *b, struct held *c)
{
	unsigned at = (unsigned)(b - m->balloons), i = (unsigned)(c - b->held);
	int64_t request = random_request(m->seed);
	char what[128];
	if (request == c->request)
		return;
	struct model *then = malloc(sizeof *then);
	assert_non_null(then);
	*then = *m;
	bool fits = change(then, &then->balloons[at], i, request);
	fake_request(m->f, c->ctr, request, 0);
	int32_t r = fake_update(m->f, c->ctr);
	(void)snprintf(what, sizeof what, "%lldm instead of %lldm: %s", (long long)request,
		       (long long)c->request, r ? fake_error(m->f) : "done");
	settle(m, then, fits, r, what);
}

static void step(struct model *m)
{
	struct seed *s = m->seed;
	unsigned n = 0, what = draw(s, 10);
	for (unsigned i = 0; i < m->n; i++)
		n += m->balloons[i].n_held;
	if (n == 0 || (what >= 4 && n < N_HELD)) {
		enter(m);
		return;
	}
	struct bubble *b;
	struct held *c = any(m, &b, draw(s, n));
	if (what == 0) {
		change_one(m, b, c);
		return;
	}
	rp_ctr ctr = c->ctr;
	leave(m, b, (unsigned)(c - b->held));
	assert_int_equal(fake_release(m->f, ctr), 0);
	check(m, "one that leaves");
}

static void run(struct model *m)
{
	char isolated[16];
	struct fake_machine k = random_machine(m->seed, isolated, sizeof isolated);
	m->f = fake_host_new(&k);
	read_machine(m);
	bool taken = configure(m);
	for (unsigned i = 0; taken && i < N_STEPS; i++)
		step(m);
	cpualloc_free(m->alloc);
	fake_host_free(m->f);
}

static void test_balloons(void **state)
{
	struct seed seed = seed_begin();
	struct model *m = malloc(sizeof *m);
	assert_non_null(m);
	for (unsigned i = 0; i < N_MACHINES; i++) {
		*m = (struct model){.seed = &seed, .load_level = {6, 5}};
		run(m);
	}
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_balloons)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
