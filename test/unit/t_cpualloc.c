/* SPDX-License-Identifier: Apache-2.0 */
/* modules/lib/cpualloc.h: choices on described machines, errors, the host's topology. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/t_cpualloc.h"

#define ANY CPUALLOC_DEFAULT

/* 2 packages × 2 nodes × 2 cores × 2 threads; node n has CPUs 4n … 4n + 3. */
static const struct shape n4c16 = {.packages = 2, .dies = 1, .nodes = 2, .cores = 2, .threads = 2};
/* Machine with one package and 8 L3 caches of 8 cores; the sibling of n is n + 64. */
static const struct shape epyc = {.packages = 1,
				  .dies = 1,
				  .nodes = 1,
				  .cores = 64,
				  .threads = 2,
				  .l3_cores = 8,
				  .siblings = true,
				  .split_l1 = true};
/* 2 packages × 2 nodes × 4 L3 of 4 cores × 2 threads: groups of 8 CPUs. */
static const struct shape l3x16 = {.packages = 2,
				   .dies = 1,
				   .nodes = 2,
				   .cores = 16,
				   .threads = 2,
				   .l3_cores = 4,
				   .split_l1 = true};
/* 2 packages × 2 dies × 2 L3 of 2 cores × 2 threads: groups of 4 CPUs. */
static const struct shape dies = {.packages = 2,
				  .dies = 2,
				  .nodes = 1,
				  .cores = 4,
				  .threads = 2,
				  .l3_cores = 2,
				  .split_l1 = true};
/* 4 performance cores (0-7), 8 efficient ones in two clusters (8-11, 12-15). */
static const struct shape laptop = {
	.packages = 1, .dies = 1, .nodes = 1, .cores = 4, .threads = 2, .e_cores = 8};
static const struct shape laptop2 = {.packages = 2,
				     .dies = 1,
				     .nodes = 1,
				     .cores = 2,
				     .threads = 2,
				     .e_cores = 6,
				     .l2_cores = 2};
static const struct shape big = {.packages = 8, .dies = 1, .nodes = 1, .cores = 512, .threads = 1};

static struct rp_idset parse(const char *list)
{
	struct rp_idset s;
	assert_int_equal(rp_idset_parse(&s, list, RP_CPUS_MAX), 0);
	return s;
}

static const char *text(const struct rp_idset *s, char *buf, uint32_t size)
{
	assert_true(rp_ids_format(rp_ids_of(s), buf, size) < size);
	return buf;
}

static struct cpualloc *allocator(const struct shape *s)
{
	struct machine mc = machine_new(s);
	struct cpualloc *a = NULL;
	assert_int_equal(cpualloc_new_machine(&mc.m, &a), 0);
	machine_free(&mc);
	return a;
}

static void check_choice(struct cpualloc *a, const char *from, uint32_t n,
			 enum cpualloc_prio prefer, uint32_t flags, const char *expected)
{
	struct rp_idset set = parse(from), all = set, got, back;
	char buf[256];
	assert_int_equal(cpualloc_allocate(a, &set, n, prefer, flags, &got), 0);
	if (strcmp(text(&got, buf, sizeof buf), expected))
		fail_msg("%u of %s, preferring %u, steps %x: %s, expected %s", n, from,
			 (unsigned)prefer, flags, buf, expected);
	assert_int_equal(rp_ids_count(rp_ids_of(&got)), n);
	assert_false(rp_ids_overlap(rp_ids_of(&got), rp_ids_of(&set)));
	rp_idset_or(&set, rp_ids_of(&set), rp_ids_of(&got));
	assert_true(rp_ids_equal(rp_ids_of(&set), rp_ids_of(&all)));
	/* Releasing all others keeps the same ones. */
	assert_int_equal(
		cpualloc_release(a, &all, rp_ids_count(rp_ids_of(&all)) - n, prefer, flags, &back),
		0);
	assert_true(rp_ids_equal(rp_ids_of(&all), rp_ids_of(&got)));
	assert_false(rp_ids_overlap(rp_ids_of(&all), rp_ids_of(&back)));
}

struct choice {
	const char *from;
	uint32_t n;
	enum cpualloc_prio prefer;
	uint32_t flags;
	const char *expected;
};

static void check_choices(const struct shape *s, const struct choice *c, size_t n)
{
	struct cpualloc *a = allocator(s);
	for (size_t i = 0; i < n; i++)
		check_choice(a, c[i].from, c[i].n, c[i].prefer, c[i].flags, c[i].expected);
	assert_null(cpualloc_free(a));
}
#define CHECK_CHOICES(shape, table)                                                                \
	check_choices(&(shape), (table), sizeof(table) / sizeof *(table))

#define HIGH CPUALLOC_HIGH
#define NORMAL CPUALLOC_NORMAL
#define LOW CPUALLOC_LOW
#define NONE CPUALLOC_NONE
#define PLAIN CPUALLOC_PLAIN

static void test_plain(void **state)
{
	static const struct choice table[] = {
		{"1-15", 1, HIGH, PLAIN, "8"},
		{"1-15", 2, HIGH, PLAIN, "2-3"},
		{"1-15", 3, HIGH, PLAIN, "1-3"},
		{"1-15", 4, HIGH, PLAIN, "2-5"},
		{"1-15", 8, HIGH, PLAIN, "8-15"},
		{"1-15", 12, HIGH, PLAIN, "2-5,8-15"},
		{"1-15", 1, NORMAL, PLAIN, "1"},
		{"1-15", 2, NORMAL, PLAIN, "2-3"},
		{"1-15", 3, NORMAL, PLAIN, "1-3"},
		{"1-15", 4, NORMAL, PLAIN, "2-5"},
		{"1-15", 8, NORMAL, PLAIN, "8-15"},
		{"1-15", 12, NORMAL, PLAIN, "2-5,8-15"},
		{"1-15", 1, NONE, PLAIN, "1"},
		{"1-15", 2, NONE, PLAIN, "2-3"},
		{"1-15", 3, NONE, PLAIN, "1-3"},
		{"1-15", 4, NONE, PLAIN, "2-5"},
		{"1-15", 8, NONE, PLAIN, "8-15"},
		{"1-15", 12, NONE, PLAIN, "2-5,8-15"},
		/* No steps at all: threads, from cores with few free ones first. */
		{"0-15", 3, NONE, 0, "0-2"},
		{"1-2,4-5,8-15", 3, NONE, 0, "1-2,4"},
		{"0-15", 8, NONE, CPUALLOC_IDLE_CORES, "0-7"},
	};
	CHECK_CHOICES(n4c16, table);
}

static void test_default(void **state)
{
	static const struct choice table[] = {
		/* Normal CPUs stand in for high ones, the tighter package first. */
		{"1-15", 1, HIGH, ANY, "1"},
		{"1-15", 1, NORMAL, ANY, "1"},
		{"1-15", 1, LOW, ANY, "1"},
		{"0-15", 1, NONE, ANY, "0"},
		{"1-3", 1, NONE, ANY, "1"},
		{"8-11", 3, NONE, ANY, "8-10"},
		{"4-6", 1, NONE, ANY, "6"},
		{"1-15", 9, NONE, ANY, "1,8-15"},
		{"8-15", 5, NONE, ANY, "8-12"},
		{"1-7", 5, NONE, ANY, "1-5"},
		{"1-3,5-7", 4, NONE, ANY, "2-3,6-7"},
		{"3,7,11", 3, HIGH, ANY, "3,7,11"},
		{"0-15", 0, NONE, ANY, ""},
		{"", 0, NONE, ANY, ""},
		{"1,3,5-7,9", 4, NONE, ANY, "1,3,6-7"},
		/* The second thread comes from the package that gave the core. */
		{"1,10-11,13", 3, NONE, ANY, "10-11,13"},
		/* A package with enough is preferred over the lower one without. */
		{"3,8,10,12", 2, NORMAL, ANY, "8,10"},
		{"3,8,10,12", 2, NONE, ANY, "3,8"},
		/* CPUs that are not there. */
		{"14-15,17,200", 2, NONE, ANY, "14-15"},
		{"0-3,15", 4, NONE, CPUALLOC_CACHE_GROUPS | CPUALLOC_IDLE_CLUSTERS, "0-3"},
	};
	struct cpualloc *a = allocator(&n4c16);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct choice *c = &table[i];
		struct rp_idset from = parse(c->from), got;
		char buf[128];
		assert_int_equal(cpualloc_allocate(a, &from, c->n, c->prefer, c->flags, &got), 0);
		if (strcmp(text(&got, buf, sizeof buf), c->expected))
			fail_msg("row %zu: %s, expected %s", i, buf, c->expected);
	}
	cpualloc_free(a);
}

static void test_offline_stay(void **state)
{
	struct cpualloc *a = allocator(&n4c16);
	struct rp_idset from = parse("0-1,16-17,5000"), got;
	char buf[64];
	assert_int_equal(cpualloc_allocate(a, &from, 3, NONE, ANY, &got), -RP_ENOSPC);
	assert_int_equal(cpualloc_allocate(a, &from, 2, NONE, ANY, &got), 0);
	assert_string_equal(text(&got, buf, sizeof buf), "0-1");
	assert_string_equal(text(&from, buf, sizeof buf), "16-17,5000");
	from = parse("0-3,20");
	assert_int_equal(cpualloc_release(a, &from, 5, NONE, ANY, &got), -RP_ENOSPC);
	assert_int_equal(cpualloc_release(a, &from, 1, NONE, ANY, &got), 0);
	assert_string_equal(text(&got, buf, sizeof buf), "3");
	assert_string_equal(text(&from, buf, sizeof buf), "0-2,20");
	assert_int_equal(cpualloc_release(a, &from, 3, NONE, ANY, &got), 0);
	assert_string_equal(text(&from, buf, sizeof buf), "20");
	cpualloc_free(a);
}

static void test_refusals(void **state)
{
	struct cpualloc *a = allocator(&n4c16);
	struct rp_idset from = parse("3-5"), got = parse("9");
	char buf[64];
	assert_int_equal(cpualloc_allocate(a, &from, 4, NONE, ANY, &got), -RP_ENOSPC);
	assert_int_equal(cpualloc_allocate(a, &from, 1, (enum cpualloc_prio)4, ANY, &got),
			 -RP_EINVAL);
	assert_int_equal(cpualloc_allocate(a, &from, 1, NONE, 0x20, &got), -RP_EINVAL);
	assert_int_equal(cpualloc_release(a, &from, 1, NONE, 0x80000000u, &got), -RP_EINVAL);
	assert_string_equal(text(&from, buf, sizeof buf), "3-5");
	assert_string_equal(text(&got, buf, sizeof buf), "9");
	assert_int_equal(cpualloc_set_prio(a, (enum cpualloc_prio)4, rp_ids_none()), -RP_EINVAL);
	assert_true(rp_ids_empty(cpualloc_prio_cpus(a, (enum cpualloc_prio)4)));
	cpualloc_free(a);
	assert_null(cpualloc_free(NULL));
}

static void test_bad_machines(void **state)
{
	struct cpualloc_cpu cpus[] = {{.cpu = 3}, {.cpu = 3}};
	struct cpualloc_machine none = {cpus, NULL, 0, 0}, twice = {cpus, NULL, 2, 0},
				many = {cpus, NULL, RP_CPUS_MAX + 1, 0};
	struct cpualloc *a = NULL;
	assert_int_equal(cpualloc_new_machine(&none, &a), -RP_EINVAL);
	assert_int_equal(cpualloc_new_machine(&twice, &a), -RP_EINVAL);
	assert_int_equal(cpualloc_new_machine(&many, &a), -RP_EINVAL);
	cpus[1].cpu = RP_CPUS_MAX;
	assert_int_equal(cpualloc_new_machine(&twice, &a), -RP_EINVAL);
	assert_null(a);
	cpus[1].cpu = RP_CPUS_MAX - 1;
	assert_int_equal(cpualloc_new_machine(&twice, &a), 0);
	assert_int_equal(rp_ids_count(cpualloc_online(a)), 2);
	cpualloc_free(a);
}

/* ---- priorities ------------------------------------------------------------------------------ */

static const char *prio_text(const struct cpualloc *a, enum cpualloc_prio p)
{
	static char buf[4][256];
	struct rp_idset s;
	rp_idset_copy(&s, cpualloc_prio_cpus(a, p));
	return text(&s, buf[p], sizeof buf[p]);
}

static void check_prios(const struct cpualloc *a, const char *high, const char *normal,
			const char *low)
{
	assert_string_equal(prio_text(a, HIGH), high);
	assert_string_equal(prio_text(a, NORMAL), normal);
	assert_string_equal(prio_text(a, LOW), low);
}

static void test_prio_sources(void **state)
{
	struct machine mc = machine_new(&n4c16);
	struct cpualloc *a = NULL;
	assert_int_equal(cpualloc_new_machine(&mc.m, &a), 0);
	check_prios(a, "", "0-15", "");
	cpualloc_free(a);
	/* Base frequencies of package 0 differ; unknown ones are low. Those of package 1 do not. */
	for (uint32_t i = 0; i < 16; i++)
		mc.cpus[i].base_khz = i < 2 ? 3000000 : i < 4 ? 2500000 : i == 7 ? 0 : 2000000;
	assert_int_equal(cpualloc_new_machine(&mc.m, &a), 0);
	check_prios(a, "0-3", "8-15", "4-7");
	cpualloc_free(a);
	/* EPP wins over frequency, in the packages that have several; unknown is low. */
	for (uint32_t i = 0; i < 8; i++)
		mc.cpus[i].epp = i < 2 ? 255 : i == 2 ? RP_EPP_UNKNOWN : 128;
	for (uint32_t i = 8; i < 16; i++)
		mc.cpus[i].epp = 64;
	assert_int_equal(cpualloc_new_machine(&mc.m, &a), 0);
	check_prios(a, "3-7", "8-15", "0-2");
	/* Told by the caller. */
	struct rp_idset s = parse("8-9,20"), t = parse("3");
	assert_int_equal(cpualloc_set_prio(a, LOW, rp_ids_of(&s)), 0);
	assert_int_equal(cpualloc_set_prio(a, NONE, rp_ids_of(&t)), 0);
	check_prios(a, "4-7", "10-15", "0-2,8-9");
	assert_string_equal(prio_text(a, NONE), "3");
	cpualloc_free(a);
	machine_free(&mc);
}

static void test_prio_choices(void **state)
{
	/* High 4-5 and 12, low 8-11, none 2, the others normal. */
	static const struct choice table[] = {
		{"0-15", 1, HIGH, ANY, "12"},	   {"0-15", 2, HIGH, ANY, "4-5"},
		{"0-15", 3, HIGH, ANY, "4-5,12"},  {"4-5,8-15", 3, HIGH, PLAIN, "4-5,12"},
		{"0-15", 4, LOW, ANY, "8-11"},	   {"0-15", 5, LOW, ANY, "8-11,13"},
		{"0-15", 2, LOW, ANY, "8-9"},	   {"0-3,9", 2, LOW, ANY, "2-3"},
		{"0-15", 1, NORMAL, ANY, "13"},	   {"0-15", 2, NORMAL, ANY, "0-1"},
		{"0-15", 3, NORMAL, ANY, "13-15"}, {"2,4,12", 2, NORMAL, ANY, "2,4"},
		{"2,4,12", 1, NORMAL, ANY, "2"},   {"0-15", 1, NONE, ANY, "0"},
		{"2,8,13", 1, LOW, PLAIN, "8"},	   {"2-3,8", 2, LOW, 0, "2,8"},
	};
	struct cpualloc *a = allocator(&n4c16);
	struct rp_idset high = parse("4-5,12"), low = parse("8-11"), none = parse("2");
	assert_int_equal(cpualloc_set_prio(a, HIGH, rp_ids_of(&high)), 0);
	assert_int_equal(cpualloc_set_prio(a, LOW, rp_ids_of(&low)), 0);
	assert_int_equal(cpualloc_set_prio(a, NONE, rp_ids_of(&none)), 0);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		check_choice(a, table[i].from, table[i].n, table[i].prefer, table[i].flags,
			     table[i].expected);
	cpualloc_free(a);
}

/* Packages count as idle when those of their CPUs are that have the wanted priority. */
static void test_idle_packages(void **state)
{
	struct cpualloc *a = allocator(&n4c16);
	struct rp_idset high = parse("1,2,9,10,11");
	assert_int_equal(cpualloc_set_prio(a, HIGH, rp_ids_of(&high)), 0);
	check_choice(a, "0-15", 2, HIGH, CPUALLOC_IDLE_PACKAGES, "1-2");
	check_choice(a, "0-15", 3, HIGH, CPUALLOC_IDLE_PACKAGES, "9-11");
	check_choice(a, "1-15", 5, HIGH, CPUALLOC_IDLE_PACKAGES, "1-2,9-11");
	check_choice(a, "1-9,11-15", 4, HIGH, CPUALLOC_IDLE_PACKAGES, "1-4");
	check_choice(a, "1-15", 5, NORMAL, CPUALLOC_IDLE_PACKAGES, "8,12-15");
	check_choice(a, "0-15", 6, NORMAL, CPUALLOC_IDLE_PACKAGES, "0,3-7");
	check_choice(a, "0-15", 8, NONE, CPUALLOC_IDLE_PACKAGES, "0-7");
	/* By the older rules only whole packages count, those with most of the wanted CPUs
	 * first. */
	check_choice(a, "0-15", 5, HIGH, CPUALLOC_PLAIN, "0-2,10-11");
	check_choice(a, "0-15", 8, HIGH, CPUALLOC_PLAIN, "8-15");
	cpualloc_free(a);
}

/* ---- hybrid machines ------------------------------------------------------------------------- */

static void test_hybrid(void **state)
{
	static const struct choice table[] = {
		{"0-15", 4, LOW, ANY, "8-11"},	     {"0-15", 3, LOW, ANY, "8-10"},
		{"0-9,12-15", 4, LOW, ANY, "12-15"}, {"0-9,12-15", 5, LOW, ANY, "8,12-15"},
		{"0-15", 8, LOW, ANY, "8-15"},	     {"0-15", 10, LOW, ANY, "0-1,8-15"},
		{"0-15", 8, NORMAL, ANY, "0-7"},     {"0-15", 4, NONE, ANY, "0-3"},
		{"0-15", 9, NONE, ANY, "0-8"},	     {"0-15", 8, NONE, ANY, "0-7"},
		{"1-15", 6, NONE, ANY, "2-7"},
	};
	CHECK_CHOICES(laptop, table);
}

static void test_hybrid_clusters(void **state)
{
	/* Package 0: 0-3 performance, 4-5 6-7 8-9 clusters; package 1 the same from 10. */
	static const struct choice table[] = {
		{"0-19", 2, LOW, ANY, "4-5"},
		/* Together: from the die that can supply all, in order. */
		{"0-19", 4, LOW, ANY, "4-7"},
		{"0-5,8-19", 6, LOW, CPUALLOC_IDLE_CLUSTERS, "14-19"},
		{"0-5,8-19", 4, LOW, CPUALLOC_IDLE_CLUSTERS, "4-5,8-9"},
		{"0-5,8-19", 8, LOW, CPUALLOC_IDLE_CLUSTERS, "4-5,8-9,14-17"},
		/* Requests larger than a cluster and its remainder. */
		{"0-19", 3, LOW, ANY, "4-6"},
		{"0-19", 4, NORMAL, ANY, "0-3"},
		{"4-19", 4, NORMAL, ANY, "10-13"},
		{"0-3,10-13", 5, NORMAL, ANY, "0-3,10"},
	};
	CHECK_CHOICES(laptop2, table);
}

/* A cluster that alone has enough is the best one, also when it is too large to be taken. */
static void test_large_cluster(void **state)
{
	struct cpualloc_cpu cpus[14];
	struct cpualloc_machine m = {cpus, NULL, 14, 0};
	struct cpualloc *a = NULL;
	for (uint32_t i = 0; i < 14; i++)
		cpus[i] = (struct cpualloc_cpu){.cpu = i,
						.package = i >= 7 && i != 12,
						.cluster = i < 4    ? i / 2
							   : i < 7  ? 2
							   : i < 12 ? 3
								    : i,
						.core = i,
						.kind = i < 12 ? RP_CORE_EFFICIENT
							       : RP_CORE_PERFORMANCE,
						.epp = RP_EPP_UNKNOWN};
	assert_int_equal(cpualloc_new_machine(&m, &a), 0);
	check_choice(a, "0-3,5-13", 4, LOW, CPUALLOC_IDLE_CLUSTERS, "7-10");
	check_choice(a, "0-3,5-8,10-13", 4, LOW, CPUALLOC_IDLE_CLUSTERS, "0-3");
	check_choice(a, "0-3,5-13", 5, LOW, CPUALLOC_IDLE_CLUSTERS, "7-11");
	/* No cluster has enough CPUs: cluster by cluster, then a thread of the package that gave
	 * most. */
	check_choice(a, "0-13", 8, LOW, CPUALLOC_IDLE_CLUSTERS, "0-6,12");
	cpualloc_free(a);
}

static void test_efficient_stay_low(void **state)
{
	struct cpualloc *a = allocator(&laptop);
	struct rp_idset s = parse("7-8");
	assert_int_equal(cpualloc_set_prio(a, HIGH, rp_ids_of(&s)), 0);
	check_prios(a, "7", "0-6", "9-15");
	assert_string_equal(prio_text(a, NONE), "8");
	assert_int_equal(cpualloc_set_prio(a, LOW, rp_ids_of(&s)), 0);
	check_prios(a, "", "0-6", "7-15");
	cpualloc_free(a);
	/* All of one kind: it is not a hybrid machine. */
	struct machine mc = machine_new(&n4c16);
	for (uint32_t i = 0; i < mc.m.n_cpus; i++)
		mc.cpus[i].kind = RP_CORE_EFFICIENT;
	assert_int_equal(cpualloc_new_machine(&mc.m, &a), 0);
	check_prios(a, "", "", "0-15");
	assert_int_equal(cpualloc_set_prio(a, HIGH, rp_ids_of(&s)), 0);
	check_prios(a, "7-8", "", "0-6,9-15");
	cpualloc_free(a);
	machine_free(&mc);
}

/* ---- cache groups ---------------------------------------------------------------------------- */

static void test_groups_one_package(void **state)
{
	static const struct choice table[] = {
		/* Group g has CPUs 8g … 8g + 7 and their siblings from 64 on. */
		{"0-127", 16, NONE, ANY, "0-7,64-71"},
		{"0-127", 8, NONE, ANY, "0-3,64-67"},
		{"0-127", 24, NONE, ANY, "0-11,64-75"},
		{"0-127", 2, NONE, ANY, "0,64"},
		{"0-127", 1, NONE, ANY, "0"},
		/* Idle groups first, then used groups. */
		{"4-7,9-127", 16, NONE, ANY, "16-23,80-87"},
		{"4-127", 4, NONE, ANY, "8-9,72-73"},
		/* Used groups: one of the right size, else the largest first. */
		{"0-3,64-67,8-13,72-77,16-17,80-81", 8, NONE, ANY, "0-3,64-67"},
		{"0-3,64-67,8-13,72-77,16-17,80-81", 14, NONE, ANY, "0,8-13,64,72-77"},
		{"0-3,64-67,8-13,72-77,16-17,80-81", 20, NONE, ANY, "0-3,8-13,64-67,72-77"},
		{"0-3,64-67,8-13,72-77,16-17,80-81", 10, NONE, ANY, "8-12,72-76"},
		/* Idle and used together. */
		{"0-7,64-71,8-13,72-77,16-17,80-81", 20, NONE, ANY, "0-7,16-17,64-71,80-81"},
		{"0-7,64-71,8-13,72-77,16-18,80-82", 20, NONE, ANY, "0-9,64-73"},
	};
	CHECK_CHOICES(epyc, table);
}

static void test_groups_packages(void **state)
{
	static const struct choice table[] = {
		/* Group g has CPUs 8g … 8g + 7; eight groups a package. */
		{"0-127", 8, NONE, ANY, "0-7"},
		/* The tightest package that can supply all: here the second one. */
		{"0-63,72-127", 8, NONE, ANY, "72-79"},
		{"0-63,72-127", 60, NONE, ANY, "0-59"},
		/* 12 = 8 + 4: package 0 has no used group for the 4, package 1 does; but idle
		 * groups are split first. */
		{"0-63,68-127", 12, NONE, ANY, "72-83"},
		/* Never across packages, though idle groups would be there. */
		{"0-7,12-15,64-71,80-87,88-89", 18, NONE, ANY, "64-71,80-89"},
		{"0-7,12-15,64-71,88-89", 12, NONE, ANY, "0-7,12-15"},
		/* No package has enough: as if there were no groups. */
		{"0-15,64-79", 20, NONE, ANY, "0-15,64-67"},
		/* Used ones only: the die with enough, tightest, largest group first. */
		{"0-3,8-13,64-69,72-75,80-81", 10, NONE, ANY, "0-3,8-13"},
		{"0-3,8-13,64-69,72-75", 10, NONE, ANY, "0-3,8-13"},
		/* Equally full dies: the run of groups of one package ends before there are enough,
		 * so cores are taken. */
		{"0-4,8-12,64-69,72-75", 8, NONE, ANY, "0-3,8-11"},
	};
	CHECK_CHOICES(l3x16, table);
}

static void test_groups_dies(void **state)
{
	static const struct choice table[] = {
		/* Package 0: dies 0-7 and 8-15; groups of four. */
		{"0-31", 8, NONE, ANY, "0-7"},
		{"4-31", 4, NONE, ANY, "4-7"},
		{"0-3,8-15,16-31", 8, NONE, ANY, "8-15"},
		{"0-3,8-11,16-23,28-31", 8, NONE, ANY, "16-23"},
		{"0-3,8-15,16-19,20-21", 6, NONE, ANY, "16-21"},
		/* Used groups of the die of the idle one come first, larger ones first. */
		{"0-3,9-11,13-15,24-27,28-29", 7, NONE, ANY, "0-3,9-11"},
		{"4-7,1-3,9-11,12-15", 11, NONE, ANY, "1-7,12-15"},
		{"0-3,6-7,9-11", 7, NONE, ANY, "0-3,9-11"},
		{"0-3,6-7,9-11", 8, NONE, ANY, "0-3,6-7,10-11"},
	};
	CHECK_CHOICES(dies, table);
}

/* Machines whose caches make no groups. */
static void test_no_groups(void **state)
{
	struct machine mc = machine_new(&n4c16);
	struct cpualloc *a = NULL;
	/* Levels are only looked at up to the number of caches less one; here there are three. */
	struct shape few = l3x16;
	few.split_l1 = false;
	a = allocator(&few);
	check_choice(a, "1-63", 8, NONE, ANY, "2-9");
	cpualloc_free(a);
	/* A cache across packages, or two that overlap. */
	struct rp_idset across = parse("4-11"), left = parse("0-3"), over = parse("3-6"),
			apart = parse("12-15");
	struct cpualloc_cache caches[] = {{2, 0, rp_ids_of(&left)},
					  {2, 0, rp_ids_of(&across)},
					  {2, 0, rp_ids_of(&apart)},
					  {1, 0, rp_ids_none()}};
	struct rp_idset all = parse("0-15");
	struct cpualloc_cache padding[] = {
		caches[0], caches[1], caches[2], {3, 0, rp_ids_of(&all)}, {4, 0, rp_ids_of(&all)}};
	mc.m.caches = padding;
	mc.m.n_caches = 5;
	assert_int_equal(cpualloc_new_machine(&mc.m, &a), 0);
	check_choice(a, "2-7,12-15", 4, NONE, ANY, "2-5");
	cpualloc_free(a);
	padding[1].cpus = rp_ids_of(&over);
	assert_int_equal(cpualloc_new_machine(&mc.m, &a), 0);
	check_choice(a, "2-7,12-15", 4, NONE, ANY, "2-5");
	cpualloc_free(a);
	/* With the right ones in their place there are groups. */
	struct rp_idset right = parse("4-7,17,8191"), third = parse("8-11");
	padding[1].cpus = rp_ids_of(&right);
	padding[3] = (struct cpualloc_cache){2, 0, rp_ids_of(&third)};
	padding[3].level = 2;
	struct cpualloc_cache six[] = {padding[0],
				       padding[1],
				       padding[2],
				       padding[3],
				       {3, 0, rp_ids_of(&all)},
				       {4, 0, rp_ids_of(&all)}};
	mc.m.caches = six;
	mc.m.n_caches = 6;
	assert_int_equal(cpualloc_new_machine(&mc.m, &a), 0);
	check_choice(a, "2-7,12-15", 4, NONE, ANY, "12-15");
	check_choice(a, "2-7,13-15", 4, NONE, ANY, "4-7");
	cpualloc_free(a);
	machine_free(&mc);
}

/* Groups that lie across dies are ordered without regard to these. */
static void test_groups_across_dies(void **state)
{
	struct machine mc = machine_new(&n4c16);
	struct cpualloc *a = NULL;
	struct rp_idset sets[4], all = parse("0-15");
	struct cpualloc_cache caches[6];
	for (uint32_t i = 0; i < 16; i++) {
		mc.cpus[i].die = i % 4 >= 2 ? 0 : 1; /* the lower half of a group is on die 1 */
		mc.cpus[i].node = 0;
	}
	for (uint32_t g = 0; g < 4; g++) {
		rp_idset_clear(&sets[g]);
		rp_idset_add_range(&sets[g], 4 * g, 4 * g + 3);
		caches[g] = (struct cpualloc_cache){2, 0, rp_ids_of(&sets[g])};
	}
	caches[4] = (struct cpualloc_cache){3, 0, rp_ids_of(&all)};
	caches[5] = (struct cpualloc_cache){4, 0, rp_ids_of(&all)};
	mc.m.caches = caches;
	mc.m.n_caches = 6;
	assert_int_equal(cpualloc_new_machine(&mc.m, &a), 0);
	check_choice(a, "1-15", 4, NONE, ANY, "4-7");
	check_choice(a, "1-3,5-15", 4, NONE, ANY, "8-11");
	cpualloc_free(a);
	machine_free(&mc);
}

/* ---- large and sparse ------------------------------------------------------------------------ */

static void test_big(void **state)
{
	static const struct choice table[] = {
		{"0-4095", 8, NONE, ANY, "0-7"},
		{"0-4095", 512, NORMAL, ANY, "0-511"},
		{"1-4095", 513, NONE, ANY, "1,512-1023"},
		{"0-2,511,1535,4095", 4, NONE, ANY, "0-2,511"},
		{"0-2,511,1535,4095", 1, LOW, ANY, "0"},
		{"4095", 1, HIGH, ANY, "4095"},
	};
	CHECK_CHOICES(big, table);
}

static void test_sparse(void **state)
{
	/* Package ids are what orders packages, not CPU numbers. */
	struct cpualloc_cpu cpus[] = {
		{.cpu = 8000, .package = 3, .core = 7, .node = 900},
		{.cpu = 100, .package = 9, .core = 70, .node = 2},
		{.cpu = 4000, .package = 3, .core = 7, .node = 900},
		{.cpu = 101, .package = 9, .core = 71, .node = 2},
	};
	struct cpualloc_machine m = {cpus, NULL, 4, 0};
	struct cpualloc *a = NULL;
	assert_int_equal(cpualloc_new_machine(&m, &a), 0);
	check_choice(a, "100-101,4000,8000", 2, NONE, ANY, "4000,8000");
	check_choice(a, "100-101,4000", 1, NONE, 0, "4000");
	check_choice(a, "100-101,4000", 1, NONE, ANY, "100");
	check_choice(a, "100-101,4000,8000", 3, NONE, ANY, "100,4000,8000");
	cpualloc_free(a);
}

/* ---- the host's topology --------------------------------------------------------------------- */

struct fake {
	struct machine mc;
	struct rp_idset online;
	uint32_t bad_cpu, bad_cache;
	bool no_set;
};

static int32_t fake_set(void *ctx, uint32_t which, struct rp_ids *ret)
{
	struct fake *f = ctx;
	if (f->no_set || which != RP_CPUS_ONLINE)
		return -RP_ENOENT;
	*ret = rp_ids_of(&f->online);
	return 0;
}

static int32_t fake_cpu(void *ctx, uint32_t cpu, struct rp_cpu_info *out)
{
	struct fake *f = ctx;
	if (cpu == f->bad_cpu)
		return -RP_ENOENT;
	for (uint32_t i = 0; i < f->mc.m.n_cpus; i++) {
		const struct cpualloc_cpu *c = &f->mc.cpus[i];
		if (c->cpu != cpu)
			continue;
		*out = (struct rp_cpu_info){.size = sizeof *out,
					    .cpu = cpu,
					    .package_id = c->package,
					    .die_id = c->die,
					    .cluster_id = c->cluster,
					    .core_id = c->core,
					    .node_id = c->node,
					    .kind = c->kind,
					    .base_khz = c->base_khz,
					    .epp = c->epp};
		out->unit[RP_LEVEL_CORE] = c->core;
		return 0;
	}
	return -RP_ENOENT;
}

static uint32_t fake_n_caches(void *ctx)
{
	return ((struct fake *)ctx)->mc.m.n_caches;
}

static int32_t fake_cache(void *ctx, uint32_t index, struct rp_cache_info *out)
{
	struct fake *f = ctx;
	if (index == f->bad_cache)
		return -RP_ENOENT;
	*out = (struct rp_cache_info){.size = sizeof *out,
				      .level = f->mc.caches[index].level,
				      .cpus = f->mc.caches[index].cpus};
	return 0;
}

static const struct rp_host_topology fake_topology = {.size = sizeof fake_topology,
						      .set = fake_set,
						      .cpu = fake_cpu,
						      .n_caches = fake_n_caches,
						      .cache = fake_cache};

static void test_topology(void **state)
{
	struct fake f = {.mc = machine_new(&epyc),
			 .online = parse("0-63,64-120"),
			 .bad_cpu = 9999,
			 .bad_cache = 9999};
	struct cpualloc *a = NULL;
	assert_int_equal(cpualloc_new(&fake_topology, &f, &a), 0);
	assert_int_equal(rp_ids_count(cpualloc_online(a)), 121);
	/* The last group has lost seven siblings: nine CPUs, taken whole. */
	check_choice(a, "0-120", 16, NONE, ANY, "0-7,64-71");
	check_choice(a, "56-120", 9, NONE, ANY, "56-63,120");
	cpualloc_free(a);
	a = NULL;
	f.bad_cpu = 5;
	assert_int_equal(cpualloc_new(&fake_topology, &f, &a), -RP_ENOENT);
	f.bad_cpu = 9999;
	f.bad_cache = 1;
	assert_int_equal(cpualloc_new(&fake_topology, &f, &a), -RP_ENOENT);
	f.bad_cache = 9999;
	rp_idset_clear(&f.online);
	assert_int_equal(cpualloc_new(&fake_topology, &f, &a), -RP_EINVAL);
	f.no_set = true;
	assert_int_equal(cpualloc_new(&fake_topology, &f, &a), -RP_ENOENT);
	assert_null(a);
	machine_free(&f.mc);
}

static void test_unknown_cores(void **state)
{
	struct fake f = {.mc = machine_new(&n4c16),
			 .online = parse("0-15"),
			 .bad_cpu = 9999,
			 .bad_cache = 9999};
	struct cpualloc *a = NULL;
	for (uint32_t i = 0; i < 16; i++)
		if (i >= 8)
			f.mc.cpus[i].core = RP_IDSET_NONE;
	f.mc.m.n_caches = 0;
	assert_int_equal(cpualloc_new(&fake_topology, &f, &a), 0);
	/* Each CPU without a core number counts as a separate core. */
	check_choice(a, "1,3,5-15", 3, NONE, ANY, "6-8");
	check_choice(a, "0-15", 1, NONE, ANY, "8");
	cpualloc_free(a);
	machine_free(&f.mc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_offline_stay),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_bad_machines),
		cmocka_unit_test(test_prio_sources),
		cmocka_unit_test(test_prio_choices),
		cmocka_unit_test(test_idle_packages),
		cmocka_unit_test(test_hybrid),
		cmocka_unit_test(test_hybrid_clusters),
		cmocka_unit_test(test_large_cluster),
		cmocka_unit_test(test_efficient_stay_low),
		cmocka_unit_test(test_groups_one_package),
		cmocka_unit_test(test_groups_packages),
		cmocka_unit_test(test_groups_dies),
		cmocka_unit_test(test_no_groups),
		cmocka_unit_test(test_groups_across_dies),
		cmocka_unit_test(test_big),
		cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_topology),
		cmocka_unit_test(test_unknown_cores),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
