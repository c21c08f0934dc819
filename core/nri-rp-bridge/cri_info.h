/* SPDX-License-Identifier: Apache-2.0 */
/* Reads facts that containerd and CRI-O give only in the JSON of a verbose status. */
#pragma once

#include <jansson.h>

#include "core/lib/util/arena.h"
#include "proto/cri.pb-c.h"

#define CRI_INFO_MAX (4u << 20) /* largest JSON text, in bytes */

/* Returns the cgroup parent of a pod, or the path of its cgroup; "" if the JSON does not have it.
 * NULL: out of memory. */
const char *cri_info_parent(struct arena *a, const char *info);
/* Returns the resources in an OCI specification, or NULL if it has none or memory is short. */
Cri__Resources *cri_spec_resources(struct arena *a, const json_t *spec);
/* Facts about a container that have no field in ContainerStatus. */
struct cri_about {
	const char *cgroups_path; /* path of the cgroup in the OCI specification; "": unknown */
	uint32_t pid;
	Cri__Resources *resources; /* resources of the OCI specification; NULL: unknown */
};
/* Parses the JSON of a container's verbose status. Returns 0 or -ENOMEM. */
int cri_info_container(struct arena *a, const char *info, struct cri_about *ret);
