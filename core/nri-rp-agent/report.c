/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/util/cleanup.h"
#include "core/util/log.h"
#include "core/util/str.h"

#define LOG_SOURCE "report"
#define NODE_NAMESPACE "default" /* where events of nodes are */
#define PROBLEM "events"
#define TIME_MAX 32u
#define NAME_MAX_LEN 253u

/* One that is under way. */
struct place {
	struct report *report;
	struct kube_call *call; /* NULL: none, the place is free */
};

struct report {
	struct kube *kube;
	char *node;
	struct place places[REPORT_MAX];
};

static void written(const struct kube_answer *answer, void *arg)
{
	struct place *p = arg;
	p->call = NULL;
	if (answer->error)
		log_info("an event is lost: %s", answer->text);
	else
		kube_set_written(p->report->kube, PROBLEM);
	kube_set_problem(p->report->kube, PROBLEM, answer->error == -EACCES ? answer->text : NULL);
}

/* The kubelet says the node's name for its uid, and kubectl looks for that. */
static json_t *involved(const struct report *r, const Agent__ClusterEvent *e)
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

static char *body_of(const struct report *r, const Agent__ClusterEvent *e, const char *ns)
{
	char at[TIME_MAX];
	struct tm tm;
	time_t t = (time_t)e->time_s;
	if (!gmtime_r(&t, &tm))
		return NULL;
	(void)strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_t *o = json_pack(
		"{s:s, s:s, s:{s:s, s:s}, s:o, s:s, s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:I}",
		"apiVersion", "v1", "kind", "Event", "metadata", "generateName", "nri-rp.",
		"namespace", ns, "involvedObject", involved(r, e), "reason", e->reason, "message",
		e->text, "type", e->warning ? "Warning" : "Normal", "source", "component", "nri-rp",
		"host", r->node, "firstTimestamp", at, "lastTimestamp", at, "count",
		(json_int_t)e->count);
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return text;
}

static struct place *free_place(struct report *r)
{
	for (unsigned i = 0; i < REPORT_MAX; i++)
		if (!r->places[i].call)
			return &r->places[i];
	return NULL;
}

/* It becomes part of a path. */
static bool good_namespace(const char *ns)
{
	size_t n = strnlen(ns, NAME_MAX_LEN + 1);
	return n && n <= NAME_MAX_LEN && !ns[strspn(ns, "abcdefghijklmnopqrstuvwxyz0123456789-")];
}

static void tell_one(struct report *r, const Agent__ClusterEvent *e)
{
	const char *ns = *e->pod ? e->namespace_ : NODE_NAMESPACE;
	struct place *p = good_namespace(ns) ? free_place(r) : NULL;
	if (!p)
		return;
	_free_ char *body = body_of(r, e, ns),
		    *path = str_printf("/api/v1/namespaces/%s/events", ns);
	const struct kube_request request = {.method = "POST",
					     .path = path,
					     .content_type = KUBE_JSON,
					     .body = body,
					     .done = written,
					     .arg = p};
	p->report = r;
	p->call = body && path ? kube_call(r->kube, &request) : NULL;
}

void report_tell(struct report *r, const Agent__TellRequest *m)
{
	for (size_t i = 0; i < m->n_events && i < REPORT_MAX; i++)
		tell_one(r, m->events[i]);
}

struct report *report_new(struct kube *k, const char *node)
{
	struct report *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->kube = k;
	r->node = strdup(node);
	return r->node ? r : report_free(r);
}

struct report *report_free(struct report *r)
{
	if (!r)
		return NULL;
	for (unsigned i = 0; i < REPORT_MAX; i++)
		kube_cancel(r->places[i].call);
	free(r->node);
	free(r);
	return NULL;
}
