/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronize: replaces the cache's containers by the runtime's list. Listed containers that are
 * known keep their decision, and only differing values are sent. New containers are placed,
 * unlisted ones are removed.
 */
#include <assert.h>

#include <utlist.h>

#include "core/nri-rpd/pipeline/reload/apply.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/request/adjust.h"
#include "core/nri-rpd/pipeline/request/claims.h"
#include "core/nri-rpd/pipeline/request/empty_pods.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/host/service/settings.h"
#include "core/nri-rpd/pipeline/request/confine.h"
#include "core/nri-rpd/pipeline/request/sync.h"
#include "core/nri-rpd/pipeline/request/updates.h"
#include "core/nri-rpd/pipeline/state/export.h"
#include "core/nri-rpd/pipeline/wait/plugin_grants.h"

#define LOG_SOURCE "sync"
#define LATE_MAX 32u /* largest number of containers placed late that are reported one by one */
#define NS_PER_S UINT64_C(1000000000)

void sync_begin(struct pipeline *p)
{
	p->requests.sync_mark++;
}

void sync_pod(struct pipeline *p, const struct pod_desc *desc)
{
	assert(p->requests.kind == REQ_SYNCHRONIZE);
	struct err err = ERR_INIT;
	struct pod *pod;
	if (cache_put_pod(p->env.cache, desc, &pod, &err)) {
		log_warning("ignoring a pod of the runtime: %s", err.text);
		return;
	}
	pod->sync_mark = p->requests.sync_mark;
	if (!pod->store.facts)
		store_put_pod(p->store, pod);
}

/*
 * Returns true if a reported number comes from a resize that the daemon has not seen. A daemon that
 * was killed may not have stored which of its numbers the runtime has acknowledged, so all of them
 * are recognized: acknowledged, decided, sent without an acknowledgement, and requested by the
 * runtime itself.
 */
static bool sync_number_resized(int64_t reported, int64_t acked, int64_t decided, int64_t sent,
				int64_t requested)
{
	return reported != RP_NOT_SET && reported != 0 && reported != acked &&
	       reported != decided && reported != sent && reported != requested;
}

/* Clears all reported values except the numbers that come from a resize. Returns false if nothing
 * is left. */
static bool sync_resized(const struct ctr *ctr, struct res_desc *res)
{
	const struct values *acked = &ctr->acked, *sent = &ctr->sent, *asked = &ctr->requested;
	const struct decision *d = &ctr->cur;
	bool shares = sync_number_resized(res->shares, acked->shares, d->shares, sent->shares,
					  asked->shares);
	bool quota =
		sync_number_resized(res->quota, acked->quota, d->quota, sent->quota, asked->quota);
	bool mem_limit = sync_number_resized(res->mem_limit, acked->mem_limit, d->mem_limit,
					     sent->mem_limit, asked->mem_limit);
	res->cpus = res->mems = NULL;
	if (!shares)
		res->shares = RP_NOT_SET;
	if (!quota)
		res->quota = res->period = RP_NOT_SET;
	if (!mem_limit)
		res->mem_limit = RP_NOT_SET;
	return shares || quota || mem_limit;
}

/* Clears acknowledged sets that a runtime which reports resources does not report. The reply that
 * carried them was lost, and the container was created without them. */
static void forget_sets(struct pipeline *p, struct ctr *ctr, const struct res_desc *res)
{
	if (res->shares == RP_NOT_SET)
		return;
	if (!res->cpus || !*res->cpus)
		txn_put_set(p->env.cache, &ctr->acked.cpus, NULL);
	if (!res->mems || !*res->mems)
		txn_put_set(p->env.cache, &ctr->acked.mems, NULL);
}

/*
 * Corrects a container's state where the list of the runtime contradicts an earlier report. A
 * listed container that was reported as stopped or removed runs: its CPUs were released, so it has
 * no decision any more and is placed like a container that was created while the daemon was away.
 */
static void sync_change_life(struct pipeline *p, struct ctr *ctr, uint32_t state)
{
	struct cache *c = p->env.cache;
	struct txn *t = txn_begin(c);
	struct decision *d = t ? txn_stage(t, ctr) : NULL;
	if (d) {
		d->state = state;
		txn_put_set(c, &d->exclusive, NULL);
		d->group = 0;
		if (ctr_live(state)) {
			txn_put_set(c, &d->cpus, NULL);
			d->needs = ctr->wanted;
			d->confined = false;
			log_warning("%s was reported as ended, but the runtime lists it as %s: "
				    "placing it again",
				    ctr->full_name,
				    state == RP_STATE_CREATED ? "created" : "running");
		}
		txn_commit(t);
		store_put_ctr(p->store, ctr);
	}
	txn_end(t);
}

/*
 * Updates a tracked container from the runtime's report: the reported values are effective. Shares,
 * quota or memory limit that the daemon does not know were changed by the kubelet while the daemon
 * was away.
 */
static void take_known(struct pipeline *p, struct ctr *ctr, const struct ctr_desc *d)
{
	const struct values asked = ctr->requested;
	struct res_desc resized = d->res;
	bool changed = sync_resized(ctr, &resized);
	(void)values_overlay(p->env.cache, &ctr->acked, &d->res, true);
	ctr->sent = (struct values)VALUES_NONE;
	forget_sets(p, ctr, &d->res);
	if (changed) {
		(void)values_overlay(p->env.cache, &ctr->requested, &resized, true);
		decision_follow(&ctr->cur, &asked, &ctr->requested);
		cache_derive_resized(p->env.cache, ctr);
		ctr->store.facts = false;
		ctr->store.missing |= TXN_CHANGED_OTHER;
		store_put_ctr(p->store, ctr);
	}
	if (ctr_live(ctr->cur.state) == ctr_live(d->state))
		ctr->cur.state = d->state;
	else
		sync_change_life(p, ctr, d->state);
}

/* Returns true if the daemon placed containers of this node before. A container without a record
 * was then created while the daemon was away. */
static bool sync_was_away(const struct pipeline *p)
{
	return p->runtime.synchronized_ns || str_has_prefix(p->state.store_state, "restored");
}

void sync_ctr(struct pipeline *p, const struct ctr_desc *desc, const struct ctr_desc *later)
{
	assert(p->requests.kind == REQ_SYNCHRONIZE);
	struct err err = ERR_INIT;
	struct ctr_desc d = *desc;
	struct ctr *known = cache_ctr(p->env.cache, d.id), *ctr;
	if (d.state == RP_STATE_CREATING)
		d.state = RP_STATE_RUNNING;
	if (cache_put_ctr(p->env.cache, &d, &ctr, &err)) {
		log_warning("ignoring a container of the runtime: %s", err.text);
		return;
	}
	if (known)
		take_known(p, ctr, &d);
	else
		ctr->late = ctr_live(d.state) && sync_was_away(p);
	ctr->verify.starting = !known && d.state == RP_STATE_CREATED;
	ctr->sync_mark = p->requests.sync_mark;
	ctr->desc = later;
	if (ctr_live(ctr->cur.state))
		ctr->pod->stopped = ctr->pod->over = false;
}

void sync_abandon(struct pipeline *p)
{
	struct ctr *ctr;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr)
		ctr->desc = NULL;
}

static void drop_unlisted(struct pipeline *p)
{
	struct ctr *ctr, *next;
	DL_FOREACH_SAFE(cache_ctrs(p->env.cache), ctr, next)
	{
		if (ctr->sync_mark == p->requests.sync_mark || ctr->device)
			continue;
		log_debug("%s was removed", ctr->full_name);
		if (ctr_live(ctr->cur.state))
			controllers_post_stop(p, ctr);
		request_forget_ctr(p, ctr);
	}
	for (struct pod *pod = cache_pods(p->env.cache), *after; pod; pod = after) {
		after = pod->hh.next;
		if (pod->ctrs && pod->ctrs->device)
			continue; /* a claim */
		if (pod->sync_mark != p->requests.sync_mark || empty_pods_is_gone(p, pod))
			request_forget_pod(p, pod);
	}
}

/* Returns true if a is newer than b. Compares the times of creation, then the states (created is
 * newer than running), then the order of the list. */
static bool sync_newer(const struct ctr *a, const struct ctr *b)
{
	if (a->created_ns != b->created_ns)
		return a->created_ns > b->created_ns;
	if (a->cur.state != b->cur.state)
		return a->cur.state == RP_STATE_CREATED;
	return a->seq > b->seq;
}

static void settle_names(struct pipeline *p)
{
	struct ctr *ctr;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		struct ctr *named = cache_ctr_by_name(p->env.cache, ctr->full_name);
		if (!named || named == ctr || !ctr_live(ctr->cur.state) ||
		    !ctr_live(named->cur.state))
			continue;
		struct ctr *winner = sync_newer(ctr, named) ? ctr : named,
			   *loser = winner == ctr ? named : ctr;
		log_notice("%s: container %s has been replaced by %s", ctr->full_name, loser->id,
			   winner->id);
		cache_claim_name(p->env.cache, winner);
		/* Exclusive CPUs of the loser need no separate release: the policy places all
		 * containers next. */
		sync_change_life(p, loser, RP_STATE_EXITED);
		controllers_post_stop(p, loser);
	}
}

/* Returns true if the runtime's name or features differ from those at the previous
 * synchronization. */
static bool is_other_runtime(struct pipeline *p)
{
	const struct runtime_facts was = p->requests.last_synced, *now = &p->runtime.facts;
	p->requests.last_synced = *now;
	return was.flags != now->flags || !str_eq(was.name, now->name);
}

static int tell_of_runtime(struct pipeline *p, struct err *err)
{
	const struct rp_event ev = {.size = sizeof ev, .type = RP_EVENT_RUNTIME};
	return instance_knows(p->policy, 3) ? instance_event(p->policy, &ev, err) : 0;
}

static int sync_synchronize(struct pipeline *p, void *arg, struct err *err)
{
	const bool *other_runtime = arg;
	int r = adjust_stage_all(p, err);
	if (!r)
		r = claims_stage_listed(p, err);
	if (r)
		return r;
	if (p->policy && p->requests.other_policy)
		r = apply_other_policy(p, p->policy, conf_core(p->conf)->reset_on_switch, err);
	else if (p->policy)
		r = instance_sync(p->policy, err);
	if (!r && p->policy && *other_runtime)
		r = tell_of_runtime(p, err);
	return r ? r : granted_stage_all(p, NULL, err);
}

/* Queues containers whose decision differs from the runtime's values and that the transaction did
 * not touch. Containers in the reply are queued too: once the reply was sent, they have no
 * difference left and are skipped. */
static void stage_differing(struct pipeline *p)
{
	struct ctr *ctr;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		if (ctr_live(ctr->cur.state) && !ctr->in_updates && ctr_diff(ctr))
			updates_add(p, ctr);
	}
}

/* Runs only the step that every decision ends with: keeps unpinned containers off CPUs that other
 * containers own. */
DECISION_STEP(sync_confine_only, (confine_unknown(p), 0))

void sync_recovered(struct pipeline *p)
{
	p->requests.sync_failed = false;
	if (p->runtime.synchronized)
		settings_release_former(&p->env);
}

/* Reports the containers that were created while the daemon was away and are placed now. */
static void sync_report_late(struct pipeline *p)
{
	unsigned n = 0;
	struct ctr *ctr;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		bool late = ctr->late && ctr->cur.cpus && ctr->cur.cpus->count;
		ctr->late = false;
		if (!late || ++n > LATE_MAX)
			continue;
		uint64_t now = clock_wall_ns(), at = ctr->created_ns;
		if (at && at <= now)
			pipeline_event_of(p, EV_LATE, ctr, NULL,
					  "%s ran unplaced for %llu.%llu s: created while nri-rpd "
					  "was away",
					  ctr->full_name,
					  (unsigned long long)((now - at) / NS_PER_S),
					  (unsigned long long)((now - at) / (NS_PER_S / 10) % 10));
		else
			pipeline_event_of(p, EV_LATE, ctr, NULL,
					  "%s ran unplaced: created while nri-rpd was away",
					  ctr->full_name);
	}
	if (n > LATE_MAX)
		pipeline_event(p, EV_LATE, "%u more containers ran unplaced", n - LATE_MAX);
}

void sync_end(struct pipeline *p, struct reply *ret)
{
	assert(p->requests.kind == REQ_SYNCHRONIZE && !p->txn);
	struct err err = ERR_INIT;
	reply_clear(ret);
	drop_unlisted(p);
	settle_names(p);
	devices_synchronizing(p);
	confine_unknown(p);
	/* If decide() fails but the policy's resync places all containers, sync_recovered() clears
	 * this. */
	p->requests.sync_failed = true;
	bool other_runtime = is_other_runtime(p);
	int r = decide(p, sync_synchronize, &other_runtime, &err);
	if (!r)
		p->requests.sync_failed = p->requests.other_policy = false;
	if (r && !p->requests.sync_failed) {
		log_warning("policy %s placed the containers of the runtime at the second attempt: "
			    "%s",
			    instance_name(p->policy), err.text);
	} else if (r) {
		log_error("policy %s cannot place the containers of the runtime: %s; they keep "
			  "their CPUs",
			  p->policy ? instance_name(p->policy) : "-", err.text);
		pipeline_event(p, EV_DEGRADED, "synchronisation: %s", err.text);
	}
	if (r && p->requests.sync_failed && decide(p, sync_confine_only, NULL, &err))
		log_error("containers without CPUs cannot be kept off the exclusive CPUs of other "
			  "containers: %s",
			  err.text);
	decide_reply(p, ret, NULL);
	p->runtime.synchronized = true;
	p->runtime.synchronized_ns = clock_wall_ns();
	if (!r)
		sync_report_late(p);
	sync_abandon(p);
	stage_differing(p);
	persist_later(p);
	export_clean(p);
	log_notice("synchronized with %s %s: %u pods, %u containers, %u updates",
		   p->runtime.facts.name, p->runtime.facts.version, cache_n_pods(p->env.cache),
		   cache_n_ctrs(p->env.cache), ret->n_updates);
	pipeline_event(p, EV_RUNTIME, "synchronized: %u pods, %u containers, %u updates",
		       cache_n_pods(p->env.cache), cache_n_ctrs(p->env.cache), ret->n_updates);
	if (p->cfg.synchronized)
		p->cfg.synchronized(p->cfg.arg);
}
