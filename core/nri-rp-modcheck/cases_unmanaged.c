/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: containers that a policy has refused and that run unmanaged: rp_policy.unmanaged. */
#include <stdio.h>

#include "core/nri-rpd/host/service/services.h"
#include "core/nri-rp-modcheck/churn.h"
#include "core/nri-rp-modcheck/machines.h"
#include "core/lib/util/cleanup.h"

#define SOME 600u
#define FULL 300u /* limit of containers created until one is refused */

static bool has_callback(const struct rig *r)
{
	const struct rp_policy *p = r->instance->policy;
	return RP_HAS(p, unmanaged) && p->unmanaged;
}

static int cases_unmanaged_begin(struct check *c, struct rig *r)
{
	if (!has_callback(r))
		return check_skip(c, "the policy has no unmanaged()");
	r->unmanaged = true;
	return 0;
}

/* Runs random requests, some for more than the machine has. Refused containers run where the host
 * or the policy decides. */
static int cases_unmanaged_run(struct check *c, bool still, bool dry, struct buf *log,
			       unsigned *ret_n, struct err *err)
{
	_cleanup_(rig_close) struct rig r = {.check = c};
	struct churn churn;
	int bad = machine_make(c->machine, err);
	bad = bad ? bad : churn_begin(&churn, &r, c, err);
	bad = bad ? bad : cases_unmanaged_begin(c, &r);
	if (bad)
		return bad;
	r.log = log;
	r.dry = dry;
	churn.still = still;
	churn.huge = 10;
	bad = churn_run(&churn, SOME, err);
	*ret_n = r.n_unmanaged;
	return bad ? bad : churn_empty(&churn, err);
}

static int cases_unmanaged_invariants(struct check *c, struct err *err)
{
	unsigned n = 0;
	int bad = cases_unmanaged_run(c, false, false, c->o->reproduce ? c->out : NULL, &n, err);
	if (bad)
		return bad;
	if (!n)
		return check_skip(c, "no container was refused");
	check_note(c, "%u containers ran unmanaged", n);
	return 0;
}

static int dry_run(struct check *c, struct err *err)
{
	_cleanup_(buf_fini) struct buf first = BUF_INIT, tried = BUF_INIT;
	unsigned n = 0;
	int bad = cases_unmanaged_run(c, true, false, &first, &n, err);
	bad = bad ? bad : cases_unmanaged_run(c, true, true, &tried, &n, err);
	bad = bad ? bad
		  : text_same(&first, &tried, err,
			      "requests that were tried and dropped have changed later ones");
	return bad ? bad : n ? 0 : check_skip(c, "no container was refused");
}

/* ---- later placement ------------------------------------------------------------------------- */

/* Creates equal containers until one is refused and runs unmanaged. NULL: none was refused. */
static int cases_unmanaged_fill(struct rig *r, const struct wish *w,
				struct ctr *placed[static FULL], unsigned *ret_n,
				struct ctr **ret_unmanaged, struct err *err)
{
	*ret_unmanaged = NULL;
	for (*ret_n = 0; *ret_n < FULL; ++*ret_n) {
		struct wish wish = *w;
		struct ctr *ctr;
		unsigned before = r->n_unmanaged;
		(void)snprintf(wish.id, sizeof wish.id, "c%u", *ret_n);
		(void)snprintf(wish.pod, sizeof wish.pod, "pod-c%u", *ret_n);
		wish.created_ns += *ret_n;
		int bad = rig_add(r, &wish, &ctr, err);
		if (bad)
			return bad == RIG_REFUSED ? 0 : bad;
		if (r->n_unmanaged != before) {
			*ret_unmanaged = ctr;
			return 0;
		}
		placed[*ret_n] = ctr;
	}
	return 0;
}

static int cases_unmanaged_again(struct rig *r, struct ctr *old, const struct wish *w,
				 struct err *err)
{
	struct ctr *ctr;
	char reason[300];
	(void)snprintf(reason, sizeof reason, "%s", old->cur.degraded->data);
	int bad = rig_remove(r, old, err);
	r->unmanaged = false;
	bad = bad ? bad : rig_add(r, w, &ctr, err);
	if (bad)
		return bad == RIG_REFUSED ? 0 : bad;
	return err_set(err, -EINVAL,
		       "a container that ran unmanaged is still degraded (%s) after the others "
		       "were removed and sync() was called, although a similar container is placed",
		       reason);
}

static int cases_unmanaged_later(struct check *c, struct err *err)
{
	static const struct wish small = {.id = "again",
					  .pod = "pod-again",
					  .ns = "default",
					  WISH_GUARANTEED(1000, 1 << 20),
					  .created_ns = 1};
	struct rig *r = c->rig;
	struct ctr *placed[FULL], *ctr;
	unsigned n;
	int bad = cases_unmanaged_begin(c, r);
	bad = bad ? bad : cases_unmanaged_fill(r, &small, placed, &n, &ctr, err);
	if (!bad && !ctr)
		return check_skip(c, "no container was refused");
	/* The next instance must also find the container. */
	bad = bad ? bad : rig_restart(r, err);
	while (!bad && n)
		bad = rig_remove(r, placed[--n], err);
	bad = bad ? bad : rig_sync(r, err);
	if (bad || !ctr->cur.degraded)
		return bad;
	return cases_unmanaged_again(r, ctr, &small, err);
}

static const struct check_case cases[] = {
	{"unmanaged/invariants", RP_KIND_POLICY, CASE_MACHINES | CASE_SEEDS,
	 cases_unmanaged_invariants,
	 "containers that are refused but run: on CPUs that are online and not exclusive, until "
	 "they end"},
	{"unmanaged/dry-run", RP_KIND_POLICY, CASE_MACHINES | CASE_SEEDS, dry_run,
	 "requests that are first tried in a dropped transaction change nothing later"},
	{"unmanaged/later", RP_KIND_POLICY, CASE_MACHINES | CASE_STARTED, cases_unmanaged_later,
	 "they are placed like others once there is room, also after a restart"},
};

const struct check_group unmanaged_cases = {cases, sizeof cases / sizeof *cases};
