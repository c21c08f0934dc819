/* SPDX-License-Identifier: Apache-2.0 */
/* One transaction through policy, controllers and invariants, and what follows it. */
#ifndef PIPELINE_REQUEST_DECIDE_H
#define PIPELINE_REQUEST_DECIDE_H

#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/pipeline/request/request.h"

/* Updates of containers that lose CPUs come first, then by age. */
struct update_list {
	struct update *items;
	uint32_t n, cap;
};

struct updates {
	rp_ctr *waiting; /* in order; ctr->in_updates says who is there */
	uint32_t n, cap;
	struct update_list batch; /* that is under way */
	struct update_list reply; /* of the request that is being answered */
	bool outstanding;
	bool announced; /* since the last call of updates_next() */
	uint32_t batch_max; /* smaller after a failure, to find the container that failed */
	struct loop_timer *retry; /* the first container in back-off is due */
	/* All that waits may go on waiting, for this timer (rp_host_cache.may_wait). */
	struct loop_timer *hold;
	uint64_t held_until_ms; /* at the latest; 0: nothing is held */
};

/* ---- decide.c ---- */

/*
 * Runs fn in a transaction, checks what it staged, and commits. On an error everything is as
 * before, the policy included. What follows a decision is done once: by decide_reply() and then
 * reply_sent() when a request waits, else by decide_settle(). Until then the transaction can be
 * read (decide_touched).
 */
int decide(struct pipeline *p, int (*fn)(struct pipeline *p, void *arg, struct err *err), void *arg,
	   struct err *err);
/* Fills the reply's updates with what the touched containers need, but for the one that is created
 * or stopped. */
void decide_reply(struct pipeline *p, struct reply *reply, const struct ctr *skip);
/* Events about those whose CPUs have changed with a reply that was sent, but for its cause: daily
 * life, so that a few stand for all. */
void decide_tell_others(struct pipeline *p, const struct ctr *cause);
/* Puts what the touched containers need into the unsolicited queue instead, and closes. */
void decide_settle(struct pipeline *p);
/* After the reply: hooks and data files of the touched containers, but for the created one. Nothing
 * when no decision is open. */
void decide_close(struct pipeline *p, const struct ctr *created);
/* A decision of the policy's own, by the clock or as the machine has changed: settled, and people
 * are told who has moved. */
int decide_event(struct pipeline *p, int (*fn)(struct pipeline *p, void *arg, struct err *err),
		 void *arg, struct err *err);
/* For a caller that stages and checks itself, and then either commits, as decide_event() does, or
 * drops that. */
int decide_begin(struct pipeline *p, struct err *err);
void decide_take_effect(struct pipeline *p);
void decide_drop(struct pipeline *p);
const struct stage *decide_touched(const struct pipeline *p);
/* Returns true if a container's memory nodes change. One that is not pinned may use all of them. */
bool moves_memory(const struct pipeline *p, const struct iset *was, const struct iset *now);
/* Checks only: for trials. */
int decide_check(struct pipeline *p, struct err *err);
struct invariants decide_invariants(const struct pipeline *p);
/* Gives up what a container holds, whatever the policy says about it. The decision is open then. */
void decide_release(struct pipeline *p, struct ctr *ctr);
/* Stages the same within a decision. */
int decide_stage_release(struct pipeline *p, struct ctr *ctr, struct err *err);

/* Puts back what the running request changed outside of its transaction, once. A refused decision
 * does that before the policy places all containers again. */
void request_undo(struct pipeline *p);

#endif
