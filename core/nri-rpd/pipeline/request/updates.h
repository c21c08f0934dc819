/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_REQUEST_UPDATES_H
#define PIPELINE_REQUEST_UPDATES_H

#include "core/nri-rpd/pipeline/request/decide.h"
#include "core/nri-rpd/pipeline/request/request.h"

int updates_init(struct pipeline *p);
void updates_fini(struct pipeline *p);
void updates_add(struct pipeline *p, struct ctr *ctr);

/* Adds what the transaction has changed, which may wait when it only gives and the policy has said
 * so. */
void updates_settle(struct pipeline *p);

/* What the containers are to be told that the decision has touched, but for `skip`: for a reply.
 * What there is no memory for is queued. */
void updates_of_touched(struct pipeline *p, const struct ctr *skip);

/* The runtime has answered the updates of the last reply, or could not. */
void updates_told(struct pipeline *p);
void updates_untold(struct pipeline *p);

/* The next batch, one at a time: NULL when nothing waits or one is outstanding. The front end sends
 * it and answers with one of the two below. */
const struct update *updates_next(struct pipeline *p, uint32_t *ret_n);

/* Nothing waits that could be sent. */
void updates_hurry(struct pipeline *p);
void updates_acked(struct pipeline *p);

/* Somebody in the batch failed, the runtime does not say who: they are sent again one by one, later
 * and later. `retry_now`: the connection ended, nothing is known. */
void updates_failed(struct pipeline *p, bool connection_lost, const char *reason);
unsigned updates_waiting(const struct pipeline *p);
bool updates_outstanding(const struct pipeline *p);

struct reply;

/* Leaves the reply's updates from number n_sent on to the queue of unsolicited updates. */
void reply_defer_updates(struct pipeline *p, struct reply *reply, uint32_t n_sent);

#endif
