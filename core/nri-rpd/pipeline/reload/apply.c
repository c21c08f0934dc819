/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activation of a configuration. The same steps run in the child of an attempt, where nothing is
 * committed and the moves are reported, and then in the daemon:
 *
 *   prepare    policy and controllers check the configuration; an error ends here without a change
 *   commit     the policy adopts it (on a switch: the new instance does) and places every container
 *              in one transaction
 *   check      invariants; an error returns the policy to the previous configuration
 *   take over  controllers, then the configuration itself
 */
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/pipeline/reload/apply.h"
#include "core/nri-rpd/pipeline/reload/report.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/node/noderes.h"
#include "core/nri-rpd/pipeline/request/adjust.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/host/service/settings.h"
#include "core/nri-rpd/pipeline/controllers/life.h"
#include "core/nri-rpd/pipeline/request/confine.h"
#include "core/nri-rpd/pipeline/request/sync.h"

#define LOG_SOURCE "config"

/* ---- the policy ------------------------------------------------------------------------------ */

struct placing {
	struct instance *policy;
	struct adjustments *adjustments;
	const struct conf_annotations *annotations;
	bool switching, reset;
	/* first configuration of a process: containers are placed when the runtime lists them */
	bool later;
};

/* Clears the parts of a decision that belong to the previous policy. Numbers and memory nodes
 * remain unset until the new policy decides. */
static void apply_forget(struct pipeline *p, struct decision *d)
{
	txn_put_set(p->env.cache, &d->exclusive, NULL);
	txn_put_set(p->env.cache, &d->mems, NULL);
	txn_put_blob(&d->private_data, NULL);
	txn_put_blob(&d->degraded, NULL);
	txn_put_blob(&d->data, NULL);
	d->shares = d->quota = d->period = d->mem_limit = RP_NOT_SET;
	d->policy = d->group = 0;
	d->unpinned = false;
}

/* Clears the decisions of other policies. Decisions that policy `number` made in an earlier term
 * are kept, unless `reset` is set. */
static int forget_former(struct pipeline *p, uint32_t number, bool reset, struct err *err)
{
	struct ctr *ctr;
	struct invariants inv = decide_invariants(p);
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		if (!ctr_live(ctr->cur.state) || txn_view(ctr)->claimed)
			continue;
		struct decision *d = txn_stage(p->txn, ctr);
		if (!d)
			return err_errno(err, -ENOMEM, "container %s", ctr->full_name);
		if (d->policy == number && !reset)
			continue;
		apply_forget(p, d);
		/* the host confines the container until the policy pins it */
		d->confined = d->confined || (d->cpus && !(ctr->flags & RP_CTR_PRESERVE_CPU));
		/* also resets CPUs that another component has set, because policies inspect them */
		if (reset && !ctr->device &&
		    (d->cpus || (ctr->acked.cpus && !(ctr->flags & RP_CTR_PRESERVE_CPU))))
			txn_put_set(p->env.cache, &d->cpus,
				    intern_get(cache_sets(p->env.cache), inv.online));
	}
	return 0;
}

/* Returns a number that the new policy leaves unset to the runtime's value; `otherwise` if the
 * runtime requested none. */
static void give_number(int64_t *now, int64_t was, int64_t requested, int64_t otherwise)
{
	if (*now == RP_NOT_SET && was != RP_NOT_SET)
		*now = requested != RP_NOT_SET && requested != 0 ? requested : otherwise;
}

static void give_back(struct pipeline *p, const struct ctr *ctr, struct decision *d)
{
	const struct decision *was = &ctr->cur;
	const struct values *asked = &ctr->requested;
	struct rp_ids nodes = decide_invariants(p).mem_nodes;
	give_number(&d->shares, was->shares, asked->shares, was->shares);
	give_number(&d->quota, was->quota, asked->quota, -1);
	give_number(&d->period, was->period, asked->period, was->period);
	give_number(&d->mem_limit, was->mem_limit, asked->mem_limit, was->mem_limit);
	if (d->mems || !was->mems)
		return;
	bool right = asked->mems && asked->mems->count && rp_ids_subset(asked->mems->ids, nodes);
	txn_put_set(p->env.cache, &d->mems,
		    right ? intern_ref(asked->mems) : intern_get(cache_sets(p->env.cache), nodes));
}

/* Collects the CPUs of containers that the policy has placed. */
static void placed_cpus(const struct pipeline *p, uint32_t number, struct rp_idset *ret)
{
	const struct ctr *ctr;
	rp_idset_clear(ret);
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		const struct decision *d = txn_view(ctr);
		if (ctr_live(d->state) && d->policy == number && d->cpus)
			rp_idset_or(ret, rp_ids_of(ret), d->cpus->ids);
	}
}

/* Restores a container's previous decision, including private data of the policy that made it, in
 * case that policy becomes active again. Exclusive CPUs remain exclusive unless the new policy has
 * placed containers on them. */
static void leave_as_it_was(struct pipeline *p, const struct ctr *ctr, struct decision *d,
			    struct rp_ids placed)
{
	const struct decision *was = &ctr->cur;
	bool own = was->exclusive && d->cpus == was->cpus &&
		   !rp_ids_overlap(was->exclusive->ids, placed);
	txn_put_set(p->env.cache, &d->exclusive, own ? intern_ref(was->exclusive) : NULL);
	d->confined = was->confined;
	d->policy = was->policy;
	d->group = was->group;
	txn_put_blob(&d->private_data, blob_ref(was->private_data));
	txn_put_blob(&d->data, blob_ref(was->data));
	d->amounts = was->amounts;
	txn_put_set(p->env.cache, &d->mems, intern_ref(was->mems));
}

/* Returns numbers and memory nodes to what the runtime requested; the host chooses the CPUs. Data
 * that another policy has saved with the container is kept, in case that policy becomes active
 * again. */
static void leave_unpinned(struct pipeline *p, const struct ctr *ctr, struct decision *d, bool own)
{
	const struct decision *was = &ctr->cur;
	confine_unknown(p);
	give_back(p, ctr, d);
	if (own)
		return;
	d->policy = was->policy;
	txn_put_blob(&d->private_data, blob_ref(was->private_data));
}

/* Returns true if a policy that pins containers leaves this one unpinned. The host then chooses the
 * container's CPUs, because those chosen by the previous policy are no longer meaningful. */
static bool apply_is_left_unpinned(struct instance *policy, const struct ctr *ctr,
				   const struct decision *d)
{
	return d->confined && !str_eq(instance_name(policy), "none") &&
	       !(ctr->flags & RP_CTR_PRESERVE_CPU);
}

/* Refuses a policy that cannot keep claims. */
static int apply_check_claims(const struct pipeline *p, const struct instance *policy,
			      struct err *err)
{
	const struct ctr *ctr;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr)
		if (ctr->device && !claim_is_controlled(ctr) && !instance_has_devices(policy))
			return err_set(err, -EBUSY,
				       "claim %s/%s would lose its CPUs %s: policy %s has no "
				       "devices; delete the pods that use the claim first",
				       ctr->pod->ns, ctr->pod->name,
				       ctr->cur.cpus ? ctr->cur.cpus->text : "",
				       instance_name(policy));
	return 0;
}

int apply_other_policy(struct pipeline *p, struct instance *policy, bool reset, struct err *err)
{
	struct ctr *ctr;
	uint32_t number = instance_number(policy);
	struct rp_idset placed;
	int r = apply_check_claims(p, policy, err);
	if (!r)
		r = forget_former(p, number, reset, err);
	if (!r)
		r = instance_sync(policy, err);
	if (r)
		return r;
	placed_cpus(p, number, &placed);
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		struct decision *d = ctr_live(ctr->cur.state) ? txn_stage(p->txn, ctr) : NULL;
		if (!d || d->claimed || claim_is_controlled(ctr))
			continue;
		/* A container that the policy has not touched is unchanged. */
		if (apply_is_left_unpinned(policy, ctr, d))
			leave_unpinned(p, ctr, d, d->policy == number);
		else if (d->policy == number || reset)
			give_back(p, ctr, d);
		else
			leave_as_it_was(p, ctr, d, rp_ids_of(&placed));
	}
	return 0;
}

/* Resizes containers whose resources the adjustments have changed. A policy that places all
 * containers may leave a container on more CPUs than it needs now. */
static int resize_adjusted(struct pipeline *p, struct instance *policy, struct err *err)
{
	struct ctr *ctr;
	int r = 0;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr)
		if (!r && ctr_live(ctr->cur.state) && !ctr->cur.claimed &&
		    memcmp(&txn_view(ctr)->needs, &ctr->cur.needs, sizeof ctr->cur.needs) != 0)
			r = instance_update(policy, ctr, err);
	return r;
}

/* Sets the rules for annotations that apply to containers. */
static int apply_hear(struct pipeline *p, const struct conf_annotations *rules, struct err *err)
{
	int r = cache_hear(p->env.cache, rules);
	return r ? err_errno(err, r, "annotations") : 0;
}

static const struct conf_annotations *heard_before(const struct pipeline *p)
{
	return p->conf ? &conf_core(p->conf)->annotations : NULL;
}

static int place_all(struct pipeline *p, const struct placing *a, Trial__Report *report,
		     struct err *err)
{
	p->requests.adjustments = a->adjustments;
	int r = apply_hear(p, a->annotations, err);
	if (!r)
		r = adjust_check(p, report, err);
	if (!r)
		r = adjust_stage_all(p, err);
	if (!r)
		r = a->switching ? apply_other_policy(p, a->policy, a->reset, err)
				 : instance_sync(a->policy, err);
	if (!r && !a->switching)
		r = resize_adjusted(p, a->policy, err);
	if (!r)
		r = confine(p, err);
	return r ? r : decide_check(p, err);
}

/* largest number of containers that a message names; further ones are counted */
#define LOSERS_NAMED 8u

/* Containers that lose something in the same way. */
struct losers {
	const char *what;
	struct buf names;
	unsigned n;
};

static bool newly_degraded(const struct stage *s)
{
	return s->next.degraded && !blob_equal(s->next.degraded, s->ctr->cur.degraded);
}

static bool gets_fewer(const struct stage *s)
{
	const struct iset *was = s->ctr->cur.cpus, *now = s->next.cpus;
	return was && now && now->count < was->count;
}

static bool owns_less(const struct stage *s)
{
	const struct iset *was = s->ctr->cur.exclusive, *now = s->next.exclusive;
	return was && was->count > (now ? now->count : 0);
}

static void add_loser(struct losers *l, const struct stage *s)
{
	if (l->n++ < LOSERS_NAMED)
		(void)buf_printf(&l->names, "%s%s", l->n > 1 ? ", " : "", s->ctr->full_name);
}

static int tell_losers(struct losers *l, Trial__Report *report)
{
	char more[32] = "";
	if (!l->n)
		return 0;
	if (l->n > LOSERS_NAMED)
		(void)snprintf(more, sizeof more, " and %u more", l->n - LOSERS_NAMED);
	report->losses[report->n_losses] =
		str_printf("%u running container%s %s: %s%s", l->n, l->n == 1 ? "" : "s", l->what,
			   buf_text(&l->names), more);
	return report->losses[report->n_losses++] ? 0 : -ENOMEM;
}

static int report_losses(struct pipeline *p, Trial__Report *report)
{
	struct losers unplaced = {.what = "cannot be placed as requested", .names = BUF_INIT},
		      own = {.what = "lose exclusive CPUs", .names = BUF_INIT},
		      fewer = {.what = "get fewer CPUs", .names = BUF_INIT};
	report->losses = calloc(3, sizeof *report->losses);
	if (!report->losses)
		return -ENOMEM;
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		if (!ctr_live(s->next.state))
			continue;
		if (newly_degraded(s))
			add_loser(&unplaced, s);
		else if (owns_less(s))
			add_loser(&own, s);
		else if (gets_fewer(s))
			add_loser(&fewer, s);
	}
	int r = tell_losers(&unplaced, report);
	if (!r)
		r = tell_losers(&own, report);
	return r ? r : tell_losers(&fewer, report);
}

static void put_class(struct buf *lines, const struct ctr *ctr, const char *what,
		      const struct blob *was, const struct blob *now)
{
	if (!blob_equal(was, now))
		(void)buf_printf(lines, "%s: %s %s → %s\n", ctr->full_name, what,
				 was ? was->data : "none", now ? now->data : "none");
}

static void put_toptier(struct buf *lines, const struct ctr *ctr, int64_t was, int64_t now)
{
	if (was != now)
		(void)buf_printf(lines, "%s: limit of the top tier %lld → %lld\n", ctr->full_name,
				 (long long)was, (long long)now);
}

/* Returns the value that a container has under a decision: the decided one, else the requested
 * one. */
static int64_t effective_value(int64_t decided, int64_t requested)
{
	return decided != RP_NOT_SET ? decided : requested;
}

static void put_value(struct buf *lines, const struct ctr *ctr, const char *what, int64_t was,
		      int64_t now)
{
	if (was == now || now == RP_NOT_SET)
		return;
	(void)buf_printf(lines, "%s: %s ", ctr->full_name, what);
	if (was == RP_NOT_SET)
		(void)buf_printf(lines, "not set");
	else
		(void)buf_printf(lines, "%lld", (long long)was);
	(void)buf_printf(lines, " → %lld\n", (long long)now);
}

static void put_values(struct buf *lines, const struct stage *s)
{
	const struct decision *was = &s->ctr->cur, *now = &s->next;
	const struct values *asked = &s->ctr->requested;
	put_value(lines, s->ctr, "CPU shares", effective_value(was->shares, asked->shares),
		  effective_value(now->shares, asked->shares));
	put_value(lines, s->ctr, "CPU quota", effective_value(was->quota, asked->quota),
		  effective_value(now->quota, asked->quota));
	put_value(lines, s->ctr, "memory limit", effective_value(was->mem_limit, asked->mem_limit),
		  effective_value(now->mem_limit, asked->mem_limit));
}

/* Reports classes, shares, quotas and limits that the transaction changes, one line each. */
static int report_classes(struct pipeline *p, Trial__Report *report)
{
	_cleanup_(buf_fini) struct buf lines = BUF_INIT;
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		const struct decision *was = &s->ctr->cur, *now = &s->next;
		put_class(&lines, s->ctr, "RDT class", decision_rdt(was), decision_rdt(now));
		put_class(&lines, s->ctr, "block I/O class", decision_blockio(was),
			  decision_blockio(now));
		put_class(&lines, s->ctr, "CPU class", was->cpu_class, now->cpu_class);
		put_values(&lines, s);
		put_toptier(&lines, s->ctr, was->toptier_adjusted, now->toptier_adjusted);
	}
	report->classes = strdup(buf_text(&lines));
	return report->classes ? 0 : -ENOMEM;
}

/* Reports containers that the open transaction moves, and containers that stay but become degraded.
 * The child that calls this ends soon, so nothing is freed. */
static int report_moves(struct pipeline *p, Trial__Report *report)
{
	report->moves = calloc(txn_n_touched(p->txn) + 1, sizeof *report->moves);
	if (!report->moves)
		return -ENOMEM;
	for (const struct stage *s = decide_touched(p); s; s = s->link) {
		const bool moved = s->next.cpus != s->ctr->cur.cpus ||
				   moves_memory(p, s->ctr->cur.mems, s->next.mems);
		if (!moved && !newly_degraded(s))
			continue;
		Trial__Move *m =
			report_move(s->ctr, &s->next, s->ctr->cur.cpus, s->ctr->cur.mems, "");
		if (!m)
			return -ENOMEM;
		m->moved = moved;
		report->moves[report->n_moves++] = m;
	}
	int r = report_classes(p, report);
	return r ? r : report_losses(p, report);
}

/* Drops trails that the previous policy has written. Trails of this transaction remain. */
static void forget_trails(struct pipeline *p)
{
	struct ctr *ctr;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		if (ctr->trail.txn == txn_id(p->txn))
			continue;
		free(ctr->trail.text);
		ctr->trail.text = NULL;
	}
}

/* Places all containers in a new transaction and commits it. An attempt reports and drops the
 * transaction. */
static int place_and_commit(struct pipeline *p, const struct placing *a, Trial__Report *report,
			    struct err *err)
{
	int r = decide_begin(p, err);
	if (r)
		return r;
	r = place_all(p, a, report, err);
	if (r || report) {
		if (!r)
			r = report_moves(p, report);
		decide_drop(p);
		/* Tell the policy of the roll-back. Its return value does not matter, because the
		 * return to the previous configuration places every container again. */
		if (!report)
			(void)instance_rolled_back(a->policy);
		return r;
	}
	if (a->switching)
		forget_trails(p);
	decide_take_effect(p);
	p->requests.sync_failed = false;
	return 0;
}

/*
 * Returns the policy to the previous configuration. Topology and containers are the same, but a
 * replacement that was tried may have changed host settings of this policy, so the policy prepares
 * and commits its configuration again, which sets them.
 */
static void back_to_former(struct pipeline *p)
{
	struct err err = ERR_INIT;
	struct rp_plan *plan;
	const struct placing again = {.policy = p->policy,
				      .adjustments = p->requests.adjustments,
				      .annotations = heard_before(p)};
	int r = p->conf ? instance_prepare(p->policy,
					   conf_section(p->conf, instance_name(p->policy)), &plan,
					   &err)
			: -EINVAL;
	if (!r) {
		instance_commit(p->policy, plan);
		r = place_and_commit(p, &again, NULL, &err);
	}
	if (!r)
		sync_recovered(p);
	else
		log_error("policy %s cannot return to its previous configuration: %s",
			  instance_name(p->policy), err.text);
}

/* ---- the whole configuration ----------------------------------------------------------------- */

int open_instance(struct pipeline *p, const char *name, uint32_t role, struct instance **ret,
		  struct err *err)
{
	struct module *m = NULL;
	int r = note_name_valid(name) ? loader_open(p->loader, name, &m, err)
				      : err_set(err, -EINVAL, "%s is not a module's name", name);
	if (m && !(m->kinds & role))
		return err_set(err, -EINVAL, "module %s is not a %s", name, kind_name(role));
	if (!r)
		r = instance_new(&p->env, m, role, ret, err);
	if (!r)
		persist_load(p, *ret);
	return r && r != -ENOENT && r != -ENOMEM && note_name_valid(name) ? -ELIBBAD : r;
}

static int put_policy(struct pipeline *p, struct conf *conf, struct adjustments *adjustments,
		      Trial__Report *report, struct err *err)
{
	const char *name = conf_core(conf)->policy;
	bool same = p->policy && str_eq(instance_name(p->policy), name);
	struct placing a = {
		.policy = p->policy,
		.adjustments = adjustments,
		.annotations = &conf_core(conf)->annotations,
		.switching = !same && (p->conf || p->requests.other_policy),
		.reset = conf_core(conf)->reset_on_switch,
		.later = !p->conf && !report,
	};
	struct rp_plan *plan;
	if (p->reloads.without_policy)
		return apply_hear(p, a.annotations, err);
	int r = same ? 0 : open_instance(p, name, RP_KIND_POLICY, &a.policy, err);
	if (r && conf_core(conf)->policy_node) {
		char place[CONF_PLACE_MAX];
		(void)err_prefix(
			err, "%s: ", conf_place(conf_core(conf)->policy_node, place, sizeof place));
	}
	if (r)
		return r;
	r = instance_prepare(a.policy, conf_section(conf, name), &plan, err);
	if (r && !conf_section(conf, name)) {
		char where[CONF_PLACE_MAX];
		(void)err_prefix(
			err, "%s: ", conf_where(conf_core(conf)->policy_node, where, sizeof where));
	}
	if (r) {
		if (!same)
			instance_free(a.policy);
		return r;
	}
	instance_commit(a.policy, plan);
	struct instance *former = p->policy;
	struct adjustments *former_adjustments = p->requests.adjustments;
	p->policy = a.policy;
	r = a.later ? apply_hear(p, a.annotations, err) : place_and_commit(p, &a, report, err);
	if (r) {
		p->policy = former;
		p->requests.adjustments = former_adjustments;
		/* Restore the previous policy before the new instance is freed: that reverts host
		 * settings which no other instance has taken over. */
		if (!report && former)
			back_to_former(p);
		if (!same)
			instance_free(a.policy);
		return r;
	}
	if (!same)
		instance_free(former);
	return 0;
}

int apply_config(struct pipeline *p, struct conf *conf, Trial__Report *report, struct err *err)
{
	struct adjustments *adjustments = NULL, *former = p->requests.adjustments;
	int r = noderes_check(conf, err);
	if (!r)
		r = adjustments_read(p, conf, &adjustments, err);
	if (!r)
		r = controllers_prepare(p, conf, err);
	if (!r && !report)
		r = controllers_switch(p, conf, err);
	if (!r)
		r = put_policy(p, conf, adjustments, report, err);
	if (r) {
		controllers_abort(p);
		/* restore the rules of the active configuration */
		(void)cache_hear(p->env.cache, heard_before(p));
		adjustments_free(adjustments);
		return r;
	}
	if (report)
		return 0; /* the child ends here */
	adjustments_free(former);
	p->requests.adjustments = adjustments;
	controllers_take_over(p);
	if (p->runtime.synchronized)
		settings_release_former(&p->env);
	persist_now(p); /* saves the new ownership of settings */
	conf_free(p->conf);
	p->conf = conf;
	p->reloads.generation++;
	noderes_configure(p);
	return 0;
}

static int topology_event(struct pipeline *p, void *arg, struct err *err)
{
	const struct rp_event ev = {.size = sizeof ev, .type = RP_EVENT_TOPOLOGY};
	return instance_event(p->policy, &ev, err);
}

int apply_topology(struct pipeline *p, struct err *err)
{
	if (!p->policy)
		return 0;
	return decide_event(p, topology_event, NULL, err);
}
