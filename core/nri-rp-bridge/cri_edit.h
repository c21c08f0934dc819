/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts between CRI messages and NRI messages, and writes what a plugin wants into a CRI
 * request. Messages are allocated in arenas. A result may use texts of its source, so the source
 * must live as long.
 */
#pragma once

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "proto/cri.pb-c.h"
#include "proto/nri.pb-c.h"

/*
 * Annotations that the bridge adds to pods and containers, so that it needs no state file: the id
 * under which the plugin knows them, which is chosen before the runtime has assigned one, and the
 * cgroup parent of a pod, which the runtime does not list.
 */
#define CRI_ID_ANNOTATION "bridge.nri-rp.io/id"
#define CRI_PARENT_ANNOTATION "bridge.nri-rp.io/cgroup-parent"

#define CRI_MISSING_MAX 16u

/* Fields of an adjustment that CRI has no field for. */
struct cri_missing {
	const char *fields[CRI_MISSING_MAX];
	unsigned n;
};

/* Returns the pod of a RunPodSandbox request. The functions below return NULL or -ENOMEM when out
 * of memory. */
Nri__PodSandbox *cri_pod(struct arena *a, const char *id, const Cri__PodConfig *config,
			 const char *handler);
/* Converts a listed pod. parent: the pod's cgroup parent. */
Nri__PodSandbox *cri_listed_pod(struct arena *a, const Cri__ListedPod *pod, const char *parent);
/* Returns the cgroup parent from the bridge's annotation; NULL: the pod has no such annotation. */
const char *cri_listed_parent(const Cri__ListedPod *pod);
Nri__Container *cri_container(struct arena *a, const char *id, const char *pod_id,
			      const Cri__ContainerConfig *config);
/* Converts a listed container. resources NULL: unknown. */
Nri__Container *cri_listed_container(struct arena *a, const char *pod_id,
				     const Cri__ListedContainer *ctr,
				     const Cri__Resources *resources);
Nri__LinuxResources *cri_resources(struct arena *a, const Cri__Resources *from);

int cri_annotate_pod(struct arena *a, Cri__PodConfig *config, const char *key, const char *value);
int cri_annotate_container(struct arena *a, Cri__ContainerConfig *config, const char *key,
			   const char *value);
/* Copies the fields that are set in `from` to `to`. Adds fields that CRI does not have to
 * `missing`. */
int cri_set_resources(struct arena *a, Cri__Resources *to, const Nri__LinuxResources *from,
		      struct cri_missing *missing);
/* Writes all values that a plugin sets for a new container into its config. Adds fields that CRI
 * does not have to `missing`. */
int cri_adjust(struct arena *a, Cri__ContainerConfig *config,
	       const Nri__ContainerAdjustment *adjust, struct cri_missing *missing);
const char *cri_container_id(const Cri__ListedContainer *ctr);
