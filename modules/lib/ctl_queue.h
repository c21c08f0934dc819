/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a controller has to do outside of the request: a queue of items that the host's worker works off, a few at a time and in order.
 * An item about a container replaces one that still waits for the same container, so that slow hardware piles nothing up.
 * What became of each item goes to the host's report().
 *
 *	struct my_item { struct ctl_item item; char ref[RP_CGROUP_REF_MAX]; … };
 *	q = ctl_queue_new(&inst->h, &(struct ctl_ops){run, done}, inst);
 *	ctl_queue_add(q, &my->item);		in a hook
 */
#ifndef NRI_RP_LIB_CTL_QUEUE_H
#define NRI_RP_LIB_CTL_QUEUE_H

#include <nri-rp/controller.h>

#include "modules/lib/host.h"

#define CTL_TEXT_MAX 256u
#define CTL_KINDS 4u
#define CTL_BATCH 16u /* items of one job: others use the worker, too */

struct ctl_item {
	struct ctl_item *next;
	rp_ctr ctr; /* 0: about no container, replaces nothing */
	uint32_t kind; /* below CTL_KINDS; only items of one kind replace each other */
	uint32_t result; /* RP_APPLY_…, by run */
	char text[CTL_TEXT_MAX]; /* why it is not RP_APPLY_DONE */
};

struct ctl_ops {
	/* [worker] Does it, sets result and text. */
	void (*run)(void *arg, struct ctl_item *item);
	/* Frees it; `ran`: it has been done, and its result was reported. */
	void (*done)(void *arg, struct ctl_item *item, int ran);
};

struct ctl_queue;

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
uint32_t ctl_queue_waiting(const struct ctl_queue *q);

/* Sets result and text. */
void ctl_say(struct ctl_item *item, uint32_t result, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
