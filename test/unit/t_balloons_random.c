/* SPDX-License-Identifier: Apache-2.0 */
/* Tests invariants of balloons under random events. */
#include "test/unit/t_balloons.h"

#include "modules/balloons/balloons.h"
#include "modules/balloons/place.h"
#include "modules/balloons/stage.h"

#define N_STEPS 250
#define N_LIVE 30

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* A machine and a configuration, and what of it can be promised. */
struct world {
	const char *what;
	struct fake_machine machine;
	const char *config;
	const char *types[8]; /* by annotation; NULL: none */
	uint32_t n_types;
	/* balloons without containers have no CPUs: an empty policy is in its initial state */
	bool same_again;
};

static const struct world worlds[] = {
	{"plain",
	 {.packages = 2, .nodes = 2, .cores = 2, .threads = 2},
	 "{reservedResources: {cpu: 1}, balloonTypes: [{name: a, preferNewBalloons: true, maxCPUs: "
	 "4}, "
	 "{name: b, allocatorTopologyBalancing: true, groupBy: \"${pod/name}\"}, {name: c, "
	 "maxBalloons: 2, "
	 "preferSpreadOnPhysicalCores: true}]}",
	 {"a", "b", "c", NULL, "reserved"},
	 5,
	 false},
	{"sharing",
	 {.packages = 2,
	  .nodes = 2,
	  .cores = 4,
	  .threads = 2,
	  .siblings = true,
	  .isolated = "2-3,6"},
	 "{reservedResources: {cpu: \"cpuset:0,16\"}, balloonTypes: [{name: a, "
	 "shareIdleCPUsInSame: numa}, "
	 "{name: b, shareIdleCPUsInSame: core, hideHyperthreads: true}, {name: c, "
	 "shareIdleCPUsInSame: "
	 "system, preferNewBalloons: true, preferPerNamespaceBalloon: true}, {name: d, "
	 "preferIsolCpus: "
	 "true, pinMemory: false}]}",
	 {"a", "b", "c", "d", NULL, "reserved"},
	 6,
	 true},
	{"composite",
	 {.packages = 2, .dies = 2, .nodes = 1, .cores = 4, .threads = 2, .l2_cores = 2},
	 "{reservedResources: {cpu: 750m}, loadClasses: [{name: l, level: l2cache, "
	 "overloadsLevelInBalloon: true}], balloonTypes: [{name: p, maxCPUs: 6}, {name: q, loads: "
	 "[l]}, "
	 "{name: a, components: [{balloonType: p}, {balloonType: q}]}, {name: b, minCPUs: 2, "
	 "minBalloons: 1, "
	 "components: [{balloonType: p}, {balloonType: q}], componentCreation: balance-balloons}, "
	 "{name: c, "
	 "minBalloons: 2, minCPUs: 1, maxBalloons: 3}]}",
	 {"a", "b", "c", "q", NULL},
	 5,
	 false},
};

/* ---- invariants ------------------------------------------------------------------------------ */

/* Removes the CPUs of the balloon and of its parts from `left`. */
static void take_cpus(const struct balloon *b, struct rp_idset *left)
{
	struct rp_idset parts;
	rp_idset_clear(&parts);
	assert_int_equal(b->n_cpus, rp_ids_count(rp_ids_of(&b->cpus)));
	for (uint32_t i = 0; i < b->n_parts; i++) {
		take_cpus(b->parts[i], left);
		rp_idset_or(&parts, rp_ids_of(&parts), rp_ids_of(&b->parts[i]->cpus));
	}
	if (b->n_parts) {
		assert_true(rp_ids_equal(rp_ids_of(&parts), rp_ids_of(&b->cpus)));
		return;
	}
	assert_true(rp_ids_subset(rp_ids_of(&b->cpus), rp_ids_of(left)));
	rp_idset_andnot(left, rp_ids_of(left), rp_ids_of(&b->cpus));
}

static void check_size(const struct balloon *b)
{
	const struct type *t = b->type;
	int64_t n = rp_ids_count(rp_ids_of(&b->cpus));
	assert_true(n >= t->min_cpus);
	assert_true(!t->max_cpus || n <= t->max_cpus);
	if (b->n_members)
		assert_true(n >= 1 && 1000 * n >= b->request);
	else if (!t->min_balloons)
		fail_msg("%s[%u] is there without containers", t->name, b->instance);
}

static void check_members(struct fake_host *f, const struct balloon *b, uint32_t *n)
{
	struct rp_idset pinnable;
	int64_t request = 0;
	pin_pinnable(b, &pinnable);
	for (uint32_t i = 0; i < b->n_members; i++) {
		const struct member *m = b->members[i];
		struct rp_ids cpus = fake_cpu_ids(f, m->ctr);
		assert_ptr_equal(m->balloon, b);
		assert_int_equal(m->index, i);
		request += m->request;
		assert_false(rp_ids_empty(cpus));
		if (!m->hide_threads)
			assert_true(rp_ids_equal(cpus, rp_ids_of(&pinnable)));
		assert_true(rp_ids_subset(cpus, rp_ids_of(&pinnable)));
		assert_int_equal(m->pin_memory, fake_mems(f, m->ctr)[0] != '\0');
	}
	assert_int_equal(request, b->request);
	*n += b->n_members;
}

static void check_all(struct fake_host *f, uint32_t n_live)
{
	const struct state *s = fake_instance(f)->state;
	struct rp_idset left, sharable;
	uint32_t n = 0;
	rp_idset_copy(&left, rp_ids_of(&s->plan->allowed));
	rp_idset_and(&sharable, rp_ids_of(&s->free), rp_ids_of(&s->plan->sharable));
	for (uint32_t i = 0; i < s->n; i++) {
		const struct balloon *b = s->list[i];
		take_cpus(b, &left);
		check_size(b);
		check_members(f, b, &n);
		assert_true(rp_ids_subset(rp_ids_of(&b->shared), rp_ids_of(&sharable)));
		for (uint32_t k = 0; k < i; k++)
			assert_false(s->list[k]->type == b->type &&
				     s->list[k]->instance == b->instance);
	}
	assert_true(rp_ids_equal(rp_ids_of(&left), rp_ids_of(&s->free)));
	assert_int_equal(n, n_live);
	assert_int_equal(s->by_ctr.n, n_live);
	for (uint32_t i = 0; i < s->plan->n_types; i++) {
		const struct type *t = &s->plan->types[i];
		int64_t n_of = state_count(s, t);
		assert_true(n_of >= t->min_balloons);
		assert_true(!t->max_balloons || n_of <= t->max_balloons);
	}
	/* The reserved balloon exists regardless of other requests. */
	assert_int_equal(state_count(s, s->plan->reserved_type), 1);
}

/* ---- random events --------------------------------------------------------------------------- */

struct run {
	struct fake_host *f;
	const struct world *w;
	uint64_t seed;
	uint32_t n, next;
	rp_ctr live[N_LIVE];
};

static uint32_t draw(struct run *r, uint32_t n)
{
	return next_random(&r->seed) % n;
}

static rp_ctr random_container(struct run *r)
{
	static const int64_t requests[] = {0, 0, 100, 250, 500, 1000, 1500, 2000, 3000, 5000};
	static const char *const more[] = {"", "", ";hide-hyperthreads.resource-policy.nri.io=true",
					   ";memory-type.resource-policy.nri.io=dram"};
	char name[24], pod[24], space[24], annotations[200] = "";
	const char *type = r->w->types[draw(r, r->w->n_types)];
	int64_t request = requests[draw(r, 10)];
	(void)snprintf(name, sizeof name, "c%u", r->next++);
	(void)snprintf(pod, sizeof pod, "p%u", draw(r, 6));
	(void)snprintf(space, sizeof space, draw(r, 8) ? "ns%u" : "kube-system", draw(r, 3));
	if (type)
		(void)snprintf(annotations, sizeof annotations, BALLOON "%s%s", type,
			       more[draw(r, 4)]);
	return fake_ctr(r->f,
			&(struct fake_ctr){.name = name,
					   .pod_name = pod,
					   .pod_namespace = space,
					   .qos = request ? RP_QOS_BURSTABLE : RP_QOS_BEST_EFFORT,
					   .cpu_request = request,
					   .mem_limit = (int64_t)draw(r, 200) << 20,
					   .annotations = annotations});
}

static char *image(struct fake_host *f)
{
	char *text = strdup(fake_zones(f));
	assert_non_null(text);
	return text;
}

static void delete_one(struct run *r)
{
	uint32_t i = draw(r, r->n);
	assert_int_equal(fake_release(r->f, r->live[i]), 0);
	r->live[i] = r->live[--r->n];
}

static void resize_one(struct run *r)
{
	rp_ctr c = r->live[draw(r, r->n)];
	char *before = image(r->f), *after;
	fake_request(r->f, c, 125 * (int64_t)draw(r, 40), 0);
	if (fake_update(r->f, c)) {
		after = image(r->f);
		assert_string_equal(before, after);
		free(after);
	}
	free(before);
}

/* In a transaction that is dropped: nothing has happened. */
static void try_one(struct run *r)
{
	char *before = image(r->f), *after;
	rp_ctr c = random_container(r);
	(void)fake_try(r->f, c);
	fake_forget(r->f, c);
	after = image(r->f);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void create_one(struct run *r)
{
	char *before = image(r->f), *after;
	rp_ctr c = random_container(r);
	if (fake_allocate(r->f, c) == 0) {
		r->live[r->n++] = c;
	} else {
		after = image(r->f);
		assert_string_equal(before, after);
		free(after);
	}
	free(before);
}

/* How a container is placed. */
struct place {
	const struct type *type;
	uint32_t instance, moves, n_cpus, n_members;
	uint32_t width[TREE_NUMA + 1]; /* units of the levels that its balloon is in */
};

static void look(const struct run *r, struct place *ret)
{
	const struct state *s = fake_instance(r->f)->state;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct member *m = state_member(s, r->live[i]);
		const struct balloon *b = m->balloon;
		ret[i] = (struct place){b->type,   b->instance,	 m->moves,
					b->n_cpus, b->n_members, {0}};
		for (uint32_t level = TREE_PACKAGE; level <= TREE_NUMA; level++)
			ret[i].width[level] = compact_count(
				s->plan->machine, (enum tree_level)level, rp_ids_of(&b->cpus));
	}
}

static void check_place(const struct place *was, const struct place *is)
{
	bool same = was->instance == is->instance && was->n_cpus == is->n_cpus &&
		    was->n_members == is->n_members;
	assert_ptr_equal(was->type, is->type);
	if (was->moves == is->moves)
		assert_int_equal(was->instance, is->instance);
	/* A container that was not moved, or was moved with its whole balloon, spans no more places
	 * than before. */
	for (uint32_t level = TREE_PACKAGE; level <= TREE_NUMA; level++)
		if (was->moves == is->moves || same)
			assert_true(is->width[level] <= was->width[level]);
}

static uint32_t rebalance(struct run *r, uint32_t budget)
{
	struct place before[N_LIVE], after[N_LIVE];
	uint32_t n_moved = 0;
	look(r, before);
	assert_int_equal(fake_event(r->f, &(struct rp_event){.size = sizeof(struct rp_event),
							     .type = RP_EVENT_REBALANCE,
							     .cookie = budget}),
			 0);
	look(r, after);
	for (uint32_t i = 0; i < r->n; i++) {
		check_place(&before[i], &after[i]);
		n_moved += before[i].moves != after[i].moves;
	}
	assert_true(!budget || n_moved <= budget);
	return n_moved;
}

static void step(struct run *r)
{
	uint32_t what = draw(r, 11);
	if (what == 10)
		(void)rebalance(r, draw(r, 5));
	else if (r->n && (what < 3 || r->n == N_LIVE))
		delete_one(r);
	else if (r->n && what == 3)
		resize_one(r);
	else if (what == 4)
		try_one(r);
	else
		create_one(r);
}

static struct run begin(const struct world *w, uint64_t seed)
{
	return (struct run){.f = start(&w->machine, w->config), .w = w, .seed = seed};
}

static void each_world(void (*test)(const struct world *w, uint64_t seed), uint64_t n_seeds)
{
	for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++)
		for (uint64_t seed = 1; seed <= n_seeds; seed++)
			test(&worlds[i], seed);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Two of the same, one of which is restarted or looks at everything anew after each step: nobody
 * can tell which. When all have gone nothing is left of them. */
static void run_random(const struct world *w, uint64_t seed)
{
	struct run r = begin(w, seed), twin = begin(w, seed);
	char *empty = image(r.f);
	for (uint32_t i = 0; i < N_STEPS; i++) {
		step(&r);
		step(&twin);
		check_all(r.f, r.n);
		assert_int_equal(r.n, twin.n);
		assert_int_equal(i % 2 ? fake_restart(twin.f) : fake_sync(twin.f), 0);
		if (fake_n_changed(twin.f))
			fail_msg("%s, seed %u, step %u: a restart moves containers", w->what,
				 (unsigned)seed, i);
		char *a = image(r.f), *b = image(twin.f);
		assert_string_equal(a, b);
		free(a);
		free(b);
		for (uint32_t k = 0; k < r.n; k++) {
			assert_string_equal(fake_cpus(r.f, r.live[k]),
					    fake_cpus(twin.f, twin.live[k]));
			assert_string_equal(fake_mems(r.f, r.live[k]),
					    fake_mems(twin.f, twin.live[k]));
		}
	}
	while (r.n) {
		delete_one(&r);
		check_all(r.f, r.n);
	}
	const struct state *s = fake_instance(r.f)->state;
	assert_int_equal(s->by_pod.n, 0);
	assert_true(!s->memory || memalloc_count(s->memory) == 0);
	char *end = image(r.f);
	if (w->same_again)
		assert_string_equal(empty, end);
	assert_int_equal(rp_ids_count(rp_ids_of(&s->free)), s->plan->idle_at_start);
	free(empty);
	free(end);
	fake_host_free(r.f);
	fake_host_free(twin.f);
}

static void test_random(void **state)
{
	each_world(run_random, 6);
}

/* Moves come to an end: when there are none, nothing at all changes. */
static void run_to_rest(const struct world *w, uint64_t seed)
{
	struct run r = begin(w, seed);
	for (uint32_t i = 0; i < N_STEPS; i++) {
		uint32_t rounds = 0;
		step(&r);
		if (i % 5)
			continue;
		while (rebalance(&r, 0))
			assert_true(rounds++ < N_LIVE);
		check_all(r.f, r.n);
		char *before = image(r.f);
		assert_int_equal(rebalance(&r, 0), 0);
		assert_int_equal(fake_n_changed(r.f), 0);
		char *after = image(r.f);
		assert_string_equal(before, after);
		free(before);
		free(after);
	}
	fake_host_free(r.f);
}

static void test_rest(void **state)
{
	each_world(run_to_rest, 8);
}

/* Do its containers have just the balloon's CPUs, and are these as many as they ask for? */
static bool has_plain_balloon(struct fake_host *f, rp_ctr ctr)
{
	const struct balloon *b = state_member(fake_instance(f)->state, ctr)->balloon;
	int64_t request = b->request > 0 ? b->request : 1;
	for (uint32_t i = 0; i < b->n_members; i++)
		if (!rp_ids_equal(fake_cpu_ids(f, b->members[i]->ctr), rp_ids_of(&b->cpus)))
			return false;
	return !b->type->parts.n && b->type->share < 0 &&
	       b->n_cpus == balloon_wanted(b->type, request);
}

/* Checks a start without saved balloons: balloons are rebuilt where the containers' CPUs identify
 * them, and every container has a place. */
static void run_without_image(const struct world *w, uint64_t seed)
{
	struct run r = begin(w, seed);
	for (uint32_t i = 0; i < N_STEPS / 2; i++) {
		step(&r);
		if (i % 10)
			continue;
		char was[N_LIVE][256];
		bool stays[N_LIVE];
		for (uint32_t k = 0; k < r.n; k++) {
			stays[k] = has_plain_balloon(r.f, r.live[k]);
			(void)snprintf(was[k], sizeof was[k], "%s", fake_cpus(r.f, r.live[k]));
		}
		fake_lose_state(r.f);
		assert_int_equal(fake_restart(r.f), 0);
		for (uint32_t k = 0; k < r.n; k++)
			if (stays[k])
				assert_string_equal(fake_cpus(r.f, r.live[k]), was[k]);
		check_all(r.f, r.n);
	}
	fake_host_free(r.f);
}

static void test_without_image(void **state)
{
	each_world(run_without_image, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_without_image),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
