/* SPDX-License-Identifier: Apache-2.0 */
/* Topology hints: every row of what the kubelet's managers are known to answer, and how long it
 * takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "modules/lib/private/hints.h"

#define LISTS_MAX 2u

struct lists {
	struct hint hints[LISTS_MAX][8];
	struct hints resources[LISTS_MAX];
};

/* Parses a list of hints: "0,1P;2-" are two hints, "any-" is any node, "" is an empty list and
 * NULL has no preference. */
static void read_list(struct lists *l, uint32_t i, const char *text)
{
	l->resources[i] = (struct hints){.list = text ? l->hints[i] : NULL, .align = true};
	while (text && *text) {
		struct hint *h = &l->hints[i][l->resources[i].n++];
		h->nodes = !strncmp(text, "any", 3) ? HINTS_ANY : 0;
		for (; *text && *text != ';'; text++) {
			if (*text >= '0' && *text <= '9')
				h->nodes |= UINT64_C(1) << (*text - '0');
			h->preferred = *text == 'P';
		}
		text += *text == ';';
	}
}

static void write_hint(const struct hint *h, char *buf)
{
	char *p = buf;
	if (h->nodes == HINTS_ANY)
		p += sprintf(p, "any");
	for (uint32_t i = 0; i < 10 && h->nodes != HINTS_ANY; i++)
		if (h->nodes >> i & 1)
			p += sprintf(p, "%s%u", p == buf ? "" : ",", i);
	(void)sprintf(p, "%s", h->preferred ? "P" : "-");
}

static void check(enum hints_policy policy, uint32_t n_nodes, const char *first, const char *second,
		  uint32_t n, const char *expected)
{
	struct lists l = {0};
	struct hint ret[LISTS_MAX] = {{HINTS_ANY, true}, {HINTS_ANY, true}};
	char text[32];
	read_list(&l, 0, first);
	read_list(&l, 1, second);
	/* Without any provider, the merge treats the requester as a provider without a
	 * preference. */
	bool admits = hints_merge(policy, (UINT64_C(1) << n_nodes) - 1, l.resources, n, ret);
	write_hint(&ret[0], text);
	assert_string_equal(text, expected);
	assert_int_equal(admits, policy == HINTS_BEST_EFFORT || ret[0].preferred);
	if (n > 1)
		assert_memory_equal(&ret[0].nodes, &ret[1].nodes, sizeof ret[0].nodes);
}

static void test_merge(void **state)
{
	static const struct {
		uint32_t n_nodes;
		const char *first, *second, *best, *single; /* single NULL: not said */
	} rows[] = {
		{2, NULL, NULL, "0,1P", "anyP"},
		{2, "", NULL, "0,1-", "any-"},
		{2, "anyP", NULL, "0,1P", "anyP"},
		{2, "any-", NULL, "0,1-", "any-"},
		{2, "0P", "0P", "0P", "0P"},
		{2, "0P", "1P", "0,1-", "any-"},
		{2, "0P", "0-", "0-", "any-"},
		{2, "0P", "0,1P", "0-", "any-"},
		{2, "0P;1P", "0P", "0P", "0P"},
		{2, "0P;1P", "0,1-", "0-", "any-"},
		{2, "0P;1P", "0P;0,1-", "0P", "0P"},
		{2, "1P;0,1-", "0P;1P;0,1-", "1P", "1P"},
		{3, "0,1P;0,2P", "0,1P;0,2P", "0,1P", NULL},
		{4, "0,1,2,3-;0,1-", "0,1-", "0,1-", NULL},
		{4, "0,1,2,3-;0,1-", "0,3-", "0,3-", NULL},
		{4, "0,1,2,3-;0,1-", "2,3-", "2,3-", NULL},
		{4, "0,1,2,3-;0,1-", "1,2-;2,3-", "1,2-", NULL},
		{4, "0,1,2,3-;0,1-", "1,2,3-;1,2-;1,3-;2,3-", "1,2-", NULL},
		{2, "0,1P", "0P;1P;0,1-", NULL, "any-"},
	};
	for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].best) {
			check(HINTS_BEST_EFFORT, rows[i].n_nodes, rows[i].first, rows[i].second, 2,
			      rows[i].best);
			check(HINTS_RESTRICTED, rows[i].n_nodes, rows[i].first, rows[i].second, 2,
			      rows[i].best);
			/* in whatever order */
			check(HINTS_BEST_EFFORT, rows[i].n_nodes, rows[i].second, rows[i].first, 2,
			      rows[i].best);
		}
		if (rows[i].single)
			check(HINTS_SINGLE_NUMA_NODE, rows[i].n_nodes, rows[i].first,
			      rows[i].second, 2, rows[i].single);
	}
	check(HINTS_NONE, 2, "0P", "1P", 2, "anyP");
}

static void check_numeric(const char *first, const char *second, const char *expected)
{
	struct lists l = {0};
	struct hint ret[LISTS_MAX];
	char text[64] = "refused";
	read_list(&l, 0, first);
	read_list(&l, 1, second);
	if (hints_merge(HINTS_NUMERIC, 3, l.resources, 2, ret)) {
		write_hint(&ret[0], text);
		(void)strcat(text, " ");
		write_hint(&ret[1], text + strlen(text));
	}
	assert_string_equal(text, expected);
}

static void test_numeric(void **state)
{
	check_numeric("", "0P", "refused");
	check_numeric(NULL, "0P", "anyP 0P");
	check_numeric(NULL, NULL, "anyP anyP");
	check_numeric("0P;1P", "1P", "1P 1P");
	check_numeric("0P", "1P", "refused");
	check_numeric("0-", "0-", "refused");
	check_numeric("0-;0,1P", "0-;0,1-", "0,1P 0,1-");
	assert_true(hints_merge(HINTS_NUMERIC, 3, NULL, 0, NULL));
}

/* Devices beside aligned CPUs and memory: as many preferred ones as can be, then the smallest. */
static void test_numeric_others(void **state)
{
	const struct hint cpus[] = {{1, true}, {2, true}, {3, false}};
	const struct hint device[] = {{3, false}, {2, true}};
	const struct hints three[] = {{cpus, 3, true}, {cpus, 3, true}, {device, 2, false}};
	struct hint ret[3];
	assert_true(hints_merge(HINTS_NUMERIC, 3, three, 3, ret));
	assert_int_equal(ret[0].nodes, 2);
	assert_int_equal(ret[1].nodes, 2);
	assert_int_equal(ret[2].nodes, 2);
	assert_true(ret[2].preferred);
}

static void test_masks(void **state)
{
	uint64_t masks[HINTS_MAX];
	assert_int_equal(hints_masks(0, 1, masks), 0);
	assert_int_equal(hints_masks(0xa, 0, masks), 3);
	assert_int_equal(masks[0], 0x2);
	assert_int_equal(masks[1], 0x8);
	assert_int_equal(masks[2], 0xa);
	assert_int_equal(hints_masks(0xff, 1, masks), 255);
	assert_int_equal(hints_masks(0xff, 8, masks), 1);
	assert_int_equal(hints_masks(0xff, 9, masks), 0);
	assert_int_equal(hints_masks(0xffff, 1, masks), 16 + 120);
	assert_int_equal(hints_masks(UINT64_MAX, 64, masks), 1);
	assert_true(masks[0] == UINT64_MAX);
	assert_int_equal(hints_masks(UINT64_MAX, 1, masks), HINTS_MAX);
}

/* Returns the answer of the straightforward algorithm, which tries every combination. */
static struct hint slow(uint64_t all, const struct hint *a, uint32_t n, const struct hint *b,
			uint32_t m)
{
	struct hint best = {0, false};
	uint32_t least_a = 64, least_b = 64;
	for (uint32_t i = 0; i < n; i++)
		least_a = hints_size(a[i].nodes) < least_a ? hints_size(a[i].nodes) : least_a;
	for (uint32_t i = 0; i < m; i++)
		least_b = hints_size(b[i].nodes) < least_b ? hints_size(b[i].nodes) : least_b;
	uint32_t wanted = least_a > least_b ? least_a : least_b;
	for (uint32_t i = 0; i < n * m; i++) {
		const struct hint *x = &a[i / m], *y = &b[i % m];
		struct hint c = {x->nodes & y->nodes & all,
				 x->preferred && y->preferred && x->nodes == y->nodes};
		uint32_t size = hints_size(c.nodes), had = hints_size(best.nodes);
		bool narrower = size != had ? size < had : c.nodes < best.nodes;
		if (!c.nodes)
			continue;
		bool take = !best.nodes			    ? true
			    : c.preferred != best.preferred ? c.preferred
			    : c.preferred || had > wanted   ? narrower
			    : had == wanted		    ? size == wanted && narrower
			    : size > wanted		    ? false
			    : size == wanted || size > had  ? true
							    : size == had && narrower;
		if (take)
			best = c;
	}
	return best.nodes ? best : (struct hint){all, false};
}

static uint64_t any_of(uint64_t nodes)
{
	uint64_t r = ((uint64_t)rand() << 32 ^ (uint64_t)rand() << 16 ^ (uint64_t)rand()) & nodes;
	return r ? r : nodes & -nodes;
}

/* Checks topologies with few and with many nodes, which use different algorithms. */
static void test_random(void **state)
{
	static const uint64_t machines[] = {0x3, 0xff, 0xa5, 0xfff, 0xffff, 0xff00ff00ff0f};
	srand(1);
	for (uint32_t round = 0; round < 6000; round++) {
		struct hint a[12], b[12], ret[2];
		uint32_t n = 1 + (uint32_t)rand() % 12, m = 1 + (uint32_t)rand() % 12;
		uint64_t all = machines[round % 6];
		for (uint32_t i = 0; i < 12; i++) {
			a[i] = (struct hint){any_of(all), rand() % 2};
			b[i] = (struct hint){any_of(all), rand() % 2};
		}
		const struct hints both[] = {{a, n, false}, {b, m, false}};
		struct hint expected = slow(all, a, n, b, m);
		(void)hints_merge(HINTS_RESTRICTED, all, both, 2, ret);
		assert_int_equal(ret[0].nodes, expected.nodes);
		assert_int_equal(ret[0].preferred, expected.preferred);
	}
}

/* Checks that requests at every limit are answered. The test does not measure time. */
static void test_large(void **state)
{
	static struct hint list[HINTS_MAX];
	uint64_t masks[HINTS_MAX];
	struct hints resources[HINTS_RESOURCES_MAX];
	struct hint ret[HINTS_RESOURCES_MAX];
	uint32_t n = hints_masks(UINT64_MAX, 1, masks);
	for (uint32_t i = 0; i < n; i++)
		list[i] = (struct hint){masks[i], false};
	for (uint32_t i = 0; i < HINTS_RESOURCES_MAX; i++)
		resources[i] = (struct hints){list, n, i < 2};
	assert_true(
		hints_merge(HINTS_BEST_EFFORT, UINT64_MAX, resources, HINTS_RESOURCES_MAX, ret));
	assert_int_equal(ret[0].nodes, 1);
	assert_false(hints_merge(HINTS_NUMERIC, UINT64_MAX, resources, HINTS_RESOURCES_MAX, ret));
	assert_false(hints_merge(HINTS_BEST_EFFORT, 1, resources, HINTS_RESOURCES_MAX + 1, ret));
}

/* Fills a list with so many node sets, the last one common to all lists, that the combinations
 * exceed the search limit. */
static uint32_t fill(struct hint *list, unsigned seed, struct hint last)
{
	uint64_t x = seed;
	for (uint32_t i = 0; i < HINTS_MAX - 1; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		list[i] = (struct hint){x | 1, i % 2};
	}
	list[HINTS_MAX - 1] = last;
	return HINTS_MAX;
}

/* Checks that a hint that all resources prefer is found at any position in the lists. */
static void test_preferred_past_the_bound(void **state)
{
	static struct hint lists[HINTS_RESOURCES_MAX][HINTS_MAX];
	const struct hint common = {UINT64_C(3) << 62, true}, any = {HINTS_ANY, true};
	struct hints resources[HINTS_RESOURCES_MAX];
	struct hint ret[HINTS_RESOURCES_MAX];
	for (uint32_t i = 0; i < HINTS_RESOURCES_MAX; i++)
		resources[i] = (struct hints){lists[i], fill(lists[i], i + 1, common), false};
	for (uint32_t n = 2; n <= HINTS_RESOURCES_MAX; n++) {
		assert_true(hints_merge(HINTS_RESTRICTED, UINT64_MAX, resources, n, ret));
		assert_true(ret[0].preferred && ret[0].nodes == common.nodes);
		assert_true(hints_merge(HINTS_BEST_EFFORT, UINT64_MAX, resources, n, ret));
		assert_true(ret[0].preferred && ret[0].nodes == common.nodes);
	}
	/* A resource that accepts any nodes adopts the nodes of the others. */
	lists[0][HINTS_MAX - 1] = any;
	assert_true(hints_merge(HINTS_RESTRICTED, UINT64_MAX, resources, 3, ret));
	assert_true(ret[0].preferred && ret[0].nodes == common.nodes);
	/* A resource that does not prefer the common nodes makes the result not preferred. */
	lists[0][HINTS_MAX - 1] = (struct hint){common.nodes, false};
	assert_false(hints_merge(HINTS_RESTRICTED, UINT64_MAX, resources, 3, ret));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_numeric),
		cmocka_unit_test(test_numeric_others),
		cmocka_unit_test(test_masks),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_preferred_past_the_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
