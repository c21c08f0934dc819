/* SPDX-License-Identifier: Apache-2.0 */
/* The balloons policy from outside: who gets which CPUs. */
#include "test/unit/t_balloons.h"

#define RESERVED "reservedResources: {cpu: 1000m}, "
#define SPREAD_A "preferNewBalloons: true, preferSpreadingPods: true"

/* ---- worked examples ------------------------------------------------------------------------- */

/* New balloons one after another on an empty machine with CPU 0 reserved. */
static const struct {
	int64_t mcpu;
	const char *config, *cpus;
} in_a_row[] = {
	{1000, "allocatorTopologyBalancing: true", "8 4 12 2 10 6 14 1 9 5 13 3 11 7 15"},
	{1000, "allocatorTopologyBalancing: false", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"},
	{2000, "allocatorTopologyBalancing: true", "8-9 4-5 12-13 2-3 10-11 6-7 14-15"},
	{2000, "allocatorTopologyBalancing: false", "2-3 4-5 6-7 8-9 10-11 12-13 14-15"},
	{3000, "allocatorTopologyBalancing: true", "8-10 4-6 12-14 1-3"},
	{3000, "allocatorTopologyBalancing: false", "1-3 4-6 8-10 12-14"},
	{5000, "allocatorTopologyBalancing: true", "8-12 1-5"},
	{2000, "allocatorTopologyBalancing: true, preferSpreadOnPhysicalCores: true",
	 "8,10 4,6 12,14 1,3 9,11 5,7 13,15"},
	{2000, "allocatorTopologyBalancing: false, preferSpreadOnPhysicalCores: true",
	 "1,3 4,6 5,7 8,10 9,11 12,14 13,15"},
};

static void test_in_a_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof in_a_row / sizeof in_a_row[0]; i++) {
		char config[400], got[400] = "";
		(void)snprintf(config, sizeof config,
			       "{" RESERVED "%s, balloonTypes: [{name: a, " SPREAD_A "}]}",
			       in_a_row[i].config);
		struct fake_host *f = start(&n4c16, config);
		for (int k = 0; strlen(got) < strlen(in_a_row[i].cpus); k++) {
			char name[16];
			(void)snprintf(name, sizeof name, "c%d", k);
			rp_ctr c = create(f, name, "a", in_a_row[i].mcpu);
			(void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s",
				       k ? " " : "", fake_cpus(f, c));
		}
		assert_string_equal(got, in_a_row[i].cpus);
		fake_host_free(f);
	}
}

static void grow_and_shrink(const char *config, const char *const up[8], const char *const down[7])
{
	struct fake_host *f = start(&n4c16, config);
	rp_ctr c[8];
	for (int i = 0; i < 8; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "c%d", i);
		c[i] = create(f, name, "a", 1000);
		for (int k = 0; k <= i; k++)
			expect(f, c[k], up[i]);
	}
	for (int i = 0; i < 7; i++) {
		assert_int_equal(fake_release(f, c[i]), 0);
		expect(f, c[7], down[i]);
	}
	fake_host_free(f);
}

static void test_grow_and_shrink(void **state)
{
	(void)state;
	grow_and_shrink(
		"{" RESERVED "allocatorTopologyBalancing: true, balloonTypes: [{name: a}]}",
		(const char *const[]){"8", "8-9", "8-10", "8-11", "8-12", "8-13", "8-14", "8-15"},
		(const char *const[]){"8-14", "8-13", "8-12", "8-11", "8-10", "8-9", "8"});
	grow_and_shrink("{" RESERVED "balloonTypes: [{name: a}]}",
			(const char *const[]){"1", "1-2", "1-3", "1-4", "1-5", "1-6", "1-7", "1-8"},
			(const char *const[]){"1-7", "2-7", "2,4-7", "4-7", "4-6", "4-5", "4"});
}

static void test_reserved_set(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0-2\"}, "
					    "allocatorTopologyBalancing: true, "
					    "balloonTypes: [{name: a, " SPREAD_A "}]}");
	static const char *const want[] = {"8-10", "4-6", "12-14", "3,7,11", "0-2"};
	for (int i = 0; i < 5; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "c%d", i);
		expect(f, create(f, name, "a", 3000), want[i]);
	}
	assert_int_equal(fake_release(f, fake_ctr_named(f, "c4")), 0);
	rp_ctr k = fake_ctr(f, &(struct fake_ctr){.name = "k",
						  .pod_namespace = "kube-system",
						  .qos = RP_QOS_BURSTABLE,
						  .cpu_request = 3000});
	assert_int_equal(fake_allocate(f, k), 0);
	expect(f, k, "0-2");
	fake_host_free(f);
}

static void test_sharing(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{" RESERVED "allocatorTopologyBalancing: true, "
			      "balloonTypes: [{name: s, shareIdleCPUsInSame: package}, "
			      "{name: n, shareIdleCPUsInSame: numa}, {name: a}]}");
	rp_ctr s = create(f, "s", "s", 1000), n = create(f, "n", "n", 1000);
	expect(f, s, "8-15");
	expect(f, n, "4-7");
	rp_ctr a = create(f, "a", "a", 3000);
	expect(f, a, "12-14");
	expect(f, s, "8-11,15");
	assert_int_equal(fake_n_changed(f), 2);
	rp_ctr a2 = create(f, "a2", "a", 2000);
	expect(f, a2, "10-14");
	expect(f, s, "8-9,15");
	expect(f, n, "4-7");
	assert_int_equal(fake_release(f, a), 0);
	expect(f, a2, "12-13");
	expect(f, s, "8-11,14-15");
	assert_int_equal(fake_release(f, a2), 0);
	expect(f, s, "8-15");
	fake_host_free(f);
}

static void test_devices(void **state)
{
	(void)state;
	struct fake_host *f = fake_host_new(&n4c16);
	fake_device(f, "/sys/devices/system/node/node2", "/sys/devices/system/node/node2", "8-11",
		    "2");
	fake_device(f, "/sys/devices/x", "/sys/devices/x", "10-11", "2");
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f,
					"{" RESERVED "allocatorTopologyBalancing: true, "
					"balloonTypes: [{name: d, preferCloseToDevices: "
					"[/sys/devices/system/node/node2, /sys/devices/x]}, "
					"{name: o}, {name: bad, preferCloseToDevices: [/sys/gone, "
					"\"podresourceapi:x/*\"]}]}"),
			 0);
	assert_non_null(strstr(fake_log(f), "/sys/gone"));
	assert_non_null(strstr(fake_log(f), "podresourceapi:x/*"));
	rp_ctr one = create(f, "one", "d", 1000);
	expect(f, one, "10");
	rp_ctr two = create(f, "two", "d", 2000);
	expect(f, one, "8-10");
	expect(f, create(f, "o", "o", 9000), "1-7,12-13");
	rp_ctr three = create(f, "three", "d", 2000);
	expect(f, one, "8-10,14-15");
	assert_int_equal(fake_release(f, three), 0);
	expect(f, one, "8-10");
	assert_int_equal(fake_release(f, two), 0);
	expect(f, one, "10");
	fake_host_free(f);
}

/* Device files, and folders on a device. */
static void test_device_files(void **state)
{
	(void)state;
	struct fake_host *f = fake_host_new(&n4c16);
	fake_device(f, "/dev/nvme0n1", "/sys/devices/nvme0", "8-11", "2");
	fake_device(f, "/sys/devices/nvme0", "/sys/devices/nvme0", "8-11", "2");
	fake_device(f, "/mnt/fast", "/sys/devices/nvme1", "12-15", "3");
	fake_device(f, "/sys/devices/nvme1", "/sys/devices/nvme1", "12-15", "3");
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{balloonTypes: [{name: d, preferCloseToDevices: "
					   "[/dev/nvme0n1]}, {name: m, preferCloseToDevices: "
					   "[/mnt/fast]}, {name: gone, preferCloseToDevices: "
					   "[/dev/gone]}, {name: o}]}"),
			 0);
	assert_non_null(strstr(fake_log(f), "/dev/gone: the CPUs near this device"));
	assert_null(strstr(fake_log(f), "/dev/nvme0n1"));
	expect(f, create(f, "d", "d", 1000), "8");
	expect(f, create(f, "m", "m", 1000), "12");
	/* Others keep off. */
	expect(f, create(f, "o", "o", 8000), "0-7");
	fake_host_free(f);
}

/* Annotations may have anything in them; what is said about them is one line. */
static void test_odd_annotations(void **state)
{
	(void)state;
	static const char *const annotations[] = {
		"scheduling-class.resource-policy.nri.io=a\nb",
		"memory-type.resource-policy.nri.io=dram,\n",
		"hide-hyperthreads.resource-policy.nri.io=\ntrue",
	};
	struct fake_host *f = start(&n4c16, "{balloonTypes: [{name: a}]}");
	for (size_t i = 0; i < sizeof annotations / sizeof annotations[0]; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "c%zu", i);
		rp_ctr c = fake_ctr(
			f, &(struct fake_ctr){.name = name, .annotations = annotations[i]});
		assert_int_equal(fake_allocate(f, c), 0);
		assert_null(strstr(fake_trail(f, c), "\nb"));
	}
	refuse(f, "x", "a\nb", 1000, "no balloon for annotation \"a b\"");
	fake_host_free(f);
}

#define NODES_CONFIG                                                                               \
	"{" RESERVED "balloonTypes: ["                                                             \
	"{name: node0, preferCloseToDevices: [/n0]}, {name: node1, preferCloseToDevices: [/n1]}, " \
	"{name: node2, preferCloseToDevices: [/n2]}, {name: node3, preferCloseToDevices: [/n3]}, " \
	"{name: all, components: [{balloonType: pkg0}, {balloonType: pkg1}], minCPUs: 4, "         \
	"minBalloons: 1}, "                                                                        \
	"{name: pkg0, components: [{balloonType: node0}, {balloonType: node1}]}, "                 \
	"{name: pkg1, componentCreation: all, components: [{balloonType: node2}, {balloonType: "   \
	"node3}]}, "                                                                               \
	"{name: either, componentCreation: balance-balloons, preferNewBalloons: true, "            \
	"components: [{balloonType: node2}, {balloonType: node3}]}]}"

static void test_composite(void **state)
{
	(void)state;
	struct fake_host *f = fake_host_new(&n4c16);
	for (unsigned i = 0; i < 4; i++) {
		char path[8], cpus[16], node[4];
		(void)snprintf(path, sizeof path, "/n%u", i);
		(void)snprintf(cpus, sizeof cpus, "%u-%u", 4 * i, 4 * i + 3);
		(void)snprintf(node, sizeof node, "%u", i);
		fake_device(f, path, path, cpus, node);
	}
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, NODES_CONFIG), 0);
	assert_non_null(strstr(fake_zones(f), "{{{0}, {4}}, {{8}, {12}}}"));
	rp_ctr one = create(f, "one", "all", 1000), nine = create(f, "nine", "all", 9000);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, one)), 12);
	assert_string_equal(fake_cpus(f, one), fake_cpus(f, nine));
	/* The reserved CPU is on node 0, so node 1 to 3 have one CPU left each, and one is too few
	 * for another four. */
	assert_int_equal(fake_release(f, nine), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, one)), 4);
	/* Emptied it keeps its least size. */
	assert_int_equal(fake_release(f, one), 0);
	rp_ctr be = create(f, "be", "all", 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, be)), 4);
	/* One that asks for nothing gets a CPU of each component. */
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, create(f, "be1", "pkg1", 0))), 2);
	/* The component that has fewest balloons, in the order of the list. */
	rp_ctr e1 = create(f, "e1", "either", 1000), e2 = create(f, "e2", "either", 1000);
	assert_true(rp_ids_first(fake_cpu_ids(f, e1)) / 4 == 2);
	assert_true(rp_ids_first(fake_cpu_ids(f, e2)) / 4 == 3);
	fake_host_free(f);
}

/* ---- types and instances --------------------------------------------------------------------- */

static void test_types(void **state)
{
	(void)state;
	struct fake_host *f = start(
		&n4c16,
		"{" RESERVED "reservedPoolNamespaces: [monitor-*], balloonTypes: ["
		"{name: guaranteed, matchExpressions: [{key: qosclass, operator: In, values: "
		"[Guaranteed]}]}, {name: db, matchExpressions: [{key: pod/labels/app, operator: "
		"Matches, values: [\"d[a-c]\"]}]}, {name: ns, namespaces: [\"x?\", y]}]}");
	static const struct {
		struct fake_ctr ctr;
		const char *type;
	} cases[] = {
		{{.name = "a", .pod_namespace = "kube-system", .qos = RP_QOS_BURSTABLE},
		 "reserved[0]"},
		{{.name = "b", .pod_namespace = "monitor-1", .qos = RP_QOS_BURSTABLE},
		 "reserved[0]"},
		{{.name = "c", .qos = RP_QOS_GUARANTEED}, "guaranteed[0]"},
		{{.name = "d", .qos = RP_QOS_BURSTABLE, .labels = "app=db"}, "db[0]"},
		{{.name = "e", .qos = RP_QOS_BURSTABLE, .labels = "app=dd"}, "default[0]"},
		{{.name = "f", .pod_namespace = "x1", .qos = RP_QOS_BURSTABLE}, "ns[0]"},
		{{.name = "g", .pod_namespace = "x/", .qos = RP_QOS_BURSTABLE}, "default[0]"},
		{{.name = "h", .qos = RP_QOS_BURSTABLE, .annotations = BALLOON "reserved"},
		 "reserved[0]"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		rp_ctr c = fake_ctr(f, &cases[i].ctr);
		assert_int_equal(fake_allocate(f, c), 0);
		if (!strstr(fake_trail(f, c), cases[i].type))
			fail_msg("%s: not in %s: %s", cases[i].ctr.name, cases[i].type,
				 fake_trail(f, c));
	}
	refuse(f, "none", "nosuch", 100, "no balloon for annotation \"nosuch\"");
	fake_host_free(f);
}

static void test_limits(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{" RESERVED "balloonTypes: [{name: one, minCPUs: 2, maxCPUs: 2, "
			      "minBalloons: 1, maxBalloons: 1}, {name: two, maxCPUs: 1, "
			      "maxBalloons: 2, preferNewBalloons: true}, {name: never, maxCPUs: "
			      "-1}, {name: small, maxCPUs: 2, minBalloons: 1}]}");
	rp_ctr a = create(f, "a", "one", 1500), b = create(f, "b", "one", 500);
	assert_string_equal(fake_cpus(f, a), fake_cpus(f, b));
	refuse(f, "c", "one", 100, "no suitable balloon instance available");
	rp_ctr d = create(f, "d", "two", 800), e = create(f, "e", "two", 600);
	assert_false(rp_ids_overlap(fake_cpu_ids(f, d), fake_cpu_ids(f, e)));
	assert_string_equal(fake_cpus(f, create(f, "g", "two", 300)), fake_cpus(f, e));
	refuse(f, "h", "two", 300, "no suitable balloon instance available");
	refuse(f, "i", "never", 0, "no suitable balloon instance available");
	/* An empty balloon that cannot become large enough is none. */
	refuse(f, "j", "small", 3000, "no suitable balloon instance available");
	refuse(f, "k", NULL, 16000, "no suitable balloon instance available");
	assert_int_equal(fake_n_ctrs(f), 5);
	fake_host_free(f);
}

/* maxCPUs counts when few CPUs are free, too. */
static void test_limit_on_a_full_machine(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{" RESERVED "balloonTypes: [{name: a, minCPUs: 4, maxCPUs: 8, "
			      "minBalloons: 2, preferNewBalloons: true}]}");
	rp_ctr a = create(f, "a", "a", 5000), b = create(f, "b", "a", 4000);
	assert_false(rp_ids_overlap(fake_cpu_ids(f, a), fake_cpu_ids(f, b)));
	fake_host_free(f);
}

static void test_groups(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{" RESERVED "balloonTypes: [{name: g, preferNewBalloons: "
			      "true, groupBy: \"${pod/namespace}-$pod/labels/app\"}, "
			      "{name: ns, preferPerNamespaceBalloon: true}]}");
	static const char *const apps[] = {"app=x", "app=y", "app=x", NULL, NULL};
	rp_ctr c[5];
	for (int i = 0; i < 5; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "c%d", i);
		c[i] = fake_ctr(f, &(struct fake_ctr){.name = name,
						      .qos = RP_QOS_BURSTABLE,
						      .cpu_request = 500,
						      .labels = apps[i],
						      .annotations = BALLOON "g"});
		assert_int_equal(fake_allocate(f, c[i]), 0);
	}
	assert_string_equal(fake_cpus(f, c[0]), fake_cpus(f, c[2]));
	assert_string_not_equal(fake_cpus(f, c[0]), fake_cpus(f, c[1]));
	/* Without the label it is in no group that others could share. */
	assert_string_not_equal(fake_cpus(f, c[3]), fake_cpus(f, c[4]));
	assert_non_null(strstr(fake_metrics(f), "groups=\"default-x\""));
	static const char *const spaces[] = {"u", "v", "u"};
	for (int i = 0; i < 3; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "n%d", i);
		c[i] = fake_ctr(f, &(struct fake_ctr){.name = name,
						      .pod_namespace = spaces[i],
						      .qos = RP_QOS_BURSTABLE,
						      .cpu_request = 500,
						      .annotations = BALLOON "ns"});
		assert_int_equal(fake_allocate(f, c[i]), 0);
	}
	assert_string_equal(fake_cpus(f, c[0]), fake_cpus(f, c[2]));
	assert_string_not_equal(fake_cpus(f, c[0]), fake_cpus(f, c[1]));
	fake_host_free(f);
}

static rp_ctr of_pod(struct fake_host *f, const char *name, const char *type, int64_t mcpu)
{
	char annotations[100];
	(void)snprintf(annotations, sizeof annotations, BALLOON "%s", type);
	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = name,
						  .pod_name = "pod",
						  .qos = RP_QOS_BURSTABLE,
						  .cpu_request = mcpu,
						  .annotations = annotations});
	assert_int_equal(fake_allocate(f, c), 0);
	return c;
}

static void test_pods(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{" RESERVED "balloonTypes: [{name: t, preferNewBalloons: true}, "
			      "{name: s, preferNewBalloons: true, preferSpreadingPods: true}]}");
	rp_ctr a = of_pod(f, "a", "t", 1000), b = of_pod(f, "b", "t", 1000);
	assert_string_equal(fake_cpus(f, a), fake_cpus(f, b));
	rp_ctr c = of_pod(f, "c", "s", 1000), d = of_pod(f, "d", "s", 1000);
	assert_string_not_equal(fake_cpus(f, c), fake_cpus(f, d));
	fake_host_free(f);
}

/* ---- what containers get --------------------------------------------------------------------- */

static void test_pinning(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16,
		      "{" RESERVED "preserve: {matchExpressions: [{key: name, operator: Equals, "
		      "values: [leave]}]}, schedulingClasses: [{name: rt, policy: fifo, priority: "
		      "42, ioClass: be, ioPriority: 6, flags: [reset-on-fork]}, {name: idle, "
		      "policy: idle, nice: 17}], balloonTypes: [{name: h, hideHyperthreads: true, "
		      "schedulingClass: rt}]}");
	rp_ctr h = create(f, "h", "h", 4000);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, h)), 2);
	assert_int_equal(fake_int(f, h, RP_F_SHARES), 4096);
	assert_int_equal(fake_int(f, h, RP_F_SCHED_POLICY), 1);
	assert_int_equal(fake_int(f, h, RP_F_SCHED_PRIORITY), 42);
	assert_int_equal(fake_int(f, h, RP_F_IO_CLASS), 2);
	assert_int_equal(fake_int(f, h, RP_F_IO_PRIORITY), 6);
	assert_int_equal(fake_int(f, h, RP_F_SCHED_FLAGS), 1);
	rp_ctr s =
		fake_ctr(f, &(struct fake_ctr){.name = "s",
					       .qos = RP_QOS_BURSTABLE,
					       .cpu_request = 1,
					       .annotations = BALLOON
					       "h;hide-hyperthreads.resource-policy.nri.io=false;"
					       "scheduling-class.resource-policy.nri.io=idle"});
	assert_int_equal(fake_allocate(f, s), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, s)), 5);
	assert_int_equal(fake_int(f, s, RP_F_SHARES), 2);
	assert_int_equal(fake_int(f, s, RP_F_SCHED_POLICY), 5);
	assert_int_equal(fake_int(f, s, RP_F_NICE), 17);
	rp_ctr x =
		fake_ctr(f, &(struct fake_ctr){.name = "x",
					       .qos = RP_QOS_BEST_EFFORT,
					       .annotations = BALLOON
					       "h;hide-hyperthreads.resource-policy.nri.io=maybe;"
					       "memory-type.resource-policy.nri.io=dram,x;"
					       "scheduling-class.resource-policy.nri.io=none"});
	assert_int_equal(fake_allocate(f, x), 0);
	assert_int_equal(fake_int(f, x, RP_F_SCHED_POLICY), RP_NOT_SET);
	assert_non_null(strstr(fake_log(f), "\"maybe\" is neither true nor false"));
	assert_non_null(strstr(fake_log(f), "\"dram,x\" is ignored"));
	rp_ctr leave = create(f, "leave", NULL, 1000);
	expect(f, leave, "");
	rp_ctr keep = fake_ctr(f, &(struct fake_ctr){.name = "keep",
						     .qos = RP_QOS_BURSTABLE,
						     .flags = RP_CTR_PRESERVE_CPU,
						     .cpu_request = 1000});
	assert_int_equal(fake_allocate(f, keep), 0);
	expect(f, keep, "");
	assert_int_equal(fake_release(f, keep), 0);
	assert_int_equal(fake_release(f, leave), 0);
	fake_host_free(f);
}

static void test_memory(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{" RESERVED "balloonTypes: [{name: a, preferNewBalloons: true}, "
			      "{name: off, pinMemory: false}]}");
	rp_ctr a = create(f, "a", "a", 3000);
	assert_string_equal(fake_cpus(f, a), "1-3");
	assert_string_equal(fake_mems(f, a), "0");
	fake_request(f, a, 5000, 0);
	assert_int_equal(fake_update(f, a), 0);
	assert_string_equal(fake_mems(f, a), "0-1");
	fake_request(f, a, 2000, 0);
	assert_int_equal(fake_update(f, a), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, a)), 2);
	assert_int_equal(strlen(fake_mems(f, a)), 1);
	assert_string_equal(fake_mems(f, create(f, "off", "off", 1000)), "");
	rp_ctr kept = fake_ctr(f, &(struct fake_ctr){.name = "kept",
						     .qos = RP_QOS_BURSTABLE,
						     .cpu_request = 1000,
						     .flags = RP_CTR_PRESERVE_MEM,
						     .mem_limit = 1 << 20,
						     .annotations = BALLOON "a"});
	fake_decide(f, kept, NULL, NULL, "3");
	assert_int_equal(fake_allocate(f, kept), 0);
	assert_string_equal(fake_mems(f, kept), "3");
	/* Memory that is not there: near its CPUs all the same. */
	rp_ctr huge = fake_ctr(f, &(struct fake_ctr){.name = "huge",
						     .qos = RP_QOS_GUARANTEED,
						     .cpu_request = 1000,
						     .mem_limit = INT64_C(1) << 40,
						     .annotations = BALLOON "a"});
	assert_int_equal(fake_allocate(f, huge), 0);
	assert_string_not_equal(fake_mems(f, huge), "");
	assert_non_null(strstr(fake_log(f), "no memory for it near its CPUs"));
	fake_host_free(f);
}

static void test_resize(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{" RESERVED
			      "balloonTypes: [{name: a, maxCPUs: 4, minCPUs: 1, maxBalloons: 1}]}");
	rp_ctr a = create(f, "a", "a", 1000), b = create(f, "b", "a", 1000);
	fake_request(f, a, 3000, 0);
	assert_int_equal(fake_update(f, a), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, b)), 4);
	assert_int_equal(fake_int(f, a, RP_F_SHARES), 3072);
	char before[64];
	(void)snprintf(before, sizeof before, "%s", fake_cpus(f, b));
	fake_request(f, b, 2000, 0);
	assert_int_equal(fake_update(f, b), -RP_ENOSPC);
	expect(f, b, before);
	fake_request(f, a, 100, 0);
	assert_int_equal(fake_update(f, a), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, b)), 2);
	/* The refused one was not counted. */
	create(f, "c", "a", 2900);
	refuse(f, "d", "a", 100, "no suitable");
	fake_host_free(f);
}

/* ---- load ------------------------------------------------------------------------------------ */

static void test_loads(void **state)
{
	(void)state;
	struct fake_host *f = start(
		&n4c16, "{" RESERVED "loadClasses: [{name: avx, level: core}, {name: self, level: "
			"core, overloadsLevelInBalloon: true}], balloonTypes: [{name: avx, loads: "
			"[avx], " SPREAD_A "}, {name: self, loads: [self, self], " SPREAD_A "}]}");
	/* Never two on a core. */
	rp_ctr c[4];
	for (int i = 0; i < 4; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "c%d", i);
		c[i] = create(f, name, "avx", 1000);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(rp_ids_first(fake_cpu_ids(f, c[i])) / 2,
					     rp_ids_first(fake_cpu_ids(f, c[k])) / 2);
	}
	/* A balloon that keeps off its own cores. */
	rp_ctr s = create(f, "s", "self", 3000);
	uint32_t last = UINT32_MAX;
	RP_IDS_EACH (cpu, fake_cpu_ids(f, s)) {
		assert_int_not_equal(cpu / 2, last);
		last = cpu / 2;
	}
	fake_host_free(f);
}

static void test_isolated(void **state)
{
	(void)state;
	struct fake_machine m = n4c16;
	m.isolated = "0-3";
	struct fake_host *f = start(&m, "{balloonTypes: [{name: i, preferIsolCpus: true, "
					"shareIdleCPUsInSame: system}, {name: a, " SPREAD_A "}]}");
	assert_non_null(strstr(fake_log(f), "preferIsolCpus with shareIdleCPUsInSame"));
	rp_ctr i = create(f, "i", "i", 2000);
	expect(f, i, "0-1,4-15");
	expect(f, create(f, "a", "a", 2000), "4-5");
	expect(f, i, "0-1,6-15");
	fake_host_free(f);
}

static void test_core_kinds(void **state)
{
	(void)state;
	struct fake_machine m = {.cores = 4, .threads = 2, .e_cores = 4};
	struct fake_host *f =
		start(&m, "{balloonTypes: [{name: e, preferCoreType: efficient}, {name: "
			  "p, preferCoreType: performance}]}");
	rp_ctr e = create(f, "e", "e", 2000), p = create(f, "p", "p", 2000);
	assert_true(rp_ids_first(fake_cpu_ids(f, e)) >= 8);
	assert_true(rp_ids_last(fake_cpu_ids(f, p)) < 8);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_a_row),
		cmocka_unit_test(test_grow_and_shrink),
		cmocka_unit_test(test_reserved_set),
		cmocka_unit_test(test_sharing),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_device_files),
		cmocka_unit_test(test_odd_annotations),
		cmocka_unit_test(test_composite),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_limit_on_a_full_machine),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_pods),
		cmocka_unit_test(test_pinning),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_resize),
		cmocka_unit_test(test_loads),
		cmocka_unit_test(test_isolated),
		cmocka_unit_test(test_core_kinds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
