/* SPDX-License-Identifier: Apache-2.0 */
/* Types and functions that the files of intercept.h share. */
#ifndef NRI_RP_BRIDGE_INTERCEPT_INTERNAL_H
#define NRI_RP_BRIDGE_INTERCEPT_INTERNAL_H

#include "core/lib/grpc/call.h"
#include "core/nri-rp-bridge/ask.h"
#include "core/nri-rp-bridge/cri_edit.h"
#include "core/nri-rp-bridge/intercept.h"
#include "core/lib/util/fields.h"
#include "core/lib/util/task.h"

#define SERVICE_V1 "/runtime.v1.RuntimeService/"
#define SERVICE_V1ALPHA2 "/runtime.v1alpha2.RuntimeService/"
#define LIST_MS 10000u /* the runtime has for a list */
#define STATE_RUNNING 1
#define STATE_EXITED 2

struct gather;

struct police {
	struct police_config config;
	struct nri_runtime *nri;
	struct model model;
	/* Which Synchronize the model is of: what was begun before another one is of a plugin that
	 * is gone. */
	unsigned generation;
	char service[64]; /* by which the runtime is asked: as the kubelet asks last */
	struct police_call *calls;
	struct notice *notices;
	struct gather *gather; /* under way */
	struct events_listener listener;
	bool heard; /* one event at least */
	bool no_events; /* the runtime knows of none */
	struct loop_timer *poll;
	unsigned n_polls;
	bool polling;
	struct loop_task back;
	bool is_back; /* the runtime: that waits to be seen to */
	unsigned long n_unasked; /* calls that passed since the last plugin has gone */
};

/* ---- intercept.c ---- */

enum stage { STAGE_ASKED, STAGE_UPDATING, STAGE_FORWARDED, STAGE_LATE, STAGE_OVER };

struct method {
	const char *name;
	/* Reads the request, and says whom it is about. 1: not to be asked about. NULL: it is just
	 * passed on. */
	int (*read)(struct police_call *c);
	Nri__Event event; /* what the plugin is asked, where read says so */
	/* The answer of the plugin: other containers' updates in *list. */
	int (*hear)(struct police_call *c, const struct rpc_result *result);
	/* Writes what the plugin wants into the request. */
	int (*edit)(struct police_call *c, struct cri_missing *missing, struct err *err);
	bool creates; /* something that is not there without a plugin, where one is required */
	/* What follows; the runtime's answer when it is done. */
	void (*after)(struct police_call *c, enum police_outcome outcome, struct span payload);
};

struct police_call {
	struct question q;
	const struct method *method;
	struct arena *arena;
	struct span payload; /* in the arena */
	const struct police_events *events; /* NULL: the caller has gone, or has been told */
	void *arg;
	enum stage stage;
	unsigned generation;
	bool told; /* the plugin knows of this call */
	bool parked; /* until it is known where its container is */
	bool held; /* the runtime's answer waits for the plugin's */
	bool learned; /* the pod was known to nobody before this call */
	char new_id[MODEL_ID_SIZE]; /* by which the plugin is to know what is created */
	const char *late_id; /* the runtime's, of what the plugin is told of afterwards */
	struct nri_turn late;
	struct loop_task later;
	bool is_later; /* that waits */
	char *refusal; /* why what is there already has to go */
	ProtobufCMessage *request;
	Nri__ContainerUpdate **updates;
	size_t n_updates;
	Nri__CreateContainerResponse *created; /* what the plugin says */
	Nri__UpdateContainerResponse *updated;
	struct police_call *prev, *next;
};

/* NULL: undecodable, or out of memory. */
void *call_unpack(const struct police_call *c, const ProtobufCMessageDescriptor *type,
		  struct span s);
void call_free(struct police_call *c);
/* What waited for that. */
void police_unpark(struct police *p, const struct ctr *ctr);
/* The call is over for its caller. */
void call_refuse(struct police_call *c, enum grpc_status status, const char *text);

/* ---- methods.c ---- */

/* "/runtime.v1.RuntimeService/CreateContainer" → the method, and the length of what is before its
 * name. NULL: passes unseen. */
const struct method *method_of(const char *path, size_t *ret_service);

/* ---- after_create.c ---- */

/* The plugin is asked about what the runtime has made already. false: there is nothing to ask
 * about. The call is after_create.c's from now on. */
bool late_begin(struct police_call *c, struct span answer);

/* ---- plugin_notices.c ---- */

/* What has happened, and what follows from it. */
enum effect { EFFECT_NONE, EFFECT_REMOVE };
/* Told when its turn comes; out of memory is logged. ctr NULL: an event of the pod. */
void notice_tell(struct police *p, Nri__Event event, struct pod *pod, struct ctr *ctr,
		 enum effect effect);
void notices_free(struct police *p);
/* A container runs, if it did not before. */
void tell_running(struct police *p, struct ctr *ctr);
/* A container has ended, if it had not before. */
void tell_stopped(struct police *p, struct ctr *ctr);
/* A container is no more, if that was not told before. */
void tell_removed(struct police *p, struct ctr *ctr);

/* Updates of containers, but of the one with the id `except`. done comes once, perhaps from inside:
 * how many failed. */
void carry_updates(struct police *p, Nri__ContainerUpdate *const *list, size_t n,
		   const char *except, void (*done)(unsigned failed, void *arg), void *arg);
/* The plugin hears of these from now on as in force. */
void resources_in_force(struct ctr *ctr, const Nri__LinuxResources *resources);
/* Sets what waited for the container to have an id. */
void carry_pending(struct police *p, struct ctr *ctr);
/* Asks the runtime. */
int police_call_runtime(struct police *p, const char *method, const ProtobufCMessage *msg,
			uint32_t timeout_ms, grpc_done done, void *arg);

/* ---- gather.c ---- */

void gather_begin(void *police); /* of nri_runtime_config */
struct gather *gather_free(struct gather *g);
/* Asks the runtime for the cgroup and the process of a container. Questions about it wait. */
void gather_place(struct police *p, struct ctr *ctr);

/* ---- exit_watch.c ---- */

void ends_watch(struct police *p); /* a plugin has come */
void ends_look(void *police); /* at the runtime's list */
void ends_look_later(struct police *p);
/* Something may be otherwise than what was said. */
void ends_look_soon(struct police *p);

#endif
