/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/podres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/devices.h"
#include "core/nri-rp-agent/places.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/hash.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "proto/podresources.pb-c.h"

#define LOG_SOURCE "podres"
#define GET_METHOD "/v1.PodResourcesLister/Get"
#define LIST_METHOD "/v1.PodResourcesLister/List"
#define KEY_MAX (2 * AGENT_NAME_MAX)
#define LIST_ARENA (64u << 20)
#define ARENA_BLOCK (16u << 10)

/* Data of the last list about a pod; or a mark that the pod has ended, so that lists about it are
 * ignored. */
struct known {
	char *key; /* key of the pod: namespace/name */
	uint8_t *packed; /* devices of the pod, a packed Agent__PodDevices */
	size_t len;
	bool ended;
	unsigned list; /* number of the last list that contained the pod */
	UT_hash_handle hh;
};

/* A request that waits for a list: for all pods, or for one. */
struct waiter {
	struct podres *podres;
	char ns[AGENT_NAME_MAX], name[AGENT_NAME_MAX];
	void (*pod_done)(const struct podres_pod *result, void *arg);
	void (*list_done)(const struct podres_list *result, void *arg);
	void *arg;
	struct waiter *prev, *next;
};

struct podres {
	struct kubelet *kubelet;
	struct known *known;
	struct places *places; /* places of devices of claims; NULL: claims are not read */
	struct waiter *early; /* requests that wait for the first list of slices */
	/* waiters: requests that wait for the next list; served: requests that get the current
	 * list */
	struct waiter *waiters, *served;
	unsigned n_waiters;
	bool listing, closing;
	unsigned no_get; /* number of the connection whose kubelet has no Get; 0: none */
	unsigned lists; /* number of lists so far */
};

/* ---- remembered pods ------------------------------------------------------------------------- */

static void known_del(struct podres *p, struct known *k)
{
	HASH_DEL(p->known, k);
	free(k->key);
	free(k->packed);
	free(k);
}

static bool make_key(char key[KEY_MAX], const char *ns, const char *name)
{
	return snprintf(key, KEY_MAX, "%s/%s", ns, name) < (int)KEY_MAX;
}

static struct known *known_find(struct podres *p, const char *ns, const char *name)
{
	char key[KEY_MAX];
	struct known *k = NULL;
	if (make_key(key, ns, name))
		HASH_FIND_STR(p->known, key, k);
	return k;
}

static struct known *known_make(struct podres *p, const char *ns, const char *name)
{
	char key[KEY_MAX];
	struct known *k = known_find(p, ns, name);
	if (k || HASH_COUNT(p->known) >= PODRES_KNOWN_MAX || !make_key(key, ns, name))
		return k;
	k = calloc(1, sizeof *k);
	if (!k)
		return NULL;
	k->key = strdup(key);
	if (k->key)
		HASH_ADD_KEYPTR(hh, p->known, k->key, strlen(k->key), k);
	if (k->key && k->hh.tbl)
		return k;
	free(k->key);
	free(k);
	return NULL;
}

static int podres_remember(struct podres *p, const Agent__PodDevices *pod)
{
	struct known *k = known_make(p, pod->namespace_, pod->name);
	if (!k)
		/* an incomplete list would claim that missing pods have no devices */
		return -ENOMEM;
	k->list = p->lists;
	if (k->ended)
		return 0;
	size_t len = agent__pod_devices__get_packed_size(pod);
	uint8_t *packed = malloc(len);
	if (!packed) {
		known_del(p, k);
		return -ENOMEM;
	}
	k->len = agent__pod_devices__pack(pod, packed);
	free(k->packed);
	k->packed = packed;
	return 0;
}

/* Forgets pods that the kubelet no longer lists. */
static void forget_unlisted(struct podres *p)
{
	struct known *k, *next;
	HASH_ITER (hh, p->known, k, next)
		if (k->list != p->lists)
			known_del(p, k);
}

static void forget_all(struct podres *p)
{
	struct known *k, *next;
	HASH_ITER (hh, p->known, k, next)
		known_del(p, k);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void pod_failed(const struct waiter *w, int error, const char *text)
{
	const struct podres_pod result = {.error = error, .text = text};
	w->pod_done(&result, w->arg);
}

static void podres_fail(const struct waiter *w, int error, const char *text)
{
	if (w->pod_done) {
		pod_failed(w, error, text);
		return;
	}
	struct podres_list result = {.error = error, .text = text};
	agent__list_response__init(&result.list);
	w->list_done(&result, w->arg);
}

static int tell_pod(const Agent__PodDevices *pod, void *arg)
{
	const struct waiter *w = arg;
	const struct podres_pod result = {.text = "", .pod = pod};
	if (w->podres->places)
		places_locate(w->podres->places, pod);
	w->pod_done(&result, w->arg);
	return 1; /* stop after the first pod */
}

static void tell_known(const struct waiter *w, const struct known *k)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, DEVICES_POD_ARENA);
	const Agent__PodDevices *pod = PB_UNPACK(a, agent__pod_devices, k->len, k->packed);
	if (pod)
		(void)tell_pod(pod, (void *)(uintptr_t)w);
	else
		pod_failed(w, -ENOMEM, "out of memory");
}

static void tell_list(const struct podres *p, const struct waiter *w)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, LIST_ARENA);
	struct podres_list result = {.text = ""};
	const struct known *k;
	agent__list_response__init(&result.list);
	result.list.pods =
		a ? arena_array(a, HASH_COUNT(p->known) + 1, sizeof(Agent__PodDevices *)) : NULL;
	if (!result.list.pods) {
		podres_fail(w, -ENOMEM, "out of memory");
		return;
	}
	for (k = p->known; k; k = k->hh.next) {
		Agent__PodDevices *pod =
			k->packed ? PB_UNPACK(a, agent__pod_devices, k->len, k->packed) : NULL;
		if (k->packed && !pod) {
			podres_fail(w, -ENOMEM, "out of memory");
			return;
		}
		if (pod && p->places)
			places_locate(p->places, pod);
		if (pod && devices_any(pod))
			result.list.pods[result.list.n_pods++] = pod;
	}
	w->list_done(&result, w->arg);
}

static void tell_listed(struct podres *p, const struct waiter *w)
{
	char text[2 * KEY_MAX];
	if (w->list_done) {
		tell_list(p, w);
		return;
	}
	const struct known *k = known_find(p, w->ns, w->name);
	if (k && k->packed) {
		tell_known(w, k);
		return;
	}
	(void)snprintf(text, sizeof text, "the kubelet does not list pod %s/%s", w->ns, w->name);
	pod_failed(w, -EREMOTEIO, text);
}

/* ---- List ------------------------------------------------------------------------------------ */

static void list_next(struct podres *p);

static void fail_all(struct waiter *list, int error, const char *text)
{
	while (list) {
		struct waiter *w = list;
		DL_DELETE(list, w);
		podres_fail(w, error, text);
		free(w);
	}
}

static int remember_fn(const Agent__PodDevices *pod, void *arg)
{
	return podres_remember(arg, pod);
}

/* Returns why a call of the kubelet failed, the same text for a timeout by either clock. */
static const char *podres_why(const struct grpc_result *result)
{
	return grpc_result_error(result) == -ETIMEDOUT ? "no reply in time" : result->text;
}

static int read_list(struct podres *p, const struct grpc_result *result, struct err *err)
{
	p->lists++;
	int r = grpc_result_error(result);
	if (r)
		return err_set(err, r, "the kubelet's List: %s", podres_why(result));
	r = devices_each_pod(result->payload, result->payload_len, p->places != NULL, remember_fn,
			     p, err);
	if (r && !err->code)
		(void)err_set(err, r, "out of memory for its pods");
	if (r)
		return err_prefix(err, "the kubelet's List: ");
	forget_unlisted(p);
	return 0;
}

static void podres_listed(const struct grpc_result *result, void *arg)
{
	struct podres *p = arg;
	struct err err = ERR_INIT;
	struct waiter *served = TAKE(p->served);
	int r = read_list(p, result, &err);
	if (r)
		forget_all(p);
	while (!r && served) {
		struct waiter *w = served;
		DL_DELETE(served, w);
		tell_listed(p, w);
		free(w);
	}
	fail_all(served, r, err.text);
	p->listing = false;
	list_next(p);
}

/* Starts a list for all waiting requests. A list that has begun before a request may not contain
 * its pod, so later requests wait for the next one. */
static void list_next(struct podres *p)
{
	Podresources__ListRequest msg = PODRESOURCES__LIST_REQUEST__INIT;
	while (p->waiters && !p->listing) {
		struct err err = ERR_INIT;
		int r = p->closing ? err_set(&err, -ECANCELED, "the agent is stopping") : 0;
		const struct waiter *w;
		p->served = TAKE(p->waiters);
		DL_FOREACH (p->served, w)
			p->n_waiters--;
		p->listing = true;
		if (!r)
			r = kubelet_call(p->kubelet, LIST_METHOD, &msg.base, AGENT_LIST_MS,
					 podres_listed, p, &err);
		if (!r)
			return;
		fail_all(TAKE(p->served), r, err.text);
		p->listing = false;
	}
}

/* Forgets that a pod has ended, because a request by its name is about its successor. */
static void podres_revive(struct podres *p, const struct waiter *w)
{
	struct known *k = w->pod_done ? known_find(p, w->ns, w->name) : NULL;
	if (k)
		known_del(p, k);
}

static void wait_for_list(struct podres *p, struct waiter *w)
{
	if (p->n_waiters >= PODRES_WAITING_MAX) {
		podres_fail(w, -ENOBUFS, "too many requests wait for the kubelet's list of pods");
		free(w);
		return;
	}
	podres_revive(p, w);
	DL_APPEND(p->waiters, w);
	p->n_waiters++;
	list_next(p);
}

/* Defers a request until the first list of slices, without which claims have no places. Returns
 * false if it need not wait. */
static bool wait_for_slices(struct podres *p, struct waiter *w)
{
	if (!p->places || places_settled(p->places) || p->n_waiters >= PODRES_WAITING_MAX)
		return false;
	DL_APPEND(p->early, w);
	p->n_waiters++;
	return true;
}

void podres_list(struct podres *p, void (*done)(const struct podres_list *result, void *arg),
		 void *arg)
{
	struct waiter stray = {.podres = p, .list_done = done, .arg = arg};
	struct waiter *w = malloc(sizeof *w);
	if (!w) {
		podres_fail(&stray, -ENOMEM, "out of memory");
		return;
	}
	*w = stray;
	if (!wait_for_slices(p, w))
		wait_for_list(p, w);
}

static bool lists_only(const struct podres *p)
{
	return p->no_get && p->no_get == kubelet_connection(p->kubelet);
}

/* ---- Get ------------------------------------------------------------------------------------- */

/* Returns true if the kubelet has no Get: it is older than 1.27, or its feature gate is off, for
 * which there is no specific error code. */
static bool has_no_get(const struct grpc_result *result)
{
	return result->error == -EREMOTEIO && (result->status == GRPC_UNIMPLEMENTED ||
					       strstr(result->text, "Get method disabled"));
}

static void podres_got(const struct grpc_result *result, void *arg)
{
	struct waiter *w = arg;
	struct podres *p = w->podres;
	struct err err = ERR_INIT;
	if (has_no_get(result)) {
		if (!p->no_get)
			log_info("the kubelet has no method Get (%s): using List", result->text);
		p->no_get = kubelet_connection(p->kubelet);
		wait_for_list(p, w);
		return;
	}
	int r = grpc_result_error(result);
	if (r)
		(void)err_set(&err, r, "the kubelet's Get: %s", podres_why(result));
	else if ((r = devices_each_pod(result->payload, result->payload_len, p->places != NULL,
				       tell_pod, w, &err)) < 0)
		(void)err_prefix(&err, "the kubelet's Get: ");
	else if (!r)
		r = err_set(&err, -EBADMSG, "the kubelet's Get: a reply without a pod");
	if (r < 0)
		pod_failed(w, r, err.text);
	free(w);
}

static bool get_now(struct podres *p, struct waiter *w)
{
	struct err err = ERR_INIT;
	Podresources__GetRequest msg = PODRESOURCES__GET_REQUEST__INIT;
	msg.pod_name = w->name;
	msg.pod_namespace = w->ns;
	int r = kubelet_call(p->kubelet, GET_METHOD, &msg.base, AGENT_GET_MS, podres_got, w, &err);
	if (!r)
		return true;
	pod_failed(w, r, err.text);
	free(w);
	return false;
}

static void podres_ask(struct podres *p, struct waiter *w)
{
	if (!lists_only(p)) {
		podres_revive(p, w);
		(void)get_now(p, w);
		return;
	}
	const struct known *k = known_find(p, w->ns, w->name);
	if (k && k->packed && !k->ended) {
		tell_known(w, k);
		free(w);
		return;
	}
	wait_for_list(p, w);
}

void podres_get(struct podres *p, const char *ns, const char *name,
		void (*done)(const struct podres_pod *result, void *arg), void *arg)
{
	struct waiter stray = {.podres = p, .pod_done = done, .arg = arg};
	if (strlen(ns) >= AGENT_NAME_MAX || strlen(name) >= AGENT_NAME_MAX) {
		pod_failed(&stray, -EINVAL, "a pod's name that is too long");
		return;
	}
	struct waiter *w = malloc(sizeof *w);
	if (!w) {
		pod_failed(&stray, -ENOMEM, "out of memory");
		return;
	}
	*w = stray;
	(void)snprintf(w->ns, sizeof w->ns, "%s", ns);
	(void)snprintf(w->name, sizeof w->name, "%s", name);
	if (!wait_for_slices(p, w))
		podres_ask(p, w);
}

/* ---- claims ---------------------------------------------------------------------------------- */

static void podres_settled(void *arg)
{
	struct podres *p = arg;
	struct waiter *early = TAKE(p->early);
	while (early) {
		struct waiter *w = early;
		DL_DELETE(early, w);
		p->n_waiters--;
		if (w->pod_done)
			podres_ask(p, w);
		else
			wait_for_list(p, w);
	}
}

void podres_set_claims(struct podres *p, bool wanted, struct kube *k, const char *node)
{
	if (wanted == (p->places != NULL))
		return;
	p->places = places_free(p->places);
	if (wanted)
		p->places = places_new(k, node, podres_settled, p);
	if (wanted && !p->places)
		log_error("out of memory: devices of claims are not read");
	forget_all(p); /* the next list has the claims, or no longer */
	if (!wanted)
		podres_settled(p);
}

void podres_forget(struct podres *p, const char *ns, const char *name)
{
	struct known *k = lists_only(p) ? known_make(p, ns, name) : known_find(p, ns, name);
	if (!k)
		return;
	if (!lists_only(p)) {
		known_del(p, k); /* the next list fetches it again */
		return;
	}
	free(k->packed);
	k->packed = NULL;
	k->ended = true;
	k->list = p->lists;
}

int podres_new(struct loop *loop, const char *socket, struct podres **ret, struct err *err)
{
	struct podres *p = calloc(1, sizeof *p);
	if (!p)
		return err_errno(err, -ENOMEM, "pod resources");
	int r = kubelet_new(loop, socket, &p->kubelet, err);
	if (r) {
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct podres *podres_free(struct podres *p)
{
	if (!p)
		return NULL;
	p->closing = true;
	podres_set_claims(p, false, NULL, NULL);
	kubelet_free(p->kubelet); /* also ends all requests that wait for a list */
	forget_all(p);
	free(p);
	return NULL;
}
