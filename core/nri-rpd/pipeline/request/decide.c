/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decision: transaction, policy, controllers, invariants and commit; the roll-back if one of
 * them refuses; and the steps after a commit.
 */
#include <assert.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/nri-rpd/cache/invariant.h"
#include "core/nri-rpd/pipeline/controllers/life.h"
#include "core/nri-rpd/pipeline/request/claims.h"
#include "core/nri-rpd/pipeline/request/confine.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"
#include "core/nri-rpd/pipeline/request/sync.h"
#include "core/nri-rpd/pipeline/request/updates.h"
#include "core/nri-rpd/pipeline/state/export.h"
#include "core/nri-rpd/pipeline/request/decide.h"

#define LOG_SOURCE "policy"
#define CTRS_PER_MS 20u /* containers that a policy has to place in a millisecond */
#define OTHERS_TOLD 8u /* events about other containers per reply */

struct invariants decide_invariants(const struct pipeline *p)
{
	return (struct invariants){topo_ids(p->env.topo, RP_CPUS_ONLINE),
				   topo_ids(p->env.topo, RP_NODES_MEMORY)};
}

/* Returns the component, other than the policy, that staged what broke an invariant; NULL: the
 * policy did. */
static const char *decide_culprit(const struct pipeline *p)
{
	const struct stage *s = txn_broken(p->txn);
	if (s && s->next.confined)
		return "the daemon, which chooses the CPUs of unpinned containers,";
	if (s && s->next.granted & (DIFF_CPUS | DIFF_MEMS))
		return "the grant of a resource plugin";
	return p->policy ? NULL : "the daemon, without a policy,";
}

int decide_check(struct pipeline *p, struct err *err)
{
	struct invariants inv = decide_invariants(p);
	int r = txn_check(p->txn, &inv, err);
	if (!r)
		return 0;
	static struct log_limit limit = LOG_LIMIT(10, 60000);
	const char *culprit = decide_culprit(p);
	p->stats.invariant_breaks += !culprit;
	if (!log_allowed(&limit, LOG_SOURCE))
		return r;
	if (culprit)
		log_error("%s violates an invariant: %s", culprit, err_text(err, r));
	else
		log_error("policy %s violates an invariant: %s", instance_name(p->policy),
			  err_text(err, r));
	return r;
}

int decide_begin(struct pipeline *p, struct err *err)
{
	assert(!p->txn);
	p->txn = txn_begin(p->env.cache);
	watchdog_allow(p->watchdog, cache_n_ctrs(p->env.cache) / CTRS_PER_MS);
	return p->txn ? 0 : err_errno(err, -ENOMEM, "transaction");
}

static void decide_end(struct pipeline *p)
{
	txn_end(p->txn);
	p->txn = NULL;
	if (p->cfg.decided && !p->env.trial)
		p->cfg.decided(p->cfg.arg);
}

static void decide_commit(struct pipeline *p)
{
	assert(p->txn && !txn_committed(p->txn));
	txn_commit(p->txn);
	events_degraded(p);
	persist_txn(p);
}

void decide_drop(struct pipeline *p)
{
	assert(p->txn);
	decide_end(p);
	confine_unknown(p);
}

/* Logs how many containers a resync moved. A resync moves only containers that cannot stay, so the
 * limit on moves does not apply. */
static void warn_of_moves(struct pipeline *p)
{
	unsigned n = rebalance_count(p);
	if (n)
		log_warning("policy %s re-placed all containers and moved %u",
			    instance_name(p->policy), n);
}

static int place_anew(struct pipeline *p, struct err *err)
{
	int r = instance_sync(p->policy, err);
	if (!r)
		r = claims_follow(p, err);
	if (!r)
		r = confine(p, err);
	return r ? r : decide_check(p, err);
}

/* Lets the policy rebuild its tables from the cache, which they may no longer match. Containers
 * that move get unsolicited updates. */
static void decide_resync(struct pipeline *p)
{
	struct err err = ERR_INIT;
	p->stats.resyncs++;
	int r = decide_begin(p, &err);
	if (!r && place_anew(p, &err) == 0) {
		warn_of_moves(p);
		decide_take_effect(p);
		sync_recovered(p);
		return;
	}
	if (!r)
		decide_drop(p);
	p->requests.sync_failed = true;
	log_error("policy %s cannot synchronize its state with the containers: %s",
		  instance_name(p->policy), err.text);
}

void request_undo(struct pipeline *p)
{
	void (*fn)(struct pipeline *, void *) = p->requests.undo;
	p->requests.undo = NULL;
	if (fn)
		fn(p, p->requests.undo_arg);
}

static void decide_undo(struct pipeline *p)
{
	decide_drop(p);
	request_undo(p);
	if (p->policy && instance_rolled_back(p->policy) == RP_RESYNC)
		decide_resync(p);
}

int decide(struct pipeline *p, int (*fn)(struct pipeline *p, void *arg, struct err *err), void *arg,
	   struct err *err)
{
	int r = decide_begin(p, err);
	if (r)
		return r;
	uint64_t failures = p->policy ? instance_failures(p->policy) : 0;
	r = fn(p, arg, err);
	if (r) /* an error of the policy, not of a plugin, a controller or the daemon */
		p->stats.policy_errors += p->policy && instance_failures(p->policy) != failures;
	else
		r = claims_follow(p, err);
	if (!r)
		r = confine(p, err);
	if (!r)
		r = decide_check(p, err);
	if (r) {
		decide_undo(p);
		return r;
	}
	decide_commit(p);
	return 0;
}

const struct stage *decide_touched(const struct pipeline *p)
{
	return p->txn ? txn_touched(p->txn) : NULL;
}

/* ---- after a decision ------------------------------------------------------------------------ */

void decide_reply(struct pipeline *p, struct reply *reply, const struct ctr *skip)
{
	assert(!p->txn || txn_committed(p->txn));
	updates_of_touched(p, skip);
	reply->updates = p->requests.updates.reply.items;
	reply->n_updates = p->requests.updates.reply.n;
}

static void put_change(struct buf *text, const char *what, const struct iset *was,
		       const struct iset *now)
{
	(void)buf_printf(text, "%s%s %s → %s", buf_len(text) ? ", " : "", what,
			 was ? was->text : "-", now->text);
}

bool moves_memory(const struct pipeline *p, const struct iset *was, const struct iset *now)
{
	const struct rp_ids all = topo_ids(p->env.topo, RP_NODES_MEMORY);
	return was != now && !rp_ids_equal(was ? was->ids : all, now ? now->ids : all);
}

/* Returns false if neither CPUs nor memory nodes changed. */
static bool describe_move(const struct pipeline *p, const struct stage *s, struct buf *text)
{
	const struct decision *was = &s->next, *now = &s->ctr->cur;
	if (now->cpus && was->cpus != now->cpus)
		put_change(text, "CPUs", was->cpus, now->cpus);
	if (now->mems && moves_memory(p, was->mems, now->mems))
		put_change(text, "memory nodes", was->mems, now->mems);
	return buf_len(text);
}

/* Records the event of a move, with the last line that the policy explained it with. */
static void decide_event_of_move(struct pipeline *p, const struct ctr *ctr, struct buf *text)
{
	const char *why = ctr->trail.txn == txn_id(p->txn) ? ctr->trail.text : NULL;
	size_t end = why && *why ? strlen(why) - 1 : 0, at = end; /* lines end with a newline */
	while (at && why[at - 1] != '\n')
		at--;
	if (end > at)
		(void)buf_printf(text, " (%.*s)", (int)(end - at), why + at);
	pipeline_event_of(p, EV_MOVED, ctr, NULL, "%s: %s", ctr->full_name, buf_text(text));
}

static void tell_moves(struct pipeline *p)
{
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		_cleanup_(buf_fini) struct buf text = BUF_INIT;
		if (!describe_move(p, s, &text))
			continue;
		p->stats.moved++;
		log_info("%s: %s", s->ctr->full_name, buf_text(&text));
		decide_event_of_move(p, s->ctr, &text);
	}
}

void decide_tell_others(struct pipeline *p, const struct ctr *cause)
{
	unsigned n = 0;
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		_cleanup_(buf_fini) struct buf text = BUF_INIT;
		if (s->ctr == cause || !s->next.cpus || s->next.cpus == s->ctr->cur.cpus ||
		    ++n > OTHERS_TOLD || !describe_move(p, s, &text))
			continue;
		decide_event_of_move(p, s->ctr, &text);
	}
	if (n > OTHERS_TOLD)
		pipeline_event(p, EV_MOVED, "the CPUs of %u more containers changed with them",
			       n - OTHERS_TOLD);
}

void decide_settle(struct pipeline *p)
{
	updates_settle(p);
	decide_close(p, NULL);
}

void decide_take_effect(struct pipeline *p)
{
	assert(p->txn);
	if (!txn_committed(p->txn))
		decide_commit(p);
	tell_moves(p);
	decide_settle(p);
}

int decide_event(struct pipeline *p, int (*fn)(struct pipeline *p, void *arg, struct err *err),
		 void *arg, struct err *err)
{
	assert(!p->txn);
	int r = decide(p, fn, arg, err);
	if (!r)
		decide_take_effect(p);
	return r;
}

static uint32_t hook_mask(uint32_t changed)
{
	return (changed & DIFF_CPUS ? RP_CHANGED_CPUS : 0u) |
	       (changed & DIFF_MEMS ? RP_CHANGED_MEMS : 0u) |
	       (changed & (DIFF_SHARES | DIFF_QUOTA | DIFF_PERIOD) ? RP_CHANGED_CPU_SHARE : 0u) |
	       (changed & (DIFF_MEM_LIMIT | TXN_CHANGED_TOPTIER) ? RP_CHANGED_MEMORY : 0u) |
	       (changed & TXN_CHANGED_CLASS ? RP_CHANGED_CLASS : 0u);
}

/* Returns RP_CHANGED_… for values that the kubelet has changed in a resize. */
static uint32_t needs_mask(const struct needs *a, const struct needs *b)
{
	return (a->mem_limit != b->mem_limit ? RP_CHANGED_MEMORY : 0u) |
	       (a->cpu_request != b->cpu_request || a->cpu_limit != b->cpu_limit
			? RP_CHANGED_CPU_SHARE
			: 0u);
}

static void post_update(struct pipeline *p, struct ctr *ctr, uint32_t mask)
{
	for (unsigned i = 0; i < p->controllers.n; i++) {
		struct err err = ERR_INIT;
		struct controller *c = p->controllers.list[i];
		if (controller_runs(c) && instance_post_update(c->instance, ctr, mask, &err))
			log_warning("%s: controller %s: %s", ctr->full_name, c->name, err.text);
	}
}

static void run_hooks(struct pipeline *p, const struct ctr *created)
{
	assert(txn_committed(p->txn));
	export_touched(p, created);
	if (!p->controllers.n || p->env.trial)
		return;
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		/* after the commit s->next holds the previous decision */
		uint32_t mask =
			hook_mask(txn_changed(s)) | needs_mask(&s->ctr->cur.needs, &s->next.needs);
		if (s->ctr != created && mask && ctr_can_update(s->ctr))
			post_update(p, s->ctr, mask);
	}
}

void decide_close(struct pipeline *p, const struct ctr *created)
{
	if (!p->txn)
		return;
	run_hooks(p, created);
	decide_end(p);
}

/* ---- release --------------------------------------------------------------------------------- */

static int stage_exited(struct pipeline *p, void *arg, struct err *err)
{
	struct ctr *ctr = arg;
	struct decision *d = txn_stage(p->txn, ctr);
	if (!d)
		return err_errno(err, -ENOMEM, "container %s", ctr->full_name);
	d->state = RP_STATE_EXITED;
	txn_put_set(p->env.cache, &d->exclusive, NULL);
	txn_put_blob(&d->private_data, NULL);
	txn_put_blob(&d->degraded, NULL);
	d->claimed = false;
	return 0;
}

int decide_stage_release(struct pipeline *p, struct ctr *ctr, struct err *err)
{
	assert(p->txn && !txn_committed(p->txn));
	/* the policy has no record of the container */
	bool hidden = txn_view(ctr)->claimed || claim_is_controlled(ctr);
	int r = p->policy && !hidden ? instance_release(p->policy, ctr, err) : 0;
	return r ? r : stage_exited(p, ctr, err);
}

DECISION_STEP(decide_do_release, decide_stage_release(p, arg, err))

/* Marks a container that the policy refuses to release as exited. The policy then places the other
 * containers again. */
static int release_by_force(struct pipeline *p, void *arg, struct err *err)
{
	int r = stage_exited(p, arg, err);
	return r || !p->policy ? r : instance_sync(p->policy, err);
}

void decide_release(struct pipeline *p, struct ctr *ctr)
{
	struct err err = ERR_INIT;
	if (decide(p, decide_do_release, ctr, &err) == 0)
		return;
	struct err again = ERR_INIT;
	log_error("%s: policy %s would not release it: %s; releasing it by force", ctr->full_name,
		  p->policy ? instance_name(p->policy) : "none", err.text);
	if (decide(p, release_by_force, ctr, &again) == 0)
		return;
	if (decide(p, stage_exited, ctr, &again) != 0)
		log_error("%s: cannot be released: %s", ctr->full_name, again.text);
}
