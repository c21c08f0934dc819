/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop (libevent inside, nothing of it outside) and the worker thread beside it.
 * Everything runs on the loop's thread but for what worker_submit takes; loop_post and
 * worker_submit alone may be called from other threads.
 */
#ifndef UTIL_LOOP_H
#define UTIL_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_io;
struct loop_timer;
struct loop_signal;
struct event_base;

struct loop *loop_new(void);
struct loop *loop_free(struct loop *loop);
/* Runs until loop_stop. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* For evhttp alone. */
struct event_base *loop_base(struct loop *loop);
/* After fork(): the child's loop handle is dead, this only lets go of what it shares with the
 * parent and unblocks the loop's signals. Posts and jobs are refused with -ESHUTDOWN from here on;
 * leave with _exit(). */
void loop_abandon(struct loop *loop);

#define LOOP_READ 1u
#define LOOP_WRITE 2u
struct loop_io *loop_io_new(struct loop *loop, int fd, unsigned events,
			    void (*fn)(unsigned events, void *arg), void *arg);
int loop_io_set(struct loop_io *io, unsigned events); /* 0: none for now */
struct loop_io *loop_io_free(struct loop_io *io); /* does not close the fd */

struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *arg), void *arg);
int loop_timer_arm(struct loop_timer *t, uint64_t delay_ms); /* once; again moves it */
void loop_timer_disarm(struct loop_timer *t);
bool loop_timer_armed(const struct loop_timer *t);
struct loop_timer *loop_timer_free(struct loop_timer *t);

/* The signal is blocked in the process as long as this lives, and read from a signalfd: make it
 * before any thread, once a signal. */
struct loop_signal *loop_signal_new(struct loop *loop, int signo, void (*fn)(int signo, void *arg),
				    void *arg);
struct loop_signal *loop_signal_free(struct loop_signal *s);

/* Runs fn soon on the loop's thread, in order of posting. [any thread] */
int loop_post(struct loop *loop, void (*fn)(void *arg), void *arg);
/* Runs fn when all events at hand have been handled, before the loop sleeps again. [loop thread] */
int loop_defer(struct loop *loop, void (*fn)(void *arg), void *arg);

uint64_t thread_cpu_ns(void); /* what the calling thread has had of CPUs; 0: not known */

/* One thread that runs jobs in order; done is posted back to the loop. The thread starts with the
 * first job. */
struct worker;

#endif
