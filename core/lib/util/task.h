/* SPDX-License-Identifier: Apache-2.0 */
/* Calls queued for the loop's thread, in the caller's memory, so that it cannot fail. */
#ifndef UTIL_TASK_H
#define UTIL_TASK_H

#include "core/lib/util/loop.h"

struct loop_task {
	struct loop_task *next;
	void (*fn)(void *arg);
	void *arg;
};

/* The task may be reused or freed as soon as its fn has been entered. [any thread] */
void loop_post_task(struct loop *loop, struct loop_task *task);
/* Takes it back if it has not run yet. [loop thread] */
void loop_unpost_task(struct loop *loop, struct loop_task *task);
/* As loop_defer, and taken back. [loop thread] */
void loop_defer_task(struct loop *loop, struct loop_task *task);
void loop_undefer_task(struct loop *loop, struct loop_task *task);
/* Has loop_abandon been called? Threads and locks of the parent are not there then. */
bool loop_is_abandoned(const struct loop *loop);

#endif
