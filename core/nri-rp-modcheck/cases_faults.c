/* SPDX-License-Identifier: Apache-2.0 */
/* The host says no at every point where it can, once; and annotations that nobody in his right mind would write. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-modcheck/churn.h"
#include "core/nri-rp-modcheck/shim.h"
#include "core/util/cleanup.h"

#define CALLS_MAX 20000u
#define GIB (INT64_C(1) << 30)
#define DOMAIN ".resource-policy.nri.io"

/* ---- the n-th call fails ------------------------------------------------------------------------------------------- */

static const struct wish wishes[] = {
	{.id = "a",
	 .pod = "pod-a",
	 .ns = "default",
	 .qos = RP_QOS_GUARANTEED,
	 .cpu_request = 2000,
	 .cpu_limit = 2000,
	 .mem_request = GIB,
	 .mem_limit = GIB,
	 .created_ns = 1},
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
	/* More than there is: it runs unmanaged. */
	{.id = "d",
	 .pod = "pod-d",
	 .ns = "default",
	 .qos = RP_QOS_GUARANTEED,
	 .cpu_request = 1000 * (RP_CPUS_MAX + 1),
	 .cpu_limit = 1000 * (RP_CPUS_MAX + 1),
	 .mem_request = GIB,
	 .mem_limit = GIB,
	 .created_ns = 4},
};
#define N_WISHES (sizeof wishes / sizeof *wishes)

static int settle(int result)
{
	return result == RIG_REFUSED ? 0 : result;
}

/* A short life in which every call of a policy is made. */
static int script(struct rig *r, bool *ret_alive, struct err *err)
{
	struct ctr *ctr[N_WISHES];
	unsigned n = 0;
	int bad = rig_create(r, err);
	bad = bad ? bad : rig_configure(r, err);
	*ret_alive = !bad;
	if (bad)
		return settle(bad);
	for (unsigned i = 0; !bad && i < N_WISHES; i++) {
		bad = rig_add(r, &wishes[i], &ctr[n], err);
		n += !bad;
		bad = settle(bad);
	}
	if (!bad && n)
		bad = settle(rig_resize(r, ctr[0], &wishes[1], err));
	if (!bad && n)
		bad = settle(rig_event(r, RP_EVENT_STARTED, ctr[0], err));
	bad = bad ? bad : rig_sync(r, err);
	while (!bad && n)
		bad = rig_remove(r, ctr[--n], err);
	return bad;
}

static int healed(struct rig *r, struct buf *expected, struct err *err)
{
	_cleanup_(buf_fini) struct buf got = BUF_INIT;
	char where[700];
	int bad = churn_probe(r, &got, err);
	if (!bad && text_differs(expected, &got, where, sizeof where))
		return err_set(err, -EINVAL, "containers are placed otherwise afterwards: %s",
			       where);
	return bad;
}

static int one_fault(struct rig *r, struct shim *s, uint64_t n, struct buf *expected,
		     struct err *err)
{
	s->n_calls = 0;
	s->fired = false;
	s->fail_at = n;
	/* it may refuse to be made or configured, and that is the end of it */
	bool alive;
	int bad = script(r, &alive, err);
	s->fail_at = 0;
	if (!bad && s->fired && alive)
		bad = healed(r, expected, err);
	if (bad)
		return err_prefix(err, "when call %llu of the host, %s(), fails with %s: ",
				  (unsigned long long)n, s->fired_in ? s->fired_in : "-",
				  strerror(-s->fail_code));
	rig_destroy(r);
	return rig_wipe(r, err);
}

static int fresh_probe(struct check *c, struct buf *out, struct err *err)
{
	_cleanup_(rig_close) struct rig r = {.check = c};
	int bad = rig_open(&r, c, c->module, err);
	bad = bad ? bad : rig_start(&r, err);
	return bad ? bad : churn_probe(&r, out, err);
}

static int all_faults(struct check *c, int32_t code, struct err *err)
{
	_cleanup_(buf_fini) struct buf expected = BUF_INIT;
	_cleanup_(shim_fini) struct shim s;
	_cleanup_(rig_close) struct rig r = {.check = c};
	uint64_t n = 0;
	int bad = shim_init(&s, c->module);
	bad = bad ? bad : fresh_probe(c, &expected, err);
	bad = bad ? bad : rig_open(&r, c, &s.module, err);
	r.faulty = r.unmanaged = true;
	s.fail_code = code;
	do {
		bad = bad ? bad : one_fault(&r, &s, ++n, &expected, err);
	} while (!bad && s.fired && n < CALLS_MAX);
	if (!bad)
		check_note(c, "%llu calls", (unsigned long long)n - 1);
	return bad;
}

static int no_memory(struct check *c, struct err *err)
{
	return all_faults(c, -RP_ENOMEM, err);
}

static int no_space(struct check *c, struct err *err)
{
	return all_faults(c, -RP_ENOSPC, err);
}

static int stale(struct check *c, struct err *err)
{
	return all_faults(c, -RP_ESTALE, err);
}

/* ---- annotations --------------------------------------------------------------------------------------------------- */

static const char *const hostile[] = {
	"",
	" ",
	"\n",
	"-1",
	"0",
	"1e308",
	"99999999999999999999999999",
	"NaN",
	"true\n",
	"TRUE; rm -rf /",
	"%s%s%s%n",
	"../../../../etc/passwd",
	"\x01\x02\x7f",
	"\xff\xfe\xc0\x80",
	"cpuset:0-99999",
	"0-4294967295",
	"[",
	"{",
	"]}",
	"{a: {b: {c: [1, {d: [}",
	"- - - - - - - -",
	"&a [*a, *a]",
	"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n",
	"? ? ? ?",
	"{\"c0\": -1, \"c0\": null}",
	"c0: [9999999999, -9999999999]",
	"!!binary xyz",
	"\"\\ud800\"",
};
#define N_HOSTILE (sizeof hostile / sizeof *hostile)

enum { LONG_A, LONG_BRACKETS, LONG_COMMAS, LONG_LINES, N_LONG };
#define LONG_MAX_BYTES 60000u

static char *long_text(unsigned kind)
{
	static const char *const units[N_LONG] = {"a", "[", "1,", "k: v\n"};
	size_t unit = strlen(units[kind]), n = LONG_MAX_BYTES / unit;
	char *text = malloc(n * unit + 1);
	for (size_t i = 0; text && i < n; i++)
		memcpy(text + i * unit, units[kind], unit);
	if (text)
		text[n * unit] = '\0';
	return text;
}

/* Under all the names by which it may be looked for. */
static int annotate(struct rig *r, const char *key, const char *value, unsigned nth,
		    struct err *err)
{
	char names[4][SHIM_KEY_MAX + 64];
	struct wish w = wishes[nth % 2];
	struct ctr *ctr;
	(void)snprintf(w.id, sizeof w.id, "c%u", nth);
	(void)snprintf(w.pod, sizeof w.pod, "pod-%u", nth);
	(void)snprintf(names[0], sizeof names[0], "%s", key);
	(void)snprintf(names[1], sizeof names[1], "%s/pod", key);
	(void)snprintf(names[2], sizeof names[2], "%s" DOMAIN, key);
	(void)snprintf(names[3], sizeof names[3], "%s" DOMAIN "/pod", key);
	for (unsigned i = 0; i < 4; i++)
		w.annotations[w.n_annotations++] = (struct kv){names[i], value};
	int bad = rig_add(r, &w, &ctr, err);
	if (!bad)
		bad = rig_remove(r, ctr, err);
	bad = settle(bad);
	return bad ? err_prefix(err, "annotation %s: \"%.60s\": ", key, value) : 0;
}

static int learn_keys(struct check *c, struct shim *s, struct rig *r, struct err *err)
{
	struct churn churn;
	int bad = rig_open(r, c, &s->module, err);
	bad = bad ? bad : rig_start(r, err);
	if (bad)
		return bad;
	churn_init(&churn, r, c->seed);
	churn.still = true;
	bad = churn_run(&churn, 200, err);
	return bad ? bad : churn_empty(&churn, err);
}

static int annotations(struct check *c, struct err *err)
{
	_cleanup_(shim_fini) struct shim s;
	_cleanup_(rig_close) struct rig r = {.check = c};
	unsigned nth = 0;
	int bad = shim_init(&s, c->module);
	bad = bad ? bad : learn_keys(c, &s, &r, err);
	if (!bad && !s.n_asked)
		return check_skip(c, "it looks at no annotations");
	for (unsigned k = 0; !bad && k < s.n_asked; k++) {
		for (unsigned i = 0; !bad && i < N_HOSTILE; i++)
			bad = annotate(&r, s.asked[k], hostile[i], nth++, err);
		for (unsigned i = 0; !bad && i < N_LONG; i++) {
			_free_ char *text = long_text(i);
			bad = text ? annotate(&r, s.asked[k], text, nth++, err) : -ENOMEM;
		}
	}
	bad = bad ? bad : shim_check(&s, err);
	for (unsigned k = 0; !bad && k < s.n_asked; k++)
		check_note(c, "%s", s.asked[k]);
	return bad;
}

static const struct check_case cases[] = {
	{"faults/enomem", RP_KIND_POLICY, CASE_SMALL | CASE_SLOW, no_memory,
	 "each call of the host fails once with ENOMEM: refused or coped with, and healed"},
	{"faults/enospc", RP_KIND_POLICY, CASE_SMALL | CASE_SLOW, no_space, "the same with ENOSPC"},
	{"faults/estale", RP_KIND_POLICY, CASE_SMALL | CASE_SLOW, stale, "the same with ESTALE"},
	{"faults/annotations", RP_KIND_POLICY, CASE_SMALL | CASE_SLOW, annotations,
	 "huge, malformed and hostile values of all annotations that it looks at"},
};

const struct check_group fault_cases = {cases, sizeof cases / sizeof *cases};
