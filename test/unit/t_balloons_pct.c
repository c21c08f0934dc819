/* SPDX-License-Identifier: Apache-2.0 */
/* Tests balloons with CPU classes of Speed Select: where they grow, which zones and settings are
 * published, what is set up and restored. */
#include "test/unit/t_balloons.h"
#include "test/unit/t_punits.h"

/* n4c16: a punit a memory node. */
static const struct fake_punit four[] = {
	{.package = 0, .punit = 0, .cpus = "0-3", .supported = ALL, .buckets = {1, 2}},
	{.package = 0, .punit = 1, .cpus = "4-7", .supported = ALL, .buckets = {1, 2}},
	{.package = 1, .punit = 0, .cpus = "8-11", .supported = ALL, .buckets = {2, 3}},
	{.package = 1, .punit = 1, .cpus = "12-15", .supported = ALL, .buckets = {1}},
};

#define CLASSES                                                                                    \
	"cpuClasses: [{name: hi, pctPriority: high, publishExtendedResource: true}, "              \
	"{name: lo, pctPriority: low, publishExtendedResource: true}, {name: none}]"
#define CONFIG                                                                                     \
	"{reservedResources: {cpu: \"cpuset:15\"}, idleCPUClass: lo, " CLASSES ", balloonTypes: [" \
	"{name: h, cpuClass: hi, preferNewBalloons: true}, "                                       \
	"{name: l, cpuClass: lo, preferNewBalloons: true}]}"

static struct fake_host *begin(const char *config, bool with)
{
	return begin_on(&n4c16, four, with ? 4 : 0, config);
}

#define assert_within(f, c, n, cpus) within(fake_cpu_ids((f), (c)), (n), (cpus), __LINE__)

static void test_room(void **state)
{
	struct fake_host *f = begin(CONFIG, true);
	rp_ctr a = create(f, "a", "h", 2000);
	assert_within(f, a, 2, "8-11"); /* room for 3 */
	rp_ctr l = create(f, "l", "l", 2000);
	assert_within(f, l, 2, "0-7,12-14"); /* not among high ones */
	rp_ctr b = create(f, "b", "h", 2000), c = create(f, "c", "h", 2000);
	/* Room for 2 in each of the others of package 0, wherever the low one is. */
	assert_true(rp_ids_count(fake_cpu_ids(f, b)) == 2 && rp_ids_count(fake_cpu_ids(f, c)) == 2);
	struct rp_idset both;
	rp_idset_or(&both, fake_cpu_ids(f, b), fake_cpu_ids(f, c));
	for (uint32_t i = 0; i < 2; i++) {
		struct rp_idset node;
		rp_idset_clear(&node);
		rp_idset_add_range(&node, 4 * i, 4 * i + 3);
		assert_int_equal(rp_ids_count_and(rp_ids_of(&both), rp_ids_of(&node)), 2);
	}
	/* No punit has room for 2 now, package 1 has. */
	assert_within(f, create(f, "d", "h", 2000), 2, "8-14");
	/* A growing balloon's CPUs do not count against it. */
	fake_request(f, a, 3000, 0);
	assert_int_equal(fake_update(f, a), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, a)), 3);
	fake_host_free(f);
}

/* Low ones keep away from where high ones are, as long as they can. */
static void test_avoid(void **state)
{
	struct fake_host *f = begin(CONFIG, true);
	assert_within(f, create(f, "a", "h", 1000), 1, "8-11");
	for (unsigned i = 0; i < 11; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "l%u", i);
		assert_within(f, create(f, name, "l", 1000), 1, "0-7,12-14");
	}
	assert_within(f, create(f, "last", "l", 1000), 1, "8-11");
	fake_host_free(f);
}

/* Without Speed Select the same classes change nothing about where balloons are. */
static void test_same_without(void **state)
{
	static const char plain[] =
		"{reservedResources: {cpu: \"cpuset:15\"}, balloonTypes: ["
		"{name: h, preferNewBalloons: true}, {name: l, preferNewBalloons: true}]}";
	struct fake_host *f = begin(CONFIG, false), *g = begin(plain, false);
	static const char *const types[] = {"h", "l", "l", "h", "h"};
	for (unsigned i = 0; i < 5; i++) {
		char name[8], cpus[64];
		(void)snprintf(name, sizeof name, "c%u", i);
		(void)snprintf(cpus, sizeof cpus, "%s",
			       fake_cpus(g, create(g, name, types[i], 1000 + 500 * i)));
		expect(f, create(f, name, types[i], 1000 + 500 * i), cpus);
	}
	(void)fake_run_work(f);
	assert_string_equal(fake_sst_log(f), "");
	fake_host_free(f);
	fake_host_free(g);
}

/* ---- effects --------------------------------------------------------------------------------- */

static void test_effects(void **state)
{
	struct fake_host *f = begin(CONFIG, true);
	assert_string_equal(fake_sst_log(f), "");
	(void)fake_run_work(f);
	/* Set up, and all CPUs are idle. */
	assert_non_null(strstr(fake_sst_log(f), "0/0 tf 1"));
	assert_string_equal(fake_sst_in(f, 3), "0-15");
	fake_sst_log_clear(f);
	rp_ctr a = create(f, "a", "h", 2000);
	assert_within(f, a, 2, "8-11");
	char cpus[32];
	(void)snprintf(cpus, sizeof cpus, "%s", fake_cpus(f, a));
	(void)fake_run_work(f);
	assert_string_equal(fake_sst_in(f, 0), cpus);
	assert_null(strstr(fake_sst_log(f), "clos"));
	/* A reload that changes nothing, and a restart, write nothing. */
	fake_sst_log_clear(f);
	assert_int_equal(fake_configure(f, CONFIG), 0);
	(void)fake_run_work(f);
	assert_string_equal(fake_sst_log(f), "");
	assert_int_equal(fake_restart(f), 0);
	(void)fake_run_work(f);
	assert_string_equal(fake_sst_log(f), "");
	expect(f, a, cpus);
	/* Gone: back to the class of idle ones. */
	assert_int_equal(fake_release(f, a), 0);
	(void)fake_run_work(f);
	assert_string_equal(fake_sst_in(f, 3), "0-15");
	/* The end. */
	const struct rp_policy *p = fake_module_service(f, RP_POLICY_1);
	p->stop(fake_instance(f));
	(void)fake_run_work(f);
	assert_non_null(strstr(fake_sst_log(f), "1/1 tf 0; 1/1 cp 0"));
	assert_string_equal(fake_sst_in(f, 0), "0-15");
	fake_host_free(f);
}

/* ---- extended resources ---------------------------------------------------------------------- */

static void test_extended(void **state)
{
	struct fake_host *f = begin(CONFIG, true);
	/* 1 + 1 + 2 + 1 are guaranteed; no balloon has CPUs yet. */
	assert_string_equal(extended(f), "own cpuclass.balloons.nri.io/*\n"
					 "cpuclass.balloons.nri.io/hi 5\n"
					 "cpuclass.balloons.nri.io/lo 16\n");
	/* What a class has itself is the scheduler's to subtract; what others have is gone. */
	(void)create(f, "a", "h", 3000);
	assert_string_equal(extended(f), "own cpuclass.balloons.nri.io/*\n"
					 "cpuclass.balloons.nri.io/hi 5\n"
					 "cpuclass.balloons.nri.io/lo 13\n");
	fake_host_free(f);
	f = begin(CONFIG, false);
	assert_string_equal(extended(f), "own cpuclass.balloons.nri.io/*\n");
	assert_int_equal(fake_prepare_only(f, "{cpuClasses: [{name: \"a b\", pctPriority: high, "
					      "publishExtendedResource: true}]}"),
			 -RP_EINVAL);
	assert_non_null(strstr(fake_error(f), "publishExtendedResource needs a name"));
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),	     cmocka_unit_test(test_avoid),
		cmocka_unit_test(test_same_without), cmocka_unit_test(test_effects),
		cmocka_unit_test(test_extended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
