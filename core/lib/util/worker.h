/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: a thread for jobs that may block, and its end. worker.c implements it. */
#pragma once

#include "core/lib/util/loop.h"

struct worker *worker_new(struct loop *loop, const char *name);
int worker_submit(struct worker *w, int (*run)(void *arg), void (*done)(void *arg, int result),
		  void *arg);
unsigned worker_pending(const struct worker *w);

/* Waits for the submitted jobs, runs their done functions and ends the thread. */
struct worker *worker_free(struct worker *w);

/* Works like worker_free() with a time limit. Returns w if a job hangs: that job and those behind
 * it are abandoned, no further job is started and no done function is called. Their memory has to
 * stay valid until the process ends, which should be soon. */
struct worker *worker_free_within(struct worker *w, uint64_t limit_ms);
