/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod as people write it for the cluster, and what the kubelet would make of it on its way to the runtime. Understood are Pods, and
 * what has a template of one: Deployments, StatefulSets, DaemonSets, Jobs.
 */
#ifndef PIPELINE_MANIFEST_H
#define PIPELINE_MANIFEST_H

#include "core/cache/cache.h"
#include "core/util/arena.h"
#include "core/util/err.h"

#define MANIFEST_CTRS_MAX 256u
#define MANIFEST_TEXT_MAX 65536u /* bytes of the file */

struct manifest_ctr {
	struct ctr_desc desc;
	bool ends; /* an init container: it has ended before the next one begins */
};

struct manifest {
	struct pod_desc pod;
	struct manifest_ctr *ctrs; /* in the order that they would be created in */
	uint32_t n;
};

/* All of it is in the arena. `memory`: of the machine, in bytes. -EINVAL with the reason, -E2BIG, -ENOMEM. */
int manifest_read(struct arena *a, const char *text, uint64_t memory, struct manifest *ret,
		  struct err *err);

#endif
