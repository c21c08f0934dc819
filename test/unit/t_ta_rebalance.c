/* SPDX-License-Identifier: Apache-2.0 */
/* Better places for containers that run: who moves and why, who stays, and that it comes to an
 * end. */
#include "test/unit/t_ta.h"

static const struct fake_machine caches = {.packages = 2, .cores = 8, .threads = 2, .l3_cores = 4};

#define PLAIN "{packing: balanced, reservedResources: {cpu: 750m}, preferIsolatedCPUs: false}"
#define TOGETHER                                                                                   \
	"{packing: balanced, reservedResources: {cpu: 2}, colocatePods: true, "                    \
	"colocateNamespaces: true}"
#define DOMAIN ".resource-policy.nri.io"
#define MIB (INT64_C(1) << 20)

static int32_t rebalance(struct fake_host *f, uint64_t budget)
{
	return fake_event(f, &(struct rp_event){.size = sizeof(struct rp_event),
						.type = RP_EVENT_REBALANCE,
						.cookie = budget});
}

static int32_t pressure(struct fake_host *f, rp_ctr c, uint64_t lacks)
{
	return fake_event(f, &(struct rp_event){.size = sizeof(struct rp_event),
						.type = RP_EVENT_PRESSURE,
						.object = c,
						.cookie = lacks});
}

static uint64_t n_moved(struct fake_host *f)
{
	const char *line = strstr(fake_metrics(f), "policy_topologyaware_rebalanced_total");
	assert_non_null(line);
	return strtoull(strpbrk(line, " "), NULL, 10);
}

/* Asks for it, and whether so many have moved. */
static void assert_moves(struct fake_host *f, uint64_t budget, uint64_t n)
{
	uint64_t before = n_moved(f);
	assert_int_equal(rebalance(f, budget), 0);
	assert_int_equal(n_moved(f) - before, n);
	if (!n)
		assert_int_equal(fake_n_changed(f), 0);
}

static void assert_told(struct fake_host *f, rp_ctr c, const char *what)
{
	if (!strstr(fake_trail(f, c), what))
		fail_msg("\"%s\" is not in \"%s\"", what, fake_trail(f, c));
}

/* Uses three CPUs of each node, so that a container of two CPUs needs a socket. Afterwards node
 * 3 becomes free. */
static rp_ctr crowd_out(struct fake_host *f, const char *annotations)
{
	rp_ctr nodes[4];
	for (unsigned i = 0; i < 4; i++)
		nodes[i] = guaranteed(f, "full", i < 3 ? 3000 : 2000, NULL);
	rp_ctr c = guaranteed(f, "wide", 2000, annotations);
	assert_int_equal(rp_ids_count(fake_cpu_ids(f, c)), 2);
	for (unsigned i = 0; i < 4; i++)
		if (rp_ids_has(fake_cpu_ids(f, nodes[i]), 14))
			assert_int_equal(fake_release(f, nodes[i]), 0);
	return c;
}

/* ---- choice of the container to move --------------------------------------------------------- */

static void test_left_alone(void **state)
{
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr nodes[4];
	for (unsigned i = 0; i < 4; i++)
		nodes[i] = guaranteed(f, "full", 3000, NULL);
	rp_ctr mem = add(f, &(struct fake_ctr){.name = "mem",
					       .qos = RP_QOS_GUARANTEED,
					       .cpu_request = 1500,
					       .flags = RP_CTR_PRESERVE_MEM});
	rp_ctr cpu = add(f, &(struct fake_ctr){.name = "cpu",
					       .qos = RP_QOS_GUARANTEED,
					       .cpu_request = 1500,
					       .flags = RP_CTR_PRESERVE_CPU});
	rp_ctr system = add(f, &(struct fake_ctr){.name = "system",
						  .pod_namespace = "kube-system",
						  .qos = RP_QOS_BURSTABLE,
						  .cpu_request = 100});
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fake_release(f, nodes[i]), 0);
	assert_moves(f, 0, 0);
	assert_string_equal(fake_cpus(f, cpu), "");
	assert_string_equal(fake_cpus(f, system), "0");
	assert_int_equal(rp_ids_count(fake_exclusive_ids(f, mem)), 1);
	fake_host_free(f);
}

/* As many as it may, those with most rights first; the rest comes another time. */
static void test_budget(void **state)
{
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr nodes[4], c[3];
	for (unsigned i = 0; i < 4; i++)
		nodes[i] = guaranteed(f, "full", i < 3 ? 3000 : 2000, NULL);
	for (unsigned i = 0; i < 3; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "c%u", i);
		c[i] = add(f, &(struct fake_ctr){.name = name,
						 .qos = RP_QOS_BURSTABLE,
						 .cpu_request = 1200,
						 .cpu_limit = 1300});
	}
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fake_release(f, nodes[i]), 0);
	assert_moves(f, 1, 1);
	assert_told(f, c[0], "rebalanced from");
	assert_null(strstr(fake_trail(f, c[1]), "rebalanced"));
	assert_moves(f, 1, 1);
	assert_told(f, c[1], "rebalanced from");
	assert_moves(f, 0, 1);
	assert_told(f, c[2], "rebalanced from");
	assert_moves(f, 0, 0);
	fake_host_free(f);
}

/* Checks a container that requested less than it has, and kept its CPUs because there was no
 * other choice. */
static void test_kept_and_lowered(void **state)
{
	struct fake_machine m = small;
	m.isolated = "4-5";
	struct fake_host *f = start(&m, "{packing: balanced, reservedResources: {cpu: 1}}");
	rp_ctr a = guaranteed(f, "a", 2000, "require-isolated-cpus" DOMAIN "=true");
	rp_ctr rest = guaranteed(f, "rest", 13000, "prefer-isolated-cpus" DOMAIN "=false");
	fake_request(f, a, 1500, 1500);
	assert_int_equal(fake_update(f, a), 0);
	assert_string_equal(fake_exclusive(f, a), "4-5");
	assert_int_equal(fake_int(f, a, RP_F_SHARES), 1536);
	assert_moves(f, 8, 0);
	assert_int_equal(fake_release(f, rest), 0);
	assert_moves(f, 8, 1);
	assert_string_equal(fake_exclusive(f, a), "4");
	assert_told(f, a, "it gets what it requests");
	fake_host_free(f);
}

/* ---- affinity -------------------------------------------------------------------------------- */

#define TO_B                                                                                       \
	"resource-policy.nri.io/affinity={a: [{match: {key: name, operator: Equals, values: "      \
	"[b]}}]}"

static rp_ctr tied(struct fake_host *f, const char *name, const char *annotations)
{
	return add(f, &(struct fake_ctr){.name = name,
					 .pod_name = "pod",
					 .qos = RP_QOS_BURSTABLE,
					 .cpu_request = 500,
					 .cpu_limit = 600,
					 .annotations = annotations});
}

/* Checks a container that was created before the container to which it has affinity. */
static void test_follows(void **state)
{
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr a = tied(f, "a", TO_B);
	rp_ctr b = tied(f, "b", NULL);
	assert_string_not_equal(fake_cpus(f, a), fake_cpus(f, b));
	assert_moves(f, 8, 1);
	assert_string_equal(fake_cpus(f, a), fake_cpus(f, b));
	assert_told(f, a, "rule: affinity to other containers");
	assert_moves(f, 8, 0);
	fake_host_free(f);
}

/* Checks that a container with affinity to b and a container b with anti-affinity to it do not
 * move for ever. */
static void test_no_chase(void **state)
{
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr a = tied(f, "a", TO_B);
	rp_ctr b = tied(f, "b",
			"resource-policy.nri.io/anti-affinity={b: [{match: {key: name, operator: "
			"Equals, values: [a]}}]}");
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rebalance(f, 0), 0);
	assert_string_equal(fake_cpus(f, a), fake_cpus(f, b));
	assert_moves(f, 8, 0);
	fake_host_free(f);
}

/* ---- lack of something ----------------------------------------------------------------------- */

/* Checks that, of two equally good sockets, a container that lacks CPUs goes to the one with
 * more free CPUs. Other containers do not move. */
static void test_spread(void **state)
{
	struct fake_host *f = start(&small, PLAIN);
	rp_ctr c[4];
	for (unsigned i = 0; i < 4; i++) {
		char name[8];
		(void)snprintf(name, sizeof name, "c%u", i);
		c[i] = add(f, &(struct fake_ctr){.name = name,
						 .qos = RP_QOS_GUARANTEED,
						 .cpu_request = 700,
						 .mem_request = MIB,
						 .mem_limit = MIB});
	}
	rp_ctr again = guaranteed(f, "again", 800, NULL);
	unsigned twin = 4;
	for (unsigned i = 0; i < 4; i++)
		twin = strcmp(fake_cpus(f, c[i]), fake_cpus(f, again)) == 0 ? i : twin;
	assert_int_not_equal(twin, 4);
	for (unsigned i = 0; i < 4; i++)
		if (i != twin)
			assert_int_equal(fake_release(f, c[i]), 0);
	assert_moves(f, 0, 0);
	assert_int_equal(pressure(f, again, RP_PRESSURE_THROTTLED | RP_PRESSURE_IO), 0);
	assert_string_equal(fake_cpus(f, again), fake_cpus(f, c[twin]));
	assert_int_equal(pressure(f, again, RP_PRESSURE_MEMORY), 0);
	assert_string_equal(fake_cpus(f, again), fake_cpus(f, c[twin]));
	assert_int_equal(pressure(f, again, RP_PRESSURE_CPU), 0);
	assert_string_not_equal(fake_cpus(f, again), fake_cpus(f, c[twin]));
	assert_told(f, again, "rebalanced from");
	char *now = strdup(fake_cpus(f, again));
	assert_int_equal(pressure(f, again, RP_PRESSURE_CPU), 0);
	assert_string_equal(fake_cpus(f, again), now);
	assert_int_equal(pressure(f, again, 0), 0);
	assert_int_equal(pressure(f, UINT64_C(0xdead), RP_PRESSURE_CPU), 0);
	assert_moves(f, 0, 0);
	free(now);
	fake_host_free(f);
}

static void test_nothing_to_do(void **state)
{
	struct fake_host *f = fake_host_new(&small);
	assert_int_equal(fake_policy_open(f, &rp_module_1), 0);
	assert_int_equal(rebalance(f, 0), 0); /* no configuration is active yet */
	fake_host_free(f);
	f = start(&small, "{packing: balanced, reservedResources: {cpu: 1}, pinCPU: false, "
			  "pinMemory: false}");
	rp_ctr c = guaranteed(f, "c", 2000, NULL);
	assert_int_equal(rebalance(f, 0), 0);
	assert_int_equal(pressure(f, c, RP_PRESSURE_CPU), 0);
	assert_int_equal(n_moved(f), 0);
	fake_host_free(f);
}

/* Returns the zones and the placement of every container as text. */
static char *image(struct fake_host *f, const rp_ctr *live, uint32_t n)
{
	size_t size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	(void)fputs(fake_zones(f), out);
	for (uint32_t i = 0; i < n; i++)
		(void)fprintf(out, "%u: %s / %s / %s / %lld\n", i, fake_cpus(f, live[i]),
			      fake_exclusive(f, live[i]), fake_mems(f, live[i]),
			      (long long)fake_int(f, live[i], RP_F_SHARES));
	assert_int_equal(fclose(out), 0);
	return text;
}

/* Checks that a failing host call changes nothing and does not affect the next rebalancing. */
static void test_any_failure(void **state)
{
	for (uint32_t n = 1;; n++) {
		struct fake_host *f = start(&small, PLAIN);
		rp_ctr c = crowd_out(f, NULL);
		rp_ctr s = add(f, &(struct fake_ctr){.name = "s", .qos = RP_QOS_BEST_EFFORT});
		const rp_ctr live[] = {c, s};
		char *before = image(f, live, 2);
		fake_fail_after(f, n, RP_ENOMEM);
		int32_t r = rebalance(f, 0);
		bool failed = fake_n_calls(f) >= n;
		fake_fail_after(f, 0, 0);
		char *after = image(f, live, 2);
		if (r)
			assert_string_equal(before, after);
		free(before);
		free(after);
		assert_int_equal(rebalance(f, 0), 0);
		assert_string_equal(fake_cpus(f, c), "12-13");
		fake_host_free(f);
		if (!failed)
			return;
	}
}

/* ---- any load -------------------------------------------------------------------------------- */

#define N_LIVE 40
#define ROUNDS_MAX 12

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
		"hide-hyperthreads" DOMAIN "=true",
		"prefer-shared-cpus" DOMAIN "=false",
		"prefer-isolated-cpus" DOMAIN "=true",
		"prefer-reserved-cpus" DOMAIN "=true",
		"unlimited-burstable" DOMAIN "=numa",
		"resource-policy.nri.io/affinity={a: [b], c: [d]}",
		"resource-policy.nri.io/anti-affinity={a: [b], c: [a, d]}",
		"resource-policy.nri.io/affinity={a: [{scope: {key: namespace, operator: Exists}, "
		"match: {key: name, operator: In, values: [b, c]}, weight: 5}]}"};
	static const char *const names[] = {"a", "b", "c", "d"};
	static const char *const pods[] = {"p", "q", NULL};
	struct fake_ctr d = {.name = names[next_random(seed) % 4],
			     .pod_name = pods[next_random(seed) % 3],
			     .qos = next_random(seed) % 3};
	d.cpu_request = requests[next_random(seed) % 10];
	d.annotations = annotations[next_random(seed) % 10];
	d.flags = next_random(seed) % 16 == 0	? RP_CTR_PRESERVE_CPU
		  : next_random(seed) % 16 == 0 ? RP_CTR_PRESERVE_MEM
						: 0;
	d.mem_request = d.qos == RP_QOS_BEST_EFFORT ? 0 : (int64_t)(next_random(seed) % 600) * MIB;
	d.mem_limit = d.qos == RP_QOS_GUARANTEED ? d.mem_request : 0;
	if (d.qos == RP_QOS_BEST_EFFORT)
		d.cpu_request = 0;
	if (d.qos == RP_QOS_BURSTABLE && next_random(seed) % 2)
		d.cpu_limit = d.cpu_request * 2;
	return d;
}

struct load {
	struct fake_host *f;
	rp_ctr live[N_LIVE];
	bool kept[N_LIVE]; /* annotated to stay */
	/* annotated to hide hyperthreads: its visible CPUs depend on the shared ones */
	bool hides[N_LIVE];
	uint32_t n;
};

static void come_and_go(struct load *l, uint64_t *seed)
{
	for (uint32_t i = 0; i < 30; i++) {
		struct fake_ctr d = random_container(seed);
		rp_ctr c = l->n < N_LIVE ? fake_ctr(l->f, &d) : 0;
		if (!c || fake_allocate(l->f, c))
			continue;
		l->kept[l->n] = d.flags != 0;
		l->hides[l->n] = d.annotations && strstr(d.annotations, "hide-");
		l->live[l->n++] = c;
	}
	for (uint32_t i = 0; i < 12 && l->n; i++) {
		uint32_t k = next_random(seed) % l->n;
		assert_int_equal(fake_release(l->f, l->live[k]), 0);
		l->live[k] = l->live[--l->n];
		l->kept[k] = l->kept[l->n];
		l->hides[k] = l->hides[l->n];
	}
}

static void check(struct load *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		for (uint32_t k = 0; k < l->n; k++)
			if (i != k && rp_ids_overlap(fake_exclusive_ids(l->f, l->live[i]),
						     fake_cpu_ids(l->f, l->live[k])))
				fail_msg("containers %u and %u share exclusive CPUs", i, k);
}

/* Counts containers whose memory or exclusive CPUs changed. Containers annotated to stay must
 * not change. */
static uint32_t count_changed(struct load *l, char *const was[N_LIVE])
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->n; i++) {
		char now[256];
		(void)snprintf(now, sizeof now, "%s/%s", fake_exclusive(l->f, l->live[i]),
			       fake_mems(l->f, l->live[i]));
		if (l->hides[i] || strcmp(now, was[i]) == 0)
			continue;
		n++;
		assert_false(l->kept[i]);
	}
	return n;
}

static void one_round(struct load *l, uint64_t budget, uint64_t *ret_n)
{
	char *was[N_LIVE];
	uint64_t before = n_moved(l->f);
	for (uint32_t i = 0; i < l->n; i++) {
		char text[256];
		(void)snprintf(text, sizeof text, "%s/%s", fake_exclusive(l->f, l->live[i]),
			       fake_mems(l->f, l->live[i]));
		was[i] = strdup(text);
	}
	assert_int_equal(rebalance(l->f, budget), 0);
	*ret_n = n_moved(l->f) - before;
	assert_true(!budget || *ret_n <= budget);
	assert_true(count_changed(l, was) <= *ret_n);
	for (uint32_t i = 0; i < l->n; i++)
		free(was[i]);
	check(l);
}

/* Rebalances until no container moves. Returns the number of moves. */
static uint64_t settle(struct load *l, uint64_t budget)
{
	uint64_t all = 0, n = 1;
	for (uint32_t round = 0; n; round++) {
		if (round == ROUNDS_MAX * N_LIVE / (budget ? (uint32_t)budget : N_LIVE))
			fail_msg("%u rounds and %llu moves, and it has not come to an end", round,
				 (unsigned long long)all);
		one_round(l, budget, &n);
		all += n;
	}
	assert_int_equal(fake_n_changed(l->f), 0);
	return all;
}

static uint64_t run_random(const struct fake_machine *m, const char *config, uint64_t seed)
{
	struct load l = {.f = start(m, config)}, twin = {.f = start(m, config)};
	uint64_t all = 0, seed_twin = seed;
	for (uint32_t i = 0; i < 6; i++) {
		uint64_t budget = i % 3 * 2;
		come_and_go(&l, &seed);
		come_and_go(&twin, &seed_twin);
		uint64_t n = settle(&l, budget);
		/* Equal events lead to equal places, and a restart changes nothing. */
		assert_int_equal(settle(&twin, budget), n);
		assert_int_equal(fake_restart(twin.f), 0);
		assert_int_equal(fake_n_changed(twin.f), 0);
		assert_int_equal(settle(&twin, budget), 0);
		char *one = image(l.f, l.live, l.n), *two = image(twin.f, twin.live, twin.n);
		assert_string_equal(one, two);
		free(one);
		free(two);
		all += n;
	}
	fake_host_free(l.f);
	fake_host_free(twin.f);
	return all;
}

static void test_random(void **state)
{
	struct fake_machine isolated = small;
	uint64_t all = 0;
	isolated.isolated = "2-3,6";
	for (uint64_t seed = 1; seed <= 6; seed++) {
		all += run_random(&small, PLAIN, seed);
		all += run_random(&isolated, "{packing: balanced, reservedResources: {cpu: 1}}",
				  seed);
		all += run_random(&caches, TOGETHER, seed);
	}
	assert_true(all > 20); /* the test needs moves to be meaningful */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_left_alone),	 cmocka_unit_test(test_budget),
		cmocka_unit_test(test_kept_and_lowered), cmocka_unit_test(test_follows),
		cmocka_unit_test(test_no_chase),	 cmocka_unit_test(test_spread),
		cmocka_unit_test(test_nothing_to_do),	 cmocka_unit_test(test_any_failure),
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
