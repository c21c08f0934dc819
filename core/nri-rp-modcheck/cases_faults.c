/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: each call to the host that can fail does so once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-modcheck/balance.h"
#include "core/nri-rp-modcheck/churn.h"
#include "core/nri-rp-modcheck/shim.h"
#include "core/lib/util/cleanup.h"

#define CALLS_MAX 20000u
#define GIB (INT64_C(1) << 30)

/* ---- the n-th call fails --------------------------------------------------------------------- */

static const struct wish wishes[] = {
	{.id = "a", .pod = "pod-a", .ns = "default", WISH_GUARANTEED(2000, GIB), .created_ns = 1},
	{.id = "b",
	 .pod = "pod-b",
	 .ns = "default",
	 .qos = RP_QOS_BURSTABLE,
	 .cpu_request = 500,
	 .mem_request = GIB,
	 .created_ns = 2},
	{.id = "c",
	 .pod = "pod-c",
	 .ns = "kube-system",
	 .qos = RP_QOS_BEST_EFFORT,
	 .created_ns = 3},
	/* More than the machine has: runs unmanaged. */
	{.id = "d",
	 .pod = "pod-d",
	 .ns = "default",
	 WISH_GUARANTEED(1000 * (RP_CPUS_MAX + 1), GIB),
	 .created_ns = 4},
};
#define N_WISHES (sizeof wishes / sizeof *wishes)

/* Runs a short life that calls every function of a policy. */
static int cases_faults_script(struct rig *r, bool *ret_alive, struct err *err)
{
	struct ctr *ctr[N_WISHES];
	unsigned n = 0;
	int bad = rig_create(r, err);
	bad = bad ? bad : rig_configure(r, err);
	*ret_alive = !bad;
	if (bad)
		return rig_settle(bad);
	for (unsigned i = 0; !bad && i < N_WISHES; i++) {
		bad = rig_add(r, &wishes[i], &ctr[n], err);
		n += !bad;
		bad = rig_settle(bad);
	}
	if (!bad && n)
		bad = rig_settle(rig_resize(r, ctr[0], &wishes[1], err));
	if (!bad && n)
		bad = rig_settle(rig_event(r, RP_EVENT_STARTED, ctr[0], err));
	bad = bad ? bad : rig_sync(r, err);
	while (!bad && n)
		bad = rig_remove(r, ctr[--n], err);
	return bad;
}

static int cases_faults_healed(struct rig *r, struct buf *expected, struct err *err)
{
	_cleanup_(buf_fini) struct buf got = BUF_INIT;
	int bad = churn_probe(r, &got, err);
	return bad ? bad
		   : text_same(expected, &got, err, "containers are placed differently afterwards");
}

static int one_fault(struct rig *r, uint64_t n, struct buf *expected, struct err *err)
{
	struct shim *s = r->shim;
	s->n_calls = 0;
	s->fired = false;
	s->fail_at = n;
	/* the instance may refuse its creation or configuration, which ends the script */
	bool alive;
	int bad = cases_faults_script(r, &alive, err);
	s->fail_at = 0;
	if (!bad && s->fired && alive)
		bad = cases_faults_healed(r, expected, err);
	if (bad)
		return err_prefix(err, "when call %llu of the host, %s(), fails with %s: ",
				  (unsigned long long)n, s->fired_in ? s->fired_in : "-",
				  strerror(-s->fail_code));
	rig_destroy(r);
	return rig_wipe(r, err);
}

static int cases_faults_all(struct check *c, struct err *err)
{
	_cleanup_(buf_fini) struct buf expected = BUF_INIT;
	struct rig *r = c->rig;
	uint64_t n = 0;
	int bad = churn_probe_fresh(c, &expected, err);
	r->faulty = r->unmanaged = true;
	r->shim->fail_code = -(int32_t)c->detail;
	do {
		bad = bad ? bad : one_fault(r, ++n, &expected, err);
	} while (!bad && r->shim->fired && n < CALLS_MAX);
	if (!bad)
		check_note(c, "%llu calls", (unsigned long long)n - 1);
	return bad;
}

/* ---- leaks of failure paths ------------------------------------------------------------------ */

#define LEAK_CALLS 150u

/* Repeats the script with the same failing call to find leaks. */
static int leak_at(struct rig *r, uint64_t n, bool *ret_fired, struct err *err)
{
	struct shim *s = r->shim;
	struct balances leaks;
	char what[160];
	bool alive;
	for (unsigned i = 0; i < BALANCE_ROUNDS; i++) {
		s->n_calls = 0;
		s->fired = false;
		s->fail_at = n;
		int bad = cases_faults_script(r, &alive, err);
		s->fail_at = 0;
		rig_destroy(r);
		bad = bad ? bad : rig_wipe(r, err);
		if (bad)
			return bad;
		balance_round(&leaks, i);
	}
	*ret_fired = s->fired;
	(void)snprintf(what, sizeof what, "when call %llu of the host, %s(), fails",
		       (unsigned long long)n, s->fired_in ? s->fired_in : "-");
	return balance_exact(&leaks, what, err);
}

static int cases_faults_leaks(struct check *c, struct err *err)
{
	struct rig *r = c->rig;
	bool fired = true;
	int bad = 0;
	r->faulty = r->unmanaged = true;
	r->shim->fail_code = -RP_ENOMEM;
	for (uint64_t n = 1; !bad && fired && n <= LEAK_CALLS; n++)
		bad = leak_at(r, n, &fired, err);
	return bad;
}

static const struct check_case cases[] = {
	{"faults/enomem", RP_KIND_POLICY,
	 CASE_SMALL | CASE_SLOW | CASE_OPEN | CASE_DETAIL(RP_ENOMEM), cases_faults_all,
	 "each call of the host fails once with ENOMEM: refused or handled, and recovered"},
	{"faults/enospc", RP_KIND_POLICY,
	 CASE_SMALL | CASE_SLOW | CASE_OPEN | CASE_DETAIL(RP_ENOSPC), cases_faults_all,
	 "the same with ENOSPC"},
	{"faults/estale", RP_KIND_POLICY,
	 CASE_SMALL | CASE_SLOW | CASE_OPEN | CASE_DETAIL(RP_ESTALE), cases_faults_all,
	 "the same with ESTALE"},
	{"faults/leaks", RP_KIND_POLICY, CASE_SMALL | CASE_SLOW | CASE_OPEN, cases_faults_leaks,
	 "nothing leaks when a call of the host fails repeatedly"},
};

const struct check_group fault_cases = {cases, sizeof cases / sizeof *cases};
