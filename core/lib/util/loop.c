/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libevent is used on the loop's thread alone and without its locks: calls from other threads go
 * through a separate queue and an eventfd. Signals arrive by signalfd, not by handlers, so that a
 * forked child can never write to its parent's pipe.
 */
#include "core/lib/util/loop.h"
#include "core/lib/util/getter.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "loop"

struct loop {
	struct event_base *base;
	int wake_fd; /* an eventfd, readable while posts are queued */
	bool stopped, abandoned;
	sigset_t blocked; /* signals blocked by loop_signal_new */
	struct loop_signal *taken; /* signals of loop_take_signals */
	struct event wake, deferral;
	struct task_queue deferred;
	pthread_mutex_t lock; /* protects `posted` */
	struct task_queue posted;
};

struct loop_io {
	struct event event;
	struct loop *loop;
	int fd;
	unsigned events;
	void (*fn)(unsigned events, void *arg);
	void *arg;
};

struct loop_timer {
	struct event event;
	uint64_t due_us;
	void (*fn)(void *arg);
	void *arg;
};

struct loop_signal {
	struct event event;
	struct loop *loop;
	int fd, signo;
	bool was_blocked;
	struct loop_signal *next; /* next of loop.taken */
	void (*fn)(int signo, void *arg);
	void *arg;
};

/* ---- queued calls ---------------------------------------------------------------------------- */

/* A call that loop_post or loop_defer allocates. */
struct call {
	struct loop_task task;
	void (*fn)(void *arg);
	void *arg;
};

static void queue_remove(struct task_queue *q, const struct loop_task *task)
{
	struct task_queue all = *q;
	struct loop_task *t;
	task_queue_init(q);
	while ((t = task_queue_take(&all)))
		if (t != task)
			task_queue_add(q, t);
}

static void run_call(void *arg)
{
	struct call call = *(struct call *)arg;
	free(arg);
	call.fn(call.arg);
}

static struct loop_task *call_new(void (*fn)(void *arg), void *arg)
{
	struct call *call = malloc(sizeof *call);
	if (!call)
		return NULL;
	*call = (struct call){{NULL, run_call, call}, fn, arg};
	return &call->task;
}

/* Frees calls that will no longer be made. Tasks are freed by their owners. */
static void queue_drop_calls(struct task_queue *q)
{
	struct loop_task *task;
	while ((task = task_queue_take(q)))
		if (task->fn == run_call)
			free(task->arg);
}

static struct loop_task *take_posted(struct loop *loop)
{
	pthread_mutex_lock(&loop->lock);
	struct loop_task *task = task_queue_take(&loop->posted);
	pthread_mutex_unlock(&loop->lock);
	return task;
}

static void wake_up(struct loop *loop)
{
	/* Writing fails only if the counter is full, and the loop is awake then. */
	(void)eventfd_write(loop->wake_fd, 1);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	eventfd_t n_posts = 0;
	/* Each post adds one to the counter. A post may have been removed by loop_unpost_task
	 * since. */
	if (eventfd_read(fd, &n_posts) < 0)
		return;
	for (; n_posts && !loop->stopped; n_posts--) {
		struct loop_task *task = take_posted(loop);
		if (!task)
			return;
		task->fn(task->arg);
	}
	if (n_posts)
		(void)eventfd_write(fd, n_posts);
}

void loop_post_task(struct loop *loop, struct loop_task *task)
{
	pthread_mutex_lock(&loop->lock);
	task_queue_add(&loop->posted, task);
	pthread_mutex_unlock(&loop->lock);
	wake_up(loop);
}

void loop_unpost_task(struct loop *loop, struct loop_task *task)
{
	pthread_mutex_lock(&loop->lock);
	queue_remove(&loop->posted, task);
	pthread_mutex_unlock(&loop->lock);
}

int loop_post(struct loop *loop, void (*fn)(void *arg), void *arg)
{
	if (loop->abandoned)
		return -ESHUTDOWN;
	struct loop_task *task = call_new(fn, arg);
	if (!task)
		return -ENOMEM;
	loop_post_task(loop, task);
	return 0;
}

static void activate_deferral(struct loop *loop)
{
	event_active(&loop->deferral, EV_READ, 0);
}

static void on_deferral(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	struct task_queue *q = &loop->deferred;
	struct loop_task *task, **last = q->end;
	bool more = true;
	while (more && !loop->stopped && (task = task_queue_take(q))) {
		more = &task->next != last;
		task->fn(task->arg);
	}
	if (!q->first)
		return;
	/* Calls that these calls have deferred run after the next check of the sockets. */
	activate_deferral(loop);
	event_base_loopcontinue(loop->base);
}

void loop_defer_task(struct loop *loop, struct loop_task *task)
{
	assert(!loop->abandoned);
	task_queue_add(&loop->deferred, task);
	activate_deferral(loop);
}

void loop_undefer_task(struct loop *loop, struct loop_task *task)
{
	queue_remove(&loop->deferred, task);
}

int loop_defer(struct loop *loop, void (*fn)(void *arg), void *arg)
{
	if (loop->abandoned)
		return -ESHUTDOWN;
	struct loop_task *task = call_new(fn, arg);
	if (!task)
		return -ENOMEM;
	loop_defer_task(loop, task);
	return 0;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void log_event_message(int severity, const char *text)
{
	log_write(LOG_SOURCE,
		  severity == EVENT_LOG_ERR    ? LOG_ERROR
		  : severity == EVENT_LOG_WARN ? LOG_WARNING
					       : LOG_DEBUG,
		  "%s", text);
}

static struct event_base *base_new(void)
{
	struct event_config *config = event_config_new();
	if (!config)
		return NULL;
	/* PRECISE_TIMER is not set: it costs a system call (timerfd_settime) every turn. The coarse
	 * clock can be a tick early, and on_timer waits for it. */
	event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME);
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	struct event_base *base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

struct loop *loop_new(void)
{
	struct loop *loop = calloc(1, sizeof *loop);
	if (!loop)
		return NULL;
	event_set_log_callback(log_event_message);
	task_queue_init(&loop->posted);
	task_queue_init(&loop->deferred);
	sigemptyset(&loop->blocked);
	pthread_mutex_init(&loop->lock, NULL);
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->wake_fd < 0)
		return loop_free(loop); /* libevent would end the program for lack of descriptors */
	loop->base = base_new();
	if (!loop->base)
		return loop_free(loop);
	event_assign(&loop->deferral, loop->base, -1, 0, on_deferral, loop);
	event_assign(&loop->wake, loop->base, loop->wake_fd, EV_READ | EV_PERSIST, on_wake, loop);
	if (event_add(&loop->wake, NULL) < 0)
		return loop_free(loop);
	return loop;
}

struct loop *loop_free(struct loop *loop)
{
	if (!loop)
		return NULL;
	queue_drop_calls(&loop->posted);
	queue_drop_calls(&loop->deferred);
	while (loop->taken) {
		struct loop_signal *s = loop->taken;
		loop->taken = s->next;
		loop_signal_free(s);
	}
	if (loop->base)
		event_base_free(loop->base);
	if (loop->wake_fd >= 0)
		(void)close(loop->wake_fd);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
	return NULL;
}

int loop_run(struct loop *loop)
{
	int r = loop->stopped ? 0 : event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
	loop->stopped = false;
	return r < 0 ? -EIO : 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
	event_base_loopbreak(loop->base);
}

DEFINE_GETTER_OF(loop_base, struct event_base *, struct loop *loop, loop->base)
DEFINE_GETTER_OF(loop_is_abandoned, bool, const struct loop *loop, loop->abandoned)

/*
 * Ends the parts of the loop that affect the child's behaviour or can reach the parent.
 * Libevent's structures are not freed: freeing an event would remove it from the epoll set, which
 * the parent shares.
 */
void loop_abandon(struct loop *loop)
{
	assert(!loop->abandoned);
	loop->abandoned = true;
	(void)close(take_fd(&loop->wake_fd));
	(void)pthread_sigmask(SIG_UNBLOCK, &loop->blocked, NULL);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void on_io(evutil_socket_t fd, short what, void *arg)
{
	struct loop_io *io = arg;
	io->fn((what & EV_READ ? LOOP_READ : 0) | (what & EV_WRITE ? LOOP_WRITE : 0), io->arg);
}

int loop_io_set(struct loop_io *io, unsigned events)
{
	if (events == io->events)
		return 0;
	if (io->events)
		event_del(&io->event);
	io->events = 0;
	if (!events)
		return 0;
	short what = EV_PERSIST;
	if (events & LOOP_READ)
		what |= EV_READ;
	if (events & LOOP_WRITE)
		what |= EV_WRITE;
	event_assign(&io->event, io->loop->base, io->fd, what, on_io, io);
	errno = 0;
	if (event_add(&io->event, NULL) < 0)
		return errno ? -errno : -EINVAL;
	io->events = events;
	return 0;
}

struct loop_io *loop_io_new(struct loop *loop, int fd, unsigned events,
			    void (*fn)(unsigned events, void *arg), void *arg)
{
	struct loop_io *io = calloc(1, sizeof *io);
	if (!io)
		return NULL;
	io->loop = loop;
	io->fd = fd;
	io->fn = fn;
	io->arg = arg;
	if (loop_io_set(io, events) < 0)
		return loop_io_free(io);
	return io;
}

struct loop_io *loop_io_free(struct loop_io *io)
{
	if (io)
		(void)loop_io_set(io, 0);
	free(io);
	return NULL;
}

/* ---- timers ---------------------------------------------------------------------------------- */

#define TIMER_MAX_MS (UINT64_MAX / 4000) /* practically infinite */

static int add_timer(struct loop_timer *t, uint64_t delay_us)
{
	struct timeval tv = {.tv_sec = (time_t)(delay_us / 1000000),
			     .tv_usec = (suseconds_t)(delay_us % 1000000)};
	return event_add(&t->event, &tv) < 0 ? -ENOMEM : 0;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct loop_timer *t = arg;
	uint64_t now_us = clock_us();
	if (now_us < t->due_us && add_timer(t, t->due_us - now_us) == 0)
		return;
	t->fn(t->arg);
}

struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *arg), void *arg)
{
	struct loop_timer *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->fn = fn;
	t->arg = arg;
	event_assign(&t->event, loop->base, -1, 0, on_timer, t);
	return t;
}

int loop_timer_arm(struct loop_timer *t, uint64_t delay_ms)
{
	uint64_t delay_us = (delay_ms < TIMER_MAX_MS ? delay_ms : TIMER_MAX_MS) * 1000;
	t->due_us = clock_us() + delay_us;
	return add_timer(t, delay_us);
}

void loop_timer_disarm(struct loop_timer *t)
{
	event_del(&t->event);
}

bool loop_timer_armed(const struct loop_timer *t)
{
	return event_pending(&t->event, EV_TIMEOUT, NULL) != 0;
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
	if (t)
		loop_timer_disarm(t);
	free(t);
	return NULL;
}

/* ---- signals --------------------------------------------------------------------------------- */

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct loop_signal *s = arg;
	struct signalfd_siginfo info;
	if (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
		s->fn(s->signo, s->arg);
}

struct loop_signal *loop_signal_new(struct loop *loop, int signo, void (*fn)(int signo, void *arg),
				    void *arg)
{
	sigset_t set, old;
	sigemptyset(&set);
	if (sigaddset(&set, signo) < 0)
		return NULL;
	struct loop_signal *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	*s = (struct loop_signal){.loop = loop, .signo = signo, .fn = fn, .arg = arg};
	(void)pthread_sigmask(SIG_BLOCK, &set, &old);
	s->was_blocked = sigismember(&old, signo) == 1;
	if (!s->was_blocked)
		sigaddset(&loop->blocked, signo);
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	event_assign(&s->event, loop->base, s->fd, EV_READ | EV_PERSIST, on_signal, s);
	if (s->fd < 0 || event_add(&s->event, NULL) < 0)
		return loop_signal_free(s);
	return s;
}

struct loop_signal *loop_signal_free(struct loop_signal *s)
{
	if (!s)
		return NULL;
	if (s->fd >= 0) {
		struct signalfd_siginfo info;
		event_del(&s->event);
		/* Read pending signals, so that they do not trigger the default action. */
		while (read(s->fd, &info, sizeof info) > 0)
			;
		(void)close(s->fd);
	}
	if (!s->was_blocked) {
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, s->signo);
		sigdelset(&s->loop->blocked, s->signo);
		(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	}
	free(s);
	return NULL;
}

int loop_take_signals(struct loop *loop, const int *signos, unsigned n,
		      void (*fn)(int signo, void *arg), void *arg)
{
	for (unsigned i = 0; i < n; i++) {
		struct loop_signal *s = loop_signal_new(loop, signos[i], fn, arg);
		if (!s)
			return -ENOMEM;
		s->next = loop->taken;
		loop->taken = s;
	}
	return 0;
}

uint64_t thread_cpu_ns(void)
{
	struct timespec t;
	return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) < 0
		       ? 0
		       : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
