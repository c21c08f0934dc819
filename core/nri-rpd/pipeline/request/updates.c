/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unsolicited updates: those after a reload, a hot-plug or a timer of the policy. A container is in
 * the queue at most once. An update carries the decision at the time of sending, without values
 * that the runtime has already. One batch is outstanding at a time.
 *
 * A runtime that fails one update of a batch does not say which. Batches are halved until a batch
 * of one container fails, and doubled again with each batch that succeeds. A container that failed
 * has its own back-off and is sent alone until that succeeds, so it delays no other container.
 *
 * A policy may allow that updates which only add CPUs wait (rp_host_cache.may_wait). While the
 * queue holds only such updates it is deferred until the policy has been quiet for some time, or
 * the first of them has waited long enough.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/backoff.h"
#include "core/lib/util/grow.h"
#include "core/lib/util/log.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#define LOG_SOURCE "updates"
#define BACKOFF_FIRST_MS 500u
#define BACKOFF_LAST_MS 30000u

static void updates_announce(struct pipeline *p)
{
	if (p->requests.updates.announced || !p->cfg.updates_ready || p->env.trial)
		return;
	p->requests.updates.announced = true;
	p->cfg.updates_ready(p->cfg.arg);
}

/* Announces the queue again. A previous announcement may have gone to a connection that has
 * ended. */
static void updates_retry(void *arg)
{
	struct pipeline *p = arg;
	p->requests.updates.announced = false;
	updates_announce(p);
}

void updates_hurry(struct pipeline *p)
{
	if (!p->requests.updates.held_until_ms)
		return;
	p->requests.updates.held_until_ms = 0;
	loop_timer_disarm(p->requests.updates.hold);
	updates_retry(p);
}

static void held_long_enough(void *arg)
{
	updates_hurry(arg);
}

int updates_init(struct pipeline *p)
{
	p->requests.updates.batch_max = UPDATE_BATCH_MAX;
	p->requests.updates.retry = loop_timer_new(p->env.loop, updates_retry, p);
	p->requests.updates.hold = loop_timer_new(p->env.loop, held_long_enough, p);
	return p->requests.updates.retry && p->requests.updates.hold ? 0 : -ENOMEM;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void updates_drop(struct pipeline *p, struct update_list *l)
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

static int updates_do_add(struct update_list *l, struct ctr *ctr, uint32_t fields)
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

static int updates_compare(const void *a, const void *b)
{
	const struct update *x = a, *y = b;
	if (x->loses != y->loses)
		return x->loses ? -1 : 1;
	return x->ctr->seq < y->ctr->seq ? -1 : x->ctr->seq > y->ctr->seq;
}

/* Sorts updates so that containers that lose CPUs come first: a CPU is released before another
 * container gets it. */
static void updates_sort(struct update_list *l)
{
	bool sorted = true;
	for (uint32_t i = 1; i < l->n; i++)
		sorted = sorted && updates_compare(&l->items[i - 1], &l->items[i]) < 0;
	if (!sorted)
		qsort(l->items, l->n, sizeof *l->items, updates_compare);
}

/* Records the sent values as the runtime's. Queues the container again if its decision has changed
 * since. */
static void updates_acknowledge(struct pipeline *p, struct ctr *ctr, const struct update *update)
{
	ctr_ack_values(p->env.cache, ctr, update->fields, &update->values);
	store_put_ctr(p->store, ctr);
	if (ctr_can_update(ctr) && ctr_diff(ctr))
		updates_add(p, ctr);
}

/* ---- in replies ------------------------------------------------------------------------------ */

void updates_of_touched(struct pipeline *p, const struct ctr *skip)
{
	struct update_list *l = &p->requests.updates.reply;
	assert(!l->n);
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		uint32_t fields = s->ctr != skip && ctr_can_update(s->ctr) ? ctr_diff(s->ctr) : 0;
		if (fields && updates_do_add(l, s->ctr, fields))
			updates_add(p, s->ctr);
	}
	updates_sort(l);
}

void updates_told(struct pipeline *p)
{
	struct update_list *l = &p->requests.updates.reply;
	for (uint32_t i = 0; i < l->n; i++) {
		updates_acknowledge(p, l->items[i].ctr, &l->items[i]);
		/* The runtime does not report whether updates in replies succeed. */
		verify_later(p, l->items[i].ctr);
	}
	p->stats.updates_in_replies += l->n;
	updates_drop(p, l);
}

void updates_untold(struct pipeline *p)
{
	struct update_list *l = &p->requests.updates.reply;
	for (uint32_t i = 0; i < l->n; i++)
		updates_add(p, l->items[i].ctr);
	updates_drop(p, l);
}

void reply_defer_updates(struct pipeline *p, struct reply *reply, uint32_t n_sent)
{
	struct update_list *l = &p->requests.updates.reply;
	assert(n_sent <= l->n && reply->n_updates == l->n);
	log_notice("%s: %u of %u updates do not fit into the reply and follow it",
		   request_name(p->requests.kind), l->n - n_sent, l->n);
	for (uint32_t i = n_sent; i < l->n; i++) {
		updates_add(p, l->items[i].ctr);
		values_fini(p->env.cache, &l->items[i].values);
	}
	l->n = reply->n_updates = n_sent;
}

/* ---- the queue ------------------------------------------------------------------------------- */

void updates_fini(struct pipeline *p)
{
	struct updates *u = &p->requests.updates;
	updates_drop(p, &u->batch);
	updates_drop(p, &u->reply);
	free(u->batch.items);
	free(u->reply.items);
	free(u->waiting);
	loop_timer_free(u->retry);
	loop_timer_free(u->hold);
	*u = (struct updates){0};
}

static void updates_enqueue(struct pipeline *p, struct ctr *ctr)
{
	struct updates *u = &p->requests.updates;
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
	updates_enqueue(p, ctr);
	updates_announce(p);
	updates_hurry(p);
}

/* Returns true if nothing in the queue can be sent now. */
static bool updates_idle(const struct pipeline *p)
{
	const struct updates *u = &p->requests.updates;
	uint64_t now = clock_ms();
	for (uint32_t i = 0; i < u->n; i++) {
		const struct ctr *ctr = cache_ctr_of(p->env.cache, u->waiting[i]);
		if (ctr && ctr->update.from_ms <= now)
			return false;
	}
	return true;
}

static void updates_hold(struct pipeline *p, struct patience patience)
{
	struct updates *u = &p->requests.updates;
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
	bool idle = updates_idle(p), takes = !patience.longest_ms, some = false;
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		if (!ctr_can_update(s->ctr) || !ctr_diff(s->ctr))
			continue;
		takes = takes || loses_cpus(s->ctr);
		some = true;
		s->ctr->update.from_ms = 0; /* the runtime may accept the new decision */
		updates_enqueue(p, s->ctr);
	}
	if (!some)
		return;
	if (!takes && (idle || p->requests.updates.held_until_ms))
		updates_hold(p, patience);
	else if (p->requests.updates.held_until_ms)
		updates_hurry(p);
	else if (idle)
		updates_announce(p);
}

/* Moves the container into the batch. Returns false if memory is short; the container stays
 * queued. */
static bool updates_take(struct updates *u, struct ctr *ctr)
{
	uint32_t fields = ctr_can_update(ctr) ? ctr_diff(ctr) : 0;
	ctr->in_updates = fields && updates_do_add(&u->batch, ctr, fields);
	return !ctr->in_updates;
}

/* Fills the batch from the front of the queue. Returns the time when the first container in
 * back-off is due; UINT64_MAX: there is none. */
static uint64_t updates_fill_batch(struct pipeline *p)
{
	struct updates *u = &p->requests.updates;
	uint64_t now = clock_ms(), due_ms = UINT64_MAX;
	uint32_t i = 0, n_kept = 0;
	bool alone = false;
	for (; i < u->n && u->batch.n < u->batch_max && !alone; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, u->waiting[i]);
		if (!ctr)
			continue;
		if (ctr->update.from_ms > now) {
			due_ms = ctr->update.from_ms < due_ms ? ctr->update.from_ms : due_ms;
			u->waiting[n_kept++] = u->waiting[i];
			continue;
		}
		if ((ctr->update.fails && u->batch.n) || !updates_take(u, ctr))
			break;
		alone = ctr->update.fails && u->batch.n;
	}
	memmove(u->waiting + n_kept, u->waiting + i, (u->n - i) * sizeof *u->waiting);
	u->n -= i - n_kept;
	return due_ms;
}

const struct update *updates_next(struct pipeline *p, uint32_t *ret_n)
{
	struct updates *u = &p->requests.updates;
	u->announced = false;
	if (u->outstanding || !u->n || u->held_until_ms)
		return NULL;
	uint64_t due_ms = updates_fill_batch(p), now = clock_ms();
	if (!u->batch.n) {
		if (due_ms != UINT64_MAX)
			(void)loop_timer_arm(u->retry, due_ms > now ? due_ms - now : 1);
		return NULL;
	}
	updates_sort(&u->batch);
	assert(u->batch.n <= u->batch_max);
	for (uint32_t n = 0; n < u->batch.n; n++)
		ctr_note_sent(u->batch.items[n].ctr, u->batch.items[n].fields,
			      &u->batch.items[n].values);
	u->outstanding = true;
	*ret_n = u->batch.n;
	return u->batch.items;
}

static void end_batch(struct updates *u, struct pipeline *p)
{
	updates_drop(p, &u->batch);
	u->outstanding = false;
	if (u->n)
		updates_announce(p);
}

void updates_acked(struct pipeline *p)
{
	assert(p->requests.updates.outstanding);
	struct updates *u = &p->requests.updates;
	p->stats.updates_sent += u->batch.n;
	bool failed_before = false;
	for (uint32_t i = 0; i < u->batch.n; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, u->batch.items[i].handle);
		if (!ctr)
			continue;
		failed_before = ctr->update.fails;
		ctr->update.fails = false;
		ctr->update.from_ms = 0;
		backoff_reset(&ctr->update.backoff);
		updates_acknowledge(p, ctr, &u->batch.items[i]);
	}
	if (!failed_before)
		u->batch_max =
			u->batch_max < UPDATE_BATCH_MAX / 2 ? u->batch_max * 2 : UPDATE_BATCH_MAX;
	end_batch(u, p);
	persist_later(p);
}

/* Inserts the updates of a refused batch at the front of the queue. */
static void updates_put_back(struct pipeline *p)
{
	struct updates *u = &p->requests.updates;
	uint32_t n = 0;
	while (u->cap < u->n + u->batch.n && HAS_ROOM(u->waiting, u->cap, u->cap, 64)) {
	}
	if (u->cap < u->n + u->batch.n) {
		log_error("out of memory: updates of %u containers wait for the next change",
			  u->batch.n);
		return;
	}
	memmove(u->waiting + u->batch.n, u->waiting, u->n * sizeof *u->waiting);
	for (uint32_t i = 0; i < u->batch.n; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, u->batch.items[i].handle);
		if (!ctr || ctr->in_updates)
			continue; /* removed, or queued again meanwhile */
		u->waiting[n++] = ctr->handle;
		ctr->in_updates = true;
	}
	memmove(u->waiting + n, u->waiting + u->batch.n, u->n * sizeof *u->waiting);
	u->n += n;
}

/* Starts the back-off of a container whose update failed alone in its batch. */
static void updates_back_off(struct pipeline *p, struct ctr *ctr, const struct update *update,
			     const char *reason)
{
	uint64_t ms = backoff_next_ms(&ctr->update.backoff, BACKOFF_FIRST_MS, BACKOFF_LAST_MS);
	ctr->update.fails = true;
	ctr->update.from_ms = clock_ms() + ms;
	log_warning("%s: the runtime did not apply CPUs %s: %s; retrying in %llu ms",
		    ctr->full_name, update->values.cpus ? update->values.cpus->text : "-", reason,
		    (unsigned long long)ms);
	pipeline_event_of(p, EV_UPDATE_FAILED, ctr, NULL, "%s: %s", ctr->full_name, reason);
}

void updates_failed(struct pipeline *p, bool connection_lost, const char *reason)
{
	assert(p->requests.updates.outstanding);
	struct updates *u = &p->requests.updates;
	p->stats.updates_failed += u->batch.n;
	updates_put_back(p);
	if (!connection_lost && u->batch.n > 1) {
		u->batch_max = u->batch.n / 2;
	} else if (!connection_lost) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, u->batch.items[0].handle);
		if (ctr)
			updates_back_off(p, ctr, &u->batch.items[0], reason);
	}
	end_batch(u, p);
	updates_hurry(p);
}

DEFINE_GETTER(updates_waiting, unsigned, p->requests.updates.n + p->requests.updates.batch.n)
DEFINE_GETTER(updates_outstanding, bool, p->requests.updates.outstanding)
