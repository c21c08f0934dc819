/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Committed records survive SIGKILL at any instruction. A child works on the store and publishes in
 * shared memory the step that it is about to commit and the last committed step. The parent kills
 * it at a random time and checks the stored state. Each step changes several containers in one
 * commit, which reveals a half-written commit. There are two kinds of work: arbitrary commits, and
 * commits of the pipeline, in which many containers share CPUs that exclusive containers take and
 * release. At times the log is rewritten. NRI_RP_TEST_KILLS sets the number of kills.
 */
#include "t_store.h"

#include <sys/mman.h>

#include "core/lib/util/str.h"
#include "core/nri-rpd/store/blobs.h"

#define KILLS 500u
#define CTRS 24u

struct progress {
	volatile uint64_t begun, done;
	volatile uint64_t told; /* last step that the runtime has acknowledged, for `moving` */
};

/* The state after a step follows from its number alone. */
struct work {
	/* work after each start; NULL: none */
	void (*synchronize)(struct cache *c, const struct progress *progress);
	void (*step_to)(struct store *s, struct cache *c, uint64_t step);
	void (*answered)(struct store *s, struct cache *c, uint64_t step,
			 struct progress *progress);
	void (*check)(struct cache *c, uint64_t step, const struct progress *progress);
};

/* ---- everything at once ---------------------------------------------------------------------- */

static unsigned variant_of(uint64_t step)
{
	return (unsigned)(step % 100000);
}

static bool exists_after(uint64_t step, unsigned i)
{
	return (step / 3 + i * 7) % 5 != 0;
}

static struct ctr *ctr_number(struct cache *c, unsigned i)
{
	char id[80];
	(void)snprintf(id, sizeof id, "%064x", 0xc0000 + i);
	return cache_ctr(c, id);
}

static struct pod *pod_number(struct cache *c, unsigned i)
{
	char id[80];
	(void)snprintf(id, sizeof id, "%064x", 0xa0000 + i);
	struct pod *pod = cache_pod(c, id);
	return pod ? pod : add_pod(c, i);
}

static void step_to(struct store *s, struct cache *c, uint64_t step)
{
	for (unsigned i = 0; i < CTRS; i++) {
		struct ctr *ctr = ctr_number(c, i);
		bool wanted = exists_after(step, i);
		if (ctr && !wanted) {
			struct pod *pod = ctr->pod;
			store_del_pod(s, pod);
			cache_del_pod(c, pod);
			continue;
		}
		if (!wanted)
			continue;
		if (!ctr) {
			struct pod *pod = pod_number(c, i);
			store_put_pod(s, pod);
			ctr = add_ctr(c, pod, i);
		}
		decide(c, ctr, i * 4, variant_of(step));
		store_put_ctr(s, ctr);
	}
}

static void nobody_is_told(struct store *s, struct cache *c, uint64_t step,
			   struct progress *progress)
{
}

static void check_all(struct cache *c, uint64_t step, const struct progress *progress)
{
	for (unsigned i = 0; i < CTRS; i++) {
		const struct ctr *ctr = ctr_number(c, i);
		assert_int_equal(ctr != NULL, exists_after(step, i));
		if (ctr)
			assert_true(ctr->cur.shares == 2 + (int64_t)variant_of(step));
	}
}

static const struct work complete = {NULL, step_to, nobody_is_told, check_all};

/* ---- shared sets that move ------------------------------------------------------------------- */

#define OWNERS 6u /* number i has CPUs 2i and 2i + 1 while it is there */
#define SHARERS 40u /* have what no owner has */
#define SHARED_FIRST (2 * OWNERS)
#define SHARED_LAST (SHARED_FIRST + 3)
#define FIRST_OWNER 1000u
#define COMPLETE_EVERY 5u /* steps: the pipeline's timer */

static bool owns_after(uint64_t step, unsigned i)
{
	return (step + 3 * i) % 4 < 2;
}

/* Returns the number of the owner in this slot. No number is used twice. */
static unsigned owner_number(uint64_t step, unsigned i)
{
	return FIRST_OWNER + OWNERS * (unsigned)(step - (step + 3 * i) % 4) + i;
}

static void shared_after(uint64_t step, char ret[128])
{
	struct rp_idset ids;
	rp_idset_clear(&ids);
	for (unsigned cpu = 0; cpu <= SHARED_LAST; cpu++)
		if (cpu >= SHARED_FIRST || !owns_after(step, cpu / 2))
			rp_idset_add(&ids, cpu);
	assert_true(rp_ids_format(rp_ids_of(&ids), ret, 128) < 128);
}

/* Returns the CPU shares after a step. A step in eleven changes more of a sharer than its CPU
 * set. */
static int64_t shares_after(uint64_t step, unsigned i)
{
	return (int64_t)(1000 + step - (step + i) % 11);
}

static void own(struct store *s, struct cache *c, uint64_t step, unsigned i)
{
	char cpus[16];
	struct pod *pod = pod_number(c, owner_number(step, i));
	struct ctr *ctr = add_ctr(c, pod, owner_number(step, i));
	store_put_pod(s, pod);
	(void)snprintf(cpus, sizeof cpus, "%u-%u", 2 * i, 2 * i + 1);
	put_set(c, &ctr->cur.cpus, cpus);
	put_set(c, &ctr->cur.exclusive, cpus);
	ctr->cur.state = RP_STATE_RUNNING;
	ctr->store.missing = TXN_CHANGED_OTHER;
	store_put_ctr(s, ctr);
}

static void come_and_go(struct store *s, struct cache *c, uint64_t step, unsigned i)
{
	bool was = step > 1 && owns_after(step - 1, i), is = owns_after(step, i);
	if (is && !was)
		own(s, c, step, i);
	if (is || !was)
		return;
	struct pod *pod = ctr_number(c, owner_number(step - 1, i))->pod;
	store_del_pod(s, pod);
	cache_del_pod(c, pod);
}

static struct ctr *sharer(struct store *s, struct cache *c, unsigned i)
{
	struct ctr *ctr = ctr_number(c, i);
	if (ctr)
		return ctr;
	struct pod *pod = pod_number(c, i);
	store_put_pod(s, pod);
	ctr = add_ctr(c, pod, i);
	put_set(c, &ctr->cur.exclusive, "");
	ctr->cur.state = RP_STATE_RUNNING;
	ctr->store.missing = TXN_CHANGED_OTHER;
	return ctr;
}

/* Applies the values that the runtime reports over the stored ones, because acknowledgements are
 * stored with the next commit and may have been lost. */
static void hear_all(struct cache *c, const struct progress *progress)
{
	char told[128];
	shared_after(progress->told, told);
	for (unsigned i = 0; progress->told && i < SHARERS; i++) {
		struct ctr *ctr = ctr_number(c, OWNERS + i);
		if (ctr)
			put_set(c, &ctr->acked.cpus, told);
	}
}

static void move_to(struct store *s, struct cache *c, uint64_t step)
{
	char shared[128];
	struct ctr *sharers[SHARERS];
	for (unsigned i = 0; i < OWNERS; i++)
		come_and_go(s, c, step, i);
	shared_after(step, shared);
	for (unsigned i = 0; i < SHARERS; i++)
		sharers[i] = sharer(s, c, OWNERS + i);
	struct txn *t = txn_begin(c);
	for (unsigned i = 0; i < SHARERS; i++) {
		struct decision *d = txn_stage(t, sharers[i]);
		put_set(c, &d->cpus, shared);
		d->shares = shares_after(step, i);
	}
	txn_commit(t);
	for (const struct stage *stage = txn_touched(t); stage; stage = stage->link)
		if (stage->ctr->store.missing || !stage->ctr->store.facts)
			store_put_ctr(s, stage->ctr);
	txn_end(t);
}

/* Records the acknowledgement of the runtime for all updates of the step. */
static void take_word(struct store *s, struct cache *c, uint64_t step, struct progress *progress)
{
	progress->told = step;
	for (unsigned i = 0; i < SHARERS; i++) {
		struct ctr *ctr = ctr_number(c, OWNERS + i);
		ctr_ack(c, ctr, DIFF_CPUS);
		store_put_ctr(s, ctr);
	}
	if (step % COMPLETE_EVERY == 0 && store_commit(s, NULL))
		_exit(13);
}

static unsigned owners_of(struct cache *c, unsigned i)
{
	unsigned n = 0;
	for (const struct ctr *ctr = cache_ctrs(c); ctr; ctr = ctr->next)
		n += ctr->cur.exclusive && rp_ids_has(ctr->cur.exclusive->ids, 2 * i);
	return n;
}

static void check_moved(struct cache *c, uint64_t step, const struct progress *progress)
{
	char shared[128], told[128], owned[16];
	shared_after(step, shared);
	shared_after(progress->told, told);
	for (unsigned i = 0; i < OWNERS; i++) {
		if (!owns_after(step, i)) {
			assert_int_equal(owners_of(c, i), 0);
			continue;
		}
		const struct ctr *ctr = ctr_number(c, owner_number(step, i));
		assert_non_null(ctr);
		assert_int_equal(owners_of(c, i), 1);
		(void)snprintf(owned, sizeof owned, "%u-%u", 2 * i, 2 * i + 1);
		assert_string_equal(ctr->cur.exclusive->text, owned);
		assert_string_equal(ctr->cur.cpus->text, owned);
	}
	for (unsigned i = 0; i < SHARERS; i++) {
		const struct ctr *ctr = ctr_number(c, OWNERS + i);
		assert_non_null(ctr);
		assert_string_equal(ctr->cur.cpus->text, shared);
		assert_true(ctr->cur.shares == shares_after(step, i));
		/* an equal value would not be sent again */
		if (ctr->acked.cpus && str_eq(ctr->acked.cpus->text, shared))
			assert_string_equal(told, shared);
	}
}

static const struct work moving = {hear_all, move_to, take_word, check_moved};

/* ---- the two processes ----------------------------------------------------------------------- */

/* Runs the child's work and never returns. Its exit status reveals errors. */
static void work(const struct place *p, const struct work *w, struct progress *progress)
{
	struct store_params params = {.dir = p->dir, .boot_id = BOOT};
	struct store_opening opening;
	struct store *s;
	struct cache *c = new_cache();
	(void)setenv("CMOCKA_TEST_ABORT", "1", 1);
	if (store_open(&params, &s, &opening, NULL))
		_exit(10);
	if (restore(s, c).bad)
		_exit(11);
	if (w->synchronize)
		w->synchronize(c, progress);
	for (uint64_t step = progress->done + 1;; step++) {
		w->step_to(s, c, step);
		assert_int_equal(store_put_note(s, "step", &step, sizeof step), 0);
		progress->begun = step;
		if (store_commit(s, NULL))
			_exit(12);
		progress->done = step;
		w->answered(s, c, step, progress);
		if (step % 64 == 0)
			s->lost_track = true; /* the next one is a whole new log */
	}
}

static uint64_t look(const struct place *p, const struct work *w, const struct progress *progress)
{
	struct store_params params = {.dir = p->dir, .boot_id = BOOT};
	struct store_opening opening;
	struct store *s;
	struct cache *c = new_cache();
	uint64_t step = 0;
	size_t len = 0;
	assert_int_equal(store_open(&params, &s, &opening, NULL), 0);
	if (opening.outcome != STORE_FOUND && (opening.outcome != STORE_FRESH || progress->done))
		fail_msg("after step %llu: %s", (unsigned long long)progress->done, opening.why);
	struct store_counts n = restore(s, c);
	assert_int_equal(n.bad, 0);
	const void *note = store_note(s, "step", &len);
	if (note)
		memcpy(&step, note, sizeof step);
	assert_true(step >= progress->done);
	assert_true(step <= progress->begun);
	if (step)
		w->check(c, step, progress);
	(void)store_close(s);
	(void)cache_free(c);
	return step;
}

static void churn(const struct place *p, const struct work *w, unsigned kills)
{
	struct progress *progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned seed = (unsigned)getpid(), mid_commit = 0;
	uint64_t total = 0;
	assert_true(progress != MAP_FAILED);
	for (unsigned i = 0; i < kills; i++) {
		int status;
		pid_t pid = fork();
		if (pid == 0)
			work(p, w, progress);
		/* mostly while it commits, sometimes while it starts */
		(void)usleep((unsigned)rand_r(&seed) % (i % 8 ? 9000 : 2500));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			fail_msg("the worker ended with status %x", (unsigned)status);
		mid_commit += progress->begun != progress->done;
		total = look(p, w, progress);
		progress->begun = progress->done = total;
	}
	print_message("%u kills, %u of them in a commit, %llu commits\n", kills, mid_commit,
		      (unsigned long long)total);
	assert_true(total > 0);
	(void)munmap(progress, sizeof *progress);
}

static unsigned n_kills(void)
{
	const char *text = getenv("NRI_RP_TEST_KILLS");
	return text ? (unsigned)atoi(text) : KILLS;
}

static void everything_at_once(void **state)
{
	churn(*state, &complete, n_kills());
}

static void as_the_pipeline_does(void **state)
{
	churn(*state, &moving, n_kills());
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	place_init(p);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	place_fini(*state);
	free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everything_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(as_the_pipeline_does, setup, teardown),
	};
	log_init("t_store_kill");
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
