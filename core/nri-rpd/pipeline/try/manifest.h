/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifests: reads pods as users write them for the cluster, with the values that the kubelet would
 * send to the runtime. Accepts Pods and objects with a template of pods (Deployments, StatefulSets,
 * DaemonSets, Jobs, CronJobs and similar), alone, in Lists, and in several documents.
 *
 *   manifest.c      documents, lists, templates, replicas
 *   manifest_pod.c  one pod: its containers, and the kubelet's calculations
 */
#pragma once

#include "core/nri-rpd/cache/feed.h"
#include "core/lib/conf/conf.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"

#define MANIFEST_CTRS_MAX 256u /* largest number of containers per pod */
#define MANIFEST_PODS_MAX 256u
#define MANIFEST_ALL_CTRS_MAX 2048u
#define MANIFEST_NOTES_MAX 64u
#define MANIFEST_ARENA_MAX (16u << 20)

struct manifest_ctr {
	struct ctr_desc desc;
	bool ends; /* an init container, which ends before the next container begins */
};

struct manifest_pod {
	const char *owner; /* workload of the pod, for example "Deployment prod/shop" */
	uint32_t replica, n_replicas; /* number of this replica, from 1, and of all replicas */
	struct pod_desc pod;
	struct fed_pod *fed; /* the pod as the cluster would report it */
	struct manifest_ctr *ctrs; /* in the order of creation */
	uint32_t n;
};

/* Parsed manifest; has at least one pod. */
struct manifest {
	struct manifest_pod *pods;
	uint32_t n, n_ctrs; /* n_ctrs: sum of all pods */
	const char **notes; /* ignored parts of the manifest, with the reasons */
	uint32_t n_notes;
};

/* Reads a manifest. `name`: its file, for messages; `memory`: of the node, in bytes. All of *ret is
 * in the arena. -EINVAL with the reason, -E2BIG, -ENOMEM. */
int manifest_read(struct arena *a, const char *name, const char *text, uint64_t memory,
		  struct manifest *ret, struct err *err);

/* ---- manifest_pod.c -------------------------------------------------------------------------- */

/* Pod or template of one: an object with `spec` and perhaps `metadata`. */
struct manifest_source {
	struct arena *arena;
	uint64_t memory;
	rp_cfg pod;
	const char *name, *ns;
};
