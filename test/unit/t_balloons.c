/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the balloons policy from outside, where stories do not reach: devices, odd words, its saved
 * state, waiting containers and containers without a balloon. */
#include "test/unit/t_balloons.h"

#define RESERVED "reservedResources: {cpu: 1000m}, "

/* Device files, and folders on a device. */
static void test_device_files(void **state)
{
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

/* Checks that annotations with any characters are logged on one line. */
static void test_odd_annotations(void **state)
{
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

/* Memory that is not there: near its CPUs all the same. */
static void test_no_memory(void **state)
{
	struct fake_host *f = start(&n4c16, "{" RESERVED "balloonTypes: [{name: a}]}");
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

/* Checks that small waiting containers find room that large ones do not, and that no container is
 * forgotten. */
static void test_waiting(void **state)
{
	static const int64_t requests[] = {6000, 3000, 3000, 1000, 1000, 1000, 1000};
	struct fake_host *f = start(&n4c16, "{balloonTypes: [{name: a, preferNewBalloons: true, "
					    "preferSpreadingPods: true}]}");
	rp_ctr c[7];
	for (uint32_t i = 0; i < 7; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "c%u", i);
		c[i] = create(f, name, "a", requests[i]);
	}
	assert_int_equal(fake_configure(f, "{availableResources: {cpu: \"cpuset:0-5\"}, "
					   "balloonTypes: [{name: a, preferNewBalloons: true, "
					   "preferSpreadingPods: true}]}"),
			 0);
	assert_null(fake_degraded(f, c[0]));
	for (uint32_t i = 1; i < 7; i++)
		assert_non_null(fake_degraded(f, c[i]));
	/* With each one less there is room for some more. */
	for (uint32_t gone = 0; gone < 7; gone++) {
		int64_t left = 6000;
		assert_int_equal(fake_release(f, c[gone]), 0);
		for (uint32_t i = gone + 1; i < 7; i++)
			left -= fake_degraded(f, c[i]) ? 0
				: requests[i] < 1000   ? 1000
						       : requests[i];
		assert_true(left >= 0);
		for (uint32_t i = gone + 1; i < 7; i++)
			assert_true(!fake_degraded(f, c[i]) || requests[i] > left);
	}
	fake_host_free(f);
}

static void check_no_cpus_left(struct fake_host *f)
{
	char *was = strdup(fake_zones(f));
	assert_non_null(was);
	assert_int_equal(fake_set_offline(f, "12-15"), -RP_EINVAL);
	assert_string_equal(fake_zones(f), was);
	free(was);
}

/* All stays as it was, whatever came before: a sync, or a container, that are not taken back. */
static void test_hotplug_refused(void **state)
{
	struct fake_host *f =
		start(&n4c16, "{" RESERVED "availableResources: {cpu: \"cpuset:0-7\"}, "
			      "balloonTypes: [{name: a, preferNewBalloons: true}]}");
	rp_ctr a = create(f, "a", "a", 2000);
	assert_int_equal(fake_configure(f,
					"{" RESERVED "availableResources: {cpu: \"cpuset:12-15\"}, "
					"balloonTypes: [{name: a, preferNewBalloons: true}]}"),
			 0);
	expect(f, a, "14-15");
	check_no_cpus_left(f);
	assert_int_equal(fake_set_offline(f, ""), 0);
	expect(f, a, "14-15");
	rp_ctr b = create(f, "b", "a", 1000);
	expect(f, b, "13");
	check_no_cpus_left(f);
	assert_int_equal(fake_set_offline(f, ""), 0);
	expect(f, a, "14-15");
	expect(f, b, "13");
	fake_host_free(f);
}

/* A list that was in force is so again while some of it is off line, in the next configuration and
 * in the next run. */
static void test_reserved_off_line(void **state)
{
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0-1\"}}");
	const struct rp_state *s = fake_module_service(f, RP_STATE_1);
	assert_int_equal(fake_set_offline(f, "1,15"), 0);
	assert_non_null(strstr(fake_log(f), "reserved CPUs 1 are offline"));
	fake_log_clear(f);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0-1\"}, "
					   "balloonTypes: [{name: a}]}"),
			 0);
	assert_non_null(strstr(fake_log(f), "<4>reserved CPUs 1 are offline"));
	assert_int_equal(fake_restart(f), 0);
	/* 0 is still reserved, and 1 is not forgotten. */
	expect(f, create(f, "a", "a", 1000), "2");
	assert_true(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0-1,15\"}}") < 0);
	assert_non_null(strstr(fake_error(f), "reserved CPUs 15 are not available"));
	assert_int_equal(fake_set_offline(f, "15"), 0);
	expect(f, create(f, "k", "reserved", 2000), "0-1");
	/* Without a saved state the reserved CPU must be online. */
	assert_int_equal(fake_set_offline(f, "1"), 0);
	fake_lose_state(f);
	assert_true(fake_restart(f) < 0);
	assert_non_null(strstr(fake_error(f), "reserved CPUs 1 are not available"));
	s = fake_module_service(f, RP_STATE_1);
	/* A state of another version is refused. */
	static const uint8_t other[] = {1, 0, 0, 0, 1, 0, 'a', 0, 0, 0, 0, 0, 0, 0,
					0, 0, 0, 0, 0, 0, 0,   1, 0, 4, 0, 5, 0};
	assert_true(s->load(fake_instance(f), other, sizeof other) < 0);
	fake_host_free(f);
}

/* Checks a state that is saved after a new configuration was accepted and before any container is
 * placed under it. */
static void test_saved_early(void **state)
{
	static const char listed[] = "{reservedResources: {cpu: \"cpuset:2-3\"}}";
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0-1\"}}");
	const struct rp_policy *p = fake_module_service(f, RP_POLICY_1);
	const struct rp_state *s = fake_module_service(f, RP_STATE_1);
	rp_ctr c = create(f, "c", NULL, 4000);
	expect(f, c, "4-7");
	struct rp_plan *plan;
	const void *data;
	uint32_t size;
	assert_int_equal(p->prepare(fake_instance(f), fake_cfg(f, listed), &plan), 0);
	p->commit(fake_instance(f), plan);
	assert_int_equal(fake_sync(f), 0);
	assert_int_equal(s->save(fake_instance(f), &data, &size), 0);
	uint8_t *copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, data, size);
	/* The list was in force: a CPU of it that is off line is waited for. One of the list before
	 * is not. */
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_set_offline(f, "1,3"), 0);
	assert_int_equal(s->load(fake_instance(f), copy, size), 0);
	assert_true(p->prepare(fake_instance(f),
			       fake_cfg(f, "{reservedResources: {cpu: \"cpuset:0-1\"}}"),
			       &plan) < 0);
	assert_int_equal(p->prepare(fake_instance(f), fake_cfg(f, listed), &plan), 0);
	p->commit(fake_instance(f), plan);
	/* The state contains the balloons. */
	assert_int_equal(fake_sync(f), 0);
	expect(f, c, "4-7");
	free(copy);
	fake_host_free(f);
}

/* Checks a start without state, with only the CPUs of the containers: sets that can be balloons
 * become balloons. */
static void test_found_containers(void **state)
{
	struct fake_host *f = fake_host_new(&n4c16);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	rp_ctr two = add(f, "two", "a", 1250), also = add(f, "also", "a", 500),
	       wide = add(f, "wide", "a", 1000), none = add(f, "none", "a", 1000),
	       whole = add(f, "whole", "c", 2000), never = add(f, "never", "n", 1000);
	fake_decide(f, two, "6-7", NULL, NULL);
	fake_decide(f, also, "6-7", NULL, NULL);
	fake_decide(f, wide, "0-15", NULL, NULL);
	fake_decide(f, whole, "12-13", NULL, NULL);
	fake_decide(f, never, "5", NULL, NULL);
	assert_int_equal(fake_configure(f, "{balloonTypes: [{name: a, preferNewBalloons: true}, "
					   "{name: p}, {name: c, components: [{balloonType: p}]}, "
					   "{name: n, maxCPUs: -1}]}"),
			 0);
	/* No balloon of its type may have any CPUs, so it has none. */
	assert_non_null(fake_degraded(f, never));
	expect(f, never, "5");
	assert_null(strstr(fake_zones(f), "n[0]"));
	expect(f, two, "6-7");
	expect(f, also, "6-7");
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, wide)), 1);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, none)), 1);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, whole)), 2);
	assert_false(rp_ids_overlap(fake_cpu_ids(f, wide), fake_cpu_ids(f, none)));
	assert_false(rp_ids_overlap(fake_cpu_ids(f, two), fake_cpu_ids(f, wide)));
	/* Out of memory anywhere in between is an error, and no more. */
	for (uint32_t at = 1; at < 40; at++) {
		fake_lose_state(f);
		fake_fail_after(f, at, RP_ENOMEM);
		(void)fake_restart(f);
		fake_fail_after(f, 0, 0);
	}
	fake_lose_state(f);
	assert_int_equal(fake_restart(f), 0);
	expect(f, two, "6-7");
	fake_host_free(f);
}

/* Checks an unmanaged container that starts before all containers are placed again, as a host does
 * when sync() has failed. */
static void test_unmanaged_before_sync(void **state)
{
	struct fake_host *f = start(&n4c16, "{" RESERVED "balloonTypes: [{name: a, maxCPUs: 4, "
					    "maxBalloons: 1}]}");
	const struct rp_policy *p = fake_module_service(f, RP_POLICY_1);
	rp_ctr c = create(f, "c", "a", 4000);
	assert_int_equal(fake_sync(f), 0);
	assert_int_equal(p->rolled_back(fake_instance(f)), RP_RESYNC);
	rp_ctr u = add(f, "u", "a", 2000);
	assert_int_equal(fake_unmanaged(f, u), 0);
	assert_int_equal(fake_sync(f), 0);
	expect(f, c, "4-7");
	expect(f, u, "1-3,8-15");
	fake_host_free(f);
}

/* Checks a container that has no room as created, but has room as resized. */
static void test_unmanaged_resized(void **state)
{
	struct fake_host *f = start(&n4c16, "{" RESERVED "balloonTypes: [{name: a, maxCPUs: 4, "
					    "maxBalloons: 1}]}");
	rp_ctr c = create(f, "c", "a", 3000), u = add(f, "u", "a", 2000);
	expect(f, c, "1-3");
	assert_int_equal(fake_unmanaged(f, u), 0);
	expect(f, u, "4-15");
	fake_request(f, u, 1500, 0);
	assert_int_equal(fake_update(f, u), 0);
	expect(f, u, "4-15");
	fake_request(f, u, 1000, 0);
	assert_int_equal(fake_update(f, u), 0);
	assert_null(fake_degraded(f, u));
	expect(f, u, "1-4");
	expect(f, c, "1-4");
	fake_host_free(f);
}

static void test_reports(void **state)
{
	struct fake_host *f =
		start(&n4c16, "{" RESERVED "showContainersInNrt: true, balloonTypes: "
			      "[{name: s, shareIdleCPUsInSame: numa, maxCPUs: 3, groupBy: "
			      "\"${pod/namespace}\", preferIsolCpus: true}]}");
	assert_non_null(strstr(fake_log(f), "preferIsolCpus with shareIdleCPUsInSame"));
	create(f, "c", "s", 1500);
	const char *zones = fake_zones(f);
	assert_non_null(strstr(zones, "s[0]"));
	assert_non_null(strstr(zones, "excess cpus"));
	assert_non_null(strstr(zones, "500m"));
	assert_non_null(strstr(zones, "shared cpuset"));
	assert_non_null(strstr(zones, "default/pod-c/c"));
	const char *metrics = fake_metrics(f);
	assert_non_null(strstr(metrics, "balloon=\"s[0]\",balloon_type=\"s\""));
	assert_non_null(strstr(metrics, "groups=\"default\""));
	assert_non_null(strstr(metrics, "cpus=\"2-3\",cpus_count=\"2\",numas=\"p0d0n0\""));
	assert_non_null(
		strstr(metrics, "containers=\"default/pod-c/c\",tot_req_millicpu=\"1500\""));
	fake_host_free(f);
	f = start(&n4c16, "{" RESERVED "pinMemory: false, balloonTypes: [{name: s, minBalloons: 1, "
			  "minCPUs: 8}]}");
	/* The first of two equal packages is chosen; reserved[0] is created later. */
	assert_non_null(strstr(fake_metrics(f), "cpus_allowed=\"0-7\",cpus_allowed_count=\"8\","
						"mems=\"0-1\",containers=\"\""));
	fake_host_free(f);
}

/* ---- devices, for hosts of two ages ---------------------------------------------------------- */

struct devices {
	unsigned n, n_limits;
	char capacity[200];
};

static void on_device(void *ctx, const char *name)
{
	struct devices *d = ctx;
	assert_string_equal(name, "balloon-s");
	d->n++;
}

static void on_capacity(void *ctx, const char *name, int64_t amount)
{
	struct devices *d = ctx;
	size_t n = strlen(d->capacity);
	(void)snprintf(d->capacity + n, sizeof d->capacity - n, "%s=%lld ", name,
		       (long long)amount);
}

static void on_text(void *ctx, const char *name, const char *value)
{
	assert_string_equal(name, "type");
	assert_string_equal(value, "s");
}

static void on_limits(void *ctx, int64_t min, int64_t max)
{
	struct devices *d = ctx;
	bool cpus = !d->n_limits++;
	assert_int_equal(min, cpus ? 2 : 1);
	assert_int_equal(max, cpus ? 4 : 1);
}

static void test_devices_of_older_hosts(void **state)
{
	struct fake_host *f =
		start(&n4c16, "{" RESERVED "balloonTypes: [{name: s, minCPUs: 2, maxCPUs: 4}]}");
	const struct rp_devices *s = fake_module_service(f, RP_DEVICES_1);
	assert_non_null(s);
	assert_int_equal(fake_sync(f), 0);
	for (unsigned newer = 0; newer < 2; newer++) {
		struct devices d = {0};
		const struct rp_devices_sink sink = {
			.size = newer ? sizeof sink : offsetof(struct rp_devices_sink, limits),
			.ctx = &d,
			.device = on_device,
			.capacity = on_capacity,
			.text = on_text,
			.limits = on_limits,
		};
		assert_int_equal(s->devices(fake_instance(f), &sink), 0);
		assert_int_equal(d.n, 1);
		assert_int_equal(d.n_limits, newer ? 2 : 0);
		assert_string_equal(d.capacity, "cpu=15 balloons=7 ");
	}
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device_files),
		cmocka_unit_test(test_odd_annotations),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_hotplug_refused),
		cmocka_unit_test(test_reserved_off_line),
		cmocka_unit_test(test_saved_early),
		cmocka_unit_test(test_found_containers),
		cmocka_unit_test(test_unmanaged_before_sync),
		cmocka_unit_test(test_unmanaged_resized),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_devices_of_older_hosts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
