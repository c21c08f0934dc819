/* SPDX-License-Identifier: Apache-2.0 */
/* Registered resource plugins: their list, the allocations of pods, and reconciliation with a
 * plugin's own data. */
#include "core/nri-rpd/pipeline/wait/plugins.h"

#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/pipeline/wait/plugin_grants.h"
#include "core/nri-rpd/pipeline/wait/plugin_question.h"
#include "core/nri-rpd/store/blobs.h"

#define LOG_SOURCE "plugins"
#define NOTE "resource plugins"
#define TEXTS_BLOCK (1u << 10)
#define ARENA_BLOCK (16u << 10)
#define ARENA_MAX (16u << 20)

/* ---- registered plugins ---------------------------------------------------------------------- */

static int desc_copy(struct arena *texts, struct plugin_desc *to, const struct plugin_desc *from)
{
	*to = *from;
	to->resource = arena_strdup(texts, from->resource);
	to->endpoint = arena_strdup(texts, from->endpoint);
	to->error = arena_strdup(texts, from->error);
	return to->resource && to->endpoint && to->error ? 0 : -ENOMEM;
}

static const struct plugin_desc *plugins_do_find(const struct plugin_desc *list, uint32_t n,
						 const char *resource)
{
	for (uint32_t i = 0; i < n; i++)
		if (str_eq(list[i].resource, resource))
			return &list[i];
	return NULL;
}

const struct plugin_desc *plugins_of(const struct pipeline *p, const char *resource)
{
	return plugins_do_find(p->wait.plugins.list, p->wait.plugins.n, resource);
}

bool plugins_any(const struct pipeline *p)
{
	return p->wait.plugins.n && conf_core(p->conf)->agent.pods;
}

/* Saves the list, so that a restarted daemon knows the plugins' resources before the agent
 * connects. */
void plugins_keep(struct pipeline *p)
{
	_cleanup_(buf_fini) struct buf text = BUF_INIT;
	for (uint32_t i = 0; i < p->wait.plugins.n; i++) {
		const struct plugin_desc *d = &p->wait.plugins.list[i];
		(void)buf_printf(&text, "%s %s %d %d %d\n", d->resource, d->endpoint, d->aligns,
				 d->pre_start, d->reconciles);
	}
	if (text.failed || store_put_note(p->store, NOTE, buf_bytes(&text), buf_len(&text)))
		log_warning("the list of resource plugins cannot be saved");
	persist_later(p);
}

static void plugins_do_recall(struct pipeline *p, const char *line)
{
	struct plugins *s = &p->wait.plugins;
	char resource[GRANT_NAME_MAX], endpoint[GRANT_NAME_MAX];
	int flags[3];
	if (s->n == PLUGINS_MAX || sscanf(line, "%255s %255s %d %d %d", resource, endpoint,
					  &flags[0], &flags[1], &flags[2]) != 5)
		return;
	const struct plugin_desc d = {.resource = resource,
				      .endpoint = endpoint,
				      .error = "the agent has not reported it since the start",
				      .aligns = flags[0],
				      .pre_start = flags[1],
				      .reconciles = flags[2]};
	s->n += !desc_copy(s->texts, &s->list[s->n], &d);
}

void plugins_restore(struct pipeline *p)
{
	size_t len;
	const char *note = store_note(p->store, NOTE, &len);
	_free_ char *text = note ? strdup(note) : NULL;
	char *save = NULL;
	p->wait.plugins.texts = text ? arena_new(TEXTS_BLOCK, ARENA_MAX) : NULL;
	for (char *line = p->wait.plugins.texts ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		plugins_do_recall(p, line);
}

/* ---- allocations of pods --------------------------------------------------------------------- */

bool grant_is_for(const Grants__Grant *g, const char *ctr)
{
	return !*g->container || str_eq(g->container, ctr);
}

const Grants__Grants *plugins_grants(const struct pod *pod, struct arena *a)
{
	static const Grants__Grants none = GRANTS__GRANTS__INIT;
	const Grants__Grants *m;
	struct err err = ERR_INIT;
	if (!pod->grants)
		return &none;
	/* the grants were checked when they arrived */
	return grants_unpack(a, pod->grants->data, pod->grants->len, &m, &err) ? NULL : m;
}

static uint32_t place_of(const struct pipeline *p, const char *resource)
{
	const struct plugin_desc *d = plugins_of(p, resource);
	return d ? (uint32_t)(d - p->wait.plugins.list) : PLUGINS_MAX;
}

static int cmp_grants(const void *a, const void *b, void *arg)
{
	const Grants__Grant *x = *(Grants__Grant *const *)a, *y = *(Grants__Grant *const *)b;
	uint32_t px = place_of(arg, x->resource), py = place_of(arg, y->resource);
	int r = px < py ? -1 : px > py;
	if (!r)
		r = strcmp(x->resource, y->resource);
	if (!r)
		r = strcmp(x->container, y->container);
	return r ? r : strcmp(x->part, y->part);
}

/* Stores grants, sorted by the order of registration. Returns 1 if they differ from the previous
 * ones. */
static int put_grants(struct pipeline *p, struct pod *pod, Grants__Grant **list, size_t n)
{
	Grants__Grants m = GRANTS__GRANTS__INIT;
	m.grants = list;
	m.n_grants = n;
	if (n)
		qsort_r(list, n, sizeof *list, cmp_grants, p);
	size_t len = n ? grants__grants__get_packed_size(&m) : 0;
	struct blob *blob = NULL;
	if (n > GRANTS_MAX || len > GRANTS_BYTES_MAX)
		return -E2BIG;
	if (n) {
		blob = blob_room((uint32_t)len);
		if (!blob)
			return -ENOMEM;
		grants__grants__pack(&m, (uint8_t *)blob->data);
	}
	if (blob_equal(blob, pod->grants)) {
		blob_unref(blob);
		return 0;
	}
	txn_put_blob(&pod->grants, blob);
	pod->store.facts = false;
	store_put_pod(p->store, pod);
	persist_later(p);
	return 1;
}

static bool is_same(const Grants__Grant *a, const Grants__Grant *b)
{
	return str_eq(a->container, b->container) && str_eq(a->resource, b->resource) &&
	       str_eq(a->part, b->part);
}

/* Returns the grant of the same container, resource and part; NULL: none. */
static Grants__Grant *grant_like(const Grants__Grants *m, const Grants__Grant *g)
{
	for (size_t i = 0; i < m->n_grants; i++)
		if (is_same(m->grants[i], g))
			return m->grants[i];
	return NULL;
}

int plugins_add_grants(struct pipeline *p, struct pod *pod, const Grants__Grants *more,
		       struct err *err)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	const Grants__Grants *had = a ? plugins_grants(pod, a) : NULL;
	int r = had ? 0 : err_errno(err, -ENOMEM, "grants");
	for (size_t i = 0; !r && i < more->n_grants; i++)
		r = grant_check_fit(p, pod, NULL, more->grants[i], err);
	if (r)
		return r;
	Grants__Grant **list = arena_array(a, had->n_grants + more->n_grants + 1, sizeof *list);
	size_t n = 0;
	for (size_t i = 0; list && i < had->n_grants; i++)
		if (!grant_like(more, had->grants[i]))
			list[n++] = had->grants[i];
	for (size_t i = 0; list && i < more->n_grants; i++)
		list[n++] = more->grants[i];
	r = list ? put_grants(p, pod, list, n) : -ENOMEM;
	return r < 0 ? err_errno(err, r, "%zu grants", n) : 0;
}

/* Returns true if a pod has a sandbox besides this one. */
static bool has_other_sandbox(const struct pipeline *p, const struct pod *pod)
{
	const struct pod *first = cache_pod_by_uid(p->env.cache, pod->uid);
	return first && (first != pod || first->uid_next);
}

/* Notifies the plugins that a pod was removed, unless it has another sandbox. */
void plugins_pod_gone(struct pipeline *p, const struct pod *pod)
{
	const struct plugins *s = &p->wait.plugins;
	if (s->reachable && plugins_any(p) && *pod->uid && !has_other_sandbox(p, pod))
		s->source.remove(s->source.arg, pod->uid);
}

/* Applies the present grants of pods to running containers. */
static void plugins_apply(struct pipeline *p)
{
	struct err err = ERR_INIT;
	if (WATCHED(p, decide_event(p, granted_stage_all, NULL, &err)))
		log_warning("changes of resource plugins cannot be applied: %s", err.text);
}

/* Drops the pod's allocations of plugins that are no longer registered. Returns true if any were
 * dropped. */
static bool drop_strangers(struct pipeline *p, struct pod *pod)
{
	_arena_ struct arena *a = pod->grants ? arena_new(ARENA_BLOCK, ARENA_MAX) : NULL;
	const Grants__Grants *had = a ? plugins_grants(pod, a) : NULL;
	Grants__Grant **list = had ? arena_array(a, had->n_grants + 1, sizeof *list) : NULL;
	size_t n = 0;
	for (size_t i = 0; list && i < had->n_grants; i++)
		if (plugins_of(p, had->grants[i]->resource))
			list[n++] = had->grants[i];
	if (!list || n == had->n_grants)
		return false;
	log_notice("pod %s/%s: dropped %zu allocations of removed plugins", pod->ns, pod->name,
		   had->n_grants - n);
	return put_grants(p, pod, list, n) == 1;
}

/* ---- reports of the agent -------------------------------------------------------------------- */

static void tell_changes(struct pipeline *p, const struct plugin_desc *before, uint32_t n)
{
	for (uint32_t i = 0; i < p->wait.plugins.n; i++) {
		const struct plugin_desc *now = &p->wait.plugins.list[i];
		const struct plugin_desc *was = plugins_do_find(before, n, now->resource);
		if (was && was->connected == now->connected)
			continue;
		log_info("resource plugin %s (%s) %s%s%s", now->resource, now->endpoint,
			 now->connected ? "is connected" : "is not connected",
			 *now->error ? ": " : "", now->error);
		pipeline_event(p, now->connected ? EV_RUNTIME : EV_DEGRADED,
			       "resource plugin %s %s", now->resource,
			       now->connected ? "is connected" : "is not connected");
	}
	for (uint32_t i = 0; i < n; i++)
		if (!plugins_of(p, before[i].resource)) {
			log_notice("resource plugin %s was removed", before[i].resource);
			pipeline_event(p, EV_RUNTIME, "resource plugin %s was removed",
				       before[i].resource);
		}
}

int pipeline_plugins_set(struct pipeline *p, const struct plugin_desc *list, uint32_t n)
{
	struct plugins *s = &p->wait.plugins;
	struct plugin_desc fresh[PLUGINS_MAX], before[PLUGINS_MAX];
	_arena_ struct arena *texts = arena_new(TEXTS_BLOCK, ARENA_MAX);
	uint32_t n_before = s->n;
	bool dropped = false;
	if (n > PLUGINS_MAX || !texts)
		return texts ? -E2BIG : -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (desc_copy(texts, &fresh[i], &list[i]))
			return -ENOMEM;
	memcpy(before, s->list, sizeof before);
	memcpy(s->list, fresh, n * sizeof *fresh);
	s->n = n;
	tell_changes(p, before, n_before);
	(void)arena_free(s->texts);
	s->texts = TAKE(texts);
	plugins_keep(p);
	for (struct pod *pod = cache_pods(p->env.cache); pod; pod = pod->hh.next)
		dropped = drop_strangers(p, pod) || dropped;
	/* during a decision, or before a Synchronize, the next change of grants applies this one */
	if (dropped && p->runtime.synchronized && !p->txn)
		plugins_apply(p);
	hold_told(p);
	return 0;
}

void pipeline_plugins_source(struct pipeline *p, const struct plugin_source *source)
{
	struct plugins *s = &p->wait.plugins;
	s->reachable = source != NULL;
	s->source = source ? *source : (struct plugin_source){0};
	for (uint32_t i = 0; !source && i < s->n; i++) {
		s->list[i].connected = false;
		s->list[i].error = "the agent disconnected";
	}
	hold_told(p);
}

/* ---- reconciliation -------------------------------------------------------------------------- */

struct by_uid {
	const char *uid;
	struct pod *pod;
	bool listed;
};

static int cmp_uid(const void *a, const void *b)
{
	return strcmp(((const struct by_uid *)a)->uid, ((const struct by_uid *)b)->uid);
}

static struct by_uid *sort_pods(const struct pipeline *p, uint32_t *ret_n)
{
	struct by_uid *list = calloc(cache_n_pods(p->env.cache) + 1, sizeof *list);
	uint32_t n = 0;
	for (struct pod *pod = cache_pods(p->env.cache); list && pod; pod = pod->hh.next)
		list[n++] = (struct by_uid){pod->uid, pod, false};
	if (list)
		qsort(list, n, sizeof *list, cmp_uid);
	*ret_n = n;
	return list;
}

/* Returns the plugin's new grant; if that does not fit, the previous one (NULL: none). */
static Grants__Grant *reconcile_grant(struct pipeline *p, struct pod *pod, Grants__Grant *now,
				      Grants__Grant *was)
{
	struct err err = ERR_INIT;
	if (was)
		now->hints = was->hints; /* hints are reported at the allocation only */
	if (!grant_check_fit(p, pod, NULL, now, &err))
		return now;
	if (log_allowed(&p->wait.plugins.failures, LOG_SOURCE))
		log_warning("pod %s/%s: %s; the change is not applied", pod->ns, pod->name,
			    err.text);
	return was;
}

/* Replaces a pod's grants of one plugin. Returns true if they have changed. */
static bool reconcile_pod(struct pipeline *p, struct pod *pod, const char *resource,
			  const Grants__Grants *now)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	const Grants__Grants *had = a ? plugins_grants(pod, a) : NULL;
	Grants__Grant **list =
		had ? arena_array(a, had->n_grants + now->n_grants + 1, sizeof *list) : NULL;
	size_t n = 0;
	for (size_t i = 0; list && i < had->n_grants; i++)
		if (!str_eq(had->grants[i]->resource, resource))
			list[n++] = had->grants[i];
	if (list && n == had->n_grants && !now->n_grants)
		return false;
	for (size_t i = 0; list && i < now->n_grants; i++) {
		Grants__Grant *g =
			reconcile_grant(p, pod, now->grants[i], grant_like(had, now->grants[i]));
		if (g)
			list[n++] = g;
	}
	return list && put_grants(p, pod, list, n) == 1;
}

/* Returns the first entry with that UID, which several sandboxes may share; NULL: none. */
static struct by_uid *find_pod(struct by_uid *list, uint32_t n, const char *uid)
{
	const struct by_uid key = {.uid = uid};
	struct by_uid *found = n ? bsearch(&key, list, n, sizeof *list, cmp_uid) : NULL;
	while (found && found > list && str_eq(found[-1].uid, uid))
		found--;
	return found;
}

/* Drops the plugin's grants of pods that it does not list. */
static uint32_t drop_unlisted(struct pipeline *p, const struct by_uid *list, uint32_t n,
			      const char *resource)
{
	static const Grants__Grants none = GRANTS__GRANTS__INIT;
	uint32_t dropped = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct pod *pod = list[i].pod;
		if (list[i].listed || !pod->grants || !reconcile_pod(p, pod, resource, &none))
			continue;
		log_notice("pod %s/%s: resource plugin %s no longer lists it: dropped its grants",
			   pod->ns, pod->name, resource);
		dropped++;
	}
	return dropped;
}

int pipeline_plugins_check(struct pipeline *p, const char *resource, bool reconcile,
			   const struct plugin_pod *pods, uint32_t n,
			   void (*gone)(const char *uid, void *arg), void *arg)
{
	uint32_t n_known, n_changed = 0;
	if (!p->runtime.synchronized || p->txn)
		return -EAGAIN;
	_free_ struct by_uid *known = sort_pods(p, &n_known);
	if (!known)
		return -ENOMEM;
	reconcile = reconcile && plugins_of(p, resource);
	for (uint32_t i = 0; i < n; i++) {
		struct by_uid *found = find_pod(known, n_known, pods[i].uid);
		if (!found)
			gone(pods[i].uid, arg);
		for (; found && found < known + n_known && str_eq(found->uid, pods[i].uid);
		     found++) {
			found->listed = true;
			if (reconcile)
				n_changed += reconcile_pod(p, found->pod, resource, pods[i].grants);
		}
	}
	if (reconcile)
		n_changed += drop_unlisted(p, known, n_known, resource);
	p->wait.plugins.counts.reconciled += n_changed;
	if (n_changed)
		plugins_apply(p);
	return 0;
}

/* ---- start, end and status ------------------------------------------------------------------- */

uint32_t pipeline_plugins(const struct pipeline *p, const struct plugin_desc **ret)
{
	*ret = p->wait.plugins.list;
	return p->wait.plugins.n;
}

DEFINE_GETTER(pipeline_plugins_counts, const struct plugins_counts *, &p->wait.plugins.counts)
DEFINE_GETTER(pipeline_plugins_reachable, bool, p->wait.plugins.reachable)

int plugins_init(struct pipeline *p)
{
	p->wait.plugins.failures = (struct log_limit)LOG_LIMIT(5, 10000);
	p->wait.plugins.inquiry = inquiry_new();
	p->env.hints = &inquiry_hint_ops;
	return p->wait.plugins.inquiry ? 0 : -ENOMEM;
}

void plugins_fini(struct pipeline *p)
{
	p->env.hints = NULL;
	p->wait.plugins.n = 0;
	p->wait.plugins.texts = arena_free(p->wait.plugins.texts);
	p->wait.plugins.inquiry = inquiry_free(p->wait.plugins.inquiry);
	p->wait.plugins.staged = arena_free(p->wait.plugins.staged);
}
