/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was committed survives SIGKILL at any instruction. A child works on the store and tells, in shared memory, which step it is
 * about to commit and which it has committed; the parent kills it at a random time and looks at what is there. Each step changes
 * several containers in one commit, so that a half of one would show.
 *
 * NRI_RP_TEST_KILLS sets how often.
 */
#include "t_store.h"

#include <sys/mman.h>

#define KILLS 500u
#define CTRS 24u

struct progress {
	volatile uint64_t begun, done;
};

/* The state after a step follows from its number alone. */
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
	assert_int_equal(store_put_note(s, "step", &step, sizeof step), 0);
}

/* Never returns. Anything wrong shows in its exit status. */
static void work(const struct place *p, struct progress *progress, int mode)
{
	struct store_params params = {.dir = p->dir, .boot_id = BOOT, .write = mode};
	struct store_opening opening;
	struct store *s;
	struct cache *c = new_cache();
	(void)setenv("CMOCKA_TEST_ABORT", "1", 1);
	if (store_open(&params, &s, &opening, NULL))
		_exit(10);
	if (restore(s, c).bad)
		_exit(11);
	for (uint64_t step = progress->done + 1;; step++) {
		step_to(s, c, step);
		progress->begun = step;
		if (store_commit(s, NULL))
			_exit(12);
		progress->done = step;
		if (step % 64 == 0)
			s->lost_track = true; /* the next one is a whole new file */
	}
}

static uint64_t look(const struct place *p, const struct progress *progress)
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
	for (unsigned i = 0; step && i < CTRS; i++) {
		const struct ctr *ctr = ctr_number(c, i);
		assert_int_equal(ctr != NULL, exists_after(step, i));
		if (ctr)
			assert_true(ctr->cur.shares == 2 + (int64_t)variant_of(step));
	}
	(void)store_close(s);
	(void)cache_free(c);
	return step;
}

static void churn(const struct place *p, int mode, unsigned kills)
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
			work(p, progress, mode);
		/* mostly while it commits, sometimes while it starts */
		(void)usleep((unsigned)rand_r(&seed) % (i % 8 ? 9000 : 2500));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			fail_msg("the worker ended with status %x", (unsigned)status);
		mid_commit += progress->begun != progress->done;
		total = look(p, progress);
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

static void through_the_map(void **state)
{
	churn(*state, STORE_WRITE_MAP, n_kills());
}

static void through_write(void **state)
{
	churn(*state, STORE_WRITE_PLAIN, n_kills() / 2);
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
		cmocka_unit_test_setup_teardown(through_the_map, setup, teardown),
		cmocka_unit_test_setup_teardown(through_write, setup, teardown),
	};
	log_init("t_store_kill");
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
