/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: jobs of a policy on a running worker, whose results come at once or after their objects
 * are gone; likewise timers. */
#include <stdio.h>
#include <string.h>

#include "core/nri-rp-modcheck/churn.h"
#include "core/nri-rp-modcheck/shim.h"
#include "core/lib/util/cleanup.h"

#define CTRS 24u
#define ROUNDS 4u

/* Lets the timers expire that are armed now; a timer may arm itself again. */
static int go_off(struct rig *r, struct err *err)
{
	struct shim *s = r->shim;
	uint64_t cookies[SHIM_TIMERS_MAX];
	unsigned n = s->n_timers;
	int bad = 0;
	memcpy(cookies, s->timers, sizeof cookies);
	s->n_timers = 0;
	while (!bad && n)
		bad = rig_settle(rig_timer(r, cookies[--n], err));
	return bad;
}

/* Runs one instance. With r->late all jobs end after their containers were removed and another
 * configuration is active. */
static int one_life(struct rig *r, struct churn *churn, struct err *err)
{
	struct ctr *ctrs[CTRS];
	unsigned n = 0;
	int bad = rig_create(r, err);
	bad = bad ? bad : rig_configure(r, err);
	for (unsigned i = 0; !bad && i < CTRS; i++) {
		struct wish w;
		churn_wish(churn, &w);
		bad = rig_add(r, &w, &ctrs[n], err);
		n += !bad;
		bad = rig_settle(bad);
	}
	for (unsigned i = 0; !bad && i < n; i++)
		bad = rig_settle(rig_event(r, RP_EVENT_STARTED, ctrs[i], err));
	while (!bad && n > CTRS / 4)
		bad = rig_remove(r, ctrs[--n], err);
	bad = bad ? bad : rig_reload(r, err);
	bad = bad ? bad : go_off(r, err);
	while (!bad && n)
		bad = rig_remove(r, ctrs[--n], err);
	if (bad)
		return bad;
	rig_destroy(r);
	bad = rig_finish_jobs(r, err);
	return bad ? bad : rig_wipe(r, err);
}

static int cases_work_lives(struct check *c, struct err *err)
{
	struct shim *s = c->rig->shim;
	int bad = 0;
	for (unsigned i = 0; !bad && i < ROUNDS; i++) {
		s->n_timers = 0;
		bad = one_life(c->rig, c->churn, err);
	}
	if (!bad && !s->n_jobs && !s->armed)
		return check_skip(c, "it has no jobs or timers");
	if (!bad)
		check_note(c, "%u jobs", s->n_jobs);
	return bad;
}

static const struct check_case cases[] = {
	{"work/jobs", RP_KIND_POLICY, CASE_SMALL | CASE_OPEN, cases_work_lives,
	 "jobs end, and only call host functions marked [any]"},
	{"work/late", RP_KIND_POLICY, CASE_SMALL | CASE_OPEN | CASE_LATE, cases_work_lives,
	 "results and timers arrive after containers and configuration are gone"},
};

const struct check_group work_cases = {cases, sizeof cases / sizeof *cases};
