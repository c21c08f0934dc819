/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fake_host.h"

extern const struct rp_module rp_module_1;

static const struct fake_machine n4c16 = {.packages = 2, .nodes = 2, .cores = 2, .threads = 2};

static struct fake_host *start(const char *config)
{
	struct fake_host *f = fake_host_new(&n4c16);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, config), 0);
	return f;
}

static rp_ctr create(struct fake_host *f, const char *name, const char *ns, uint32_t flags)
{
	rp_ctr c =
		fake_ctr(f, &(struct fake_ctr){.name = name, .pod_namespace = ns, .flags = flags});
	assert_int_equal(fake_allocate(f, c), 0);
	return c;
}

static void test_placement(void **state)
{
	struct fake_host *f = start("{availableResources: {cpu: \"cpuset:2-15\"}, "
				    "reservedResources: {cpu: 1500m}}");
	rp_ctr sys = create(f, "sys", "kube-system", 0), app = create(f, "app", "default", 0);
	assert_string_equal(fake_cpus(f, sys), "2-3");
	assert_string_equal(fake_cpus(f, app), "4-15");
	assert_string_equal(fake_trail(f, sys), "namespace kube-system: reserved CPUs\n");
	assert_string_equal(fake_cpus(f, create(f, "keep", "default", RP_CTR_PRESERVE_CPU)), "");
	assert_int_equal(fake_update(f, app), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0,15\"}}"), 0);
	assert_string_equal(fake_cpus(f, sys), "0,15");
	assert_string_equal(fake_cpus(f, app), "1-14");
	assert_int_equal(fake_release(f, sys), 0);
	assert_int_equal(fake_set_offline(f, ""), 0);
	fake_host_free(f);
}

static void test_hotplug(void **state)
{
	struct fake_host *f = start("{reservedResources: {cpu: 1}}");
	rp_ctr sys = create(f, "sys", "kube-system", 0), app = create(f, "app", "default", 0);
	assert_int_equal(fake_set_offline(f, "0,8-15"), 0);
	assert_string_equal(fake_cpus(f, sys), "1");
	assert_string_equal(fake_cpus(f, app), "2-7");
	assert_string_equal(fake_cpus(f, create(f, "late", "default", 0)), "2-7");
	/* Reserved CPUs stay reserved, with or without CPU 0. */
	assert_int_equal(fake_set_offline(f, ""), 0);
	assert_string_equal(fake_cpus(f, sys), "1");
	assert_string_equal(fake_cpus(f, app), "0,2-15");
	/* Without other CPUs, containers run on the reserved ones. */
	assert_int_equal(fake_set_offline(f, "1-15"), 0);
	assert_string_equal(fake_cpus(f, app), "0");
	fake_host_free(f);
}

static rp_ctr guaranteed(struct fake_host *f, const char *name, int64_t mcpu)
{
	return fake_ctr(f, &(struct fake_ctr){.name = name,
					      .pod_namespace = "default",
					      .qos = RP_QOS_GUARANTEED,
					      .cpu_request = mcpu});
}

static void test_exclusive(void **state)
{
	struct fake_host *f = start("{reservedResources: {cpu: 2}}");
	rp_ctr app = create(f, "app", "default", 0), db = guaranteed(f, "db", 4000);
	assert_int_equal(fake_allocate(f, db), 0);
	assert_string_equal(fake_exclusive(f, db), "2-5");
	assert_string_equal(fake_cpus(f, db), "2-5");
	assert_string_equal(fake_cpus(f, app), "6-15");
	rp_ctr part = guaranteed(f, "part", 1500), big = guaranteed(f, "big", 10000);
	assert_int_equal(fake_allocate(f, part), 0);
	assert_string_equal(fake_cpus(f, part), "6-15");
	/* A CPU must remain for shared containers. */
	assert_int_equal(fake_allocate(f, big), -RP_ENOSPC);
	assert_non_null(strstr(fake_error(f), "fewer than 10 CPUs are free"));
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_request(f, db, 2000, 2000);
	assert_int_equal(fake_update(f, db), 0);
	assert_int_equal(rp_ids_count(fake_exclusive_ids(f, db)), 2);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, app)), 12);
	fake_host_free(f);
}

static void test_exclusive_come_back(void **state)
{
	struct fake_host *f = start("{reservedResources: {cpu: \"cpuset:0\"}}");
	rp_ctr app = create(f, "app", "default", 0), db = guaranteed(f, "db", 4000);
	assert_int_equal(fake_allocate(f, db), 0);
	assert_int_equal(fake_set_offline(f, "4-15"), 0);
	assert_string_equal(fake_exclusive(f, db), "");
	assert_string_equal(fake_cpus(f, db), "1-3");
	assert_string_equal(fake_degraded(f, db), "not enough CPUs to make its CPUs exclusive");
	assert_int_equal(fake_set_offline(f, "0,8-15"), 0);
	assert_int_equal(rp_ids_count(fake_exclusive_ids(f, db)), 4);
	assert_null(fake_degraded(f, db));
	assert_int_equal(fake_release(f, db), 0);
	assert_string_equal(fake_cpus(f, app), "1-7");
	fake_host_free(f);
}

static void test_unpinned(void **state)
{
	struct fake_host *f = start("{reservedResources: {cpu: 1}, pinCPU: false}");
	assert_string_equal(fake_cpus(f, create(f, "app", "default", 0)), "");
	fake_host_free(f);
}

static const struct {
	const char *config, *error;
} bad[] = {
	{"{reservedResources: {cpu: 17}}", "17 reserved CPUs requested, but only 16 are available"},
	{"{reservedResources: {cpu: 0}}", "need one CPU each at least"},
	{"{pinCPU: true}", "need one CPU each at least"},
	{"{reservedResources: {cpu: \"cpuset:3,16\"}}", "reserved CPUs 16 are not available"},
	{"{reservedResources: {cpu: 16}}", "need one CPU each at least"},
	{"{reservedResources: {cpu: much}}", "expected a quantity"},
	{"{reservedResources: {cpu: 1}, availableResources: {cpu: 3}}",
	 "a quantity cannot be used here"},
};

static void test_bad_configs(void **state)
{
	struct fake_host *f = start("{reservedResources: {cpu: 1}}");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(fake_configure(f, bad[i].config), -RP_EINVAL);
		if (!strstr(fake_error(f), bad[i].error))
			fail_msg("%s: %s", bad[i].config, fake_error(f));
	}
	assert_int_equal(fake_prepare_only(f, "{reservedResources: {cpu: 2}}"), 0);
	assert_string_equal(fake_cpus(f, create(f, "app", "default", 0)), "1-15");
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placement),
		cmocka_unit_test(test_unpinned),
		cmocka_unit_test(test_hotplug),
		cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_exclusive_come_back),
		cmocka_unit_test(test_bad_configs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
