/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules/lib/cpualloc.h beside a naive model: lists of flags, pairwise comparisons and insertion
 * sorts, over random machines, priorities, sets and sizes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/t_cpualloc.h"

#define N_MAX 128 /* CPUs of a model's machine, which are 0 … n - 1 */
#define N_STEPS 100000
#define N_STEPS_A_MACHINE 2500

static uint64_t seed;

static uint32_t rnd(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 16) % n);
}

typedef bool flags[N_MAX];

struct cpu {
	uint32_t package, die, core, cluster, group, kind,
		prio; /* dies are numbered over all packages; NO: none */
};

#define NO UINT32_MAX

struct model {
	struct cpu cpu[N_MAX];
	uint32_t n, n_packages, n_dies, n_cores, n_clusters, n_groups;
	bool hybrid;
	/* An allocation. */
	flags left, got;
	uint32_t cnt, prefer;
	bool plain;
};

static struct model model;

/* ---- counting -------------------------------------------------------------------------------- */

/* Columns of struct cpu. */
enum column { PACKAGE, DIE, CORE, CLUSTER, GROUP };

static uint32_t unit_of(const struct model *m, uint32_t cpu, enum column c)
{
	const struct cpu *p = &m->cpu[cpu];
	return c == PACKAGE   ? p->package
	       : c == DIE     ? p->die
	       : c == CORE    ? p->core
	       : c == CLUSTER ? p->cluster
			      : p->group;
}

static uint32_t count(const struct model *m, enum column c, uint32_t unit, const bool *set,
		      uint32_t prio)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->n; i++)
		n += unit_of(m, i, c) == unit && (!set || set[i]) &&
		     (prio == CPUALLOC_NONE || m->cpu[i].prio == prio);
	return n;
}

static uint32_t first_cpu(const struct model *m, enum column c, uint32_t unit)
{
	uint32_t i = 0;
	while (unit_of(m, i, c) != unit)
		i++;
	return i;
}

static void take(struct model *m, uint32_t cpu)
{
	m->left[cpu] = false;
	m->got[cpu] = true;
	m->cnt--;
}

static void take_all(struct model *m, enum column c, uint32_t unit, uint32_t prio)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (unit_of(m, i, c) == unit && m->left[i] &&
		    (prio == CPUALLOC_NONE || m->cpu[i].prio == prio))
			take(m, i);
}

/* ---- comparing two sets by priority; above 0: the first is better ---------------------------- */

struct have {
	int64_t n[3];
};

static struct have have(const struct model *m, enum column c, uint32_t unit, const bool *set)
{
	struct have h;
	for (uint32_t p = 0; p < 3; p++)
		h.n[p] = count(m, c, unit, set, p);
	return h;
}

static int64_t compare(struct have a, struct have b, uint32_t prefer, int64_t cnt, bool plain)
{
	if (prefer == CPUALLOC_NONE)
		return 0;
	if (cnt > 0 && prefer != CPUALLOC_NORMAL && !plain) {
		int64_t x = a.n[prefer], y = b.n[prefer];
		if (prefer == CPUALLOC_HIGH && !x && !y) {
			x = a.n[CPUALLOC_NORMAL];
			y = b.n[CPUALLOC_NORMAL];
		}
		if (x >= cnt && y >= cnt)
			return y - x;
		if (x >= cnt || y >= cnt)
			return x - y;
	}
	for (uint32_t p = prefer; p <= CPUALLOC_LOW; p++) {
		if (cnt > 0 && p == prefer && a.n[p] >= cnt && b.n[p] >= cnt)
			return b.n[p] - a.n[p];
		if (a.n[p] != b.n[p])
			return a.n[p] - b.n[p];
	}
	for (uint32_t p = CPUALLOC_HIGH; p < prefer; p++)
		if (a.n[p] != b.n[p])
			return b.n[p] - a.n[p];
	return 0;
}

/* Stable. */
static void sort(const struct model *m, uint32_t *list, uint32_t n,
		 bool (*before)(const struct model *, uint32_t, uint32_t))
{
	for (uint32_t i = 1; i < n; i++) {
		uint32_t x = list[i], k = i;
		for (; k && before(m, x, list[k - 1]); k--)
			list[k] = list[k - 1];
		list[k] = x;
	}
}

/* Values that comparators look up. */
static struct have haves[N_MAX], cpu_haves[N_MAX];
static uint32_t sizes[N_MAX], die_free[N_MAX], package_free[N_MAX], die_used[N_MAX],
	package_used[N_MAX];
static uint32_t colocated[N_MAX], core_free[N_MAX];

/* ---- steps ----------------------------------------------------------------------------------- */

static bool unit_before(const struct model *m, uint32_t a, uint32_t b)
{
	int64_t r = compare(haves[a], haves[b], m->prefer, -1, false);
	return r ? r > 0 : a < b;
}

static void packages(struct model *m)
{
	uint32_t list[N_MAX], n = 0, prio = m->plain ? CPUALLOC_NONE : m->prefer;
	for (uint32_t p = 0; p < m->n_packages; p++) {
		haves[p] = have(m, PACKAGE, p, NULL);
		sizes[p] = count(m, PACKAGE, p, NULL, prio);
		if (count(m, PACKAGE, p, m->left, prio) == sizes[p])
			list[n++] = p;
	}
	sort(m, list, n, unit_before);
	for (uint32_t i = 0; i < n; i++)
		if (sizes[list[i]] <= m->cnt)
			take_all(m, PACKAGE, list[i], prio);
}

static bool wrong_kind(const struct model *m, uint32_t cpu)
{
	bool efficient = m->cpu[cpu].kind == RP_CORE_EFFICIENT;
	return m->hybrid && efficient != (m->prefer == CPUALLOC_LOW);
}

static uint32_t die_of(const struct model *m, enum column c, uint32_t unit)
{
	return m->cpu[first_cpu(m, c, unit)].die;
}

static uint32_t package_of(const struct model *m, enum column c, uint32_t unit)
{
	return m->cpu[first_cpu(m, c, unit)].package;
}

static bool cluster_before(const struct model *m, uint32_t a, uint32_t b)
{
	const uint32_t in[3][2] = {
		{sizes[a], sizes[b]},
		{die_free[die_of(m, CLUSTER, a)], die_free[die_of(m, CLUSTER, b)]},
		{package_free[package_of(m, CLUSTER, a)], package_free[package_of(m, CLUSTER, b)]}};
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t x = in[i][0], y = in[i][1];
		if (x >= m->cnt && y < m->cnt)
			return true;
		if (x < m->cnt && y >= m->cnt)
			return false;
		if (x >= m->cnt && y >= m->cnt)
			return x != y ? x < y
				      : a < b; /* clusters are numbered by package, die, id */
	}
	return false;
}

static void clusters(struct model *m)
{
	uint32_t list[N_MAX], n = 0;
	memset(die_free, 0, sizeof die_free);
	memset(package_free, 0, sizeof package_free);
	for (uint32_t c = 0; c < m->n_clusters; c++) {
		uint32_t in_package = 0, package = package_of(m, CLUSTER, c);
		for (uint32_t d = 0; d < m->n_clusters; d++)
			in_package += package_of(m, CLUSTER, d) == package;
		sizes[c] = count(m, CLUSTER, c, NULL, CPUALLOC_NONE);
		if (in_package < 2 || wrong_kind(m, first_cpu(m, CLUSTER, c)) ||
		    count(m, CLUSTER, c, m->left, CPUALLOC_NONE) != sizes[c])
			continue;
		list[n++] = c;
		die_free[die_of(m, CLUSTER, c)] += sizes[c];
		package_free[package] += sizes[c];
	}
	sort(m, list, n, cluster_before);
	for (uint32_t i = 0; i < n && m->cnt && sizes[list[i]] <= m->cnt; i++)
		take_all(m, CLUSTER, list[i], CPUALLOC_NONE);
}

static void cores(struct model *m)
{
	uint32_t list[N_MAX], n = 0;
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t c = m->cpu[i].core;
		if (first_cpu(m, CORE, c) != i || count(m, CORE, c, NULL, CPUALLOC_NONE) !=
							  count(m, CORE, c, m->left, CPUALLOC_NONE))
			continue;
		haves[i] = have(m, CORE, c, NULL);
		list[n++] = i;
	}
	sort(m, list, n, unit_before);
	for (uint32_t i = 0; i < n; i++)
		if (count(m, CORE, m->cpu[list[i]].core, NULL, CPUALLOC_NONE) <= m->cnt)
			take_all(m, CORE, m->cpu[list[i]].core, CPUALLOC_NONE);
}

static bool thread_before(const struct model *m, uint32_t a, uint32_t b)
{
	uint32_t p = m->cpu[a].package, q = m->cpu[b].package;
	if (colocated[p] != colocated[q])
		return colocated[p] > colocated[q];
	int64_t r = compare(haves[p], haves[q], m->prefer, m->cnt, m->plain);
	if (r)
		return r > 0;
	if (p != q)
		return p < q;
	r = compare(cpu_haves[a], cpu_haves[b], m->prefer, 0, m->plain);
	if (r)
		return r > 0;
	return core_free[a] != core_free[b] ? core_free[a] < core_free[b] : a < b;
}

static void threads(struct model *m)
{
	uint32_t list[N_MAX], n = 0;
	for (uint32_t p = 0; p < m->n_packages; p++) {
		haves[p] = have(m, PACKAGE, p, m->left);
		colocated[p] = count(m, PACKAGE, p, m->got, CPUALLOC_NONE);
	}
	for (uint32_t i = 0; i < m->n; i++) {
		if (!m->left[i])
			continue;
		memset(&cpu_haves[i], 0, sizeof cpu_haves[i]);
		if (m->cpu[i].prio < CPUALLOC_NONE)
			cpu_haves[i].n[m->cpu[i].prio] = 1;
		core_free[i] = count(m, CORE, m->cpu[i].core, m->left, CPUALLOC_NONE);
		list[n++] = i;
	}
	sort(m, list, n, thread_before);
	for (uint32_t i = 0; m->cnt; i++)
		take(m, list[i]);
}

/* Takes the wanted CPUs out of one group. */
static void split(struct model *m, uint32_t group)
{
	struct model part = *m;
	memset(part.got, 0, sizeof part.got);
	for (uint32_t i = 0; i < m->n; i++)
		part.left[i] = m->left[i] && m->cpu[i].group == group;
	cores(&part);
	threads(&part);
	for (uint32_t i = 0; i < m->n; i++)
		if (part.got[i])
			take(m, i);
}

static uint32_t full, part_of_group;

static bool enough(const uint32_t *idle, const uint32_t *used, uint32_t unit)
{
	return idle[unit] >= full && used[unit] >= part_of_group;
}

static bool idle_before(const struct model *m, uint32_t a, uint32_t b)
{
	uint32_t d[2] = {die_of(m, GROUP, a), die_of(m, GROUP, b)},
		 p[2] = {package_of(m, GROUP, a), package_of(m, GROUP, b)};
	for (uint32_t level = 0; level < 2; level++) {
		const uint32_t *idle = level ? package_free : die_free,
			       *used = level ? package_used : die_used;
		uint32_t x = level ? p[0] : d[0], y = level ? p[1] : d[1];
		if (enough(idle, used, x) != enough(idle, used, y))
			return enough(idle, used, x);
		if (!enough(idle, used, x))
			continue;
		if (idle[x] != idle[y])
			return idle[x] < idle[y];
		return used[x] != used[y] ? used[x] < used[y]
					  : a < b; /* groups are numbered by package, die */
	}
	return a < b;
}

static uint32_t best_idle;

static bool near_before(const struct model *m, uint32_t a, uint32_t b)
{
	uint32_t p = package_of(m, GROUP, best_idle), d = die_of(m, GROUP, best_idle);
	if ((package_of(m, GROUP, a) == p) != (package_of(m, GROUP, b) == p))
		return package_of(m, GROUP, a) == p;
	if ((die_of(m, GROUP, a) == d) != (die_of(m, GROUP, b) == d))
		return die_of(m, GROUP, a) == d;
	return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
}

static bool used_before(const struct model *m, uint32_t a, uint32_t b)
{
	uint32_t x = die_used[die_of(m, GROUP, a)], y = die_used[die_of(m, GROUP, b)];
	if ((x >= m->cnt) != (y >= m->cnt))
		return x >= m->cnt;
	if (x < m->cnt)
		return false;
	if (x != y)
		return x < y;
	return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
}

static uint32_t used_of(const struct model *m, const uint32_t *used, uint32_t n_used,
			uint32_t package, uint32_t *ret_total)
{
	uint32_t n = 0;
	*ret_total = 0;
	for (; n < n_used && package_of(m, GROUP, used[n]) == package; n++)
		*ret_total += sizes[used[n]];
	return n;
}

static void groups(struct model *m)
{
	uint32_t idle[N_MAX], used[N_MAX], n_idle = 0, n_used = 0,
					   size = count(m, GROUP, 0, NULL, CPUALLOC_NONE), total;
	part_of_group = m->cnt % size;
	full = m->cnt - part_of_group;
	memset(die_free, 0, sizeof die_free);
	memset(die_used, 0, sizeof die_used);
	memset(package_free, 0, sizeof package_free);
	memset(package_used, 0, sizeof package_used);
	for (uint32_t g = 0; g < m->n_groups; g++) {
		bool all = (sizes[g] = count(m, GROUP, g, m->left, CPUALLOC_NONE)) ==
			   count(m, GROUP, g, NULL, CPUALLOC_NONE);
		if (!sizes[g] || wrong_kind(m, first_cpu(m, GROUP, g)))
			continue;
		if (all)
			idle[n_idle++] = g;
		else
			used[n_used++] = g;
		(all ? die_free : die_used)[die_of(m, GROUP, g)] += sizes[g];
		(all ? package_free : package_used)[package_of(m, GROUP, g)] += sizes[g];
	}
	if (!n_idle && !n_used)
		return;
	sort(m, idle, n_idle, idle_before);
	best_idle = n_idle ? idle[0] : 0;
	sort(m, used, n_used, n_idle && full ? near_before : used_before);
	uint32_t package = package_of(m, GROUP, n_idle ? idle[0] : used[0]);
	if (package_free[package] + package_used[package] < m->cnt)
		return;
	n_used = used_of(m, used, n_used, package, &total);
	if (package_free[package] < m->cnt && package_free[package] + total < m->cnt)
		return;
	for (uint32_t i = 0; i < n_idle && m->cnt; i++) {
		if (package_of(m, GROUP, idle[i]) != package)
			continue;
		if (sizes[idle[i]] <= m->cnt)
			take_all(m, GROUP, idle[i], CPUALLOC_NONE);
		else
			split(m, idle[i]);
	}
	for (uint32_t i = 0; i < n_used && m->cnt; i++)
		if (sizes[used[i]] == m->cnt)
			take_all(m, GROUP, used[i], CPUALLOC_NONE);
	for (uint32_t i = 0; i < n_used && m->cnt; i++) {
		if (sizes[used[i]] <= m->cnt)
			take_all(m, GROUP, used[i], CPUALLOC_NONE);
		else
			split(m, used[i]);
	}
}

static void model_allocate(struct model *m, uint32_t cnt, uint32_t prefer, uint32_t steps)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->n; i++)
		n += m->left[i];
	memset(m->got, 0, sizeof m->got);
	m->cnt = cnt;
	m->prefer = prefer;
	m->plain = steps & CPUALLOC_PLAIN_RULES;
	if (n == cnt) {
		memcpy(m->got, m->left, sizeof m->got);
		memset(m->left, 0, sizeof m->left);
		return;
	}
	if (cnt && steps & CPUALLOC_IDLE_PACKAGES)
		packages(m);
	if (m->cnt && m->hybrid && steps & CPUALLOC_IDLE_CLUSTERS)
		clusters(m);
	if (m->cnt > 1 && m->n_groups && steps & CPUALLOC_CACHE_GROUPS)
		groups(m);
	if (m->cnt && steps & CPUALLOC_IDLE_CORES)
		cores(m);
	if (m->cnt)
		threads(m);
}

/* ---- random machines ------------------------------------------------------------------------- */

static struct shape random_shape(void)
{
	struct shape s;
	do {
		s = (struct shape){.packages = 1 + rnd(3),
				   .dies = 1 + rnd(2),
				   .nodes = 1 + rnd(2),
				   .cores = 1 + rnd(8),
				   .threads = 1 + rnd(3),
				   .e_cores = rnd(3) ? 0 : 1 + rnd(9),
				   .l2_cores = 1 + rnd(4),
				   .l3_cores = rnd(2) ? 0 : 1 + rnd(5),
				   .split_l1 = true};
		s.siblings = !s.e_cores && rnd(2);
	} while (s.packages * s.dies * s.nodes * (s.cores * s.threads + s.e_cores) > N_MAX);
	return s;
}

/* Numbers of a column that are still used, made dense in their order. */
static uint32_t make_dense(struct model *m, size_t offset)
{
	uint32_t n = 0;
#define AT(i) (*(uint32_t *)((char *)&m->cpu[i] + offset))
	for (uint32_t value = 0, seen; value < 4 * N_MAX; value++, n += seen) {
		seen = 0;
		for (uint32_t i = 0; i < m->n; i++) {
			if (AT(i) == value) {
				AT(i) = n;
				seen = 1;
			}
		}
	}
#undef AT
	return n;
}

/* Clusters that are one core and nothing else are joined, a die's into one. */
static void join_clusters(struct model *m)
{
	uint32_t joined[N_MAX], to[N_MAX];
	memset(joined, 0xff, sizeof joined);
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t c = m->cpu[i].cluster;
		bool alone = count(m, CLUSTER, c, NULL, CPUALLOC_NONE) ==
			     count(m, CORE, m->cpu[i].core, NULL, CPUALLOC_NONE);
		to[i] = c;
		if (alone && joined[m->cpu[i].die] == NO)
			joined[m->cpu[i].die] = c;
		if (alone)
			to[i] = joined[m->cpu[i].die];
	}
	for (uint32_t i = 0; i < m->n; i++)
		m->cpu[i].cluster = to[i];
}

static void find_groups(struct model *m, const struct machine *mc)
{
	uint32_t level = 0, n;
	/* Four caches a CPU: levels 3, 2, 1. The first CPU for which a level means something
	 * decides. */
	for (uint32_t i = 0; !level && i < m->n; i++) {
		uint32_t in[2] = {mc->l3[i], mc->cpus[i].cluster};
		for (uint32_t k = 0; k < 2 && !level; k++) {
			uint32_t size = 0, same_die = 0, die = 0, package = 0;
			for (uint32_t j = 0; j < m->n; j++) {
				bool in_die =
					m->cpu[mc->cpus[j].cpu].die == m->cpu[mc->cpus[i].cpu].die;
				bool member = (k ? mc->cpus[j].cluster : mc->l3[j]) == in[k];
				size += member;
				die += in_die;
				package += mc->cpus[j].package == mc->cpus[i].package;
				same_die += member && in_die;
			}
			uint32_t core = count(m, CORE, mc->cpus[i].core, NULL, CPUALLOC_NONE);
			if (size > 1 && size != core && !(size == die && same_die == die) &&
			    size != package)
				level = 3 - k;
		}
	}
	for (uint32_t i = 0; i < m->n; i++)
		m->cpu[mc->cpus[i].cpu].group = !level	     ? NO
						: level == 3 ? mc->l3[i]
							     : mc->cpus[i].cluster;
	for (uint32_t pass = 0; pass < 2;
	     pass++) { /* groups that are none, then groups alone in their package */
		flags drop = {0};
		for (uint32_t i = 0; i < m->n; i++) {
			const struct cpu *c = &m->cpu[i];
			uint32_t size = count(m, GROUP, c->group, NULL, CPUALLOC_NONE), others = 0;
			for (uint32_t j = 0; j < m->n; j++)
				others += m->cpu[j].package == c->package &&
					  m->cpu[j].group != NO && m->cpu[j].group != c->group;
			drop[i] = pass ? !others
				       : size == 1 ||
						  size == count(m, CORE, c->core, NULL,
								CPUALLOC_NONE) ||
						  (size ==
						   count(m, DIE, c->die, NULL, CPUALLOC_NONE));
		}
		for (uint32_t i = 0; i < m->n; i++)
			if (drop[i])
				m->cpu[i].group = NO;
	}
	n = make_dense(m, offsetof(struct cpu, group));
	m->n_groups = n;
}

static struct cpualloc *new_machine(struct model *m)
{
	struct shape s = random_shape();
	struct machine mc = machine_new(&s);
	struct cpualloc *a = NULL;
	memset(m, 0, sizeof *m);
	m->n = mc.m.n_cpus;
	for (uint32_t i = 0; i < m->n; i++) {
		const struct cpualloc_cpu *c = &mc.cpus[i];
		m->cpu[c->cpu] = (struct cpu){
			.package = c->package,
			.die = c->package * s.dies + c->die,
			.core = c->core,
			.cluster = c->cluster,
			.kind = c->kind,
			.prio = c->kind == RP_CORE_EFFICIENT ? CPUALLOC_LOW : CPUALLOC_NORMAL};
	}
	m->n_packages = s.packages;
	m->n_dies = s.packages * s.dies;
	m->n_cores = m->n_dies * s.nodes * (s.cores + s.e_cores);
	m->hybrid = s.e_cores != 0;
	find_groups(m, &mc);
	join_clusters(m);
	m->n_clusters = make_dense(m, offsetof(struct cpu, cluster));
	assert_int_equal(cpualloc_new_machine(&mc.m, &a), 0);
	machine_free(&mc);
	return a;
}

/* Gives some CPUs another priority. */
static void mix_prios(struct cpualloc *a, struct model *m)
{
	struct rp_idset s;
	uint32_t prio = rnd(4), from = rnd(m->n), n = 1 + rnd(m->n / 2 + 1);
	rp_idset_clear(&s);
	for (uint32_t i = from; i < m->n && i < from + n; i++) {
		bool bound =
			m->hybrid && m->cpu[i].kind == RP_CORE_EFFICIENT && prio < CPUALLOC_LOW;
		rp_idset_add(&s, i);
		m->cpu[i].prio = bound ? CPUALLOC_NONE : prio;
	}
	assert_int_equal(cpualloc_set_prio(a, (enum cpualloc_prio)prio, rp_ids_of(&s)), 0);
}

/* ---- walk ------------------------------------------------------------------------------------ */

static void explain(const struct model *m, struct rp_ids from, uint32_t n, uint32_t prefer,
		    uint32_t steps, struct rp_ids got, struct rp_ids expected)
{
	char a[512], b[512], c[512];
	(void)rp_ids_format(from, a, sizeof a);
	(void)rp_ids_format(got, b, sizeof b);
	(void)rp_ids_format(expected, c, sizeof c);
	for (uint32_t i = 0; i < m->n; i++)
		print_error(
			"cpu %u: package %u die %u core %u cluster %d group %d kind %u prio %u\n",
			i, m->cpu[i].package, m->cpu[i].die, m->cpu[i].core, (int)m->cpu[i].cluster,
			(int)m->cpu[i].group, m->cpu[i].kind, m->cpu[i].prio);
	fail_msg("%u of %s, preferring %u, steps %x: %s, the model says %s", n, a, prefer, steps, b,
		 c);
}

static void step(struct cpualloc *a, struct model *m)
{
	static const uint32_t usual[] = {CPUALLOC_DEFAULT, CPUALLOC_DEFAULT, CPUALLOC_PLAIN};
	struct rp_idset from, all, got, expected, back;
	uint32_t density = 1 + rnd(8), n_free = 0, kind = rnd(4), prefer = rnd(4);
	uint32_t steps = kind < 3 ? usual[kind] : rnd(32);
	rp_idset_clear(&from);
	for (uint32_t i = 0; i < m->n; i++) {
		m->left[i] = density == 8 || rnd(8) < density;
		if (density < 8 && i && rnd(2))
			m->left[i] = m->left[i - 1]; /* runs */
		if (m->left[i])
			rp_idset_add(&from, i);
		n_free += m->left[i];
	}
	uint32_t n = rnd(rnd(2) ? 9 : n_free + 2);
	all = from;
	int r = cpualloc_allocate(a, &from, n, (enum cpualloc_prio)prefer, steps, &got);
	assert_int_equal(r, n > n_free ? -RP_ENOSPC : 0);
	if (r)
		return;
	model_allocate(m, n, prefer, steps);
	rp_idset_clear(&expected);
	for (uint32_t i = 0; i < m->n; i++)
		if (m->got[i])
			rp_idset_add(&expected, i);
	if (!rp_ids_equal(rp_ids_of(&got), rp_ids_of(&expected)))
		explain(m, rp_ids_of(&all), n, prefer, steps, rp_ids_of(&got),
			rp_ids_of(&expected));
	assert_int_equal(rp_ids_count(rp_ids_of(&got)), n);
	assert_true(rp_ids_subset(rp_ids_of(&got), rp_ids_of(&all)));
	rp_idset_or(&back, rp_ids_of(&from), rp_ids_of(&got));
	assert_true(rp_ids_equal(rp_ids_of(&back), rp_ids_of(&all)));
	assert_false(rp_ids_overlap(rp_ids_of(&from), rp_ids_of(&got)));
	assert_int_equal(
		cpualloc_release(a, &all, n_free - n, (enum cpualloc_prio)prefer, steps, &back), 0);
	assert_true(rp_ids_equal(rp_ids_of(&all), rp_ids_of(&got)));
	assert_true(rp_ids_equal(rp_ids_of(&back), rp_ids_of(&from)));
}

static void test_random(void **state)
{
	struct cpualloc *a = NULL;
	seed = 20240229;
	for (uint32_t i = 0; i < N_STEPS; i++) {
		if (i % N_STEPS_A_MACHINE == 0) {
			a = cpualloc_free(a);
			a = new_machine(&model);
		}
		if (rnd(50) == 0)
			mix_prios(a, &model);
		step(a, &model);
	}
	cpualloc_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
