/* SPDX-License-Identifier: Apache-2.0 */
/* Types and functions shared by the files of intercept.h. */
#pragma once

#include "core/lib/grpc/call.h"
#include "core/nri-rp-bridge/plugin.h"
#include "core/nri-rp-bridge/cri_edit.h"
#include "core/nri-rp-bridge/intercept.h"
#include "core/lib/util/fields.h"
#include "core/lib/util/loop.h"

#define SERVICE_V1 "/runtime.v1.RuntimeService/"
#define SERVICE_V1ALPHA2 "/runtime.v1alpha2.RuntimeService/"
#define LIST_MS 10000u /* the runtime's time limit for a list */
#define STATE_RUNNING 1
#define STATE_EXITED 2

struct gather;

struct intercept {
	struct plugin plugin; /* must be the first member */
	struct intercept_config config;
	/* Number of Synchronize calls so far. A call begun in an earlier generation belongs to a
	 * plugin that has disconnected. */
	unsigned generation;
	/* name of the gRPC service in the kubelet's last call, with its version; used for own
	 * requests */
	char service[64];
	struct intercept_call *calls;
	struct gather *gather; /* list of pods and containers that is being gathered; NULL: none */
	struct events_listener listener;
	bool heard; /* at least one event was received */
	bool no_events; /* the runtime does not support events */
	struct loop_timer *poll;
	unsigned n_polls;
	bool polling;
	struct loop_task back;
	bool is_back; /* the task `back` is queued: the runtime has returned */
	unsigned long n_unasked; /* calls passed without a plugin since the last one disconnected */
};

/* ---- intercept.c ---- */

enum stage { STAGE_ASKED, STAGE_UPDATING, STAGE_FORWARDED, STAGE_LATE, STAGE_OVER };

struct method {
	const char *name;
	/* Parses the request and finds its pod and container. Returns 1 if the plugin gets no
	 * request. NULL: the call is only passed on. */
	int (*read)(struct intercept_call *c);
	Nri__Event event; /* NRI request that is sent to the plugin if `read` returns 0 */
	/* Handles the plugin's answer; updates of other containers go to c->updates. */
	int (*hear)(struct intercept_call *c, const struct rpc_result *result);
	/* Writes the adjustments of the plugin into the request of the kubelet. */
	int (*edit)(struct intercept_call *c, struct cri_missing *missing, struct err *err);
	/* creates a pod or container; refused without a plugin under --require-plugin */
	bool creates;
	/* Handles the outcome; payload: the runtime's answer if the outcome is OUTCOME_DONE. */
	void (*after)(struct intercept_call *c, enum intercept_outcome outcome,
		      struct span payload);
};

struct intercept_call {
	struct question q;
	struct intercept *intercept;
	const struct method *method;
	struct arena *arena;
	struct span payload; /* the request's bytes, in the arena */
	/* callbacks of the caller; NULL: the caller has left, or was answered */
	const struct intercept_events *events;
	void *arg;
	enum stage stage;
	unsigned generation;
	/* the plugin tracks the pod or container, so the outcome has to be applied and reported */
	bool told;
	bool parked; /* the call waits until the container's cgroup and process are known */
	bool held; /* the runtime's answer waits for the plugin's */
	bool learned; /* the pod was unknown before this call */
	char new_id[MODEL_ID_SIZE]; /* id of the new pod or container that the plugin gets */
	/* the runtime's id of a pod or container of which the plugin is notified after the
	 * creation */
	const char *late_id;
	struct nri_turn late;
	struct loop_task later;
	bool is_later; /* the task `later` is queued */
	/* why the plugin refuses a pod or container that the runtime has already created */
	char *refusal;
	ProtobufCMessage *request;
	Nri__ContainerUpdate **updates;
	size_t n_updates;
	Nri__CreateContainerResponse *created; /* the plugin's answer */
	Nri__UpdateContainerResponse *updated;
	struct intercept_call *prev, *next;
};

/* Unpacks a message into the call's arena. NULL: not decodable, or out of memory. */
void *call_unpack(const struct intercept_call *c, const ProtobufCMessageDescriptor *type,
		  struct span s);
void call_free(struct intercept_call *c);
/* Continues the calls that waited for the container's cgroup and process. */
void intercept_unpark(struct intercept *p, const struct ctr *ctr);
/* Answers the caller with an error and ends its interest in the call. Does not free the call. */
void call_refuse(struct intercept_call *c, enum grpc_status status, const char *text);

/* ---- methods.c ---- */

/* Returns the method for a path such as "/runtime.v1.RuntimeService/CreateContainer", and the
 * length of the path before the method's name. NULL: the call passes without interception. */
const struct method *method_of(const char *path, size_t *ret_service);

/* ---- after_create.c ---- */

/* Queries the plugin about a pod or container that the runtime has already created. Returns false
 * if no query is necessary. Otherwise after_create.c owns the call. */
bool late_begin(struct intercept_call *c, struct span answer);

/* ---- plugin_notices.c ---- */

/* Queues an event for the plugin. ctr NULL: an event of the pod. removes: it leaves the tables
 * afterwards. */
void tell_event(struct intercept *p, Nri__Event event, struct pod *pod, struct ctr *ctr,
		bool removes);
/* Handles the plugin's answer to an event. */
void tell_heard(struct notice *n, const struct rpc_result *result, void *intercept);
/* Notifies the plugin that a container runs, unless it was notified before. */
void tell_running(struct intercept *p, struct ctr *ctr);
/* Notifies the plugin that a container has ended, unless it was notified before. */
void tell_stopped(struct intercept *p, struct ctr *ctr);
/* Notifies the plugin that a container was removed, unless it was notified before. */
void tell_removed(struct intercept *p, struct ctr *ctr);

/* Sends the updates to the runtime, except that for the container with the id `except`. Calls done
 * once, possibly before it returns, with the number of failures. */
void carry_updates(struct intercept *p, Nri__ContainerUpdate *const *list, size_t n,
		   const char *except, void (*done)(unsigned failed, void *arg), void *arg);
/* Records the resources as effective; later messages to the plugin contain them. */
void resources_in_force(struct ctr *ctr, const Nri__LinuxResources *resources);
/* Sends the update that waited for the container's id. */
void carry_pending(struct intercept *p, struct ctr *ctr);
/* Sends a request to the runtime. */
int intercept_call_runtime(struct intercept *p, const char *method, const ProtobufCMessage *msg,
			   uint32_t timeout_ms, grpc_done done, void *arg);

/* ---- gather.c ---- */

void gather_begin(void *intercept); /* synchronize callback of nri_runtime_config */
struct gather *gather_free(struct gather *g);
/* Asks the runtime for the cgroup and the process of a container. Requests about the container wait
 * for the answer. */
void gather_place(struct intercept *p, struct ctr *ctr);

/* ---- exit_watch.c ---- */

void ends_watch(struct intercept *p); /* call when a plugin has connected */
void ends_look(void *intercept); /* Fetches the runtime's list of containers. */
void ends_look_later(struct intercept *p);
/* Schedules a list in 500 ms because the recorded states may be outdated. */
void ends_look_soon(struct intercept *p);
