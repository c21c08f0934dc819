/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods and containers that the plugin knows, by two ids: the plugin's and the runtime's. The
 * plugin's id is one that the bridge has chosen if the container was created through the bridge,
 * and the runtime's id otherwise. Messages are stored packed.
 */
#pragma once

#include <stdbool.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "core/lib/util/hash.h"
#include "proto/nri.pb-c.h"

#define MODEL_ID_SIZE 65u /* size of a buffer for an id that the bridge assigns, with its NUL */

struct packed {
	uint8_t *data;
	size_t n;
};

/* State of a pod or container with the source cgroups. */
enum told { TOLD_NOTHING, TOLD_ASKED, TOLD_TAKEN, TOLD_REFUSED };
struct cgroup_info {
	/* container: its cgroup; pod: the parent of its containers' cgroups; NULL: other source */
	char *cgroup;
	char *path; /* container: its cgroup in the notation that runtimes send to plugins */
	char *uid; /* UID of the pod */
	char *name; /* container: name in the message that was sent to the plugin; NULL: not sent */
	enum told told;
	uint64_t since_ms; /* time at which the cgroup was first seen */
	bool known; /* pod: the pod list had the pod when the plugin was notified */
	/* Container: shares, quota and memory limit that the plugin has accepted (listed), and
	 * those of a resize sent to the plugin (asked). */
	int64_t listed[3], asked[3];
	/* a resize request is under way; a refused resize was logged */
	bool resizing, resize_refused;
	unsigned writing; /* container: pending writes of its files */
	/* container: number of changes of the resources that the plugin wants; a write compares
	 * it */
	unsigned wishes;
	bool seen; /* the object was found by the current walk */
	/* Conditions that were logged already. */
	bool warned, failing, refused_before;
	unsigned empty; /* consecutive checks that found no process in the cgroup */
};

struct pod {
	char *id; /* id that the plugin knows */
	char *cri_id; /* the runtime's; NULL: unknown */
	struct packed msg;
	struct cgroup_info info;
	unsigned refs;
	bool gone; /* the object was removed from the tables */
	bool stopped; /* the plugin was notified of the stop, or the event is queued */
	bool leaving; /* the event of its removal is queued */
	UT_hash_handle by_cri;
};

struct ctr {
	char *id, *cri_id;
	struct pod *pod;
	struct packed msg;
	Nri__ContainerState state;
	/* With the source cri: an update that arrived during the creation, sent when the runtime
	 * has assigned an id. With the source cgroups: all resources that the plugin wants. */
	struct packed pending;
	struct cgroup_info info;
	unsigned refs;
	bool gone, leaving;
	bool placing; /* the runtime is being queried for the container's cgroup and process */
	unsigned polled; /* number of the last list that had it, or was too early to have it */
	UT_hash_handle by_id, by_cri;
};

struct model {
	struct pod *pods; /* by_cri: pods whose runtime's id is known */
	struct ctr *ctrs; /* all containers, hashed by by_id */
	struct ctr *ctrs_by_cri;
};

/* Writes a random id of the length that runtimes use. */
int model_new_id(char ret[MODEL_ID_SIZE]);

/* Adds a pod or container to the tables and returns it with a reference for the caller, or NULL
 * without memory. cri_id: the runtime's id; NULL: not known yet. */
struct pod *model_add_pod(struct model *m, const Nri__PodSandbox *msg, const char *cri_id);
struct ctr *model_add_ctr(struct model *m, struct pod *pod, const Nri__Container *msg,
			  const char *cri_id);
/* Sets the runtime's id. -ENOMEM; -EEXIST: another object has that id. */
int model_name_pod(struct model *m, struct pod *pod, const char *cri_id);
int model_name_ctr(struct model *m, struct ctr *ctr, const char *cri_id);
struct pod *model_pod(const struct model *m, const char *cri_id);
struct ctr *model_ctr(const struct model *m, const char *cri_id);
struct ctr *model_ctr_by_id(const struct model *m, const char *id);
/* Removes from the tables; other references stay valid. */
void model_remove_pod(struct model *m, struct pod *pod);
void model_remove_ctr(struct model *m, struct ctr *ctr);
void model_clear(struct model *m);

struct pod *pod_ref(struct pod *pod);
struct ctr *ctr_ref(struct ctr *ctr);
/* Accepts NULL; return NULL. */
struct pod *pod_unref(struct pod *pod);
struct ctr *ctr_unref(struct ctr *ctr);
/* Unpacks the messages into the arena. NULL: out of memory. */
Nri__PodSandbox *pod_message(struct arena *a, const struct pod *pod);
Nri__Container *ctr_message(struct arena *a, const struct ctr *ctr);

/* Sets the cgroup and the process of a container. */
void ctr_set_place(struct ctr *ctr, const char *cgroups_path, uint32_t pid);
/* Sets the pod's resources; NULL: unchanged. */
void pod_set_resources(struct pod *pod, Nri__LinuxResources *overhead,
		       Nri__LinuxResources *resources);

/* Replaces the stored bytes by the packed form of a message. -ENOMEM. */
int packed_set(struct packed *p, const ProtobufCMessage *msg);
void packed_fini(struct packed *p);
