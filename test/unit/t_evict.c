/* SPDX-License-Identifier: Apache-2.0 */
/* evict: which pods go, in which order, and how many of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "modules/evict/evict.h"

#define ALL ((1u << EVICT_RULES) - 1)

/* Returns a BE pod that requests one overcommitted CPU and uses half of it. */
static struct evict_pod pod(const char *name)
{
	return (struct evict_pod){.name = name,
				  .priority = 5500,
				  .is_be = true,
				  .opted_in = true,
				  .features = ALL,
				  .used = {500, 1000},
				  .request = {[EVICT_BATCH] = {1000, 1000}}};
}

/* Checks which pods are evicted; `expected` is a list like "b a". */
static void goes(struct evict_pod *list, uint32_t n, enum evict_rule rule, uint32_t amount,
		 int64_t release, int64_t priority_max, const char *expected)
{
	const struct evict_need need = {.rule = rule,
					.amount = amount,
					.lent = EVICT_BATCH,
					.release = release,
					.priority_max = priority_max};
	char text[64] = "";
	uint32_t chosen = evict_choose(list, n, &need);
	for (uint32_t i = 0; i < chosen; i++)
		(void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
			       i ? " " : "", list[i].name);
	assert_string_equal(text, expected);
}

static void test_be_by_priority_then_share(void **state)
{
	struct evict_pod list[] = {pod("a"), pod("b"), pod("c"), pod("d")};
	list[1].used[RP_NR_CPU] = 900;
	list[2].priority = 5000;
	list[3].request[EVICT_BATCH][RP_NR_CPU] = 0;
	goes(list, 4, EVICT_BE_CPU, RP_NR_CPU, 2000, RP_NOT_SET, "c d b");
	goes(list, 4, EVICT_BE_CPU, RP_NR_CPU, 1, RP_NOT_SET, "c");
	goes(list, 4, EVICT_BE_CPU, RP_NR_CPU, 0, RP_NOT_SET, "");
}

static void test_be_by_memory(void **state)
{
	struct evict_pod list[] = {pod("a"), pod("b"), pod("c")};
	list[2].used[RP_NR_MEMORY] = 2000;
	goes(list, 3, EVICT_BE_MEMORY, RP_NR_MEMORY, 2500, RP_NOT_SET, "c b");
	list[0].is_be = list[1].is_be = list[2].is_be = false;
	goes(list, 3, EVICT_BE_MEMORY, RP_NR_MEMORY, 2500, RP_NOT_SET, "");
}

static void test_who_has_opted_in(void **state)
{
	struct evict_pod list[] = {pod("a"), pod("b"), pod("c"), pod("d"), pod("e")};
	list[0].opted_in = false;
	list[1].priority = 6000; /* beyond the threshold */
	list[2].order = -1;
	list[3].sub_priority = -1;
	goes(list, 5, EVICT_CPU, RP_NR_CPU, 5000, 5999, "c d e");
	for (unsigned i = 0; i < 5; i++)
		list[i].features = strcmp(list[i].name, "e") == 0 ? 1u << EVICT_MEMORY : ALL;
	goes(list, 5, EVICT_CPU, RP_NR_CPU, 5000, 5999, "c d");
	goes(list, 5, EVICT_MEMORY, RP_NR_MEMORY, 5000, 5999, "c d e");
}

static void test_by_what_is_lent(void **state)
{
	struct evict_pod list[] = {pod("a"), pod("b"), pod("c")};
	list[0].priority = 7500; /* mid */
	list[1].opted_in = false; /* ignored by this rule */
	goes(list, 3, EVICT_CPU_ALLOCATABLE, RP_NR_CPU, 1001, 7999, "c b");
}

/* Checks that a pod that is already leaving counts as freed and is not evicted again. */
static void test_what_leaves_already(void **state)
{
	struct evict_pod list[] = {pod("a"), pod("b"), pod("c")};
	list[1].leaves = true;
	goes(list, 3, EVICT_BE_CPU, RP_NR_CPU, 1000, RP_NOT_SET, "");
	goes(list, 3, EVICT_BE_CPU, RP_NR_CPU, 1001, RP_NOT_SET, "c");
	goes(list, 3, EVICT_BE_CPU, RP_NR_CPU, 9999, RP_NOT_SET, "c a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_be_by_priority_then_share),
		cmocka_unit_test(test_be_by_memory),
		cmocka_unit_test(test_who_has_opted_in),
		cmocka_unit_test(test_by_what_is_lent),
		cmocka_unit_test(test_what_leaves_already),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
