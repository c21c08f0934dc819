/* SPDX-License-Identifier: Apache-2.0 */
/* One decision: transaction, policy, controllers, invariants, commit; and the way back when one of them says no. */
#include <stdlib.h>

#include "core/pipeline/apply.h"
#include "core/pipeline/internal.h"
#include "core/util/log.h"

#define LOG_SOURCE "policy"

struct invariants decide_invariants(const struct pipeline *p)
{
	return (struct invariants){topo_ids(p->env.topo, RP_CPUS_ONLINE),
				   topo_ids(p->env.topo, RP_NODES_MEMORY)};
}

int decide_check(struct pipeline *p, struct err *err)
{
	struct invariants inv = decide_invariants(p);
	int r = txn_check(p->txn, &inv, err);
	if (!r)
		return 0;
	static struct log_limit limit = LOG_LIMIT(10, 60000);
	p->stats.invariant_breaks++;
	if (log_allowed(&limit, LOG_SOURCE))
		log_error("module %s misbehaves: %s", p->policy ? instance_name(p->policy) : "?",
			  err_text(err, r));
	return r;
}

static int begin(struct pipeline *p, struct err *err)
{
	p->txn = txn_begin(p->env.cache);
	return p->txn ? 0 : err_errno(err, -ENOMEM, "transaction");
}

void decide_end(struct pipeline *p)
{
	txn_end(p->txn);
	p->txn = NULL;
}

static void commit(struct pipeline *p)
{
	txn_commit(p->txn);
	persist_txn(p);
}

/* It keeps what is right still: whoever moves could not stay, so that no budget of moves holds here. */
static void tell_resync(struct pipeline *p)
{
	unsigned n = rebalance_count(p);
	if (n)
		log_warning("policy %s has looked at all containers anew and moved %u",
			    instance_name(p->policy), n);
	apply_log_moves(p);
	decide_queue(p);
	decide_hooks(p, NULL);
}

/* The policy's tables may not fit the cache any more: it rebuilds them. What that changes is decided anew and said later. */
static void resync(struct pipeline *p)
{
	struct err err = ERR_INIT;
	p->stats.resyncs++;
	if (begin(p, &err) == 0) {
		int r = instance_sync(p->policy, &err);
		if (!r)
			r = confine(p, &err);
		if (!r)
			r = decide_check(p, &err);
		if (!r) {
			commit(p);
			tell_resync(p);
			decide_end(p);
			sync_recovered(p);
			return;
		}
		decide_end(p);
		confine_unknown(p);
	}
	p->sync_failed = true;
	log_error("policy %s cannot bring its state in line with the containers: %s",
		  instance_name(p->policy), err.text);
}

static void undo(struct pipeline *p)
{
	decide_end(p);
	confine_unknown(p);
	if (p->policy && instance_rolled_back(p->policy) == RP_RESYNC)
		resync(p);
}

int decide(struct pipeline *p, int (*fn)(struct pipeline *p, void *arg, struct err *err), void *arg,
	   struct err *err)
{
	int r = begin(p, err);
	if (r)
		return r;
	r = fn(p, arg, err);
	if (r)
		p->stats.policy_errors++;
	else
		r = confine(p, err);
	if (!r)
		r = decide_check(p, err);
	if (r) {
		undo(p);
		return r;
	}
	commit(p);
	return 0;
}

const struct stage *decide_touched(const struct pipeline *p)
{
	return p->txn ? txn_touched(p->txn) : NULL;
}

/* ---- what follows a decision ---------------------------------------------------------------------------------------- */

static bool can_update(const struct ctr *ctr)
{
	return ctr->cur.state == RP_STATE_CREATED || ctr->cur.state == RP_STATE_RUNNING ||
	       ctr->cur.state == RP_STATE_PAUSED;
}

static int add_update(struct pipeline *p, struct reply *reply, struct ctr *ctr, uint32_t fields)
{
	if (reply->n_updates == p->cap_reply_updates) {
		uint32_t cap = p->cap_reply_updates ? p->cap_reply_updates * 2 : 64;
		struct reply_update *grown = realloc(p->reply_updates, cap * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		p->reply_updates = grown;
		p->cap_reply_updates = cap;
	}
	p->reply_updates[reply->n_updates++] = (struct reply_update){.ctr = ctr, .fields = fields};
	reply->updates = p->reply_updates;
	return 0;
}

static bool loses_cpus(const struct ctr *ctr)
{
	const struct iset *has = ctr->acked.cpus, *gets = ctr->cur.cpus;
	return gets && (!has || !rp_ids_subset(has->ids, gets->ids));
}

static int update_cmp(const void *a, const void *b)
{
	const struct reply_update *x = a, *y = b;
	if (x->loses != y->loses)
		return x->loses ? -1 : 1;
	return x->ctr->seq < y->ctr->seq ? -1 : x->ctr->seq > y->ctr->seq;
}

/* Who gives CPUs up goes first, so that they are free when others get them. */
static void sort_updates(struct reply_update *updates, uint32_t n)
{
	bool sorted = true;
	for (uint32_t i = 0; i < n; i++) {
		updates[i].loses = loses_cpus(updates[i].ctr);
		sorted = sorted && (!i || update_cmp(&updates[i - 1], &updates[i]) < 0);
	}
	if (!sorted)
		qsort(updates, n, sizeof *updates, update_cmp);
}

void decide_reply(struct pipeline *p, struct reply *reply, const struct ctr *skip, bool with_skip)
{
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		struct ctr *ctr = s->ctr;
		if ((ctr == skip && !with_skip) || !can_update(ctr))
			continue;
		uint32_t fields = ctr_diff(ctr);
		if (fields && add_update(p, reply, ctr, fields))
			updates_add(p, ctr);
	}
	sort_updates(reply->updates, reply->n_updates);
}

void decide_queue(struct pipeline *p)
{
	for (const struct stage *s = decide_touched(p); s; s = s->link)
		if (can_update(s->ctr) && ctr_diff(s->ctr))
			updates_add(p, s->ctr);
}

static uint32_t hook_mask(uint32_t changed)
{
	return (changed & DIFF_CPUS ? RP_CHANGED_CPUS : 0u) |
	       (changed & DIFF_MEMS ? RP_CHANGED_MEMS : 0u) |
	       (changed & (DIFF_SHARES | DIFF_QUOTA | DIFF_PERIOD) ? RP_CHANGED_CPU_SHARE : 0u) |
	       (changed & DIFF_MEM_LIMIT ? RP_CHANGED_MEMORY : 0u) |
	       (changed & TXN_CHANGED_CLASS ? RP_CHANGED_CLASS : 0u);
}

/* A resize: the kubelet's values, which are no decision of ours. */
static uint32_t needs_mask(const struct needs *a, const struct needs *b)
{
	return (a->mem_limit != b->mem_limit ? RP_CHANGED_MEMORY : 0u) |
	       (a->cpu_request != b->cpu_request || a->cpu_limit != b->cpu_limit
			? RP_CHANGED_CPU_SHARE
			: 0u);
}

static void post_update(struct pipeline *p, struct ctr *ctr, uint32_t mask)
{
	for (unsigned i = 0; i < p->n_controllers; i++) {
		struct err err = ERR_INIT;
		struct controller *c = &p->controllers[i];
		if (c->running && instance_post_update(c->instance, ctr, mask, &err))
			log_warning("%s: controller %s: %s", ctr->full_name, c->name, err.text);
	}
}

void decide_hooks(struct pipeline *p, const struct ctr *skip)
{
	export_touched(p, skip);
	if (!p->n_controllers)
		return;
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		/* committed: the stage holds what was before */
		uint32_t mask =
			hook_mask(txn_changed(s)) | needs_mask(&s->ctr->cur.needs, &s->next.needs);
		if (s->ctr != skip && mask && can_update(s->ctr))
			post_update(p, s->ctr, mask);
	}
}

/* ---- release -------------------------------------------------------------------------------------------------------- */

static int stage_exited(struct pipeline *p, struct ctr *ctr, struct err *err)
{
	struct decision *d = txn_stage(p->txn, ctr);
	if (!d)
		return err_errno(err, -ENOMEM, "container %s", ctr->full_name);
	d->state = RP_STATE_EXITED;
	txn_put_set(p->env.cache, &d->exclusive, NULL);
	txn_put_blob(&d->private_data, NULL);
	txn_put_blob(&d->degraded, NULL);
	return 0;
}

static int release(struct pipeline *p, void *arg, struct err *err)
{
	struct ctr *ctr = arg;
	int r = p->policy ? instance_release(p->policy, ctr, err) : 0;
	return r ? r : stage_exited(p, ctr, err);
}

/* The policy would not let go of it: it is taken out of the cache's live containers, and the policy looks at the rest anew. */
static int release_by_force(struct pipeline *p, void *arg, struct err *err)
{
	int r = stage_exited(p, arg, err);
	return r || !p->policy ? r : instance_sync(p->policy, err);
}

static int release_alone(struct pipeline *p, void *arg, struct err *err)
{
	return stage_exited(p, arg, err);
}

void decide_release(struct pipeline *p, struct ctr *ctr)
{
	struct err err = ERR_INIT, again = ERR_INIT;
	if (decide(p, release, ctr, &err) == 0)
		return;
	log_error("%s: policy %s would not release it: %s; releasing it by force", ctr->full_name,
		  p->policy ? instance_name(p->policy) : "none", err.text);
	if (decide(p, release_by_force, ctr, &again) == 0)
		return;
	if (decide(p, release_alone, ctr, &again) != 0)
		log_error("%s: cannot be released: %s", ctr->full_name, again.text);
}
