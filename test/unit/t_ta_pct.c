/* SPDX-License-Identifier: Apache-2.0 */
/* topology-aware with CPU classes of Speed Select: choice of pool and CPUs, published zones,
 * setup and undo. */
#include "test/unit/t_punits.h"

/* Two packages of two memory nodes of four CPUs; a punit a node. */
static const struct fake_machine machine = {.packages = 2, .nodes = 2, .cores = 2, .threads = 2};
static const struct fake_punit four[] = {
	{.package = 0, .punit = 0, .cpus = "0-3", .supported = ALL, .buckets = {1}},
	{.package = 0, .punit = 1, .cpus = "4-7", .supported = ALL, .buckets = {1, 2}},
	{.package = 1, .punit = 0, .cpus = "8-11", .supported = ALL, .buckets = {2, 3}},
	{.package = 1, .punit = 1, .cpus = "12-15", .supported = ALL, .buckets = {1}},
};

#define CLASSES                                                                                    \
	"cpuClasses: [{name: hi, pctPriority: high, publishExtendedResource: true}, "              \
	"{name: lo, pctPriority: low, publishExtendedResource: true}]"
#define CONFIG                                                                                     \
	"{packing: balanced, reservedResources: {cpu: \"cpuset:15\"}, sharedPoolCPUClass: lo, "    \
	"reservedPoolCPUClass: "                                                                   \
	"lo, defaultExclusiveCPUClass: hi, " CLASSES "}"

static struct fake_host *begin(bool with)
{
	return begin_on(&machine, four, with ? 4 : 0, CONFIG);
}

static rp_ctr create(struct fake_host *f, const char *name, int64_t mcpu, const char *class)
{
	char notes[128] = "";
	if (class)
		(void)snprintf(notes, sizeof notes, "cpu-class.resource-policy.nri.io=%s", class);
	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = name,
						  .qos = RP_QOS_GUARANTEED,
						  .cpu_request = mcpu,
						  .annotations = notes});
	if (fake_allocate(f, c))
		fail_msg("%s: %s", name, fake_error(f));
	return c;
}

#define assert_within(f, c, n, cpus) within(fake_exclusive_ids((f), (c)), (n), (cpus), __LINE__)

/* Pools without a punit that has room come after those with one. */
static void test_pools(void **state)
{
	struct fake_host *f = begin(true);
	rp_ctr a = create(f, "a", 3000, NULL);
	assert_within(f, a, 3, "8-11"); /* room for 3 is nowhere else */
	assert_non_null(strstr(fake_trail(f, a), "CPU class"));
	assert_within(f, create(f, "b", 2000, NULL), 2, "4-7");
	/* Another class goes by the other rules: the emptiest node, where nothing is high. */
	assert_within(f, create(f, "c", 2000, "lo"), 2, "0-3,12-14");
	/* Room for 2 is nowhere, nor in a package: as if there was no class. */
	assert_int_equal(rp_ids_count(fake_exclusive_ids(f, create(f, "d", 2000, NULL))), 2);
	fake_host_free(f);
}

/* Checks that, within a pool of several punits, exclusive CPUs come from a punit with room, and
 * that other containers avoid it. */
static void test_within_a_pool(void **state)
{
	static const struct fake_machine one = {
		.packages = 1, .nodes = 1, .cores = 4, .threads = 2};
	static const struct fake_punit two[] = {
		{.punit = 0, .cpus = "0-3", .supported = ALL, .buckets = {1}},
		{.punit = 1, .cpus = "4-7", .supported = ALL, .buckets = {2}},
	};
	struct fake_host *f = fake_host_new(&one);
	fake_speedselect(f, two, 2);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	if (fake_configure(f, "{packing: balanced, reservedResources: {cpu: \"cpuset:7\"}, "
			      "sharedPoolCPUClass: lo, defaultExclusiveCPUClass: lo, " CLASSES "}"))
		fail_msg("%s", fake_error(f));
	assert_within(f, create(f, "a", 2000, "hi"), 2, "4-6");
	assert_within(f, create(f, "b", 1000, NULL), 1, "0-3");
	assert_within(f, create(f, "c", 2000, NULL), 2, "0-3");
	fake_host_free(f);
}

static void test_without(void **state)
{
	struct fake_host *f = begin(false), *g = fake_host_new(&machine);
	assert_int_equal(fake_policy_open(g, &rp_module_1), 0);
	assert_int_equal(
		fake_configure(g, "{packing: balanced, reservedResources: {cpu: \"cpuset:15\"}}"),
		0);
	for (unsigned i = 1; i < 5; i++) {
		char name[8], cpus[64];
		(void)snprintf(name, sizeof name, "c%u", i);
		(void)snprintf(cpus, sizeof cpus, "%s",
			       fake_cpus(g, create(g, name, 1000 * i, NULL)));
		assert_string_equal(fake_cpus(f, create(f, name, 1000 * i, NULL)), cpus);
	}
	(void)fake_run_work(f);
	assert_string_equal(fake_sst_log(f), "");
	fake_host_free(f);
	fake_host_free(g);
}

static void test_effects(void **state)
{
	struct fake_host *f = begin(true);
	(void)fake_run_work(f);
	assert_non_null(strstr(fake_sst_log(f), "1/1 cp 1 ordered"));
	assert_string_equal(fake_sst_in(f, 3), "0-15");
	rp_ctr a = create(f, "a", 3000, NULL);
	char cpus[32];
	(void)snprintf(cpus, sizeof cpus, "%s", fake_exclusive(f, a));
	/* A refused one is tried again by the clock. */
	fake_sst_fail(f, "assoc", 5);
	(void)fake_run_work(f);
	assert_string_equal(fake_sst_in(f, 0), "");
	fake_sst_fail(f, NULL, 0);
	const struct rp_event ev = {
		.size = sizeof ev, .type = RP_EVENT_TIMER, .cookie = UINT64_C(0xc1a55)};
	assert_true(fake_timer(f, ev.cookie) > 0);
	assert_int_equal(fake_event(f, &ev), 0);
	(void)fake_run_work(f);
	/* Three of four: the core's other thread is with them. */
	assert_int_equal(strlen(fake_sst_in(f, 0)) > 0, 1);
	assert_int_equal(fake_release(f, a), 0);
	(void)fake_run_work(f);
	assert_string_equal(fake_sst_in(f, 3), "0-15");
	const struct rp_policy *p = fake_module_service(f, RP_POLICY_1);
	p->stop(fake_instance(f));
	(void)fake_run_work(f);
	assert_non_null(strstr(fake_sst_log(f), "1/1 tf 0; 1/1 cp 0"));
	fake_host_free(f);
}

static void test_extended(void **state)
{
	struct fake_host *f = begin(true);
	/* 1 + 1 + 2 + 1 of high ones. */
	assert_string_equal(extended(f), "own cpuclass.resource-policy.nri.io/*\n"
					 "cpuclass.resource-policy.nri.io/hi 5\n"
					 "cpuclass.resource-policy.nri.io/lo 16\n");
	(void)create(f, "a", 3000, NULL);
	assert_non_null(strstr(extended(f), "nri.io/hi 5\n"));
	fake_host_free(f);
	f = begin(false);
	assert_string_equal(extended(f), "own cpuclass.resource-policy.nri.io/*\n");
	fake_host_free(f);
}

/* Checks a platform that another program has set up, without classes of the configuration: its
 * high-priority CPUs are those of the allocator. */
static void test_priorities(void **state)
{
	struct fake_punit on[4];
	memcpy(on, four, sizeof on);
	for (int i = 0; i < 4; i++)
		on[i].enabled = ALL;
	struct fake_host *f = fake_host_new(&machine);
	fake_speedselect(f, on, 4);
	fake_sst_put(f, "0-9,12-15", 3);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(
		fake_configure(f, "{packing: balanced, reservedResources: {cpu: \"cpuset:15\"}, "
				  "defaultCPUPriority: high}"),
		0);
	assert_within(f, create(f, "a", 2000, NULL), 2, "10-11");
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pools),	 cmocka_unit_test(test_within_a_pool),
		cmocka_unit_test(test_without),	 cmocka_unit_test(test_effects),
		cmocka_unit_test(test_extended), cmocka_unit_test(test_priorities),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
