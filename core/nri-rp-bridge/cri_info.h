/* SPDX-License-Identifier: Apache-2.0 */
/* What runtimes say in the JSON of a verbose status, and nowhere else: containerd's and CRI-O's, as
 * far as they have it. */
#ifndef NRI_RP_BRIDGE_CRI_INFO_H
#define NRI_RP_BRIDGE_CRI_INFO_H

#include <jansson.h>

#include "core/lib/util/arena.h"
#include "proto/cri.pb-c.h"

#define CRI_INFO_MAX (4u << 20) /* bytes of JSON that are read */

/* The cgroup parent of a pod, or its cgroup's path; "" where it does not say. NULL: out of
 * memory. */
const char *cri_info_parent(struct arena *a, const char *info);
/* The resources of a container by its OCI specification; NULL: it does not say, or out of
 * memory. */
Cri__Resources *cri_spec_resources(struct arena *a, const json_t *spec);
/* What of a container's status is in no field of it. */
struct cri_about {
	const char *cgroups_path; /* "" where it does not say, as all of these */
	uint32_t pid;
	Cri__Resources *resources; /* out of its OCI specification; NULL */
};
/* 0, or -ENOMEM. */
int cri_info_container(struct arena *a, const char *info, struct cri_about *ret);

#endif
