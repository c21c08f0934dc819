/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs the static policy's allocators choose, with nothing else of the policy around. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "modules/static/static.h"
#include "test/unit/fake_host.h"

static const struct fake_machine n4c16 = {.packages = 2, .nodes = 2, .cores = 2, .threads = 2};
static const struct fake_machine server_2s = {
	.packages = 2, .nodes = 2, .cores = 16, .threads = 2, .siblings = true};
static const struct fake_machine laptop = {.cores = 4, .threads = 2, .e_cores = 8};
static const struct fake_machine epyc = {
	.cores = 64, .threads = 2, .siblings = true, .l3_cores = 8};
static const struct fake_machine no_numa = {
	.packages = 2, .nodes = 2, .cores = 2, .threads = 2, .no_numa = true};
static const struct fake_machine one_thread = {.packages = 2, .cores = 4};

struct bench {
	struct fake_host *f;
	struct modhost h;
	struct machine *m;
};

static void open_bench(struct bench *b, const struct fake_machine *m)
{
	b->f = fake_host_new(m);
	assert_int_equal(modhost_init(&b->h, fake_rp_host(b->f), MODHOST_POLICY), 0);
	assert_int_equal(machine_new(&b->h, &b->m), 0);
}

static void close_bench(struct bench *b)
{
	assert_null(machine_free(b->m));
	fake_host_free(b->f);
}

static void parse(struct rp_idset *ret, const char *list)
{
	assert_int_equal(rp_idset_parse(ret, list, RP_CPUS_MAX), 0);
}

static void assert_set(struct rp_ids ids, const char *list, const char *what)
{
	char text[4096];
	(void)rp_ids_format(ids, text, sizeof text);
	if (strcmp(text, list) != 0)
		fail_msg("%s: expected %s, found %s", what, list, text);
}

/* ---- sequences ------------------------------------------------------------------------------- */

struct step {
	uint32_t n;
	const char *cpus;
};

struct sequence {
	const char *name;
	const struct fake_machine *machine;
	const char *reserved;
	uint32_t options;
	struct step steps[6];
};

static const struct sequence sequences[] = {
	{"n4c16, best fit", &n4c16, "0", 0, {{8, "8-15"}, {4, "4-7"}, {2, "2-3"}, {1, "1"}}},
	{"n4c16, odd",
	 &n4c16,
	 "0",
	 0,
	 {{2, "2-3"}, {3, "1,4-5"}, {1, "6"}, {4, "8-11"}, {4, "12-15"}}},
	{"n4c16, socket first", &n4c16, "0", 0, {{5, "1,4-7"}, {2, "2-3"}, {2, "8-9"}}},
	{"n4c16, socket and node", &n4c16, "0", 0, {{12, "4-15"}}},
	{"server-2s",
	 &server_2s,
	 "0,64",
	 0,
	 {{2, "1,65"},
	  {4, "2-3,66-67"},
	  {6, "4-6,68-70"},
	  {32, "16-31,80-95"},
	  {40, "7-10,32-47,71-74,96-111"}}},
	{"server-2s, 40", &server_2s, "0,64", 0, {{40, "1-4,16-31,65-68,80-95"}}},
	{"laptop", &laptop, "0", 0, {{1, "8"}, {2, "9-10"}, {3, "11-13"}, {4, "2-3,14-15"}}},
	{"epyc, caches",
	 &epyc,
	 "0,64",
	 OPT_ALIGN_CACHE,
	 {{16, "8-15,72-79"},
	  {8, "1-4,65-68"},
	  {4, "5-6,69-70"},
	  {20, "16-25,80-89"},
	  {5, "26-28,90-91"}}},
	{"epyc, no caches",
	 &epyc,
	 "0,64",
	 0,
	 {{16, "1-8,65-72"}, {8, "9-12,73-76"}, {4, "13-14,77-78"}}},
	/* a thread of the core that the 5 broke, before another one */
	{"epyc, cache threads", &epyc, "0,64", OPT_ALIGN_CACHE, {{5, "1-3,65-66"}, {3, "4,67-68"}}},
	{"epyc, larger than any cache has room",
	 &epyc,
	 "0,8,16,24,32,40,48,56",
	 OPT_ALIGN_CACHE,
	 {{18, "1-7,9-10,65-71,73-74"}}},
	{"server-2s, across cores",
	 &server_2s,
	 "0,64",
	 OPT_DISTRIBUTE_CORES,
	 {{4, "1-4"}, {4, "5-8"}}},
	{"n4c16, across cores",
	 &n4c16,
	 "0-1",
	 OPT_DISTRIBUTE_CORES,
	 {{3, "2,4,6"}, {2, "3,5"}, {2, "7-8"}}},
	{"no NUMA: packages within the node",
	 &no_numa,
	 "0",
	 0,
	 {{8, "8-15"}, {4, "2-5"}, {2, "6-7"}}},
	{"no SMT", &one_thread, "0", 0, {{2, "1-2"}, {4, "4-7"}, {1, "3"}}},
	{"none", &n4c16, "0", 0, {{0, ""}}},
};

static void run_sequence(const struct sequence *q)
{
	struct bench b;
	struct rp_idset free, set;
	open_bench(&b, q->machine);
	parse(&set, q->reserved);
	rp_idset_andnot(&free, rp_ids_of(&b.m->online), rp_ids_of(&set));
	for (size_t i = 0; i < sizeof q->steps / sizeof q->steps[0] && q->steps[i].cpus; i++) {
		assert_int_equal(
			kubelet_take(b.m, q->options, rp_ids_of(&free), q->steps[i].n, &set), 0);
		assert_set(rp_ids_of(&set), q->steps[i].cpus, q->name);
		rp_idset_andnot(&free, rp_ids_of(&free), rp_ids_of(&set));
	}
	close_bench(&b);
}

static void test_sequences(void **state)
{
	for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++)
		run_sequence(&sequences[i]);
}

static void test_too_few(void **state)
{
	struct bench b;
	struct rp_idset free, set;
	open_bench(&b, &n4c16);
	parse(&free, "1-3,100");
	const uint32_t options[] = {0, OPT_DISTRIBUTE_NUMA, OPT_DISTRIBUTE_CORES, OPT_ALIGN_CACHE};
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
		assert_int_equal(kubelet_take(b.m, options[i], rp_ids_of(&free), 4, &set),
				 -RP_ENOSPC);
	close_bench(&b);
}

/* ---- distribution ---------------------------------------------------------------------------- */

struct distribution {
	uint32_t n, options;
	uint32_t per_node[4];
	const char *cpus; /* NULL: any of the nodes' */
};

#define NUMA OPT_DISTRIBUTE_NUMA
static const struct distribution distributions[] = {
	{8, NUMA, {0, 8, 0, 0}, NULL},
	{32, NUMA, {0, 32, 0, 0}, NULL},
	{33, NUMA, {0, 17, 16, 0}, NULL},
	{40, NUMA, {0, 20, 20, 0}, "16-25,32-41,80-89,96-105"},
	{40, NUMA | OPT_ALIGN_SOCKET, {0, 0, 20, 20}, NULL},
	{42, NUMA, {0, 21, 21, 0}, NULL},
	{42, NUMA | OPT_FULL_PCPUS_ONLY, {0, 22, 20, 0}, NULL},
	{66, NUMA, {0, 22, 22, 22}, NULL},
	{100, NUMA, {25, 25, 25, 25}, NULL},
	/* more than an even share of the poorest node: packed */
	{124, NUMA, {28, 32, 32, 32}, NULL},
	{126, NUMA, {30, 32, 32, 32}, NULL},
	/* not a whole number of cores: packed */
	{33, NUMA | OPT_FULL_PCPUS_ONLY, {1, 32, 0, 0}, NULL},
};

static void check_distribution(struct bench *b, struct rp_ids free, const struct distribution *d)
{
	struct rp_idset set;
	char what[64];
	(void)snprintf(what, sizeof what, "%u with options %x", d->n, d->options);
	assert_int_equal(kubelet_take(b->m, d->options, free, d->n, &set), 0);
	assert_int_equal(rp_ids_count(rp_ids_of(&set)), d->n);
	assert_true(rp_ids_subset(rp_ids_of(&set), free));
	if (d->cpus)
		assert_set(rp_ids_of(&set), d->cpus, what);
	for (uint32_t i = 0; i < 4; i++) {
		const struct machine_unit *u = &b->m->level[MACHINE_NODE].units[i];
		if (machine_count_free(u, rp_ids_of(&set)) != d->per_node[i])
			fail_msg("%s: node %u has %u CPUs, expected %u", what, i,
				 machine_count_free(u, rp_ids_of(&set)), d->per_node[i]);
	}
}

static void test_distributions(void **state)
{
	struct bench b;
	struct rp_idset free, reserved;
	open_bench(&b, &server_2s);
	parse(&reserved, "0,64");
	rp_idset_andnot(&free, rp_ids_of(&b.m->online), rp_ids_of(&reserved));
	for (size_t i = 0; i < sizeof distributions / sizeof distributions[0]; i++)
		check_distribution(&b, rp_ids_of(&free), &distributions[i]);
	close_bench(&b);
}

/* Checks the distribution in rounds over a package whose free CPUs match the request and are
 * unevenly spread. */
static void test_distribution_aligned_uneven(void **state)
{
	struct bench b;
	struct rp_idset free, set;
	open_bench(&b, &n4c16);
	parse(&free, "0-1,4-7,8-9,12-13");
	assert_int_equal(
		kubelet_distributed(b.m, NUMA | OPT_ALIGN_SOCKET, rp_ids_of(&free), 5, &set), 0);
	assert_set(rp_ids_of(&set), "0-1,4-6", "aligned");
	assert_int_equal(kubelet_distributed(b.m, NUMA, rp_ids_of(&free), 0, &set), DISTRIBUTE_NOT);
	close_bench(&b);
}

/* Returns the best balance of any split over k nodes for a group size, computed independently
 * and slowly. */
static double best_balance(const uint32_t *n_free, uint32_t nodes, uint32_t n, uint32_t mask)
{
	uint32_t k = (uint32_t)__builtin_popcount(mask), each = n / k, rest = n - each * k;
	double best = 1e9;
	for (uint32_t sub = 0; sub < 1u << nodes; sub++) {
		if ((sub & ~mask) || (uint32_t)__builtin_popcount(sub) != rest)
			continue;
		double sum = 0, sq = 0;
		int fits = 1;
		for (uint32_t i = 0; i < nodes; i++) {
			uint32_t give = (mask >> i & 1) * each + (sub >> i & 1);
			fits = fits && give <= n_free[i];
			double left = (double)n_free[i] - give;
			sum += left;
			sq += left * left;
		}
		double var = sq / nodes - sum / nodes * (sum / nodes);
		if (fits && var < best)
			best = var;
	}
	return best;
}

static void check_optimal(struct bench *b, struct rp_ids free, uint32_t n)
{
	uint32_t n_free[8], given[8], nodes = b->m->level[MACHINE_NODE].n_units, used = 0;
	double sum = 0, sq = 0, best = 1e9;
	struct rp_idset set;
	if (kubelet_distributed(b->m, NUMA, free, n, &set))
		return;
	assert_int_equal(rp_ids_count(rp_ids_of(&set)), n);
	assert_true(rp_ids_subset(rp_ids_of(&set), free));
	for (uint32_t i = 0; i < nodes; i++) {
		n_free[i] = machine_count_free(&b->m->level[MACHINE_NODE].units[i], free);
		given[i] = machine_count_free(&b->m->level[MACHINE_NODE].units[i], rp_ids_of(&set));
		used += given[i] > 0;
		if (!n_free[i])
			return; /* the reference counts all nodes */
		sum += n_free[i] - given[i];
		sq += (double)(n_free[i] - given[i]) * (n_free[i] - given[i]);
	}
	for (uint32_t mask = 1; mask < 1u << nodes; mask++) {
		double v = 1e9;
		if ((uint32_t)__builtin_popcount(mask) == used)
			v = best_balance(n_free, nodes, n, mask);
		best = v < best ? v : best;
	}
	double mine = sq / nodes - sum / nodes * (sum / nodes);
	/* Scores are rounded to thousandths, so two that differ less are equal. */
	if (mine > best + 0.05)
		fail_msg("%u CPUs: variance %g, could be %g", n, mine, best);
}

static void test_distribution_is_optimal(void **state)
{
	const struct fake_machine m = {.packages = 2, .nodes = 4, .cores = 4, .threads = 2};
	struct bench b;
	open_bench(&b, &m);
	srandom(7);
	for (int round = 0; round < 300; round++) {
		struct rp_idset free;
		rp_idset_clear(&free);
		RP_IDS_EACH (cpu, rp_ids_of(&b.m->online))
			if (random() % 4)
				rp_idset_add(&free, cpu);
		uint32_t n_free = rp_ids_count(rp_ids_of(&free));
		check_optimal(&b, rp_ids_of(&free), 1 + (uint32_t)random() % n_free);
	}
	close_bench(&b);
}

/* Checks that the search is bounded: sixteen and forty nodes take no longer than the limit
 * allows. */
static void test_distribution_is_bounded(void **state)
{
	const struct fake_machine wide[] = {
		{.packages = 2, .nodes = 8, .cores = 4, .threads = 2},
		{.packages = 2, .nodes = 20, .cores = 4},
		{.packages = 2, .nodes = 40, .cores = 2},
	};
	for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
		struct bench b;
		struct rp_idset set;
		open_bench(&b, &wide[i]);
		for (uint32_t n = 1; n < b.m->n_cpus; n += 7) {
			assert_int_equal(kubelet_take(b.m, NUMA, rp_ids_of(&b.m->online), n, &set),
					 0);
			assert_int_equal(rp_ids_count(rp_ids_of(&set)), n);
		}
		close_bench(&b);
	}
}

/* ---- hints ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum hint_policy policy;
	int align;
	const char *free;
	uint32_t n;
	const char *nodes; /* NULL: refused */
	int preferred;
	const char *cpus;
} hints[] = {
	{"lowest node", HINT_RESTRICTED, 0, "1-15", 2, "0", 1, "1-3"},
	{"first with room", HINT_RESTRICTED, 0, "1-15", 4, "1", 1, "4-7"},
	{"two nodes", HINT_RESTRICTED, 0, "1-15", 6, "0-1", 1, "1-7"},
	{"lowest pair", HINT_RESTRICTED, 0, "1,4-7,8-11", 8, "1-2", 1, "4-11"},
	{"fragmented", HINT_RESTRICTED, 0, "1-3,5-7,9-11", 4, NULL, 0, NULL},
	{"fragmented", HINT_SINGLE_NODE, 0, "1-3,5-7,9-11", 4, NULL, 0, NULL},
	{"fragmented", HINT_BEST_EFFORT, 0, "1-3,5-7,9-11", 4, "0-1", 0, "1-3,5-7"},
	{"aligned", HINT_RESTRICTED, 1, "1-3,5-7,9-11", 4, "0-1", 1, "1-3,5-7"},
	{"aligned, all of the package", HINT_RESTRICTED, 1, "1-3,5-7,9-11", 3, "0", 1, "1-3,5-7"},
	{"never aligned", HINT_RESTRICTED, 1, "1,5,9,13", 4, NULL, 0, NULL},
	{"never aligned", HINT_BEST_EFFORT, 1, "1,5,9,13", 4, "0-3", 0, "1,5,9,13"},
	{"single", HINT_SINGLE_NODE, 0, "1-15", 4, "1", 1, "4-7"},
	{"too large for one node", HINT_SINGLE_NODE, 0, "1-15", 5, NULL, 0, NULL},
	{"too few", HINT_BEST_EFFORT, 0, "1-3", 4, NULL, 0, NULL},
	{"larger than the machine", HINT_BEST_EFFORT, 1, "0-15", 17, NULL, 0, NULL},
};

static void test_hints(void **state)
{
	struct bench b;
	open_bench(&b, &n4c16);
	for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
		struct rp_idset free;
		struct hint h;
		parse(&free, hints[i].free);
		int32_t r = hint_find(b.m, NULL, hints[i].policy, hints[i].align, rp_ids_of(&free),
				      hints[i].n, &h);
		if (r != (hints[i].nodes ? 0 : -RP_ENOSPC))
			fail_msg("%s: result %d", hints[i].name, r);
		if (r)
			continue;
		assert_set(rp_ids_of(&h.nodes), hints[i].nodes, hints[i].name);
		assert_set(rp_ids_of(&h.cpus), hints[i].cpus, hints[i].name);
		assert_int_equal(h.preferred, hints[i].preferred);
	}
	close_bench(&b);
}

/* Tries all masks in the kubelet's order; 0: none is good enough. */
static uint32_t best_mask(struct bench *b, struct rp_ids free, uint32_t n, int align,
			  int *ret_preferred)
{
	const struct machine_level_units *nodes = &b->m->level[MACHINE_NODE];
	uint32_t n_nodes = nodes->n_units,
		 per_package = n_nodes / b->m->level[MACHINE_PACKAGE].n_units;
	uint32_t fewest = n_nodes + 1, best = 0;
	*ret_preferred = 0;
	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t mask = 1; mask < 1u << n_nodes; mask++) {
			uint32_t cap = 0, has = 0, packages = 0,
				 k = (uint32_t)__builtin_popcount(mask);
			for (uint32_t i = 0; i < n_nodes; i++) {
				if (!(mask >> i & 1))
					continue;
				cap += nodes->units[i].n_cpus;
				has += machine_count_free(&nodes->units[i], free);
				packages |= 1u << (i / per_package);
			}
			if (!pass) {
				fewest = cap >= n && k < fewest ? k : fewest;
				continue;
			}
			int preferred = k == fewest ||
					(align && (uint32_t)__builtin_popcount(packages) ==
							  (fewest + per_package - 1) / per_package);
			if (has < n || (*ret_preferred && !preferred))
				continue;
			if (!best || preferred > *ret_preferred ||
			    k < (uint32_t)__builtin_popcount(best)) {
				best = mask;
				*ret_preferred = preferred;
			}
		}
	}
	return best;
}

static void test_hints_like_all_masks(void **state)
{
	const struct fake_machine m = {.packages = 2, .nodes = 4, .cores = 2, .threads = 2};
	struct bench b;
	open_bench(&b, &m);
	srandom(11);
	for (int round = 0; round < 2000; round++) {
		struct rp_idset free;
		struct hint h = {0};
		int align = round & 1, preferred;
		rp_idset_clear(&free);
		RP_IDS_EACH (cpu, rp_ids_of(&b.m->online))
			if (random() % 3)
				rp_idset_add(&free, cpu);
		uint32_t n = 1 + (uint32_t)random() % 20, mask = 0;
		uint32_t want = best_mask(&b, rp_ids_of(&free), n, align, &preferred);
		int32_t r = hint_find(b.m, NULL, HINT_BEST_EFFORT, align, rp_ids_of(&free), n, &h);
		assert_int_equal(r, want ? 0 : -RP_ENOSPC);
		if (r)
			continue;
		RP_IDS_EACH (node, rp_ids_of(&h.nodes))
			mask |= 1u << node;
		assert_int_equal(mask, want);
		assert_int_equal(h.preferred, preferred);
	}
	close_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_too_few),
		cmocka_unit_test(test_distributions),
		cmocka_unit_test(test_distribution_aligned_uneven),
		cmocka_unit_test(test_distribution_is_optimal),
		cmocka_unit_test(test_distribution_is_bounded),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_hints_like_all_masks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
