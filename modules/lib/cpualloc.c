/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a CPU allocation. Each step takes CPUs from the rest, larger units first. Candidates
 * of a step are ordered by struct rank, and a heap returns them as far as they are needed.
 * cpualloc_machine.c builds the allocator.
 */
#include <assert.h>
#include <string.h>

#include "modules/lib/private/cpualloc_impl.h"

const char *const cpualloc_prio_names[] = {
	[CPUALLOC_HIGH] = "high",
	[CPUALLOC_NORMAL] = "normal",
	[CPUALLOC_LOW] = "low",
	[CPUALLOC_NONE] = "none",
	NULL,
};

/* A running allocation: moves n more CPUs from left to got. */
struct job {
	struct cpualloc *a;
	uint64_t *left, *got;
	uint32_t n;
	enum cpualloc_prio prefer;
	uint32_t flags;
};

/* ---- heap ------------------------------------------------------------------------------------ */

static bool comes_before(const struct rank *a, const struct rank *b)
{
	return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

static void heap_sift(struct rank *h, uint32_t n, uint32_t i)
{
	struct rank moving = h[i];
	for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && comes_before(&h[child + 1], &h[child]))
			child++;
		if (!comes_before(&h[child], &moving))
			break;
		h[i] = h[child];
	}
	h[i] = moving;
}

static void heap_make(struct rank *h, uint32_t n)
{
	for (uint32_t i = n / 2; i-- > 0;)
		heap_sift(h, n, i);
}

/* Removes the first element. */
static void heap_pop(struct rank *h, uint32_t *n)
{
	h[0] = h[--*n];
	if (*n)
		heap_sift(h, *n, 0);
}

/* ---- comparison by priority ------------------------------------------------------------------ */

#define FIELD_BITS 14
#define FIELD_MAX ((1u << FIELD_BITS) - 1) /* larger than any number of CPUs */

static uint64_t cpualloc_pack(uint64_t tag, uint64_t x, uint64_t y, uint64_t z)
{
	return ((tag << FIELD_BITS | x) << FIELD_BITS | y) << FIELD_BITS | z;
}

/* Returns a number for the comparison of sets by their CPUs of each priority; smaller is better. n
 * is the number of CPUs wanted; 0: more preferred CPUs are better without limit. */
static uint64_t cpualloc_prio_key(enum cpualloc_prio prefer, uint32_t n, const uint32_t have[3],
				  bool plain)
{
	uint32_t high = have[CPUALLOC_HIGH], normal = have[CPUALLOC_NORMAL],
		 low = have[CPUALLOC_LOW];
	if (prefer == CPUALLOC_NONE)
		return 0;
	/* Enough preferred CPUs: the tightest fit wins, regardless of the other priorities. */
	if (n && have[prefer] >= n)
		return cpualloc_pack(0, have[prefer], 0, 0);
	if (prefer == CPUALLOC_LOW)
		return cpualloc_pack(1, FIELD_MAX - low, high, normal);
	if (prefer == CPUALLOC_NORMAL)
		return cpualloc_pack(1, FIELD_MAX - normal, FIELD_MAX - low, high);
	/* Without high CPUs, normal ones replace them. */
	if (n && !high && !plain && normal >= n)
		return cpualloc_pack(2, normal, 0, 0);
	return cpualloc_pack(n && !high && !plain ? 3 : 1, FIELD_MAX - high, FIELD_MAX - normal,
			     FIELD_MAX - low);
}

static void count_prios(const struct cpualloc *a, const struct span *s, const uint64_t *set,
			uint32_t have[3])
{
	for (uint32_t p = 0; p < 3; p++)
		have[p] = span_count_and(s, set, a->prio[p]);
}

static void rank_packages(struct cpualloc *a, enum cpualloc_prio prefer)
{
	uint32_t n = a->n_packages;
	for (uint32_t p = 0; p < a->n_packages; p++) {
		const struct span *s = &a->packages[p].cpus;
		uint32_t have[3];
		count_prios(a, s, a->online, have);
		a->ranks[p] = (struct rank){cpualloc_prio_key(prefer, 0, have, false), p, p};
		a->package_size[prefer][p] = prefer == CPUALLOC_NONE ? s->size : have[prefer];
	}
	heap_make(a->ranks, n);
	for (uint32_t i = 0; n; i++) {
		a->package_order[prefer][i] = a->ranks[0].index;
		heap_pop(a->ranks, &n);
	}
}

static void rank_cores(struct cpualloc *a, enum cpualloc_prio prefer)
{
	uint32_t n = a->n_cores, n_ranks = 0, *threads = a->rank_threads[prefer];
	for (uint32_t c = 0; c < a->n_cores; c++) {
		uint32_t have[3];
		count_prios(a, &a->cores[c], a->online, have);
		a->ranks[c] = (struct rank){cpualloc_prio_key(prefer, 0, have, false), c, c};
	}
	heap_make(a->ranks, n);
	for (uint64_t key = 0; n; heap_pop(a->ranks, &n)) {
		uint32_t c = a->ranks[0].index;
		if (!n_ranks || a->ranks[0].key != key) {
			key = a->ranks[0].key;
			threads[n_ranks++] = a->cores[c].size;
		}
		a->core_rank[prefer][c] = n_ranks - 1;
		if (a->cores[c].size < threads[n_ranks - 1])
			threads[n_ranks - 1] = a->cores[c].size;
	}
	a->n_ranks[prefer] = n_ranks;
}

void cpualloc_rank(struct cpualloc *a)
{
	for (uint32_t p = 0; p < N_PRIOS; p++) {
		rank_packages(a, (enum cpualloc_prio)p);
		rank_cores(a, (enum cpualloc_prio)p);
	}
}

/* ---- moving CPUs ----------------------------------------------------------------------------- */

/* Takes the CPUs of a span that are in mask and left; returns their number. */
static uint32_t take_span(struct job *j, const struct span *s, const uint64_t *mask)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n_parts; i++) {
		uint32_t w = s->parts[i].word;
		uint64_t bits = s->parts[i].bits & mask[w] & j->left[w];
		j->got[w] |= bits;
		j->left[w] &= ~bits;
		n += count_bits(bits);
	}
	j->n -= n;
	return n;
}

static void take_packages(struct job *j)
{
	const struct cpualloc *a = j->a;
	enum cpualloc_prio wanted = j->flags & CPUALLOC_PLAIN_RULES ? CPUALLOC_NONE : j->prefer;
	const uint64_t *mask = wanted == CPUALLOC_NONE ? a->online : a->prio[wanted];
	for (uint32_t i = 0; i < a->n_packages && j->n; i++) {
		uint32_t p = a->package_order[j->prefer][i];
		const struct span *s = &a->packages[p].cpus;
		if (a->package_size[wanted][p] <= j->n && span_within(s, mask, j->left))
			(void)take_span(j, s, mask);
	}
}

/* Returns true if the unit's kind of cores does not suit: low priority takes efficient cores only,
 * the others performance cores. */
static bool wrong_kind(const struct job *j, const struct unit *u)
{
	return j->a->hybrid && (u->kind == RP_CORE_EFFICIENT) != (j->prefer == CPUALLOC_LOW);
}

/* ---- clusters -------------------------------------------------------------------------------- */

/* Orders clusters: first clusters that suffice alone, the tightest first; then clusters in a die
 * that suffices; then clusters in a package that suffices. */
static uint64_t cluster_key(uint32_t n, uint32_t in_cluster, uint32_t in_die, uint32_t in_package)
{
	if (in_cluster >= n)
		return cpualloc_pack(0, in_cluster, 0, 0);
	if (in_die >= n)
		return cpualloc_pack(1, in_die, 0, 0);
	return in_package >= n ? cpualloc_pack(2, in_package, 0, 0) : cpualloc_pack(3, 0, 0, 0);
}

static void take_clusters(struct job *j)
{
	struct cpualloc *a = j->a;
	struct rank *h = a->ranks;
	uint32_t n = 0;
	memset(a->die_idle, 0, a->n_dies * sizeof *a->die_idle);
	memset(a->package_idle, 0, a->n_packages * sizeof *a->package_idle);
	for (uint32_t c = 0; c < a->n_clusters; c++) {
		const struct unit *u = &a->clusters[c];
		if (wrong_kind(j, u) || !span_within(&u->cpus, a->online, j->left))
			continue;
		a->die_idle[u->die] += u->cpus.size;
		a->package_idle[u->package] += u->cpus.size;
		h[n++] = (struct rank){0, u->tie, c};
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct unit *u = &a->clusters[h[i].index];
		h[i].key = cluster_key(j->n, u->cpus.size, a->die_idle[u->die],
				       a->package_idle[u->package]);
	}
	heap_make(h, n);
	for (; n && j->n && a->clusters[h[0].index].cpus.size <= j->n; heap_pop(h, &n))
		(void)take_span(j, &a->clusters[h[0].index].cpus, a->online);
}

/* ---- cores and threads ----------------------------------------------------------------------- */

static void take_cores_of_rank(struct job *j, uint32_t rank)
{
	const struct cpualloc *a = j->a;
	const uint32_t *core_rank = a->core_rank[j->prefer],
		       least = a->rank_threads[j->prefer][rank];
	for (uint32_t w = 0; w < a->n_words; w++) {
		for (uint64_t bits = a->leaders[w] & j->left[w]; bits; bits &= bits - 1) {
			if (j->n < least)
				return;
			uint32_t c = a->core_of[w * 64 + (uint32_t)__builtin_ctzll(bits)];
			const struct span *s = &a->cores[c];
			if (core_rank[c] == rank && s->size <= j->n &&
			    span_within(s, a->online, j->left))
				(void)take_span(j, s, a->online);
		}
	}
}

static void take_cores(struct job *j)
{
	for (uint32_t rank = 0; rank < j->a->n_ranks[j->prefer]; rank++)
		take_cores_of_rank(j, rank);
}

/* Takes up to n threads of a package that are in mask, from cores with few free threads first. They
 * stay in left. */
static void take_threads_of(struct job *j, const struct span *package, const uint64_t *mask)
{
	const struct cpualloc *a = j->a;
	for (uint32_t n_free = 1; n_free <= a->max_threads && j->n; n_free++) {
		for (uint32_t i = 0; i < package->n_parts && j->n; i++) {
			uint32_t w = package->parts[i].word;
			uint64_t bits = package->parts[i].bits & mask[w] & j->left[w];
			for (; bits && j->n; bits &= bits - 1) {
				uint32_t cpu = w * 64 + (uint32_t)__builtin_ctzll(bits);
				if (span_count(&a->cores[a->core_of[cpu]], j->left) != n_free)
					continue;
				j->got[w] |= bits & -bits;
				j->n--;
			}
		}
	}
}

/* Order of priorities in which single CPUs are taken from a package. */
static const enum cpualloc_prio thread_order[3][N_PRIOS] = {
	[CPUALLOC_HIGH] = {CPUALLOC_HIGH, CPUALLOC_NORMAL, CPUALLOC_LOW, CPUALLOC_NONE},
	[CPUALLOC_NORMAL] = {CPUALLOC_NORMAL, CPUALLOC_LOW, CPUALLOC_NONE, CPUALLOC_HIGH},
	[CPUALLOC_LOW] = {CPUALLOC_LOW, CPUALLOC_NONE, CPUALLOC_NORMAL, CPUALLOC_HIGH},
};

static void take_threads(struct job *j)
{
	struct cpualloc *a = j->a;
	/* not `ranks`: the job of a split group uses it at the same time */
	struct rank *h = a->ranks2;
	uint32_t n = 0;
	for (uint32_t p = 0; p < a->n_packages; p++) {
		const struct span *s = &a->packages[p].cpus;
		uint32_t have[3] = {0, 0, 0};
		if (!span_count(s, j->left))
			continue;
		if (j->prefer != CPUALLOC_NONE)
			count_prios(a, s, j->left, have);
		uint64_t key =
			cpualloc_prio_key(j->prefer, j->n, have, j->flags & CPUALLOC_PLAIN_RULES);
		key |= (uint64_t)(FIELD_MAX - span_count(s, j->got)) << (3 * FIELD_BITS + 2);
		h[n++] = (struct rank){key, p, p};
	}
	heap_make(h, n);
	for (; n && j->n; heap_pop(h, &n)) {
		const struct span *s = &a->packages[h[0].index].cpus;
		if (j->prefer == CPUALLOC_NONE)
			take_threads_of(j, s, a->online);
		for (uint32_t k = 0; k < N_PRIOS && j->prefer != CPUALLOC_NONE; k++)
			take_threads_of(j, s, a->prio[thread_order[j->prefer][k]]);
	}
	for (uint32_t w = 0; w < a->n_words; w++)
		j->left[w] &= ~j->got[w];
}

/* ---- cache groups ---------------------------------------------------------------------------- */

/* A heap of groups that are all idle, or all partly used. */
struct group_list {
	struct rank *h;
	uint32_t n;
};

/* The request: CPUs in whole groups, and the rest. */
struct group_need {
	uint32_t full, part;
};

/* Divides the groups into idle and partly used ones, and counts the free CPUs of both by die and
 * package. */
static void sort_out_groups(struct job *j, struct group_list *idle, struct group_list *used)
{
	struct cpualloc *a = j->a;
	idle->n = used->n = 0;
	memset(a->die_idle, 0, a->n_dies * sizeof *a->die_idle);
	memset(a->die_used, 0, a->n_dies * sizeof *a->die_used);
	memset(a->package_idle, 0, a->n_packages * sizeof *a->package_idle);
	memset(a->package_used, 0, a->n_packages * sizeof *a->package_used);
	for (uint32_t g = 0; g < a->n_groups; g++) {
		const struct unit *u = &a->groups[g];
		uint32_t n_free = wrong_kind(j, u) ? 0 : span_count(&u->cpus, j->left);
		if (!n_free)
			continue;
		bool all = n_free == u->cpus.size;
		struct group_list *list = all ? idle : used;
		list->h[list->n++] = (struct rank){0, u->tie, g};
		(all ? a->die_idle : a->die_used)[u->die] += n_free;
		(all ? a->package_idle : a->package_used)[u->package] += n_free;
		a->free_cpus[g] = n_free;
	}
}

/* Orders idle groups: first groups of a die that suffices, the tightest first; then groups of a
 * package that suffices; then the other groups in their order. */
static void order_idle(struct cpualloc *a, struct group_list *idle, struct group_need need)
{
	for (uint32_t i = 0; i < idle->n; i++) {
		struct rank *r = &idle->h[i];
		const struct unit *u = &a->groups[r->index];
		if (a->die_idle[u->die] >= need.full && a->die_used[u->die] >= need.part) {
			r->key = cpualloc_pack(0, a->die_idle[u->die], a->die_used[u->die], 0);
		} else if (a->package_idle[u->package] >= need.full &&
			   a->package_used[u->package] >= need.part) {
			r->key = cpualloc_pack(1, a->package_idle[u->package],
					       a->package_used[u->package], 0);
		} else {
			r->key = cpualloc_pack(2, 0, 0, 0);
			r->tie = r->index;
		}
	}
	heap_make(idle->h, idle->n);
}

/* Orders partly used groups beside idle groups: first groups close to the first idle group, the
 * largest first. */
static void order_used_near(struct cpualloc *a, struct group_list *used, const struct unit *idle)
{
	for (uint32_t i = 0; i < used->n; i++) {
		struct rank *r = &used->h[i];
		const struct unit *u = &a->groups[r->index];
		r->key = cpualloc_pack(u->package != idle->package, u->die != idle->die,
				       FIELD_MAX - a->free_cpus[r->index], 0);
		r->tie = r->index;
	}
	heap_make(used->h, used->n);
}

/* Orders partly used groups without idle groups: first groups of the tightest die that suffices,
 * the largest first; then the other groups in their order. */
static void order_used(struct cpualloc *a, struct group_list *used, uint32_t total)
{
	for (uint32_t i = 0; i < used->n; i++) {
		struct rank *r = &used->h[i];
		uint32_t in_die = a->die_used[a->groups[r->index].die];
		r->key = cpualloc_pack(1, 0, 0, 0);
		if (in_die >= total)
			r->key = cpualloc_pack(0, in_die, FIELD_MAX - a->free_cpus[r->index], 0);
		else
			r->tie = r->index;
	}
	heap_make(used->h, used->n);
}

/* Takes the remaining CPUs from one group that has more: whole cores, then threads. */
static void split_group(struct job *j, const struct unit *u)
{
	struct cpualloc *a = j->a;
	struct job part = *j;
	part.left = a->sub_left;
	part.got = a->sub_got;
	memset(part.left, 0, a->n_words * sizeof *part.left);
	memset(part.got, 0, a->n_words * sizeof *part.got);
	for (uint32_t i = 0; i < u->cpus.n_parts; i++) {
		const struct part *p = &u->cpus.parts[i];
		part.left[p->word] = p->bits & j->left[p->word];
	}
	take_cores(&part);
	if (part.n)
		take_threads(&part);
	(void)take_span(j, &u->cpus, part.got);
}

static void take_idle_groups(struct job *j, struct group_list *idle, uint32_t package)
{
	struct cpualloc *a = j->a;
	for (; idle->n && j->n; heap_pop(idle->h, &idle->n)) {
		const struct unit *u = &a->groups[idle->h[0].index];
		if (u->package != package)
			continue;
		if (u->cpus.size > j->n)
			split_group(j, u);
		else
			(void)take_span(j, &u->cpus, a->online);
	}
}

/* Moves the first groups of the heap, up to one of another package, in order into an array behind
 * the heap; returns their number. */
static uint32_t first_of_package(struct cpualloc *a, struct group_list *used, uint32_t package,
				 uint32_t *ret_total)
{
	uint32_t all = used->n, n = 0;
	*ret_total = 0;
	while (used->n && a->groups[used->h[0].index].package == package) {
		struct rank first = used->h[0];
		heap_pop(used->h, &used->n);
		used->h[all - ++n] = first;
		*ret_total += a->free_cpus[first.index];
	}
	used->h += all - n;
	return n;
}

/* Takes one group of exactly the right size, or group after group and splits the last one. */
static void take_used_groups(struct job *j, const struct rank *last, uint32_t n)
{
	struct cpualloc *a = j->a;
	for (uint32_t i = n; i-- > 0;) {
		if (a->free_cpus[last[i].index] != j->n)
			continue;
		(void)take_span(j, &a->groups[last[i].index].cpus, a->online);
		return;
	}
	for (uint32_t i = n; i-- > 0 && j->n;) {
		const struct unit *u = &a->groups[last[i].index];
		if (a->free_cpus[last[i].index] > j->n)
			split_group(j, u);
		else
			(void)take_span(j, &u->cpus, a->online);
	}
}

static void take_groups(struct job *j)
{
	struct cpualloc *a = j->a;
	struct group_list idle = {.h = a->ranks}, used = {.h = a->ranks2};
	uint32_t size = a->groups[0].cpus.size;
	struct group_need need = {j->n - j->n % size, j->n % size};
	sort_out_groups(j, &idle, &used);
	if (!idle.n && !used.n)
		return;
	order_idle(a, &idle, need);
	if (idle.n && need.full)
		order_used_near(a, &used, &a->groups[idle.h[0].index]);
	else
		order_used(a, &used, j->n);
	uint32_t package = a->groups[idle.n ? idle.h[0].index : used.h[0].index].package;
	uint32_t in_idle = a->package_idle[package], in_used, wanted = j->n;
	if (in_idle + a->package_used[package] < wanted)
		return;
	uint32_t n_used = 0;
	if (in_idle < wanted) {
		n_used = first_of_package(a, &used, package, &in_used);
		if (in_idle + in_used < wanted)
			return;
	}
	take_idle_groups(j, &idle, package);
	if (j->n)
		take_used_groups(j, used.h, n_used);
}

/* ---- entry points ---------------------------------------------------------------------------- */

static void cpualloc_run(struct job *j)
{
	const struct cpualloc *a = j->a;
	if (j->flags & CPUALLOC_IDLE_PACKAGES)
		take_packages(j);
	if (j->n && a->n_clusters && (j->flags & CPUALLOC_IDLE_CLUSTERS))
		take_clusters(j);
	if (j->n > 1 && a->n_groups && (j->flags & CPUALLOC_CACHE_GROUPS))
		take_groups(j);
	if (j->n && (j->flags & CPUALLOC_IDLE_CORES))
		take_cores(j);
	if (j->n)
		take_threads(j);
	assert(!j->n);
}

/* Prepares a job that takes n CPUs of `from`, or with `spare` all except n. */
static int cpualloc_begin(struct job *j, struct cpualloc *a, const struct rp_idset *from,
			  uint32_t n, bool spare, uint32_t prefer, uint32_t flags)
{
	uint32_t have = 0, n_words = from->nw < a->n_words ? from->nw : a->n_words;
	if (prefer >= N_PRIOS || flags & ~(CPUALLOC_DEFAULT | CPUALLOC_PLAIN_RULES))
		return -RP_EINVAL;
	for (uint32_t w = 0; w < n_words; w++)
		have += count_bits(a->left[w] = from->w[w] & a->online[w]);
	if (have < n)
		return -RP_ENOSPC;
	memset(a->left + n_words, 0, (a->n_words - n_words) * sizeof *a->left);
	memset(a->got, 0, a->n_words * sizeof *a->got);
	*j = (struct job){a,	a->left, a->got, spare ? have - n : n, (enum cpualloc_prio)prefer,
			  flags};
	if (j->n == have) {
		j->left = a->got;
		j->got = a->left;
		j->n = 0;
	}
	return 0;
}

static void cpualloc_finish(const struct job *j, struct rp_idset *from, const uint64_t *taken,
			    struct rp_idset *ret)
{
	struct rp_ids ids = {taken, j->a->n_words, 0};
	rp_idset_andnot(from, rp_ids_of(from), ids);
	rp_idset_copy(ret, ids);
}

int cpualloc_allocate(struct cpualloc *a, struct rp_idset *from, uint32_t n,
		      enum cpualloc_prio prefer, uint32_t flags, struct rp_idset *ret)
{
	struct job j;
	int r = cpualloc_begin(&j, a, from, n, false, (uint32_t)prefer, flags);
	if (r)
		return r;
	if (j.n)
		cpualloc_run(&j);
	cpualloc_finish(&j, from, j.got, ret);
	return 0;
}

int cpualloc_release(struct cpualloc *a, struct rp_idset *held, uint32_t n,
		     enum cpualloc_prio prefer, uint32_t flags, struct rp_idset *ret)
{
	struct job j;
	int r = cpualloc_begin(&j, a, held, n, true, (uint32_t)prefer, flags);
	if (r)
		return r;
	if (j.n)
		cpualloc_run(&j);
	cpualloc_finish(&j, held, j.left, ret);
	return 0;
}

struct rp_ids cpualloc_prio_cpus(const struct cpualloc *a, enum cpualloc_prio prio)
{
	if ((uint32_t)prio >= N_PRIOS)
		return rp_ids_none();
	return (struct rp_ids){a->prio[prio], a->n_words, 0};
}

struct rp_ids cpualloc_online(const struct cpualloc *a)
{
	return (struct rp_ids){a->online, a->n_words, 0};
}
