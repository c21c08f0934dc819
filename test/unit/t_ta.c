/* SPDX-License-Identifier: Apache-2.0 */
/* The topology-aware policy in cases that stories do not cover: the clock, unusual machines, and
 * the reports on containers that no longer fit. */
#include "test/unit/t_ta.h"

#define PLAIN "{reservedResources: {cpu: 750m}, preferIsolatedCPUs: false}"

static rp_ctr best_effort(struct fake_host *f, const char *name)
{
	return add(f, &(struct fake_ctr){.name = name, .qos = RP_QOS_BEST_EFFORT});
}

#define REFUSED(f, why, ...)                                                                       \
	assert_refused(f, &(struct fake_ctr){.name = "refused", __VA_ARGS__}, why)
#define G .qos = RP_QOS_GUARANTEED

/* ---- where containers go --------------------------------------------------------------------- */

static void test_cold_start(void **state)
{
	struct fake_machine m = {.packages = 1, .cores = 4, .memory_nodes = 1};
	struct fake_host *f = fake_host_new(&m);
	fake_node_info(f, 1)->type = RP_MEM_PMEM;
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, PLAIN), 0);
	rp_ctr c = guaranteed(f, "a", 500, "cold-start.resource-policy.nri.io={duration: 60s}");
	assert_string_equal(fake_mems(f, c), "1");
	assert_int_equal(fake_timer(f, 1), -1);
	struct rp_event started = {.size = sizeof started, .type = RP_EVENT_STARTED, .object = c};
	fake_set_now(f, 1000);
	assert_int_equal(fake_event(f, &started), 0);
	assert_int_equal(fake_timer(f, 1), 60000);
	fake_set_now(f, 41000);
	assert_int_equal(fake_restart(f), 0);
	assert_string_equal(fake_mems(f, c), "1");
	assert_int_equal(fake_timer(f, 1), 20000);
	fake_set_now(f, 61000);
	struct rp_event timer = {.size = sizeof timer, .type = RP_EVENT_TIMER, .cookie = 1};
	assert_int_equal(fake_event(f, &timer), 0);
	assert_string_equal(fake_mems(f, c), "0-1");
	REFUSED(f, "duration", .cpu_request = 500, G,
		.annotations = "cold-start.resource-policy.nri.io={duration: 2h}");
	REFUSED(f, "annotation cold-start", .cpu_request = 500, G,
		.annotations = "cold-start.resource-policy.nri.io={");
	fake_host_free(f);
}

/* ---- the edges ------------------------------------------------------------------------------- */

static void test_machines(void **state)
{
	static const struct {
		struct fake_machine m;
		const char *zones;
	} machines[] = {
		{{.cores = 1}, "zone socket #0 (socket)\n"},
		{{.cores = 4, .no_numa = true}, "zone socket #0 (socket)\n"},
		{{.packages = 2, .cores = 2}, "zone socket #1 (socket) in root\n"},
		{{.nodes = 2, .cores = 4, .l3_cores = 2}, "zone NUMA node #1/L3 cache #"},
		{{.packages = 8, .cores = 512}, "zone socket #7 (socket) in root\n"},
		{{.packages = 2, .cores = 2, .memory_nodes = 2}, "memory set: 0-3\n"},
		{{.cores = 2, .threads = 2, .e_cores = 4}, "zone socket #0 (socket)\n"},
		{{.packages = 2, .cores = 4, .offline = "1,4-6"}, "zone socket #1"},
	};
	for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
		struct fake_host *f = start(&machines[i].m, "{reservedResources: {cpu: 1}}");
		if (!strstr(fake_zones(f), machines[i].zones))
			fail_msg("machine %zu: no \"%s\" in\n%s", i, machines[i].zones,
				 fake_zones(f));
		rp_ctr c = best_effort(f, "a");
		assert_true(fake_cpus(f, c)[0]);
		assert_non_null(
			strstr(fake_metrics(f), "zone_cpu_capacity_cores{zone=\"socket #0\""));
		fake_host_free(f);
	}
}

/* ---- reports --------------------------------------------------------------------------------- */

/* Checks that a running container that no longer fits reports its missing resources until it
 * fits. */
static void test_misfit_says_why(void **state)
{
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr big = guaranteed(f, "big", 8000, NULL), other = guaranteed(f, "other", 4000, NULL);
	assert_null(fake_degraded(f, big));
	/* ten CPUs are left for twelve */
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0\"}, "
					   "availableResources: {cpu: \"cpuset:0-10\"}}"),
			 -RP_ENOSPC);
	if (!strstr(fake_error(f), "would no longer fit: ") ||
	    !strstr(fake_error(f), "; stop it first"))
		fail_msg("error: %s", fake_error(f));
	assert_int_equal(fake_configure(f, PLAIN), 0);
	assert_null(fake_degraded(f, big));
	assert_null(fake_degraded(f, other));
	/* A lack caused by the topology does not refuse the configuration, and a report is not
	 * repeated by the next configuration. */
	assert_int_equal(fake_set_offline(f, "11-15"), 0);
	assert_int_equal(fake_configure(f, PLAIN), 0);
	rp_ctr misfit = fake_degraded(f, big) ? big : other;
	const char *why = fake_degraded(f, misfit);
	assert_non_null(why);
	if (!strstr(why, "runs on the remaining CPUs") || !strstr(why, "needs "))
		fail_msg("reason: %s", why);
	assert_true(fake_cpus(f, misfit)[0]);
	assert_int_equal(fake_release(f, misfit == big ? other : big), 0);
	assert_null(fake_degraded(f, misfit));
	fake_host_free(f);
}

/* Checks that a container keeps the CPU that another policy assigned to it, except if another
 * container fits only without it. Such a configuration is not refused. */
static void test_misfit_beside_adopted(void **state)
{
	static const char config[] = "{reservedResources: {cpu: \"cpuset:0\"}}";
	const struct fake_machine m = {
		.packages = 2, .nodes = 2, .cores = 2, .threads = 2, .isolated = "14-15"};
	static const struct {
		int64_t wide; /* request, of 13 CPUs that are neither reserved nor isolated */
		const char *cpus; /* CPUs of "one" afterwards */
	} rows[] = {{11500, "2"}, {12500, "14"}};
	for (uint32_t i = 0; i < 2; i++) {
		struct fake_host *f = start(&m, config);
		rp_ctr one = fake_ctr(f, &(struct fake_ctr){.name = "one",
							    .qos = RP_QOS_GUARANTEED,
							    .state = RP_STATE_RUNNING,
							    .cpu_request = 1000});
		fake_decide(f, one, "2", NULL, NULL);
		rp_ctr wide = fake_ctr(f, &(struct fake_ctr){.name = "wide",
							     .qos = RP_QOS_BURSTABLE,
							     .state = RP_STATE_RUNNING,
							     .cpu_request = rows[i].wide});
		if (fake_configure(f, config))
			fail_msg("configuration refused: %s", fake_error(f));
		assert_string_equal(fake_cpus(f, one), rows[i].cpus);
		assert_null(fake_degraded(f, wide));
		fake_host_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cold_start),
		cmocka_unit_test(test_machines),
		cmocka_unit_test(test_misfit_says_why),
		cmocka_unit_test(test_misfit_beside_adopted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
