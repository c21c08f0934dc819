/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue for the work of a controller outside of requests. The host's worker processes the items in
 * order, a few per job. An item for a container replaces a waiting one for the same container, so
 * slow hardware cannot pile up items. The result of each item is passed to the host's report(),
 * unless a newer item for its container waits.
 *
 * A failed item is repeated with growing delays and a limited number of attempts, because a cgroup
 * may appear later or the kernel may refuse a write temporarily. An item sets `final` if only a
 * change of the configuration can mend its failure.
 *
 *	struct my_item { struct ctl_item item; char ref[RP_CGROUP_REF_MAX]; … };
 *	q = ctl_queue_new(&inst->h, &(struct ctl_ops){run, done}, inst);
 *	ctl_queue_add(q, &my->item);  in a hook
 */
#pragma once

#include <nri-rp/lib/ctl_life.h>

#define CTL_KINDS 4u
#define CTL_BATCH 16u /* number of items of one job; small, because modules share the worker */
#define CTL_TRIES_MAX 10u
#define CTL_AGAIN_FIRST_MS 2000u /* delay of the second attempt; doubled for each further one */
#define CTL_AGAIN_LAST_MS 300000u /* largest delay between two attempts */
#define CTL_AGAIN_COOKIE UINT64_C(0xa6a1)

struct ctl_ops {
	/* [worker] Processes the item; sets result and text. */
	void (*run)(void *arg, struct ctl_item *item);
	/* Frees the item. `ran`: it was processed, and its result was reported. */
	void (*done)(void *arg, struct ctl_item *item, int ran);
	/* Adds the failed item of a container again, if it is still wanted. NULL: no item is
	 * repeated. */
	void (*again)(void *arg, rp_ctr ctr);
};

struct ctl_queue;

/* Creates a queue; `ops` is copied. NULL: out of memory. */
struct ctl_queue *ctl_queue_new(const struct modhost *h, const struct ctl_ops *ops, void *arg);
/* Frees the queue in destroy(), when no job is left. Returns NULL. */
struct ctl_queue *ctl_queue_free(struct ctl_queue *q);
/* Queues an item and takes ownership of it. If the host has no worker, as in trials, the item is
 * dropped. */
void ctl_queue_add(struct ctl_queue *q, struct ctl_item *item);
/* Drops all waiting items. */
void ctl_queue_clear(struct ctl_queue *q);
/* Drops the waiting items and failures of a container that was removed. */
void ctl_queue_forget(struct ctl_queue *q, rp_ctr ctr);
/* Handles a timer, for the controller's timer(). */
void ctl_queue_timer(struct ctl_queue *q, uint64_t cookie);
/* Reports the numbers of failures that will be repeated and of waiting items, for collect(). */
void ctl_queue_collect(const struct ctl_queue *q, const struct rp_metric_sink *sink);
