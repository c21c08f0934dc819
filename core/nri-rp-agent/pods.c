/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/pods.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/lib/kube/objects.h"
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

struct seen_pod {
	struct arena *arena; /* memory of the message */
	Agent__FedPod message;
	uint8_t *packed; /* packed form of the message, for comparisons */
	size_t packed_len;
	bool untold, gone; /* not sent yet; gone: the removal must be sent */
	bool listed; /* present in the current list */
	UT_hash_handle hh;
};

struct pod_feed {
	struct kube *kube;
	struct link *link;
	struct watch *watch;
	struct seen_pod *pods; /* by UID */
	struct loop_timer *timer;
	struct kube_backoff backoff;
	bool whole; /* all fields, for the bridge */
	bool known; /* a list has been complete */
	bool anew; /* all pods must be sent */
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
	if (!pod->arena || kube_pod(pod->arena, object, f->whole, &pod->message))
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
		log_warning("a pod is not told to nri-rpd: %s (said once)", why);
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
		left_out(f, "it has no name or no UID, is too large, or there is no memory");
		return;
	}
	if (had && !had->gone && !is_same(had, &pod->message)) {
		left_out(f, "another one has its UID");
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
	kube_set_problem(f->kube, PROBLEM, result->error ? result->text : NULL);
	if (result->error) {
		f->anew = true;
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

/* Marks the pods of a message as sent; it has been packed already. */
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
	if (!f->known || f->under_way)
		return;
	if (f->anew)
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
	m.begin = f->anew;
	m.complete = !pods_fill(f, &m);
	if (!m.begin && !m.n_pods && !m.n_gone)
		return;
	int r = link_call(f->link, "SetPods", &m.base, ANSWER_TIMEOUT_MS, pods_told, f);
	if (r && r != -ENOTCONN)
		(void)loop_timer_arm(f->timer, kube_backoff_next_ms(&f->backoff));
	if (r)
		return;
	f->under_way = true;
	f->anew = false;
	pods_sent(f, &m);
}

void pod_feed_daemon_connected(struct pod_feed *f)
{
	kube_backoff_reset(&f->backoff);
	f->anew = true;
	f->under_way = false;
	tell_soon(f);
}

/* ---- the watch ------------------------------------------------------------------------------- */

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

static void on_pod(enum watch_event event, json_t *object, const char *text, void *arg)
{
	struct pod_feed *f = arg;
	(void)text;
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
		return;
	}
	tell_soon(f);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct pod_feed *pod_feed_new(struct kube *k, struct link *l, const char *node, bool whole)
{
	struct pod_feed *f = calloc(1, sizeof *f);
	_free_ char *selector = str_printf("spec.nodeName=%s", node);
	if (!f)
		return NULL;
	f->kube = k;
	f->link = l;
	f->whole = whole;
	f->anew = true;
	f->timer = loop_timer_new(kube_loop(k), pods_tell, f);
	if (selector && f->timer)
		f->watch = watch_new(k, "/api/v1/pods", selector, on_pod, f);
	return f->watch ? f : pod_feed_free(f);
}

struct pod_feed *pod_feed_free(struct pod_feed *f)
{
	struct seen_pod *pod, *next;
	if (!f)
		return NULL;
	watch_free(f->watch);
	loop_timer_free(f->timer);
	HASH_ITER (hh, f->pods, pod, next)
		pods_drop(f, pod);
	free(f);
	return NULL;
}
