/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates that nobody asked for: after a reload, a hot-plug, a timer of the policy. A container is
 * in the queue at most once, what is sent is what is decided when it is sent, and what the runtime
 * has already is not sent. One batch is under way at a time.
 *
 * A runtime that fails one update of a batch does not say which: the batch is sent again, one
 * container at a time, with growing pauses for those that go on failing.
 *
 * A policy may let what it gives wait (rp_host_cache.may_wait): as long as all in the queue is of
 * that kind the queue is held, until the policy has been quiet for some time or the first of it has
 * waited long enough.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/grow.h"
#include "core/lib/util/log.h"

#define LOG_SOURCE "updates"
#define BACKOFF_FIRST_MS 500u
#define BACKOFF_LAST_MS 30000u

static void announce(struct pipeline *p)
{
	if (p->cfg.updates_ready && !p->env.trial)
		p->cfg.updates_ready(p->cfg.arg);
}

static void retry(void *arg)
{
	announce(arg);
}

void updates_hurry(struct pipeline *p)
{
	if (!p->updates.held_until_ms)
		return;
	p->updates.held_until_ms = 0;
	loop_timer_disarm(p->updates.hold);
	announce(p);
}

static void held_long_enough(void *arg)
{
	updates_hurry(arg);
}

int updates_init(struct pipeline *p)
{
	p->updates.retry = loop_timer_new(p->env.loop, retry, p);
	p->updates.hold = loop_timer_new(p->env.loop, held_long_enough, p);
	return p->updates.retry && p->updates.hold ? 0 : -ENOMEM;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void drop(struct pipeline *p, struct update_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		values_fini(p->env.cache, &l->items[i].values);
	l->n = 0;
}

static bool loses_cpus(const struct ctr *ctr)
{
	const struct iset *has = ctr->acked.cpus, *gets = ctr->cur.cpus;
	return gets && (!has || !rp_ids_subset(has->ids, gets->ids));
}

static int add(struct update_list *l, struct ctr *ctr, uint32_t fields)
{
	if (!HAS_ROOM(l->items, l->n, l->cap, 64))
		return -ENOMEM;
	const struct values v = ctr_decided(ctr);
	struct update *update = &l->items[l->n++];
	*update = (struct update){
		.ctr = ctr, .handle = ctr->handle, .fields = fields, .loses = loses_cpus(ctr)};
	values_copy(&update->values, &v);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct update *x = a, *y = b;
	if (x->loses != y->loses)
		return x->loses ? -1 : 1;
	return x->ctr->seq < y->ctr->seq ? -1 : x->ctr->seq > y->ctr->seq;
}

/* Nobody may get a CPU before its former user has let go of it. */
static void sort(struct update_list *l)
{
	bool sorted = true;
	for (uint32_t i = 1; i < l->n; i++)
		sorted = sorted && compare(&l->items[i - 1], &l->items[i]) < 0;
	if (!sorted)
		qsort(l->items, l->n, sizeof *l->items, compare);
}

/* What was sent is what the runtime has; what is decided may have changed meanwhile. */
static void acknowledge(struct pipeline *p, struct ctr *ctr, const struct update *update)
{
	ctr_ack_values(p->env.cache, ctr, update->fields, &update->values);
	store_put_ctr(p->store, ctr);
	if (ctr_can_update(ctr) && ctr_diff(ctr))
		updates_add(p, ctr);
}

/* ---- in replies ------------------------------------------------------------------------------ */

void updates_of_touched(struct pipeline *p, const struct ctr *skip)
{
	struct update_list *l = &p->updates.reply;
	assert(!l->n);
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		uint32_t fields = s->ctr != skip && ctr_can_update(s->ctr) ? ctr_diff(s->ctr) : 0;
		if (fields && add(l, s->ctr, fields))
			updates_add(p, s->ctr);
	}
	sort(l);
}

void updates_told(struct pipeline *p)
{
	struct update_list *l = &p->updates.reply;
	for (uint32_t i = 0; i < l->n; i++) {
		acknowledge(p, l->items[i].ctr, &l->items[i]);
		verify_later(p,
			     l->items[i].ctr); /* a runtime does not say when it fails with these */
	}
	p->stats.updates_in_replies += l->n;
	drop(p, l);
}

void updates_untold(struct pipeline *p)
{
	struct update_list *l = &p->updates.reply;
	for (uint32_t i = 0; i < l->n; i++)
		updates_add(p, l->items[i].ctr);
	drop(p, l);
}

/* ---- the queue ------------------------------------------------------------------------------- */

void updates_fini(struct pipeline *p)
{
	struct updates *u = &p->updates;
	drop(p, &u->batch);
	drop(p, &u->reply);
	free(u->batch.items);
	free(u->reply.items);
	free(u->waiting);
	loop_timer_free(u->retry);
	loop_timer_free(u->hold);
	*u = (struct updates){0};
}

static void enqueue(struct pipeline *p, struct ctr *ctr)
{
	struct updates *u = &p->updates;
	if (ctr->in_updates || p->env.trial)
		return;
	if (!HAS_ROOM(u->waiting, u->n, u->cap, 64)) {
		log_error("%s: out of memory, its update waits for the next change",
			  ctr->full_name);
		return;
	}
	u->waiting[u->n++] = ctr->handle;
	ctr->in_updates = true;
}

void updates_add(struct pipeline *p, struct ctr *ctr)
{
	bool first = !p->updates.n;
	enqueue(p, ctr);
	if (first && p->updates.n)
		announce(p);
	updates_hurry(p);
}

static void hold(struct pipeline *p, struct patience patience)
{
	struct updates *u = &p->updates;
	uint64_t now = clock_ms();
	if (!u->held_until_ms)
		u->held_until_ms = now + patience.longest_ms;
	uint64_t left = u->held_until_ms > now ? u->held_until_ms - now : 0,
		 wait = left < patience.quiet_ms ? left : patience.quiet_ms;
	if (loop_timer_arm(u->hold, wait ? wait : 1))
		updates_hurry(p);
}

void updates_settle(struct pipeline *p)
{
	const struct patience patience = p->txn ? txn_patience(p->txn) : (struct patience){0};
	bool idle = !p->updates.n, takes = !patience.longest_ms, some = false;
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		if (!ctr_can_update(s->ctr) || !ctr_diff(s->ctr))
			continue;
		takes = takes || loses_cpus(s->ctr);
		some = true;
		enqueue(p, s->ctr);
	}
	if (!some)
		return;
	if (!takes && (idle || p->updates.held_until_ms))
		hold(p, patience);
	else if (p->updates.held_until_ms)
		updates_hurry(p);
	else if (idle)
		announce(p);
}

const struct update *updates_next(struct pipeline *p, uint32_t *ret_n)
{
	struct updates *u = &p->updates;
	uint32_t taken = 0, max = u->single ? 1 : UPDATE_BATCH_MAX;
	if (u->outstanding || !u->n || u->held_until_ms ||
	    (u->single && loop_timer_armed(u->retry)))
		return NULL;
	for (; taken < u->n && u->batch.n < max; taken++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, u->waiting[taken]);
		if (!ctr)
			continue;
		ctr->in_updates = false;
		uint32_t fields = ctr_can_update(ctr) ? ctr_diff(ctr) : 0;
		if (fields && add(&u->batch, ctr, fields)) {
			ctr->in_updates = true;
			break;
		}
	}
	u->n -= taken;
	memmove(u->waiting, u->waiting + taken, u->n * sizeof *u->waiting);
	if (!u->batch.n) {
		u->single = u->single && u->n;
		return NULL;
	}
	sort(&u->batch);
	assert(!u->outstanding && u->batch.n <= max);
	u->outstanding = true;
	*ret_n = u->batch.n;
	return u->batch.items;
}

static void end_batch(struct updates *u, struct pipeline *p)
{
	drop(p, &u->batch);
	u->outstanding = false;
}

void updates_acked(struct pipeline *p)
{
	assert(p->updates.outstanding);
	struct updates *u = &p->updates;
	p->stats.updates_sent += u->batch.n;
	for (uint32_t i = 0; i < u->batch.n; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, u->batch.items[i].handle);
		if (ctr)
			acknowledge(p, ctr, &u->batch.items[i]);
	}
	end_batch(u, p);
	if (u->single && u->single_left && --u->single_left == 0) {
		u->single = false;
		u->backoff_ms = 0;
	}
	persist_later(p);
	if (u->n)
		announce(p);
}

void updates_failed(struct pipeline *p, bool connection_lost, const char *reason)
{
	assert(p->updates.outstanding);
	struct updates *u = &p->updates;
	bool alone = u->batch.n == 1;
	p->stats.updates_failed += u->batch.n;
	for (uint32_t i = 0; i < u->batch.n; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, u->batch.items[i].handle);
		if (!ctr)
			continue;
		updates_add(p, ctr);
		if (alone && !connection_lost) {
			log_warning("%s: the runtime did not take CPUs %s: %s, retrying",
				    ctr->full_name,
				    u->batch.items[i].values.cpus
					    ? u->batch.items[i].values.cpus->text
					    : "-",
				    reason);
			pipeline_event_of(p, EV_UPDATE_FAILED, ctr, NULL, "%s: %s", ctr->full_name,
					  reason);
		}
	}
	end_batch(u, p);
	if (connection_lost)
		return;
	u->single = true;
	u->single_left = u->n;
	if (alone)
		u->backoff_ms = u->backoff_ms ? u->backoff_ms * 2 : BACKOFF_FIRST_MS;
	if (u->backoff_ms > BACKOFF_LAST_MS)
		u->backoff_ms = BACKOFF_LAST_MS;
	(void)loop_timer_arm(u->retry, u->backoff_ms ? u->backoff_ms : 1);
}

unsigned updates_waiting(const struct pipeline *p)
{
	return p->updates.n + p->updates.batch.n;
}

bool updates_outstanding(const struct pipeline *p)
{
	return p->updates.outstanding;
}
