/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/lib/util/log.h"
#include "core/lib/util/loop.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"

/* State of a test's callbacks and the letters that they append to the trace. */
struct scene {
	struct loop *loop;
	char trace[128];
	struct loop_io *io;
	struct loop_timer *timer;
	struct worker *worker;
	int fd[2];
	unsigned n;
	uint64_t at_ms;
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof *s);
	if (!s)
		return -1;
	s->loop = loop_new();
	*state = s;
	return s->loop && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s->fd) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	loop_io_free(s->io);
	loop_timer_free(s->timer);
	worker_free(s->worker);
	loop_free(s->loop);
	(void)close(s->fd[0]);
	(void)close(s->fd[1]);
	free(s);
	return 0;
}

static void mark(struct scene *s, char c)
{
	size_t len = strlen(s->trace);
	if (len + 1 < sizeof s->trace)
		s->trace[len] = c;
}

static void mark_a(void *arg)
{
	mark(arg, 'a');
}

static void mark_b(void *arg)
{
	mark(arg, 'b');
}

static void stop(void *arg)
{
	struct scene *s = arg;
	mark(s, '.');
	loop_stop(s->loop);
}

/* ---- posts and deferrals --------------------------------------------------------------------- */

static void test_posts_in_order(void **state)
{
	struct scene *s = *state;
	assert_int_equal(loop_post(s->loop, mark_a, s), 0);
	assert_int_equal(loop_post(s->loop, mark_b, s), 0);
	assert_int_equal(loop_post(s->loop, mark_a, s), 0);
	assert_int_equal(loop_post(s->loop, stop, s), 0);
	assert_int_equal(loop_post(s->loop, mark_b, s), 0); /* after the stop: for the next run */
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "aba.");
	assert_int_equal(loop_post(s->loop, stop, s), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "aba.b.");
}

static void post_again(void *arg)
{
	struct scene *s = arg;
	mark(s, 'p');
	assert_int_equal(loop_post(s->loop, ++s->n < 5 ? post_again : stop, s), 0);
}

static void test_posts_that_post(void **state)
{
	struct scene *s = *state;
	assert_int_equal(loop_post(s->loop, post_again, s), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "ppppp.");
}

static void defer_two(void *arg)
{
	struct scene *s = arg;
	mark(s, '1');
	assert_int_equal(loop_defer(s->loop, mark_a, s), 0);
	assert_int_equal(loop_defer(s->loop, mark_b, s), 0);
	mark(s, '2');
}

/* Checks that deferred calls run after the events that are already pending, and before later
 * ones. */
static void test_defer_order(void **state)
{
	struct scene *s = *state;
	assert_int_equal(loop_post(s->loop, defer_two, s), 0);
	assert_int_equal(loop_post(s->loop, defer_two, s), 0);
	s->timer = loop_timer_new(s->loop, stop, s);
	assert_int_equal(loop_timer_arm(s->timer, 20), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "1212abab.");
}

static void on_readable_stop(unsigned events, void *arg)
{
	struct scene *s = arg;
	assert_int_equal(events, LOOP_READ);
	stop(s);
}

static void defer_for_ever(void *arg)
{
	struct scene *s = arg;
	s->n++;
	assert_true(s->n < 100000);
	assert_int_equal(loop_defer(s->loop, defer_for_ever, s), 0);
}

/* Checks that a deferral that repeats itself does not keep the loop from its files. */
static void test_defer_does_not_starve(void **state)
{
	struct scene *s = *state;
	s->io = loop_io_new(s->loop, s->fd[0], LOOP_READ, on_readable_stop, s);
	assert_int_equal(write(s->fd[1], "x", 1), 1);
	assert_int_equal(loop_defer(s->loop, defer_for_ever, s), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, ".");
	assert_true(s->n < 10);
}

static void test_stopped_deferrals_stay(void **state)
{
	struct scene *s = *state;
	loop_defer(s->loop, mark_a, s);
	loop_defer(s->loop, stop, s);
	loop_defer(s->loop, mark_b, s);
	loop_defer(s->loop, stop, s);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "a.");
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "a.b.");
}

static void test_stop_before_run(void **state)
{
	struct scene *s = *state;
	loop_post(s->loop, mark_a, s);
	loop_stop(s->loop);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "");
	loop_post(s->loop, stop, s);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "a.");
}

static void test_free_drops_calls(void **state)
{
	struct scene *s = *state;
	loop_post(s->loop, mark_a, s);
	loop_defer(s->loop, mark_b, s);
	assert_null(loop_free(s->loop));
	s->loop = loop_new();
	assert_string_equal(s->trace, "");
	assert_null(loop_free(NULL));
}

#define N_THREADS 4
#define N_POSTS 2000

struct poster {
	struct scene *scene;
	pthread_t thread;
	unsigned sent, received;
};

struct parcel {
	struct poster *from;
	unsigned number;
};

static void receive(void *arg)
{
	struct parcel p = *(struct parcel *)arg;
	free(arg);
	assert_int_equal(p.number, p.from->received);
	p.from->received++;
	if (++p.from->scene->n == N_THREADS * N_POSTS)
		loop_stop(p.from->scene->loop);
}

static void *post_many(void *arg)
{
	struct poster *p = arg;
	for (; p->sent < N_POSTS; p->sent++) {
		struct parcel *parcel = malloc(sizeof *parcel);
		if (!parcel)
			return NULL;
		*parcel = (struct parcel){p, p->sent};
		if (loop_post(p->scene->loop, receive, parcel))
			return NULL;
	}
	return NULL;
}

static void test_posts_of_threads(void **state)
{
	struct poster posters[N_THREADS];
	for (int i = 0; i < N_THREADS; i++) {
		posters[i] = (struct poster){.scene = *state};
		assert_int_equal(pthread_create(&posters[i].thread, NULL, post_many, &posters[i]),
				 0);
	}
	assert_int_equal(loop_run(posters[0].scene->loop), 0);
	for (int i = 0; i < N_THREADS; i++) {
		assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
		assert_int_equal(posters[i].received, N_POSTS);
	}
}

/* ---- files ----------------------------------------------------------------------------------- */

static void read_one(unsigned events, void *arg)
{
	struct scene *s = arg;
	char c;
	assert_int_equal(events, LOOP_READ);
	assert_int_equal(read(s->fd[0], &c, 1), 1);
	mark(s, c);
	if (c == '!')
		loop_stop(s->loop);
}

/* Checks that a callback repeats as long as data is readable. */
static void test_io_level_triggered(void **state)
{
	struct scene *s = *state;
	s->io = loop_io_new(s->loop, s->fd[0], LOOP_READ, read_one, s);
	assert_non_null(s->io);
	assert_int_equal(write(s->fd[1], "xyz!", 4), 4);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "xyz!");
}

static void turn_around(unsigned events, void *arg)
{
	struct scene *s = arg;
	if (events == LOOP_WRITE) {
		mark(s, 'w');
		assert_int_equal(loop_io_set(s->io, LOOP_READ), 0);
		assert_int_equal(write(s->fd[1], "x", 1), 1);
		return;
	}
	assert_int_equal(events, LOOP_READ);
	mark(s, 'r');
	assert_int_equal(loop_io_set(s->io, 0), 0);
	assert_int_equal(loop_timer_arm(s->timer, 10), 0);
}

static void test_io_set(void **state)
{
	struct scene *s = *state;
	s->timer = loop_timer_new(s->loop, stop, s);
	s->io = loop_io_new(s->loop, s->fd[0], 0, turn_around, s);
	assert_non_null(s->io);
	assert_int_equal(loop_io_set(s->io, LOOP_WRITE), 0);
	assert_int_equal(loop_io_set(s->io, LOOP_WRITE), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "wr."); /* the timer follows r directly */
}

static void both_then_free(unsigned events, void *arg)
{
	struct scene *s = arg;
	assert_int_equal(events, LOOP_READ | LOOP_WRITE);
	s->io = loop_io_free(s->io);
	stop(s);
}

static void test_io_freed_in_callback(void **state)
{
	struct scene *s = *state;
	assert_int_equal(write(s->fd[1], "x", 1), 1);
	s->io = loop_io_new(s->loop, s->fd[0], LOOP_READ | LOOP_WRITE, both_then_free, s);
	assert_int_equal(loop_run(s->loop), 0);
	assert_null(s->io);
	assert_string_equal(s->trace, ".");
	assert_null(loop_io_free(NULL));
}

static void test_io_hang_up(void **state)
{
	struct scene *s = *state;
	s->io = loop_io_new(s->loop, s->fd[0], LOOP_READ, on_readable_stop, s);
	assert_int_equal(shutdown(s->fd[1], SHUT_RDWR), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, ".");
}

/* Checks that a regular file is refused. */
static void test_io_refused(void **state)
{
	struct scene *s = *state;
	int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC), old = dup(STDERR_FILENO);
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(file >= 0);
	(void)dup2(quiet, STDERR_FILENO); /* libevent complains */
	struct loop_io *io = loop_io_new(s->loop, file, LOOP_READ, read_one, s);
	struct loop_io *later = loop_io_new(s->loop, file, 0, read_one, s);
	int r = loop_io_set(later, LOOP_READ);
	(void)dup2(old, STDERR_FILENO);
	assert_null(io);
	assert_non_null(later);
	assert_true(r < 0);
	loop_io_free(later);
	(void)close(file);
	(void)close(quiet);
	(void)close(old);
}

/* ---- timers ---------------------------------------------------------------------------------- */

static void stop_and_note_time(void *arg)
{
	struct scene *s = arg;
	s->at_ms = clock_ms();
	assert_false(loop_timer_armed(s->timer));
	stop(s);
}

static void test_timer_is_not_early(void **state)
{
	struct scene *s = *state;
	s->timer = loop_timer_new(s->loop, stop_and_note_time, s);
	assert_false(loop_timer_armed(s->timer));
	for (unsigned delay = 0; delay < 20; delay += 3) {
		uint64_t start = clock_us();
		assert_int_equal(loop_timer_arm(s->timer, delay), 0);
		assert_true(loop_timer_armed(s->timer));
		assert_int_equal(loop_run(s->loop), 0);
		assert_true(clock_us() - start >= delay * 1000u);
	}
}

/* Arms the timer late in a long round of the loop: its time counts from the arming. */
static void arm_after_work(void *arg)
{
	struct scene *s = arg;
	uint64_t until = clock_ms() + 30;
	while (clock_ms() < until)
		;
	s->at_ms = clock_ms();
	assert_int_equal(loop_timer_arm(s->timer, 20), 0);
}

static void check_20_ms_passed(void *arg)
{
	struct scene *s = arg;
	assert_true(clock_ms() + 1 - s->at_ms >= 20);
	stop(s);
}

static void test_timer_counts_from_arming(void **state)
{
	struct scene *s = *state;
	s->timer = loop_timer_new(s->loop, check_20_ms_passed, s);
	loop_post(s->loop, arm_after_work, s);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, ".");
}

static void test_timer_moves_and_disarms(void **state)
{
	struct scene *s = *state;
	struct loop_timer *never = loop_timer_new(s->loop, mark_a, s);
	struct loop_timer *moved = loop_timer_new(s->loop, mark_b, s);
	s->timer = loop_timer_new(s->loop, stop, s);
	assert_int_equal(loop_timer_arm(never, 1), 0);
	assert_int_equal(loop_timer_arm(moved, 100000), 0);
	assert_int_equal(loop_timer_arm(moved, 2), 0);
	assert_int_equal(loop_timer_arm(s->timer, 20), 0);
	loop_timer_disarm(never);
	loop_timer_disarm(never);
	assert_false(loop_timer_armed(never));
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "b.");
	assert_int_equal(loop_timer_arm(never, UINT64_MAX), 0);
	assert_true(loop_timer_armed(never));
	assert_null(loop_timer_free(never));
	assert_null(loop_timer_free(moved));
	assert_null(loop_timer_free(NULL));
}

static long sleeps_of_a_run(struct scene *s)
{
	struct rusage before, after;
	assert_int_equal(loop_timer_arm(s->timer, 300), 0);
	assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
	return after.ru_nvcsw - before.ru_nvcsw;
}

/* Checks that an idle loop sleeps, without a wake-up between its start and its only timer. On a
 * busy machine a page fault is a sleep as well, but not in each of many runs. */
static void test_idle_sleeps(void **state)
{
	struct scene *s = *state;
	long n = 4;
	s->timer = loop_timer_new(s->loop, stop, s);
	for (int i = 0; n > 3 && i < 10; i++)
		n = sleeps_of_a_run(s);
	assert_true(n <= 3);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void on_usr1(int signo, void *arg)
{
	struct scene *s = arg;
	assert_int_equal(signo, SIGUSR1);
	stop(s);
}

static bool is_blocked(int signo)
{
	sigset_t set;
	pthread_sigmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, signo) == 1;
}

static void test_signals(void **state)
{
	struct scene *s = *state;
	struct loop_signal *sig = loop_signal_new(s->loop, SIGUSR1, on_usr1, s);
	assert_non_null(sig);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "..");
	/* A signal that is pending when its handler is freed does not kill the process. */
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	assert_null(loop_signal_free(sig));
	assert_false(is_blocked(SIGUSR1));
	assert_null(loop_signal_free(NULL));
	assert_null(loop_signal_new(s->loop, 4711, on_usr1, s));
}

static void test_signal_mask_is_kept(void **state)
{
	struct scene *s = *state;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	struct loop_signal *sig = loop_signal_new(s->loop, SIGUSR2, on_usr1, s);
	loop_signal_free(sig);
	assert_true(is_blocked(SIGUSR2));
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static int child(struct scene *s)
{
	loop_abandon(s->loop);
	if (is_blocked(SIGUSR1))
		return 2;
	if (loop_post(s->loop, mark_a, s) != -ESHUTDOWN ||
	    loop_defer(s->loop, mark_a, s) != -ESHUTDOWN)
		return 3;
	if (worker_submit(s->worker, NULL, NULL, NULL) != -ESHUTDOWN || worker_free(s->worker))
		return 4;
	(void)close(s->fd[0]);
	/* The child can run a loop that it creates. */
	struct scene mine = {.loop = loop_new()};
	loop_post(mine.loop, stop, &mine);
	if (loop_run(mine.loop) || strcmp(mine.trace, ".") != 0)
		return 5;
	loop_free(mine.loop);
	(void)raise(SIGUSR1); /* the default again: ends the child, and the parent hears nothing */
	return 6;
}

static int succeed(void *arg)
{
	return 0;
}

static void stop_when_done(void *arg, int result)
{
	stop(arg);
}

static void test_fork(void **state)
{
	struct scene *s = *state;
	struct loop_signal *sig = loop_signal_new(s->loop, SIGUSR1, on_usr1, s);
	s->worker = worker_new(s->loop, "test");
	assert_int_equal(worker_submit(s->worker, succeed, stop_when_done, s), 0);
	assert_int_equal(loop_run(s->loop), 0);
	s->io = loop_io_new(s->loop, s->fd[0], LOOP_READ, read_one, s);
	(void)fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(child(s));
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		fail_msg("the child ended with %d", WEXITSTATUS(status));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	/* The parent still receives all events that it waits for. */
	assert_int_equal(write(s->fd[1], "!", 1), 1);
	assert_int_equal(loop_run(s->loop), 0);
	loop_post(s->loop, stop, s);
	assert_int_equal(loop_run(s->loop), 0);
	assert_int_equal(worker_submit(s->worker, succeed, stop_when_done, s), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, ".!..");
	loop_signal_free(sig);
}

/* ---- worker ---------------------------------------------------------------------------------- */

struct job {
	struct scene *scene;
	int number;
	pthread_t ran_on;
};

static int run_job(void *arg)
{
	struct job *job = arg;
	job->ran_on = pthread_self();
	return job->number * 10;
}

static void job_done(void *arg, int result)
{
	struct job *job = arg;
	assert_int_equal(result, job->number * 10);
	assert_false(pthread_equal(job->ran_on, pthread_self()));
	assert_int_equal(job->number, job->scene->n);
	job->scene->n++;
}

static void job_done_stop(void *arg, int result)
{
	struct job *job = arg;
	job_done(arg, result);
	assert_int_equal(worker_pending(job->scene->worker), 0);
	stop(job->scene);
}

static void test_worker_order(void **state)
{
	enum { N = 100 };
	struct scene *s = *state;
	struct job jobs[N];
	s->worker = worker_new(s->loop, "a name longer than the kernel keeps");
	assert_int_equal(worker_pending(s->worker), 0);
	for (int round = 0; round < 3; round++) {
		s->n = 0;
		for (int i = 0; i < N; i++) {
			jobs[i] = (struct job){.scene = s, .number = i};
			assert_int_equal(worker_submit(s->worker, run_job,
						       i < N - 1 ? job_done : job_done_stop,
						       &jobs[i]),
					 0);
		}
		assert_int_equal(worker_pending(s->worker), N);
		assert_int_equal(loop_run(s->loop), 0);
		assert_int_equal(s->n, N);
	}
}

static int run_slowly(void *arg)
{
	(void)usleep(20000);
	return run_job(arg);
}

static void done_submits(void *arg, int result)
{
	struct job *job = arg;
	job_done(arg, result);
	assert_int_equal(worker_submit(job->scene->worker, run_job, job_done, arg), -ESHUTDOWN);
}

/* Checks that queued jobs are run and reported, and afterwards the loop gets no events of the
 * worker. */
static void test_worker_free_drains(void **state)
{
	struct scene *s = *state;
	struct job jobs[4];
	s->worker = worker_new(s->loop, "test");
	for (int i = 0; i < 4; i++) {
		jobs[i] = (struct job){.scene = s, .number = i};
		assert_int_equal(worker_submit(s->worker, i ? run_job : run_slowly,
					       i < 3 ? job_done : done_submits, &jobs[i]),
				 0);
	}
	loop_post(s->loop, mark_a, s);
	worker_free(s->worker);
	s->worker = NULL;
	assert_int_equal(s->n, 4);
	loop_post(s->loop, stop, s);
	assert_int_equal(loop_run(s->loop), 0);
	assert_string_equal(s->trace, "a.");
}

static void test_worker_unused(void **state)
{
	struct scene *s = *state;
	s->worker = worker_new(s->loop, "test");
	s->worker = worker_free(s->worker);
	assert_null(s->worker);
	assert_null(worker_free(NULL));
}

/* ---- a worker that hangs ---- */

static struct {
	struct worker *worker; /* left for good */
	int fd[2];
	atomic_int n_begun, n_ended;
} hanging = {.fd = {-1, -1}};

static int hang(void *arg)
{
	char byte;
	hanging.n_begun++;
	(void)!read(hanging.fd[0], &byte, 1);
	hanging.n_ended++;
	return 0;
}

static void never_done(void *arg, int result)
{
	fail();
}

/* Checks that freeing a hanging worker abandons its job. No job is started or reported
 * afterwards, even when the hanging job ends. */
static void test_worker_hangs(void **state)
{
	struct scene *s = *state;
	assert_int_equal(pipe(hanging.fd), 0);
	hanging.worker = worker_new(s->loop, "test");
	for (int i = 0; i < 2; i++)
		assert_int_equal(worker_submit(hanging.worker, hang, never_done, NULL), 0);
	while (!hanging.n_begun)
		(void)usleep(1000);
	assert_ptr_equal(worker_free_within(hanging.worker, 20), hanging.worker);
	assert_int_equal(worker_submit(hanging.worker, hang, never_done, NULL), -ESHUTDOWN);
	assert_int_equal(write(hanging.fd[1], "ab", 2), 2);
	while (!hanging.n_ended)
		(void)usleep(1000);
	loop_post(s->loop, stop, s);
	assert_int_equal(loop_run(s->loop), 0);
	assert_int_equal(hanging.n_begun, 1);
	(void)close(hanging.fd[0]);
	(void)close(hanging.fd[1]);
}

static void test_worker_within(void **state)
{
	struct scene *s = *state;
	struct job job = {.scene = s};
	s->worker = worker_new(s->loop, "test");
	assert_int_equal(worker_submit(s->worker, run_job, job_done, &job), 0);
	s->worker = worker_free_within(s->worker, 60000);
	assert_null(s->worker);
	assert_int_equal(s->n, 1);
	assert_null(worker_free_within(worker_new(s->loop, "unused"), 0));
	assert_null(worker_free_within(NULL, 0));
}

static void test_worker_without_done(void **state)
{
	struct scene *s = *state;
	struct job job = {.scene = s, .number = 1};
	s->worker = worker_new(s->loop, "test");
	assert_int_equal(worker_submit(s->worker, run_job, NULL, &job), 0);
	assert_int_equal(worker_submit(s->worker, succeed, stop_when_done, s), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_false(pthread_equal(job.ran_on, pthread_self()));
}

static int all_signals_blocked(void *arg)
{
	return is_blocked(SIGTERM) && is_blocked(SIGHUP) && is_blocked(SIGCHLD);
}

static void check_blocked(void *arg, int result)
{
	assert_int_equal(result, 1);
	stop(arg);
}

static void test_worker_takes_no_signals(void **state)
{
	struct scene *s = *state;
	assert_false(is_blocked(SIGTERM));
	s->worker = worker_new(s->loop, "test");
	assert_int_equal(worker_submit(s->worker, all_signals_blocked, check_blocked, s), 0);
	assert_int_equal(loop_run(s->loop), 0);
	assert_false(is_blocked(SIGTERM));
}

static void test_base(void **state)
{
	struct scene *s = *state;
	assert_string_equal(event_base_get_method(loop_base(s->loop)), "epoll");
}

static void test_no_files_left(void **state)
{
	struct scene *s = *state;
	struct rlimit old, none;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	log_set_level(LOG_ERROR);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	struct loop *loop = loop_new();
	struct loop_signal *sig = loop_signal_new(s->loop, SIGUSR1, on_usr1, s);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	log_set_level(LOG_INFO);
	assert_null(loop);
	assert_null(sig);
	assert_false(is_blocked(SIGUSR1));
}

#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE(test_posts_in_order),
		SCENE(test_posts_that_post),
		SCENE(test_defer_order),
		SCENE(test_defer_does_not_starve),
		SCENE(test_stopped_deferrals_stay),
		SCENE(test_stop_before_run),
		SCENE(test_free_drops_calls),
		SCENE(test_posts_of_threads),
		SCENE(test_io_level_triggered),
		SCENE(test_io_set),
		SCENE(test_io_freed_in_callback),
		SCENE(test_io_hang_up),
		SCENE(test_io_refused),
		SCENE(test_timer_is_not_early),
		SCENE(test_timer_counts_from_arming),
		SCENE(test_timer_moves_and_disarms),
		SCENE(test_idle_sleeps),
		SCENE(test_signals),
		SCENE(test_signal_mask_is_kept),
		SCENE(test_fork),
		SCENE(test_worker_order),
		SCENE(test_worker_free_drains),
		SCENE(test_worker_hangs),
		SCENE(test_worker_within),
		SCENE(test_worker_unused),
		SCENE(test_worker_without_done),
		SCENE(test_worker_takes_no_signals),
		SCENE(test_base),
		SCENE(test_no_files_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
