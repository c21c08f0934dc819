/* SPDX-License-Identifier: Apache-2.0 */
/* What lasts: restarts, reloads, refusals, dropped transactions, CPUs that come and go. */
#include "test/unit/t_balloons.h"

#define RESERVED "reservedResources: {cpu: 1000m}, "
#define TYPES                                                                                      \
	"balloonTypes: [{name: a, preferNewBalloons: true, maxCPUs: 4}, {name: p0}, "              \
	"{name: c, components: [{balloonType: p0}, {balloonType: a}]}, "                           \
	"{name: s, shareIdleCPUsInSame: package, minBalloons: 1, minCPUs: 1}, "                    \
	"{name: e, components: [{balloonType: p0}, {balloonType: a}], componentCreation: "         \
	"balance-balloons}]"

static struct fake_host *populate(const char *config, rp_ctr *c, int n)
{
	static const char *const types[] = {"a", "c", "s", "a", "e", NULL, "p0"};
	struct fake_host *f = start(&n4c16, config);
	for (int i = 0; i < n; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "c%d", i);
		c[i] = create(f, name, types[i % 7], i % 3 ? 1000 : 300);
	}
	return f;
}

static void remember(struct fake_host *f, const rp_ctr *c, int n, char (*ret)[256])
{
	for (int i = 0; i < n; i++)
		(void)snprintf(ret[i], sizeof ret[i], "%s %s", fake_cpus(f, c[i]),
			       fake_mems(f, c[i]));
}

static void compare(struct fake_host *f, const rp_ctr *c, int n, char (*want)[256])
{
	char now[16][256];
	remember(f, c, n, now);
	for (int i = 0; i < n; i++)
		assert_string_equal(now[i], want[i]);
}

static void test_restart(void **state)
{
	(void)state;
	rp_ctr c[7];
	char want[7][256];
	struct fake_host *f = populate("{" RESERVED TYPES "}", c, 7);
	assert_int_equal(fake_release(f, c[3]), 0);
	remember(f, c, 3, want);
	remember(f, c + 4, 3, want + 4);
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	compare(f, c, 3, want);
	compare(f, c + 4, 3, want + 4);
	/* It goes on as if nothing had been. */
	create(f, "more", "a", 1000);
	assert_int_equal(fake_sync(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

static void test_reload(void **state)
{
	(void)state;
	rp_ctr c[7];
	char want[7][256];
	struct fake_host *f = populate("{" RESERVED TYPES "}", c, 7);
	remember(f, c, 7, want);
	assert_int_equal(fake_configure(f, "{" RESERVED TYPES "}"), 0);
	assert_int_equal(fake_n_changed(f), 0);
	/* Classes, order of types and such move nobody. */
	assert_int_equal(
		fake_configure(f, "{" RESERVED "allocatorTopologyBalancing: true, "
				  "cpuClasses: [{name: x, maxFreq: 1GHz}], idleCPUClass: x, " TYPES
				  "}"),
		0);
	assert_int_equal(fake_n_changed(f), 0);
	compare(f, c, 7, want);
	/* One that is refused, all the more. */
	assert_true(fake_configure(f, "{balloonTypes: [{name: a}, {name: a}]}") < 0);
	compare(f, c, 7, want);
	/* A type less: its containers go to the default one; others stay. */
	struct rp_idset all;
	assert_int_equal(
		fake_configure(
			f, "{" RESERVED
			   "balloonTypes: [{name: p0}, {name: s, shareIdleCPUsInSame: package}]}"),
		0);
	assert_string_equal(fake_degraded(f, c[0]), "no balloon for annotation \"a\"");
	assert_null(fake_degraded(f, c[6]));
	rp_idset_copy(&all, fake_cpu_ids(f, c[6]));
	assert_int_equal(fake_configure(f, "{" RESERVED TYPES "}"), 0);
	assert_null(fake_degraded(f, c[0]));
	assert_true(rp_ids_equal(rp_ids_of(&all), fake_cpu_ids(f, c[6])));
	(void)fake_run_work(f);
	fake_host_free(f);
}

/* Smaller limits: those that came last are placed elsewhere. */
static void test_reload_with_limits(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{balloonTypes: [{name: a}]}");
	rp_ctr one = create(f, "one", "a", 2000), two = create(f, "two", "a", 2000);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, one)), 4);
	assert_int_equal(fake_configure(f, "{balloonTypes: [{name: a, maxCPUs: 2}]}"), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, one)), 2);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, two)), 2);
	assert_false(rp_ids_overlap(fake_cpu_ids(f, one), fake_cpu_ids(f, two)));
	/* Fewer CPUs: those that have lost theirs move. */
	assert_int_equal(fake_configure(f, "{availableResources: {cpu: \"cpuset:4-7\"}, "
					   "balloonTypes: [{name: a, maxCPUs: 2}]}"),
			 0);
	assert_true(rp_ids_first(fake_cpu_ids(f, one)) >= 4);
	assert_true(rp_ids_first(fake_cpu_ids(f, two)) >= 4);
	/* What is there leaves no room for minBalloons. */
	assert_int_equal(fake_configure(f,
					"{availableResources: {cpu: \"cpuset:4-7\"}, "
					"balloonTypes: [{name: a, maxCPUs: 2}, {name: b, minCPUs: "
					"2, minBalloons: 1}]}"),
			 0);
	assert_non_null(strstr(fake_log(f), "leaves no room for minBalloons"));
	assert_true((fake_degraded(f, one) != NULL) + (fake_degraded(f, two) != NULL) == 1);
	rp_ctr waits = fake_degraded(f, one) ? one : two, runs = waits == one ? two : one;
	/* Room is made: it is placed. */
	assert_int_equal(fake_release(f, runs), 0);
	assert_null(fake_degraded(f, waits));
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, waits)), 2);
	assert_int_equal(fake_release(f, waits), 0);
	fake_host_free(f);
}

/* Of those that wait, small ones find room that large ones do not; nobody is forgotten. */
static void test_waiting(void **state)
{
	(void)state;
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

/* Whatever fails in between, nothing has happened. */
static void test_failures(void **state)
{
	(void)state;
	rp_ctr c[7];
	char want[7][256];
	struct fake_host *f = populate("{" RESERVED TYPES "}", c, 7);
	remember(f, c, 7, want);
	uint32_t n_failed = 0;
	for (uint32_t at = 1;; at++) {
		rp_ctr x = add(f, "x", "s", 1500);
		fake_fail_after(f, at, RP_EINVAL);
		int32_t r = fake_allocate(f, x);
		fake_fail_after(f, 0, 0);
		if (!r) {
			/* That one works; others may be elsewhere after it has gone. */
			assert_int_equal(fake_release(f, x), 0);
			remember(f, c, 7, want);
			break;
		}
		n_failed++;
		compare(f, c, 7, want);
	}
	assert_true(n_failed > 3);
	for (int i = 0; i < 3; i++) {
		rp_ctr x = add(f, "try", "a", 3000);
		assert_int_equal(fake_try(f, x), 0);
		fake_forget(f, x);
		compare(f, c, 7, want);
	}
	/* The tables are as they were, too. */
	assert_int_equal(fake_sync(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

static void test_refusals_leave_nothing(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{balloonTypes: [{name: a, preferNewBalloons: true, "
					    "minCPUs: 2}]}");
	rp_ctr c = create(f, "c", "a", 14000);
	char zones[4096];
	(void)snprintf(zones, sizeof zones, "%s", fake_zones(f));
	for (int i = 0; i < 3; i++) {
		refuse(f, "big", "a", 3000, "no suitable balloon");
		assert_string_equal(fake_zones(f), zones);
	}
	expect(f, create(f, "fits", "a", 2000), "14-15");
	expect(f, c, "0-13");
	fake_host_free(f);
}

static void test_churn(void **state)
{
	(void)state;
	static const char *const types[] = {"a", "c", "s", "e", NULL, "p0", "reserved"};
	struct fake_host *f = start(&n4c16, "{" RESERVED TYPES "}");
	rp_ctr live[24] = {0};
	uint32_t seed = 1;
	for (int i = 0; i < 1500; i++) {
		seed = seed * 1103515245 + 12345;
		uint32_t at = (seed >> 16) % 24, what = (seed >> 8) % 16;
		char name[16];
		(void)snprintf(name, sizeof name, "x%u", at);
		if (!live[at]) {
			rp_ctr x = add(f, name, types[what % 7], 125 * ((seed >> 4) % 20));
			if (!fake_allocate(f, x))
				live[at] = x;
		} else if (what < 4) {
			fake_request(f, live[at], 125 * ((seed >> 4) % 24), 0);
			(void)fake_update(f, live[at]);
		} else {
			assert_int_equal(fake_release(f, live[at]), 0);
			live[at] = 0;
		}
		for (uint32_t k = 0; k < 24; k++)
			assert_true(!live[k] || !rp_ids_empty(fake_cpu_ids(f, live[k])));
		if (i % 100 == 0) {
			assert_int_equal(fake_restart(f), 0);
			assert_int_equal(fake_n_changed(f), 0);
		}
	}
	fake_host_free(f);
}

static void test_hotplug(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{reservedResources: {cpu: \"cpuset:0\"}, balloonTypes: "
			      "[{name: a, preferNewBalloons: true}]}");
	rp_ctr a = create(f, "a", "a", 2000), b = create(f, "b", "a", 2000);
	expect(f, a, "2-3");
	expect(f, b, "4-5");
	assert_int_equal(fake_set_offline(f, "0,3"), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, a)), 2);
	assert_false(rp_ids_has(fake_cpu_ids(f, a), 3));
	expect(f, b, "4-5");
	assert_int_equal(fake_set_offline(f, ""), 0);
	expect(f, b, "4-5");
	struct rp_event ev = {.size = sizeof ev, .type = RP_EVENT_STARTED, .object = a};
	assert_int_equal(fake_event(f, &ev), 0);
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
	(void)state;
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
	(void)state;
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0-1\"}}");
	const struct rp_state *s = fake_module_service(f, RP_STATE_1);
	assert_int_equal(fake_set_offline(f, "1,15"), 0);
	assert_non_null(strstr(fake_log(f), "reserved CPUs 1 are off line"));
	fake_log_clear(f);
	assert_int_equal(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0-1\"}, "
					   "balloonTypes: [{name: a}]}"),
			 0);
	assert_non_null(strstr(fake_log(f), "<4>reserved CPUs 1 are off line"));
	assert_int_equal(fake_restart(f), 0);
	/* 0 is still reserved, and 1 is not forgotten. */
	expect(f, create(f, "a", "a", 1000), "2");
	assert_true(fake_configure(f, "{reservedResources: {cpu: \"cpuset:0-1,15\"}}") < 0);
	assert_non_null(strstr(fake_error(f), "reserved CPUs 15 are not among"));
	assert_int_equal(fake_set_offline(f, "15"), 0);
	expect(f, create(f, "k", "reserved", 2000), "0-1");
	/* Nobody remembers it: then it has to be there. */
	assert_int_equal(fake_set_offline(f, "1"), 0);
	fake_lose_state(f);
	assert_true(fake_restart(f) < 0);
	assert_non_null(strstr(fake_error(f), "reserved CPUs 1 are not among"));
	s = fake_module_service(f, RP_STATE_1);
	/* Version 1 knew nothing of that: "a[0]" with CPUs 4 and 5. */
	static const uint8_t bare[] = {1, 0, 0, 0, 1, 0, 'a', 0, 0, 0, 0, 0, 0, 0,
				       0, 0, 0, 0, 0, 0, 0,   1, 0, 4, 0, 5, 0};
	assert_int_equal(s->load(fake_instance(f), bare, sizeof bare), 0);
	fake_host_free(f);
}

static void test_saved_state(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{" RESERVED TYPES "}");
	const struct rp_state *s = fake_module_service(f, RP_STATE_1);
	const void *data;
	uint32_t size;
	create(f, "c", "c", 3000);
	assert_int_equal(s->save(fake_instance(f), &data, &size), 0);
	uint8_t *copy = malloc(size);
	memcpy(copy, data, size);
	/* Cut off anywhere, or with any byte changed, it is refused or does no harm. */
	uint32_t refused = 0;
	for (uint32_t n = 0; n < size; n++)
		refused += s->load(fake_instance(f), copy, n) != 0;
	assert_true(refused > size / 2);
	for (uint32_t i = 0; i < size; i++) {
		copy[i] ^= 0x41;
		if (s->load(fake_instance(f), copy, size) == 0)
			assert_int_equal(fake_sync(f), 0);
		copy[i] ^= 0x41;
	}
	assert_int_equal(s->load(fake_instance(f), copy, size), 0);
	free(copy);
	fake_host_free(f);
}

/* What is saved after a new configuration was taken, before anything was placed under it. */
static void test_saved_early(void **state)
{
	(void)state;
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
	/* And the balloons are in it. */
	assert_int_equal(fake_sync(f), 0);
	expect(f, c, "4-7");
	free(copy);
	fake_host_free(f);
}

/* Nothing is known of the containers but the CPUs that they have: what could be a balloon is
 * one. */
static void test_found_containers(void **state)
{
	(void)state;
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

/* It runs although all is to be placed anew just then, and stays off the balloons whatever
 * comes. */
static void test_unmanaged(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{" RESERVED "balloonTypes: [{name: a, maxCPUs: 4, "
					    "maxBalloons: 1}]}");
	const struct rp_policy *p = fake_module_service(f, RP_POLICY_1);
	rp_ctr c = create(f, "c", "a", 4000);
	expect(f, c, "4-7");
	/* What a host does when sync() has failed. */
	assert_int_equal(fake_sync(f), 0);
	assert_int_equal(p->rolled_back(fake_instance(f)), RP_RESYNC);
	rp_ctr u = add(f, "u", "a", 2000);
	assert_int_equal(fake_unmanaged(f, u), 0);
	assert_int_equal(fake_sync(f), 0);
	expect(f, c, "4-7");
	expect(f, u, "1-3,8-15");
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	/* The default balloon takes what is left of node 0. */
	rp_ctr d = create(f, "d", NULL, 3000);
	expect(f, d, "1-3");
	expect(f, u, "8-15");
	/* The same without the image of the balloons. */
	fake_lose_state(f);
	assert_int_equal(fake_restart(f), 0);
	expect(f, c, "4-7");
	expect(f, d, "1-3");
	expect(f, u, "8-15");
	assert_int_equal(fake_release(f, d), 0);
	expect(f, u, "1-3,8-15");
	/* CPUs that it has come and go. */
	assert_int_equal(fake_set_offline(f, "15"), 0);
	expect(f, u, "1-3,8-14");
	assert_int_equal(fake_set_offline(f, ""), 0);
	expect(f, u, "1-3,8-15");
	assert_non_null(fake_degraded(f, u));
	assert_int_equal(fake_release(f, c), 0);
	assert_null(fake_degraded(f, u));
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, u)), 2);
	/* It is in its balloon like any other one now. */
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	fake_host_free(f);
}

/* There is no room for it as it was created, but for what it is resized to. */
static void test_unmanaged_resized(void **state)
{
	(void)state;
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

/* What is to be left alone is left alone then, too. */
static void test_unmanaged_untouched(void **state)
{
	(void)state;
	struct fake_host *f =
		start(&n4c16, "{" RESERVED "preserve: {matchExpressions: [{key: name, operator: "
			      "Equals, values: [leave]}]}, balloonTypes: [{name: a}]}");
	rp_ctr u = add(f, "leave", "a", 2000);
	assert_int_equal(fake_unmanaged(f, u), 0);
	assert_true(rp_ids_empty(fake_cpu_ids(f, u)));
	rp_ctr d = create(f, "d", NULL, 3000);
	assert_true(rp_ids_empty(fake_cpu_ids(f, u)));
	assert_int_equal(fake_release(f, d), 0);
	assert_true(rp_ids_empty(fake_cpu_ids(f, u)));
	fake_host_free(f);
}

static void test_reports(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c16, "{" RESERVED "showContainersInNrt: true, balloonTypes: "
					    "[{name: s, shareIdleCPUsInSame: numa, maxCPUs: 3}]}");
	create(f, "c", "s", 1500);
	const char *zones = fake_zones(f);
	assert_non_null(strstr(zones, "s[0]"));
	assert_non_null(strstr(zones, "excess cpus"));
	assert_non_null(strstr(zones, "500m"));
	assert_non_null(strstr(zones, "shared cpuset"));
	assert_non_null(strstr(zones, "default/pod-c/c"));
	const char *metrics = fake_metrics(f);
	assert_non_null(strstr(metrics, "balloon=\"s[0]\",balloon_type=\"s\""));
	assert_non_null(strstr(metrics, "cpus=\"2-3\",cpus_count=\"2\",numas=\"p0d0n0\""));
	assert_non_null(
		strstr(metrics, "containers=\"default/pod-c/c\",tot_req_millicpu=\"1500\""));
	fake_host_free(f);
	f = start(&n4c16, "{" RESERVED "pinMemory: false, balloonTypes: [{name: s, minBalloons: 1, "
			  "minCPUs: 8}]}");
	/* Of two packages alike the first; reserved[0] comes later. */
	assert_non_null(strstr(fake_metrics(f), "cpus_allowed=\"0-7\",cpus_allowed_count=\"8\","
						"mems=\"0-1\",containers=\"\""));
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_reload_with_limits),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_refusals_leave_nothing),
		cmocka_unit_test(test_churn),
		cmocka_unit_test(test_hotplug),
		cmocka_unit_test(test_hotplug_refused),
		cmocka_unit_test(test_reserved_off_line),
		cmocka_unit_test(test_saved_state),
		cmocka_unit_test(test_saved_early),
		cmocka_unit_test(test_found_containers),
		cmocka_unit_test(test_unmanaged),
		cmocka_unit_test(test_unmanaged_resized),
		cmocka_unit_test(test_unmanaged_untouched),
		cmocka_unit_test(test_reports),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
