/* SPDX-License-Identifier: Apache-2.0 */
/* Trials: everything that can become of a child, and what it can and cannot do to its parent. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/host/trial.h"
#include "core/nri-rpd/host/watchdog.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/loop.h"
#include "test/unit/coverage_exit.h"
#include "core/lib/util/clock.h"

static const char mod[RP_NAME_MAX] = "x";
static char dir[64], path[96];
static struct crumb *crumb;

static int setup(void **state)
{
	strcpy(dir, "/tmp/t_trial-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof path, "%s/breadcrumb", dir);
	return crumb_open(path, &crumb, NULL);
}

/* Checks that the trial left neither a crumb nor a child. */
static int teardown(void **state)
{
	int children = waitpid(-1, NULL, WNOHANG);
	int no_death = !crumb_running(crumb_live(crumb));
	crumb = crumb_close(crumb);
	(void)unlink(path);
	return rmdir(dir) == 0 && children < 0 && no_death ? 0 : -1;
}

static struct trial_spec spec_of(trial_fn fn, void *arg)
{
	struct trial_spec s = {.what = "the configuration was tried",
			       .fn = fn,
			       .arg = arg,
			       .limits = TRIAL_LIMITS_DEFAULT,
			       .crumb = crumb};
	return s;
}

static struct trial_result run(const struct trial_spec *spec)
{
	struct trial_result res;
	struct err err = ERR_INIT;
	int r = trial_run(spec, &res, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	return res;
}

static void expect(const struct trial_spec *spec, enum trial_outcome outcome, int code,
		   const char *text)
{
	struct trial_result res = run(spec);
	if (res.outcome != outcome || res.code != code || strcmp(res.err.text, text) != 0)
		fail_msg("outcome %d, code %d, \"%s\"; expected %d, %d, \"%s\"", res.outcome,
			 res.code, res.err.text, outcome, code, text);
	trial_result_fini(&res);
	assert_null(res.data);
}

/* ---- answers --------------------------------------------------------------------------------- */

static int answer(void *arg, struct buf *out, struct err *err)
{
	(void)buf_printf(out, "hello %s", (const char *)arg);
	return 7;
}

static void test_answer(void **state)
{
	char who[] = "world";
	struct trial_spec s = spec_of(answer, who);
	struct trial_result res = run(&s);
	assert_int_equal(res.outcome, TRIAL_DONE);
	assert_int_equal(res.code, 7);
	assert_int_equal(res.size, 11);
	assert_memory_equal(res.data, "hello world", 11);
	assert_string_equal(res.err.text, "");
	assert_string_equal(res.module, "");
	assert_true(res.took_us > 0);
	trial_result_fini(&res);
}

static int refuse(void *arg, struct buf *out, struct err *err)
{
	(void)buf_add_str(out, "so far");
	if (arg)
		return err_set(err, -ENOSPC, "no room for %s", (const char *)arg);
	return -EINVAL;
}

static void test_refusal(void **state)
{
	char what[] = "pod";
	struct trial_spec s = spec_of(refuse, what);
	struct trial_result res = run(&s);
	assert_int_equal(res.outcome, TRIAL_REFUSED);
	assert_int_equal(res.code, -ENOSPC);
	assert_int_equal(res.err.code, -ENOSPC);
	assert_string_equal(res.err.text, "no room for pod");
	assert_int_equal(res.size, 6);
	trial_result_fini(&res);
	s.arg = NULL;
	expect(&s, TRIAL_REFUSED, -EINVAL, "Invalid argument");
}

static int out_of_memory(void *arg, struct buf *out, struct err *err)
{
	out->failed = -ENOMEM;
	return 0;
}

static int fill(void *arg, struct buf *out, struct err *err)
{
	size_t n = *(size_t *)arg;
	uint8_t *p = buf_reserve(out, n);
	for (size_t i = 0; p && i < n; i++)
		p[i] = (uint8_t)(i * 7);
	buf_commit(out, p ? n : 0);
	return p ? 0 : -ENOMEM;
}

static void test_sizes(void **state)
{
	size_t n = 8u << 20;
	struct trial_spec s = spec_of(fill, &n);
	struct trial_result res = run(&s);
	assert_int_equal(res.outcome, TRIAL_DONE);
	assert_int_equal(res.size, n);
	for (size_t i = 0; i < n; i += 4099)
		assert_int_equal(res.data[i], (uint8_t)(i * 7));
	trial_result_fini(&res);
	s.limits.output_max = 1000;
	n = 1000;
	res = run(&s);
	assert_int_equal(res.outcome, TRIAL_DONE);
	trial_result_fini(&res);
	n = 1001;
	expect(&s, TRIAL_TOO_LONG, -E2BIG,
	       "the result is longer than 1000 bytes, after the configuration was tried");
	s = spec_of(out_of_memory, NULL);
	expect(&s, TRIAL_REFUSED, -ENOMEM, "Cannot allocate memory");
}

/* ---- ends ------------------------------------------------------------------------------------ */

static int end_by_signal(void *arg, struct buf *out, struct err *err)
{
	crumb_enter(crumb, CRUMB_LOOP, mod, CRUMB_ALLOCATE, "c1");
	(void)raise(*(int *)arg);
	return 0;
}

static int end_outside(void *arg, struct buf *out, struct err *err)
{
	crumb_enter(crumb, CRUMB_LOOP, mod, CRUMB_ALLOCATE, "c1");
	crumb_leave(crumb, CRUMB_LOOP);
	(void)raise(SIGFPE);
	return 0;
}

static int end_bare(void *arg, struct buf *out, struct err *err)
{
	(void)raise(*(int *)arg);
	return 0;
}

static void test_crash(void **state)
{
	int signo = SIGSEGV;
	struct trial_spec s = spec_of(end_by_signal, &signo);
	expect(&s, TRIAL_CRASHED, -ECHILD,
	       "module \"x\" crashed (SIGSEGV) in allocate of \"c1\" while the configuration was "
	       "tried");
	signo = SIGABRT;
	struct trial_result res = run(&s);
	assert_int_equal(res.status, SIGABRT);
	assert_string_equal(res.module, "x");
	assert_int_equal(res.call, CRUMB_ALLOCATE);
	trial_result_fini(&res);
	signo = SIGKILL;
	expect(&s, TRIAL_CRASHED, -ECHILD,
	       "module \"x\" was killed in allocate of \"c1\" while the configuration was tried "
	       "(out of memory?)");
	signo = SIGRTMIN + 1;
	expect(&s, TRIAL_CRASHED, -ECHILD,
	       "module \"x\" crashed (SIG?) in allocate of \"c1\" while the configuration was "
	       "tried");
	s.fn = end_outside;
	expect(&s, TRIAL_CRASHED, -ECHILD,
	       "the process crashed (SIGFPE) outside of any module while the configuration was "
	       "tried");
	s.crumb = NULL;
	s.fn = end_bare;
	signo = SIGILL;
	expect(&s, TRIAL_CRASHED, -ECHILD,
	       "the process crashed (SIGILL) outside of any module while the configuration was "
	       "tried");
}

static int wild_store(void *arg, struct buf *out, struct err *err)
{
	crumb_enter(crumb, CRUMB_LOOP, mod, CRUMB_SYNC, NULL);
	memset(arg, 1, 1);
	return 0;
}

static void test_wild_store(void **state)
{
	void *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct trial_spec s = spec_of(wild_store, hole);
	expect(&s, TRIAL_CRASHED, -ECHILD,
	       "module \"x\" crashed (SIGSEGV) in sync while the configuration was tried");
	assert_int_equal(munmap(hole, 4096), 0);
}

static int end_by_exit(void *arg, struct buf *out, struct err *err)
{
	crumb_enter(crumb, CRUMB_LOOP, mod, CRUMB_CREATE, NULL);
	_exit(*(int *)arg);
}

static void test_exit(void **state)
{
	int status = 3;
	struct trial_spec s = spec_of(end_by_exit, &status);
	expect(&s, TRIAL_EXITED, -ECHILD,
	       "module \"x\" ended the process (exit status 3) in create while the configuration "
	       "was tried");
	status = 0;
	expect(&s, TRIAL_EXITED, -ECHILD,
	       "module \"x\" ended the process (exit status 0) in create while the configuration "
	       "was tried");
}

static int hang(void *arg, struct buf *out, struct err *err)
{
	crumb_enter(crumb, CRUMB_LOOP, mod, CRUMB_PREPARE, NULL);
	for (;;)
		(void)pause();
	return 0;
}

static void test_timeout(void **state)
{
	struct trial_spec s = spec_of(hang, NULL);
	s.limits.time_ms = 1000;
	expect(&s, TRIAL_TIMED_OUT, -ETIMEDOUT,
	       "module \"x\" did not end within 1000 ms in prepare while the "
	       "configuration was tried");
}

/* ---- limits ---------------------------------------------------------------------------------- */

static int burn(void *arg, struct buf *out, struct err *err)
{
	volatile int for_ever = 1;
	crumb_enter(crumb, CRUMB_LOOP, mod, CRUMB_SYNC, NULL);
	while (for_ever)
		;
	return 0;
}

static void test_cpu_limit(void **state)
{
	struct trial_spec s = spec_of(burn, NULL);
	s.limits.cpu_s = 1;
	s.limits.time_ms = 60000;
	expect(&s, TRIAL_CRASHED, -ECHILD,
	       "module \"x\" used more than 1 s of CPU time in sync while the configuration was "
	       "tried");
}

static int look_at_limits(void *arg, struct buf *out, struct err *err)
{
	struct rlimit core, as;
	if (getrlimit(RLIMIT_CORE, &core) < 0 || getrlimit(RLIMIT_AS, &as) < 0)
		return -errno;
	int priority = getpriority(PRIO_PROCESS, 0);
	void *volatile p =
		malloc((size_t)256 << 20); /* volatile: a pair of malloc and free may be left out */
	(void)buf_printf(out, "core %llu, nice %d, 256 MiB %s", (unsigned long long)core.rlim_cur,
			 priority, p ? "given" : "refused");
	free(p);
	return 0;
}

static void test_limits(void **state)
{
	struct trial_spec s = spec_of(look_at_limits, NULL);
	s.limits.memory_max = (uint64_t)64 << 20;
	s.limits.nice = 4;
	struct trial_result res = run(&s);
	char text[100];
#ifdef SANITIZED
	const char *given = "given";
#else
	const char *given = "refused";
#endif
	(void)snprintf(text, sizeof text, "core 0, nice %d, 256 MiB %s",
		       getpriority(PRIO_PROCESS, 0) + 4, given);
	assert_int_equal(res.outcome, TRIAL_DONE);
	assert_int_equal(res.size, strlen(text));
	assert_memory_equal(res.data, text, res.size);
	trial_result_fini(&res);
	/* The limits of the child do not exceed the limits of the parent. */
	struct rlimit old, low;
	assert_int_equal(getrlimit(RLIMIT_CPU, &old), 0);
	pid_t pid = fork();
	if (pid == 0) {
		low = (struct rlimit){20, 30};
		(void)setrlimit(RLIMIT_CPU, &low);
		s.limits.cpu_s = 1000;
		int r = trial_run(&s, &res, NULL);
		trial_result_fini(&res);
		crumb_live(crumb)->cause = 0;
		_exit(r == 0 && res.outcome == TRIAL_DONE ? 0 : 1);
	}
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- the child's environment ----------------------------------------------------------------- */

static void on_signal(int signo)
{
}

static int look_around(void *arg, struct buf *out, struct err *err)
{
	struct sigaction action;
	sigset_t mask;
	struct stat st;
	int keep = *(int *)arg;
	for (int fd = 0; fd < 200; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			(void)buf_printf(out, "%s",
					 fd == 0      ? "in "
					 : fd == 1    ? "out "
					 : fd == 2    ? "err "
					 : fd == keep ? "kept "
						      : "other ");
	(void)sigaction(SIGTERM, NULL, &action);
	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	(void)buf_printf(out, "%s %s ", action.sa_handler == SIG_DFL ? "default" : "handled",
			 sigismember(&mask, SIGUSR1) ? "blocked" : "open");
	(void)buf_printf(out, "%s",
			 fstat(STDOUT_FILENO, &st) == 0 && S_ISCHR(st.st_mode) ? "null"
									       : "not null");
	return 0;
}

static void test_surroundings(void **state)
{
	sigset_t set, old;
	struct trial_spec s = spec_of(look_around, NULL);
	_close_ int first = open("/dev/null", O_RDONLY), kept = open("/dev/null", O_RDONLY),
		    after = open("/dev/null", O_RDONLY);
	assert_true(first >= 0 && after >= 0);
	s.arg = &kept;
	s.keep_fds[0] = kept;
	s.keep_fds[1] = kept; /* twice does no harm, nor do these */
	s.keep_fds[2] = -1;
	s.keep_fds[3] = 2;
	s.n_keep_fds = 4;
	(void)signal(SIGTERM, on_signal);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	struct trial_result res = run(&s);
	sigset_t now;
	(void)sigprocmask(SIG_SETMASK, &old, &now);
	(void)signal(SIGTERM, SIG_DFL);
	assert_true(sigismember(&now, SIGUSR1) &&
		    !sigismember(&now, SIGUSR2)); /* the parent's are as before */
	/* "other" is the result pipe. */
	assert_int_equal(res.outcome, TRIAL_DONE);
	const char *expected = "in out err kept other default open null";
	if (res.size != strlen(expected) || memcmp(res.data, expected, res.size) != 0)
		fail_msg("%.*s", (int)res.size, (const char *)res.data);
	trial_result_fini(&res);
	s.n_keep_fds = TRIAL_KEEP_FDS_MAX + 1;
	struct err err = ERR_INIT;
	assert_int_equal(trial_run(&s, &res, &err), -EINVAL);
	assert_non_null(strstr(err.text, "17 descriptors to keep"));
}

/* Reads the crumb's records in the child. Crumbs that the child makes are ignored. */
static int use_crumb(void *arg, struct buf *out, struct err *err)
{
	crumb_seen(crumb, "x", &(struct build_id){1, {1}});
	return crumb_quarantined(crumb, "x") ? -EBUSY : end_outside(NULL, NULL, NULL);
}

static void test_crumb_detached(void **state)
{
	int signo = SIGSEGV;
	struct trial_spec s = spec_of(end_by_signal, &signo);
	for (unsigned i = 0; i < CRUMB_DEATHS + 1; i++) {
		struct trial_result res = run(&s);
		assert_int_equal(res.outcome, TRIAL_CRASHED);
		trial_result_fini(&res);
	}
	s.fn = use_crumb;
	struct trial_result res = run(&s);
	assert_int_equal(res.outcome, TRIAL_CRASHED);
	trial_result_fini(&res);
	pid_t pid = fork(); /* stands for the death of the daemon: the file remains unchanged */
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_null(crumb_running(crumb_live(crumb)));
	crumb = crumb_close(crumb);
	assert_int_equal(crumb_open(path, &crumb, NULL), 0);
	assert_null(crumb_last(crumb));
	assert_null(crumb_history(crumb, 0));
	assert_false(crumb_quarantined(crumb, "x"));
}

static int outlast_watchdog(void *arg, struct buf *out, struct err *err)
{
	crumb_enter(crumb, CRUMB_LOOP, mod, CRUMB_SYNC, NULL);
	watchdog_begin(arg);
	for (uint64_t end = clock_ms() + 200; clock_ms() < end;)
		(void)usleep(1000);
	watchdog_end(arg);
	crumb_leave(crumb, CRUMB_LOOP);
	return 0;
}

static void test_watchdog_detached(void **state)
{
	struct watchdog *w = NULL;
	assert_int_equal(watchdog_new(crumb, 40, &w, NULL), 0);
	struct trial_spec s = spec_of(outlast_watchdog, w);
	s.watchdog = w;
	expect(&s, TRIAL_DONE, 0, "");
	assert_null(watchdog_free(w));
}

/* ---- children that lie ----------------------------------------------------------------------- */

static int find_pipe(void)
{
	for (int fd = 3; fd < 200; fd++) {
		struct stat st;
		if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
			return fd;
	}
	return -1;
}

struct lie {
	uint32_t magic;
	int32_t code;
	uint32_t text_size, pad;
	uint64_t data_size;
	char rest[40];
};

static int tell_lie(void *arg, struct buf *out, struct err *err)
{
	ssize_t n = write(find_pipe(), arg, sizeof(struct lie));
	for (int i = 0; i < 200; i++) /* until killed, or for good */
		(void)usleep(1000);
	_exit(n > 0 ? 0 : 1);
}

static void test_lies(void **state)
{
	static const uint32_t magic = 0x7472696cu;
	struct lie lie = {.magic = 1};
	struct trial_spec s = spec_of(tell_lie, &lie);
	const char *garbled = "the process overwrote the result outside of any module while the "
			      "configuration was tried";
	expect(&s, TRIAL_GARBLED, -EBADMSG, garbled);
	lie = (struct lie){.magic = magic, .text_size = ERR_TEXT_MAX};
	expect(&s, TRIAL_GARBLED, -EBADMSG, garbled);
	lie = (struct lie){.magic = magic, .data_size = 39}; /* a byte more than announced */
	expect(&s, TRIAL_GARBLED, -EBADMSG, garbled);
	lie = (struct lie){.magic = magic, .data_size = UINT64_MAX - 8};
	expect(&s, TRIAL_TOO_LONG, -E2BIG,
	       "the result is longer than 16777216 bytes, after the configuration was tried");
	lie = (struct lie){.magic = magic, .data_size = 41}; /* less than announced */
	expect(&s, TRIAL_EXITED, -ECHILD,
	       "the process ended without a result (exit status 0, as for: Success) while the "
	       "configuration was tried");
}

static int flood(void *arg, struct buf *out, struct err *err)
{
	char junk[4096] = {0};
	for (;;)
		(void)!write(find_pipe(), junk, sizeof junk);
	return 0;
}

/* Writes over the page that its parent reads. */
static int scribble(void *arg, struct buf *out, struct err *err)
{
	crumb_enter(crumb, CRUMB_LOOP, mod, CRUMB_SYNC, NULL);
	memset(crumb_live(crumb), 0x2e, sizeof(struct crumb_live));
	(void)raise(SIGSEGV);
	return 0;
}

static void test_vandals(void **state)
{
	struct trial_spec s = spec_of(flood, NULL);
	struct trial_result res = run(&s);
	assert_int_equal(res.outcome, TRIAL_GARBLED);
	trial_result_fini(&res);
	s.fn = scribble;
	expect(&s, TRIAL_CRASHED, -ECHILD,
	       "the process crashed (SIGSEGV) outside of any module while the configuration was "
	       "tried");
}

/* ---- warnings -------------------------------------------------------------------------------- */

static int warn(void *arg, struct buf *out, struct err *err)
{
	const int *result = arg;
	log_write("test", LOG_WARNING, "this is odd");
	return *result ? err_set(err, *result, "no") : 0;
}

/* Runs a trial and returns the lines logged at its end and the lines logged when its answer
 * proves useless. */
static void run_and_tell(int result, char at_its_end[512], char later[512])
{
	struct trial_spec s = spec_of(warn, &result);
	struct trial_result res;
	int pipe_fds[2], saved = dup(STDERR_FILENO);
	s.log = TRIAL_LOG_HELD;
	log_init("test");
	assert_int_equal(pipe2(pipe_fds, O_NONBLOCK), 0);
	assert_true(dup2(pipe_fds[1], STDERR_FILENO) >= 0);
	int r = trial_run(&s, &res, NULL);
	ssize_t n = read(pipe_fds[0], at_its_end, 511);
	at_its_end[n > 0 ? n : 0] = '\0';
	trial_tell_held(&res);
	n = read(pipe_fds[0], later, 511);
	later[n > 0 ? n : 0] = '\0';
	(void)dup2(saved, STDERR_FILENO);
	(void)close(saved);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
	trial_result_fini(&res);
	assert_int_equal(r, 0);
}

static void test_held_warnings(void **state)
{
	char at_its_end[512], later[512];
	run_and_tell(0, at_its_end, later);
	assert_string_equal(at_its_end, "");
	assert_non_null(strstr(later, "this is odd"));
	run_and_tell(-EINVAL, at_its_end, later);
	assert_non_null(strstr(at_its_end, "this is odd"));
	assert_string_equal(later, "");
}

/* ---- on the loop ----------------------------------------------------------------------------- */

static struct loop *loop;
static unsigned n_done;
static struct trial_result last;
static size_t last_size;

static void done(void *arg, const struct trial_result *res)
{
	unsigned *wanted = arg;
	last = *res;
	last_size = res->size;
	if (++n_done == *wanted)
		loop_stop(loop);
}

static void loop_setup(void)
{
	loop = loop_new();
	assert_non_null(loop);
	n_done = 0;
}

static int slow_answer(void *arg, struct buf *out, struct err *err)
{
	(void)usleep(20000);
	return fill(arg, out, err);
}

static void test_loop(void **state)
{
	size_t n = 4u << 20;
	unsigned wanted = 3;
	struct err err = ERR_INIT;
	loop_setup();
	struct trial_spec s = spec_of(slow_answer, &n);
	s.loop = loop;
	for (unsigned i = 0; i < wanted; i++)
		assert_int_equal(trial_start(&s, done, &wanted, NULL, &err), 0);
	assert_int_equal(n_done, 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(n_done, 3);
	assert_int_equal(last.outcome, TRIAL_DONE);
	assert_int_equal(last_size, n);
	loop = loop_free(loop);
}

static void test_loop_bad_ends(void **state)
{
	int signo = SIGBUS;
	unsigned wanted = 1;
	struct err err = ERR_INIT;
	loop_setup();
	struct trial_spec s = spec_of(end_by_signal, &signo);
	s.loop = loop;
	assert_int_equal(trial_start(&s, done, &wanted, NULL, &err), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(last.outcome, TRIAL_CRASHED);
	assert_string_equal(last.err.text, "module \"x\" crashed (SIGBUS) in allocate of \"c1\" "
					   "while the configuration was tried");
	s.fn = hang;
	s.limits.time_ms = 30;
	wanted = 2;
	assert_int_equal(trial_start(&s, done, &wanted, NULL, &err), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(last.outcome, TRIAL_TIMED_OUT);
	s.fn = flood;
	s.limits.time_ms = 5000;
	wanted = 3;
	assert_int_equal(trial_start(&s, done, &wanted, NULL, &err), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(last.outcome, TRIAL_GARBLED);
	loop = loop_free(loop);
}

static void stop_loop(void *arg)
{
	loop_stop(loop);
}

static void test_cancel(void **state)
{
	unsigned wanted = 1;
	struct trial *t = NULL;
	struct err err = ERR_INIT;
	loop_setup();
	struct trial_spec s = spec_of(hang, NULL);
	s.loop = loop;
	assert_int_equal(trial_start(&s, done, &wanted, &t, &err), 0);
	trial_cancel(t);
	trial_cancel(NULL);
	struct loop_timer *timer = loop_timer_new(loop, stop_loop, NULL);
	assert_int_equal(loop_timer_arm(timer, 20), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(n_done, 0);
	(void)loop_timer_free(timer);
	loop = loop_free(loop);
}

/* Checks that the death of the daemon ends its trial. */
static void test_parent_dies(void **state)
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		loop_setup();
		struct trial_spec s = spec_of(hang, NULL);
		s.loop = loop;
		s.crumb = NULL; /* the crumb belongs to the parent of this process */
		s.limits.time_ms = 60000;
		s.keep_fds[0] = fds[1];
		s.n_keep_fds = 1;
		int r = trial_start(&s, done, NULL, NULL, NULL);
		_exit(r < 0);
	}
	int status = -1;
	char c;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1),
			 0); /* until the last holder of the other end is gone */
	(void)close(fds[0]);
	crumb_leave(crumb, CRUMB_LOOP);
}

static void test_no_descriptors(void **state)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit none = {3, 3};
		struct trial_spec s = spec_of(hang, NULL);
		struct trial_result res;
		struct err err = ERR_INIT;
		(void)setrlimit(RLIMIT_NOFILE, &none);
		int r = trial_run(&s, &res, &err);
		_exit(r == -EMFILE && strstr(err.text, "cannot start a trial: no pipe") ? 0 : 1);
	}
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- a machine that stands still ---- */

static int rest_for_a_while(void *arg, struct buf *out, struct err *err)
{
	for (int i = 0; i < 100; i++)
		(void)usleep(2000);
	return 0;
}

/* Runs a trial of 0.2 s with a limit of 0.6 s and exits with its outcome. */
_Noreturn static void try_for_a_while(void)
{
	struct err err = ERR_INIT;
	struct trial_result res;
	struct trial_spec s = {.what = "time was measured",
			       .fn = rest_for_a_while,
			       .limits = TRIAL_LIMITS_DEFAULT};
	s.limits.time_ms = 600;
	(void)setpgid(0, 0);
	_exit(trial_run(&s, &res, &err) ? 100 : (int)res.outcome);
}

/* Checks that time during which the trial and its parent are stopped does not count, as when a
 * virtual machine is paused. */
static void test_stall(void **state)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0)
		try_for_a_while();
	(void)usleep(60000);
	assert_int_equal(kill(-pid, SIGSTOP), 0);
	(void)usleep(1500000);
	assert_int_equal(kill(-pid, SIGCONT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), TRIAL_DONE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_answer),	   TEST(test_refusal),	      TEST(test_sizes),
		TEST(test_crash),	   TEST(test_wild_store),     TEST(test_exit),
		TEST(test_timeout),	   TEST(test_cpu_limit),      TEST(test_limits),
		TEST(test_surroundings),   TEST(test_crumb_detached), TEST(test_watchdog_detached),
		TEST(test_lies),	   TEST(test_vandals),	      TEST(test_loop),
		TEST(test_loop_bad_ends),  TEST(test_cancel),	      TEST(test_parent_dies),
		TEST(test_no_descriptors), TEST(test_held_warnings),  TEST(test_stall),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
