/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations of pods: topology hints, CPU and scheduling classes, interrupts; their effects and
 * the errors of invalid ones. */
#include "test/unit/t_ta.h"

static const struct fake_machine with_memory = {
	.packages = 2, .nodes = 2, .cores = 2, .threads = 2, .memory_nodes = 2};

#define DOMAIN ".resource-policy.nri.io"
#define ALLOW "allow.topologyhints" DOMAIN
#define DENY "deny.topologyhints" DOMAIN
#define TEST_HINTS "test.topologyhints" DOMAIN
#define PLAIN "{packing: balanced, reservedResources: {cpu: \"cpuset:0\"}}"
#define GUARANTEED .qos = RP_QOS_GUARANTEED, .mem_request = 1 << 20, .mem_limit = 1 << 20
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Starts the policy on a host with two devices. */
static struct fake_host *start_with(const struct fake_machine *m, const char *config)
{
	struct fake_host *f = fake_host_new(m);
	fake_device(f, "b8:0", "/sys/devices/pci0/sda", "12-15", "3");
	fake_device(f, "/srv/data", "/sys/devices/pci1/nvme", "8-11", "2");
	return start_on(f, config);
}

static bool within(const char *cpus, const char *range)
{
	struct rp_idset a, b;
	assert_int_equal(rp_idset_parse(&a, cpus, RP_CPUS_MAX), 0);
	assert_int_equal(rp_idset_parse(&b, range, RP_CPUS_MAX), 0);
	return !rp_ids_empty(rp_ids_of(&a)) && rp_ids_subset(rp_ids_of(&a), rp_ids_of(&b));
}

static uint32_t n_in(const char *cpus, const char *range)
{
	struct rp_idset a, b;
	assert_int_equal(rp_idset_parse(&a, cpus, RP_CPUS_MAX), 0);
	assert_int_equal(rp_idset_parse(&b, range, RP_CPUS_MAX), 0);
	return rp_ids_count_and(rp_ids_of(&a), rp_ids_of(&b));
}

/* ---- which hints count ----------------------------------------------------------------------- */

/* Returns the CPU of a container with one exclusive CPU, a disk near 12-15 and a mount from a
 * disk near 8-11. */
static const char *place_of(const char *annotations, bool disk, const char *mounts,
			    bool *ret_warned)
{
	static char cpus[64];
	struct fake_host *f = start_with(&small, PLAIN);
	rp_ctr c = add(f, &(struct fake_ctr){.name = "x",
					     GUARANTEED,
					     .cpu_request = 1000,
					     .annotations = annotations,
					     .devices = disk ? "/dev/sda:b8:0" : NULL,
					     .mounts = mounts});
	(void)snprintf(cpus, sizeof cpus, "%s", fake_cpus(f, c));
	*ret_warned = strstr(fake_log(f), "<4>") || strstr(fake_log(f), "annotation");
	fake_host_free(f);
	return cpus;
}

/* Checks that `deny` excludes devices unless `allow` lists them, by the container's path and by
 * the path in sysfs. */
static void test_paths(void **state)
{
	static const struct {
		const char *lists;
		bool near;
	} rows[] = {
		{DENY "={type: prefix, paths: [/dev/sda]}", false},
		{DENY "={type: prefix, paths: [/dev/sdb, /sys/devices/pci0]}", false},
		{DENY "={type: prefix, paths: [/dev/sdaa]}", true},
		{DENY "={type: prefix, paths: []}", true},
		{DENY "={type: prefix}", true},
		{DENY "={type: glob, paths: [\"/dev/sd?\"]}", false},
		{DENY "={type: glob, paths: [\"/dev/*\"]}", false},
		{DENY "={type: glob, paths: [\"/dev/s\"]}", true},
		{DENY "={type: glob, paths: [\"[\", \"/dev/*\"]}", true},
		{DENY "={type: prefix, paths: [/]}"
		      ";" ALLOW "={type: glob, paths: [\"/dev/sda\", \"/sys/devices/*/sda\"]}",
		 true},
		{DENY "={type: prefix, paths: [/]}"
		      ";" ALLOW "={type: prefix, paths: [/dev/sda]}",
		 false},
		{ALLOW "={type: prefix, paths: [/nowhere]}", true},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		bool warned;
		bool near = within(place_of(rows[i].lists, true, NULL, &warned), "12-15");
		if (near != rows[i].near)
			fail_msg("%s: %d", rows[i].lists, near);
	}
}

static void test_refused_hints(void **state)
{
	static const struct {
		const char *annotations, *why;
	} rows[] = {
		{ALLOW "=/dev", "expected keys with values, found"},
		{DENY "={type: prefix, paths: /dev}",
		 "paths: expected a list, found a text or number"},
		{DENY "={type: prefix, paths: [[/dev]]}", "paths: expected a text"},
		{TEST_HINTS "={x: 12-15}", "x: expected a map, found a text"},
		{TEST_HINTS "={x: {CPUs: [12, 13]}}", "CPUs: expected a text or number, found a"},
		{TEST_HINTS "=[x]", "expected keys with values, found a list"},
		{ALLOW "={paths: [/dev]}", "type \"\" is neither prefix nor glob"},
		{DENY "={type: regexp, paths: [/dev]}", "type \"regexp\" is neither"},
		{DENY "={type: [", "annotation deny.topologyhints"},
		{ALLOW "=- x", "expected keys with values, found a list"},
		{TEST_HINTS "={x: {CPUs: all}}", "\"x\" has an invalid list"},
		{TEST_HINTS "={x: {NUMAs: 1-}}", "\"x\" has an invalid list"},
		{TEST_HINTS "={x: {Sockets: \"0,a\"}}", "\"x\" has an invalid list"},
		{TEST_HINTS "={x: {", "annotation test.topologyhints"},
	};
	struct fake_host *f = start_with(&small, PLAIN);
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_refused(f,
			       &(struct fake_ctr){.name = "x",
						  GUARANTEED,
						  .cpu_request = 1000,
						  .annotations = rows[i].annotations},
			       rows[i].why);
	fake_host_free(f);
}

/* Mounts that every pod has and mounts that are read-only give no hints. */
static void test_boring_mounts(void **state)
{
	static const struct {
		const char *mount;
		bool counts;
	} rows[] = {
		{"/srv/data:/data", true},	   {"/srv/data:/data:ro", false},
		{"/srv/data:/etc/config", false},  {"/srv/data:/dev/termination-log", false},
		{"/srv/data:/usr/lib64/x", false}, {"/srv/data:/libs", true},
		{"srv/data:/data", false},	   {"/srv/other:/data", false},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		bool warned;
		bool near = within(place_of(NULL, false, rows[i].mount, &warned), "8-11");
		if (near != rows[i].counts)
			fail_msg("%s: %d", rows[i].mount, near);
	}
	static const char *const volumes[] = {"kubernetes.io~configmap", "kubernetes.io~secret",
					      "kubernetes.io~csi"};
	for (size_t i = 0; i < COUNT(volumes); i++) {
		char path[128], mount[160];
		struct fake_host *f = start_with(&small, PLAIN);
		(void)snprintf(path, sizeof path, "/var/lib/kubelet/pods/1/volumes/%s/v",
			       volumes[i]);
		(void)snprintf(mount, sizeof mount, "%s:/data", path);
		fake_device(f, path, "/sys/devices/pci2/nvme", "12-15", "3");
		rp_ctr c = add(
			f, &(struct fake_ctr){
				   .name = "x", GUARANTEED, .cpu_request = 1000, .mounts = mount});
		assert_int_equal(within(fake_cpus(f, c), "12-15"), i == 2);
		fake_host_free(f);
	}
}

/* Pipes and what cannot be written to are no devices to be near to. */
static void test_devices(void **state)
{
	static const struct {
		const char *device;
		bool counts;
	} rows[] = {{"/dev/sda:b8:0", true}, {"/dev/sda:b8:0:ro", false}, {"/dev/x:c8:0", false}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct fake_host *f = start_with(&small, PLAIN);
		rp_ctr c = add(f, &(struct fake_ctr){.name = "x",
						     GUARANTEED,
						     .cpu_request = 1000,
						     .devices = rows[i].device});
		assert_int_equal(within(fake_cpus(f, c), "12-15"), rows[i].counts);
		fake_host_free(f);
	}
}

/* ---- effects of hints ------------------------------------------------------------------------ */

/* Checks hints to a memory node without CPUs, which lead to the pool that the node belongs to. */
static void test_memory_hint(void **state)
{
	for (unsigned node = 4; node < 6; node++) {
		char annotations[128];
		struct fake_host *f = fake_host_new(&with_memory);
		for (unsigned other = 0; other < 4; other++)
			fake_set_distance(f, node, other, other == node - 3 ? 17 : 28);
		assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
		assert_int_equal(fake_configure(f, PLAIN), 0);
		(void)snprintf(annotations, sizeof annotations, TEST_HINTS "={x: {NUMAs: %u}}",
			       node);
		rp_ctr c = add(f, &(struct fake_ctr){.name = "x",
						     GUARANTEED,
						     .cpu_request = 1000,
						     .annotations = annotations});
		assert_string_not_equal(fake_cpus(f, c), "");
		fake_host_free(f);
	}
}

static void test_too_many(void **state)
{
	char annotations[8192] = TEST_HINTS "={";
	struct fake_host *f = start_with(&small, PLAIN);
	for (unsigned i = 0; i < 70; i++)
		(void)sprintf(annotations + strlen(annotations), "h%02u%060u: {NUMAs: 3}, ", i, i);
	strcat(annotations, "}");
	rp_ctr c = add(f, &(struct fake_ctr){.name = "x",
					     GUARANTEED,
					     .cpu_request = 1000,
					     .annotations = annotations});
	assert_true(within(fake_cpus(f, c), "12-15"));
	assert_non_null(strstr(fake_log(f), "more than 64 topology hints: ignoring that of h64"));
	/* The saved record has room for fewer hints. */
	assert_non_null(strstr(fake_log(f), "topology hints will be forgotten"));
	assert_int_equal(fake_restart(f), 0);
	assert_true(within(fake_cpus(f, c), "12-15"));
	fake_host_free(f);
}

/* Checks that test hints are ignored on a real node, unless the node's operator allows them. */
static void test_hints_are_for_tests(void **state)
{
	static const struct {
		const char *config;
		bool heard;
	} rows[] = {
		{PLAIN, false},
		{"{reservedResources: {cpu: \"cpuset:0\"}, testHints: true}", true},
	};
	struct fake_machine real = small;
	real.real = true;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct fake_host *f = start_with(&real, rows[i].config);
		rp_ctr c =
			add(f, &(struct fake_ctr){.name = "x",
						  GUARANTEED,
						  .cpu_request = 1000,
						  .annotations = TEST_HINTS "={x: {CPUs: 12-15}}"});
		assert_true(within(fake_cpus(f, c), "12-15") == rows[i].heard);
		fake_host_free(f);
	}
}

/* ---- the kubelet's devices ------------------------------------------------------------------- */

#define PICK "pick-resources-by-hints" DOMAIN "=true;" TEST_HINTS "="
#define GPU_AND_NIC                                                                                \
	"{a: {Provider: \"podresourceapi:gpu\", CPUs: 12-15}, b: {Provider: "                      \
	"\"podresourceapi:nic\", CPUs: 4-7}}"

static void test_pick(void **state)
{
	static const struct {
		int64_t mcpu;
		uint32_t near_gpu, near_nic; /* at least */
	} rows[] = {{2000, 1, 1}, {4000, 2, 2}, {6000, 3, 3}, {3000, 1, 1}, {5000, 1, 1}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct fake_host *f = start_with(&small, PLAIN);
		rp_ctr c = add(f, &(struct fake_ctr){.name = "x",
						     GUARANTEED,
						     .cpu_request = rows[i].mcpu,
						     .annotations = PICK GPU_AND_NIC});
		const char *cpus = fake_exclusive(f, c);
		assert_int_equal(n_in(cpus, "0-15"), rows[i].mcpu / 1000);
		assert_true(n_in(cpus, "12-15") >= rows[i].near_gpu);
		assert_true(n_in(cpus, "4-7") >= rows[i].near_nic);
		/* the restart no longer reports devices, and the placement is unchanged */
		char *before = strdup(cpus);
		assert_int_equal(fake_restart(f), 0);
		assert_string_equal(fake_exclusive(f, c), before);
		free(before);
		fake_host_free(f);
	}
}

static const char *placed(struct fake_host *f, const char *name, const char *annotations,
			  const char *pod_resources)
{
	return fake_exclusive(f, add(f, &(struct fake_ctr){.name = name,
							   GUARANTEED,
							   .cpu_request = 2000,
							   .annotations = annotations,
							   .pod_resources = pod_resources}));
}

/* Checks that pod resources of the kubelet are treated like other hints, by their resource name. */
static void test_pod_resources(void **state)
{
	static const struct {
		const char *annotations, *resources, *within;
	} rows[] = {
		{NULL, "x.com/nic:3", "12-15"},
		{NULL, "x.com/nic:1", "4-7"},
		{NULL, "x.com/nic:2-3", "8-15"}, /* a device at each node: the package */
		{"topologyhints" DOMAIN "=pod-resources", "x.com/nic:3", "12-15"},
		{"topologyhints" DOMAIN "=mounts,devices", "x.com/nic:3",
		 "4-7"}, /* the first idle node */
		{"topologyhints" DOMAIN "=none", "x.com/nic:3", "4-7"},
		{"deny.topologyhints" DOMAIN "={type: prefix, paths: [\"podresourceapi:x.com\"]}",
		 "x.com/nic:3", "4-7"},
		{"deny.topologyhints" DOMAIN "={type: prefix, paths: [\"podresourceapi:x.com/g\"]}",
		 "x.com/gpu:2;x.com/nic:3", "12-15"},
		{"deny.topologyhints" DOMAIN "={type: glob, paths: [\"podresourceapi:*/*\"]};"
		 "allow.topologyhints" DOMAIN "={type: glob, paths: [\"podresourceapi:*/nic\"]}",
		 "x.com/gpu:2;x.com/nic:3", "12-15"},
		{NULL, "x.com/nic:900", "4-7"}, /* there is no such node */
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct fake_host *f = start_with(&small, PLAIN);
		const char *cpus = placed(f, "x", rows[i].annotations, rows[i].resources);
		assert_int_equal(n_in(cpus, rows[i].within), 2);
		fake_host_free(f);
	}
}

static void test_pod_resources_outlive_a_restart(void **state)
{
	struct fake_host *f = start_with(&small, PLAIN);
	assert_int_equal(n_in(placed(f, "x", NULL, "x.com/nic:3"), "12-15"), 2);
	rp_ctr c = fake_ctr_named(f, "x");
	fake_forget_devices(f, c);
	assert_int_equal(fake_restart(f), 0);
	fake_request(f, c, 3000, 3000);
	assert_int_equal(fake_update(f, c), 0);
	assert_int_equal(n_in(fake_exclusive(f, c), "12-15"), 3);
	fake_host_free(f);
}

static void test_strict_pod_resources(void **state)
{
	struct fake_host *f = start_with(&small, PLAIN);
	(void)placed(f, "crowd", NULL, "x.com/nic:3");
	assert_refused(f,
		       &(struct fake_ctr){.name = "x",
					  GUARANTEED,
					  .cpu_request = 3000,
					  .annotations = "strict.topologyhints" DOMAIN "=true",
					  .pod_resources = "x.com/nic:3"},
		       "do not satisfy the strict hint podresourceapi:x.com/nic");
	fake_host_free(f);
}

/* Checks that a single CPU is not near two devices. Without the annotation, or without free CPUs
 * near a device, the usual placement applies. */
static void test_not_picked(void **state)
{
	struct fake_host *f = start_with(&small, PLAIN);
	rp_ctr c = add(f, &(struct fake_ctr){.name = "one",
					     GUARANTEED,
					     .cpu_request = 1000,
					     .annotations = PICK GPU_AND_NIC});
	assert_int_equal(n_in(fake_exclusive(f, c), "0-15"), 1);
	(void)add(f, &(struct fake_ctr){.name = "crowd",
					GUARANTEED,
					.cpu_request = 4000,
					.annotations = TEST_HINTS "={x: {CPUs: 4-7}}"});
	c = add(f, &(struct fake_ctr){.name = "two",
				      GUARANTEED,
				      .cpu_request = 2000,
				      .annotations = PICK GPU_AND_NIC});
	assert_int_equal(n_in(fake_exclusive(f, c), "0-15"), 2);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_refused_hints),
		cmocka_unit_test(test_boring_mounts),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_memory_hint),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_hints_are_for_tests),
		cmocka_unit_test(test_pick),
		cmocka_unit_test(test_not_picked),
		cmocka_unit_test(test_pod_resources),
		cmocka_unit_test(test_pod_resources_outlive_a_restart),
		cmocka_unit_test(test_strict_pod_resources),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
