/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of a CPU allocator: units of the machine, cache groups, priorities and tables. */
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/cpualloc_impl.h"

/* Temporary data of a creation. Arrays are indexed by position: CPUs ascending. */
struct maker {
	struct cpualloc *a;
	const struct cpualloc_machine *machine;
	uint32_t n;
	struct cpualloc_cpu *cpus;
	uint32_t *package, *die, *node, *core, *unit; /* index of each CPU's unit */
	uint64_t *keys;
	uint32_t *order, *start;
	uint32_t *position; /* index: CPU id; NO_UNIT: not online */
	/* caches of CPU i: caches[cache_end[i - 1]] up to caches[cache_end[i]] */
	uint32_t *caches, *cache_end;
	struct span *dies;
	uint64_t *mask;
};

static int compare_u64(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
	return (a > b) - (a < b);
}

static int compare_cpu(const void *x, const void *y)
{
	uint32_t a = ((const struct cpualloc_cpu *)x)->cpu,
		 b = ((const struct cpualloc_cpu *)y)->cpu;
	return (a > b) - (a < b);
}

/* Allocates zeroed memory that is freed with the allocator. */
static void *cpualloc_machine_block(struct cpualloc *a, size_t n, size_t size)
{
	void *p = a->n_blocks < N_BLOCKS ? calloc(n ? n : 1, size) : NULL;
	if (p)
		a->blocks[a->n_blocks++] = p;
	return p;
}

/* ---- units ----------------------------------------------------------------------------------- */

/* Returns the key of a CPU's unit. Keys of a level have the order of the kernel's numbers. */
static uint64_t unit_key(const struct maker *mk, uint32_t level, uint32_t i)
{
	const struct cpualloc_cpu *c = &mk->cpus[i];
	switch (level) {
	case RP_LEVEL_PACKAGE:
		return c->package;
	case RP_LEVEL_DIE:
		return (uint64_t)mk->package[i] << 32 | c->die;
	case RP_LEVEL_NODE:
		return c->node;
	case RP_LEVEL_CLUSTER:
		return (uint64_t)mk->die[i] << 32 | c->cluster;
	default:
		return c->core;
	}
}

/* Numbers the units of the CPUs, ascending by key; returns their number. */
static uint32_t number_units(struct maker *mk, uint32_t level, uint32_t *ret)
{
	uint32_t n_units = 0;
	for (uint32_t i = 0; i < mk->n; i++)
		mk->keys[i] = unit_key(mk, level, i);
	qsort(mk->keys, mk->n, sizeof *mk->keys, compare_u64);
	for (uint32_t i = 0; i < mk->n; i++)
		if (!i || mk->keys[n_units - 1] != mk->keys[i])
			mk->keys[n_units++] = mk->keys[i];
	for (uint32_t i = 0; i < mk->n; i++) {
		uint64_t k = unit_key(mk, level, i);
		const uint64_t *found = bsearch(&k, mk->keys, n_units, sizeof k, compare_u64);
		ret[i] = (uint32_t)(found - mk->keys);
	}
	return n_units;
}

/* Orders positions by unit, then CPU, without those that have no unit. Returns their number. */
static uint32_t order_by_unit(struct maker *mk, const uint32_t *unit_of, uint32_t n_units)
{
	memset(mk->start, 0, (n_units + 1) * sizeof *mk->start);
	for (uint32_t i = 0; i < mk->n; i++)
		if (unit_of[i] != NO_UNIT)
			mk->start[unit_of[i] + 1]++;
	for (uint32_t u = 0; u < n_units; u++)
		mk->start[u + 1] += mk->start[u];
	uint32_t total = mk->start[n_units];
	for (uint32_t i = 0; i < mk->n; i++)
		if (unit_of[i] != NO_UNIT)
			mk->order[mk->start[unit_of[i]]++] = i;
	return total;
}

/* Makes the spans of units from unit_of[], in an array of spans or of structs that begin with a
 * span. */
static int make_spans(struct maker *mk, const uint32_t *unit_of, uint32_t n_units, void *spans,
		      size_t stride)
{
	uint32_t n = order_by_unit(mk, unit_of, n_units);
	struct part *part = cpualloc_machine_block(mk->a, n, sizeof *part);
	if (!part)
		return -RP_ENOMEM;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = mk->order[k], cpu = mk->cpus[i].cpu;
		struct span *s = (struct span *)((char *)spans + unit_of[i] * stride);
		if (!s->size++)
			s->parts = part;
		if (!s->n_parts || s->parts[s->n_parts - 1].word != cpu / 64) {
			part->word = cpu / 64;
			part++;
			s->n_parts++;
		}
		s->parts[s->n_parts - 1].bits |= UINT64_C(1) << (cpu % 64);
	}
	return 0;
}

/* Makes units from unit_of[]. The package, die and node of a unit are those of its lowest CPU. */
static struct unit *make_units(struct maker *mk, const uint32_t *unit_of, uint32_t n_units)
{
	struct unit *units = cpualloc_machine_block(mk->a, n_units, sizeof *units);
	if (!units || make_spans(mk, unit_of, n_units, units, sizeof *units))
		return NULL;
	for (uint32_t i = mk->n; i-- > 0;) {
		if (unit_of[i] == NO_UNIT)
			continue;
		struct unit *u = &units[unit_of[i]];
		u->package = mk->package[i];
		u->die = mk->die[i];
		u->node = mk->node[i];
		u->kind = mk->cpus[i].kind;
		u->tie = unit_of[i];
	}
	return units;
}

/* Drops units that are the only one in their package. The units are in the order of packages. */
static uint32_t drop_lone_units(struct unit *units, uint32_t n)
{
	uint32_t kept = 0, before = NO_UNIT;
	for (uint32_t u = 0; u < n; u++) {
		uint32_t package = units[u].package;
		if (package == before || (u + 1 < n && units[u + 1].package == package))
			units[kept++] = units[u];
		before = package;
	}
	for (uint32_t u = 0; u < kept; u++)
		units[u].tie = u;
	return kept;
}

static int make_packages(struct maker *mk)
{
	struct cpualloc *a = mk->a;
	a->n_packages = number_units(mk, RP_LEVEL_PACKAGE, mk->package);
	a->n_dies = number_units(mk, RP_LEVEL_DIE, mk->die);
	(void)number_units(mk, RP_LEVEL_NODE, mk->node);
	a->packages = make_units(mk, mk->package, a->n_packages);
	mk->dies = cpualloc_machine_block(a, a->n_dies, sizeof *mk->dies);
	if (!a->packages || !mk->dies)
		return -RP_ENOMEM;
	return make_spans(mk, mk->die, a->n_dies, mk->dies, sizeof *mk->dies);
}

static int make_cores(struct maker *mk)
{
	struct cpualloc *a = mk->a;
	a->n_cores = number_units(mk, RP_LEVEL_CORE, mk->core);
	a->cores = cpualloc_machine_block(a, a->n_cores, sizeof *a->cores);
	a->core_of = cpualloc_machine_block(a, (size_t)a->n_words * 64, sizeof *a->core_of);
	a->leaders = cpualloc_machine_block(a, a->n_words, sizeof *a->leaders);
	if (!a->cores || !a->core_of || !a->leaders ||
	    make_spans(mk, mk->core, a->n_cores, a->cores, sizeof *a->cores))
		return -RP_ENOMEM;
	for (uint32_t i = 0; i < mk->n; i++)
		a->core_of[mk->cpus[i].cpu] = mk->core[i];
	for (uint32_t c = 0; c < a->n_cores; c++) {
		const struct part *p = a->cores[c].parts;
		a->leaders[p->word] |= p->bits & -p->bits;
		if (a->cores[c].size > a->max_threads)
			a->max_threads = a->cores[c].size;
	}
	return 0;
}

/* Joins the clusters of a die that have a single core: kernels report such a cluster for each core
 * with an L2 cache of its own. */
static void join_core_clusters(struct maker *mk, uint32_t n_clusters)
{
	uint32_t *alone = mk->order, *joined = mk->start;
	for (uint32_t c = 0; c < n_clusters; c++)
		alone[c] = NO_UNIT;
	/* Find the only core of each cluster, n_cores if there are several. */
	for (uint32_t i = mk->n; i-- > 0;) {
		uint32_t *core = &alone[mk->unit[i]];
		*core = *core == NO_UNIT || *core == mk->core[i] ? mk->core[i] : mk->a->n_cores;
	}
	memset(joined, 0xff, mk->a->n_dies * sizeof *joined);
	for (uint32_t i = 0; i < mk->n; i++) {
		if (alone[mk->unit[i]] == mk->a->n_cores)
			continue;
		uint32_t *id = &joined[mk->die[i]];
		if (*id == NO_UNIT)
			*id = mk->cpus[i].cluster;
		mk->cpus[i].cluster = *id;
	}
}

static int make_clusters(struct maker *mk)
{
	struct cpualloc *a = mk->a;
	join_core_clusters(mk, number_units(mk, RP_LEVEL_CLUSTER, mk->unit));
	uint32_t n = number_units(mk, RP_LEVEL_CLUSTER, mk->unit);
	a->clusters = make_units(mk, mk->unit, n);
	if (!a->clusters)
		return -RP_ENOMEM;
	a->n_clusters = drop_lone_units(a->clusters, n);
	return 0;
}

/* ---- cache groups ---------------------------------------------------------------------------- */

static int index_caches(struct maker *mk)
{
	const struct cpualloc_machine *m = mk->machine;
	uint64_t total = 0;
	mk->cache_end = calloc(mk->n + 1, sizeof *mk->cache_end);
	if (!mk->cache_end)
		return -RP_ENOMEM;
	for (uint32_t c = 0; c < m->n_caches; c++) {
		RP_IDS_EACH (cpu, m->caches[c].cpus) {
			if (cpu >= RP_CPUS_MAX || mk->position[cpu] == NO_UNIT)
				continue;
			mk->cache_end[mk->position[cpu] + 1]++;
			total++;
		}
	}
	if (total > UINT32_MAX)
		return -RP_EINVAL;
	for (uint32_t i = 0; i < mk->n; i++)
		mk->cache_end[i + 1] += mk->cache_end[i];
	mk->caches = calloc(total + 1, sizeof *mk->caches);
	if (!mk->caches)
		return -RP_ENOMEM;
	for (uint32_t c = 0; c < m->n_caches; c++)
		RP_IDS_EACH (cpu, m->caches[c].cpus)
			if (cpu < RP_CPUS_MAX && mk->position[cpu] != NO_UNIT)
				mk->caches[mk->cache_end[mk->position[cpu]]++] = c;
	return 0;
}

static bool mask_is(const struct maker *mk, const struct span *s, uint32_t n_cpus)
{
	return s->size == n_cpus && span_count(s, mk->mask) == n_cpus;
}

/* Puts the CPUs that share a cache of this level with CPU i into mk->mask. Returns true if they are
 * a group: more than a core, less than a die. */
static bool share_cache(struct maker *mk, uint32_t i, uint32_t level)
{
	struct cpualloc *a = mk->a;
	uint32_t n = 0;
	memset(mk->mask, 0, a->n_words * sizeof *mk->mask);
	for (uint32_t k = i ? mk->cache_end[i - 1] : 0; k < mk->cache_end[i]; k++) {
		const struct cpualloc_cache *c = &mk->machine->caches[mk->caches[k]];
		if (c->level != level)
			continue;
		for (uint32_t w = 0; w < a->n_words; w++)
			mk->mask[w] |= rp_ids_word(c->cpus, w) & a->online[w];
	}
	for (uint32_t w = 0; w < a->n_words; w++)
		n += count_bits(mk->mask[w]);
	return n > 1 && !mask_is(mk, &a->cores[mk->core[i]], n) &&
	       !mask_is(mk, &a->packages[mk->package[i]].cpus, n) &&
	       !mask_is(mk, &mk->dies[mk->die[i]], n);
}

/* Returns the level of cache that groups CPUs, 0: none. The number of a CPU's caches limits the
 * levels to check. */
static uint32_t choose_level(struct maker *mk)
{
	for (uint32_t i = 0; i < mk->n; i++) {
		uint32_t n_caches = mk->cache_end[i] - (i ? mk->cache_end[i - 1] : 0);
		for (uint32_t level = n_caches ? n_caches - 1 : 0; level > 0; level--)
			if (share_cache(mk, i, level))
				return level;
	}
	return 0;
}

/* Finds the groups of a level, ordered by package and lowest CPU. Returns their number, 0 if the
 * level does not divide the CPUs into groups. */
static uint32_t find_groups(struct maker *mk, uint32_t level, bool *ret_across_dies)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < mk->n; i++)
		mk->unit[i] = NO_UNIT;
	*ret_across_dies = false;
	for (uint32_t i = 0; i < mk->n; i++) {
		if (mk->unit[i] != NO_UNIT || !share_cache(mk, i, level))
			continue;
		for (uint32_t w = 0; w < mk->a->n_words; w++) {
			for (uint64_t bits = mk->mask[w]; bits; bits &= bits - 1) {
				uint32_t k = mk->position[w * 64 + (uint32_t)__builtin_ctzll(bits)];
				if (mk->unit[k] != NO_UNIT || mk->package[k] != mk->package[i] ||
				    mk->node[k] != mk->node[i])
					return 0;
				*ret_across_dies |= mk->die[k] != mk->die[i];
				mk->unit[k] = n;
			}
		}
		n++;
	}
	return n;
}

static uint32_t lowest_cpu(const struct unit *u)
{
	const struct part *p = u->cpus.parts;
	return p->word * 64 + (uint32_t)__builtin_ctzll(p->bits);
}

static int compare_groups(const void *x, const void *y)
{
	const struct unit *a = x, *b = y;
	if (a->tie != b->tie)
		return a->tie < b->tie ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return lowest_cpu(a) < lowest_cpu(b) ? -1 : 1;
}

/* Sorts by package, die (unless groups span dies), node, lowest CPU. */
static void sort_groups(struct unit *units, uint32_t n, bool across_dies)
{
	for (uint32_t g = 0; g < n; g++)
		units[g].tie = across_dies ? units[g].package : units[g].die;
	qsort(units, n, sizeof *units, compare_groups);
}

/* Numbers groups that are tied by package and die, then by position. */
static void tie_groups(struct cpualloc *a)
{
	uint32_t tie = 0;
	for (uint32_t die = 0; die < a->n_dies; die++)
		for (uint32_t g = 0; g < a->n_groups; g++)
			if (a->groups[g].die == die)
				a->groups[g].tie = tie++;
}

static int make_groups(struct maker *mk)
{
	struct cpualloc *a = mk->a;
	bool across_dies;
	int r = index_caches(mk);
	if (r)
		return r;
	uint32_t level = choose_level(mk), n = level ? find_groups(mk, level, &across_dies) : 0;
	if (!n)
		return 0;
	a->groups = make_units(mk, mk->unit, n);
	if (!a->groups)
		return -RP_ENOMEM;
	sort_groups(a->groups, n, across_dies);
	a->n_groups = drop_lone_units(a->groups, n);
	tie_groups(a);
	return 0;
}

/* ---- priorities ------------------------------------------------------------------------------ */

/* The range of base frequencies and of EPP in a package. */
struct spread {
	uint64_t min_khz, max_khz;
	uint32_t min_epp, max_epp;
};

static enum cpualloc_prio guess_prio(const struct cpualloc_cpu *c, const struct spread *s)
{
	if (c->kind == RP_CORE_EFFICIENT)
		return CPUALLOC_LOW;
	if (s->min_epp < s->max_epp)
		return c->epp < s->max_epp ? CPUALLOC_HIGH : CPUALLOC_LOW;
	if (s->min_khz < s->max_khz)
		return c->base_khz > s->min_khz ? CPUALLOC_HIGH : CPUALLOC_LOW;
	return CPUALLOC_NORMAL;
}

static int make_prios(struct maker *mk)
{
	struct cpualloc *a = mk->a;
	struct spread *spread = calloc(a->n_packages, sizeof *spread);
	if (!spread)
		return -RP_ENOMEM;
	for (uint32_t p = 0; p < a->n_packages; p++)
		spread[p] = (struct spread){UINT64_MAX, 0, UINT32_MAX, 0};
	for (uint32_t i = 0; i < mk->n; i++) {
		const struct cpualloc_cpu *c = &mk->cpus[i];
		struct spread *s = &spread[mk->package[i]];
		if (c->base_khz && c->base_khz < s->min_khz)
			s->min_khz = c->base_khz;
		if (c->base_khz > s->max_khz)
			s->max_khz = c->base_khz;
		if (c->epp != RP_EPP_UNKNOWN && c->epp < s->min_epp)
			s->min_epp = c->epp;
		if (c->epp != RP_EPP_UNKNOWN && c->epp > s->max_epp)
			s->max_epp = c->epp;
	}
	for (uint32_t i = 0; i < mk->n; i++) {
		uint32_t cpu = mk->cpus[i].cpu;
		uint64_t *set = a->prio[guess_prio(&mk->cpus[i], &spread[mk->package[i]])];
		set[cpu / 64] |= UINT64_C(1) << (cpu % 64);
	}
	free(spread);
	cpualloc_rank(a);
	return 0;
}

int cpualloc_set_prio(struct cpualloc *a, enum cpualloc_prio prio, struct rp_ids cpus)
{
	if ((uint32_t)prio >= N_PRIOS)
		return -RP_EINVAL;
	for (uint32_t w = 0; w < a->n_words; w++) {
		uint64_t set = rp_ids_word(cpus, w) & a->online[w];
		uint64_t refused = prio < CPUALLOC_LOW ? set & a->bound[w] : 0;
		for (uint32_t p = 0; p < N_PRIOS; p++)
			a->prio[p][w] &= ~set;
		a->prio[prio][w] |= set & ~refused;
		a->prio[CPUALLOC_NONE][w] |= refused;
	}
	cpualloc_rank(a);
	return 0;
}

/* ---- construction ---------------------------------------------------------------------------- */

static int take_cpus(struct maker *mk)
{
	const struct cpualloc_machine *m = mk->machine;
	struct cpualloc *a = mk->a;
	memcpy(mk->cpus, m->cpus, mk->n * sizeof *mk->cpus);
	qsort(mk->cpus, mk->n, sizeof *mk->cpus, compare_cpu);
	memset(mk->position, 0xff, RP_CPUS_MAX * sizeof *mk->position);
	for (uint32_t i = 0; i < mk->n; i++) {
		uint32_t cpu = mk->cpus[i].cpu;
		if (cpu >= RP_CPUS_MAX || mk->position[cpu] != NO_UNIT)
			return -RP_EINVAL;
		mk->position[cpu] = i;
	}
	a->n_cpus = mk->n;
	a->n_words = mk->cpus[mk->n - 1].cpu / 64 + 1;
	return 0;
}

static int make_sets(struct maker *mk)
{
	struct cpualloc *a = mk->a;
	uint64_t **sets[] = {&a->online,   &a->bound,	&a->left,   &a->got,
			     &a->sub_left, &a->sub_got, &mk->mask,  &a->prio[0],
			     &a->prio[1],  &a->prio[2], &a->prio[3]};
	const uint32_t n_sets = sizeof sets / sizeof *sets;
	uint64_t *words = cpualloc_machine_block(a, (size_t)n_sets * a->n_words, sizeof *words);
	bool performance = false, efficient = false;
	if (!words)
		return -RP_ENOMEM;
	for (uint32_t i = 0; i < n_sets; i++, words += a->n_words)
		*sets[i] = words;
	for (uint32_t i = 0; i < mk->n; i++) {
		uint32_t cpu = mk->cpus[i].cpu;
		bool e = mk->cpus[i].kind == RP_CORE_EFFICIENT;
		a->online[cpu / 64] |= UINT64_C(1) << (cpu % 64);
		if (e)
			a->bound[cpu / 64] |= UINT64_C(1) << (cpu % 64);
		efficient |= e;
		performance |= !e;
	}
	a->hybrid = performance && efficient;
	if (!a->hybrid)
		memset(a->bound, 0, a->n_words * sizeof *a->bound);
	return 0;
}

/* Allocates the counters and the tables that cpualloc_rank() fills. */
static int make_tables(struct cpualloc *a)
{
	uint32_t n_units = a->n_packages > a->n_groups ? a->n_packages : a->n_groups;
	if (a->n_clusters > n_units)
		n_units = a->n_clusters;
	if (a->n_cores > n_units)
		n_units = a->n_cores; /* cpualloc_rank() sorts cores with `ranks` */
	a->ranks = cpualloc_machine_block(a, n_units, sizeof *a->ranks);
	a->ranks2 = cpualloc_machine_block(a, n_units, sizeof *a->ranks2);
	a->free_cpus = cpualloc_machine_block(a, a->n_groups, sizeof *a->free_cpus);
	uint32_t *n = cpualloc_machine_block(
		a, 2u * a->n_dies + (2u + 2u * N_PRIOS) * a->n_packages, sizeof *n);
	uint32_t *c = cpualloc_machine_block(a, 2u * (size_t)N_PRIOS * a->n_cores, sizeof *c);
	if (!a->ranks || !a->ranks2 || !a->free_cpus || !n || !c)
		return -RP_ENOMEM;
	a->die_idle = n;
	a->die_used = n += a->n_dies;
	a->package_idle = n += a->n_dies;
	a->package_used = n += a->n_packages;
	for (uint32_t p = 0; p < N_PRIOS; p++) {
		a->package_order[p] = n += a->n_packages;
		a->package_size[p] = n += a->n_packages;
		a->core_rank[p] = c;
		a->rank_threads[p] = c + a->n_cores;
		c += 2 * (size_t)a->n_cores;
	}
	return 0;
}

static int cpualloc_machine_make(struct maker *mk)
{
	int (*const steps[])(struct maker *) = {take_cpus, make_sets, make_packages, make_cores};
	int r = 0;
	for (uint32_t i = 0; !r && i < sizeof steps / sizeof *steps; i++)
		r = steps[i](mk);
	if (!r && mk->a->hybrid)
		r = make_clusters(mk);
	if (!r)
		r = make_groups(mk);
	if (!r)
		r = make_tables(mk->a);
	return r ? r : make_prios(mk);
}

int cpualloc_new_machine(const struct cpualloc_machine *machine, struct cpualloc **ret)
{
	if (!machine->n_cpus || machine->n_cpus > RP_CPUS_MAX)
		return -RP_EINVAL;
	size_t n = machine->n_cpus;
	struct cpualloc *a = calloc(1, sizeof *a);
	struct cpualloc_cpu *cpus = calloc(n, sizeof *cpus);
	uint64_t *keys = calloc(n, sizeof *keys);
	uint32_t *numbers = calloc(7 * n + 1 + RP_CPUS_MAX, sizeof *numbers);
	struct maker mk = {
		.a = a, .machine = machine, .n = machine->n_cpus, .cpus = cpus, .keys = keys};
	int r = -RP_ENOMEM;
	if (a && cpus && keys && numbers) {
		mk.package = numbers;
		mk.die = numbers + n;
		mk.node = numbers + 2 * n;
		mk.core = numbers + 3 * n;
		mk.unit = numbers + 4 * n;
		mk.order = numbers + 5 * n;
		mk.start = numbers + 6 * n;
		mk.position = numbers + 7 * n + 1;
		r = cpualloc_machine_make(&mk);
	}
	free(cpus);
	free(keys);
	free(numbers);
	free(mk.caches);
	free(mk.cache_end);
	if (r) {
		(void)cpualloc_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

struct cpualloc *cpualloc_free(struct cpualloc *a)
{
	if (!a)
		return NULL;
	for (uint32_t i = 0; i < a->n_blocks; i++)
		free(a->blocks[i]);
	free(a);
	return NULL;
}

/* ---- the host's topology --------------------------------------------------------------------- */

static int read_cpus(const struct rp_host_topology *topo, void *ctx, struct rp_ids online,
		     struct cpualloc_cpu *cpus, uint32_t *ret_n)
{
	uint32_t n = 0;
	RP_IDS_EACH (cpu, online) {
		struct rp_cpu_info info = {.size = sizeof info};
		int r = topo->cpu(ctx, cpu, &info);
		if (r)
			return r;
		/* A CPU with an unknown core is a core of its own, numbered after all others. */
		uint32_t core = info.unit[RP_LEVEL_CORE];
		cpus[n++] = (struct cpualloc_cpu){.cpu = cpu,
						  .package = info.package_id,
						  .die = info.die_id,
						  .cluster = info.cluster_id,
						  .core = core == RP_IDSET_NONE ? RP_CPUS_MAX + cpu
										: core,
						  .node = info.node_id,
						  .kind = info.kind,
						  .epp = info.epp,
						  .base_khz = info.base_khz};
	}
	*ret_n = n;
	return 0;
}

int cpualloc_new(const struct rp_host_topology *topo, void *ctx, struct cpualloc **ret)
{
	struct rp_ids online;
	int r = topo->set(ctx, RP_CPUS_ONLINE, &online);
	if (r)
		return r;
	uint32_t n = rp_ids_count(online), n_caches = topo->n_caches(ctx), n_cpus = 0;
	struct cpualloc_cpu *cpus = calloc(n + 1, sizeof *cpus);
	struct cpualloc_cache *caches = calloc((size_t)n_caches + 1, sizeof *caches);
	r = cpus && caches ? read_cpus(topo, ctx, online, cpus, &n_cpus) : -RP_ENOMEM;
	for (uint32_t i = 0; !r && i < n_caches; i++) {
		struct rp_cache_info info = {.size = sizeof info};
		r = topo->cache(ctx, i, &info);
		caches[i].level = info.level;
		caches[i].cpus = info.cpus;
	}
	if (!r) {
		struct cpualloc_machine m = {cpus, caches, n_cpus, n_caches};
		r = cpualloc_new_machine(&m, ret);
	}
	free(cpus);
	free(caches);
	return r;
}
