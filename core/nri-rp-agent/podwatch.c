/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/podwatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/backoff.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "core/nri-rp-agent/kubelet.h"
#include "proto/kubeletpods.pb-c.h"

#define LOG_SOURCE "podwatch"
#define WATCH_METHOD "/v1alpha1.Pods/WatchPods"
#define ARENA_BLOCK (16u << 10)
#define ARENA_LIMIT (16u << 20)
#define BACKOFF_FIRST_MS 1000u
#define BACKOFF_LAST_MS 30000u
#define NO_API "the kubelet does not serve its pods (feature gate PodsAPI, Kubernetes 1.36): "
/* fields that the kubelet sends; kubelets without field masks send whole pods */
#define MASK_KEY "x-kubernetes-fieldmask"
#define MASK                                                                                       \
	"metadata.uid,metadata.namespace,metadata.name,metadata.annotations,"                      \
	"metadata.ownerReferences,spec.priority,spec.resources,spec.containers.name,"              \
	"spec.containers.resources,spec.initContainers.name,spec.initContainers.resources,"        \
	"spec.initContainers.restartPolicy,status.phase"

struct podwatch {
	struct kubelet *kubelet;
	struct grpc_call *call; /* stream of pods from the kubelet; NULL: none is open */
	struct loop_timer *timer; /* delay before the next stream; while syncing its time limit */
	struct backoff backoff;
	bool begun; /* the stream has sent something */
	bool live; /* the stream has sent all pods */
	watch_fn fn;
	void *arg;
};

/* ---- pods ------------------------------------------------------------------------------------ */

static json_t *json_amounts(Kubeletpods__Amount *const *list, size_t n)
{
	json_t *map = json_object();
	for (size_t i = 0; i < n; i++)
		if (list[i]->value)
			(void)json_object_set_new(map, list[i]->key,
						  json_string(list[i]->value->string));
	return map;
}

static json_t *json_resources(const Kubeletpods__Resources *m)
{
	json_t *resources = json_object();
	if (m && m->n_requests)
		(void)json_object_set_new(resources, "requests",
					  json_amounts(m->requests, m->n_requests));
	if (m && m->n_limits)
		(void)json_object_set_new(resources, "limits",
					  json_amounts(m->limits, m->n_limits));
	return resources;
}

static json_t *json_containers(Kubeletpods__Container *const *list, size_t n)
{
	json_t *array = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(array, json_pack("{s:s, s:s, s:o}", "name",
							     list[i]->name, "restartPolicy",
							     list[i]->restart_policy, "resources",
							     json_resources(list[i]->resources)));
	return array;
}

static json_t *json_metadata(const Kubeletpods__Metadata *m)
{
	json_t *annotations = json_object(), *owners = json_array();
	for (size_t i = 0; i < m->n_annotations; i++)
		(void)json_object_set_new(annotations, m->annotations[i]->key,
					  json_string(m->annotations[i]->value));
	for (size_t i = 0; i < m->n_owner_references; i++)
		(void)json_array_append_new(
			owners, json_pack("{s:s, s:b}", "kind", m->owner_references[i]->kind,
					  "controller", m->owner_references[i]->controller));
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "uid", m->uid, "namespace", m->namespace_,
			 "name", m->name, "annotations", annotations, "ownerReferences", owners);
}

static json_t *json_spec(const Kubeletpods__Spec *m)
{
	return json_pack("{s:i, s:o, s:o, s:o}", "priority", (int)m->priority, "resources",
			 json_resources(m->resources), "initContainers",
			 json_containers(m->init_containers, m->n_init_containers), "containers",
			 json_containers(m->containers, m->n_containers));
}

json_t *podwatch_json(const uint8_t *data, size_t n)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_LIMIT);
	const Kubeletpods__Pod *m = PB_UNPACK(a, kubeletpods__pod, n, data);
	if (!m || !m->metadata)
		return NULL;
	json_t *pod = json_object();
	(void)json_object_set_new(pod, "metadata", json_metadata(m->metadata));
	if (m->spec)
		(void)json_object_set_new(pod, "spec", json_spec(m->spec));
	if (m->status)
		(void)json_object_set_new(pod, "status",
					  json_pack("{s:s}", "phase", m->status->phase));
	return pod;
}

/* ---- the stream ------------------------------------------------------------------------------ */

static void podwatch_failed(struct podwatch *w, const char *text)
{
	w->live = w->begun = false;
	(void)loop_timer_arm(w->timer,
			     backoff_next_ms(&w->backoff, BACKOFF_FIRST_MS, BACKOFF_LAST_MS));
	w->fn(WATCH_DENIED, NULL, text, w->arg);
}

static void podwatch_synced(struct podwatch *w)
{
	loop_timer_disarm(w->timer);
	backoff_reset(&w->backoff);
	w->live = true;
	w->fn(WATCH_LISTED, NULL, NULL, w->arg);
}

static void podwatch_take(const struct podwatch *w, const Kubeletpods__WatchPodsEvent *m)
{
	json_t *pod = podwatch_json(m->pod.data, m->pod.len);
	/* the kubelet sends name, namespace and UID of a removed pod, and no specification */
	bool gone = m->type == KUBELETPODS__EVENT_TYPE__DELETED || !json_object_get(pod, "spec");
	if (pod)
		w->fn(gone ? WATCH_GONE : WATCH_OBJECT, pod, NULL, w->arg);
	else
		log_warning("the kubelet sends a pod that cannot be read");
	json_decref(pod);
}

static void podwatch_message(const uint8_t *payload, size_t n, void *arg)
{
	struct podwatch *w = arg;
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_LIMIT);
	const Kubeletpods__WatchPodsEvent *m =
		PB_UNPACK(a, kubeletpods__watch_pods_event, n, payload);
	if (!w->begun)
		w->fn(WATCH_BEGIN, NULL, NULL, w->arg);
	w->begun = true;
	if (!m)
		log_warning("the kubelet sends an event of a pod that cannot be read");
	else if (m->pod.len)
		podwatch_take(w, m);
	else if (!w->live)
		podwatch_synced(w);
}

static void podwatch_done(const struct grpc_result *result, void *arg)
{
	struct podwatch *w = arg;
	char text[ERR_TEXT_MAX];
	bool none = result->error == -EREMOTEIO && result->status == GRPC_UNIMPLEMENTED;
	w->call = NULL;
	if (w->live && grpc_result_error(result) == -ETIMEDOUT) {
		w->live = w->begun = false;
		(void)loop_timer_arm(w->timer, 0);
		return;
	}
	(void)snprintf(text, sizeof text, "%s%s", none ? NO_API : "the kubelet's pods: ",
		       result->error ? result->text : "the kubelet has ended the stream");
	podwatch_failed(w, text);
}

static void podwatch_open(struct podwatch *w)
{
	const struct h2_field mask = H2_FIELD(MASK_KEY, MASK);
	Kubeletpods__WatchPodsRequest msg = KUBELETPODS__WATCH_PODS_REQUEST__INIT;
	struct err err = ERR_INIT;
	char text[ERR_TEXT_MAX];
	const struct kubelet_stream stream = {{&mask, 1}, podwatch_message, &w->call};
	int r = kubelet_watch(w->kubelet, WATCH_METHOD, &msg.base, PODWATCH_STREAM_S * 1000,
			      &stream, podwatch_done, w, &err);
	if (r == 0) {
		(void)loop_timer_arm(w->timer, PODWATCH_SYNC_MS);
		return;
	}
	(void)snprintf(text, sizeof text, "%s%s", r == -ENOENT ? NO_API : "", err.text);
	podwatch_failed(w, text);
}

static void on_timer(void *arg)
{
	struct podwatch *w = arg;
	if (!w->call) {
		podwatch_open(w);
		return;
	}
	w->call = grpc_call_cancel(w->call);
	podwatch_failed(w, "the kubelet's pods: no complete list in time");
}

/* ---- life ------------------------------------------------------------------------------------ */

struct podwatch *podwatch_new(struct loop *loop, const char *socket, watch_fn fn, void *arg)
{
	struct podwatch *w = calloc(1, sizeof *w);
	struct err err = ERR_INIT;
	if (!w)
		return NULL;
	w->fn = fn;
	w->arg = arg;
	w->timer = loop_timer_new(loop, on_timer, w);
	if (!w->timer || kubelet_new(loop, socket, &w->kubelet, &err))
		return podwatch_free(w);
	(void)loop_timer_arm(w->timer, 0);
	return w;
}

struct podwatch *podwatch_free(struct podwatch *w)
{
	if (!w)
		return NULL;
	w->call = grpc_call_cancel(w->call);
	kubelet_free(w->kubelet);
	loop_timer_free(w->timer);
	free(w);
	return NULL;
}
