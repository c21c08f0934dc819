/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/pods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/kube/objects.h"
#include "core/nri-rp-agent/podwatch.h"
#include "core/nri-rp-agent/watch.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/hash.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "proto/agent.pb-c.h"

#define LOG_SOURCE "pods"
#define ARENA_BLOCK 1024u
/* memory for one object of the largest size that a server may send */
#define ARENA_LIMIT (16u << 20)
#define PODS_MAX 4096u /* limit of pods that the daemon accepts */
#define POD_MAX (64u << 10) /* limit of a pod's message, in bytes */
#define PART_MAX (1u << 20) /* limit of pods in one message, in bytes */
#define QUIET_MS 10u /* delay after a change; short, because the daemon may wait for a new pod */
#define ANSWER_TIMEOUT_MS 5000u
#define PROBLEM "the daemon's pods"
/* failures of a restarting kubelet before the API server is watched */
#define FAILURES_MAX 4u

struct seen_pod {
	struct arena *arena; /* memory of the message */
	Agent__FedPod message;
	uint8_t *packed; /* packed form of the message, for comparisons */
	size_t packed_len;
	bool untold, gone; /* untold: the pod was not sent yet; gone: its removal must be sent */
	bool listed; /* the pod is in the current list */
	UT_hash_handle hh;
};

struct pod_feed {
	struct pod_feed_config config;
	char *kubelet_socket;
	struct watch *watch; /* watch of the API server; NULL: none */
	struct podwatch *podwatch; /* watch of the kubelet; NULL: none */
	bool kubelet_only;
	unsigned n_failures; /* number of the kubelet's failures since its last complete list */
	bool was_live; /* the kubelet has sent a complete list */
	const char *source; /* sender of the last complete list; "": none */
	char problem[ERR_TEXT_MAX]; /* why the kubelet does not serve its pods; "": it does */
	bool state_untold; /* a change of the source or the problem has not been sent yet */
	struct seen_pod *pods; /* pods that were seen, by UID */
	struct loop_timer *timer;
	struct kube_backoff backoff;
	bool known; /* a list has been complete */
	bool anew; /* all pods must be sent again */
	bool under_way;
	bool warned;
};

/* ---- pods ------------------------------------------------------------------------------------ */

static struct seen_pod *seen_free(struct seen_pod *pod)
{
	if (!pod)
		return NULL;
	arena_free(pod->arena);
	free(pod->packed);
	free(pod);
	return NULL;
}

static struct seen_pod *seen_new(const struct pod_feed *f, const json_t *object)
{
	struct seen_pod *pod = calloc(1, sizeof *pod);
	if (!pod)
		return NULL;
	pod->arena = arena_new(ARENA_BLOCK, ARENA_LIMIT);
	if (!pod->arena || kube_pod(pod->arena, object, f->config.whole, &pod->message))
		return seen_free(pod);
	size_t n = agent__fed_pod__get_packed_size(&pod->message);
	pod->packed = n <= POD_MAX ? malloc(n + 1) : NULL;
	if (!pod->packed)
		return seen_free(pod);
	pod->packed_len = agent__fed_pod__pack(&pod->message, pod->packed);
	pod->untold = pod->listed = true;
	return pod;
}

static struct seen_pod *pods_find(const struct pod_feed *f, const char *uid)
{
	struct seen_pod *pod = NULL;
	HASH_FIND(hh, f->pods, uid, strlen(uid), pod);
	return pod;
}

static void pods_drop(struct pod_feed *f, struct seen_pod *pod)
{
	HASH_DEL(f->pods, pod);
	seen_free(pod);
}

static void left_out(struct pod_feed *f, const char *why)
{
	if (!f->warned)
		log_warning("cannot send a pod to nri-rpd: %s (logged once)", why);
	f->warned = true;
}

/* Returns true if a pod replaces the mirror of a static pod: the mirror is created again under the
 * same name. Other pods that claim to be its mirror are not. */
static bool is_same(const struct seen_pod *had, const Agent__FedPod *m)
{
	return str_eq(had->message.namespace_, m->namespace_) && str_eq(had->message.name, m->name);
}

static void pods_take(struct pod_feed *f, const json_t *object)
{
	struct seen_pod *pod = seen_new(f, object),
			*had = pod ? pods_find(f, pod->message.uid) : NULL;
	if (!pod) {
		left_out(f, "it has no name or UID, is too large, or memory is exhausted");
		return;
	}
	if (had && !had->gone && !is_same(had, &pod->message)) {
		left_out(f, "another pod has its UID");
		seen_free(pod);
		return;
	}
	if (had && !had->gone && had->packed_len == pod->packed_len &&
	    memcmp(had->packed, pod->packed, pod->packed_len) == 0) {
		had->listed = true;
		seen_free(pod);
		return;
	}
	if (had)
		pods_drop(f, had);
	if (HASH_COUNT(f->pods) >= PODS_MAX) {
		left_out(f, "there are too many");
		seen_free(pod);
		return;
	}
	HASH_ADD_KEYPTR(hh, f->pods, pod->message.uid, strlen(pod->message.uid), pod);
	if (!pod->hh.tbl)
		seen_free(pod);
}

static void take_gone(struct pod_feed *f, const json_t *object)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_LIMIT);
	Agent__FedPod m;
	struct seen_pod *pod =
		a && kube_pod(a, object, false, &m) == 0 ? pods_find(f, m.uid) : NULL;
	if (pod && is_same(pod, &m))
		pod->gone = true;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void tell_soon(struct pod_feed *f)
{
	if (!f->under_way && !loop_timer_armed(f->timer))
		(void)loop_timer_arm(f->timer, QUIET_MS);
}

static void pods_told(const struct rpc_result *result, void *arg)
{
	struct pod_feed *f = arg;
	bool lost = result->error == -ECANCELED || result->error == -ECONNRESET;
	f->under_way = false;
	if (lost) /* pod_feed_daemon_connected() starts again */
		return;
	if (f->config.kube)
		kube_set_problem(f->config.kube, PROBLEM, result->error ? result->text : NULL);
	if (result->error) {
		f->anew = f->state_untold = true;
		(void)loop_timer_arm(f->timer, kube_backoff_next_ms(&f->backoff));
		return;
	}
	kube_backoff_reset(&f->backoff);
	tell_soon(f);
}

static void begin_anew(struct pod_feed *f)
{
	struct seen_pod *pod, *next;
	HASH_ITER (hh, f->pods, pod, next) {
		if (pod->gone)
			pods_drop(f, pod);
		else
			pod->untold = true;
	}
}

/* Fills a message with unsent pods, up to its limit. Returns true if there are more. */
static bool pods_fill(const struct pod_feed *f, Agent__SetPodsRequest *m)
{
	size_t bytes = 0;
	for (struct seen_pod *pod = f->pods; pod; pod = pod->hh.next) {
		if (!pod->gone && !pod->untold)
			continue;
		bytes += pod->packed_len;
		if (bytes > PART_MAX)
			return true;
		if (pod->gone)
			m->gone[m->n_gone++] = pod->message.uid;
		else
			m->pods[m->n_pods++] = &pod->message;
	}
	return false;
}

/* Marks the pods of a message as sent, after the message was packed. */
static void pods_sent(struct pod_feed *f, const Agent__SetPodsRequest *m)
{
	for (size_t i = 0; i < m->n_pods; i++) {
		struct seen_pod *pod = pods_find(f, m->pods[i]->uid);
		if (pod)
			pod->untold = false;
	}
	for (size_t i = 0; i < m->n_gone; i++)
		pods_drop(f, pods_find(f, m->gone[i]));
}

static void pods_tell(void *arg)
{
	struct pod_feed *f = arg;
	Agent__SetPodsRequest m = AGENT__SET_PODS_REQUEST__INIT;
	if ((!f->known && !f->state_untold) || f->under_way)
		return;
	if (f->known && f->anew)
		begin_anew(f);
	size_t n = HASH_COUNT(f->pods) + 1;
	_free_ Agent__FedPod **pods = calloc(n, sizeof(void *));
	_free_ char **gone = calloc(n, sizeof(void *));
	m.pods = pods;
	m.gone = gone;
	if (!pods || !gone) {
		(void)loop_timer_arm(f->timer, kube_backoff_next_ms(&f->backoff));
		return;
	}
	m.source = (char *)(uintptr_t)f->source;
	m.problem = f->problem;
	m.begin = f->known && f->anew;
	m.complete = f->known && !pods_fill(f, &m);
	if (!m.begin && !m.n_pods && !m.n_gone && !f->state_untold)
		return;
	int r = link_call(f->config.link, "SetPods", &m.base, ANSWER_TIMEOUT_MS, pods_told, f);
	if (r && r != -ENOTCONN)
		(void)loop_timer_arm(f->timer, kube_backoff_next_ms(&f->backoff));
	if (r)
		return;
	f->under_way = true;
	f->anew = f->anew && !f->known;
	f->state_untold = false;
	pods_sent(f, &m);
}

/* ---- sources --------------------------------------------------------------------------------- */

static void begin_list(struct pod_feed *f)
{
	for (struct seen_pod *pod = f->pods; pod; pod = pod->hh.next)
		pod->listed = false;
}

static void end_list(struct pod_feed *f)
{
	for (struct seen_pod *pod = f->pods; pod; pod = pod->hh.next)
		pod->gone = pod->gone || !pod->listed;
	f->known = true;
}

static void pods_set_source(struct pod_feed *f, const char *source)
{
	if (str_eq(f->source, source))
		return;
	log_info("the pods are those of the %s", source);
	f->source = source;
	f->state_untold = true;
}

static void pods_set_problem(struct pod_feed *f, const char *problem)
{
	f->state_untold = f->state_untold || !str_eq(f->problem, problem);
	(void)snprintf(f->problem, sizeof f->problem, "%s", problem);
}

static void on_pod(enum watch_event event, json_t *object, const char *text, void *arg)
{
	struct pod_feed *f = arg;
	switch (event) {
	case WATCH_BEGIN:
		begin_list(f);
		return;
	case WATCH_OBJECT:
		pods_take(f, object);
		break;
	case WATCH_GONE:
		take_gone(f, object);
		break;
	case WATCH_LISTED:
		end_list(f);
		break;
	case WATCH_DENIED:
	case WATCH_NO_KIND:
	case WATCH_FAILED:
		return;
	}
	tell_soon(f);
}

static void on_api_pod(enum watch_event event, json_t *object, const char *text, void *arg)
{
	struct pod_feed *f = arg;
	if (event == WATCH_LISTED)
		pods_set_source(f, "API server");
	on_pod(event, object, text, f);
}

static void watch_api(struct pod_feed *f)
{
	_free_ char *selector =
		f->config.kube ? str_printf("spec.nodeName=%s", f->config.node) : NULL;
	if (!f->watch && selector)
		f->watch = watch_new(f->config.kube, "/api/v1/pods", selector, on_api_pod, f);
	if (selector && !f->watch)
		log_error("out of memory: pods of the API server are not watched");
}

/* Falls back to the API server, except for a short time after the kubelet served its pods. */
static void kubelet_failed(struct pod_feed *f, const char *text)
{
	if (!str_eq(text, f->problem))
		log_notice("%s%s", text,
			   f->kubelet_only || !f->config.kube ? "" : "; the API server is asked");
	pods_set_problem(f, text);
	if (!f->kubelet_only && (!f->was_live || ++f->n_failures >= FAILURES_MAX))
		watch_api(f);
}

static void on_kubelet_pod(enum watch_event event, json_t *object, const char *text, void *arg)
{
	struct pod_feed *f = arg;
	if (event == WATCH_DENIED) {
		kubelet_failed(f, text);
		tell_soon(f);
		return;
	}
	if (event == WATCH_LISTED) {
		f->watch = watch_free(f->watch);
		f->n_failures = 0;
		f->was_live = true;
		pods_set_source(f, "kubelet");
		pods_set_problem(f, "");
	}
	on_pod(event, object, text, f);
}

void pod_feed_daemon_connected(struct pod_feed *f, const char *source)
{
	bool kubelet = f->kubelet_socket && (str_eq(source, "auto") || str_eq(source, "kubelet"));
	f->kubelet_only = str_eq(source, "kubelet");
	kube_backoff_reset(&f->backoff);
	f->anew = f->state_untold = true;
	f->under_way = false;
	if (!kubelet) {
		f->podwatch = podwatch_free(f->podwatch);
		pods_set_problem(f, "");
	} else if (!f->podwatch) {
		f->podwatch = podwatch_new(f->config.loop, f->kubelet_socket, on_kubelet_pod, f);
	}
	if (f->kubelet_only)
		f->watch = watch_free(f->watch);
	else if (!f->podwatch)
		watch_api(f);
	tell_soon(f);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct pod_feed *pod_feed_new(const struct pod_feed_config *config)
{
	struct pod_feed *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	f->config = *config;
	f->source = "";
	f->anew = true;
	f->timer = loop_timer_new(config->loop, pods_tell, f);
	if (config->kubelet_socket)
		f->kubelet_socket = strdup(config->kubelet_socket);
	return f->timer && (f->kubelet_socket || !config->kubelet_socket) ? f : pod_feed_free(f);
}

struct pod_feed *pod_feed_free(struct pod_feed *f)
{
	struct seen_pod *pod, *next;
	if (!f)
		return NULL;
	watch_free(f->watch);
	podwatch_free(f->podwatch);
	free(f->kubelet_socket);
	loop_timer_free(f->timer);
	HASH_ITER (hh, f->pods, pod, next)
		pods_drop(f, pod);
	free(f);
	return NULL;
}
