/* SPDX-License-Identifier: Apache-2.0 */
/* The static policy from outside: failing host calls and long random runs. */
#include "test/unit/t_static.h"

/* ---- faults ---------------------------------------------------------------------------------- */

static int32_t fault_allocate(struct fake_host *f)
{
	return fake_allocate(f, add(f, "new", RP_QOS_GUARANTEED, 2000));
}

static int32_t fault_share(struct fake_host *f)
{
	return fake_allocate(f, add(f, "new", RP_QOS_BEST_EFFORT, 0));
}

static int32_t fault_update(struct fake_host *f)
{
	return resize(f, fake_ctr_named(f, "g"), 1500);
}

static int32_t fault_sync(struct fake_host *f)
{
	return fake_sync(f);
}

static int32_t fault_configure(struct fake_host *f)
{
	return fake_configure(f, "{reservedResources: {cpu: \"cpuset:0\"}}");
}

static int32_t (*const faults[])(struct fake_host *) = {fault_allocate, fault_share, fault_update,
							fault_sync, fault_configure};

static struct fake_host *before_fault(void)
{
	struct fake_host *f = start(&n4c16, "{reservedResources: {cpu: \"cpuset:0\"}, "
					    "pinMemory: true, disableCPUQuota: true}");
	guaranteed(f, "g", 4);
	best_effort(f, "be");
	rp_ctr d = add(f, "d", RP_QOS_GUARANTEED, 12000);
	assert_int_equal(fake_sync(f), 0);
	assert_non_null(fake_degraded(f, d));
	return f;
}

/* Whichever host call fails: an error leaves all as it was, and the next one goes as if nothing had
 * been. */
static void test_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		uint32_t n_failed = 0;
		for (uint32_t n = 1;; n++) {
			struct fake_host *f = before_fault();
			fake_fail_after(f, n, n % 2 ? RP_ENOMEM : RP_ESTALE);
			int32_t r = faults[i](f);
			uint32_t calls = fake_n_calls(f);
			fake_fail_after(f, 0, 0);
			if (r) {
				n_failed++;
				assert_string_equal(fake_cpus(f, fake_ctr_named(f, "g")), "4-7");
				assert_string_equal(fake_cpus(f, fake_ctr_named(f, "be")),
						    "0-3,8-15");
				if (faults[i] != fault_configure)
					assert_string_equal(fake_cpus(f, guaranteed(f, "x", 8)),
							    "8-15");
			}
			fake_host_free(f);
			if (calls < n)
				break;
		}
		assert_true(n_failed > 3);
	}
}

static void test_missing_services(void **state)
{
	(void)state;
	static const char *const needed[] = {RP_HOST_TOPOLOGY_1, RP_HOST_CACHE_1, RP_HOST_CONFIG_1};
	static const char *const optional[] = {RP_HOST_EXPLAIN_1, RP_HOST_TIMER_1, RP_HOST_WORK_1};
	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
		struct fake_host *f = fake_host_new(&n4c16);
		fake_hide_service(f, needed[i]);
		assert_int_equal(fake_policy_open(f, &rp_module_1), -RP_ENOTSUP);
		assert_non_null(strstr(fake_error(f), needed[i]));
		fake_host_free(f);
	}
	for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
		struct fake_host *f = fake_host_new(&n4c16);
		fake_hide_service(f, optional[i]);
		assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
		assert_int_equal(fake_configure(f, RESERVED_0), 0);
		assert_string_equal(fake_cpus(f, guaranteed(f, "g", 2)), "2-3");
		fake_host_free(f);
	}
	assert_null(rp_module_1.service(NULL, "nri-rp.unheard-of/1"));
	assert_non_null(rp_module_1.service(NULL, RP_SCHEMA_1));
}

/* ---- churn ----------------------------------------------------------------------------------- */

#define CHURN_CTRS 48
#define CHURN_STEPS 10000

struct churn {
	const char *name;
	const struct fake_machine *machine;
	const char *config, *other; /* switched between */
	int64_t max; /* CPUs of a request */
};

#define STRICT_FULL                                                                                \
	"{reservedResources: {cpu: 2}, cpuManagerPolicyOptions: "                                  \
	"{full-pcpus-only: true, strict-cpu-reservation: true}}"

static const struct churn churns[] = {
	{"n4c16", &n4c16, RESERVED_0,
	 "{reservedResources: {cpu: \"cpuset:0\"}, topologyManagerPolicy: best-effort}", 6},
	{"isolated", &n4c16_isol01, "{" RESERVED_2 "}", "{" RESERVED_2 ", relaxedIsolation: true}",
	 5},
	{"full cores", &n4c128, STRICT_FULL,
	 "{reservedResources: {cpu: 2}, topologyManagerPolicy: restricted}", 24},
	{"distributed", &server_2s, OPTIONS("distribute-cpus-across-numa: 1"),
	 OPTIONS("distribute-cpus-across-numa: 1, align-by-socket: 1, full-pcpus-only: 1"), 40},
	{"hybrid", &laptop, OPTIONS(""), OPTIONS("distribute-cpus-across-cores: 1"), 5},
	{"caches", &epyc, OPTIONS("prefer-align-cpus-by-uncorecache: 1"),
	 "{reservedResources: {cpu: 1}, cpuAllocator: common, pinMemory: true}", 30},
};

struct churning {
	const struct churn *c;
	struct fake_host *f;
	rp_ctr ctrs[CHURN_CTRS];
	rp_ctr witness; /* best effort, there all the time */
	uint32_t n_placed;
};

static rp_ctr random_ctr(struct churning *x)
{
	int64_t mcpu = 1000 * (1 + random() % x->c->max) + (random() % 4 ? 0 : 500);
	return add(x->f, "c", (uint32_t)(random() % 2 ? RP_QOS_GUARANTEED : random() % 3), mcpu);
}

static void churn_step(struct churning *x)
{
	rp_ctr *slot = &x->ctrs[random() % CHURN_CTRS];
	long what = random() % 100;
	if (what == 0) {
		(void)fake_configure(x->f, random() % 2 ? x->c->config : x->c->other);
	} else if (what == 1) {
		assert_int_equal(fake_restart(x->f), 0);
		assert_int_equal(fake_n_changed(x->f), 0);
	} else if (what < 5 && !*slot) {
		rp_ctr c = random_ctr(x);
		(void)fake_try(x->f, c);
		fake_forget(x->f, c);
	} else if (what < 20 && *slot) {
		(void)resize(x->f, *slot, 1000 * (1 + random() % x->c->max));
	} else if (*slot) {
		assert_int_equal(fake_release(x->f, *slot), 0);
		*slot = 0;
	} else {
		*slot = random_ctr(x);
		if (fake_allocate(x->f, *slot))
			*slot = 0;
		else
			x->n_placed++;
	}
}

/* Whoever shares has the same CPUs, and with what is given away they make up the whole. */
static void churn_check(struct churning *x, struct rp_ids whole)
{
	struct rp_idset given, all;
	struct rp_ids shared = fake_cpu_ids(x->f, x->witness);
	rp_idset_clear(&given);
	for (int i = 0; i < CHURN_CTRS; i++) {
		if (!x->ctrs[i])
			continue;
		struct rp_ids own = fake_exclusive_ids(x->f, x->ctrs[i]);
		if (rp_ids_empty(own))
			assert_true(rp_ids_equal(fake_cpu_ids(x->f, x->ctrs[i]), shared));
		assert_false(rp_ids_overlap(own, rp_ids_of(&given)));
		rp_idset_or(&given, rp_ids_of(&given), own);
	}
	assert_false(rp_ids_overlap(rp_ids_of(&given), shared));
	rp_idset_or(&all, rp_ids_of(&given), shared);
	assert_true(rp_ids_subset(whole, rp_ids_of(&all)));
	assert_false(rp_ids_empty(shared));
}

static uint64_t hash_of(struct churning *x, uint64_t hash)
{
	for (int i = 0; i < CHURN_CTRS; i++)
		for (const char *p = x->ctrs[i] ? fake_cpus(x->f, x->ctrs[i]) : "-"; *p; p++)
			hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t run_churn(const struct churn *c, int n_steps)
{
	struct churning x = {.c = c, .f = start(c->machine, c->config)};
	struct rp_idset whole, start_cpus;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	srandom(5);
	x.witness = best_effort(x.f, "witness");
	rp_idset_copy(&start_cpus, fake_cpu_ids(x.f, x.witness));
	for (int i = 0; i < n_steps; i++) {
		churn_step(&x);
		/* the reserved CPUs are shared or not, by what is in force */
		rp_idset_copy(&whole, rp_ids_of(&start_cpus));
		if (strstr(c->config, "strict") || strstr(c->other, "strict"))
			rp_idset_clear(&whole);
		churn_check(&x, rp_ids_of(&whole));
		hash = hash_of(&x, hash);
	}
	assert_true(x.n_placed > (uint32_t)n_steps / 20);
	for (int i = 0; i < CHURN_CTRS; i++)
		if (x.ctrs[i])
			assert_int_equal(fake_release(x.f, x.ctrs[i]), 0);
	assert_int_equal(fake_configure(x.f, c->config), 0);
	assert_true(rp_ids_equal(fake_cpu_ids(x.f, x.witness), rp_ids_of(&start_cpus)));
	fake_host_free(x.f);
	return hash;
}

static void test_churn(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof churns / sizeof churns[0]; i++)
		(void)run_churn(&churns[i], CHURN_STEPS);
}

static void test_deterministic(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof churns / sizeof churns[0]; i++)
		assert_true(run_churn(&churns[i], 500) == run_churn(&churns[i], 500));
}

static void test_thousand(void **state)
{
	(void)state;
	struct fake_host *f = start(&n4c128, "{reservedResources: {cpu: 2}}");
	for (int i = 0; i < 1000; i++)
		best_effort(f, "be");
	rp_ctr last = fake_ctr_named(f, "be");
	rp_ctr g = guaranteed(f, "g", 4);
	assert_int_equal(fake_n_changed(f), 1001);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, last)), 124);
	assert_int_equal(fake_restart(f), 0);
	assert_int_equal(fake_n_changed(f), 0);
	assert_int_equal(fake_release(f, g), 0);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, last)), 128);
	fake_host_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faults),	 cmocka_unit_test(test_missing_services),
		cmocka_unit_test(test_churn),	 cmocka_unit_test(test_deterministic),
		cmocka_unit_test(test_thousand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
