/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs pass through two queues of the worker: submitted → run by the thread → finished → done
 * called on the loop's thread. The loop has at most one task of a worker, which handles all
 * finished jobs.
 */
#include "core/lib/util/loop.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/lib/util/crash.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"

struct job {
	struct loop_task task; /* place in a queue; its function is not used */
	int (*run)(void *arg);
	void (*done)(void *arg, int result);
	void *arg;
	int result;
};

struct worker {
	struct loop *loop;
	char name[16]; /* limit of the kernel for the name of a thread */
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t wanted;
	struct task_queue submitted, finished;
	bool started, stopping;
	bool left; /* worker_free_within() gave up: results are no longer reported */
	bool told; /* the task `tell` is queued at the loop */
	struct loop_task tell;
	atomic_uint n_pending;
	char crash_stack[CRASH_STACK];
};

static void run_jobs(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct job *job = (struct job *)task_queue_take(&w->submitted);
		if (!job) {
			if (w->stopping)
				break;
			pthread_cond_wait(&w->wanted, &w->lock);
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		job->result = job->run(job->arg);
		pthread_mutex_lock(&w->lock);
		if (w->left) {
			free(job);
			break;
		}
		task_queue_add(&w->finished, &job->task);
		if (!w->told) {
			w->told = true;
			loop_post_task(w->loop, &w->tell);
		}
	}
	pthread_mutex_unlock(&w->lock);
}

static void *worker_work(void *arg)
{
	struct worker *w = arg;
	const stack_t own = {.ss_sp = w->crash_stack, .ss_size = sizeof w->crash_stack};
	stack_t before;
	(void)sigaltstack(&own, &before);
	run_jobs(w);
	(void)sigaltstack(&before, NULL);
	return NULL;
}

static void finish_job(struct worker *w, struct job *job)
{
	assert(atomic_load(&w->n_pending));
	atomic_fetch_sub(&w->n_pending, 1);
	if (job->done)
		job->done(job->arg, job->result);
	free(job);
}

static void on_told(void *arg)
{
	struct worker *w = arg;
	pthread_mutex_lock(&w->lock);
	struct loop_task *task = w->finished.first;
	task_queue_init(&w->finished);
	w->told = false;
	pthread_mutex_unlock(&w->lock);
	while (task) {
		struct loop_task *next = task->next;
		finish_job(w, (struct job *)task);
		task = next;
	}
}

struct worker *worker_new(struct loop *loop, const char *name)
{
	struct worker *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	w->loop = loop;
	(void)snprintf(w->name, sizeof w->name, "%s", name);
	task_queue_init(&w->submitted);
	task_queue_init(&w->finished);
	w->tell = (struct loop_task){NULL, on_told, w};
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wanted, NULL);
	return w;
}

/* Starts the thread. Signals are handled by the loop, so the thread blocks all of them except those
 * of a crash, whose handlers would not be called otherwise. */
static int start_thread(struct worker *w)
{
	assert(!w->started && !w->stopping);
	static const int crashes[] = CRASH_SIGNALS;
	sigset_t all, old;
	sigfillset(&all);
	for (unsigned i = 0; i < sizeof crashes / sizeof *crashes; i++)
		sigdelset(&all, crashes[i]);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int r = pthread_create(&w->thread, NULL, worker_work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return -r;
	(void)pthread_setname_np(w->thread, w->name);
	w->started = true;
	return 0;
}

int worker_submit(struct worker *w, int (*run)(void *arg), void (*done)(void *arg, int result),
		  void *arg)
{
	if (loop_is_abandoned(w->loop))
		return -ESHUTDOWN;
	struct job *job = malloc(sizeof *job);
	if (!job)
		return -ENOMEM;
	*job = (struct job){.run = run, .done = done, .arg = arg};
	pthread_mutex_lock(&w->lock);
	int r = w->stopping ? -ESHUTDOWN : w->started ? 0 : start_thread(w);
	if (!r) {
		task_queue_add(&w->submitted, &job->task);
		atomic_fetch_add(&w->n_pending, 1);
		pthread_cond_signal(&w->wanted);
	}
	pthread_mutex_unlock(&w->lock);
	if (r)
		free(job);
	return r;
}

unsigned worker_pending(const struct worker *w)
{
	return atomic_load(&w->n_pending);
}

static void tell_to_stop(struct worker *w)
{
	assert(!w->stopping);
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_signal(&w->wanted);
	pthread_mutex_unlock(&w->lock);
}

static struct worker *worker_bury(struct worker *w)
{
	loop_unpost_task(w->loop, &w->tell);
	on_told(w);
	pthread_cond_destroy(&w->wanted);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return NULL;
}

struct worker *worker_free(struct worker *w)
{
	/* In a forked child the thread does not exist, and its locks may be locked forever. */
	if (!w || loop_is_abandoned(w->loop))
		return NULL;
	tell_to_stop(w);
	if (w->started)
		(void)pthread_join(w->thread, NULL);
	return worker_bury(w);
}

struct worker *worker_free_within(struct worker *w, uint64_t limit_ms)
{
	if (!w || loop_is_abandoned(w->loop))
		return NULL;
	uint64_t end_ms = clock_ms() + limit_ms;
	const struct timespec end = {.tv_sec = (time_t)(end_ms / 1000),
				     .tv_nsec = (long)(end_ms % 1000) * 1000000};
	tell_to_stop(w);
	if (!w->started || pthread_clockjoin_np(w->thread, NULL, CLOCK_MONOTONIC, &end) == 0)
		return worker_bury(w);
	pthread_mutex_lock(&w->lock);
	w->left = true;
	pthread_mutex_unlock(&w->lock);
	(void)pthread_detach(w->thread);
	loop_unpost_task(w->loop, &w->tell);
	on_told(w);
	return w;
}
