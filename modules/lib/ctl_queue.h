/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a controller has to do outside of the request: a queue of items that the host's worker works
 * off, a few at a time and in order. An item about a container replaces one that still waits for
 * the same container, so that slow hardware piles nothing up. What became of each item goes to the
 * host's report(), unless a newer one for its container waits.
 *
 * What fails for a container is tried again, later and later, and given up after a while: a cgroup
 * that was not there yet, a write that the kernel refused for want of something. An item whose
 * failure only a change of the configuration can mend says so (`final`).
 *
 *	struct my_item { struct ctl_item item; char ref[RP_CGROUP_REF_MAX]; … };
 *	q = ctl_queue_new(&inst->h, &(struct ctl_ops){run, done}, inst);
 *	ctl_queue_add(q, &my->item);		in a hook
 */
#ifndef NRI_RP_LIB_CTL_QUEUE_H
#define NRI_RP_LIB_CTL_QUEUE_H

#include <nri-rp/controller.h>
#include <nri-rp/policy.h>

#include "modules/lib/host.h"

#define CTL_TEXT_MAX 256u
#define CTL_KINDS 4u
#define CTL_BATCH 16u /* items of one job: others use the worker, too */
#define CTL_TRIES_MAX 10u
#define CTL_AGAIN_FIRST_MS 2000u /* doubled each time … */
#define CTL_AGAIN_LAST_MS 300000u /* … up to this */
#define CTL_AGAIN_COOKIE UINT64_C(0xa6a1)

struct ctl_item {
	struct ctl_item *next;
	rp_ctr ctr; /* 0: about no container, replaces nothing */
	uint32_t kind; /* below CTL_KINDS; only items of one kind replace each other */
	uint32_t result; /* RP_APPLY_…, by run */
	uint32_t final; /* by run: to try again as it is would be of no use */
	char text[CTL_TEXT_MAX]; /* why it is not RP_APPLY_DONE */
};

struct ctl_ops {
	/* [worker] Does it, sets result and text. */
	void (*run)(void *arg, struct ctl_item *item);
	/* Frees it; `ran`: it has been done, and its result was reported. */
	void (*done)(void *arg, struct ctl_item *item, int ran);
	/* What failed for the container has to be added once more, if it is still wanted; NULL:
	 * nothing is tried again. */
	void (*again)(void *arg, rp_ctr ctr);
};

struct ctl_queue;

/* For create(): looks up the services that a controller needs, and makes a queue over them. */
int32_t ctl_queue_open(struct modhost *h, const struct rp_host *host, const struct ctl_ops *ops,
		       void *arg, struct ctl_queue **ret);
/* NULL: out of memory. ops is copied. */
struct ctl_queue *ctl_queue_new(const struct modhost *h, const struct ctl_ops *ops, void *arg);
/* For destroy(), when no job is left. Returns NULL. */
struct ctl_queue *ctl_queue_free(struct ctl_queue *q);
/* Takes the item over. Dropped when the host has no worker, as in trials. */
void ctl_queue_add(struct ctl_queue *q, struct ctl_item *item);
/* Drops what waits. */
void ctl_queue_clear(struct ctl_queue *q);
/* Drops what waits for a container that is gone. */
void ctl_queue_forget(struct ctl_queue *q, rp_ctr ctr);
/* For the controller's timer(). */
void ctl_queue_timer(struct ctl_queue *q, uint64_t cookie);
/* Containers that something will be tried again for. */
uint32_t ctl_queue_failing(const struct ctl_queue *q);
uint32_t ctl_queue_waiting(const struct ctl_queue *q);
/* Both of these, for collect(). */
void ctl_queue_collect(const struct ctl_queue *q, const struct rp_metric_sink *sink);

/* Sets result and text. */
void ctl_say(struct ctl_item *item, uint32_t result, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
