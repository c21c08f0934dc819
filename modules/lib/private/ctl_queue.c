/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a controller: waiting items in an array, found by container and kind through a
 * hash table; a list of failures; one job at a time on the worker. */
#include <stdbool.h>
#include <stdlib.h>

#include <nri-rp/lib/ctl_file.h>
#include "modules/lib/private/ctl_queue.h"

#define BUCKETS_MIN 64u

/* A waiting item. The slots of a bucket are chained by index. */
struct slot {
	struct ctl_item *item; /* queued work item; NULL: replaced or removed */
	uint32_t link; /* next in the bucket, +1; 0: none */
};

/* A container with a failed item. */
struct failing {
	rp_ctr ctr;
	uint32_t kind, tries;
	/* time of the next attempt; 0: no attempt follows, or the item is queued again */
	uint64_t due_ms;
};

struct ctl_queue {
	const struct modhost *h;
	struct ctl_ops ops;
	void *arg;
	struct slot *slots; /* slots first … n are the waiting items, in order */
	uint32_t first, n, cap, n_waiting;
	uint32_t *buckets; /* index of a slot + 1; 0: none */
	uint32_t n_buckets; /* number of buckets, a power of two */
	struct ctl_item *batch; /* items of the running job */
	struct failing *failing;
	uint32_t n_failing, cap_failing;
	bool repeating; /* items that are added now are repetitions */
	bool armed;
};

struct ctl_queue *ctl_queue_new(const struct modhost *h, const struct ctl_ops *ops, void *arg)
{
	struct ctl_queue *q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	q->h = h;
	q->ops = *ops;
	q->arg = arg;
	return q;
}

struct ctl_queue *ctl_queue_free(struct ctl_queue *q)
{
	if (!q)
		return NULL;
	q->armed = false; /* timers end with the instance */
	ctl_queue_clear(q);
	free(q->failing);
	free(q->slots);
	free(q->buckets);
	free(q);
	return NULL;
}

/* ---- waiting items --------------------------------------------------------------------------- */

static uint32_t *bucket_of(const struct ctl_queue *q, rp_ctr ctr, uint32_t kind)
{
	uint64_t mixed = (ctr ^ (uint64_t)kind << 56) * UINT64_C(0x9E3779B97F4A7C15);
	return &q->buckets[mixed >> 32 & (q->n_buckets - 1)];
}

static void link_slot(struct ctl_queue *q, uint32_t i)
{
	const struct ctl_item *item = q->slots[i].item;
	if (!item || !item->ctr)
		return;
	uint32_t *bucket = bucket_of(q, item->ctr, item->kind);
	q->slots[i].link = *bucket;
	*bucket = i + 1;
}

/* Makes room for one more slot: removes the free slots, enlarges the array if necessary, and
 * rebuilds the buckets. */
static int make_room(struct ctl_queue *q)
{
	if (q->n < q->cap)
		return 0;
	uint32_t cap = q->n_waiting < q->cap / 2 ? q->cap : q->cap ? q->cap * 2 : BUCKETS_MIN;
	struct slot *slots = calloc(cap, sizeof *slots);
	uint32_t *buckets = calloc(cap, sizeof *buckets), n = 0;
	if (!slots || !buckets) {
		free(slots);
		free(buckets);
		return -RP_ENOMEM;
	}
	for (uint32_t i = q->first; i < q->n; i++)
		if (q->slots[i].item)
			slots[n++].item = q->slots[i].item;
	free(q->slots);
	free(q->buckets);
	q->slots = slots;
	q->buckets = buckets;
	q->n_buckets = q->cap = cap;
	q->first = 0;
	q->n = n;
	for (uint32_t i = 0; i < n; i++)
		link_slot(q, i);
	return 0;
}

static void drop_slot(struct ctl_queue *q, uint32_t i)
{
	struct ctl_item *item = q->slots[i].item;
	q->slots[i].item = NULL;
	q->n_waiting--;
	q->ops.done(q->arg, item, 0);
}

static void drop_waiting(struct ctl_queue *q, rp_ctr ctr, uint32_t kind)
{
	if (!q->n_buckets || !ctr)
		return;
	for (uint32_t i = *bucket_of(q, ctr, kind); i; i = q->slots[i - 1].link) {
		const struct ctl_item *item = q->slots[i - 1].item;
		if (item && item->ctr == ctr && item->kind == kind) {
			drop_slot(q, i - 1);
			return;
		}
	}
}

static bool ctl_queue_waits(const struct ctl_queue *q, rp_ctr ctr, uint32_t kind)
{
	for (uint32_t i = q->n_buckets ? *bucket_of(q, ctr, kind) : 0; i;
	     i = q->slots[i - 1].link) {
		const struct ctl_item *item = q->slots[i - 1].item;
		if (item && item->ctr == ctr && item->kind == kind)
			return true;
	}
	return false;
}

static bool on_its_way(const struct ctl_queue *q, rp_ctr ctr, uint32_t kind)
{
	for (const struct ctl_item *item = q->batch; item; item = item->next)
		if (item->ctr == ctr && item->kind == kind)
			return true;
	return ctl_queue_waits(q, ctr, kind);
}

/* ---- repetition ------------------------------------------------------------------------------ */

static struct failing *find_failing(const struct ctl_queue *q, rp_ctr ctr, uint32_t kind)
{
	for (uint32_t i = 0; i < q->n_failing; i++)
		if (q->failing[i].ctr == ctr && q->failing[i].kind == kind)
			return &q->failing[i];
	return NULL;
}

static void drop_failing(struct ctl_queue *q, rp_ctr ctr, uint32_t kind)
{
	struct failing *f = find_failing(q, ctr, kind);
	if (f)
		*f = q->failing[--q->n_failing];
}

static struct failing *make_failing(struct ctl_queue *q, rp_ctr ctr, uint32_t kind)
{
	struct failing *f = find_failing(q, ctr, kind);
	if (f)
		return f;
	if (q->n_failing == q->cap_failing) {
		uint32_t cap = q->cap_failing ? q->cap_failing * 2 : 16;
		f = reallocarray(q->failing, cap, sizeof *f);
		if (!f)
			return NULL;
		q->failing = f;
		q->cap_failing = cap;
	}
	f = &q->failing[q->n_failing++];
	*f = (struct failing){.ctr = ctr, .kind = kind};
	return f;
}

static void ctl_queue_arm(struct ctl_queue *q)
{
	uint64_t first = 0, now = q->h->timer->now_ms(q->h->ctx);
	for (uint32_t i = 0; i < q->n_failing; i++) {
		uint64_t due = q->failing[i].due_ms;
		if (due && (!first || due < first))
			first = due;
	}
	uint64_t delay = !first ? 0 : first > now ? first - now : 1;
	if (delay || q->armed)
		(void)q->h->timer->arm(q->h->ctx, CTL_AGAIN_COOKIE, delay);
	q->armed = delay != 0;
}

/* Records a failure and returns the text to append to its reason in status; "": there is no other
 * attempt. */
static const char *note_failure(struct ctl_queue *q, const struct ctl_item *item)
{
	if (!q->ops.again || !q->h->timer)
		return "";
	if (item->result < RP_APPLY_PARTIAL || item->final) {
		drop_failing(q, item->ctr, item->kind);
		return "";
	}
	struct failing *f = make_failing(q, item->ctr, item->kind);
	if (!f)
		return "";
	if (++f->tries >= CTL_TRIES_MAX) {
		f->due_ms = 0;
		return "; given up";
	}
	uint64_t delay = (uint64_t)CTL_AGAIN_FIRST_MS << (f->tries - 1);
	f->due_ms = q->h->timer->now_ms(q->h->ctx) +
		    (delay < CTL_AGAIN_LAST_MS ? delay : CTL_AGAIN_LAST_MS);
	ctl_queue_arm(q);
	return "; trying again";
}

void ctl_queue_timer(struct ctl_queue *q, uint64_t cookie)
{
	if (cookie != CTL_AGAIN_COOKIE || !q->h->timer)
		return;
	uint64_t now = q->h->timer->now_ms(q->h->ctx);
	q->repeating = true;
	for (uint32_t i = q->n_failing; i-- > 0;) {
		const struct failing f = q->failing[i];
		if (!f.due_ms || f.due_ms > now)
			continue;
		q->failing[i].due_ms = 0;
		q->ops.again(q->arg, f.ctr);
		if (!on_its_way(q, f.ctr, f.kind))
			drop_failing(q, f.ctr, f.kind); /* no item is wanted now */
	}
	q->repeating = false;
	ctl_queue_arm(q);
}

uint32_t ctl_queue_failing(const struct ctl_queue *q)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < q->n_failing; i++)
		n += q->failing[i].tries < CTL_TRIES_MAX;
	return n;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static int32_t run_batch(void *arg)
{
	struct ctl_queue *q = arg;
	for (struct ctl_item *item = q->batch; item; item = item->next)
		q->ops.run(q->arg, item);
	return 0;
}

static void ctl_queue_submit(struct ctl_queue *q);

static void ctl_queue_tell(struct ctl_queue *q, const struct ctl_item *item)
{
	char text[CTL_TEXT_MAX + 32];
	if (!item->ctr || ctl_queue_waits(q, item->ctr, item->kind))
		return;
	const char *then = note_failure(q, item);
	(void)ctl_format(text, sizeof text, "%s%s", item->text, then);
	q->h->work->report(q->h->ctx, item->ctr, item->result, text);
}

static void batch_done(void *arg, int32_t result)
{
	struct ctl_queue *q = arg;
	struct ctl_item *item = q->batch, *next;
	(void)result;
	q->batch = NULL;
	for (; item; item = next) {
		next = item->next;
		ctl_queue_tell(q, item);
		q->ops.done(q->arg, item, 1);
	}
	ctl_queue_submit(q);
}

static void ctl_queue_submit(struct ctl_queue *q)
{
	struct ctl_item **end = &q->batch;
	if (q->batch || !q->n_waiting)
		return;
	for (uint32_t taken = 0; q->first < q->n && taken < CTL_BATCH; q->first++) {
		struct ctl_item *item = q->slots[q->first].item;
		if (!item)
			continue;
		q->slots[q->first].item = NULL;
		q->n_waiting--;
		item->next = NULL;
		*end = item;
		end = &item->next;
		taken++;
	}
	if (q->h->work->submit(q->h->ctx, run_batch, batch_done, q) == 0)
		return;
	struct ctl_item *item = q->batch;
	q->batch = NULL;
	for (struct ctl_item *next; item; item = next) {
		next = item->next;
		q->ops.done(q->arg, item, 0);
	}
}

void ctl_queue_add(struct ctl_queue *q, struct ctl_item *item)
{
	drop_waiting(q, item->ctr, item->kind);
	if (!q->repeating && item->ctr)
		drop_failing(q, item->ctr, item->kind);
	if (make_room(q)) {
		if (item->ctr)
			q->h->work->report(q->h->ctx, item->ctr, RP_APPLY_FAILED, "out of memory");
		q->ops.done(q->arg, item, 0);
		return;
	}
	if (item->ctr && !q->repeating)
		q->h->work->report(q->h->ctx, item->ctr, RP_APPLY_PENDING, "");
	q->slots[q->n].item = item;
	link_slot(q, q->n++);
	q->n_waiting++;
	ctl_queue_submit(q);
}

void ctl_queue_clear(struct ctl_queue *q)
{
	for (uint32_t i = q->first; i < q->n; i++)
		if (q->slots[i].item)
			drop_slot(q, i);
	q->first = q->n = q->n_failing = 0;
	if (q->armed)
		ctl_queue_arm(q);
	if (q->n_buckets)
		memset(q->buckets, 0, q->n_buckets * sizeof *q->buckets);
}

void ctl_queue_forget(struct ctl_queue *q, rp_ctr ctr)
{
	for (uint32_t kind = 0; kind < CTL_KINDS; kind++)
		drop_waiting(q, ctr, kind);
	for (uint32_t kind = 0; kind < CTL_KINDS; kind++)
		drop_failing(q, ctr, kind);
}

uint32_t ctl_queue_waiting(const struct ctl_queue *q)
{
	return q->n_waiting;
}

void ctl_queue_collect(const struct ctl_queue *q, const struct rp_metric_sink *sink)
{
	sink->gauge(sink->ctx, "failing", "Containers with a failed setting that will be retried.",
		    "", ctl_queue_failing(q));
	sink->gauge(sink->ctx, "queue_length", "Jobs waiting for the worker.", "",
		    ctl_queue_waiting(q));
}
