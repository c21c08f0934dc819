/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a function in a child that sends one frame (trial_frame.h) and ends. The parent collects the
 * bytes of the pipe and learns from a pidfd that the child has ended. All output is written by
 * then, so that the verdict is made on the collected bytes.
 */
#include "core/nri-rpd/host/trial.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/host/trial_frame.h"
#include "core/nri-rpd/host/watchdog.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/loop.h"
#include "core/lib/util/clock.h"

#define TRIAL_READ (64u << 10)
#define TRIAL_READS_AT_ONCE 16u /* reads before other events get their turn */
#define TRIAL_TICK_MS 100u /* interval of checks of the child's time */
/* limit of wall-clock time, as a multiple of the limit of used time */
#define TRIAL_WAIT_FACTOR 12u

struct trial {
	struct trial_spec spec;
	pid_t pid; /* process of the child; 0: already reaped */
	int pid_fd, pipe_fd;
	struct crumb_live *live; /* records of running calls, in memory shared with the child */
	/* log messages of the child, in memory shared with it; NULL: the child writes its messages
	 * at once */
	struct log_held *held;
	struct frame_in frame;
	uint64_t started_us;
	/* State at the last tick: time counted towards the limit, time passed, the clock, the
	 * child's CPU time. */
	uint64_t used_ms, waited_ms, tick_ms, tick_cpu_ms;
	/* the child was killed: for its output, by its time limit, or because the trial was
	 * cancelled */
	bool stopped;
	bool timed_out;
	int wait_code, wait_status; /* si_code and si_status of waitid() */
	/* set by trial_start */
	struct loop_io *pipe_io, *pid_io;
	struct loop_timer *timer;
	void (*done)(void *arg, const struct trial_result *res);
	void *done_arg;
};

/* ---- in the child ---------------------------------------------------------------------------- */

static void default_signals(void)
{
	sigset_t none;
	for (int s = 1; s <= SIGRTMAX; s++)
		(void)signal(s,
			     s == SIGPIPE ? SIG_IGN : SIG_DFL); /* fails for SIGKILL and SIGSTOP */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_fds(unsigned first, unsigned last)
{
	struct rlimit lim;
	if (first > last || close_range(first, last, 0) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && last >= lim.rlim_cur)
		last = (unsigned)lim.rlim_cur;
	for (unsigned fd = first; fd <= last; fd++)
		(void)close((int)fd);
}

static int cmp_fd(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes all other descriptors. stdin and stdout go to /dev/null, so that neither a careless module
 * nor the next open() gets their numbers. */
static void keep_fds(const struct trial_spec *spec, int pipe_fd)
{
	int keep[TRIAL_KEEP_FDS_MAX + 2], n = 0;
	unsigned next = STDERR_FILENO + 1;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
	}
	keep[n++] = pipe_fd;
	for (unsigned i = 0; i < spec->n_keep_fds; i++)
		keep[n++] = spec->keep_fds[i];
	qsort(keep, (size_t)n, sizeof keep[0], cmp_fd);
	for (int i = 0; i < n; i++) {
		if (keep[i] < (int)next)
			continue;
		close_fds(next, (unsigned)keep[i] - 1);
		next = (unsigned)keep[i] + 1;
	}
	close_fds(next, ~0u);
}

static void trial_limit(int which, uint64_t soft, uint64_t hard)
{
	struct rlimit old, lim = {soft, hard};
	if (getrlimit((__rlimit_resource_t)which, &old) == 0 && old.rlim_max < hard)
		lim.rlim_max = old.rlim_max;
	if (lim.rlim_cur > lim.rlim_max)
		lim.rlim_cur = lim.rlim_max;
	(void)setrlimit((__rlimit_resource_t)which, &lim);
}

#ifdef SANITIZED
/* Sets no limit in instrumented builds: a sanitizer's shadow takes terabytes of address space. */
static void limit_memory(uint64_t more)
{
}
#else
static void limit_memory(uint64_t more)
{
	unsigned long pages = 0;
	_fclose_ FILE *f = fopen("/proc/self/statm", "re");
	if (!f || fscanf(f, "%lu", &pages) != 1)
		return;
	uint64_t now = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	trial_limit(RLIMIT_AS, now + more, now + more);
}
#endif

static void apply_limits(const struct trial_limits *l)
{
	trial_limit(RLIMIT_CORE, 0, 0);
	trial_limit(RLIMIT_CPU, l->cpu_s, (uint64_t)l->cpu_s + 1);
	limit_memory(l->memory_max);
	(void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + l->nice);
}

_Noreturn static void be_child(struct trial *t, int pipe_fd, pid_t parent)
{
	const struct trial_spec *spec = &t->spec;
	struct err err = ERR_INIT;
	struct buf out = BUF_INIT;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	log_hold(t->held, spec->log == TRIAL_LOG_DRY);
	if (spec->loop)
		loop_abandon(spec->loop);
	watchdog_child(spec->watchdog);
	default_signals();
	int r = crumb_child(spec->crumb, t->live);
	keep_fds(spec, pipe_fd);
	apply_limits(&spec->limits);
	r = r < 0 ? r : spec->fn(spec->arg, &out, &err);
	if (r >= 0 && out.failed)
		r = out.failed;
	_exit(-frame_send(pipe_fd, r, &err, &out, spec->limits.output_max));
}

/* ---- start and end of the child -------------------------------------------------------------- */

static void stop_child(struct trial *t)
{
	t->stopped = true;
	if (t->pid)
		(void)kill(t->pid, SIGKILL);
}

void trial_cancel(struct trial *t)
{
	if (!t)
		return;
	t->pipe_io = loop_io_free(t->pipe_io);
	t->pid_io = loop_io_free(t->pid_io);
	t->timer = loop_timer_free(t->timer);
	if (t->pid) {
		stop_child(t);
		while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (t->pid_fd >= 0)
		(void)close(t->pid_fd);
	if (t->pipe_fd >= 0)
		(void)close(t->pipe_fd);
	if (t->live)
		(void)munmap(t->live, sizeof *t->live);
	(void)log_held_free(t->held);
	buf_fini(&t->frame.in);
	free(t);
}

/* Forks with all signals blocked, so that the parent's handlers do not run in the child before its
 * signals have their default actions. */
static pid_t fork_quietly(struct trial *t, const int fds[2])
{
	sigset_t all, old;
	pid_t parent = getpid();
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	pid_t pid = fork();
	if (pid == 0)
		be_child(t, fds[1], parent);
	int r = pid < 0 ? -errno : pid;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

static int trial_spawn(struct trial *t, struct err *err)
{
	int fds[2];
	void *page = mmap(NULL, sizeof *t->live, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	if (page == MAP_FAILED)
		return err_errno(err, -errno, "cannot start a trial: no shared memory");
	t->live = page;
	t->held = t->spec.log != TRIAL_LOG_LIVE ? log_held_new() : NULL;
	if (t->spec.log != TRIAL_LOG_LIVE && !t->held)
		return err_errno(err, -ENOMEM, "cannot start a trial: no shared memory");
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_errno(err, -errno, "cannot start a trial: no pipe");
	t->pipe_fd = fds[0];
	t->started_us = clock_us();
	t->tick_ms = clock_ms();
	pid_t pid = fork_quietly(t, fds);
	(void)close(fds[1]);
	if (pid < 0)
		return err_errno(err, pid, "cannot start a trial: no process");
	t->pid = pid;
	t->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (t->pid_fd < 0 && (errno != ENOSYS || t->spec.loop))
		return err_errno(err, -errno, "cannot watch a trial (pidfd_open, Linux 5.3)");
	if (fcntl(t->pipe_fd, F_SETFL, O_NONBLOCK) < 0)
		return err_errno(err, -errno, "cannot start a trial: its pipe");
	return 0;
}

static int trial_make(const struct trial_spec *spec, struct trial **ret, struct err *err)
{
	if (spec->n_keep_fds > TRIAL_KEEP_FDS_MAX)
		return err_set(err, -EINVAL,
			       "cannot start a trial: %u descriptors to keep, at most %u",
			       spec->n_keep_fds, TRIAL_KEEP_FDS_MAX);
	struct trial *t = calloc(1, sizeof *t);
	if (!t)
		return err_errno(err, -ENOMEM, "cannot start a trial");
	t->spec = *spec;
	t->frame.data_max = spec->limits.output_max;
	t->pid_fd = t->pipe_fd = -1;
	int r = trial_spawn(t, err);
	if (r < 0) {
		trial_cancel(t);
		return r;
	}
	*ret = t;
	return 0;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Returns the CPU time of the child; 0 if unknown. */
static uint64_t trial_cpu_ms(const struct trial *t)
{
	clockid_t clock;
	struct timespec ts;
	if (clock_getcpuclockid(t->pid, &clock) || clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Returns true if the child waits for a CPU or a disk, so that the machine delays it. */
static bool trial_is_held_up(const struct trial *t)
{
	char path[64], text[256];
	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)t->pid);
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *state = strrchr(text, ')');
	return state && (state[1] == ' ') && (state[2] == 'R' || state[2] == 'D');
}

/*
 * Counts the time since the last tick towards the limit: the child's CPU time, and time in which it
 * sleeps or is stopped while this process runs. Time in which the machine is suspended or gives the
 * child no CPU does not count. Kills the child and returns true if its time is used up.
 */
static bool trial_tick(struct trial *t)
{
	const uint64_t limit_ms = t->spec.limits.time_ms;
	uint64_t now_ms = clock_ms(), passed_ms = now_ms - t->tick_ms;
	uint64_t cpu_ms = trial_cpu_ms(t), counted_ms = cpu_ms - t->tick_cpu_ms;
	if (cpu_ms < t->tick_cpu_ms)
		counted_ms = 0;
	if (passed_ms > 2 * TRIAL_TICK_MS) /* the machine or this process was suspended */
		passed_ms = TRIAL_TICK_MS;
	t->tick_ms = now_ms;
	t->tick_cpu_ms = cpu_ms;
	t->waited_ms += passed_ms;
	if (counted_ms < passed_ms && !trial_is_held_up(t))
		counted_ms = passed_ms;
	t->used_ms += counted_ms;
	if (t->used_ms < limit_ms && t->waited_ms < limit_ms * TRIAL_WAIT_FACTOR)
		return false;
	t->timed_out = true;
	stop_child(t);
	return true;
}

/* ---- collecting ------------------------------------------------------------------------------ */

/* Reads once from the pipe. 1: more may be available, 0: no data now, -1: end of data. */
static int trial_collect(struct trial *t)
{
	uint8_t *p = frame_room(&t->frame, TRIAL_READ);
	ssize_t n = p ? read(t->pipe_fd, p, TRIAL_READ) : 0;
	if (n < 0)
		return errno == EINTR ? 1 : errno == EAGAIN ? 0 : -1;
	if (p && n == 0)
		return -1;
	if (frame_add(&t->frame, (size_t)n) >= FRAME_TOO_LONG)
		stop_child(t);
	return t->stopped ? -1 : 1;
}

static void trial_reap(struct trial *t)
{
	siginfo_t info = {0};
	while (waitid(P_PID, (id_t)t->pid, &info, WEXITED) < 0 && errno == EINTR)
		;
	t->pid = 0;
	t->wait_code = info.si_code;
	t->wait_status = info.si_status;
	while (!t->stopped && trial_collect(t) > 0)
		;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

/* Place of death for a sentence: `module "x"` or a word for the process, and ` in allocate of "o"`.
 * It is read from the shared page, which the child may have overwritten. */
struct place {
	char who[RP_NAME_MAX + 16], where[CRUMB_OBJECT_MAX + 64];
};

static void find_place(const struct trial *t, struct trial_result *res, struct place *p)
{
	const struct crumb_slot *s = crumb_running(t->live);
	(void)snprintf(p->who, sizeof p->who, "the process");
	(void)snprintf(p->where, sizeof p->where, " outside of any module");
	if (!s)
		return;
	char module[RP_NAME_MAX];
	memcpy(module, s->module, sizeof module);
	module[sizeof module - 1] = '\0';
	if (!note_name_valid(module))
		return;
	size_t n = strnlen(s->object, CRUMB_OBJECT_MAX - 1);
	memcpy(res->module, module, sizeof module);
	res->call = crumb_slot_call(s);
	(void)snprintf(p->who, sizeof p->who, "module \"%s\"", module);
	(void)snprintf(p->where, sizeof p->where, n ? " in %s of \"%.*s\"" : " in %s%.*s",
		       crumb_call_name(res->call), (int)n, s->object);
}

static int end_of(struct trial_result *res, enum trial_outcome outcome, int code, int status)
{
	res->outcome = outcome;
	res->status = status;
	res->code = code;
	return code;
}

static void judge_signal(const struct trial *t, struct trial_result *res, const struct place *p)
{
	const char *what = t->spec.what;
	int signo = t->wait_status;
	(void)end_of(res, TRIAL_CRASHED, -ECHILD, signo);
	if (signo == SIGXCPU)
		(void)err_set(&res->err, -ECHILD, "%s used more than %u s of CPU time%s while %s",
			      p->who, t->spec.limits.cpu_s, p->where, what);
	else if (signo == SIGKILL)
		(void)err_set(&res->err, -ECHILD, "%s was killed%s while %s (out of memory?)",
			      p->who, p->where, what);
	else
		(void)err_set(&res->err, -ECHILD, "%s crashed (SIG%s)%s while %s", p->who,
			      sigabbrev_np(signo) ? sigabbrev_np(signo) : "?", p->where, what);
}

/* Fills the result of a child that has sent a whole frame and exited with 0. */
static void judge_answer(const struct frame_answer *a, struct trial_result *res)
{
	(void)end_of(res, a->code < 0 ? TRIAL_REFUSED : TRIAL_DONE, a->code, 0);
	if (a->code < 0)
		(void)err_set(&res->err, a->code, "%.*s", (int)a->text_size, a->text);
	res->data = a->data;
	res->size = a->size;
}

/* Fills res with the outcome of the child. */
static void judge_end(struct trial *t, struct trial_result *res)
{
	struct place p;
	struct frame_answer answer;
	const char *what = t->spec.what;
	memset(res, 0, sizeof *res);
	res->took_us = clock_us() - t->started_us;
	bool answered = frame_get(&t->frame, &answer);
	if (!t->stopped && answered && t->wait_code == CLD_EXITED && t->wait_status == 0) {
		judge_answer(&answer, res);
		return;
	}
	find_place(t, res, &p);
	if (t->frame.state == FRAME_TOO_LONG)
		(void)err_set(&res->err, end_of(res, TRIAL_TOO_LONG, -E2BIG, 0),
			      "the result is longer than %zu bytes, after %s",
			      t->spec.limits.output_max, what);
	else if (t->frame.state == FRAME_GARBLED)
		(void)err_set(&res->err, end_of(res, TRIAL_GARBLED, -EBADMSG, 0),
			      "%s overwrote the result%s while %s", p.who, p.where, what);
	else if (t->timed_out)
		(void)err_set(&res->err, end_of(res, TRIAL_TIMED_OUT, -ETIMEDOUT, 0),
			      "%s did not end within %u ms%s while %s", p.who,
			      t->spec.limits.time_ms, p.where, what);
	else if (t->wait_code == CLD_EXITED && *res->module)
		(void)err_set(&res->err, end_of(res, TRIAL_EXITED, -ECHILD, t->wait_status),
			      "%s ended the process (exit status %d)%s while %s", p.who,
			      t->wait_status, p.where, what);
	else if (t->wait_code == CLD_EXITED)
		(void)err_set(
			&res->err, end_of(res, TRIAL_EXITED, -ECHILD, t->wait_status),
			"the process ended without a result (exit status %d, as for: %s) while %s",
			t->wait_status, strerror(t->wait_status), what);
	else
		judge_signal(t, res, &p);
}

void trial_tell_held(const struct trial_result *res)
{
	if (res->held)
		log_tell_held(res->held);
}

static void trial_judge(struct trial *t, struct trial_result *res)
{
	judge_end(t, res);
	if (t->spec.log == TRIAL_LOG_HELD && res->outcome != TRIAL_DONE)
		log_tell_held(t->held);
	else
		res->held = t->held;
}

/* ---- on the loop ----------------------------------------------------------------------------- */

static void on_pipe(unsigned events, void *arg)
{
	struct trial *t = arg;
	int more = 1;
	for (unsigned i = 0; more > 0 && i < TRIAL_READS_AT_ONCE; i++)
		more = trial_collect(t);
	if (more < 0)
		t->pipe_io = loop_io_free(t->pipe_io);
}

static void on_end(unsigned events, void *arg)
{
	struct trial *t = arg;
	struct trial_result res;
	trial_reap(t);
	trial_judge(t, &res);
	t->done(t->done_arg, &res);
	trial_cancel(t);
}

static void on_tick(void *arg)
{
	struct trial *t = arg;
	if (!trial_tick(t))
		(void)loop_timer_arm(t->timer, TRIAL_TICK_MS);
}

int trial_start(const struct trial_spec *spec,
		void (*done)(void *arg, const struct trial_result *res), void *done_arg,
		struct trial **ret, struct err *err)
{
	struct trial *t = NULL;
	int r = trial_make(spec, &t, err);
	if (r < 0)
		return r;
	t->done = done;
	t->done_arg = done_arg;
	t->pipe_io = loop_io_new(spec->loop, t->pipe_fd, LOOP_READ, on_pipe, t);
	t->pid_io = loop_io_new(spec->loop, t->pid_fd, LOOP_READ, on_end, t);
	t->timer = loop_timer_new(spec->loop, on_tick, t);
	if (!t->pipe_io || !t->pid_io || !t->timer || loop_timer_arm(t->timer, TRIAL_TICK_MS) < 0) {
		trial_cancel(t);
		return err_errno(err, -ENOMEM, "cannot watch a trial");
	}
	if (ret)
		*ret = t;
	return 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void wait_for(struct trial *t)
{
	struct pollfd fds[2] = {{.fd = t->pid_fd, .events = POLLIN},
				{.fd = t->pipe_fd, .events = POLLIN}};
	for (;;) {
		int r = poll(fds, 2, t->stopped ? -1 : (int)TRIAL_TICK_MS);
		if (r > 0 && fds[0].revents)
			return;
		if (!t->stopped)
			(void)trial_tick(t);
		if (r <= 0)
			continue;
		if (fds[1].revents && trial_collect(t) < 0) {
			if (t->pid_fd < 0) /* valgrind does not support pidfd */
				return;
			fds[1].fd = -1;
		}
	}
}

int trial_run(const struct trial_spec *spec, struct trial_result *ret, struct err *err)
{
	struct trial *t = NULL;
	int r = trial_make(spec, &t, err);
	if (r < 0)
		return r;
	wait_for(t);
	trial_reap(t);
	trial_judge(t, ret);
	ret->memory = t->frame.in.data;
	t->frame.in = (struct buf)BUF_INIT;
	if (ret->held)
		t->held = NULL;
	trial_cancel(t);
	return 0;
}

void trial_result_fini(struct trial_result *res)
{
	free(res->memory);
	res->held = log_held_free(res->held);
	res->memory = NULL;
	res->data = NULL;
	res->size = 0;
}
