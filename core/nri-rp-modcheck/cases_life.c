/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: instances created, configured and destroyed in every legal order, without leaks. */
#include <stdio.h>
#include <stdlib.h>

#include "core/nri-rp-modcheck/balance.h"
#include "core/nri-rp-modcheck/churn.h"
#include "core/lib/util/cleanup.h"

#define ROUNDS 1000u
#define WARM_UP 100u

/* ---- leaks ----------------------------------------------------------------------------------- */

/* Calls fn repeatedly on one rig and compares the process's resources. */
static int cases_life_repeat(struct rig *r, unsigned rounds,
			     int (*fn)(struct rig *r, struct err *err), const char *what,
			     struct err *err)
{
	struct balances leaks;
	for (unsigned i = 0; i < rounds + WARM_UP; i++) {
		if (i == WARM_UP)
			leaks.at[0] = balance_now();
		if (i == WARM_UP + rounds / 2)
			leaks.at[1] = balance_now();
		int bad = fn(r, err);
		if (bad)
			return err_prefix(err, "%s, round %u: ", what, i + 1);
	}
	leaks.at[2] = balance_now();
	return balance_compare(&leaks, rounds, what, err);
}

/* ---- policies and controllers ---------------------------------------------------------------- */

static int once_created(struct rig *r, struct err *err)
{
	int bad = rig_create(r, err);
	rig_destroy(r);
	return bad == RIG_REFUSED ? err->code : bad;
}

static int create_destroy(struct check *c, struct err *err)
{
	return cases_life_repeat(c->rig, ROUNDS, once_created, "create, destroy", err);
}

static int cases_life_prepare(struct rig *r, struct rp_plan **ret, struct err *err)
{
	return instance_prepare(r->instance, conf_section(r->check->conf, r->check->o->name), ret,
				err);
}

static int once_prepared(struct rig *r, struct err *err)
{
	struct rp_plan *plan;
	int bad = cases_life_prepare(r, &plan, err);
	if (!bad)
		instance_abort(r->instance, plan);
	return bad;
}

static int prepare_abort(struct check *c, struct err *err)
{
	return cases_life_repeat(c->rig, ROUNDS, once_prepared, "prepare, abort", err);
}

static int once_committed(struct rig *r, struct err *err)
{
	struct rp_plan *plan;
	int bad = rig_create(r, err);
	bad = bad ? bad : cases_life_prepare(r, &plan, err);
	if (!bad)
		instance_commit(r->instance, plan);
	rig_destroy(r);
	return bad;
}

static int commit_destroy(struct check *c, struct err *err)
{
	return cases_life_repeat(c->rig, ROUNDS, once_committed, "create, prepare, commit, destroy",
				 err);
}

/* ---- policies -------------------------------------------------------------------------------- */

static int cases_life_populate(struct churn *churn, struct err *err)
{
	churn->still = true;
	return churn_run(churn, 60, err);
}

static int cases_life_unchanged(struct rig *r, const struct churn *churn, struct buf *before,
				const char *what, struct err *err)
{
	_cleanup_(buf_fini) struct buf after = BUF_INIT;
	rig_describe(r, &after);
	int bad = churn_all_well(churn)
			  ? text_same(before, &after, err, "%s has moved containers", what)
			  : 0;
	return bad ? bad : rig_check(r, err);
}

static int commit_again(struct rig *r, struct err *err)
{
	struct rp_plan *plan;
	int bad = cases_life_prepare(r, &plan, err);
	if (bad)
		return bad;
	instance_commit(r->instance, plan);
	return rig_sync(r, err);
}

/* Prepares a plan while another configuration is active, and aborts it: the following requests must
 * use the active one. */
static int aborted_between(struct rig *r, struct churn *churn, struct err *err)
{
	struct rp_plan *plan;
	int bad = cases_life_prepare(r, &plan, err);
	if (bad)
		return bad;
	instance_abort(r->instance, plan);
	return churn_run(churn, 20, err);
}

/* Creates a second instance with the state of the first, as a trial does. */
static int second_instance(struct rig *r, struct err *err)
{
	struct instance *mine = r->instance;
	struct rp_plan *plan;
	const void *state;
	uint32_t size;
	int bad = instance_save(mine, &state, &size, err);
	r->instance = NULL;
	bad = bad ? bad : rig_create(r, err);
	bad = bad ? bad : cases_life_prepare(r, &plan, err);
	if (!bad) {
		instance_commit(r->instance, plan);
		bad = size ? instance_load(r->instance, state, size, err) : 0;
	}
	bad = bad ? bad : rig_sync(r, err);
	rig_destroy(r);
	r->instance = mine;
	return bad;
}

static int cases_life_orders(struct check *c, struct err *err)
{
	_cleanup_(buf_fini) struct buf before = BUF_INIT;
	struct rig *r = c->rig;
	struct churn *churn = c->churn;
	int bad = once_prepared(r, err);
	bad = bad ? bad : commit_again(r, err);
	bad = bad ? bad : cases_life_populate(churn, err);
	bad = bad ? bad : aborted_between(r, churn, err);
	if (bad)
		return bad;
	rig_describe(r, &before);
	bad = second_instance(r, err);
	bad = bad ? bad : cases_life_unchanged(r, churn, &before, "another instance", err);
	bad = bad ? bad : commit_again(r, err);
	bad = bad ? bad : cases_life_unchanged(r, churn, &before, "prepare, commit, sync", err);
	bad = bad ? bad : rig_sync(r, err);
	bad = bad ? bad : cases_life_unchanged(r, churn, &before, "sync", err);
	return bad ? bad : churn_run(churn, 60, err);
}

static int release_twice(struct check *c, struct err *err)
{
	struct wish w;
	struct ctr *ctr;
	for (unsigned i = 0; i < 20; i++) {
		churn_wish(c->churn, &w);
		int bad = rig_add(c->rig, &w, &ctr, err);
		if (bad == RIG_REFUSED)
			continue;
		bad = bad ? bad : rig_release(c->rig, ctr, err);
		bad = bad ? bad : rig_remove(c->rig, ctr, err);
		if (bad)
			return err_prefix(err, "released twice: ");
	}
	return 0;
}

/* Releases containers that the policy has never placed, as after the daemon's first start on a node
 * in use. */
static int release_unplaced(struct check *c, struct err *err)
{
	struct rig *r = c->rig;
	int bad = 0;
	for (unsigned i = 0; !bad && i < 8; i++) {
		char id[32];
		struct pod *pod;
		struct ctr *ctr;
		(void)snprintf(id, sizeof id, "early%u", i);
		const struct pod_desc pd = {.id = id,
					    .name = id,
					    .uid = id,
					    .ns = "default",
					    .runtime_handler = "",
					    .cgroup_parent = "/kubepods/p"};
		const struct ctr_desc cd = {.id = id,
					    .pod_id = id,
					    .name = id,
					    .cgroups_path = "",
					    .state = RP_STATE_RUNNING,
					    .oom_score_adj = RP_NOT_SET,
					    .res = {.amounts = {1024, 100000, 100000, RP_NOT_SET}}};
		bad = cache_put_pod(r->env->cache, &pd, &pod, err);
		bad = bad ? bad : cache_put_ctr(r->env->cache, &cd, &ctr, err);
		if (!bad && i % 2)
			bad = rig_sync(r, err);
		bad = bad ? bad : rig_remove(r, ctr, err);
	}
	return bad;
}

static int cases_life_reloads(struct check *c, struct err *err)
{
	_cleanup_(buf_fini) struct buf before = BUF_INIT;
	int bad = cases_life_populate(c->churn, err);
	if (bad)
		return bad;
	rig_describe(c->rig, &before);
	bad = cases_life_repeat(c->rig, ROUNDS, rig_reload, "reload", err);
	return bad ? bad
		   : cases_life_unchanged(c->rig, c->churn, &before,
					  "a reload of the same configuration", err);
}

static int filled_and_emptied(struct check *c, struct err *err)
{
	struct balances leaks;
	c->churn->still = true;
	for (unsigned i = 0; i < 120; i++) {
		if (i == 20)
			leaks.at[0] = balance_now();
		if (i == 70)
			leaks.at[1] = balance_now();
		int bad = churn_run(c->churn, 40, err);
		bad = bad ? bad : churn_empty(c->churn, err);
		if (bad)
			return bad;
	}
	leaks.at[2] = balance_now();
	return balance_compare(&leaks, 4000, "containers created and removed", err);
}

static int cases_life_restarts(struct check *c, struct err *err)
{
	int bad = cases_life_populate(c->churn, err);
	return bad ? bad
		   : cases_life_repeat(c->rig, ROUNDS, rig_restart, "restart with containers", err);
}

static const struct check_case cases[] = {
	{"lifecycle/create-destroy", 0, CASE_SMALL | CASE_OPEN, create_destroy,
	 "1,000 instances created and freed leak no memory, descriptors or threads"},
	{"lifecycle/prepare-abort", 0, CASE_SMALL | CASE_CREATED, prepare_abort,
	 "1,000 configurations prepared and dropped leak nothing"},
	{"lifecycle/commit-destroy", 0, CASE_SMALL | CASE_OPEN, commit_destroy,
	 "1,000 instances freed with an active configuration and no sync() leak nothing"},
	{"lifecycle/orders", RP_KIND_POLICY, CASE_SMALL | CASE_CREATED, cases_life_orders,
	 "prepare, abort, commit, sync in every order, with a second instance: no container moves"},
	{"lifecycle/release-twice", RP_KIND_POLICY, CASE_SMALL | CASE_STARTED, release_twice,
	 "a container may be released twice"},
	{"lifecycle/release-unplaced", RP_KIND_POLICY, CASE_SMALL | CASE_STARTED, release_unplaced,
	 "a container that was never placed may be released"},
	{"lifecycle/reloads", RP_KIND_POLICY, CASE_SMALL | CASE_SLOW | CASE_STARTED,
	 cases_life_reloads,
	 "1,000 reloads of the same configuration move no container and leak nothing"},
	{"lifecycle/containers", RP_KIND_POLICY, CASE_SMALL | CASE_STARTED, filled_and_emptied,
	 "creating and removing containers leaks no memory, descriptors or threads"},
	{"lifecycle/restarts", RP_KIND_POLICY, CASE_SMALL | CASE_SLOW | CASE_STARTED,
	 cases_life_restarts, "1,000 instances freed with containers placed leak nothing"},
};

const struct check_group life_cases = {cases, sizeof cases / sizeof *cases};
