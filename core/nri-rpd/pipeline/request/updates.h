/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates of containers: collects those of a reply, and queues unsolicited ones until the front end
 * sends them in batches. Begins with updates_add() and updates_settle(), ends with updates_acked()
 * or updates_failed().
 */
#pragma once

#include "core/nri-rpd/pipeline/request/decide.h"
#include "core/nri-rpd/pipeline/request/request.h"

int updates_init(struct pipeline *p);
void updates_fini(struct pipeline *p);
void updates_add(struct pipeline *p, struct ctr *ctr);

/* Queues updates of the containers that the transaction has changed. The queue may be deferred if
 * no container loses CPUs and the policy allows it. */
void updates_settle(struct pipeline *p);

/* Collects updates of the containers that the decision touched, except `skip`, for a reply. Queues
 * updates for which memory is short. */
void updates_of_touched(struct pipeline *p, const struct ctr *skip);

/* Records the outcome of the updates in the last reply: sent (updates_told), or lost and queued
 * again (updates_untold). */
void updates_told(struct pipeline *p);
void updates_untold(struct pipeline *p);

/* Returns the next batch; NULL if the queue is empty or deferred, or a batch is outstanding. The
 * front end sends the batch and calls updates_acked() or updates_failed(). */
const struct update *updates_next(struct pipeline *p, uint32_t *ret_n);

/* Ends the deferral of the queue: the updates are sent now. */
void updates_hurry(struct pipeline *p);
/* Records that the runtime has applied the outstanding batch. */
void updates_acked(struct pipeline *p);

/* Returns the outstanding batch to the queue. The runtime does not report which container failed,
 * so batches are halved until it is found, and that container is retried with increasing delays.
 * `connection_lost`: no container is blamed. */
void updates_failed(struct pipeline *p, bool connection_lost, const char *reason);
unsigned updates_waiting(const struct pipeline *p);
bool updates_outstanding(const struct pipeline *p);

struct reply;

/* Moves the reply's updates from number n_sent on to the queue of unsolicited updates. */
void reply_defer_updates(struct pipeline *p, struct reply *reply, uint32_t n_sent);
