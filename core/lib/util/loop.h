/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop, which hides libevent, and the worker thread. Everything runs on the loop's thread
 * except jobs of worker_submit; only loop_post and worker_submit may be called from other threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct loop_io;
struct loop_timer;
struct loop_signal;
struct event_base;

struct loop *loop_new(void);
struct loop *loop_free(struct loop *loop);
/* Runs the loop until loop_stop. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* Returns the libevent base, for evhttp alone. */
struct event_base *loop_base(struct loop *loop);
/* Detaches the loop in a forked child: closes what it shares with the parent and unblocks the
 * loop's signals. The child's handle is dead; posts and jobs are refused with -ESHUTDOWN, and the
 * child has to end with _exit(). */
void loop_abandon(struct loop *loop);

#define LOOP_READ 1u
#define LOOP_WRITE 2u
struct loop_io *loop_io_new(struct loop *loop, int fd, unsigned events,
			    void (*fn)(unsigned events, void *arg), void *arg);
int loop_io_set(struct loop_io *io, unsigned events); /* 0: no events */
struct loop_io *loop_io_free(struct loop_io *io); /* does not close the fd */

struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *arg), void *arg);
/* Arms the timer to fire once. A second call changes the time. */
int loop_timer_arm(struct loop_timer *t, uint64_t delay_ms);
void loop_timer_disarm(struct loop_timer *t);
bool loop_timer_armed(const struct loop_timer *t);
struct loop_timer *loop_timer_free(struct loop_timer *t);

/* Receives a signal. The signal is blocked in the process while the object exists, and read from a
 * signalfd. Call this before creating threads, once per signal. */
struct loop_signal *loop_signal_new(struct loop *loop, int signo, void (*fn)(int signo, void *arg),
				    void *arg);
struct loop_signal *loop_signal_free(struct loop_signal *s);
/* Receives `n` signals like loop_signal_new() until the loop is freed. -ENOMEM. */
int loop_take_signals(struct loop *loop, const int *signos, unsigned n,
		      void (*fn)(int signo, void *arg), void *arg);

/* Runs fn soon on the loop's thread, in order of posting. [any thread] */
int loop_post(struct loop *loop, void (*fn)(void *arg), void *arg);
/* Runs fn after all pending events have been handled, before the loop sleeps again. [loop
 * thread] */
int loop_defer(struct loop *loop, void (*fn)(void *arg), void *arg);

uint64_t thread_cpu_ns(void); /* CPU time of the calling thread; 0: unknown */

/* A thread that runs jobs in order and posts their done functions to the loop. The thread starts
 * with the first job. */
struct worker;

/* ---- tasks ----------------------------------------------------------------------------------- */

/* A call of fn(arg) by the thread of the loop. The caller provides the memory, so queuing cannot
 * fail. */
struct loop_task {
	struct loop_task *next;
	void (*fn)(void *arg);
	void *arg;
};

/* Queue of tasks, for the loop and for workers. */
struct task_queue {
	struct loop_task *first, **end;
};

static inline void task_queue_init(struct task_queue *q)
{
	q->first = NULL;
	q->end = &q->first;
}

static inline void task_queue_add(struct task_queue *q, struct loop_task *task)
{
	task->next = NULL;
	*q->end = task;
	q->end = &task->next;
}

/* Removes and returns the oldest task; NULL: the queue is empty. */
static inline struct loop_task *task_queue_take(struct task_queue *q)
{
	struct loop_task *task = q->first;
	if (!task)
		return NULL;
	q->first = task->next;
	if (!q->first)
		q->end = &q->first;
	return task;
}

/* Queues a task, which may be reused or freed as soon as its fn has been entered. [any thread] */
void loop_post_task(struct loop *loop, struct loop_task *task);
/* Removes a posted task if it has not run yet. [loop thread] */
void loop_unpost_task(struct loop *loop, struct loop_task *task);
/* Defers a task like loop_defer(), and removes it again. [loop thread] */
void loop_defer_task(struct loop *loop, struct loop_task *task);
void loop_undefer_task(struct loop *loop, struct loop_task *task);
/* Returns true if loop_abandon was called: threads of the parent do not exist then, and its locks
 * may be locked. */
bool loop_is_abandoned(const struct loop *loop);
