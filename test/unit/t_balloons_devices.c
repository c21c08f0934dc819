/* SPDX-License-Identifier: Apache-2.0 */
/* Balloons near the devices that the kubelet gave the containers that they are made for. */
#include "test/unit/t_balloons.h"

#define BASE                                                                                       \
	"{reservedResources: {cpu: \"cpuset:0\"}, allocatorTopologyBalancing: true, "              \
	"balloonTypes: ["
#define NODE "/sys/devices/system/node/node"
/* A balloon each; and one that containers come to as it has room. */
#define OWN                                                                                        \
	"{name: own, preferNewBalloons: true, preferSpreadingPods: true, preferCloseToDevices: "   \
	"[\"podresourceapi:x.com/*\"]}"
#define SHARED "{name: shared, preferCloseToDevices: [\"podresourceapi:x.com/*\"]}"
#define AT_NODE_3 "{name: node3, preferCloseToDevices: [" NODE "3]}"

static struct fake_host *start_near(const char *types)
{
	static const char *const cpus[] = {"0-3", "4-7", "8-11", "12-15"};
	struct fake_host *f = fake_host_new(&n4c16);
	char config[2000], node[2], path[80];
	for (unsigned i = 0; i < 4; i++) {
		(void)snprintf(node, sizeof node, "%u", i);
		(void)snprintf(path, sizeof path, NODE "%u", i);
		fake_device(f, path, path, cpus[i], node);
	}
	(void)snprintf(config, sizeof config, BASE "%s]}", types);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	if (fake_configure(f, config))
		fail_msg("%s: %s", config, fake_error(f));
	return f;
}

static rp_ctr create_with(struct fake_host *f, const char *name, const char *type, int64_t mcpu,
			  const char *devices)
{
	char annotations[200];
	(void)snprintf(annotations, sizeof annotations, BALLOON "%s", type);
	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = name,
						  .qos = RP_QOS_BURSTABLE,
						  .cpu_request = mcpu,
						  .annotations = annotations,
						  .pod_resources = devices});
	if (fake_allocate(f, c))
		fail_msg("%s: %s", name, fake_error(f));
	return c;
}

static void resize_to(struct fake_host *f, rp_ctr c, int64_t mcpu)
{
	fake_request(f, c, mcpu, 0);
	assert_int_equal(fake_update(f, c), 0);
}

/*
 * Without hints two CPUs come from the package with more free ones, which is the second as CPU 0 is
 * avoided: 8-9. The nodes of all matching devices count together.
 */
static void test_a_new_balloon_is_near_the_devices(void **state)
{
	static const struct {
		const char *glob, *devices, *cpus;
	} rows[] = {
		{"x.com/*", "x.com/nic:3", "12-13"},
		{"x.com/*", "x.com/nic:1", "4-5"},
		{"*/nic", "x.com/nic:3", "12-13"},
		{"*.com/nic", "x.com/nic:3", "12-13"},
		{"x.com/nic", "x.com/nic:3", "12-13"},
		{"x.com/*", "x.com/gpu:3;y.com/nic:1", "12-13"}, /* the other one does not match */
		{"x.com/*", "y.com/nic:3", "8-9"}, /* none matches */
		{"x.com*", "x.com/nic:3", "8-9"}, /* a star does not match a slash */
		{"*", "x.com/nic:3", "8-9"},
		{"x.com/[", "x.com/nic:3", "8-9"}, /* no glob */
		{"x.com/*", "x.com/nic:900", "8-9"}, /* no such node */
		{"x.com/*", "x.com/nic:0,3,900", "12-13"}, /* most free ones are at node 3 */
		{"x.com/*", "", "8-9"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char type[300];
		(void)snprintf(type, sizeof type,
			       "{name: t, preferNewBalloons: true, preferSpreadingPods: true, "
			       "preferCloseToDevices: [\"podresourceapi:%s\"]}",
			       rows[i].glob);
		struct fake_host *f = start_near(type);
		expect(f, create_with(f, "c", "t", 2000, rows[i].devices), rows[i].cpus);
		assert_non_null(strstr(fake_trail(f, fake_ctr_named(f, "c")), "podresourceapi:"));
		fake_host_free(f);
	}
}

static void test_it_grows_near_them_and_gives_up_others_first(void **state)
{
	struct fake_host *f = start_near(OWN);
	rp_ctr c = create_with(f, "c", "own", 2000, "x.com/nic:3");
	resize_to(f, c, 4000);
	expect(f, c, "12-15");
	resize_to(f, c,
		  6000); /* where else: the core of most CPUs of its package, 8-9 before 10-11 */
	expect(f, c, "8-9,12-15");
	resize_to(f, c, 4000);
	expect(f, c, "12-15");
	fake_host_free(f);
}

/* Others do not keep away from what a device is near to, as they do of devices that are named. */
static void test_others_do_not_avoid_them(void **state)
{
	struct fake_host *f = start_near(OWN ", {name: other}");
	expect(f, create_with(f, "c", "own", 1000, "x.com/nic:2"), "8");
	/* No part of the machine but all of it has eight: whole free cores, the lowest first, and
	 * 10-11 is one like others. */
	expect(f, create_with(f, "o", "other", 8000, NULL), "2-7,10-11");
	fake_host_free(f);
}

static void test_hints_count_in_their_order(void **state)
{
	static const struct {
		const char *list, *cpus;
	} rows[] = {
		{"[" NODE "2, \"podresourceapi:x.com/*\"]", "8"},
		{"[\"podresourceapi:x.com/*\", " NODE "2]", "12"},
		{"[\"podresourceapi:none/*\", \"podresourceapi:x.com/*\", " NODE "2]", "12"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char type[300];
		(void)snprintf(type, sizeof type, "{name: t, preferCloseToDevices: %s}",
			       rows[i].list);
		struct fake_host *f = start_near(type);
		expect(f, create_with(f, "c", "t", 1000, "x.com/nic:3"), rows[i].cpus);
		fake_host_free(f);
	}
}

static void test_who_joins_brings_no_hints(void **state)
{
	struct fake_host *f = start_near(SHARED);
	expect(f, create_with(f, "first", "shared", 1000, NULL), "8");
	rp_ctr second = create_with(f, "second", "shared", 1000, "x.com/nic:3");
	expect(f, second, "8-9");
	fake_host_free(f);
}

/* A balloon for a device at node 3 that has to begin elsewhere, at CPU 4, as that node is full. */
static struct fake_host *start_elsewhere(rp_ctr *ret_full, rp_ctr *ret_first)
{
	struct fake_host *f = start_near(AT_NODE_3 ", " SHARED);
	*ret_full = create_with(f, "full", "node3", 4000, NULL);
	expect(f, *ret_full, "12-15");
	*ret_first = create_with(f, "first", "shared", 1000, "x.com/nic:3");
	expect(f, *ret_first, "4");
	return f;
}

static void test_hints_are_there_as_long_as_their_container_is(void **state)
{
	rp_ctr full, first;
	struct fake_host *f = start_elsewhere(&full, &first);
	/* There is room near the device: the balloon grows there. */
	assert_int_equal(fake_release(f, full), 0);
	expect(f, create_with(f, "second", "shared", 1000, NULL), "4,12");
	fake_host_free(f);

	f = start_elsewhere(&full, &first);
	rp_ctr second = create_with(f, "second", "shared", 1000, NULL);
	expect(f, second, "4-5");
	assert_int_equal(fake_release(f, full), 0);
	assert_int_equal(fake_release(f, first), 0);
	expect(f, second, "4");
	resize_to(f, second, 2000);
	expect(f, second, "4-5");
	fake_host_free(f);
}

static void test_hints_outlive_a_restart(void **state)
{
	rp_ctr full, first;
	struct fake_host *f = start_elsewhere(&full, &first);
	fake_forget_devices(f, first);
	assert_int_equal(fake_restart(f), 0);
	expect(f, first, "4");
	assert_int_equal(fake_release(f, full), 0);
	expect(f, create_with(f, "second", "shared", 1000, NULL), "4,12");
	fake_host_free(f);
}

/* Checks that a container which joined a balloon adds no hints, neither then nor after a restart.
 * */
static void test_a_restart_gives_no_hints_to_who_joined(void **state)
{
	rp_ctr full, first;
	struct fake_host *f = start_elsewhere(&full, &first);
	rp_ctr second = create_with(f, "second", "shared", 1000, "x.com/nic:3");
	expect(f, second, "4-5");
	assert_int_equal(fake_release(f, first), 0);
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_release(f, full), 0);
	resize_to(f, second, 2000);
	expect(f, second, "4-5");
	fake_host_free(f);
}

static void test_parts_are_near_them_too(void **state)
{
	struct fake_host *f =
		start_near("{name: part, preferCloseToDevices: [\"podresourceapi:x.com/*\"]}, "
			   "{name: whole, components: [{balloonType: part}, {balloonType: part}]}");
	rp_ctr c = create_with(f, "c", "whole", 4000, "x.com/nic:3");
	expect(f, c, "12-15");
	fake_host_free(f);
}

/* What could not be made leaves nothing behind. */
static void test_a_balloon_that_cannot_be_made(void **state)
{
	struct fake_host *f = start_near("{name: t, maxCPUs: 1, preferNewBalloons: true, "
					 "preferCloseToDevices: [\"podresourceapi:x.com/*\"]}");
	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = "c",
						  .qos = RP_QOS_BURSTABLE,
						  .cpu_request = 3000,
						  .annotations = BALLOON "t",
						  .pod_resources = "x.com/nic:3"});
	assert_true(fake_allocate(f, c) < 0);
	expect(f, create_with(f, "small", "t", 1000, "x.com/nic:1"), "4");
	fake_host_free(f);
}

static void test_sharing_types_are_warned_of(void **state)
{
	struct fake_host *f = start_near(SHARED);
	assert_non_null(strstr(fake_log(f), "without preferNewBalloons and preferSpreadingPods"));
	fake_host_free(f);
	f = start_near(OWN);
	assert_null(strstr(fake_log(f), "preferNewBalloons"));
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_balloon_is_near_the_devices),
		cmocka_unit_test(test_it_grows_near_them_and_gives_up_others_first),
		cmocka_unit_test(test_others_do_not_avoid_them),
		cmocka_unit_test(test_hints_count_in_their_order),
		cmocka_unit_test(test_who_joins_brings_no_hints),
		cmocka_unit_test(test_hints_are_there_as_long_as_their_container_is),
		cmocka_unit_test(test_hints_outlive_a_restart),
		cmocka_unit_test(test_a_restart_gives_no_hints_to_who_joined),
		cmocka_unit_test(test_parts_are_near_them_too),
		cmocka_unit_test(test_a_balloon_that_cannot_be_made),
		cmocka_unit_test(test_sharing_types_are_warned_of),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
