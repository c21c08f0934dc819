/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_UTIL_WORKER_H
#define LIB_UTIL_WORKER_H

#include "core/lib/util/loop.h"

struct worker *worker_new(struct loop *loop, const char *name);
int worker_submit(struct worker *w, int (*run)(void *arg), void (*done)(void *arg, int result),
		  void *arg);
unsigned worker_pending(const struct worker *w);

/* Waits for the jobs that are there, runs their done functions, ends the thread. */
struct worker *worker_free(struct worker *w);

/* The same, but not for longer than that: returns w when a job hangs. It and the jobs behind it are
 * left as they are, none of the latter is begun any more, no done function is called for them; what
 * they work on has to live until the process ends, which ought to be soon. */
struct worker *worker_free_within(struct worker *w, uint64_t limit_ms);

#endif
