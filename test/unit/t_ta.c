/* SPDX-License-Identifier: Apache-2.0 */
/* The topology-aware policy from outside: where containers go, and that everything can be taken
 * back. */
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

static void test_exclusive(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, PLAIN);
	assert_string_equal(fake_cpus(f, guaranteed(f, "a", 1000, NULL)), "4");
	assert_string_equal(fake_cpus(f, guaranteed(f, "b", 2000, NULL)), "8-9");
	assert_string_equal(fake_cpus(f, guaranteed(f, "c", 3000, NULL)), "12-14");
	rp_ctr d = guaranteed(f, "d", 4000, NULL);
	assert_string_equal(fake_cpus(f, d), "2-3,6-7");
	assert_string_equal(fake_mems(f, d), "0-1");
	assert_string_equal(fake_exclusive(f, d), "2-3,6-7");
	assert_int_equal(fake_int(f, d, RP_F_SHARES), 4096);
	assert_string_equal(fake_data(f, d, "EXCLUSIVE_CPUS"), "2-3,6-7");
	assert_null(fake_data(f, d, "SHARED_CPUS"));
	assert_string_equal(fake_data(f, d, "DRAM_MEMS"), "0-1");
	REFUSED(f, "can't", .cpu_request = 8000, G);
	fake_host_free(f);
}

static void test_mixed(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr a = guaranteed(f, "a", 500, NULL), b = guaranteed(f, "b", 500, NULL);
	assert_string_equal(fake_cpus(f, a), "4-7");
	assert_string_equal(fake_cpus(f, b), "8-11");
	rp_ctr c = guaranteed(f, "c", 1500, NULL), d = guaranteed(f, "d", 1500, NULL);
	assert_string_equal(fake_cpus(f, c), "12-15");
	assert_string_equal(fake_exclusive(f, c), "12");
	assert_int_equal(fake_int(f, c, RP_F_SHARES), 512);
	assert_string_equal(fake_exclusive(f, d), "6");
	assert_string_equal(fake_cpus(f, a), "4-5,7");
	assert_string_equal(fake_data(f, a, "SHARED_CPUS"), "4-5,7");
	rp_ctr e = guaranteed(f, "e", 2400, NULL);
	assert_string_equal(fake_cpus(f, e), "1-3");
	assert_int_equal(fake_release(f, d), 0);
	assert_string_equal(fake_cpus(f, a), "4-7");
	fake_host_free(f);
}

static void test_reserved(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, "{availableResources: {cpu: \"cpuset:4-7,8-13\"}, "
					    "reservedResources: {cpu: \"cpuset:7,11\"}, "
					    "reservedPoolNamespaces: [\"mon-*\"]}");
	for (int i = 0; i < 4; i++)
		assert_string_equal(
			fake_cpus(f, add(f, &(struct fake_ctr){.name = "k",
							       .pod_namespace =
								       i ? "mon-x" : "kube-system",
							       .qos = RP_QOS_BURSTABLE,
							       .cpu_request = 200})),
			"7,11");
	/* More than is left of them: the root's shared CPUs. */
	rp_ctr c = add(
		f, &(struct fake_ctr){
			   .name = "big", .pod_namespace = "kube-system", G, .cpu_request = 2000});
	assert_string_equal(fake_cpus(f, c), "4-6,8-10,12-13");
	c = add(f, &(struct fake_ctr){.name = "out",
				      .pod_namespace = "kube-system",
				      G,
				      .cpu_request = 1000,
				      .annotations =
					      "prefer-reserved-cpus.resource-policy.nri.io=false"});
	assert_int_equal(rp_ids_count(fake_exclusive_ids(f, c)), 1);
	fake_host_free(f);
}

static void test_isolated(void **state)
{
	(void)state;
	struct fake_machine m = small;
	m.isolated = "2,3,6,7";
	struct fake_host *f = start(&m, "{reservedResources: {cpu: 750m}}");
	assert_string_equal(fake_cpus(f, guaranteed(f, "a", 1000, NULL)), "2");
	assert_string_equal(fake_cpus(f, guaranteed(f, "b", 2000, NULL)), "8-9");
	assert_string_equal(
		fake_cpus(f, guaranteed(f, "c", 2000,
					"prefer-isolated-cpus.resource-policy.nri.io/pod=true")),
		"6-7");
	rp_ctr d = guaranteed(f, "d", 1500, NULL);
	assert_string_equal(fake_exclusive(f, d), "3");
	assert_string_equal(fake_cpus(f, d), "1,3");
	assert_string_equal(fake_data(f, d, "ISOLATED_CPUS"), "3");
	assert_string_equal(fake_cpus(f, guaranteed(f, "e", 1000, NULL)), "12");
	REFUSED(f, "isolated CPUs", .cpu_request = 1000, G,
		.annotations = "require-isolated-cpus.resource-policy.nri.io=true");
	fake_host_free(f);
}

static void test_burstable(void **state)
{
	(void)state;
	const struct fake_ctr limited = {
		.name = "l", .qos = RP_QOS_BURSTABLE, .cpu_request = 2000, .cpu_limit = 5000};
	struct fake_ctr unlimited = {.name = "u", .qos = RP_QOS_BURSTABLE, .cpu_request = 2000};
	struct fake_host *f = start(&small, PLAIN);
	assert_string_equal(fake_cpus(f, add(f, &limited)), "8-15");
	assert_string_equal(fake_cpus(f, add(f, &limited)), "1-7");
	fake_host_free(f);
	f = start(&small, PLAIN);
	assert_string_equal(fake_cpus(f, add(f, &unlimited)), "8-15");
	unlimited.annotations = "unlimited-burstable.resource-policy.nri.io=numa";
	assert_string_equal(fake_cpus(f, add(f, &unlimited)), "4-7");
	unlimited.annotations = "unlimited-burstable.resource-policy.nri.io=system";
	assert_string_equal(fake_cpus(f, add(f, &unlimited)), "1-15");
	fake_host_free(f);
}

static void test_hidden_threads(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr c = guaranteed(f, "a", 3000, "hide-hyperthreads.resource-policy.nri.io=true");
	assert_string_equal(fake_cpus(f, c), "4,6");
	assert_int_equal(fake_int(f, c, RP_F_SHARES), 3072);
	/* The hidden thread is nobody's. */
	assert_string_equal(fake_cpus(f, best_effort(f, "b")), "8-11");
	fake_host_free(f);
}

static void test_memory_types(void **state)
{
	(void)state;
	struct fake_machine m = {.packages = 2, .cores = 2, .threads = 2, .memory_nodes = 2};
	struct fake_host *f = fake_host_new(&m);
	for (uint32_t i = 2; i < 4; i++) {
		fake_node_info(f, i)->type = RP_MEM_PMEM;
		fake_set_distance(f, i - 2, i, 17);
		fake_set_distance(f, 3 - i, i, 28);
	}
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, PLAIN), 0);
	assert_string_equal(fake_mems(f, guaranteed(f, "a", 100, NULL)), "1,3");
	rp_ctr c = guaranteed(f, "b", 100, "memory-type.resource-policy.nri.io=dram");
	assert_string_equal(fake_mems(f, c), "0");
	c = guaranteed(f, "c", 100, "memory-type.resource-policy.nri.io=PMEM");
	assert_int_equal(fake_mems(f, c)[0] >= '2', 1);
	/* What the machine does not have gives the default. */
	c = guaranteed(f, "d", 100, "memory-type.resource-policy.nri.io=hbm");
	assert_non_null(strchr(fake_mems(f, c), ','));
	c = guaranteed(f, "e", 100, "memory-type.resource-policy.nri.io=dram blue");
	assert_non_null(strchr(fake_mems(f, c), ','));
	fake_host_free(f);
}

static void test_cold_start(void **state)
{
	(void)state;
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

static void test_hints(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, PLAIN);
	fake_device(f, "b8:0", "/sys/devices/pci/sda", "12-15", "3");
	fake_device(f, "/data", "/sys/devices/pci/nvme", "8-11", "2");
	rp_ctr c = add(f, &(struct fake_ctr){
				  .name = "a", G, .cpu_request = 1000, .devices = "/dev/sda:b8:0"});
	assert_string_equal(fake_cpus(f, c), "12");
	c = add(f, &(struct fake_ctr){.name = "b",
				      G,
				      .cpu_request = 1000,
				      .mounts = "/etc/hosts:/etc/hosts;/data:/data"});
	assert_string_equal(fake_cpus(f, c), "8");
	c = add(f, &(struct fake_ctr){
			   .name = "c", G, .cpu_request = 1000, .mounts = "/data:/data:ro"});
	assert_string_equal(fake_cpus(f, c), "4");
	c = add(f,
		&(struct fake_ctr){.name = "d",
				   G,
				   .cpu_request = 1000,
				   .mounts = "/data:/data",
				   .annotations = "topologyhints.resource-policy.nri.io=devices"});
	assert_string_equal(fake_cpus(f, c), "1");
	c = add(f,
		&(struct fake_ctr){.name = "e",
				   G,
				   .cpu_request = 100,
				   .mounts = "/data:/data",
				   .annotations = "deny.topologyhints.resource-policy.nri.io="
						  "{type: prefix, paths: [/sys/devices/pci/n]}"});
	assert_string_not_equal(fake_cpus(f, c), "9-11");
	fake_host_free(f);
}

static void test_strict_hints(void **state)
{
	(void)state;
	static const char strict[] = "strict.topologyhints.resource-policy.nri.io=true;"
				     "test.topologyhints.resource-policy.nri.io={x: {NUMAs: 2}}";
	struct fake_host *f = start(&small, PLAIN);
	assert_string_equal(fake_cpus(f, guaranteed(f, "a", 1000, strict)), "8");
	assert_string_equal(fake_cpus(f, guaranteed(f, "b", 1000, strict)), "9");
	REFUSED(f, "fail strict hint", .cpu_request = 3000, G, .annotations = strict);
	fake_host_free(f);
}

static void test_affinity(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, PLAIN);
	static const char near[] = "resource-policy.nri.io/affinity={b: [a]}";
	struct fake_ctr d = {
		.name = "a", .pod_name = "p", G, .cpu_request = 1000, .annotations = near};
	assert_string_equal(fake_cpus(f, add(f, &d)), "4");
	d.name = "b";
	assert_string_equal(fake_cpus(f, add(f, &d)), "5");
	static const char full[] =
		"resource-policy.nri.io/anti-affinity={c: [{scope: {key: namespace, operator: In, "
		"values: [default]}, match: {key: \":name\", operator: Matches, values: "
		"[\"[ab]\"]}, "
		"weight: 10}]}";
	d = (struct fake_ctr){.name = "c", G, .cpu_request = 1000, .annotations = full};
	rp_ctr c = add(f, &d);
	assert_string_not_equal(fake_cpus(f, c), "6");
	REFUSED(f, "annotation resource-policy.nri.io/affinity", G, .cpu_request = 1000,
		.annotations = "resource-policy.nri.io/affinity={c: [");
	REFUSED(f, "operator", G, .pod_name = "other", .cpu_request = 1000,
		.annotations = "resource-policy.nri.io/affinity={refused: [{match: {key: name, "
			       "operator: Like, values: [x]}}]}");
	fake_host_free(f);
	f = start(&small, "{reservedResources: {cpu: 750m}, colocatePods: true}");
	for (int i = 0; i < 4; i++)
		assert_string_equal(fake_cpus(f, add(f, &(struct fake_ctr){.name = "x",
									   .pod_name = "pod",
									   G,
									   .cpu_request = 100})),
				    "4-7");
	fake_host_free(f);
}

/* ---- the edges ------------------------------------------------------------------------------- */

static void test_nobody_is_drained(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr be[4];
	for (int i = 0; i < 4; i++)
		be[i] = best_effort(f, "be");
	(void)guaranteed(f, "a", 4000, NULL);
	(void)guaranteed(f, "b", 7000, NULL);
	REFUSED(f, "can't", .cpu_request = 1000, G);
	for (int i = 0; i < 4; i++)
		assert_int_equal(rp_ids_count(fake_cpu_ids(f, be[i])), 1);
	fake_host_free(f);
}

/* Those that ask for nothing at the root keep a CPU when a pool below it is all that there is. */
static void test_nobody_above_is_drained(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, "{availableResources: {cpu: \"cpuset:0,4-5\"}, "
					    "reservedResources: {cpu: \"cpuset:0\"}}");
	rp_ctr top = add(
		f,
		&(struct fake_ctr){.name = "top", .qos = RP_QOS_BURSTABLE, .mem_request = 1 << 20});
	assert_string_equal(fake_cpus(f, top), "4-5");
	REFUSED(f, "off the last shared ones", .cpu_request = 2000, G);
	assert_string_equal(fake_cpus(f, guaranteed(f, "one", 1000, NULL)), "4");
	assert_string_equal(fake_cpus(f, top), "5");
	fake_host_free(f);
}

static void test_overflow(void **state)
{
	(void)state;
	const struct fake_machine m = {.cores = 4};
	struct fake_host *f = start(&m, "{reservedResources: {cpu: 1}}");
	rp_ctr a = guaranteed(f, "a", 3000, NULL), be = best_effort(f, "be");
	assert_string_equal(fake_cpus(f, a), "1-3");
	assert_string_equal(fake_cpus(f, be), "0");
	assert_non_null(fake_degraded(f, be));
	assert_non_null(strstr(fake_metrics(f), "overflow_containers{} 1"));
	assert_int_equal(fake_restart(f), 0);
	assert_string_equal(fake_cpus(f, be), "0");
	assert_int_equal(fake_release(f, a), 0);
	assert_string_equal(fake_cpus(f, be), "1-3");
	assert_null(fake_degraded(f, be));
	fake_host_free(f);
	f = start(&m, "{reservedResources: {cpu: 1}, bestEffortOverflow: refuse}");
	(void)guaranteed(f, "a", 3000, NULL);
	REFUSED(f, "no shared CPUs", .qos = RP_QOS_BEST_EFFORT);
	fake_host_free(f);
}

static void test_resize(void **state)
{
	(void)state;
	const struct fake_machine m = {.cores = 4, .isolated = "1"};
	struct fake_host *f = start(&m, "{reservedResources: {cpu: 1}}");
	rp_ctr a = guaranteed(f, "a", 1000, NULL), b = guaranteed(f, "b", 2000, NULL);
	assert_string_equal(fake_cpus(f, a), "1");
	fake_request(f, a, 2000, 2000);
	assert_int_not_equal(fake_update(f, a), 0);
	assert_string_equal(fake_cpus(f, a), "1");
	/* Nothing is left to share: it keeps its CPU, and only its weight is less. */
	fake_request(f, a, 125, 125);
	assert_int_equal(fake_update(f, a), 0);
	assert_string_equal(fake_cpus(f, a), "1");
	assert_string_equal(fake_exclusive(f, a), "1");
	assert_int_equal(fake_int(f, a, RP_F_SHARES), 128);
	assert_int_equal(fake_release(f, b), 0);
	fake_request(f, a, 2000, 2000);
	assert_int_equal(fake_update(f, a), 0);
	assert_int_equal(rp_ids_count(fake_exclusive_ids(f, a)), 2);
	fake_host_free(f);
}

static void test_preserve(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr c =
		add(f, &(struct fake_ctr){
			       .name = "a", .flags = RP_CTR_PRESERVE_CPU, G, .cpu_request = 2000});
	assert_string_equal(fake_cpus(f, c), "");
	assert_int_equal(fake_int(f, c, RP_F_SHARES), RP_NOT_SET);
	assert_string_equal(fake_mems(f, c), "0-3");
	c = add(f, &(struct fake_ctr){
			   .name = "b", .flags = RP_CTR_PRESERVE_MEM, G, .cpu_request = 2000});
	assert_string_equal(fake_mems(f, c), "");
	assert_string_equal(fake_cpus(f, c), "4-5");
	fake_host_free(f);
}

static void test_pinning_off(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr c = guaranteed(f, "a", 2000, NULL);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 750m}, pinCPU: false, "
					   "pinMemory: false}"),
			 0);
	assert_string_equal(fake_cpus(f, c), "0-15");
	assert_string_equal(fake_exclusive(f, c), "");
	assert_string_equal(fake_mems(f, c), "0-3");
	assert_string_equal(fake_cpus(f, guaranteed(f, "b", 2000, NULL)), "");
	assert_int_equal(fake_configure(f, PLAIN), 0);
	assert_string_equal(fake_cpus(f, c), "4-5");
	fake_host_free(f);
}

static void test_configurations(void **state)
{
	(void)state;
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"{reservedResources: {}}", "cannot start without CPU reservation"},
		{"{reservedResources: {cpu: 0}}", "cannot start without CPU reservation"},
		{"{reservedResources: {cpu: 17}}", "only 16 are available"},
		{"{reservedResources: {cpu: 1}, availableResources: {cpu: 8}}", "a quantity"},
		{"{reservedResources: {cpu: \"cpuset:3\"}, availableResources: {cpu: "
		 "\"cpuset:4-7\"}}",
		 "not available"},
		{"{reservedResources: {cpu: 1}, namespaceSchedulingClasses: {x: y}}",
		 "no scheduling class"},
		{"{reservedResources: {cpu: 1}, podQoSSchedulingClasses: {best: y}}", "QoS class"},
		{"{reservedResources: {cpu: 1}, controllableInterrupts: [\"[\"]}", "valid pattern"},
		{"{reservedResources: {cpu: 1}, cpuClasses: [{name: a}]}", "sharedPoolCPUClass"},
		{"{reservedResources: {cpu: 1}, sharedPoolCPUClass: a}", "no CPU class"},
	};
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr c = guaranteed(f, "a", 2000, NULL);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_not_equal(fake_prepare_only(f, bad[i].text), 0);
		if (!strstr(fake_error(f), bad[i].why))
			fail_msg("%s: \"%s\" is not in \"%s\"", bad[i].text, bad[i].why,
				 fake_error(f));
	}
	assert_string_equal(fake_cpus(f, c), "4-5");
	/* Its CPUs are no longer to be had. */
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:4-5\"}}"), 0);
	assert_string_equal(fake_cpus(f, c), "6-7");
	fake_host_free(f);
}

static void test_scheduling(void **state)
{
	(void)state;
	struct fake_host *f = start(
		&small,
		"{reservedResources: {cpu: 1}, schedulingClasses: [{name: rt, policy: fifo, "
		"priority: 42, ioClass: rt, ioPriority: 1}, {name: bg, policy: batch, nice: 5, "
		"flags: [reset-on-fork]}], namespaceSchedulingClasses: {web: bg}, "
		"podQoSSchedulingClasses: {guaranteed: rt}}");
	rp_ctr c = guaranteed(f, "a", 500, NULL);
	assert_int_equal(fake_int(f, c, RP_F_SCHED_POLICY), 1);
	assert_int_equal(fake_int(f, c, RP_F_SCHED_PRIORITY), 42);
	assert_int_equal(fake_int(f, c, RP_F_IO_CLASS), 1);
	assert_int_equal(fake_int(f, c, RP_F_IO_PRIORITY), 1);
	c = add(f, &(struct fake_ctr){.name = "b", .pod_namespace = "web", G, .cpu_request = 500});
	assert_int_equal(fake_int(f, c, RP_F_SCHED_POLICY), 3);
	assert_int_equal(fake_int(f, c, RP_F_NICE), 5);
	assert_int_equal(fake_int(f, c, RP_F_SCHED_FLAGS), 1);
	c = guaranteed(f, "c", 500, "scheduling-class.resource-policy.nri.io=none-such");
	assert_int_equal(fake_int(f, c, RP_F_SCHED_POLICY), RP_NOT_SET);
	fake_host_free(f);
}

static void test_machines(void **state)
{
	(void)state;
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

static void test_hotplug(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr a = guaranteed(f, "a", 2000, NULL), b = guaranteed(f, "b", 2000, NULL);
	assert_string_equal(fake_cpus(f, b), "8-9");
	assert_int_equal(fake_set_offline(f, "9"), 0);
	assert_string_equal(fake_cpus(f, a), "4-5");
	assert_int_equal(rp_ids_count(fake_exclusive_ids(f, b)), 2);
	assert_false(rp_ids_has(fake_cpu_ids(f, b), 9));
	assert_int_equal(fake_set_offline(f, NULL), 0);
	fake_host_free(f);
}

/* ---- when the host fails --------------------------------------------------------------------- */

/* Everything that people see of the pools. */
static char *image(struct fake_host *f)
{
	char *text = strdup(fake_zones(f));
	assert_non_null(text);
	return text;
}

/* Every call of the host may fail: then nothing has happened. */
static void test_failing_host(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, PLAIN);
	(void)guaranteed(f, "a", 1500, NULL);
	(void)best_effort(f, "b");
	char *before = image(f);
	const struct fake_ctr d = {.name = "x",
				   .pod_name = "pod-a",
				   G,
				   .cpu_request = 2500,
				   .annotations =
					   "prefer-shared-cpus.resource-policy.nri.io=false"};
	for (uint32_t n = 1; n < 200; n++) {
		rp_ctr c = fake_ctr(f, &d);
		fake_fail_after(f, n, RP_ENOMEM);
		int32_t r = fake_allocate(f, c);
		fake_fail_after(f, 0, 0);
		if (!r) {
			assert_int_equal(fake_release(f, c), 0);
			if (n > 100)
				break;
		}
		char *after = image(f);
		assert_string_equal(before, after);
		free(after);
	}
	free(before);
	fake_host_free(f);
}

/* ---- what people are told -------------------------------------------------------------------- */

/* One that runs and fits no more says what it lacks, until it fits. */
static void test_misfit_says_why(void **state)
{
	(void)state;
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr big = guaranteed(f, "big", 8000, NULL), other = guaranteed(f, "other", 4000, NULL);
	assert_null(fake_degraded(f, big));
	/* ten CPUs are left for twelve */
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0\"}, "
					   "availableResources: {cpu: \"cpuset:0-10\"}}"),
			 -RP_ENOSPC);
	if (!strstr(fake_error(f), "would not fit any more: ") ||
	    !strstr(fake_error(f), "; end it first"))
		fail_msg("error: %s", fake_error(f));
	assert_int_equal(fake_configure(f, PLAIN), 0);
	assert_null(fake_degraded(f, big));
	assert_null(fake_degraded(f, other));
	/* what the machine lacks is not refused, and what has been told is not told again by
	 * another configuration */
	assert_int_equal(fake_set_offline(f, "11-15"), 0);
	assert_int_equal(fake_configure(f, PLAIN), 0);
	rp_ctr misfit = fake_degraded(f, big) ? big : other;
	const char *why = fake_degraded(f, misfit);
	assert_non_null(why);
	if (!strstr(why, "runs on what is left") || !strstr(why, "can't "))
		fail_msg("reason: %s", why);
	assert_true(fake_cpus(f, misfit)[0]);
	assert_int_equal(fake_release(f, misfit == big ? other : big), 0);
	assert_null(fake_degraded(f, misfit));
	fake_host_free(f);
}

/*
 * The table of interrupts is read with the configuration: what one container is refused, is
 * refused the first, too.
 */
static void test_interrupts(void **state)
{
	(void)state;
	static const char table[] = "      CPU0 CPU1\n"
				    " 24:    0    7  PCI-MSI 1-edge  nvme0q0\n"
				    " 25:    0    7  PCI-MSI 2-edge  eth0\n";
	static const char ask[] = "irq-affinity.resource-policy.nri.io={claim: [\"*nvme*\"]}";
	struct fake_host *f = fake_host_new(&small);
	fake_file(f, "/proc/interrupts", table);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 1}, controllableInterrupts: "
					   "[\"*eth*\"]}"),
			 0);
	assert_int_equal(fake_run_work(f), 0);
	REFUSED(f, "denied interrupt", .cpu_request = 1000, G, .annotations = ask);
	assert_int_equal(fake_run_work(f), 0);
	/* without exclusive CPUs the annotation of the pod says nothing */
	(void)guaranteed(f, "shared", 500, ask);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: 1}, controllableInterrupts: "
					   "[\"*nvme*\"]}"),
			 0);
	(void)fake_run_work(f);
	(void)guaranteed(f, "owner", 1000, ask);
	(void)fake_run_work(f);
	fake_host_free(f);
	/* where all are controllable nobody is refused, whatever is in the table */
	f = fake_host_new(&small);
	fake_file(f, "/proc/interrupts", table);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, PLAIN), 0);
	assert_int_equal(fake_run_work(f), 0);
	(void)guaranteed(f, "owner", 1000, ask);
	assert_true(fake_run_work(f) > 0);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_isolated),
		cmocka_unit_test(test_burstable),
		cmocka_unit_test(test_hidden_threads),
		cmocka_unit_test(test_memory_types),
		cmocka_unit_test(test_cold_start),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_strict_hints),
		cmocka_unit_test(test_affinity),
		cmocka_unit_test(test_nobody_is_drained),
		cmocka_unit_test(test_nobody_above_is_drained),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_resize),
		cmocka_unit_test(test_preserve),
		cmocka_unit_test(test_pinning_off),
		cmocka_unit_test(test_configurations),
		cmocka_unit_test(test_scheduling),
		cmocka_unit_test(test_machines),
		cmocka_unit_test(test_hotplug),
		cmocka_unit_test(test_failing_host),
		cmocka_unit_test(test_misfit_says_why),
		cmocka_unit_test(test_interrupts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
