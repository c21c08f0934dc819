/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/evict.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "evict"
#define VERSION_MAX 16u

struct eviction {
	struct evict *evict;
	struct kube_call *call;
	struct rpc_request *req;
	char *ns, *name, *uid;
	int64_t grace_s;
	struct eviction *prev, *next;
};

struct evict {
	struct kube *kube;
	/* Version of the group policy for evictions by the server; "": unknown. */
	char version[VERSION_MAX];
	struct eviction *list;
	unsigned n;
};

/* ---- answers --------------------------------------------------------------------------------- */

static void eviction_free(struct eviction *v)
{
	DL_DELETE(v->evict->list, v);
	v->evict->n--;
	kube_cancel(v->call);
	free(v->ns);
	free(v->name);
	free(v->uid);
	free(v);
}

static void evict_finish(struct eviction *v, Agent__EvictOutcome outcome, const char *text)
{
	Agent__EvictResponse out = AGENT__EVICT_RESPONSE__INIT;
	out.outcome = outcome;
	out.text = (char *)(uintptr_t)text;
	log_info("eviction of %s/%s%s%s", v->ns, v->name, *text ? ": " : " granted", text);
	(void)rpc_reply(v->req, &out.base);
	eviction_free(v);
}

/* Converts an error to an outcome. A conflict is about the uid: another pod has that name. */
static Agent__EvictOutcome outcome_of(int error)
{
	switch (error) {
	case 0:
		return AGENT__EVICT_OUTCOME__GRANTED;
	case -ENOENT:
	case -EEXIST:
		return AGENT__EVICT_OUTCOME__GONE;
	case -EACCES:
		return AGENT__EVICT_OUTCOME__DENIED;
	default:
		return AGENT__EVICT_OUTCOME__REFUSED;
	}
}

static void evict_evicted(const struct kube_answer *answer, void *arg)
{
	struct eviction *v = arg;
	v->call = NULL;
	kube_set_problem(v->evict->kube, "evictions",
			 answer->error == -EACCES ? answer->text : NULL);
	evict_finish(v, outcome_of(answer->error), answer->text);
}

/* ---- requests -------------------------------------------------------------------------------- */

static char *body_of(const struct eviction *v)
{
	_free_ char *version = str_printf("policy/%s", v->evict->version);
	json_t *options = json_pack("{s:{s:s}}", "preconditions", "uid", v->uid);
	if (v->grace_s >= 0)
		(void)json_object_set_new(options, "gracePeriodSeconds", json_integer(v->grace_s));
	json_t *body = json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion",
				 version ? version : "", "kind", "Eviction", "metadata",
				 "namespace", v->ns, "name", v->name, "deleteOptions", options);
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	return text;
}

static void evict_post(struct eviction *v)
{
	_free_ char *body = body_of(v);
	_free_ char *path = str_printf("/api/v1/namespaces/%s/pods/%s/eviction", v->ns, v->name);
	const struct kube_request request = {.method = "POST",
					     .path = path,
					     .content_type = KUBE_JSON,
					     .body = body,
					     .takes_429 = true,
					     .done = evict_evicted,
					     .arg = v};
	v->call = path && body ? kube_call(v->evict->kube, &request) : NULL;
	if (!v->call)
		evict_finish(v, AGENT__EVICT_OUTCOME__REFUSED,
			     "out of memory, or too many requests");
}

static void take_version(struct evict *e, const json_t *list)
{
	json_t *resource;
	size_t i;
	json_array_foreach(json_object_get(list, "resources"), i, resource)
	{
		const char *name = json_string_value(json_object_get(resource, "name"));
		const char *version = json_string_value(json_object_get(resource, "version"));
		if (name && version && str_eq(name, "pods/eviction") &&
		    strlen(version) < VERSION_MAX)
			(void)snprintf(e->version, sizeof e->version, "%s", version);
	}
}

static void evict_discovered(const struct kube_answer *answer, void *arg)
{
	struct eviction *v = arg;
	v->call = NULL;
	if (!answer->error)
		take_version(v->evict, answer->body);
	if (v->evict->version[0])
		evict_post(v);
	else
		evict_finish(v, AGENT__EVICT_OUTCOME__REFUSED,
			     answer->error ? answer->text
					   : "the API server does not support evictions");
}

/* Requests the version of the group policy: v1beta1 for servers older than 1.22, otherwise v1. */
static void evict_discover(struct eviction *v)
{
	const struct kube_request request = {
		.method = "GET", .path = "/api/v1", .done = evict_discovered, .arg = v};
	v->call = kube_call(v->evict->kube, &request);
	if (!v->call)
		evict_finish(v, AGENT__EVICT_OUTCOME__REFUSED,
			     "out of memory, or too many requests");
}

void evict_serve(struct evict *e, const Agent__EvictRequest *m, struct rpc_request *req)
{
	if (!kube_name_valid(m->namespace_, true) || !kube_name_valid(m->name, true) || !*m->uid) {
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "this is not a pod");
		return;
	}
	struct eviction *v = e->n < EVICT_MAX ? calloc(1, sizeof *v) : NULL;
	if (!v) {
		(void)rpc_reply_error(req, TTRPC_RESOURCE_EXHAUSTED, "too many evictions");
		return;
	}
	v->evict = e;
	v->req = req;
	v->grace_s = m->grace_s;
	v->ns = strdup(m->namespace_);
	v->name = strdup(m->name);
	v->uid = strdup(m->uid);
	DL_APPEND(e->list, v);
	e->n++;
	if (!v->ns || !v->name || !v->uid) {
		(void)rpc_reply_error(req, TTRPC_RESOURCE_EXHAUSTED, "out of memory");
		eviction_free(v);
	} else if (e->version[0]) {
		evict_post(v);
	} else {
		evict_discover(v);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

struct evict *evict_new(struct kube *k)
{
	struct evict *e = calloc(1, sizeof *e);
	if (e)
		e->kube = k;
	return e;
}

struct evict *evict_free(struct evict *e)
{
	if (!e)
		return NULL;
	while (e->list) {
		(void)rpc_reply_error(e->list->req, TTRPC_UNAVAILABLE, "the agent is stopping");
		eviction_free(e->list);
	}
	free(e);
	return NULL;
}
