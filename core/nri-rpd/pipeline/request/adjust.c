/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/pipeline/request/adjust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/host/expressions.h"
#include "core/nri-rpd/cache/feed.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"
#include "core/nri-rpd/host/service/work.h"

#define SCOPES_MAX 16u
#define CLASS_NAME_MAX 255u

struct adjustment {
	const char *name; /* borrowed from the configuration */
	struct expressions *scopes[SCOPES_MAX];
	unsigned n_scopes;
	bool resizes; /* the adjustment has resources */
	struct needs needs; /* RP_NOT_SET: as in the pod */
	struct blob *rdt, *blockio; /* classes to set; NULL: the class is unchanged */
	int64_t toptier; /* limit of top-tier memory in bytes; 0: none */
};

struct adjustments {
	uint32_t n;
	struct adjustment list[];
};

/* ---- reading --------------------------------------------------------------------------------- */

static int adjust_wrong(rp_cfg node, struct err *err, const char *text)
{
	char where[CONF_PLACE_MAX];
	return err_set(err, -EINVAL, "%s: %s", conf_place(node, where, sizeof where), text);
}

static int check_keys(rp_cfg map, const char *const *known, struct err *err)
{
	for (uint32_t i = 0; i < conf_count(map); i++) {
		const char *const *k = known;
		while (*k && !str_eq(*k, conf_key(map, i)))
			k++;
		if (!*k)
			return adjust_wrong(conf_item(map, i), err, "unknown key");
	}
	return 0;
}

static int read_amount(rp_cfg list, const char *key, bool cpu, int64_t *ret, struct err *err)
{
	rp_cfg node = conf_get(list, key);
	const char *text = conf_text(node, "");
	if (!node)
		return 0;
	if ((cpu ? str_to_milli(text, ret) : str_to_bytes(text, ret)) || *ret < 0)
		return adjust_wrong(node, err,
				    cpu ? "expected an amount of CPU like 2 or 750m"
					: "expected an amount of memory like 512Mi");
	return 0;
}

static int read_amounts(rp_cfg list, int64_t *ret_cpu, int64_t *ret_mem, struct err *err)
{
	static const char *const keys[] = {"cpu", "memory", NULL};
	int r = check_keys(list, keys, err);
	if (!r)
		r = read_amount(list, keys[0], true, ret_cpu, err);
	return r ? r : read_amount(list, keys[1], false, ret_mem, err);
}

static int read_resources(rp_cfg node, struct needs *ret, struct err *err)
{
	static const char *const keys[] = {"requests", "limits", NULL};
	if (!conf_count(node))
		return adjust_wrong(node, err, "an adjustment needs requests or limits");
	int r = check_keys(node, keys, err);
	if (!r)
		r = read_amounts(conf_get(node, keys[0]), &ret->cpu_request, &ret->mem_request,
				 err);
	if (!r)
		r = read_amounts(conf_get(node, keys[1]), &ret->cpu_limit, &ret->mem_limit, err);
	if (!r && ((ret->cpu_limit > 0 && ret->cpu_limit < ret->cpu_request) ||
		   (ret->mem_limit > 0 && ret->mem_limit < ret->mem_request)))
		r = adjust_wrong(node, err, "a limit is less than what is requested");
	return r;
}

static int read_class(rp_cfg classes, const char *key, struct blob **ret, struct err *err)
{
	rp_cfg node = conf_get(classes, key);
	const char *name = conf_text(node, "");
	if (!node)
		return 0;
	if (!*name || strlen(name) > CLASS_NAME_MAX)
		return adjust_wrong(node, err, "expected the name of a class, of up to 255 bytes");
	*ret = blob_str(name);
	return *ret ? 0 : err_errno(err, -ENOMEM, "adjustments");
}

static int read_classes(rp_cfg node, struct adjustment *ret, struct err *err)
{
	static const char *const keys[] = {"rdt", "blockio", NULL};
	if (!conf_count(node))
		return adjust_wrong(node, err,
				    "expected rdt, blockio or both, with names of classes");
	int r = check_keys(node, keys, err);
	if (!r)
		r = read_class(node, keys[0], &ret->rdt, err);
	return r ? r : read_class(node, keys[1], &ret->blockio, err);
}

static int read_toptier(rp_cfg node, int64_t *ret, struct err *err)
{
	if (str_to_bytes(conf_text(node, ""), ret) || *ret <= 0)
		return adjust_wrong(node, err, "expected an amount of memory above 0, like 512Mi");
	return 0;
}

static int read_scopes(struct pipeline *p, rp_cfg list, struct adjustment *ret, struct err *err)
{
	static const char *const keys[] = {"containers", NULL};
	if (!conf_count(list) || conf_count(list) > SCOPES_MAX)
		return adjust_wrong(list, err, "a scope is a list of 1 to 16 maps with containers");
	for (uint32_t i = 0; i < conf_count(list); i++) {
		rp_cfg one = conf_item(list, i);
		int r = check_keys(one, keys, err);
		if (!r && !conf_count(conf_get(one, keys[0])))
			r = adjust_wrong(one, err, "expected containers, a list of expressions");
		if (!r)
			r = expressions_read(&p->env, conf_get(one, keys[0]),
					     &ret->scopes[ret->n_scopes], err);
		if (r)
			return r;
		ret->n_scopes++;
	}
	return 0;
}

static int read_one(struct pipeline *p, rp_cfg node, struct adjustment *ret, struct err *err)
{
	static const char *const keys[] = {"name",    "scope",	      "resources",
					   "classes", "toptierLimit", NULL};
	rp_cfg name = conf_get(node, keys[0]), resources = conf_get(node, keys[2]),
	       classes = conf_get(node, keys[3]), toptier = conf_get(node, keys[4]);
	ret->name = conf_text(name, "");
	int r = check_keys(node, keys, err);
	if (r)
		return r;
	if (!name || !conf_get(node, keys[1]) || (!resources && !classes && !toptier))
		return adjust_wrong(node, err,
				    "an adjustment needs name, scope and resources, classes or "
				    "toptierLimit");
	if (!*ret->name)
		return adjust_wrong(name, err, "expected a name");
	ret->resizes = resources != NULL;
	ret->needs = (struct needs){RP_NOT_SET, RP_NOT_SET, RP_NOT_SET, RP_NOT_SET};
	if (resources)
		r = read_resources(resources, &ret->needs, err);
	if (!r && classes)
		r = read_classes(classes, ret, err);
	if (!r && toptier)
		r = read_toptier(toptier, &ret->toptier, err);
	return r ? r : read_scopes(p, conf_get(node, keys[1]), ret, err);
}

int adjustments_read(struct pipeline *p, const struct conf *conf, struct adjustments **ret,
		     struct err *err)
{
	rp_cfg list = conf_get(conf_root(conf), "adjustments");
	uint32_t n = conf_count(list);
	if (n > ADJUSTMENTS_MAX)
		return adjust_wrong(list, err, "more than 256 adjustments");
	struct adjustments *a = calloc(1, sizeof *a + n * sizeof *a->list);
	if (!a)
		return err_errno(err, -ENOMEM, "adjustments");
	int r = 0;
	for (uint32_t i = 0; !r && i < n; i++) {
		r = read_one(p, conf_item(list, i), &a->list[a->n++], err);
		if (r && *a->list[i].name)
			(void)err_prefix(err, "adjustment %.253s: ", a->list[i].name);
	}
	if (r)
		adjustments_free(a);
	else
		*ret = a;
	return r;
}

struct adjustments *adjustments_free(struct adjustments *a)
{
	for (uint32_t i = 0; a && i < a->n; i++) {
		for (unsigned k = 0; k < a->list[i].n_scopes; k++)
			expressions_free(a->list[i].scopes[k]);
		blob_unref(a->list[i].rdt);
		blob_unref(a->list[i].blockio);
	}
	free(a);
	return NULL;
}

/* ---- resources for the placement ------------------------------------------------------------- */

static bool adjust_applies(const struct adjustment *a, const struct ctr *ctr)
{
	for (unsigned i = 0; i < a->n_scopes; i++)
		if (expressions_match(a->scopes[i], ctr))
			return true;
	return false;
}

/* Returns the first matching adjustment from number `from` on; NULL: none. */
static const struct adjustment *adjust_find(const struct adjustments *all, const struct ctr *ctr,
					    uint32_t from)
{
	for (uint32_t i = from; all && i < all->n; i++)
		if (adjust_applies(&all->list[i], ctr))
			return &all->list[i];
	return NULL;
}

static void adjust_put(int64_t *to, int64_t amount)
{
	if (amount != RP_NOT_SET)
		*to = amount;
}

/* Raises a limit of the pod that is below the adjusted request. */
static void adjust_lift(int64_t *limit, int64_t request)
{
	if (*limit && *limit < request)
		*limit = request;
}

/* Returns the active adjustment of a container, or NULL. An adjustment of resources does not apply
 * to a container without requests. */
static const struct adjustment *in_force(const struct pipeline *p, const struct ctr *ctr)
{
	const struct adjustment *a = adjust_find(p->requests.adjustments, ctr, 0);
	return a && a->resizes && ctr->pod->qos == RP_QOS_BEST_EFFORT ? NULL : a;
}

void adjusted_needs(const struct pipeline *p, const struct ctr *ctr, struct needs *ret)
{
	const struct adjustment *a = in_force(p, ctr);
	*ret = ctr->wanted;
	if (!a)
		return;
	adjust_put(&ret->cpu_request, a->needs.cpu_request);
	adjust_put(&ret->mem_request, a->needs.mem_request);
	adjust_put(&ret->cpu_limit, a->needs.cpu_limit);
	adjust_put(&ret->mem_limit, a->needs.mem_limit);
	adjust_lift(&ret->cpu_limit, ret->cpu_request);
	adjust_lift(&ret->mem_limit, ret->mem_request);
}

const char *pipeline_adjustment(const struct pipeline *p, const struct ctr *ctr)
{
	const struct adjustment *a = in_force(p, ctr);
	return a ? a->name : NULL;
}

DEFINE_GETTER(pipeline_writes_toptier, bool, (controllers_take(p) & RP_TAKES_TOPTIER_LIMIT) != 0)
DEFINE_GETTER(pipeline_n_adjustments, unsigned,
	      p->requests.adjustments ? p->requests.adjustments->n : 0)

/* Adds a conflict to the report. Runs in the child of an attempt, which frees nothing. */
static int report_conflict(Trial__Report *report, const struct adjustment *a, const struct ctr *ctr,
			   const char *text)
{
	if (!report || report->n_conflicts == ADJUST_CONFLICTS_MAX)
		return 0;
	if (!report->conflicts)
		report->conflicts = calloc(ADJUST_CONFLICTS_MAX, sizeof *report->conflicts);
	Trial__Conflict *c = report->conflicts ? malloc(sizeof *c) : NULL;
	if (!c)
		return -ENOMEM;
	trial__conflict__init(c);
	c->adjustment = strdup(a->name);
	c->ctr = strdup(ctr->full_name);
	c->text = strdup(text);
	if (!c->adjustment || !c->ctr || !c->text)
		return -ENOMEM;
	report->conflicts[report->n_conflicts++] = c;
	return 0;
}

/* Returns -EINVAL if the container's adjustments contradict each other, and reports each of
 * them. */
static int adjust_contradiction(const struct pipeline *p, const struct ctr *ctr,
				Trial__Report *report, struct err *err)
{
	const struct adjustments *all = p->requests.adjustments;
	const struct adjustment *a = adjust_find(all, ctr, 0);
	if (!a)
		return 0;
	const struct adjustment *other = adjust_find(all, ctr, (uint32_t)(a - all->list) + 1);
	int r = a->resizes && ctr->pod->qos == RP_QOS_BEST_EFFORT
			? err_set(err, -EINVAL,
				  "adjustments: %s applies to container %s, which has no requests",
				  a->name, ctr->full_name)
		: other ? err_set(err, -EINVAL, "adjustments: both %s and %s apply to container %s",
				  a->name, other->name, ctr->full_name)
			: 0;
	int e = r ? report_conflict(report, a, ctr, err->text) : 0;
	if (r && other && !e)
		e = report_conflict(report, other, ctr, err->text);
	return e ? e : r;
}

static void adjust_note(struct pipeline *p, struct ctr *ctr, const struct adjustment *a,
			const struct needs *needs)
{
	char text[RP_TRAIL_MAX];
	if (a->resizes)
		(void)snprintf(
			text, sizeof text,
			"adjusted by %.200s: CPU request %lldm → %lldm, memory request %lld → %lld",
			a->name, (long long)ctr->wanted.cpu_request, (long long)needs->cpu_request,
			(long long)ctr->wanted.mem_request, (long long)needs->mem_request);
	else
		(void)snprintf(text, sizeof text, "adjusted by %.200s", a->name);
	host_note(p->env.cache, ctr, text);
	if (a->toptier) {
		(void)snprintf(text, sizeof text, "at most %lld bytes of the top tier by %.200s",
			       (long long)a->toptier, a->name);
		host_note(p->env.cache, ctr, text);
	}
	if (!a->rdt && !a->blockio)
		return;
	(void)snprintf(text, sizeof text, "classes by %.200s:%s%.100s%s%.100s", a->name,
		       a->rdt ? " RDT " : "", a->rdt ? blob_text(a->rdt) : "",
		       a->blockio ? " block I/O " : "", a->blockio ? blob_text(a->blockio) : "");
	host_note(p->env.cache, ctr, text);
}

/* Notes in the trail which requests are the container's, if its pod has pod-level resources. */
static void note_pod_resources(struct pipeline *p, struct ctr *ctr)
{
	char text[RP_TRAIL_MAX];
	const struct fed_pod *fed = pod_fed(p->env.cache, ctr->pod);
	struct needs pod = fed ? fed_needs(fed) : ctr->pod->sums;
	if (!(ctr->flags & RP_CTR_POD_RESOURCES) || pod.cpu_request == RP_NOT_SET)
		return;
	(void)snprintf(text, sizeof text,
		       "its pod has pod-level resources, %lldm CPU; the container itself requests "
		       "%lldm%s",
		       (long long)pod.cpu_request, (long long)ctr->wanted.cpu_request,
		       ctr->wanted.cpu_limit ? "" : ", without a limit");
	host_note(p->env.cache, ctr, text);
}

void adjust_stage(struct pipeline *p, struct ctr *ctr, struct decision *d)
{
	const struct adjustment *a = in_force(p, ctr);
	note_pod_resources(p, ctr);
	adjusted_needs(p, ctr, &d->needs);
	txn_put_blob(&d->rdt_adjusted, a ? blob_ref(a->rdt) : NULL);
	txn_put_blob(&d->blockio_adjusted, a ? blob_ref(a->blockio) : NULL);
	d->toptier_adjusted = a ? a->toptier : 0;
	if (a)
		adjust_note(p, ctr, a, &d->needs);
}

/* Returns true if the staged resources match the active adjustments. */
static bool as_adjusted(const struct pipeline *p, const struct ctr *ctr)
{
	const struct adjustment *a = in_force(p, ctr);
	const struct decision *d = txn_view(ctr);
	struct needs needs;
	adjusted_needs(p, ctr, &needs);
	return !memcmp(&d->needs, &needs, sizeof needs) &&
	       blob_equal(d->rdt_adjusted, a ? a->rdt : NULL) &&
	       blob_equal(d->blockio_adjusted, a ? a->blockio : NULL) &&
	       d->toptier_adjusted == (a ? a->toptier : 0);
}

int adjust_check(const struct pipeline *p, Trial__Report *report, struct err *err)
{
	const struct ctr *ctr;
	int r = 0;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		struct err one = ERR_INIT;
		int e = ctr_live(ctr->cur.state) ? adjust_contradiction(p, ctr, report, &one) : 0;
		if (e && !r)
			*err = one;
		r = r ? r : e;
		if (r && !report)
			return r;
	}
	return r;
}

int adjust_stage_all(struct pipeline *p, struct err *err)
{
	struct ctr *ctr;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		if (!ctr_live(ctr->cur.state) || ctr->device || as_adjusted(p, ctr))
			continue;
		struct decision *d = txn_stage(p->txn, ctr);
		if (!d)
			return err_errno(err, -ENOMEM, "container %s", ctr->full_name);
		adjust_stage(p, ctr, d);
	}
	return 0;
}
