/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "report"
#define NODE_NAMESPACE "default" /* namespace of events about nodes */
#define PROBLEM "events"
#define NS_PER_MS UINT64_C(1000000)

/* An event that is not written yet. */
struct waiting {
	char *path;
	json_t *body;
	uint64_t since_ms;
	struct waiting *prev, *next;
};

struct report {
	struct kube *kube;
	char *node;
	struct waiting *list; /* the first one is being written while `call` exists */
	unsigned n;
	struct kube_call *call;
	struct loop_timer *timer; /* timer of the next attempt */
	struct kube_backoff backoff;
	uint64_t n_lost;
	void (*changed)(void *arg);
	void *changed_arg;
};

/* Returns the object of an event. The kubelet uses a node's name as its uid, and kubectl searches
 * for that. */
static json_t *report_involved(const struct report *r, const Agent__ClusterEvent *e)
{
	if (!*e->pod)
		return json_pack("{s:s, s:s, s:s}", "kind", "Node", "name", r->node, "uid",
				 r->node);
	json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "kind", "Pod", "apiVersion", "v1",
			      "namespace", e->namespace_, "name", e->pod);
	if (*e->uid)
		(void)json_object_set_new(o, "uid", json_string(e->uid));
	return o;
}

/* Composes an event with a unique name, so that a repeated write does not duplicate an event whose
 * first answer was lost. */
static json_t *body_of(const struct report *r, const Agent__ClusterEvent *e, const char *ns)
{
	char at[KUBE_TIME_MAX], name[32];
	if (kube_time((time_t)e->time_s, at))
		return NULL;
	(void)snprintf(name, sizeof name, "nri-rp.%08x%08x", kube_jitter(UINT32_MAX),
		       kube_jitter(UINT32_MAX));
	return json_pack(
		"{s:s, s:s, s:{s:s, s:s}, s:o, s:s, s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:I}",
		"apiVersion", "v1", "kind", "Event", "metadata", "name", name, "namespace", ns,
		"involvedObject", report_involved(r, e), "reason", e->reason, "message", e->text,
		"type", e->warning ? "Warning" : "Normal", "source", "component", "nri-rp", "host",
		r->node, "firstTimestamp", at, "lastTimestamp", at, "count", (json_int_t)e->count);
}

/* ---- waiting events -------------------------------------------------------------------------- */

static void report_drop(struct report *r, struct waiting *w)
{
	DL_DELETE(r->list, w);
	r->n--;
	json_decref(w->body);
	free(w->path);
	free(w);
}

static void report_lose(struct report *r, struct waiting *w, const char *why)
{
	log_info("an event was lost: %s", why);
	r->n_lost++;
	report_drop(r, w);
}

/* Drops events that are too old, and the oldest one if there are too many. */
static void make_room(struct report *r)
{
	uint64_t now = clock_ns() / NS_PER_MS;
	struct waiting *w, *next, *oldest = NULL;
	DL_FOREACH_SAFE(r->list, w, next)
	{
		if (r->call && w == r->list)
			continue;
		if (now - w->since_ms > REPORT_AGE_MS)
			report_lose(r, w, "it could not be written for an hour");
		else if (!oldest || w->since_ms < oldest->since_ms)
			oldest = w;
	}
	if (r->n == REPORT_MAX && oldest)
		report_lose(r, oldest, "too many events wait for the API server");
}

static bool report_same(const json_t *a, const json_t *b, const char *key)
{
	return json_equal(json_object_get(a, key), json_object_get(b, key));
}

/* Counts a repeated event in a waiting one, as Kubernetes' own components do. */
static bool report_merge(struct report *r, const json_t *body)
{
	struct waiting *w;
	DL_FOREACH (r->list, w) {
		if ((r->call && w == r->list) || !report_same(w->body, body, "involvedObject") ||
		    !report_same(w->body, body, "reason") || !report_same(w->body, body, "message"))
			continue;
		json_int_t n = json_integer_value(json_object_get(w->body, "count"));
		n += json_integer_value(json_object_get(body, "count"));
		(void)json_object_set_new(w->body, "count", json_integer(n));
		(void)json_object_set(w->body, "lastTimestamp",
				      json_object_get(body, "lastTimestamp"));
		return true;
	}
	return false;
}

/* ---- writes ---------------------------------------------------------------------------------- */

static void send_next(void *arg);

static bool is_final(int error)
{
	return error == -EACCES || error == -ENOENT || error == -EINVAL || error == -E2BIG;
}

/* Moves the first event to the end after a failure, because the cause may be this event. */
static void put_off(struct report *r)
{
	struct waiting *w = r->list;
	DL_DELETE(r->list, w);
	DL_APPEND(r->list, w);
	(void)loop_timer_arm(r->timer, kube_backoff_next_ms(&r->backoff));
}

static void report_written(const struct kube_answer *answer, void *arg)
{
	struct report *r = arg;
	r->call = NULL;
	if (!answer->error || answer->error == -EEXIST) {
		kube_set_written(r->kube, PROBLEM);
		kube_backoff_reset(&r->backoff);
		report_drop(r, r->list);
	} else if (is_final(answer->error)) {
		report_lose(r, r->list, answer->text);
	} else {
		put_off(r);
	}
	kube_set_problem(r->kube, PROBLEM, answer->error == -EACCES ? answer->text : NULL);
	r->changed(r->changed_arg);
	send_next(r);
}

/* Writes the first event; one write at a time. */
static void send_next(void *arg)
{
	struct report *r = arg;
	if (r->call || !r->list || loop_timer_armed(r->timer))
		return;
	_free_ char *text = json_dumps(r->list->body, JSON_COMPACT);
	const struct kube_request request = {.method = "POST",
					     .path = r->list->path,
					     .content_type = KUBE_JSON,
					     .body = text,
					     .done = report_written,
					     .arg = r};
	r->call = text ? kube_call(r->kube, &request) : NULL;
	if (!r->call)
		put_off(r);
}

static void tell_one(struct report *r, const Agent__ClusterEvent *e)
{
	const char *ns = *e->pod ? e->namespace_ : NODE_NAMESPACE;
	if (!kube_name_valid(ns, false))
		return;
	json_t *body = body_of(r, e, ns);
	char *path = str_printf("/api/v1/namespaces/%s/events", ns);
	bool counted = body && path && report_merge(r, body);
	struct waiting *w = body && path && !counted ? calloc(1, sizeof *w) : NULL;
	r->n_lost += !w && !counted; /* no memory */
	if (!w) {
		json_decref(body);
		free(path);
		return;
	}
	make_room(r);
	*w = (struct waiting){path, body, clock_ns() / NS_PER_MS, NULL, NULL};
	DL_APPEND(r->list, w);
	r->n++;
}

void report_tell(struct report *r, const Agent__TellRequest *m)
{
	for (size_t i = 0; i < m->n_events && i < REPORT_MAX; i++)
		tell_one(r, m->events[i]);
	r->changed(r->changed_arg);
	send_next(r);
}

struct report_counts report_counts(const struct report *r)
{
	return (struct report_counts){r->n, r->n_lost};
}

struct report *report_new(struct kube *k, const char *node, void (*changed)(void *arg), void *arg)
{
	struct report *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->kube = k;
	r->changed = changed;
	r->changed_arg = arg;
	r->node = strdup(node);
	r->timer = loop_timer_new(kube_loop(k), send_next, r);
	return r->node && r->timer ? r : report_free(r);
}

struct report *report_free(struct report *r)
{
	if (!r)
		return NULL;
	kube_cancel(r->call);
	while (r->list)
		report_drop(r, r->list);
	loop_timer_free(r->timer);
	free(r->node);
	free(r);
	return NULL;
}
