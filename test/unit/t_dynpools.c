/* SPDX-License-Identifier: Apache-2.0 */
/* How large the pools of dynamic-pools are, by requests and by what was measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "modules/dynamic-pools/dynamic-pools.h"

#define N 4u /* reserved, shared and two others */

/* Of the pools but reserved. */
struct row {
	uint32_t n_cpus;
	struct {
		int64_t mcpu, weight;
		uint32_t n_ctrs;
	} pools[N - 1];
	uint32_t sizes[N - 1]; /* all 0: it does not fit */
};

static const struct row rows[] = {
	/* nobody is there, or nothing was measured */
	{12, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {12, 0, 0}},
	{12, {{0, 0, 1}, {1, 0, 1}, {2001, 0, 2}}, {8, 1, 3}},
	/* by weight; pools without containers have none */
	{18, {{2000, 100, 1}, {2000, 200, 1}, {2000, 100, 1}}, {5, 8, 5}},
	{12, {{0, 100, 1}, {0, 0, 0}, {0, 200, 0}}, {12, 0, 0}},
	{12, {{2000, 5, 1}, {0, 900, 0}, {2000, 5, 1}}, {6, 0, 6}},
	/* what does not divide goes to the highest, and to shared or the first one of two that
	 * are */
	{10, {{1000, 1, 1}, {1000, 1, 1}, {1000, 1, 1}}, {4, 3, 3}},
	{10, {{1000, 1, 1}, {1000, 2, 1}, {1000, 2, 1}}, {2, 5, 3}},
	{11, {{1000, 1, 1}, {1000, 2, 1}, {1000, 2, 1}}, {2, 5, 4}},
	/* shared keeps a CPU for whoever is there, and none if nobody is */
	{12, {{0, 0, 1}, {1000, 7, 1}, {0, 0, 0}}, {1, 11, 0}},
	{12, {{0, 0, 0}, {1000, 7, 1}, {0, 0, 0}}, {0, 12, 0}},
	{12, {{0, 1, 1}, {1000, 1, 1}, {0, 0, 0}}, {6, 6, 0}},
	/* all are asked for */
	{6, {{1000, 9, 1}, {1001, 1, 1}, {2500, 0, 3}}, {1, 2, 3}},
	{6, {{0, 0, 1}, {2000, 0, 1}, {3000, 0, 1}}, {1, 2, 3}},
	/* more than there are */
	{6, {{1000, 0, 1}, {2001, 0, 1}, {2001, 0, 1}}, {0, 0, 0}},
	{5, {{0, 0, 1}, {2000, 0, 1}, {3000, 0, 1}}, {0, 0, 0}},
	{1, {{0, 0, 1}, {0, 0, 1}, {0, 0, 0}}, {0, 0, 0}},
};

static void sizes_follow(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		static struct rp_plan p;
		struct pools_pool *pools = p.pools;
		uint32_t size[POOLS_MAX], all = 0;
		p.n = N;
		pools[POOL_RESERVED] =
			(struct pools_pool){.mcpu = 99000, .weight = 99, .n_ctrs = 9};
		rp_idset_clear(&p.bounds.cpus.rest);
		rp_idset_add_range(&p.bounds.cpus.rest, 1, rows[i].n_cpus);
		for (uint32_t k = 1; k < N; k++) {
			pools[k].mcpu = rows[i].pools[k - 1].mcpu;
			pools[k].weight = rows[i].pools[k - 1].weight;
			pools[k].n_ctrs = rows[i].pools[k - 1].n_ctrs;
			all += rows[i].sizes[k - 1];
		}
		print_message("row %u\n", i);
		assert_int_equal(size_fits(&p), all > 0);
		if (!all)
			continue;
		size_all(&p, size);
		assert_int_equal(size[POOL_RESERVED], 0);
		for (uint32_t k = 1; k < N; k++)
			assert_int_equal(size[k], rows[i].sizes[k - 1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_follow)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
