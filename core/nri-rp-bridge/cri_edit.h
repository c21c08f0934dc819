/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRI's messages and NRI's: what the one says in terms of the other, and what a plugin wants
 * written into a request. Messages are in arenas; texts of a result may be those of its source,
 * which has to live as long.
 */
#ifndef NRI_RP_BRIDGE_CRI_EDIT_H
#define NRI_RP_BRIDGE_CRI_EDIT_H

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "proto/cri.pb-c.h"
#include "proto/nri.pb-c.h"

/*
 * Annotations that the bridge gives pods and containers, so that it needs no memory of its own: the
 * id by which the plugin knows them, chosen before the runtime has one, and the cgroup parent of a
 * pod, which the runtime does not list.
 */
#define CRI_ID_ANNOTATION "bridge.nri-rp.io/id"
#define CRI_PARENT_ANNOTATION "bridge.nri-rp.io/cgroup-parent"

#define CRI_MISSING_MAX 16u

/* Fields of an adjustment that CRI has no place for. */
struct cri_missing {
	const char *fields[CRI_MISSING_MAX];
	unsigned n;
};

/* All of them: NULL or -ENOMEM: out of memory. */
Nri__PodSandbox *cri_pod(struct arena *a, const char *id, const Cri__PodConfig *config,
			 const char *handler);
/* parent: its cgroup parent. */
Nri__PodSandbox *cri_listed_pod(struct arena *a, const Cri__ListedPod *pod, const char *parent);
/* The annotation of ours; NULL: it has none. */
const char *cri_listed_parent(const Cri__ListedPod *pod);
Nri__Container *cri_container(struct arena *a, const char *id, const char *pod_id,
			      const Cri__ContainerConfig *config);
/* resources may be NULL: not known. */
Nri__Container *cri_listed_container(struct arena *a, const char *pod_id,
				     const Cri__ListedContainer *ctr,
				     const Cri__Resources *resources);
Nri__LinuxResources *cri_resources(struct arena *a, const Cri__Resources *from);

int cri_annotate_pod(struct arena *a, Cri__PodConfig *config, const char *key, const char *value);
int cri_annotate_container(struct arena *a, Cri__ContainerConfig *config, const char *key,
			   const char *value);
/* Writes what is set in `from` over what is in `to`; what CRI has no place for is added to
 * missing. */
int cri_set_resources(struct arena *a, Cri__Resources *to, const Nri__LinuxResources *from,
		      struct cri_missing *missing);
/* The same for all that a plugin wants of a container that is to be created. */
int cri_adjust(struct arena *a, Cri__ContainerConfig *config,
	       const Nri__ContainerAdjustment *adjust, struct cri_missing *missing);
const char *cri_container_id(const Cri__ListedContainer *ctr);

#endif
