/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates that nobody asked for: after a reload, a hot-plug, a timer of the policy. A container is in the queue at most once, what is
 * sent is what is decided when it is sent, and what the runtime has already is not sent. One batch is under way at a time.
 *
 * A runtime that fails one update of a batch does not say which: the batch is sent again, one container at a time, with growing pauses
 * for those that go on failing.
 */
#include <stdlib.h>
#include <string.h>

#include "core/pipeline/internal.h"
#include "core/util/log.h"

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

int updates_init(struct pipeline *p)
{
	p->updates.retry = loop_timer_new(p->env.loop, retry, p);
	return p->updates.retry ? 0 : -ENOMEM;
}

static void drop_batch(struct pipeline *p)
{
	struct updates *u = &p->updates;
	for (uint32_t i = 0; i < u->n_batch; i++) {
		free(u->batch[i].id);
		values_fini(p->env.cache, &u->batch[i].values);
	}
	u->n_batch = 0;
	u->outstanding = false;
}

void updates_fini(struct pipeline *p)
{
	struct updates *u = &p->updates;
	drop_batch(p);
	free(u->batch);
	free(u->waiting);
	loop_timer_free(u->retry);
	*u = (struct updates){0};
}

void updates_add(struct pipeline *p, struct ctr *ctr)
{
	struct updates *u = &p->updates;
	if (ctr->in_updates || p->env.trial)
		return;
	if (u->n == u->cap) {
		uint32_t cap = u->cap ? u->cap * 2 : 64;
		rp_ctr *grown = realloc(u->waiting, cap * sizeof *grown);
		if (!grown) {
			log_error("%s: out of memory, its update waits for the next change",
				  ctr->full_name);
			return;
		}
		u->waiting = grown;
		u->cap = cap;
	}
	u->waiting[u->n++] = ctr->handle;
	ctr->in_updates = true;
	if (u->n == 1)
		announce(p);
}

static bool wanted(const struct ctr *ctr)
{
	return ctr && ctr->cur.state != RP_STATE_EXITED && ctr->cur.state != RP_STATE_CREATING;
}

static int add_item(struct pipeline *p, struct ctr *ctr, uint32_t fields)
{
	struct updates *u = &p->updates;
	if (u->n_batch == u->cap_batch) {
		uint32_t cap = u->cap_batch ? u->cap_batch * 2 : 64;
		struct update_item *grown = realloc(u->batch, cap * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		u->batch = grown;
		u->cap_batch = cap;
	}
	struct update_item *item = &u->batch[u->n_batch];
	char *id = strdup(ctr->id);
	if (!id)
		return -ENOMEM;
	const struct decision *d = &ctr->cur;
	const struct values v = {d->shares, d->quota, d->period, d->mem_limit, d->cpus, d->mems};
	*item = (struct update_item){.ctr = ctr->handle, .id = id, .fields = fields};
	values_copy(&item->values, &v);
	u->n_batch++;
	return 0;
}

static int loses(struct pipeline *p, const struct update_item *item)
{
	const struct ctr *ctr = cache_ctr_of(p->env.cache, item->ctr);
	const struct iset *has = ctr ? ctr->acked.cpus : NULL, *gets = item->values.cpus;
	return gets && (!has || !rp_ids_subset(has->ids, gets->ids));
}

/* Those that lose CPUs go first: nobody may get a CPU before its former user has let go of it. */
static void losers_first(struct pipeline *p)
{
	struct updates *u = &p->updates;
	uint32_t first = 0;
	struct update_item *sorted = malloc(u->n_batch * sizeof *sorted);
	if (!sorted)
		return;
	for (int pass = 1; pass >= 0; pass--)
		for (uint32_t i = 0; i < u->n_batch; i++)
			if (loses(p, &u->batch[i]) == pass)
				sorted[first++] = u->batch[i];
	memcpy(u->batch, sorted, u->n_batch * sizeof *sorted);
	free(sorted);
}

struct update_item *updates_next(struct pipeline *p, uint32_t *ret_n)
{
	struct updates *u = &p->updates;
	uint32_t taken = 0, max = u->single ? 1 : UPDATE_BATCH_MAX;
	if (u->outstanding || !u->n || (u->single && loop_timer_armed(u->retry)))
		return NULL;
	for (; taken < u->n && u->n_batch < max; taken++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, u->waiting[taken]);
		if (!ctr)
			continue;
		ctr->in_updates = false;
		uint32_t fields = wanted(ctr) ? ctr_diff(ctr) : 0;
		if (fields && add_item(p, ctr, fields)) {
			ctr->in_updates = true;
			break;
		}
	}
	u->n -= taken;
	memmove(u->waiting, u->waiting + taken, u->n * sizeof *u->waiting);
	if (!u->n_batch) {
		u->single = u->single && u->n;
		return NULL;
	}
	losers_first(p);
	u->outstanding = true;
	*ret_n = u->n_batch;
	return u->batch;
}

/* What was sent is what the runtime has; what is decided may have changed meanwhile. */
static void acknowledge(struct pipeline *p, struct ctr *ctr, const struct update_item *item)
{
	struct values *a = &ctr->acked;
	const struct values *v = &item->values;
	if (item->fields & DIFF_CPUS)
		txn_put_set(p->env.cache, &a->cpus, intern_ref(v->cpus));
	if (item->fields & DIFF_MEMS)
		txn_put_set(p->env.cache, &a->mems, intern_ref(v->mems));
	if (item->fields & DIFF_SHARES)
		a->shares = v->shares;
	if (item->fields & DIFF_QUOTA)
		a->quota = v->quota;
	if (item->fields & DIFF_PERIOD)
		a->period = v->period;
	if (item->fields & DIFF_MEM_LIMIT)
		a->mem_limit = v->mem_limit;
	ctr->unstored |= ctr_unstored_acked(item->fields);
	store_put_ctr(p->store, ctr);
	if (wanted(ctr) && ctr_diff(ctr))
		updates_add(p, ctr);
}

void updates_acked(struct pipeline *p)
{
	struct updates *u = &p->updates;
	p->stats.updates_sent += u->n_batch;
	for (uint32_t i = 0; i < u->n_batch; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, u->batch[i].ctr);
		if (ctr)
			acknowledge(p, ctr, &u->batch[i]);
	}
	drop_batch(p);
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
	struct updates *u = &p->updates;
	bool alone = u->n_batch == 1;
	p->stats.updates_failed += u->n_batch;
	for (uint32_t i = 0; i < u->n_batch; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, u->batch[i].ctr);
		if (!ctr)
			continue;
		updates_add(p, ctr);
		if (alone && !connection_lost) {
			log_warning("%s: the runtime did not take CPUs %s: %s, retrying",
				    ctr->full_name,
				    u->batch[i].values.cpus ? u->batch[i].values.cpus->text : "-",
				    reason);
			pipeline_event(p, EV_UPDATE_FAILED, "%s: %s", ctr->full_name, reason);
		}
	}
	drop_batch(p);
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
	return p->updates.n + p->updates.n_batch;
}

bool updates_outstanding(const struct pipeline *p)
{
	return p->updates.outstanding;
}
