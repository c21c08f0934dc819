/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a controller: a list of waiting items, found by container and kind through a hash
 * table; a list of failures; one job at a time on the worker. */

#include <nri-rp/lib/ctl_file.h>
#include "modules/lib/private/ctl_queue.h"
#include "modules/lib/private/room.h"
#include "modules/lib/private/table.h"

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
	struct ctl_item *first, **end; /* list of waiting items, in order, and its end */
	uint32_t n_waiting;
	struct table waiting; /* waiting items of containers, by container and kind */
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
	q->end = &q->first;
	return q;
}

struct ctl_queue *ctl_queue_free(struct ctl_queue *q)
{
	if (!q)
		return NULL;
	q->armed = false; /* timers end with the instance */
	ctl_queue_clear(q);
	free(q->failing);
	table_fini(&q->waiting);
	free(q);
	return NULL;
}

/* ---- waiting items --------------------------------------------------------------------------- */

static uint64_t item_key(rp_ctr ctr, uint32_t kind)
{
	return ctr ^ (uint64_t)kind << 56;
}

/* Removes the item at *at from the list. */
static struct ctl_item *take_waiting(struct ctl_queue *q, struct ctl_item **at)
{
	struct ctl_item *item = *at;
	*at = item->next;
	if (q->end == &item->next)
		q->end = at;
	if (item->ctr)
		table_del(&q->waiting, item_key(item->ctr, item->kind));
	q->n_waiting--;
	return item;
}

static struct ctl_item *find_waiting(const struct ctl_queue *q, rp_ctr ctr, uint32_t kind)
{
	return ctr ? table_get(&q->waiting, item_key(ctr, kind)) : NULL;
}

static void drop_waiting(struct ctl_queue *q, rp_ctr ctr, uint32_t kind)
{
	const struct ctl_item *item = find_waiting(q, ctr, kind);
	struct ctl_item **at = &q->first;
	while (item && *at != item)
		at = &(*at)->next;
	if (item)
		q->ops.done(q->arg, take_waiting(q, at), 0);
}

static bool on_its_way(const struct ctl_queue *q, rp_ctr ctr, uint32_t kind)
{
	for (const struct ctl_item *item = q->batch; item; item = item->next)
		if (item->ctr == ctr && item->kind == kind)
			return true;
	return find_waiting(q, ctr, kind) != NULL;
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
	if (!room_for(&q->failing, &q->cap_failing, q->n_failing + 1, sizeof *f))
		return NULL;
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
	if (!item->ctr || find_waiting(q, item->ctr, item->kind))
		return;
	const char *then = note_failure(q, item);
	(void)ctl_format(text, sizeof text, "%s%s", item->text, then);
	q->h->work->report(q->h->ctx, item->ctr, item->result, text);
}

/* Ends a list of items that are no longer in the queue. */
static void end_items(struct ctl_queue *q, struct ctl_item *item, bool ran)
{
	for (struct ctl_item *next; item; item = next) {
		next = item->next;
		if (ran)
			ctl_queue_tell(q, item);
		q->ops.done(q->arg, item, ran);
	}
}

static void batch_done(void *arg, int32_t result)
{
	struct ctl_queue *q = arg;
	struct ctl_item *items = q->batch;
	q->batch = NULL;
	end_items(q, items, true);
	ctl_queue_submit(q);
}

static void ctl_queue_submit(struct ctl_queue *q)
{
	struct ctl_item **end = &q->batch;
	if (q->batch || !q->first)
		return;
	for (uint32_t taken = 0; q->first && taken < CTL_BATCH; taken++) {
		*end = take_waiting(q, &q->first);
		end = &(*end)->next;
	}
	*end = NULL;
	if (q->h->work->submit(q->h->ctx, run_batch, batch_done, q) == 0)
		return;
	struct ctl_item *items = q->batch;
	q->batch = NULL;
	end_items(q, items, false);
}

void ctl_queue_add(struct ctl_queue *q, struct ctl_item *item)
{
	drop_waiting(q, item->ctr, item->kind);
	if (!q->repeating && item->ctr)
		drop_failing(q, item->ctr, item->kind);
	if (item->ctr && table_put(&q->waiting, item_key(item->ctr, item->kind), item)) {
		q->h->work->report(q->h->ctx, item->ctr, RP_APPLY_FAILED, "out of memory");
		q->ops.done(q->arg, item, 0);
		return;
	}
	if (item->ctr && !q->repeating)
		q->h->work->report(q->h->ctx, item->ctr, RP_APPLY_PENDING, "");
	item->next = NULL;
	*q->end = item;
	q->end = &item->next;
	q->n_waiting++;
	ctl_queue_submit(q);
}

void ctl_queue_clear(struct ctl_queue *q)
{
	struct ctl_item *items = q->first;
	q->first = NULL;
	q->end = &q->first;
	q->n_waiting = q->n_failing = 0;
	table_clear(&q->waiting);
	end_items(q, items, false);
	if (q->armed)
		ctl_queue_arm(q);
}

void ctl_queue_forget(struct ctl_queue *q, rp_ctr ctr)
{
	for (uint32_t kind = 0; kind < CTL_KINDS; kind++)
		drop_waiting(q, ctr, kind);
	for (uint32_t kind = 0; kind < CTL_KINDS; kind++)
		drop_failing(q, ctr, kind);
}

void ctl_queue_collect(const struct ctl_queue *q, const struct rp_metric_sink *sink)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < q->n_failing; i++)
		n += q->failing[i].tries < CTL_TRIES_MAX;
	sink->gauge(sink->ctx, "failing", "Containers with a failed setting that will be retried.",
		    "", n);
	sink->gauge(sink->ctx, "queue_length", "Jobs waiting for the worker.", "", q->n_waiting);
}
