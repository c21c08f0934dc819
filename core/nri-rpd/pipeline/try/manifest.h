/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods as people write them for the cluster, and what the kubelet would make of them on their way
 * to the runtime. Understood are Pods, and what has a template of one: Deployments, StatefulSets,
 * DaemonSets, Jobs, CronJobs and their like, alone, in Lists, and several documents after one
 * another.
 *
 *   manifest.c      documents, lists, templates, replicas
 *   manifest_pod.c  one pod: its containers, and the kubelet's arithmetic
 */
#ifndef PIPELINE_MANIFEST_H
#define PIPELINE_MANIFEST_H

#include "core/nri-rpd/cache/feed.h"
#include "core/lib/conf/conf.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"

#define MANIFEST_CTRS_MAX 256u /* of a pod */
#define MANIFEST_PODS_MAX 256u
#define MANIFEST_ALL_CTRS_MAX 2048u
#define MANIFEST_NOTES_MAX 64u
#define MANIFEST_ARENA_MAX (16u << 20)

struct manifest_ctr {
	struct ctr_desc desc;
	bool ends; /* an init container: it has ended before the next one begins */
};

struct manifest_pod {
	const char *owner; /* "Deployment prod/shop" */
	uint32_t replica, n_replicas; /* from 1 */
	struct pod_desc pod;
	struct fed_pod *fed; /* the pod as the cluster has it */
	struct manifest_ctr *ctrs; /* in the order that they would be created in */
	uint32_t n;
};

/* At least one pod. */
struct manifest {
	struct manifest_pod *pods;
	uint32_t n, n_ctrs; /* n_ctrs: of all pods */
	const char **notes; /* what of the manifest is left out, and why */
	uint32_t n_notes;
};

/* `name` is that of the file, for messages; `memory` of the machine, in bytes. All of *ret is in
 * the arena. -EINVAL with the reason, -E2BIG, -ENOMEM. */
int manifest_read(struct arena *a, const char *name, const char *text, uint64_t memory,
		  struct manifest *ret, struct err *err);

/* ---- manifest_pod.c ---- */

/* A pod, or its template: what has `spec` and perhaps `metadata`. */
struct manifest_source {
	struct arena *arena;
	uint64_t memory;
	rp_cfg pod;
	const char *name, *ns;
};

#endif
