/* SPDX-License-Identifier: Apache-2.0 */
/* Calls queued for the loop's thread in memory of the caller, so that queuing cannot fail. */
#ifndef UTIL_TASK_H
#define UTIL_TASK_H

#include "core/lib/util/loop.h"

struct loop_task {
	struct loop_task *next;
	void (*fn)(void *arg);
	void *arg;
};

/* Queues a task, which may be reused or freed as soon as its fn has been entered. [any thread] */
void loop_post_task(struct loop *loop, struct loop_task *task);
/* Removes a posted task if it has not run yet. [loop thread] */
void loop_unpost_task(struct loop *loop, struct loop_task *task);
/* Defers a task like loop_defer, and remove it again. [loop thread] */
void loop_defer_task(struct loop *loop, struct loop_task *task);
void loop_undefer_task(struct loop *loop, struct loop_task *task);
/* Returns true if loop_abandon was called: threads of the parent do not exist then, and its locks
 * may be locked. */
bool loop_is_abandoned(const struct loop *loop);

#endif
