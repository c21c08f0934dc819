/* SPDX-License-Identifier: Apache-2.0 */
/* Better places for containers that run. */
#include "test/unit/t_balloons.h"

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/balloons/stage.h"
#include "modules/balloons/place_state.h"

static int32_t rebalance(struct fake_host *f, uint64_t budget)
{
	return fake_event(f, &(struct rp_event){.size = sizeof(struct rp_event),
						.type = RP_EVENT_REBALANCE,
						.cookie = budget});
}

static int32_t press(struct fake_host *f, rp_ctr c, uint64_t lacks)
{
	return fake_event(f, &(struct rp_event){.size = sizeof(struct rp_event),
						.type = RP_EVENT_PRESSURE,
						.object = c,
						.cookie = lacks});
}

static void release(struct fake_host *f, rp_ctr c)
{
	assert_int_equal(fake_release(f, c), 0);
}

static void told(struct fake_host *f, rp_ctr c, const char *what)
{
	if (!strstr(fake_trail(f, c), what))
		fail_msg("\"%s\" is not in: %s", what, fake_trail(f, c));
}

static rp_ctr create_in(struct fake_host *f, const char *name, const char *pod, const char *space,
			int64_t mcpu)
{
	rp_ctr c =
		fake_ctr(f, &(struct fake_ctr){.name = name,
					       .pod_name = pod,
					       .pod_namespace = space,
					       .qos = mcpu ? RP_QOS_BURSTABLE : RP_QOS_BEST_EFFORT,
					       .cpu_request = mcpu,
					       .annotations = BALLOON "a"});
	if (fake_allocate(f, c))
		fail_msg("%s: %s", name, fake_error(f));
	return c;
}

/* ---- CPUs that are nearer to each other ------------------------------------------------------ */

#define ONE_EACH "{balloonTypes: [{name: a, preferNewBalloons: true, preferSpreadingPods: true}]}"

/* Others have CPUs of its cores, until whole ones are free. */
static void test_whole_cores(void **state)
{
	struct fake_host *f = start(&n4c16, ONE_EACH);
	rp_ctr c[16];
	for (uint32_t i = 0; i < 14; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "c%u", i);
		c[i] = create(f, name, "a", 1000);
	}
	release(f, c[0]);
	rp_ctr two = create(f, "two", "a", 2000);
	expect(f, two, "14-15");
	release(f, two);
	release(f, c[2]);
	release(f, c[3]);
	two = create(f, "two", "a", 3000);
	expect(f, two, "0,2-3");
	fake_host_free(f);
}

static void test_devices(void **state)
{
	struct fake_host *f = fake_host_new(&n4c16);
	fake_device(f, "/sys/class/net/eth0", "/sys/class/net/eth0", "8-11", "2");
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(fake_configure(f, "{balloonTypes: [{name: a, preferNewBalloons: true, "
					   "preferCloseToDevices: [/sys/class/net/eth0]}, "
					   "{name: b, preferNewBalloons: true}]}"),
			 0);
	rp_ctr near = create(f, "near", "a", 4000), far = create(f, "far", "a", 2000);
	expect(f, near, "8-11");
	expect(f, far, "12-13");
	rp_ctr other = create(f, "other", "b", 9000);
	expect(f, other, "0-7,14");
	release(f, near);
	rp_ctr more = create(f, "more", "b", 2000);
	expect(f, more, "8-9");
	assert_int_equal(rebalance(f, 1), 0);
	assert_int_equal(fake_n_changed(f), 1);
	expect(f, far, "10-11");
	told(f, far, "nearer to what its type prefers");
	/* The balloon can now leave the device to the types that prefer it. */
	assert_int_equal(rebalance(f, 0), 0);
	expect(f, more, "12-13");
	told(f, more, "farther from what its type avoids");
	fake_host_free(f);
}

/* Checks that a balloon which had to take isolated CPUs releases them when others are free. */
static void test_isolated(void **state)
{
	static const struct fake_machine m = {
		.packages = 2, .nodes = 1, .cores = 4, .threads = 2, .isolated = "14-15"};
	struct fake_host *f = start(&m, ONE_EACH);
	rp_ctr big = create(f, "big", "a", 14000), two = create(f, "two", "a", 2000);
	expect(f, big, "0-13");
	expect(f, two, "14-15");
	fake_request(f, big, 12000, 0);
	assert_int_equal(fake_update(f, big), 0);
	assert_int_equal(rebalance(f, 1), 0);
	assert_false(rp_ids_has(fake_cpu_ids(f, two), 14));
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, two)), 2);
	told(f, two, "farther from what its type avoids");
	/* a move whose transaction is dropped does not count */
	const struct rp_policy *p = fake_module_service(f, RP_POLICY_1);
	assert_non_null(strstr(fake_metrics(f), "policy_balloons_rebalanced_total{} 1"));
	assert_int_equal(p->rolled_back(fake_instance(f)), 0);
	assert_non_null(strstr(fake_metrics(f), "policy_balloons_rebalanced_total{} 0"));
	fake_host_free(f);
}

/* Isolated CPUs are given up like others when a balloon shrinks; it gets rid of them when it is
 * rebalanced. */
static void test_isolated_kept(void **state)
{
	static const struct fake_machine m = {
		.packages = 2, .nodes = 1, .cores = 4, .threads = 2, .isolated = "0-1"};
	struct fake_host *f = start(&m, ONE_EACH);
	rp_ctr c = create(f, "c", "a", 16000);
	fake_request(f, c, 2000, 0);
	assert_int_equal(fake_update(f, c), 0);
	expect(f, c, "0-1");
	assert_int_equal(rebalance(f, 1), 0);
	assert_int_equal(fake_n_changed(f), 1);
	expect(f, c, "2-3");
	fake_host_free(f);
}

/* More containers than one event looks at: the next ones go on where it stopped. */
static void test_in_parts(void **state)
{
	struct fake_host *f = start(&n4c16, "{balloonTypes: [{name: a, preferNewBalloons: true, "
					    "preferSpreadingPods: true}, {name: b}]}");
	for (uint32_t i = 0; i < 1500; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "b%u", i);
		(void)create(f, name, "b", 1);
	}
	rp_ctr wall = create(f, "wall", "b", 13000);
	rp_ctr x = create(f, "x", "a", 500), y = create(f, "y", "a", 500);
	assert_string_equal(fake_cpus(f, x), fake_cpus(f, y));
	release(f, wall);
	assert_int_equal(rebalance(f, 8), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(rebalance(f, 8), 0);
	assert_int_equal(fake_n_changed(f), 1);
	assert_string_not_equal(fake_cpus(f, x), fake_cpus(f, y));
	for (int i = 0; i < 4; i++) {
		assert_int_equal(rebalance(f, 8), 0);
		assert_int_equal(fake_n_changed(f), 0);
	}
	fake_host_free(f);
}

/* Checks that a balloon which shares idle CPUs does not become narrower to have closer CPUs. */
static void test_sharing(void **state)
{
	struct fake_host *f = start(&n4c16, "{balloonTypes: [{name: a, preferNewBalloons: true, "
					    "shareIdleCPUsInSame: package}, {name: b, "
					    "preferNewBalloons: true}]}");
	rp_ctr one = create(f, "one", "b", 7000), two = create(f, "two", "b", 7000);
	rp_ctr s = create(f, "s", "a", 2000);
	expect(f, s, "7,15");
	release(f, one);
	release(f, two);
	expect(f, s, "0-15");
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

static void test_hidden_threads(void **state)
{
	struct fake_host *f = start(&n4c16, "{balloonTypes: [{name: a, preferNewBalloons: true, "
					    "hideHyperthreads: true}, {name: b, "
					    "preferNewBalloons: true}]}");
	rp_ctr one = create(f, "one", "b", 3000), two = create(f, "two", "b", 3000);
	rp_ctr hidden = create(f, "hidden", "a", 2000), rest = create(f, "rest", "b", 8000);
	release(f, rest);
	expect(f, one, "0-2");
	expect(f, two, "4-6");
	expect(f, hidden, "8");
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

static void test_composite(void **state)
{
	struct fake_host *f =
		start(&n4c16, "{balloonTypes: [{name: p}, {name: a, preferNewBalloons: "
			      "true, components: [{balloonType: p}, {balloonType: "
			      "p}]}, {name: b, preferNewBalloons: true}]}");
	rp_ctr one = create(f, "one", "b", 7000), two = create(f, "two", "b", 5000);
	rp_ctr both = create(f, "both", "a", 4000);
	expect(f, both, "7,13-15");
	release(f, one);
	assert_int_equal(rebalance(f, 0), 0);
	expect(f, two, "8-12");
	expect(f, both, "6-7,14-15");
	assert_non_null(strstr(fake_zones(f), "component cpusets: {{14-15}, {6-7}}"));
	fake_host_free(f);
}

/* Loads that had to be put on one cache. */
static void test_loads(void **state)
{
	static const struct fake_machine m = {.packages = 1, .nodes = 1, .cores = 4, .threads = 2};
	struct fake_host *f =
		start(&m, "{loadClasses: [{name: l, level: core}], balloonTypes: "
			  "[{name: a, preferNewBalloons: true, loads: [l]}, {name: b, "
			  "preferNewBalloons: true}]}");
	rp_ctr wall = create(f, "wall", "b", 6000), x = create(f, "x", "a", 1000),
	       y = create(f, "y", "a", 1000);
	expect(f, x, "6");
	expect(f, y, "7");
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 0);
	release(f, wall);
	assert_int_equal(rebalance(f, 1), 0);
	assert_int_equal(fake_n_changed(f), 1);
	expect(f, y, "7");
	assert_string_not_equal(fake_cpus(f, x), "6");
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

static rp_ctr create_large(struct fake_host *f, const char *name, const char *type, int64_t mcpu,
			   int64_t mib)
{
	char annotations[100];
	(void)snprintf(annotations, sizeof annotations, BALLOON "%s", type);
	rp_ctr c = fake_ctr(f, &(struct fake_ctr){.name = name,
						  .qos = RP_QOS_BURSTABLE,
						  .cpu_request = mcpu,
						  .mem_limit = mib << 20,
						  .annotations = annotations});
	if (fake_allocate(f, c))
		fail_msg("%s: %s", name, fake_error(f));
	return c;
}

/* Memory that had to be farther away follows when there is room. */
static void test_memory(void **state)
{
	static const struct fake_machine m = {
		.packages = 1, .nodes = 2, .cores = 2, .threads = 2, .node_memory = 1u << 30};
	struct fake_host *f = start(&m, "{balloonTypes: [{name: a}]}");
	rp_ctr one = create_large(f, "one", "a", 1000, 900),
	       two = create_large(f, "two", "a", 1000, 900);
	const char *near = fake_mems(f, one), *far = fake_mems(f, two);
	rp_ctr left = strlen(far) > 1 ? two : one, gone = left == two ? one : two;
	assert_string_not_equal(near, far);
	assert_string_equal(fake_mems(f, left), "0-1");
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 0);
	release(f, gone);
	assert_string_equal(fake_mems(f, left), "0-1");
	assert_int_equal(press(f, left, RP_PRESSURE_MEMORY), 0);
	assert_int_equal(fake_n_changed(f), 1);
	assert_string_equal(fake_mems(f, left), "0");
	told(f, left, "room for its memory near its CPUs");
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

/* CPUs are not better without memory near them. */
static void test_full_memory(void **state)
{
	static const struct fake_machine m = {
		.packages = 2, .nodes = 1, .cores = 2, .threads = 2, .node_memory = 1u << 30};
	struct fake_host *f = start(&m, "{balloonTypes: [{name: a, preferNewBalloons: true, "
					"preferSpreadingPods: true}, {name: b, preferNewBalloons: "
					"true}]}");
	rp_ctr one = create_large(f, "one", "b", 3000, 900),
	       two = create_large(f, "two", "b", 3000, 900);
	rp_ctr both = create_large(f, "both", "a", 2000, 200);
	expect(f, one, "0-2");
	expect(f, both, "3,7");
	fake_request(f, two, 1000, 0);
	assert_int_equal(fake_update(f, two), 0);
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 0);
	release(f, two);
	assert_int_equal(rebalance(f, 0), 0);
	expect(f, both, "6-7");
	assert_string_equal(fake_mems(f, both), "1");
	fake_host_free(f);
}

/* ---- another balloon ------------------------------------------------------------------------- */

static void test_new_balloon(void **state)
{
	struct fake_host *f = start(&n4c16, "{balloonTypes: [{name: a, preferNewBalloons: true, "
					    "preferSpreadingPods: true, minCPUs: 2}, {name: b}]}");
	rp_ctr wall = create(f, "wall", "b", 14000);
	rp_ctr x = create(f, "x", "a", 1000), y = create(f, "y", "a", 1000);
	expect(f, x, "14-15");
	expect(f, y, "14-15");
	release(f, wall);
	assert_int_equal(rebalance(f, 1), 0);
	assert_int_equal(fake_n_changed(f), 1);
	expect(f, x, "12-13");
	expect(f, y, "14-15");
	told(f, x, "rebalanced from a[0] to a[1]: a new one; CPUs 12-13");
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

static void test_pod(void **state)
{
	struct fake_host *f = start(&n4c16, "{balloonTypes: [{name: a, maxCPUs: 2}]}");
	rp_ctr x = create_in(f, "x", "p", "n", 1500), y = create_in(f, "y", "q", "n", 500),
	       z = create_in(f, "z", "p", "n", 500);
	expect(f, x, "0-1");
	expect(f, y, "0-1");
	expect(f, z, "2");
	release(f, y);
	assert_int_equal(rebalance(f, 0), 0);
	/* Either could go to the other. */
	assert_string_equal(fake_cpus(f, x), fake_cpus(f, z));
	told(f, x, "rebalanced from a[0] to a[1]: same pod");
	assert_null(strstr(fake_zones(f), "a[0]"));
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

static void test_group_and_namespace(void **state)
{
	static const char *const configs[] = {
		"{balloonTypes: [{name: a, maxCPUs: 2, preferSpreadingPods: true, groupBy: "
		"\"${pod/namespace}\"}]}",
		"{balloonTypes: [{name: a, maxCPUs: 2, preferSpreadingPods: true, "
		"preferPerNamespaceBalloon: true}]}",
	};
	for (uint32_t i = 0; i < 2; i++) {
		struct fake_host *f = start(&n4c16, configs[i]);
		rp_ctr x = create_in(f, "x", "p", "n", 500), y = create_in(f, "y", "q", "n", 1500);
		rp_ctr z = create_in(f, "z", "r", "n", 500);
		expect(f, x, "0-1");
		expect(f, z, "2");
		release(f, y);
		assert_int_equal(rebalance(f, 0), 0);
		/* A container moves to the balloon of the other, which has room for both. */
		assert_string_equal(fake_cpus(f, x), fake_cpus(f, z));
		told(f, x, i ? "same namespace" : "same group");
		assert_int_equal(rebalance(f, 0), 0);
		assert_int_equal(fake_n_changed(f), 0);
		fake_host_free(f);
	}
}

/* Fewer share as many CPUs. */
static void test_crowd(void **state)
{
	struct fake_host *f =
		start(&n4c16, "{balloonTypes: [{name: a, minBalloons: 2, maxBalloons: "
			      "2, minCPUs: 4, preferSpreadingPods: true}]}");
	rp_ctr c[6];
	for (uint32_t i = 0; i < 6; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "c%u", i);
		c[i] = create(f, name, "a", 0);
	}
	expect(f, c[0], "0-3");
	expect(f, c[1], "4-7");
	release(f, c[1]);
	release(f, c[3]);
	release(f, c[5]);
	assert_int_equal(rebalance(f, 8), 0);
	assert_int_equal(fake_n_changed(f), 1);
	expect(f, c[0], "4-7");
	expect(f, c[2], "0-3");
	expect(f, c[4], "0-3");
	assert_int_equal(rebalance(f, 8), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

/* … but not for fewer idle CPUs beside them. */
static void test_crowd_with_idle_cpus(void **state)
{
	struct fake_host *f =
		start(&n4c16, "{allocatorTopologyBalancing: true, balloonTypes: [{name: a, "
			      "minBalloons: 2, maxBalloons: 2, minCPUs: 2, "
			      "preferSpreadingPods: true, shareIdleCPUsInSame: "
			      "package}, {name: b}]}");
	rp_ctr c[6], wall = create(f, "wall", "b", 6000);
	uint32_t wide = 0, n_wide = 0;
	for (uint32_t i = 0; i < 6; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "c%u", i);
		c[i] = create(f, name, "a", 0);
		if (rp_ids_count(fake_cpu_ids(f, c[i])) > rp_ids_count(fake_cpu_ids(f, c[wide])))
			wide = i;
	}
	/* Release the containers of the narrow balloon except one. */
	for (uint32_t i = 0; i < 6; i++) {
		bool is_wide = rp_ids_equal(fake_cpu_ids(f, c[i]), fake_cpu_ids(f, c[wide]));
		n_wide += is_wide;
		if (!is_wide && i >= 2)
			release(f, c[i]);
	}
	assert_int_equal(n_wide, 3);
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 0);
	release(f, wall);
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 1);
	fake_host_free(f);
}

static void test_left_alone(void **state)
{
	struct fake_host *f = start(&n4c16, "{pinCPU: false, balloonTypes: [{name: a, "
					    "preferNewBalloons: true}]}");
	rp_ctr one = create(f, "one", "a", 7000), two = create(f, "two", "a", 7000);
	(void)create(f, "three", "a", 2000);
	release(f, one);
	release(f, two);
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_configure(f, ONE_EACH), 0);
	one = create(f, "one", "a", 7000);
	rp_ctr kept = fake_ctr(f, &(struct fake_ctr){.name = "kept",
						     .qos = RP_QOS_BURSTABLE,
						     .cpu_request = 2000,
						     .flags = RP_CTR_PRESERVE_MEM,
						     .annotations = BALLOON "a"});
	two = create(f, "two", "a", 5000);
	assert_int_equal(fake_allocate(f, kept), 0);
	char was[64];
	(void)snprintf(was, sizeof was, "%s", fake_cpus(f, kept));
	release(f, one);
	release(f, two);
	assert_int_equal(rebalance(f, 0), 0);
	expect(f, kept, was);
	/* Events about other containers and meaningless events have no effect. */
	assert_int_equal(fake_event(f, &(struct rp_event){.size = sizeof(struct rp_event),
							  .type = RP_EVENT_STARTED,
							  .object = kept}),
			 0);
	assert_int_equal(press(f, 4711, RP_PRESSURE_CPU), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
	f = start(&n4c16, NULL);
	assert_int_equal(rebalance(f, 0), 0);
	fake_host_free(f);
}

/* ---- containers under pressure --------------------------------------------------------------- */

/* Checks that a container which lacks CPUs moves to its pod; the first waiting container that fits
 * gets the released balloon, and the next one continues to wait. */
static void test_waiting(void **state)
{
	struct fake_host *f =
		start(&n4c16, "{balloonTypes: [{name: a, maxCPUs: 4, maxBalloons: 2}]}");
	rp_ctr x = create_in(f, "x", "p", "n", 2000), wall = create_in(f, "wall", "q", "n", 2000),
	       y = create_in(f, "y", "p", "n", 1000);
	rp_ctr u = add(f, "u", "a", 4000), v = add(f, "v", "a", 4000);
	assert_int_equal(fake_unmanaged(f, u), 0);
	assert_int_equal(fake_unmanaged(f, v), 0);
	release(f, wall);
	assert_int_equal(press(f, y, RP_PRESSURE_MEMORY), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, u)), 13);
	assert_int_equal(press(f, y, RP_PRESSURE_CPU), 0);
	assert_string_equal(fake_cpus(f, x), fake_cpus(f, y));
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, u)), 4);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, v)), 9);
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, u)), 4);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, v)), 9);
	fake_host_free(f);
}

/* Steps that could not be noted are missing: what the others refer to may be freed. */
static void test_undo_without_memory(void **state)
{
	struct state s = {.failed_undo = true, .n_undo = 1};
	state_undo_to(&s, 0);
	assert_int_equal(s.n_undo, 1);
	assert_false(state_undo(&s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_undo_without_memory),
		cmocka_unit_test(test_whole_cores),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_sharing),
		cmocka_unit_test(test_isolated),
		cmocka_unit_test(test_isolated_kept),
		cmocka_unit_test(test_in_parts),
		cmocka_unit_test(test_hidden_threads),
		cmocka_unit_test(test_composite),
		cmocka_unit_test(test_loads),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_full_memory),
		cmocka_unit_test(test_new_balloon),
		cmocka_unit_test(test_pod),
		cmocka_unit_test(test_group_and_namespace),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_crowd_with_idle_cpus),
		cmocka_unit_test(test_left_alone),
		cmocka_unit_test(test_waiting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
