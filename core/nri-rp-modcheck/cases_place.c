/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: placements of a policy: invariants, restarts, determinism, explanations, time. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/nri-rp-modcheck/churn.h"
#include "core/nri-rp-modcheck/machines.h"
#include "core/lib/util/cleanup.h"

#define MANY 2000u
#define SOME 600u
#define TIME_CTRS 500u
#define TIME_SAMPLES 1000u
#define TIME_P99_NS 500000u

static int cases_place_invariants(struct check *c, struct err *err)
{
	c->rig->log = c->o->reproduce ? c->out : NULL;
	int bad = churn_run(c->churn, MANY, err);
	bad = bad ? bad : churn_empty(c->churn, err);
	if (!bad)
		check_note(c, "%u containers, %u pinned, %u requests refused", c->churn->seq,
			   c->churn->n_placed, c->rig->n_refused);
	return bad;
}

static int comes_back(struct check *c, struct err *err)
{
	_cleanup_(buf_fini) struct buf fresh = BUF_INIT, used = BUF_INIT;
	int bad = churn_probe_fresh(c, &fresh, err);
	bad = bad ? bad : churn_run(c->churn, SOME, err);
	bad = bad ? bad : churn_empty(c->churn, err);
	bad = bad ? bad : churn_probe(c->rig, &used, err);
	return bad ? bad
		   : text_same(&fresh, &used, err,
			       "after all containers were removed, new containers are placed "
			       "differently than by a fresh instance");
}

static int record_decisions(struct rig *r, struct churn *churn, struct buf *out, struct err *err)
{
	r->log = out;
	return churn_run(churn, SOME, err);
}

/* Logs states instead of requests, because the order of notifications may differ after a
 * restart. */
static int record_states(struct rig *r, struct churn *churn, struct buf *out, struct err *err)
{
	int bad = 0;
	for (unsigned i = 0; !bad && i < SOME; i++) {
		bad = churn_run(churn, 1, err);
		rig_describe(r, out);
	}
	return bad;
}

/* Disturbances of a run, the function that logs it, and the text for a difference. */
struct disturbed {
	bool dry; /* try each request as a trial first */
	bool still; /* containers only: no hotplug, no reloads */
	bool restart; /* restart the module's instance after each request */
	int (*record)(struct rig *r, struct churn *churn, struct buf *out, struct err *err);
	const char *differs;
};

enum { REPEATED, DRY, RESTARTED };

static const struct disturbed disturbances[] = {
	[REPEATED] = {.record = record_decisions,
		      .differs = "the same requests were decided differently the second time"},
	[DRY] = {.dry = true,
		 .still = true,
		 .record = record_decisions,
		 .differs = "requests that were tried and dropped changed later decisions"},
	[RESTARTED] = {.still = true,
		       .restart = true,
		       .record = record_states,
		       .differs = "with a new instance after each request, later decisions differ"},
};

static int cases_place_record(struct check *c, const struct disturbed *how, struct buf *out,
			      struct err *err)
{
	_cleanup_(rig_close) struct rig r = {.check = c};
	struct churn churn;
	int bad = machine_make(c->machine, err);
	bad = bad ? bad : churn_begin(&churn, &r, c, err);
	if (bad)
		return bad;
	r.dry = how->dry;
	churn.still = how->still;
	churn.restart_every = how->restart;
	return how->record(&r, &churn, out, err);
}

/* Changes the addresses and contents of memory that the next run gets. */
static void cases_place_stir(void *keep[static 64])
{
	(void)mallopt(M_PERTURB, 0x5a);
	for (unsigned i = 0; i < 64; i++)
		keep[i] = malloc(24 + i * 40);
	for (unsigned i = 0; i < 64; i += 3) {
		free(keep[i]);
		keep[i] = NULL;
	}
}

/* Compares an undisturbed run with a disturbed one. */
static int same_twice(struct check *c, struct err *err)
{
	const struct disturbed *how = &disturbances[c->detail];
	_cleanup_(buf_fini) struct buf first = BUF_INIT, second = BUF_INIT;
	const struct disturbed plain = {.still = how->still, .record = how->record};
	void *stirred[64];
	int bad = cases_place_record(c, &plain, &first, err);
	cases_place_stir(stirred);
	bad = bad ? bad : cases_place_record(c, how, &second, err);
	for (unsigned i = 0; i < 64; i++)
		free(stirred[i]);
	return bad ? bad : text_same(&first, &second, err, "%s", how->differs);
}

static int cases_place_restart(struct check *c, struct err *err)
{
	c->churn->restart_every = 100;
	int bad = churn_run(c->churn, MANY, err);
	return bad ? bad : churn_empty(c->churn, err);
}

/* ---- explanations ---------------------------------------------------------------------------- */

static int has_trail(struct churn *churn, struct ctr *ctr, struct err *err)
{
	if (!ctr->cur.cpus || (ctr->trail.text && *ctr->trail.text))
		return 0;
	return err_set(err, -EINVAL,
		       "container %s was assigned CPUs %s without a note that explains why (%s)",
		       ctr->full_name, ctr->cur.cpus->text, "nri-rp.host.explain/1");
}

static int cases_place_explain(struct check *c, struct err *err)
{
	c->churn->placed = has_trail;
	c->churn->still = true;
	int bad = churn_run(c->churn, SOME, err);
	if (!bad && !c->churn->n_placed)
		return check_skip(c, "no container was pinned");
	return bad;
}

/* ---- time ------------------------------------------------------------------------------------ */

static int cmp_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void small_wish(struct churn *churn, struct wish *w)
{
	churn_wish(churn, w);
	w->n_annotations = 0;
	w->qos = RP_QOS_BURSTABLE;
	w->cpu_request = 100;
	w->cpu_limit = w->mem_limit = 0;
	w->mem_request = 1 << 20;
}

static int cases_place_fill(struct rig *r, struct churn *churn, struct err *err)
{
	for (unsigned i = 0; i < TIME_CTRS; i++) {
		struct wish w;
		struct ctr *ctr;
		small_wish(churn, &w);
		int bad = rig_add(r, &w, &ctr, err);
		if (bad)
			return bad;
	}
	return 0;
}

static int cases_place_sample(struct rig *r, struct churn *churn, uint64_t ns[static TIME_SAMPLES],
			      struct err *err)
{
	for (unsigned i = 0; i < TIME_SAMPLES; i++) {
		struct wish w;
		struct ctr *ctr;
		churn_wish(churn, &w);
		int bad = rig_add(r, &w, &ctr, err);
		ns[i] = r->shim->allocate_ns;
		bad = bad ? bad : rig_remove(r, ctr, err);
		if (bad < 0)
			return bad;
	}
	qsort(ns, TIME_SAMPLES, sizeof *ns, cmp_ns);
	return 0;
}

static int cases_place_timing(struct check *c, struct err *err)
{
	uint64_t ns[TIME_SAMPLES];
	int bad = cases_place_fill(c->rig, c->churn, err);
	if (bad == RIG_REFUSED)
		return check_skip(c, "%u small containers do not fit: %s", TIME_CTRS, err->text);
	bad = bad ? bad : cases_place_sample(c->rig, c->churn, ns, err);
	if (bad)
		return bad;
	uint64_t p50 = ns[TIME_SAMPLES / 2], p99 = ns[TIME_SAMPLES * 99 / 100];
	check_note(c, "allocate at %u containers: p50 %.1f us, p99 %.1f us (mark: %.1f us)",
		   TIME_CTRS, (double)p50 / 1e3, (double)p99 / 1e3, TIME_P99_NS / 1e3);
	if (c->o->strict_time && p99 > TIME_P99_NS)
		return err_set(err, -ETIME, "allocate takes %.1f us (p99)", (double)p99 / 1e3);
	return 0;
}

static const struct check_case cases[] = {
	{"placement/invariants", RP_KIND_POLICY,
	 CASE_MACHINES | CASE_SEEDS | CASE_SLOW | CASE_STARTED, cases_place_invariants,
	 "2,000 random requests; after each: CPUs online, exclusive CPUs unshared, no empty set, "
	 "memory nodes with memory; reloads and sync() move no container"},
	{"placement/returns", RP_KIND_POLICY, CASE_MACHINES | CASE_SEEDS | CASE_STARTED, comes_back,
	 "after all containers are removed, new containers are placed as by a fresh instance"},
	{"placement/determinism", RP_KIND_POLICY,
	 CASE_MACHINES | CASE_SEEDS | CASE_DETAIL(REPEATED), same_twice,
	 "the same requests give the same decisions, byte for byte"},
	{"placement/restart", RP_KIND_POLICY, CASE_MACHINES | CASE_SEEDS | CASE_SLOW | CASE_STARTED,
	 cases_place_restart,
	 "a new instance moves no container, after each 100th of 2,000 requests"},
	{"placement/restart-always", RP_KIND_POLICY,
	 CASE_MACHINES | CASE_SEEDS | CASE_SLOW | CASE_DETAIL(RESTARTED), same_twice,
	 "with a new instance after each request, later decisions are unchanged"},
	{"placement/dry-run", RP_KIND_POLICY, CASE_MACHINES | CASE_SEEDS | CASE_DETAIL(DRY),
	 same_twice, "requests that are first tried in a dropped transaction change nothing later"},
	{"placement/explain", RP_KIND_POLICY, CASE_LARGEST | CASE_STARTED, cases_place_explain,
	 "every container that is pinned has a note that explains why"},
	{"placement/time", RP_KIND_POLICY, CASE_LARGEST | CASE_SLOW | CASE_STARTED,
	 cases_place_timing, "p99 of allocate() at 500 containers (fails only with --strict-time)"},
};

const struct check_group place_cases = {cases, sizeof cases / sizeof *cases};
