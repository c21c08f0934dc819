/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question to resource plugins for the deferred request. Requests arrive one at a time, so
 * there is one question with up to three steps: hints, allocation, pre-start call. Each step has a
 * serial number, and ends with an answer, a failure or the time limit.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/feed.h"
#include "core/nri-rpd/host/instance.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/wait/plugins.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/number.h"
#include "core/nri-rpd/host/service/work.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/pipeline/wait/plugin_question.h"

#define LOG_SOURCE "plugins"
#define ARENA_BLOCK (16u << 10)
#define ARENA_MAX (96u << 20) /* the question, and the largest answer of plugins unpacked */
#define WANTED_MAX 512u
#define MAIN_KEY "kubernetes.io/main-container-name"
#define AGGREGATED_KEY "pod.kubernetes.io/pod-aggregated-requests"
#define AGGREGATED_MAX 65536u
#define WHY_SHOWN 60u /* largest part of a plugin's reason in a description of hints, in bytes */

enum step { STEP_NONE, STEP_HINTS, STEP_ALLOCATE, STEP_PRE_START };
enum state { STATE_ASKED, STATE_ANSWERED, STATE_FAILED };

struct inquiry {
	struct arena *arena; /* owns all below; created at the first use */
	enum step step;
	enum state state;
	uint32_t serial;
	bool known; /* the pod was known before its RunPodSandbox */
	bool late; /* the query failed because the time was over */
	bool counted; /* the delay has been logged */
	const char *uid, *ctr; /* UID of the pod, and container; ctr "": the whole pod */
	struct plugin_wanted *wanted;
	uint32_t n_wanted;
	struct plugin_wanted *hinted; /* resources for which hints were requested */
	struct plugin_hints *hints; /* hints for `hinted`; NULL: none requested */
	uint32_t n_hinted;
	uint64_t received_ns; /* arrival of the request; 0: not known */
	const Grants__Grants *granted;
	char why[ERR_TEXT_MAX];
};

/* ---- wanted resources ------------------------------------------------------------------------ */

/* Pod of a request, from the cache or from the request. */
struct about {
	const char *uid, *ns, *name, *cgroup_parent;
	const struct kv *labels, *annotations;
	uint32_t n_labels, n_annotations;
	const struct fed_pod *fed; /* the cluster's report; NULL: none */
};

static const struct kv *list_of(struct arena *arena, const struct kvs *from, uint32_t *ret_n)
{
	struct kv *list = arena_array(arena, from->n + 1, sizeof *list);
	uint32_t n = 0;
	KVS_EACH(k, v, from)
	{
		if (list && n < from->n)
			list[n++] = (struct kv){k, v};
	}
	*ret_n = n;
	return list;
}

static void about_desc(const struct pipeline *p, const struct pod_desc *d, struct about *ret)
{
	*ret = (struct about){.uid = d->uid,
			      .ns = d->ns,
			      .name = d->name,
			      .cgroup_parent = d->cgroup_parent ? d->cgroup_parent : "",
			      .labels = d->labels,
			      .annotations = d->annotations,
			      .n_labels = d->n_labels,
			      .n_annotations = d->n_annotations,
			      .fed = feed_find(cache_feed(p->env.cache), d->uid)};
}

static bool about_pod(const struct pipeline *p, struct arena *a, const struct pod *pod,
		      struct about *ret)
{
	*ret = (struct about){.uid = pod->uid,
			      .ns = pod->ns,
			      .name = pod->name,
			      .cgroup_parent = pod->cgroup_parent ? pod->cgroup_parent : "",
			      .fed = feed_find(cache_feed(p->env.cache), pod->uid)};
	ret->labels = list_of(a, &pod->labels, &ret->n_labels);
	ret->annotations = list_of(a, &pod->annotations, &ret->n_annotations);
	return ret->labels && ret->annotations;
}

static double amount_of(const struct fed_ctr *c, const char *resource)
{
	int64_t request = 0, limit;
	if (str_eq(resource, "cpu"))
		return (double)c->needs.cpu_request / 1000;
	if (str_eq(resource, "memory"))
		return (double)c->needs.mem_request;
	return fed_extended(c, resource, &request, &limit) ? 0 : (double)request;
}

/* Returns the amount of a number, or of a quantity as text. Negative: neither. Large quantities are
 * parsed as bytes, since their thousandths would overflow. */
static double plugin_question_quantity(const json_t *value)
{
	const char *text = json_string_value(value);
	int64_t n;
	if (!text)
		return json_is_number(value) ? json_number_value(value) : -1;
	return !str_to_milli(text, &n)	 ? (double)n / 1000
	       : !str_to_bytes(text, &n) ? (double)n
					 : -1;
}

/* Reads the amount that the pod requests as a whole by its annotation; 0: none. */
static int plugin_question_aggregated(const struct about *a, const char *resource, double *ret,
				      struct err *err)
{
	const char *text = kv_text(a->annotations, a->n_annotations, AGGREGATED_KEY);
	*ret = 0;
	if (!text)
		return 0;
	json_t *all = strlen(text) > AGGREGATED_MAX
			      ? NULL
			      : json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const json_t *value = json_object_get(all, resource);
	double amount = value ? plugin_question_quantity(value) : 0;
	int r = !json_is_object(all)
			? err_set(err, -EINVAL, "annotation " AGGREGATED_KEY ": expected an object")
		: amount < 0 ? err_set(err, -EINVAL,
				       "annotation " AGGREGATED_KEY ": %s: expected a quantity",
				       resource)
			     : 0;
	json_decref(all);
	*ret = r ? 0 : amount;
	return r;
}

static const struct fed_ctr *main_of(const struct about *a)
{
	const char *named = kv_text(a->annotations, a->n_annotations, MAIN_KEY);
	const struct fed_ctr *first = NULL;
	for (uint32_t i = 0; i < a->fed->n_ctrs; i++) {
		const struct fed_ctr *c = &a->fed->ctrs[i];
		if (c->kind != FED_APP)
			continue;
		first = first ? first : c;
		if (named && str_eq(c->name, named))
			return c;
	}
	return first;
}

static bool is_wanted(const struct about *a, const char *resource)
{
	for (uint32_t i = 0; i < a->fed->n_ctrs; i++)
		if (amount_of(&a->fed->ctrs[i], resource) > 0)
			return true;
	return false;
}

/* Adds the amounts of one resource that the containers, or the pod as a whole, request. An
 * unreadable annotation is an error only if a container requests the resource. */
static int plugin_question_collect(const struct about *a, struct inquiry *q, const char *resource,
				   const char *ctr, struct err *err)
{
	const struct fed_ctr *main = main_of(a);
	uint32_t index[2] = {0, 0};
	double whole;
	struct plugin_wanted *to = q->wanted;
	struct err why = ERR_INIT;
	int r = plugin_question_aggregated(a, resource, &whole, &why);
	if (r && is_wanted(a, resource))
		return err_set(err, r, "%s", why.text);
	if (whole > 0 && q->n_wanted < WANTED_MAX)
		to[q->n_wanted++] = (struct plugin_wanted){
			.ctr = "", .kind = PLUGIN_CTR_MAIN, .resource = resource, .amount = whole};
	for (uint32_t i = 0; i < a->fed->n_ctrs && whole <= 0; i++) {
		const struct fed_ctr *c = &a->fed->ctrs[i];
		bool init = c->kind == FED_INIT;
		uint32_t at = index[init]++;
		double amount = amount_of(c, resource);
		if (amount <= 0 || (*ctr && !str_eq(ctr, c->name)) || q->n_wanted == WANTED_MAX)
			continue;
		to[q->n_wanted++] = (struct plugin_wanted){
			.ctr = c->name,
			.kind = init	    ? PLUGIN_CTR_INIT
				: c == main ? PLUGIN_CTR_MAIN
					    : PLUGIN_CTR_SIDECAR,
			.index = at,
			.resource = resource,
			.amount = amount,
		};
	}
	return 0;
}

/* Copies the texts, because the cluster may report the pod again while a question is
 * outstanding. */
static int own_texts(struct inquiry *q)
{
	for (uint32_t i = 0; i < q->n_wanted; i++) {
		q->wanted[i].ctr = arena_strdup(q->arena, q->wanted[i].ctr);
		q->wanted[i].resource = arena_strdup(q->arena, q->wanted[i].resource);
		if (!q->wanted[i].ctr || !q->wanted[i].resource)
			return -ENOMEM;
	}
	return 0;
}

/* Collects all resources that containers request from plugins, in the order of registration. `ctr`:
 * one container's; "": of all. */
static int find_wanted(const struct pipeline *p, struct inquiry *q, const struct about *a,
		       const char *ctr, struct err *err)
{
	int r = 0;
	q->n_wanted = 0;
	q->wanted = arena_array(q->arena, WANTED_MAX, sizeof *q->wanted);
	q->uid = arena_strdup(q->arena, a->uid);
	q->ctr = arena_strdup(q->arena, ctr);
	if (!q->wanted || !q->uid || !q->ctr)
		return err_errno(err, -ENOMEM, "resource plugins");
	for (uint32_t i = 0; a->fed && !r && i < p->wait.plugins.n; i++)
		r = plugin_question_collect(a, q, p->wait.plugins.list[i].resource, ctr, err);
	if (!r && own_texts(q))
		r = err_errno(err, -ENOMEM, "resource plugins");
	return r;
}

static void keep_wanted(struct inquiry *q, bool (*wants)(const struct plugin_wanted *w, void *arg),
			void *arg)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < q->n_wanted; i++)
		if (wants(&q->wanted[i], arg))
			q->wanted[n++] = q->wanted[i];
	q->n_wanted = n;
}

static bool is_aligned(const struct plugin_wanted *w, void *arg)
{
	const struct plugin_desc *d = plugins_of(arg, w->resource);
	return d && d->aligns;
}

static bool is_allocated(const struct plugin_wanted *w, void *arg)
{
	return w->kind != PLUGIN_CTR_INIT; /* init containers use the pod's allocations */
}

static bool is_missing(const struct plugin_wanted *w, void *arg)
{
	const Grants__Grants *has = arg;
	for (size_t i = 0; i < has->n_grants; i++)
		if (str_eq(has->grants[i]->resource, w->resource) &&
		    str_eq(has->grants[i]->container, w->ctr))
			return false;
	return w->kind != PLUGIN_CTR_INIT;
}

/* ---- questions ------------------------------------------------------------------------------- */

void inquiry_reset(struct pipeline *p)
{
	struct inquiry *q = p->wait.plugins.inquiry;
	uint32_t serial = q->serial + 1;
	struct arena *arena = q->arena;
	if (arena)
		arena_reset(arena);
	*q = (struct inquiry){.arena = arena, .serial = serial, .uid = "", .ctr = ""};
}

static bool plugin_question_begins(struct inquiry *q)
{
	q->arena = q->arena ? q->arena : arena_new(ARENA_BLOCK, ARENA_MAX);
	return q->arena != NULL;
}

static void plugin_question_fail(struct pipeline *p, struct inquiry *q, bool late, const char *why)
{
	q->state = STATE_FAILED;
	q->late = late;
	(void)snprintf(q->why, sizeof q->why, "%s", why);
	p->wait.plugins.counts.failed++;
	p->wait.plugins.counts.late += late;
}

static uint64_t end_ms(const struct pipeline *p, const struct inquiry *q)
{
	return (q->received_ns ? q->received_ns : p->requests.began_ns) / 1000000u +
	       admit_limit_ms(p);
}

/* Names the plugin that has not answered. */
static void name_asked(const struct pipeline *p, const struct inquiry *q, char *ret, size_t size)
{
	const struct plugin_desc *d = q->n_wanted ? plugins_of(p, q->wanted[0].resource) : NULL;
	(void)snprintf(ret, size, "resource plugin%s %s%s%s%s",
		       q->n_wanted > 1 ? "s, among them" : "",
		       q->n_wanted ? q->wanted[0].resource : "", d ? " (" : "",
		       d ? d->endpoint : "", d ? ")" : "");
}

static void plugin_question_ask(struct pipeline *p, struct inquiry *q, enum step step,
				const struct about *a)
{
	struct plugins *s = &p->wait.plugins;
	uint64_t now = clock_ms(), end = end_ms(p, q);
	int (*how)(void *, const struct plugin_question *) = step == STEP_HINTS ? s->source.hints
							     : step == STEP_ALLOCATE
								     ? s->source.allocate
								     : s->source.pre_start;
	q->step = step;
	q->state = STATE_ASKED;
	q->serial++;
	s->counts.asked++;
	if (!s->reachable) {
		plugin_question_fail(p, q, false,
				     "resource plugins are not available: no agent is connected; "
				     "see systemctl status nri-rp-agent");
		return;
	}
	const struct plugin_question question = {
		.serial = q->serial,
		.uid = a->uid,
		.ns = a->ns,
		.name = a->name,
		.qos = derive_qos_name(derive_qos(a->cgroup_parent)),
		.labels = a->labels,
		.annotations = a->annotations,
		.n_labels = a->n_labels,
		.n_annotations = a->n_annotations,
		.wanted = q->wanted,
		.n_wanted = q->n_wanted,
		.timeout_ms = end > now ? (uint32_t)(end - now) : 1,
	};
	int r = how(s->source.arg, &question);
	if (r)
		plugin_question_fail(p, q, false, strerror(-r));
}

/* Returns the time limit of an outstanding question. 0: none is outstanding. A question beyond its
 * limit fails. */
static uint64_t still_asked(struct pipeline *p, struct inquiry *q)
{
	char whom[512], why[ERR_TEXT_MAX];
	uint64_t end = end_ms(p, q);
	if (q->step == STEP_NONE || q->state != STATE_ASKED)
		return 0;
	if (clock_ms() < end)
		return end;
	name_asked(p, q, whom, sizeof whom);
	(void)snprintf(why, sizeof why, "%.400s: no reply in time", whom);
	plugin_question_fail(p, q, true, why);
	return 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct inquiry *plugin_question_asked(struct pipeline *p, uint32_t serial)
{
	struct inquiry *q = p->wait.plugins.inquiry;
	return q->step != STEP_NONE && q->state == STATE_ASKED && q->serial == serial ? q : NULL;
}

static void plugin_question_answered(struct pipeline *p, struct inquiry *q)
{
	q->state = STATE_ANSWERED;
	p->wait.plugins.counts.answered++;
	hold_told(p);
}

struct arena *pipeline_plugins_arena(struct pipeline *p, uint32_t serial)
{
	struct inquiry *q = plugin_question_asked(p, serial);
	return q ? q->arena : NULL;
}

void pipeline_plugins_hinted(struct pipeline *p, uint32_t serial, struct plugin_hints *list,
			     uint32_t n)
{
	struct inquiry *q = plugin_question_asked(p, serial);
	if (!q)
		return;
	if (n != q->n_wanted) {
		pipeline_plugins_failed(p, serial, false, "the agent's reply is invalid");
		return;
	}
	q->hints = list;
	q->hinted = q->wanted;
	q->n_hinted = n;
	plugin_question_answered(p, q);
}

void pipeline_plugins_allocated(struct pipeline *p, uint32_t serial, const Grants__Grants *grants)
{
	struct inquiry *q = plugin_question_asked(p, serial);
	if (!q)
		return;
	q->granted = grants;
	plugin_question_answered(p, q);
}

void pipeline_plugins_ready(struct pipeline *p, uint32_t serial)
{
	struct inquiry *q = plugin_question_asked(p, serial);
	if (q)
		plugin_question_answered(p, q);
}

void pipeline_plugins_failed(struct pipeline *p, uint32_t serial, bool late, const char *why)
{
	struct inquiry *q = plugin_question_asked(p, serial);
	if (!q)
		return;
	plugin_question_fail(p, q, late, why);
	hold_told(p);
}

/* ---- hints for the policy -------------------------------------------------------------------- */

static struct plugin_wanted *plugin_question_hinted(struct inquiry *q, const struct pipeline *p,
						    rp_pod handle, uint32_t list)
{
	const struct pod *pod = cache_pod_of(p->env.cache, handle);
	return q->step == STEP_HINTS && q->hints && pod && str_eq(pod->uid, q->uid) &&
			       list < q->n_hinted
		       ? &q->hinted[list]
		       : NULL;
}

static int hints_list(rp_pod pod, uint32_t list, struct rp_hint_list *ret, void *arg)
{
	const struct pipeline *p = arg;
	struct inquiry *q = p->wait.plugins.inquiry;
	const struct plugin_wanted *w = plugin_question_hinted(q, p, pod, list);
	if (!w)
		return -ENOENT;
	const struct plugin_hints *h = &q->hints[list];
	*ret = (struct rp_hint_list){
		.flags = (w->kind == PLUGIN_CTR_MAIN ? RP_HINTS_MAIN : 0u) |
			 (h->told && !h->n ? RP_HINTS_NOTHING_FITS : 0u),
		.ctr = w->ctr,
		.resource = w->resource,
		.n = h->n,
	};
	return 0;
}

static int hints_one(rp_pod pod, uint32_t list, uint32_t index, struct rp_hint *ret, void *arg)
{
	const struct pipeline *p = arg;
	struct inquiry *q = p->wait.plugins.inquiry;
	if (!plugin_question_hinted(q, p, pod, list) || index >= q->hints[list].n)
		return -ENOENT;
	const struct plugin_hint *h = &q->hints[list].list[index];
	*ret = (struct rp_hint){.preferred = h->preferred, .nodes = h->nodes};
	return 0;
}

static int hints_choose(rp_pod pod, uint32_t list, struct rp_ids nodes, bool preferred, void *arg)
{
	const struct pipeline *p = arg;
	struct inquiry *q = p->wait.plugins.inquiry;
	struct plugin_wanted *w = plugin_question_hinted(q, p, pod, list);
	if (!w)
		return -ENOENT;
	w->nodes = nodes;
	w->nodes.w = arena_memdup(q->arena, nodes.w, nodes.nw * sizeof *nodes.w);
	if (!w->nodes.w)
		return -ENOMEM;
	w->preferred = preferred;
	w->chosen = true;
	return 0;
}

const struct hint_ops inquiry_hint_ops = {hints_list, hints_one, hints_choose};

/* ---- admission of a pod ---------------------------------------------------------------------- */

uint64_t inquiry_wait_pod(struct pipeline *p, const struct request_about *about)
{
	struct inquiry *q = p->wait.plugins.inquiry;
	struct about a;
	if (!plugins_any(p))
		return 0;
	if (q->step != STEP_NONE)
		return still_asked(p, q);
	q->received_ns = about->received_ns;
	if (!p->policy || !instance_admits(p->policy) || !plugin_question_begins(q))
		return 0;
	about_desc(p, about->pod, &a);
	if (find_wanted(p, q, &a, "", NULL))
		return 0; /* the allocation reports the same error */
	keep_wanted(q, is_aligned, p);
	if (!q->n_wanted)
		return 0;
	plugin_question_ask(p, q, STEP_HINTS, &a);
	return still_asked(p, q);
}

static bool allows_late(const struct pipeline *p)
{
	return conf_core(p->conf)->admit.on_timeout == CONF_ALLOW;
}

/* Returns an error if the question has failed. A failure for lack of time is accepted if rp.conf
 * allows it (admit.onTimeout). */
static int plugin_question_judge(struct pipeline *p, struct inquiry *q, const char *who,
				 struct err *err)
{
	if (q->step == STEP_NONE || q->state != STATE_FAILED)
		return 0;
	if (!q->late)
		return err_set(err, -EAGAIN, "%s", q->why);
	if (!allows_late(p))
		return err_set(err, -ETIMEDOUT, "admission timed out: %s", q->why);
	if (!q->counted && log_allowed(&p->wait.plugins.failures, LOG_SOURCE))
		log_warning("%s starts without its resources of a resource plugin: %s", who,
			    q->why);
	q->counted = true;
	return 0;
}

static void say_nodes(struct buf *to, struct rp_ids nodes, bool preferred)
{
	char text[64];
	if (rp_ids_empty(nodes))
		(void)snprintf(text, sizeof text, "any");
	else
		(void)rp_ids_format(nodes, text, sizeof text);
	(void)buf_printf(to, " %s%s", text, preferred ? "*" : "");
}

/* Writes the hints of one resource and the chosen nodes as one line. */
static void describe_hints(const struct plugin_hints *h, const struct plugin_wanted *w,
			   struct buf *to)
{
	(void)buf_add_str(to, "NUMA nodes (* preferred):");
	for (uint32_t i = 0; i < h->n && buf_len(to) < GRANT_HINTS_MAX / 2; i++)
		say_nodes(to, h->list[i].nodes, h->list[i].preferred);
	if (!h->told)
		(void)buf_add_str(to, " no opinion");
	else if (!h->n) {
		const char *why = h->error ? h->error : "";
		(void)buf_printf(to, " nothing fits (%.*s)", (int)utf8_cut(why, WHY_SHOWN), why);
	}
	if (w->chosen) {
		(void)buf_add_str(to, "; merged:");
		say_nodes(to, w->nodes, w->preferred);
	}
}

/* Stores with each grant the hints of its resource. */
static int keep_hints(struct inquiry *q, struct err *err)
{
	for (size_t i = 0; i < q->granted->n_grants; i++) {
		Grants__Grant *g = q->granted->grants[i];
		for (uint32_t k = 0; q->hints && k < q->n_hinted; k++) {
			_cleanup_(buf_fini) struct buf text = BUF_INIT;
			if (!str_eq(q->hinted[k].resource, g->resource) ||
			    !str_eq(q->hinted[k].ctr, g->container))
				continue;
			describe_hints(&q->hints[k], &q->hinted[k], &text);
			g->hints = arena_strndup(q->arena, buf_text(&text),
						 utf8_cut(buf_text(&text), GRANT_HINTS_MAX - 1));
			if (!g->hints)
				return err_errno(err, -ENOMEM, "hints");
		}
	}
	return 0;
}

/* Copies the nodes that the policy has chosen from the hints into the allocation's question. */
static void take_choices(struct inquiry *q)
{
	for (uint32_t i = 0; i < q->n_wanted; i++) {
		struct plugin_wanted *w = &q->wanted[i];
		for (uint32_t k = 0; k < q->n_hinted; k++) {
			const struct plugin_wanted *h = &q->hinted[k];
			if (!h->chosen || !str_eq(h->resource, w->resource) ||
			    !str_eq(h->ctr, w->ctr))
				continue;
			w->chosen = true;
			w->preferred = h->preferred;
			w->nodes = h->nodes;
		}
	}
}

int inquiry_admitted(struct pipeline *p, struct pod *pod, bool known, struct err *err)
{
	struct inquiry *q = p->wait.plugins.inquiry;
	struct about a;
	if (!plugins_any(p))
		return 0;
	int r = plugin_question_judge(p, q, pod->name, err);
	if (r || q->late)
		return r;
	r = plugin_question_begins(q) && about_pod(p, q->arena, pod, &a)
		    ? find_wanted(p, q, &a, "", err)
		    : err_errno(err, -ENOMEM, "resource plugins");
	if (r)
		return r;
	keep_wanted(q, is_allocated, NULL);
	q->known = known;
	if (!q->n_wanted)
		return 0;
	take_choices(q);
	plugin_question_ask(p, q, STEP_ALLOCATE, &a);
	r = plugin_question_judge(p, q, pod->name, err);
	return r || q->state == STATE_FAILED ? r : 1;
}

static int take_granted(struct pipeline *p, struct inquiry *q, struct pod *pod, struct err *err)
{
	int r = keep_hints(q, err);
	if (!r)
		r = plugins_add_grants(p, pod, q->granted, err);
	if (r)
		(void)err_prefix(err, "grants of resource plugins cannot be saved: ");
	return r;
}

static void give_up(struct pipeline *p, struct inquiry *q)
{
	if (q->step != STEP_NONE && q->state == STATE_ASKED)
		plugin_question_fail(p, q, true, "no time was left to wait for resource plugins");
}

int inquiry_granted(struct pipeline *p, struct pod *pod, bool *ret_known, struct err *err)
{
	struct inquiry *q = p->wait.plugins.inquiry;
	*ret_known = q->known;
	give_up(p, q);
	int r = plugin_question_judge(p, q, pod->name, err);
	if (r || q->state != STATE_ANSWERED)
		return r;
	r = take_granted(p, q, pod, err);
	if (r)
		return r;
	/* before the runtime gets the answer */
	persist_now(p);
	return 0;
}

/* ---- creation of a container ----------------------------------------------------------------- */

static int find_pre_start(const struct pipeline *p, struct inquiry *q, const Grants__Grants *has,
			  const char *ctr)
{
	q->n_wanted = 0;
	q->wanted = arena_array(q->arena, p->wait.plugins.n + 1, sizeof *q->wanted);
	for (uint32_t i = 0; q->wanted && i < p->wait.plugins.n; i++) {
		const struct plugin_desc *d = &p->wait.plugins.list[i];
		bool wants = false;
		for (size_t k = 0; d->pre_start && k < has->n_grants; k++)
			wants = wants || (str_eq(has->grants[k]->resource, d->resource) &&
					  grant_is_for(has->grants[k], ctr));
		if (wants)
			q->wanted[q->n_wanted++] =
				(struct plugin_wanted){.ctr = q->ctr, .resource = d->resource};
	}
	return q->wanted ? own_texts(q) : -ENOMEM;
}

/* Asks in two steps: first for resources that the container still lacks, then the plugins that want
 * a pre-start call. */
static void ask_for_ctr(struct pipeline *p, struct inquiry *q, struct pod *pod, const char *ctr)
{
	bool lacks = q->step == STEP_NONE;
	const Grants__Grants *has = plugins_grants(pod, q->arena);
	struct about a;
	struct err err = ERR_INIT;
	int r = has && about_pod(p, q->arena, pod, &a) ? find_wanted(p, q, &a, ctr, &err)
						       : err_errno(&err, -ENOMEM, "grants");
	if (!r && lacks) {
		keep_wanted(q, is_missing, (void *)(uintptr_t)has);
		if (q->n_wanted) {
			plugin_question_ask(p, q, STEP_ALLOCATE, &a);
			return;
		}
	}
	q->step = STEP_NONE;
	if (!r && find_pre_start(p, q, has, ctr))
		r = err_errno(&err, -ENOMEM, "resource plugins");
	if (!r && q->n_wanted)
		plugin_question_ask(p, q, STEP_PRE_START, &a);
	if (r) {
		q->step = STEP_PRE_START;
		plugin_question_fail(p, q, false, err.text);
	}
}

uint64_t inquiry_wait_ctr(struct pipeline *p, const struct request_about *about)
{
	struct inquiry *q = p->wait.plugins.inquiry;
	struct pod *pod = cache_pod(p->env.cache, about->pod->id);
	if (!plugins_any(p))
		return 0;
	q->received_ns = about->received_ns;
	if (q->step != STEP_NONE) {
		uint64_t until = still_asked(p, q);
		if (until || q->state == STATE_FAILED || q->step == STEP_PRE_START || !pod)
			return until;
		struct err err = ERR_INIT;
		if (take_granted(p, q, pod, &err)) {
			plugin_question_fail(p, q, false, err.text);
			return 0;
		}
	}
	if (!pod && (!*about->pod->name || request_adopt_pod(p, about->pod, &pod, NULL)))
		return 0; /* the handler of the request reports the error */
	if (!plugin_question_begins(q))
		return 0;
	ask_for_ctr(p, q, pod, about->ctr->name);
	return still_asked(p, q);
}

int inquiry_allows(struct pipeline *p, struct ctr *ctr, struct err *err)
{
	struct inquiry *q = p->wait.plugins.inquiry;
	if (!plugins_any(p) || p->env.trial || !str_eq(q->uid, ctr->pod->uid) ||
	    !str_eq(q->ctr, ctr->name))
		return 0;
	give_up(p, q);
	int r = plugin_question_judge(p, q, ctr->full_name, err);
	if (!r && q->state == STATE_FAILED)
		host_note(p->env.cache, ctr, q->why);
	return r;
}

/* ---- creation and release -------------------------------------------------------------------- */

struct inquiry *inquiry_new(void)
{
	struct inquiry *q = calloc(1, sizeof *q);
	if (q)
		q->uid = q->ctr = "";
	return q;
}

struct inquiry *inquiry_free(struct inquiry *q)
{
	if (!q)
		return NULL;
	arena_free(q->arena);
	free(q);
	return NULL;
}
