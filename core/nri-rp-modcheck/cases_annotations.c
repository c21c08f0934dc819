/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: annotations that the module looks up, with plausible and hostile values. The keys are
 * those of --annotations and those that the module was seen to look up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-modcheck/balance.h"
#include "core/nri-rp-modcheck/churn.h"
#include "core/nri-rp-modcheck/shim.h"
#include "core/lib/util/cleanup.h"

#define DOMAIN ".resource-policy.nri.io"
#define GIB (INT64_C(1) << 30)
#define REQUESTS 1000u

static const struct wish sizes[] = {
	{.ns = "default", WISH_GUARANTEED(2000, GIB), .created_ns = 1},
	{.ns = "default",
	 .qos = RP_QOS_BURSTABLE,
	 .cpu_request = 500,
	 .mem_request = GIB,
	 .created_ns = 2},
};

/* ---- hostile values -------------------------------------------------------------------------- */

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

/* Creates a container with the annotation under all variants of its key. */
static int cases_annotations_annotate(struct rig *r, const char *key, const char *value,
				      unsigned nth, struct err *err)
{
	char names[4][SHIM_KEY_MAX + 64];
	struct wish w = sizes[nth % 2];
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
	bad = rig_settle(bad);
	return bad ? err_prefix(err, "annotation %s: \"%.60s\": ", key, value) : 0;
}

static int each_hostile(struct rig *r, const char *key, struct err *err)
{
	unsigned nth = 0;
	int bad = 0;
	for (unsigned i = 0; !bad && i < N_HOSTILE; i++)
		bad = cases_annotations_annotate(r, key, hostile[i], nth++, err);
	for (unsigned i = 0; !bad && i < N_LONG; i++) {
		_free_ char *text = long_text(i);
		bad = text ? cases_annotations_annotate(r, key, text, nth++, err) : -ENOMEM;
	}
	return bad;
}

/* Repeats all hostile values to find leaks. */
static int all_hostile(struct rig *r, const char *key, struct err *err)
{
	struct balances leaks;
	char what[SHIM_KEY_MAX + 64];
	for (unsigned i = 0; i < BALANCE_ROUNDS; i++) {
		int bad = each_hostile(r, key, err);
		if (bad)
			return bad;
		balance_round(&leaks, i);
	}
	(void)snprintf(what, sizeof what, "malformed annotations %s", key);
	return balance_exact(&leaks, what, err);
}

static int learn_keys(struct churn *churn, struct err *err)
{
	churn->still = true;
	int bad = churn_run(churn, 200, err);
	return bad ? bad : churn_empty(churn, err);
}

static int cases_annotations_annotations(struct check *c, struct err *err)
{
	const struct shim *s = c->rig->shim;
	int bad = learn_keys(c->churn, err);
	if (!bad && !s->n_asked)
		return check_skip(c, "it reads no annotations");
	for (unsigned k = 0; !bad && k < s->n_asked; k++)
		bad = all_hostile(c->rig, s->asked[k], err);
	for (unsigned k = 0; !bad && k < s->n_asked; k++)
		check_note(c, "%s", s->asked[k]);
	return bad;
}

/* ---- plausible values ------------------------------------------------------------------------ */

static const char *const plausible[] = {
	"true", "false", "0",	 "1",	"2",	   "4",	  "1000", "500m", "1.5",      "0-1",
	"0,2",	"1-3",	 "none", "all", "default", "low", "high", "yes",  "[0, 1]",   "{}",
	"a=b",	"a,b",	 "1Gi",	 "10%", "10ms",	   "a",	  "on",	  "off",  "isolated", "exclusive",
};
#define N_PLAUSIBLE (sizeof plausible / sizeof *plausible)

/* Returns the pairs of --annotations, and each key that the module was seen to look up with every
 * plausible value. */
static int own_pairs(struct check *c, const struct shim *s, struct kv **ret, unsigned *ret_n)
{
	struct kv *pairs = calloc(CHECK_OWN_MAX + SHIM_KEYS_MAX * N_PLAUSIBLE, sizeof *pairs);
	unsigned n = 0;
	if (!pairs)
		return -ENOMEM;
	for (unsigned i = 0; i < c->n_own; i++)
		pairs[n++] = c->own[i];
	for (unsigned k = 0; k < s->n_asked; k++)
		for (unsigned i = 0; i < N_PLAUSIBLE; i++)
			pairs[n++] = (struct kv){s->asked[k], plausible[i]};
	*ret = pairs;
	*ret_n = n;
	return 0;
}

static int with_pairs(struct check *c, struct err *err)
{
	_cleanup_(rig_close) struct rig r = {.check = c};
	struct churn churn;
	int bad = churn_begin(&churn, &r, c, err);
	if (bad)
		return bad;
	churn.restart_every = 100;
	r.log = c->o->reproduce ? c->out : NULL;
	bad = churn_run(&churn, REQUESTS, err);
	return bad ? bad : churn_empty(&churn, err);
}

static int cases_annotations_own(struct check *c, struct err *err)
{
	struct kv *given = c->own;
	unsigned n_given = c->n_own;
	int bad = learn_keys(c->churn, err);
	bad = bad ? bad : own_pairs(c, c->rig->shim, &c->own, &c->n_own);
	if (bad)
		return bad;
	unsigned n = c->n_own;
	bad = n ? with_pairs(c, err) : check_skip(c, "it reads no annotations");
	if (!bad)
		check_note(c, "%u pairs", n);
	free(c->own);
	c->own = given;
	c->n_own = n_given;
	return bad;
}

static const struct check_case cases[] = {
	{"placement/annotations", RP_KIND_POLICY,
	 CASE_SMALL | CASE_SLOW | CASE_SEEDS | CASE_STARTED, cases_annotations_own,
	 "the same with annotations that it reads, or that --annotations lists"},
	{"faults/annotations", RP_KIND_POLICY, CASE_SMALL | CASE_SLOW | CASE_STARTED,
	 cases_annotations_annotations,
	 "huge, malformed and hostile values of all annotations that it reads; nothing leaks"},
};

const struct check_group annotation_cases = {cases, sizeof cases / sizeof *cases};
