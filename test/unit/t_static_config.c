/* SPDX-License-Identifier: Apache-2.0 */
/* The static policy from outside: configurations, restarts, hot-plug, reports. */
#include "test/unit/t_static.h"

/* ---- configuration --------------------------------------------------------------------------- */

#define PAIR(a, b)                                                                                 \
	"cpuManagerPolicyOptions: static policy options " a " and " b                              \
	" can not be used at the same time"

#define NO_RESERVED                                                                                \
	"the static policy cannot start without reserved CPUs: reservedResources.cpu has to name " \
	"or count at least one, as in reservedResources: {cpu: 1}"

static const struct {
	const char *config, *error;
} bad_configs[] = {
	{"{}", NO_RESERVED},
	{"{availableResources: {cpu: \"cpuset:0-15\"}}", NO_RESERVED},
	{"{reservedResources: {cpu: 0}}", "reservedResources.cpu: " NO_RESERVED},
	{"{reservedResources: {cpu: \"cpuset:16\"}}",
	 "reservedResources.cpu: some reserved CPUs (16) are unavailable"},
	{"{availableResources: {cpu: 1-7}, reservedResources: {cpu: \"cpuset:0,3\"}}",
	 "reservedResources.cpu: some reserved CPUs (0) are unavailable"},
	{"{reservedResources: {cpu: 17}}",
	 "reservedResources.cpu: 17 reserved CPUs are asked for and only 16 are available"},
	{"{availableResources: {cpu: 4}, reservedResources: {cpu: 1}}",
	 "availableResources.cpu: a quantity can not be used here"},
	{"{reservedResources: {cpu: \"exclude-cpuset:3\"}}",
	 "reservedResources.cpu: exclude-cpuset: can not be used here"},
	{OPTIONS("no-such-option: \"true\""), "cpuManagerPolicyOptions.no-such-option: unknown CPU "
					      "Manager Policy option: \"no-such-option\""},
	{OPTIONS("full-pcpus-only: maybe"),
	 "cpuManagerPolicyOptions.full-pcpus-only: bad value for option \"full-pcpus-only\": "
	 "\"maybe\" is neither true nor false"},
	{OPTIONS("full-pcpus-only: {a: 1}"),
	 "cpuManagerPolicyOptions.full-pcpus-only: bad value for option \"full-pcpus-only\": "
	 "\"\" is neither true nor false"},
	{OPTIONS("full-pcpus-only: true, distribute-cpus-across-cores: 1"),
	 PAIR("full-pcpus-only", "distribute-cpus-across-cores")},
	{OPTIONS("distribute-cpus-across-numa: T, distribute-cpus-across-cores: TRUE"),
	 PAIR("distribute-cpus-across-numa", "distribute-cpus-across-cores")},
	{OPTIONS("prefer-align-cpus-by-uncorecache: t, distribute-cpus-across-cores: True"),
	 PAIR("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores")},
	{OPTIONS("prefer-align-cpus-by-uncorecache: true, distribute-cpus-across-numa: true"),
	 PAIR("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa")},
	{"{reservedResources: {cpu: 1}, topologyManagerPolicy: single-numa-node, "
	 "cpuManagerPolicyOptions: {align-by-socket: true}}",
	 "topologyManagerPolicy: topologyManagerPolicy single-numa-node and option align-by-socket "
	 "can not be used at the same time"},
	{"{reservedResources: {cpu: 1}, topologyManagerScope: pod}",
	 "topologyManagerScope: topologyManagerScope pod is not supported"},
	{"{reservedResources: {cpu: 1}, cpuAllocator: common, "
	 "cpuManagerPolicyOptions: {distribute-cpus-across-numa: true}}",
	 "cpuManagerPolicyOptions: option distribute-cpus-across-numa can not be used with "
	 "cpuAllocator common"},
};

static void test_bad_configs(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr g = guaranteed(f, "g", 2);
	for (size_t i = 0; i < sizeof bad_configs / sizeof bad_configs[0]; i++) {
		assert_int_equal(fake_configure(f, bad_configs[i].config), -RP_EINVAL);
		assert_string_equal(fake_error(f), bad_configs[i].error);
		assert_string_equal(fake_cpus(f, g), "2-3");
	}
	assert_string_equal(fake_cpus(f, guaranteed(f, "next", 4)), "4-7");
	fake_host_free(f);
}

static const char *const good_configs[] = {
	OPTIONS("full-pcpus-only: true, distribute-cpus-across-numa: true"),
	OPTIONS("full-pcpus-only: true, prefer-align-cpus-by-uncorecache: true, "
		"strict-cpu-reservation: \"false\""),
	OPTIONS("Full-PCPUs-Only: false, distribute-cpus-across-cores: 0, align-by-socket: 1"),
	OPTIONS(""),
	"{ReservedResources: {CPU: 750m}, AvailableResources: {CPU: \"exclude-cpuset:15\"}}",
	"{reservedResources: {cpu: 1}, cpuAllocator: common, rdt: auto, topologyManagerScope: "
	"container, "
	"cpuManagerPolicyOptions: {full-pcpus-only: true, strict-cpu-reservation: true}}",
};

static void test_good_configs(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr g = guaranteed(f, "g", 3);
	for (size_t i = 0; i < sizeof good_configs / sizeof good_configs[0]; i++) {
		assert_int_equal(fake_prepare_only(f, good_configs[i]), 0);
		if (fake_configure(f, good_configs[i]))
			fail_msg("%s: %s", good_configs[i], fake_error(f));
		assert_string_equal(fake_cpus(f, g), "1-3");
	}
	fake_host_free(f);
}

static void test_machine_dependent_configs(void **state)
{
	(void)state;
	const struct fake_machine no_numa = {.packages = 2, .cores = 2, .no_numa = true};
	const struct fake_machine many_nodes = {.packages = 5, .nodes = 13};
	struct fake_host *f = start(&no_numa, NULL);
	assert_int_equal(fake_configure(f, OPTIONS("align-by-socket: true")), -RP_EINVAL);
	assert_string_equal(fake_error(f),
			    "cpuManagerPolicyOptions: option align-by-socket can not be used on a "
			    "machine with more sockets than NUMA nodes");
	fake_host_free(f);
	f = start(&many_nodes, NULL);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 1}, "
					   "topologyManagerPolicy: restricted}"),
			 -RP_EINVAL);
	assert_string_equal(
		fake_error(f),
		"topologyManagerPolicy: topologyManagerPolicy restricted can not be used "
		"with more than 64 NUMA nodes");
	fake_host_free(f);
	f = start(&laptop, OPTIONS("full-pcpus-only: true"));
	assert_non_null(strstr(fake_log(f), "<4>option full-pcpus-only has no effect here"));
	fake_host_free(f);
}

static void test_reconfigure_refusals(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr g = guaranteed(f, "g", 2);
	rp_ctr be = best_effort(f, "be");
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0,3\"}}"),
			 -RP_EBUSY);
	assert_string_equal(fake_error(f),
			    "reservedResources.cpu: some reserved CPUs (3) belong to "
			    "containers exclusively");
	assert_int_equal(fake_configure(f, "{availableResources: {cpu: \"cpuset:0-2,4-15\"}, "
					   "reservedResources: {cpu: \"cpuset:0\"}}"),
			 -RP_EBUSY);
	assert_string_equal(
		fake_error(f),
		"availableResources.cpu: some CPUs that belong to containers exclusively "
		"(3) would be unavailable");
	/* a reservation that is there already may stay where it is */
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0,4\"}}"), 0);
	assert_string_equal(fake_cpus(f, be), "0-1,4-15");
	guaranteed(f, "rest", 12);
	assert_string_equal(fake_cpus(f, be), "0,4");
	assert_int_equal(fake_configure(f,
					"{reservedResources: {cpu: \"cpuset:0,4\"}, "
					"cpuManagerPolicyOptions: {strict-cpu-reservation: true}}"),
			 -RP_EBUSY);
	assert_string_equal(fake_error(f), "this would leave fewer than 1 shared CPUs");
	assert_string_equal(fake_cpus(f, g), "2-3");
	fake_host_free(f);
}

/* Other options would reserve other CPUs; the choice made once stays, over a restart too. */
static void test_reserved_count_is_kept(void **state)
{
	(void)state;
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
	(void)state;
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

static void test_restart(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr a = guaranteed(f, "a", 2), b = guaranteed(f, "b", 4);
	rp_ctr s = create(f, "s", RP_QOS_BURSTABLE, 500);
	assert_int_equal(fake_release(f, a), 0);
	rp_ctr c = guaranteed(f, "c", 1);
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_string_equal(fake_cpus(f, b), "4-7");
	assert_string_equal(fake_cpus(f, c), "1");
	assert_string_equal(fake_cpus(f, s), "0,2-3,8-15");
	assert_string_equal(fake_trail(f, b), "keeps the exclusive CPUs that it had\n");
	guaranteed(f, "d", 2);
	fake_host_free(f);
}

static void test_existing(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, NULL);
	rp_ctr be = add(f, "be", RP_QOS_BEST_EFFORT, 0);
	rp_ctr g0 = add(f, "g0", RP_QOS_GUARANTEED, 2000);
	rp_ctr g1 = add(f, "g1", RP_QOS_GUARANTEED, 8000);
	rp_ctr bu = add(f, "bu", RP_QOS_BURSTABLE, 2000);
	assert_int_equal(fake_configure(f, RESERVED_0), 0);
	assert_string_equal(fake_cpus(f, g0), "2-3");
	assert_string_equal(fake_cpus(f, g1), "8-15");
	assert_string_equal(fake_cpus(f, be), "0-1,4-7");
	assert_string_equal(fake_cpus(f, bu), "0-1,4-7");
	assert_int_equal(fake_release(f, g0), 0);
	assert_string_equal(fake_cpus(f, be), "0-7");
	fake_host_free(f);
}

/* What another policy decided is kept when it is what we could have decided. */
static void test_taking_over(void **state)
{
	(void)state;
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

/* The host tells only where containers run after a switch: what nobody else runs on is
 * exclusive. */
static void test_taking_over_what_is_alone(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, NULL);
	rp_ctr alone = add(f, "alone", RP_QOS_GUARANTEED, 2000);
	rp_ctr crowded = add(f, "crowded", RP_QOS_GUARANTEED, 2000);
	rp_ctr be = add(f, "be", RP_QOS_BEST_EFFORT, 0);
	fake_decide(f, alone, "12-13", NULL, NULL);
	fake_decide(f, crowded, "8-9", NULL, NULL);
	fake_decide(f, be, "8-11", NULL, NULL);
	assert_int_equal(fake_configure(f, RESERVED_0), 0);
	assert_string_equal(fake_cpus(f, alone), "12-13");
	assert_string_equal(fake_exclusive(f, alone), "12-13");
	assert_string_equal(fake_cpus(f, crowded), "14-15");
	assert_string_equal(fake_cpus(f, be), "0-11");
	fake_host_free(f);
}

/* Reserved meanwhile: kept, and shown. */
static void test_restart_with_other_reservation(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr g = guaranteed(f, "g", 2);
	rp_ctr be = best_effort(f, "be");
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0,2\"}}"), 0);
	assert_string_equal(fake_cpus(f, g), "2-3");
	assert_string_equal(fake_degraded(f, g), "some of its exclusive CPUs are reserved by now");
	assert_string_equal(fake_cpus(f, be), "0-1,4-15");
	/* out of what is available: placed anew */
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{availableResources: {cpu: 4-15}, "
					   "reservedResources: {cpu: \"cpuset:4\"}}"),
			 0);
	assert_string_equal(fake_cpus(f, g), "6-7");
	assert_null(fake_degraded(f, g));
	fake_host_free(f);
}

/* With nothing left to share, what runs is squeezed onto the reserved CPUs until something comes
 * free. */
static void test_nothing_left_to_share(void **state)
{
	(void)state;
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

static void test_degraded_is_retried(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, NULL);
	rp_ctr big = add(f, "big", RP_QOS_GUARANTEED, 12000);
	rp_ctr late = add(f, "late", RP_QOS_GUARANTEED, 8000);
	rp_ctr later = add(f, "later", RP_QOS_GUARANTEED, 9000);
	rp_ctr be = add(f, "be", RP_QOS_BEST_EFFORT, 0);
	assert_int_equal(fake_configure(f, RESERVED_0), 0);
	assert_non_null(fake_degraded(f, late));
	assert_non_null(strstr(fake_log(f), "requested=8, available=3; it shares CPUs for now"));
	assert_non_null(strstr(fake_trail(f, late), "no exclusive CPUs: not enough cpus"));
	assert_string_equal(fake_cpus(f, late), fake_cpus(f, be));
	assert_int_equal(fake_sync(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_release(f, big), 0);
	assert_null(fake_degraded(f, late));
	assert_string_equal(fake_cpus(f, late), "8-15");
	assert_non_null(fake_degraded(f, later));
	assert_string_equal(fake_cpus(f, be), "0-7");
	assert_string_equal(fake_cpus(f, later), "0-7");
	/* it gives up its wish */
	assert_int_equal(resize(f, later, 500), 0);
	assert_null(fake_degraded(f, later));
	fake_host_free(f);
}

static void test_hotplug(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, RESERVED_0);
	rp_ctr be = best_effort(f, "be");
	rp_ctr g = guaranteed(f, "g", 4), h = guaranteed(f, "h", 2);
	assert_string_equal(fake_cpus(f, g), "4-7");
	assert_int_equal(fake_set_offline(f, "5,15"), 0);
	assert_string_equal(fake_cpus(f, h), "2-3");
	/* what is left of its node is a whole node, and 14 a whole core */
	assert_string_equal(fake_cpus(f, g), "4,6-7,14");
	assert_string_equal(fake_cpus(f, be), "0-1,8-13");
	assert_int_equal(fake_set_offline(f, ""), 0);
	assert_string_equal(fake_cpus(f, g), "4,6-7,14");
	assert_string_equal(fake_cpus(f, be), "0-1,5,8-13,15");
	/* even the reserved one may go */
	assert_int_equal(fake_set_offline(f, "0"), 0);
	assert_string_equal(fake_cpus(f, be), "1,5,8-13,15");
	assert_int_equal(fake_event(f, &(struct rp_event){.size = sizeof(struct rp_event),
							  .type = RP_EVENT_STARTED,
							  .object = g}),
			 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

static void test_hotplug_reserved_count(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: 3}}");
	assert_int_equal(fake_set_offline(f, "2-15"), 0);
	rp_ctr be = best_effort(f, "be");
	assert_string_equal(fake_cpus(f, be), "0-1");
	refused(f, 1, "not enough cpus available to satisfy request: requested=1, available=0");
	fake_host_free(f);
}

static void test_before_configuration(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, NULL);
	rp_ctr c = add(f, "c", RP_QOS_BEST_EFFORT, 0);
	assert_int_equal(fake_release(f, c), 0);
	c = add(f, "c", RP_QOS_BEST_EFFORT, 0);
	assert_int_equal(fake_allocate(f, c), -RP_EAGAIN);
	assert_string_equal(fake_error(f), "no configuration is in force");
	assert_int_equal(fake_sync(f), -RP_EAGAIN);
	assert_string_equal(fake_zones(f), "");
	assert_string_equal(fake_metrics(f), "");
	assert_int_equal(fake_set_offline(f, "3"), 0);
	fake_host_free(f);
}

/* ---- reports --------------------------------------------------------------------------------- */

static void test_zones(void **state)
{
	(void)state;
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
	(void)state;
	struct fake_host *f = start(&n4c16_isol01, "{" RESERVED_2 "}");
	guaranteed(f, "g", 4);
	refused(f, 20, "not enough cpus available to satisfy request: requested=20, available=11");
	assert_string_equal(fake_metrics(f), "policy_static_cpus{set=\"shared\"} 10\n"
					     "policy_static_cpus{set=\"reserved\"} 1\n"
					     "policy_static_cpus{set=\"exclusive\"} 4\n"
					     "policy_static_cpus{set=\"isolated_free\"} 2\n"
					     "policy_static_exclusive_placements_total{} 1\n"
					     "policy_static_refusals_total{} 1\n");
	fake_host_free(f);
}

static void test_explanations(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0\"}, "
					    "cpuManagerPolicyOptions: {full-pcpus-only: true}}");
	assert_string_equal(
		fake_trail(f, guaranteed(f, "g", 2)),
		"Guaranteed pod, request of 2 whole CPUs: exclusive CPUs\n"
		"[cpuManagerPolicyOptions] CPUs 2-3 by packing, of the candidates 2-15\n");
	assert_string_equal(fake_trail(f, best_effort(f, "be")),
			    "the pod is not Guaranteed: shared CPUs\n"
			    "all available CPUs but those of exclusive containers\n");
	assert_string_equal(fake_trail(f, create(f, "half", RP_QOS_GUARANTEED, 1500)),
			    "request of 1500m is no whole number of CPUs: shared CPUs\n"
			    "all available CPUs but those of exclusive containers\n");
	assert_string_equal(fake_trail(f, create(f, "none", RP_QOS_GUARANTEED, 0)),
			    "no CPU request: shared CPUs\n"
			    "all available CPUs but those of exclusive containers\n");
	assert_int_equal(fake_configure(f, OPTIONS("strict-cpu-reservation: true")), 0);
	assert_string_equal(fake_trail(f, best_effort(f, "strict")),
			    "the pod is not Guaranteed: shared CPUs\n"
			    "[cpuManagerPolicyOptions] all available CPUs but those of exclusive "
			    "containers and the reserved ones (strict-cpu-reservation)\n");
	fake_host_free(f);
}

static const struct {
	const char *config, *rule;
} rules[] = {
	{"{reservedResources: {cpu: 1}, cpuAllocator: common}", "by the common allocator"},
	{OPTIONS("distribute-cpus-across-numa: 1"), "by distribute-cpus-across-numa"},
	{OPTIONS("distribute-cpus-across-cores: 1"), "by distribute-cpus-across-cores"},
	{OPTIONS("prefer-align-cpus-by-uncorecache: 1"), "by packing into caches"},
};

static void test_rules_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		struct fake_host *f = start(&n4c16, rules[i].config);
		assert_non_null(strstr(fake_trail(f, guaranteed(f, "g", 2)), rules[i].rule));
		fake_host_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_configs),
		cmocka_unit_test(test_good_configs),
		cmocka_unit_test(test_machine_dependent_configs),
		cmocka_unit_test(test_reconfigure_refusals),
		cmocka_unit_test(test_reserved_count_is_kept),
		cmocka_unit_test(test_saved_state),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_existing),
		cmocka_unit_test(test_taking_over),
		cmocka_unit_test(test_taking_over_what_is_alone),
		cmocka_unit_test(test_restart_with_other_reservation),
		cmocka_unit_test(test_nothing_left_to_share),
		cmocka_unit_test(test_degraded_is_retried),
		cmocka_unit_test(test_hotplug),
		cmocka_unit_test(test_hotplug_reserved_count),
		cmocka_unit_test(test_before_configuration),
		cmocka_unit_test(test_zones),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_explanations),
		cmocka_unit_test(test_rules_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
