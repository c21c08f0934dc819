/* SPDX-License-Identifier: Apache-2.0 */
/* The topology-aware policy under random loads: what must hold after every step, and that neither a
 * restart nor time leaves a trace. */
#include "test/unit/t_ta.h"

static const struct fake_machine caches = {.packages = 2, .cores = 8, .threads = 2, .l3_cores = 4};
static const struct fake_machine hybrid = {
	.packages = 1, .nodes = 2, .cores = 4, .threads = 2, .e_cores = 4};

#define PLAIN "{reservedResources: {cpu: 750m}, preferIsolatedCPUs: false}"
#define TOGETHER "{reservedResources: {cpu: 2}, colocatePods: true, colocateNamespaces: true}"

/* ---- a load ---------------------------------------------------------------------------------- */

#define N_STEPS 300
#define N_LIVE 40

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

static struct fake_ctr random_container(uint64_t *seed)
{
	static const int64_t requests[] = {0, 100, 250, 500, 1000, 1500, 2000, 2500, 3000, 5000};
	static const char *const annotations[] = {
		NULL,
		NULL,
		NULL,
		NULL,
		"hide-hyperthreads.resource-policy.nri.io=true",
		"prefer-shared-cpus.resource-policy.nri.io=false",
		"prefer-isolated-cpus.resource-policy.nri.io=true",
		"prefer-reserved-cpus.resource-policy.nri.io=true",
		"prefer-cpu-priority.resource-policy.nri.io=low"};
	static const char *const names[] = {"a", "b", "c", "d"};
	struct fake_ctr d = {.name = names[next_random(seed) % 4], .qos = next_random(seed) % 3};
	d.cpu_request = requests[next_random(seed) % 10];
	d.annotations = annotations[next_random(seed) % 9];
	d.mem_request = d.qos == RP_QOS_BEST_EFFORT ? 0 : (int64_t)(next_random(seed) % 400) << 20;
	d.mem_limit = d.qos == RP_QOS_GUARANTEED ? d.mem_request : 0;
	if (d.qos == RP_QOS_BEST_EFFORT)
		d.cpu_request = 0;
	if (d.qos == RP_QOS_BURSTABLE && next_random(seed) % 2)
		d.cpu_limit = d.cpu_request * 2;
	return d;
}

/* Everything that people see of the pools. */
static char *image(struct fake_host *f)
{
	char *text = strdup(fake_zones(f));
	assert_non_null(text);
	return text;
}

static void check_all(struct fake_host *f, const rp_ctr *live, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!fake_cpus(f, live[i])[0])
			fail_msg("container %u has no CPUs", i);
		for (uint32_t k = 0; k < n; k++)
			if (i != k && rp_ids_overlap(fake_exclusive_ids(f, live[i]),
						     fake_cpu_ids(f, live[k])))
				fail_msg("containers %u and %u share exclusive CPUs", i, k);
	}
}

static void step(struct fake_host *f, uint64_t *seed, rp_ctr *live, uint32_t *n)
{
	uint32_t what = next_random(seed) % 10;
	if (*n && (what < 3 || *n == N_LIVE)) {
		uint32_t i = next_random(seed) % *n;
		assert_int_equal(fake_release(f, live[i]), 0);
		live[i] = live[--*n];
	} else if (*n && what == 3) {
		int64_t mcpu = 125 * (1 + next_random(seed) % 20);
		uint32_t i = next_random(seed) % *n;
		fake_request(f, live[i], mcpu, mcpu);
		(void)fake_update(f, live[i]);
	} else if (what == 4) {
		struct fake_ctr d = random_container(seed);
		char *before = image(f), *after;
		rp_ctr c = fake_ctr(f, &d);
		(void)fake_try(f, c);
		fake_forget(f, c);
		after = image(f);
		assert_string_equal(before, after);
		free(before);
		free(after);
	} else {
		struct fake_ctr d = random_container(seed);
		rp_ctr c = fake_ctr(f, &d);
		if (fake_allocate(f, c) == 0)
			live[(*n)++] = c;
	}
}

static void run_random(const struct fake_machine *m, const char *config, uint64_t seed)
{
	struct fake_host *f = start(m, config);
	rp_ctr live[N_LIVE];
	uint32_t n = 0;
	char *empty = image(f);
	for (uint32_t i = 0; i < N_STEPS; i++) {
		step(f, &seed, live, &n);
		check_all(f, live, n);
		if (i % 25)
			continue;
		/* Whoever looks at everything anew finds nothing to change. */
		char *before = image(f);
		assert_int_equal(i % 2 ? fake_sync(f) : fake_restart(f), 0);
		assert_int_equal(fake_n_changed(f), 0);
		char *after = image(f);
		assert_string_equal(before, after);
		free(before);
		free(after);
	}
	while (n)
		assert_int_equal(fake_release(f, live[--n]), 0);
	char *end = image(f);
	assert_string_equal(empty, end);
	free(empty);
	free(end);
	fake_host_free(f);
}

static void test_random(void **state)
{
	(void)state;
	struct fake_machine isolated = small;
	isolated.isolated = "2-3,6";
	for (uint64_t seed = 1; seed <= 4; seed++) {
		run_random(&small, PLAIN, seed);
		run_random(&isolated, "{reservedResources: {cpu: 1}}", seed);
		run_random(&caches, TOGETHER, seed);
		run_random(&hybrid, PLAIN, seed);
	}
}

/* ---- twins ----------------------------------------------------------------------------------- */

static void assert_same_place(struct fake_host *f, rp_ctr a, struct fake_host *g, rp_ctr b)
{
	assert_string_equal(fake_cpus(f, a), fake_cpus(g, b));
	assert_string_equal(fake_exclusive(f, a), fake_exclusive(g, b));
	assert_string_equal(fake_mems(f, a), fake_mems(g, b));
	assert_int_equal(fake_int(f, a, RP_F_SHARES), fake_int(g, b, RP_F_SHARES));
	assert_int_equal(fake_degraded(f, a) != NULL, fake_degraded(g, b) != NULL);
}

static void assert_twins(struct fake_host *f, const rp_ctr *live, struct fake_host *g,
			 const rp_ctr *twins, uint32_t n)
{
	char *one = image(f), *two = image(g);
	assert_string_equal(one, two);
	for (uint32_t i = 0; i < n; i++)
		assert_same_place(f, live[i], g, twins[i]);
	free(one);
	free(two);
}

/* Two nodes with the same load, one of which is restarted after every step: nobody could tell
 * which. */
static void run_twins(const struct fake_machine *m, const char *config, uint64_t seed)
{
	struct fake_host *f = start(m, config), *g = start(m, config);
	rp_ctr live[N_LIVE], twins[N_LIVE];
	uint32_t n = 0, n_twins = 0;
	uint64_t seed_twin = seed;
	for (uint32_t i = 0; i < N_STEPS / 2; i++) {
		step(f, &seed, live, &n);
		step(g, &seed_twin, twins, &n_twins);
		assert_int_equal(n, n_twins);
		assert_int_equal(fake_restart(g), 0);
		assert_int_equal(fake_n_changed(g), 0);
		assert_twins(f, live, g, twins, n);
	}
	fake_host_free(f);
	fake_host_free(g);
}

static void test_restart_after_each_step(void **state)
{
	(void)state;
	for (uint64_t seed = 11; seed <= 13; seed++) {
		run_twins(&small, PLAIN, seed);
		run_twins(&caches, TOGETHER, seed);
	}
}

/* ---- as many deletions as creations ---------------------------------------------------------- */

static void shuffle(rp_ctr *live, uint32_t n, uint64_t *seed)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = next_random(seed) % i;
		rp_ctr c = live[k];
		live[k] = live[i - 1];
		live[i - 1] = c;
	}
}

/* Whatever was there and in whatever order it goes: the next one gets what the first one got. */
static void test_nothing_stays(void **state)
{
	(void)state;
	const struct fake_ctr probe = {
		.name = "probe", .qos = RP_QOS_GUARANTEED, .cpu_request = 2000};
	struct fake_host *f = start(&small, PLAIN);
	char *empty = image(f), first[64] = "";
	uint64_t seed = 99;
	for (uint32_t round = 0; round < 60; round++) {
		rp_ctr live[N_LIVE];
		uint32_t n = 0, wanted = 1 + next_random(&seed) % N_LIVE;
		for (uint32_t i = 0; i < wanted; i++) {
			struct fake_ctr d = random_container(&seed);
			rp_ctr c = fake_ctr(f, &d);
			if (fake_allocate(f, c) == 0)
				live[n++] = c;
		}
		check_all(f, live, n);
		shuffle(live, n, &seed);
		while (n)
			assert_int_equal(fake_release(f, live[--n]), 0);
		char *after = image(f);
		assert_string_equal(empty, after);
		free(after);
		rp_ctr c = fake_ctr(f, &probe);
		assert_int_equal(fake_allocate(f, c), 0);
		if (!round)
			(void)snprintf(first, sizeof first, "%s", fake_cpus(f, c));
		assert_string_equal(fake_cpus(f, c), first);
		assert_int_equal(fake_release(f, c), 0);
	}
	free(empty);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_restart_after_each_step),
		cmocka_unit_test(test_nothing_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
