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
/* The policy has placed all containers, if not when the runtime listed them: what the last process
 * has set of the machine need not wait. */
void sync_recovered(struct pipeline *p);
/* Gives up what a container holds, whatever the policy says about it. The decision is open then. */
void decide_release(struct pipeline *p, struct ctr *ctr);
/* Stages the same within a decision. */
int decide_stage_release(struct pipeline *p, struct ctr *ctr, struct err *err);

/* Puts back what the running request changed outside of its transaction, once. A refused decision
 * does that before the policy places all containers again. */
void request_undo(struct pipeline *p);

/* ---- confine.c ---- */
/* All CPUs that are nobody's own, as the running transaction leaves them. NULL: out of memory. */
struct iset *unowned_cpus(struct pipeline *p);
/* Keeps containers that nobody has pinned off the CPUs that others own: the last step of a
 * decision, before the invariants. -ENOSPC: the container that is being created would have nowhere
 * to run. */
int confine(struct pipeline *p, struct err *err);
/* Nothing is known of who is pinned and who is confined: a decision has been dropped, or the
 * containers are others. */
void confine_unknown(struct pipeline *p);

/* ---- updates.c ---- */
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

/* ---- export.c ---- */
/* Makes the data directory of a new container part of the reply. */
void export_created(struct pipeline *p, const struct ctr *ctr, struct reply *reply);
/* Writes the files of those whose data the transaction changed. */
void export_touched(struct pipeline *p, const struct ctr *skip);
void export_removed(struct pipeline *p, const struct ctr *ctr);
/* Removes what is left of containers that are gone, and writes what the others have. */
void export_clean(struct pipeline *p);

/* ---- rebalance.c ---- */
/* As the configuration in force says. */
void pipeline_arm_rebalance(struct pipeline *p);
void rebalance_timer(void *arg);
/* Containers that the running transaction moves, or has moved. */
unsigned rebalance_count(const struct pipeline *p);

/* ---- request.c ---- */
/* Removes all that is kept of a container that is gone, or of a pod and its containers. */
void request_forget_ctr(struct pipeline *p, struct ctr *ctr);
void request_forget_pod(struct pipeline *p, struct pod *pod);
/* A pod that a request is about and nobody has told of before. */
int request_adopt_pod(struct pipeline *p, const struct pod_desc *desc, struct pod **ret,
		      struct err *err);

#endif
