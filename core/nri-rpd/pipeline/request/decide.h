/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a decision: one transaction through the policy, the controllers and the invariants to the
 * commit. Afterwards reports the result: updates in a reply or in the queue, hooks, events.
 */
#pragma once

#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/pipeline/request/request.h"

/* Updates in the order in which they are sent: containers that lose CPUs first, then by age. */
struct update_list {
	struct update *items;
	uint32_t n, cap;
};

struct updates {
	rp_ctr *waiting; /* containers in the order of the queue; ctr->in_updates marks them */
	uint32_t n, cap;
	struct update_list batch; /* updates that have been sent and await the runtime's answer */
	struct update_list reply; /* updates of the reply to the running request */
	bool outstanding;
	bool announced; /* the queue was announced since the last call of updates_next() */
	/* batch size limit; smaller after a failure, to find the container that failed */
	uint32_t batch_max;
	struct loop_timer *retry; /* fires when the first container in back-off is due */
	/* fires when a queue of deferrable updates (rp_host_cache.may_wait) has to be sent */
	struct loop_timer *hold;
	uint64_t held_until_ms; /* latest time to send a deferred queue; 0: not deferred */
};

/* ---- decide.c -------------------------------------------------------------------------------- */

/*
 * Runs fn in a transaction, checks what fn staged, and commits. On an error cache and policy are
 * restored to the previous state.
 *
 * After a success the caller reports the result once: a request with decide_reply() and then
 * reply_sent(), other callers with decide_settle(). Until then decide_touched() returns the touched
 * containers.
 */
int decide(struct pipeline *p, int (*fn)(struct pipeline *p, void *arg, struct err *err), void *arg,
	   struct err *err);
/* Fills the reply with updates of the touched containers, except `skip`, which is created or
 * stopped. */
void decide_reply(struct pipeline *p, struct reply *reply, const struct ctr *skip);
/* Records events about containers whose CPUs changed because of `cause`, after the reply was sent.
 * Such changes are frequent: a few events are recorded, then a count. */
void decide_tell_others(struct pipeline *p, const struct ctr *cause);
/* Queues updates of the touched containers instead of sending them in a reply, and closes the
 * decision. */
void decide_settle(struct pipeline *p);
/* Closes the decision after the reply: runs hooks and writes data files of the touched containers,
 * except the created one. Does nothing without an open decision. */
void decide_close(struct pipeline *p, const struct ctr *created);
/* Runs a decision of the policy itself (timer, changed topology). Queues the updates and records
 * events about moved containers. */
int decide_event(struct pipeline *p, int (*fn)(struct pipeline *p, void *arg, struct err *err),
		 void *arg, struct err *err);
/* Begins a decision of a caller that stages and checks itself. The caller ends it with
 * decide_take_effect() or decide_drop(). */
int decide_begin(struct pipeline *p, struct err *err);
void decide_take_effect(struct pipeline *p);
void decide_drop(struct pipeline *p);
const struct stage *decide_touched(const struct pipeline *p);
/* Returns true if a container's memory nodes change. An unpinned container may use all memory
 * nodes. */
bool moves_memory(const struct pipeline *p, const struct iset *was, const struct iset *now);
/* Checks the staged decision against the invariants without a commit. */
int decide_check(struct pipeline *p, struct err *err);
struct invariants decide_invariants(const struct pipeline *p);
/* Releases a container. The policy's refusal is logged and overridden. The decision stays open. */
void decide_release(struct pipeline *p, struct ctr *ctr);
/* Stages a container's release within a running decision. */
int decide_stage_release(struct pipeline *p, struct ctr *ctr, struct err *err);

/* Restores what the running request changed outside of its transaction; a second call does nothing.
 * A refused decision does so before the policy places all containers again. */
void request_undo(struct pipeline *p);
