/* SPDX-License-Identifier: Apache-2.0 */
/* The static policy in cases that stories do not cover: unusual machines, its saved state,
 * decisions of other policies, and the exact texts of its reports. */
#include "test/unit/t_static.h"

/* ---- assignments ----------------------------------------------------------------------------- */

/* Containers without a change are not staged again. */
static void test_work_follows_change(void **state)
{
	struct fake_host *f = start(&n4c16, RESERVED_0);
	for (int i = 0; i < 5; i++)
		best_effort(f, "be");
	rp_ctr c = best_effort(f, "last");
	assert_int_equal(fake_n_changed(f), 1);
	rp_ctr g = guaranteed(f, "g", 2);
	assert_int_equal(fake_n_changed(f), 7);
	assert_int_equal(fake_update(f, g), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_sync(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_release(f, c), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

static rp_ctr followed(struct fake_host *f, const char *name)
{
	return fake_ctr(f, &(struct fake_ctr){.name = name,
					      .annotations =
						      "scheduling.koordinator.sh/resource-status="
						      "{\"cpuset\": \"4-5\"}"});
}

/* The CPUs of a followed pod stay its own between two of its containers, also over a restart, until
 * its sandbox is stopped. */
static void test_followed_until_stopped(void **state)
{
	struct fake_host *f =
		start(&n4c16, "{reservedResources: {cpu: \"cpuset:0\"}, followScheduler: true}");
	rp_ctr be = best_effort(f, "be"), old = followed(f, "old");
	assert_int_equal(fake_allocate(f, old), 0);
	assert_string_equal(fake_cpus(f, be), "0-3,6-15");
	assert_int_equal(fake_release(f, old), 0);
	assert_int_equal(fake_sync(f), 0);
	assert_string_equal(fake_cpus(f, be), "0-3,6-15");
	assert_int_not_equal(fake_allocate(f, followed(f, "early")), 0);
	fake_stop_pod(f, old);
	rp_ctr c = followed(f, "c");
	if (fake_allocate(f, c))
		fail_msg("%s", fake_error(f));
	assert_string_equal(fake_cpus(f, c), "4-5");
	assert_string_equal(fake_cpus(f, be), "0-3,6-15");
	assert_int_equal(fake_release(f, c), 0);
	fake_stop_pod(f, c);
	assert_string_equal(fake_cpus(f, best_effort(f, "be2")), "0-15");
	assert_string_equal(fake_cpus(f, be), "0-15");
	fake_host_free(f);
}

/* The CPUs that a scheduler chose are not refused for a request of the pod that is unknown. */
static void test_followed_without_request(void **state)
{
	struct fake_host *f =
		start(&n4c16, "{reservedResources: {cpu: \"cpuset:0\"}, followScheduler: true}");
	rp_ctr c = followed(f, "c");
	if (fake_allocate(f, c))
		fail_msg("%s", fake_error(f));
	assert_string_equal(fake_cpus(f, c), "4-5");
	fake_host_free(f);
}

/* ---- quota and memory ------------------------------------------------------------------------ */

static void test_memory_corner_cases(void **state)
{
	struct fake_host *f = fake_host_new(&n4c16);
	fake_node_info(f, 1)->memory = 0;
	assert_int_equal(fake_set_offline(f, ""), 0);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0\"}, "
					   "disableCPUQuota: true, pinMemory: true}"),
			 0);
	rp_ctr g = guaranteed(f, "g", 4);
	assert_string_equal(fake_cpus(f, g), "4-7");
	assert_string_equal(fake_mems(f, g), "0"); /* the nearest node that has memory */
	rp_ctr p = fake_ctr(f, &(struct fake_ctr){.name = "p",
						  .qos = RP_QOS_GUARANTEED,
						  .cpu_request = 2000,
						  .flags = RP_CTR_PRESERVE_MEM});
	assert_int_equal(fake_allocate(f, p), 0);
	assert_string_equal(fake_mems(f, p), "");
	/* a limit that is none, and one that is tiny */
	fake_request(f, p, 0, 0);
	assert_int_equal(fake_update(f, p), 0);
	assert_int_equal(fake_int(f, p, RP_F_QUOTA), -1);
	fake_request(f, g, 5, 5);
	assert_int_equal(fake_update(f, g), 0);
	assert_int_equal(fake_int(f, g, RP_F_QUOTA), 1000);
	fake_host_free(f);
}

/* ---- large machines -------------------------------------------------------------------------- */

/* Formats n CPUs, every second one from `first` on. The text must have room for all. */
static void every_other(char *text, size_t size, uint32_t first, uint32_t n)
{
	struct rp_idset set;
	rp_idset_clear(&set);
	for (uint32_t i = 0; i < n; i++)
		rp_idset_add(&set, first + 2 * i);
	assert_true(rp_ids_format(rp_ids_of(&set), text, (uint32_t)size) < size);
}

/* Checks that a list that exceeds the length of a data line is omitted with a warning, and
 * placement continues. */
static void test_scattered_cpus(void **state)
{
	static const struct fake_machine huge = {
		.packages = 4, .nodes = 4, .cores = 128, .threads = 2, .siblings = true};
	char *config = malloc(32768), *odd = malloc(32768);
	assert_non_null(config);
	assert_non_null(odd);
	size_t n = (size_t)snprintf(config, 32768,
				    "{cpuManagerPolicyOptions: {strict-cpu-reservation: true}, "
				    "reservedResources: {cpu: \"cpuset:");
	every_other(config + n, 16384, 0, 2048);
	strcat(config, "\"}}");
	struct fake_host *f = start(&huge, config);
	rp_ctr shared = best_effort(f, "shared");
	every_other(odd, 32768, 1, 2048);
	assert_true(strlen(odd) > 4096);
	assert_string_equal(fake_cpus(f, shared), odd);
	assert_null(fake_data(f, shared, "SHARED_CPUS"));
	assert_non_null(strstr(fake_log(f), "SHARED_CPUS is too long"));
	rp_ctr most = guaranteed(f, "most", 1800);
	assert_true(strlen(fake_exclusive(f, most)) > 4096);
	assert_null(fake_data(f, most, "EXCLUSIVE_CPUS"));
	/* The remaining list is short enough again. */
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, shared)), 248);
	assert_string_equal(fake_data(f, shared, "SHARED_CPUS"), fake_cpus(f, shared));
	assert_int_equal(fake_release(f, most), 0);
	assert_null(fake_data(f, shared, "SHARED_CPUS"));
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
	free(config);
	free(odd);
}

/* ---- configuration --------------------------------------------------------------------------- */

static void test_machine_dependent_configs(void **state)
{
	const struct fake_machine no_numa = {.packages = 2, .cores = 2, .no_numa = true};
	const struct fake_machine many_nodes = {.packages = 5, .nodes = 13};
	struct fake_host *f = start(&no_numa, NULL);
	assert_int_equal(fake_configure(f, OPTIONS("align-by-socket: true")), -RP_EINVAL);
	assert_string_equal(fake_error(f),
			    "cpuManagerPolicyOptions: option align-by-socket cannot be used on a "
			    "machine with more sockets than NUMA nodes");
	fake_host_free(f);
	f = start(&many_nodes, NULL);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 1}, "
					   "topologyManagerPolicy: restricted}"),
			 -RP_EINVAL);
	assert_string_equal(fake_error(f),
			    "topologyManagerPolicy: topologyManagerPolicy restricted cannot be "
			    "used with more than 64 NUMA nodes");
	fake_host_free(f);
	f = start(&laptop, OPTIONS("full-pcpus-only: true"));
	assert_non_null(strstr(fake_log(f), "<4>option full-pcpus-only has no effect here"));
	fake_host_free(f);
}

/* Checks that the first choice of reserved CPUs stays, also over a restart, although other
 * options would reserve other CPUs. */
static void test_reserved_count_is_kept(void **state)
{
	static const char plain[] = "{reservedResources: {cpu: 2}}";
	static const char spread[] = "{reservedResources: {cpu: 2}, cpuManagerPolicyOptions: "
				     "{distribute-cpus-across-cores: true}}";
	struct fake_host *f = start(&server_2s, spread);
	assert_non_null(strstr(fake_zones(f), "reserved cpuset: 0-1\n"));
	assert_int_equal(fake_configure(f, plain), 0);
	assert_non_null(strstr(fake_zones(f), "reserved cpuset: 0-1\n"));
	assert_int_equal(fake_restart(f), 0);
	assert_non_null(strstr(fake_zones(f), "reserved cpuset: 0-1\n"));
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 3}}"), 0);
	assert_non_null(strstr(fake_zones(f), "reserved cpuset: 0-1,64\n"));
	fake_host_free(f);
	f = start(&server_2s, plain);
	assert_non_null(strstr(fake_zones(f), "reserved cpuset: 0,64\n"));
	fake_host_free(f);
}

static void test_saved_state(void **state)
{
	struct fake_host *f = start(&n4c16, NULL);
	const struct rp_state *s = fake_module_service(f, RP_STATE_1);
	const void *data;
	uint32_t size;
	uint64_t copy[8];
	assert_int_equal(s->save(fake_instance(f), &data, &size), 0);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 2}}"), 0);
	assert_int_equal(s->save(fake_instance(f), &data, &size), 0);
	assert_true(size <= sizeof copy);
	memcpy(copy, data, size);
	assert_int_equal(s->load(fake_instance(f), copy, 3), -RP_EINVAL);
	assert_int_equal(s->load(fake_instance(f), copy, size - 1), -RP_EINVAL);
	assert_int_equal(s->load(fake_instance(f), copy, size), 0);
	((uint32_t *)copy)[0] = 99;
	assert_int_equal(s->load(fake_instance(f), copy, size), -RP_EINVAL);
	((uint32_t *)copy)[0] = 1;
	((uint32_t *)copy)[1] = UINT32_MAX;
	assert_int_equal(s->load(fake_instance(f), copy, size), -RP_EINVAL);
	fake_host_free(f);
}

/* ---- restart, hot-plug, other policies ------------------------------------------------------- */

/* Checks that a decision of another policy is adopted if the static policy could have made it. */
static void test_taking_over(void **state)
{
	struct fake_host *f = start(&n4c16, NULL);
	rp_ctr right = add(f, "right", RP_QOS_GUARANTEED, 2000);
	rp_ctr mixed = add(f, "mixed", RP_QOS_GUARANTEED, 1500);
	rp_ctr size = add(f, "size", RP_QOS_GUARANTEED, 3000);
	rp_ctr reserved = add(f, "reserved", RP_QOS_GUARANTEED, 1000);
	rp_ctr wide = add(f, "wide", RP_QOS_GUARANTEED, 1000);
	fake_decide(f, right, "12-13", "12-13", "3");
	fake_decide(f, mixed, "4-6", "4", NULL);
	fake_decide(f, size, "8-9", "8-9", NULL);
	fake_decide(f, reserved, "0", "0", NULL);
	fake_decide(f, wide, "10-11", "10", NULL);
	assert_int_equal(fake_configure(f, RESERVED_0), 0);
	assert_string_equal(fake_cpus(f, right), "12-13");
	assert_string_equal(fake_mems(f, right), "3");
	assert_string_equal(fake_exclusive(f, mixed), "");
	assert_int_equal(rp_ids_count(fake_exclusive_ids(f, size)), 3);
	assert_false(rp_ids_has(fake_cpu_ids(f, reserved), 0));
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, wide)), 1);
	fake_host_free(f);
}

/* Checks that exclusive CPUs that become reserved stay allocated and are reported. */
static void test_restart_with_other_reservation(void **state)
{
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr g = guaranteed(f, "g", 2);
	rp_ctr be = best_effort(f, "be");
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0,2\"}}"), 0);
	assert_string_equal(fake_cpus(f, g), "2-3");
	assert_string_equal(fake_degraded(f, g), "some of its exclusive CPUs are now reserved");
	assert_string_equal(fake_cpus(f, be), "0-1,4-15");
	/* The CPUs are no longer available, so the container is placed again. */
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{availableResources: {cpu: 4-15}, "
					   "reservedResources: {cpu: \"cpuset:4\"}}"),
			 0);
	assert_string_equal(fake_cpus(f, g), "6-7");
	assert_null(fake_degraded(f, g));
	fake_host_free(f);
}

/* Checks that containers move to the reserved CPUs when there are no shared CPUs, until some
 * become free. */
static void test_nothing_left_to_share(void **state)
{
	static const char strict[] = "{reservedResources: {cpu: \"cpuset:0-1\"}, "
				     "cpuManagerPolicyOptions: {strict-cpu-reservation: true}}";
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0-1\"}}");
	rp_ctr g = guaranteed(f, "g", 12), h = guaranteed(f, "h", 2);
	rp_ctr be = best_effort(f, "be");
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, strict), 0);
	assert_string_equal(fake_cpus(f, be), "0-1");
	assert_string_equal(fake_degraded(f, be), "shared pool is empty");
	rp_ctr c = add(f, "c", RP_QOS_BEST_EFFORT, 0);
	assert_int_equal(fake_allocate(f, c), -RP_ENOSPC);
	assert_int_equal(fake_release(f, h), 0);
	assert_null(fake_degraded(f, be));
	assert_string_equal(fake_cpus(f, be), "2-3");
	assert_int_equal(fake_release(f, g), 0);
	assert_string_equal(fake_cpus(f, be), "2-15");
	fake_host_free(f);
}

static void test_before_configuration(void **state)
{
	struct fake_host *f = start(&n4c16, NULL);
	rp_ctr c = add(f, "c", RP_QOS_BEST_EFFORT, 0);
	assert_int_equal(fake_release(f, c), 0);
	c = add(f, "c", RP_QOS_BEST_EFFORT, 0);
	assert_int_equal(fake_allocate(f, c), -RP_EAGAIN);
	assert_string_equal(fake_error(f), "no configuration is active");
	assert_int_equal(fake_sync(f), -RP_EAGAIN);
	assert_string_equal(fake_zones(f), "");
	assert_string_equal(fake_metrics(f), "");
	assert_int_equal(fake_set_offline(f, "3"), 0);
	fake_host_free(f);
}

/* ---- reports --------------------------------------------------------------------------------- */

static void test_zones(void **state)
{
	const struct fake_machine m = {
		.packages = 2, .cores = 2, .threads = 2, .isolated = "5", .memory_nodes = 1};
	struct fake_host *f = start(&m, "{availableResources: {cpu: 0-6}, "
					"reservedResources: {cpu: \"cpuset:0\"}}");
	guaranteed(f, "g", 2);
	assert_string_equal(fake_zones(f), "zone NUMA node #0 (numa node)\n"
					   "  cpu 4000/3000/1000\n"
					   "  cpuset: 0-3\n"
					   "  shared cpuset: 0-1\n"
					   "  reserved cpuset: 0\n"
					   "  isolated cpuset: \n"
					   "  cost NUMA node #0 10\n"
					   "  cost NUMA node #1 21\n"
					   "zone NUMA node #1 (numa node)\n"
					   "  cpu 4000/3000/3000\n"
					   "  cpuset: 4-7\n"
					   "  shared cpuset: 4,6\n"
					   "  reserved cpuset: \n"
					   "  isolated cpuset: 5\n"
					   "  cost NUMA node #0 21\n"
					   "  cost NUMA node #1 10\n");
	fake_host_free(f);
}

static void test_metrics(void **state)
{
	struct fake_host *f = start(&n4c16_isol01, "{" RESERVED_2 "}");
	guaranteed(f, "g", 4);
	refused(f, 20, "not enough cpus available to satisfy request: requested=20, available=11");
	assert_string_equal(fake_metrics(f), "policy_static_cpus{set=\"shared\"} 10\n"
					     "policy_static_cpus{set=\"reserved\"} 1\n"
					     "policy_static_cpus{set=\"exclusive\"} 4\n"
					     "policy_static_cpus{set=\"isolated_free\"} 2\n"
					     "policy_relief_moves_total{outcome=\"moved\"} 0\n"
					     "policy_relief_moves_total{outcome=\"placed\"} 0\n"
					     "policy_relief_moves_total{outcome=\"not_found\"} 0\n"
					     "policy_static_exclusive_placements_total{} 1\n"
					     "policy_static_refusals_total{} 1\n");
	fake_host_free(f);
}

static void test_explanations(void **state)
{
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0\"}, "
					    "cpuManagerPolicyOptions: {full-pcpus-only: true}}");
	assert_string_equal(fake_trail(f, guaranteed(f, "g", 2)),
			    "Guaranteed pod, request of 2 whole CPUs: exclusive "
			    "CPUs\n[cpuManagerPolicyOptions] CPUs 2-3, packed onto used cores "
			    "(candidates: 2-15)\n");
	assert_string_equal(fake_trail(f, best_effort(f, "be")),
			    "the pod is not Guaranteed: shared CPUs\n"
			    "shares all CPUs that are not exclusive\n");
	assert_string_equal(fake_trail(f, create(f, "half", RP_QOS_GUARANTEED, 1500)),
			    "request of 1500m is not a whole number of CPUs: shared CPUs\n"
			    "shares all CPUs that are not exclusive\n");
	assert_string_equal(fake_trail(f, create(f, "none", RP_QOS_GUARANTEED, 0)),
			    "no CPU request: shared CPUs\n"
			    "shares all CPUs that are not exclusive\n");
	assert_int_equal(fake_configure(f, OPTIONS("strict-cpu-reservation: true")), 0);
	assert_string_equal(
		fake_trail(f, best_effort(f, "strict")),
		"the pod is not Guaranteed: shared CPUs\n"
		"[cpuManagerPolicyOptions] shares all CPUs that are neither exclusive nor "
		"reserved (strict-cpu-reservation)\n");
	fake_host_free(f);
}

static const struct {
	const char *config, *rule;
} rules[] = {
	{"{reservedResources: {cpu: 1}, cpuAllocator: common}", "chosen by the common allocator"},
	{OPTIONS("distribute-cpus-across-numa: 1"), "distributed by distribute-cpus-across-numa"},
	{OPTIONS("distribute-cpus-across-cores: 1"), "distributed by distribute-cpus-across-cores"},
	{OPTIONS("prefer-align-cpus-by-uncorecache: 1"), "packed into used caches"},
};

static void test_rules_are_named(void **state)
{
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		struct fake_host *f = start(&n4c16, rules[i].config);
		assert_non_null(strstr(fake_trail(f, guaranteed(f, "g", 2)), rules[i].rule));
		fake_host_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work_follows_change),
		cmocka_unit_test(test_followed_until_stopped),
		cmocka_unit_test(test_followed_without_request),
		cmocka_unit_test(test_memory_corner_cases),
		cmocka_unit_test(test_scattered_cpus),
		cmocka_unit_test(test_machine_dependent_configs),
		cmocka_unit_test(test_reserved_count_is_kept),
		cmocka_unit_test(test_saved_state),
		cmocka_unit_test(test_taking_over),
		cmocka_unit_test(test_restart_with_other_reservation),
		cmocka_unit_test(test_nothing_left_to_share),
		cmocka_unit_test(test_before_configuration),
		cmocka_unit_test(test_zones),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_explanations),
		cmocka_unit_test(test_rules_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
