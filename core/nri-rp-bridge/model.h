/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods and containers that the plugin has been told of: by the ids that the plugin knows, which
 * are the bridge's own for what has been created through it, and by the runtime's. Their messages
 * are kept packed.
 */
#ifndef NRI_RP_BRIDGE_MODEL_H
#define NRI_RP_BRIDGE_MODEL_H

#include <stdbool.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "core/lib/util/hash.h"
#include "proto/nri.pb-c.h"

#define MODEL_ID_SIZE 65u /* of an id of ours, with its NUL */

struct packed {
	uint8_t *data;
	size_t n;
};

/* What the source cgroups knows of a pod or container besides. */
enum told { TOLD_NOTHING, TOLD_ASKED, TOLD_TAKEN, TOLD_REFUSED };
struct seat {
	char *cgroup; /* its own; of a pod: the one around its containers'; NULL: not this source */
	char *path; /* of a container: the same as runtimes tell it to plugins */
	char *uid; /* of the pod */
	char *name; /* of the container, as it was told; NULL: it was not */
	enum told told;
	uint64_t since_ms; /* it has been seen */
	bool known; /* of the pod: the list had it when it was told */
	/* Of the container: shares, quota, memory limit, as they were told and taken; and those of
	 * a resize that the plugin is being asked about. */
	int64_t listed[3], asked[3];
	bool resizing, resize_refused; /* it is being asked; said for people once */
	unsigned writing; /* of the container: writes of its files that have not ended */
	unsigned wishes; /* of the container: how often what is wanted has changed */
	bool seen; /* in the walk that has begun */
	/* What has been said for people once. */
	bool warned, failing, refused_before;
	unsigned empty; /* looks in a row that have found no process in it */
};

struct pod {
	char *id; /* the plugin's */
	char *cri_id; /* the runtime's; NULL: not known yet */
	struct packed msg;
	struct seat seat;
	unsigned refs;
	bool gone; /* in no table any more */
	bool stopped; /* the plugin has heard so, or is about to */
	bool leaving; /* the plugin is about to hear that it is removed */
	UT_hash_handle by_cri;
};

struct ctr {
	char *id, *cri_id;
	struct pod *pod;
	struct packed msg;
	Nri__ContainerState state;
	/* Resources. With the source cri, what is to be set as soon as the runtime has an id for
	 * it: an update that came while it was being created. With cgroups, all that is wanted. */
	struct packed pending;
	struct seat seat;
	unsigned refs;
	bool gone, leaving;
	bool placing; /* where it runs is being asked */
	unsigned polled; /* the last list that it was in, or could not be in yet */
	UT_hash_handle by_id, by_cri;
};

struct model {
	struct pod *pods; /* by_cri: those whose id is known */
	struct ctr *ctrs; /* by_id: all */
	struct ctr *ctrs_by_cri;
};

/* A random id, as runtimes have them. */
int model_new_id(char ret[MODEL_ID_SIZE]);

/* Owned by the caller, besides the tables. cri_id may be NULL. NULL: out of memory. */
struct pod *model_add_pod(struct model *m, const Nri__PodSandbox *msg, const char *cri_id);
struct ctr *model_add_ctr(struct model *m, struct pod *pod, const Nri__Container *msg,
			  const char *cri_id);
/* -ENOMEM; -EEXIST: another one has that id. */
int model_name_pod(struct model *m, struct pod *pod, const char *cri_id);
int model_name_ctr(struct model *m, struct ctr *ctr, const char *cri_id);
struct pod *model_pod(const struct model *m, const char *cri_id);
struct ctr *model_ctr(const struct model *m, const char *cri_id);
struct ctr *model_ctr_by_id(const struct model *m, const char *id);
/* Out of the tables; whoever has it keeps it. */
void model_remove_pod(struct model *m, struct pod *pod);
void model_remove_ctr(struct model *m, struct ctr *ctr);
void model_clear(struct model *m);

struct pod *pod_ref(struct pod *pod);
struct ctr *ctr_ref(struct ctr *ctr);
/* NULL is fine; return NULL. */
struct pod *pod_unref(struct pod *pod);
struct ctr *ctr_unref(struct ctr *ctr);
/* The messages, unpacked in the arena. NULL: out of memory. */
Nri__PodSandbox *pod_message(struct arena *a, const struct pod *pod);
Nri__Container *ctr_message(struct arena *a, const struct ctr *ctr);

/* Where it runs: its cgroup, its process. */
void ctr_set_place(struct ctr *ctr, const char *cgroups_path, uint32_t pid);
/* Those of the pod from now on; NULL: as before. */
void pod_set_resources(struct pod *pod, Nri__LinuxResources *overhead,
		       Nri__LinuxResources *resources);

/* A copy of a message, packed, in place of what was there. */
int packed_set(struct packed *p, const ProtobufCMessage *msg);
void packed_fini(struct packed *p);

#endif
