/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/podlist.h"

#include "core/nri-rp-bridge/feed.h"
#include "core/nri-rp-bridge/fetch.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/kube/objects.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/hash.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "pods"
#define GAP_MS 200u /* minimum interval between requests to the kubelet */
#define EMPTY_MAX 5u /* number of consecutive empty lists after which an empty list is accepted */
#define PARSE_BLOCK (64u << 10)
#define PARSE_LIMIT (256u << 20) /* memory limit for parsing a list */
#define POD_BLOCK 1024u
#define POD_MAX (1u << 20) /* largest packed size of one pod, in bytes */

struct known_pod {
	struct arena *arena; /* memory of the message */
	Agent__FedPod *message;
	uint8_t *packed; /* packed form of the message, for comparisons */
	size_t n;
	bool listed; /* the pod is in the current list */
	uint64_t gone_ms; /* when the pod was first missing from the lists; 0: it is listed */
	UT_hash_handle hh;
};

struct podlist {
	struct podlist_config config;
	struct known_pod *pods; /* known pods, by UID */
	struct fetch *fetch;
	struct feed *feed;
	struct loop_timer *poll; /* next request to the kubelet */
	uint64_t asked_ms;
	bool asking, secure; /* a fetch is under way; it uses the secure port */
	bool fed; /* the agent is connected and has sent all its pods */
	bool failing;
	bool warned; /* a message has said that no source is configured */
	bool changed; /* a pod has changed since the current list began */
	unsigned empty; /* number of consecutive empty lists */
	char state[256];
};

/* ---- the pods -------------------------------------------------------------------------------- */

static struct known_pod *known_free(struct known_pod *pod)
{
	if (pod)
		arena_free(pod->arena);
	free(pod);
	return NULL;
}

static struct known_pod *known_new(const Agent__FedPod *from)
{
	size_t n = agent__fed_pod__get_packed_size(from);
	struct known_pod *pod = n <= POD_MAX ? calloc(1, sizeof *pod) : NULL;
	if (!pod)
		return NULL;
	pod->arena = arena_new(POD_BLOCK, 0);
	pod->packed = pod->arena ? arena_alloc(pod->arena, n + 1) : NULL;
	if (!pod->packed)
		return known_free(pod);
	pod->n = agent__fed_pod__pack(from, pod->packed);
	pod->message = PB_UNPACK(pod->arena, agent__fed_pod, pod->n, pod->packed);
	pod->listed = true;
	return pod->message ? pod : known_free(pod);
}

static struct known_pod *podlist_do_find(const struct podlist *p, const char *uid)
{
	struct known_pod *pod = NULL;
	HASH_FIND(hh, p->pods, uid, strlen(uid), pod);
	return pod;
}

static void podlist_drop(struct podlist *p, struct known_pod *pod)
{
	HASH_DEL(p->pods, pod);
	known_free(pod);
}

void podlist_begin(struct podlist *p)
{
	for (struct known_pod *pod = p->pods; pod; pod = pod->hh.next)
		pod->listed = false;
}

/* Frees an entry for a new pod by dropping the pod that has been missing for longest. Returns false
 * if no pod is missing. */
static bool has_room(struct podlist *p)
{
	struct known_pod *oldest = NULL;
	if (HASH_COUNT(p->pods) < PODLIST_MAX)
		return true;
	for (struct known_pod *pod = p->pods; pod; pod = pod->hh.next)
		if (pod->gone_ms && (!oldest || pod->gone_ms < oldest->gone_ms))
			oldest = pod;
	if (oldest)
		podlist_drop(p, oldest);
	return oldest != NULL;
}

void podlist_take(struct podlist *p, const Agent__FedPod *from)
{
	struct known_pod *had = podlist_do_find(p, from->uid), *pod = known_new(from);
	if (pod && had && had->n == pod->n && memcmp(had->packed, pod->packed, pod->n) == 0) {
		p->changed |= had->gone_ms != 0;
		had->listed = true;
		had->gone_ms = 0;
		known_free(pod);
		return;
	}
	if (!pod || (!had && !has_room(p))) {
		log_warning("pod %.64s/%.64s is only identified by its cgroup: it is too large, or "
			    "there are too many",
			    from->namespace_, from->name);
		known_free(pod);
		return;
	}
	if (had)
		podlist_drop(p, had);
	HASH_ADD_KEYPTR(hh, p->pods, pod->message->uid, strlen(pod->message->uid), pod);
	if (!pod->hh.tbl)
		known_free(pod);
	p->changed = true;
}

static void set_gone(struct podlist *p, struct known_pod *pod)
{
	if (pod->gone_ms)
		return;
	pod->gone_ms = clock_ms();
	p->changed = true;
}

void podlist_forget(struct podlist *p, const char *uid)
{
	struct known_pod *pod = podlist_do_find(p, uid);
	if (pod)
		set_gone(p, pod);
}

/* Pods that have been missing for longer are forgotten, even if their cgroups remain. */
#define FORGET_MS 3600000u

void podlist_end(struct podlist *p)
{
	struct known_pod *pod, *next;
	HASH_ITER (hh, p->pods, pod, next) {
		if (!pod->listed)
			set_gone(p, pod);
		if (pod->gone_ms && clock_ms() - pod->gone_ms > FORGET_MS)
			podlist_drop(p, pod);
	}
	if (p->changed)
		p->config.changed(p->config.arg);
	p->changed = false;
}

const Agent__FedPod *podlist_find(const struct podlist *p, const char *uid)
{
	const struct known_pod *pod = podlist_do_find(p, uid);
	return pod ? pod->message : NULL;
}

uint64_t podlist_gone_ms(const struct podlist *p, const char *uid)
{
	const struct known_pod *pod = podlist_do_find(p, uid);
	return pod && pod->gone_ms ? clock_ms() - pod->gone_ms + 1 : 0;
}

/* ---- parsing of a kubelet's list ------------------------------------------------------------- */

int podlist_parse(const char *text, size_t n, void (*fn)(const Agent__FedPod *pod, void *arg),
		  void *arg, size_t *ret_n)
{
	json_t *root = json_loadb(text, n, 0, NULL);
	const json_t *items = json_object_get(root, "items"), *item;
	const char *kind = json_string_value(json_object_get(root, "kind"));
	_arena_ struct arena *a = arena_new(PARSE_BLOCK, PARSE_LIMIT);
	size_t i, count = json_array_size(items);
	/* Go encodes an empty list as null. */
	int r = !kind || !str_eq(kind, "PodList") ||
				(items && !json_is_array(items) && !json_is_null(items))
			? -EBADMSG
		: !a		      ? -ENOMEM
		: count > PODLIST_MAX ? -E2BIG
				      : 0;
	json_array_foreach(items, i, item)
	{
		Agent__FedPod pod;
		if (r)
			break;
		if (kube_pod(a, item, true, &pod) == 0)
			fn(&pod, arg);
		arena_reset(a); /* fn() has copied the pod */
	}
	json_decref(root);
	if (!r)
		*ret_n = count;
	return r;
}

struct taking {
	struct podlist *p;
	/* podlist_begin was called: the body is a list, and a failed answer leaves no incomplete
	 * list */
	bool begun;
};

static void begin_once(struct taking *t)
{
	if (!t->begun)
		podlist_begin(t->p);
	t->begun = true;
}

static void take_one(const Agent__FedPod *pod, void *arg)
{
	struct taking *t = arg;
	begin_once(t);
	podlist_take(t->p, pod);
}

static void set_state(struct podlist *p, bool failing, const char *text)
{
	const char *source = p->fed ? "agent" : p->secure ? "secure" : "readonly";
	char state[sizeof p->state];
	(void)snprintf(state, sizeof state, "%s%s%.200s", source, *text ? ": " : "", text);
	if (failing && !str_eq(state, p->state))
		log_warning("pods are only identified by their cgroups: %s", state);
	else if (!str_eq(state, p->state))
		log_notice("pods are identified by %s", state);
	if (!failing && !p->fed && !p->secure && p->config.source == PODS_AUTO && !p->warned) {
		log_warning("--pods auto uses the port without authentication, where any process "
			    "could impersonate the kubelet: name a source");
		p->warned = true;
	}
	(void)snprintf(p->state, sizeof p->state, "%s", state);
	p->failing = failing;
}

static void on_fetched(const char *why, const char *body, size_t n, void *arg)
{
	struct podlist *p = arg;
	struct taking taking = {.p = p};
	size_t count = 0;
	p->asking = false;
	(void)loop_timer_arm(p->poll, p->config.poll_ms);
	if (p->fed || (p->feed && feed_is_telling(p->feed)))
		return; /* the agent has connected in the meantime */
	int r = why ? -EIO : podlist_parse(body, n, take_one, &taking, &count);
	p->empty = r || count ? 0 : p->empty + 1;
	if (r) {
		bool news = !p->failing;
		set_state(p, true,
			  why		? why
			  : r == -E2BIG ? "too many pods"
					: "not a list of pods");
		if (news)
			p->config.changed(p->config.arg); /* ends the waits for this list */
		return;
	}
	set_state(p, false, "");
	/* Before the first list, an empty list has no pods to remove. */
	if (!count && p->empty < EMPTY_MAX)
		return;
	begin_once(&taking);
	podlist_end(p);
}

static void ask_now(void *arg)
{
	struct podlist *p = arg;
	if (p->asking || p->fed || !p->fetch)
		return;
	enum pods_source source = p->config.source;
	p->secure = source == PODS_SECURE || (source == PODS_AUTO && fetch_may_be_secure(p->fetch));
	p->asking = true;
	p->asked_ms = clock_ms();
	fetch_begin(p->fetch, p->secure);
}

void podlist_ask(struct podlist *p)
{
	uint64_t since = clock_ms() - p->asked_ms;
	if (p->fetch && !p->asking && !p->fed)
		(void)loop_timer_arm(p->poll, since < GAP_MS ? GAP_MS - since : 1);
}

static void on_feed(bool connected, void *arg)
{
	struct podlist *p = arg;
	p->fed = connected;
	if (connected) {
		loop_timer_disarm(p->poll);
		set_state(p, false, "");
	} else if (p->fetch) {
		podlist_ask(p);
	} else {
		(void)snprintf(p->state, sizeof p->state, "agent: not connected");
		log_warning("pods are only identified by their cgroups: %s", p->state);
	}
}

bool podlist_may_know(const struct podlist *p)
{
	return p->fed || (p->fetch && !p->failing);
}

const char *podlist_state(const struct podlist *p)
{
	return p->state;
}

/* ---- life ------------------------------------------------------------------------------------ */

int podlist_new(const struct podlist_config *config, struct podlist **ret, struct err *err)
{
	enum pods_source source = config->source;
	struct podlist *p = calloc(1, sizeof *p);
	if (!p)
		return err_errno(err, -ENOMEM, "pods");
	p->config = *config;
	(void)snprintf(p->state, sizeof p->state, "cgroupfs");
	p->poll = loop_timer_new(config->loop, ask_now, p);
	int r = p->poll ? 0 : err_errno(err, -ENOMEM, "pods");
	if (!r && (source == PODS_AGENT || source == PODS_AUTO))
		r = feed_new(&p->config, p, on_feed, &p->feed, err);
	if (!r && source != PODS_AGENT && source != PODS_CGROUPFS)
		r = fetch_new(&p->config, on_fetched, p, &p->fetch, err);
	if (r) {
		podlist_free(p);
		return r;
	}
	podlist_ask(p);
	*ret = p;
	return 0;
}

struct podlist *podlist_free(struct podlist *p)
{
	struct known_pod *pod, *next;
	if (!p)
		return NULL;
	fetch_free(p->fetch);
	feed_free(p->feed);
	loop_timer_free(p->poll);
	HASH_ITER (hh, p->pods, pod, next)
		podlist_drop(p, pod);
	free(p);
	return NULL;
}
