/* SPDX-License-Identifier: Apache-2.0 */
/* Pool sizes of dynamic-pools by requests and by measured usage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "modules/dynamic-pools/dynamic-pools.h"
#include "test/unit/fake_host.h"

extern const struct rp_module rp_module_1;

#define N 4u /* reserved, shared and two others */

/* Numbers of all pools except reserved. */
struct row {
	uint32_t n_cpus;
	struct {
		int64_t mcpu, weight;
		uint32_t n_ctrs;
	} pools[N - 1];
	uint32_t sizes[N - 1]; /* all 0: it does not fit */
};

static const struct row rows[] = {
	/* no containers, or no measured usage */
	{12, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {12, 0, 0}},
	{12, {{0, 0, 1}, {1, 0, 1}, {2001, 0, 2}}, {8, 1, 3}},
	/* by weight; pools without containers have none */
	{18, {{2000, 100, 1}, {2000, 200, 1}, {2000, 100, 1}}, {5, 8, 5}},
	{12, {{0, 100, 1}, {0, 0, 0}, {0, 200, 0}}, {12, 0, 0}},
	{12, {{2000, 5, 1}, {0, 900, 0}, {2000, 5, 1}}, {6, 0, 6}},
	/* the remainder goes to the pool with the highest weight; at a tie, to shared or the
	 * first pool */
	{10, {{1000, 1, 1}, {1000, 1, 1}, {1000, 1, 1}}, {4, 3, 3}},
	{10, {{1000, 1, 1}, {1000, 2, 1}, {1000, 2, 1}}, {2, 5, 3}},
	{11, {{1000, 1, 1}, {1000, 2, 1}, {1000, 2, 1}}, {2, 5, 4}},
	/* shared keeps a CPU if it has containers, and none if it is empty */
	{12, {{0, 0, 1}, {1000, 7, 1}, {0, 0, 0}}, {1, 11, 0}},
	{12, {{0, 0, 0}, {1000, 7, 1}, {0, 0, 0}}, {0, 12, 0}},
	{12, {{0, 1, 1}, {1000, 1, 1}, {0, 0, 0}}, {6, 6, 0}},
	/* the requests need all CPUs */
	{6, {{1000, 9, 1}, {1001, 1, 1}, {2500, 0, 3}}, {1, 2, 3}},
	{6, {{0, 0, 1}, {2000, 0, 1}, {3000, 0, 1}}, {1, 2, 3}},
	/* more than there are */
	{6, {{1000, 0, 1}, {2001, 0, 1}, {2001, 0, 1}}, {0, 0, 0}},
	{5, {{0, 0, 1}, {2000, 0, 1}, {3000, 0, 1}}, {0, 0, 0}},
	{1, {{0, 0, 1}, {0, 0, 1}, {0, 0, 0}}, {0, 0, 0}},
};

static void sizes_follow(void **state)
{
	for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		static struct rp_plan p;
		struct pool *pools = p.pools;
		uint32_t size[POOLS_MAX], all = 0;
		p.n = N;
		pools[POOL_RESERVED] = (struct pool){.mcpu = 99000, .weight = 99, .n_ctrs = 9};
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

static rp_ctr create_in(struct fake_host *f, const char *name, const char *pool, int64_t mcpu)
{
	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = name,
						  .pod_name = name,
						  .pod_namespace = pool,
						  .qos = RP_QOS_BURSTABLE,
						  .cpu_request = mcpu});
	assert_int_equal(fake_allocate(f, c), 0);
	return c;
}

/* Checks that a dropped sync() leaves the pools unchanged. */
static void pools_outlive_a_dropped_sync(void **state)
{
	static const struct fake_machine n4c16 = {
		.packages = 2, .nodes = 2, .cores = 2, .threads = 2};
	struct fake_host *f = fake_host_new(&n4c16);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0\"}, "
					   "dynamicPoolTypes: [{name: p, namespaces: [p]}, "
					   "{name: q, namespaces: [q]}]}"),
			 0);
	const struct rp_policy *policy = fake_module_service(f, RP_POLICY_1);
	rp_ctr a = create_in(f, "a", "p", 2000), b = create_in(f, "b", "q", 3000);
	char before[4096];
	(void)snprintf(before, sizeof before, "%s", fake_zones(f));
	fake_request(f, a, 1000, 0);
	fake_request(f, b, 9000, 0);
	assert_int_equal(fake_sync(f), 0);
	assert_string_not_equal(fake_zones(f), before);
	fake_request(f, a, 2000, 0);
	fake_request(f, b, 3000, 0);
	assert_int_equal(policy->rolled_back(fake_instance(f)), RP_RESYNC);
	assert_string_equal(fake_zones(f), before);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_follow),
		cmocka_unit_test(pools_outlive_a_dropped_sync),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
