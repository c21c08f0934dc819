/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod feed: the cluster's data about the pods of this node, by UID. A pod may be in the feed
 * before the runtime reports it, and after the runtime has removed it. The feed does not change
 * containers that are already placed.
 */
#pragma once

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/conf/conf.h"

#define FEED_PODS_MAX 4096u
#define FEED_BYTES_MAX (32u << 20) /* largest memory of all reported pods, in bytes */
#define FEED_CTRS_MAX 64u /* largest number of containers per pod */
#define FEED_AMOUNTS_MAX 16u /* largest number of extended resources per container */
#define FEED_AMOUNT_MAX (INT64_C(1) << 56) /* largest amount; sums stay within 64 bits */

enum fed_kind { FED_APP, FED_INIT, FED_SIDECAR };

struct fed_amount {
	const char *name;
	int64_t request, limit; /* amounts in units of the resource; 0: none */
	/* resource as which this resource is counted (feed_rename), set by the feed; NULL: not
	 * renamed */
	const char *counts_as;
};

struct fed_ctr {
	const char *name;
	enum fed_kind kind;
	struct needs needs;
	const struct fed_amount *extended;
	uint32_t n_extended;

	/* set by the feed */
	struct needs told; /* needs without the resources that are counted as CPU or memory */
	/* resource that is counted as another resource which the container also requests; NULL:
	 * none */
	const char *twice;
};

struct fed_pod {
	const char *uid, *ns, *name;
	const char *owner; /* kind of the controller; "": none */
	int32_t priority;
	bool ended; /* the pod has ended */
	bool has_own; /* the pod has pod-level resources (spec.resources): `own` */
	struct needs own; /* amounts of spec.resources; 0: the containers' own amounts apply */
	const struct fed_ctr *ctrs; /* init containers and sidecars first */
	uint32_t n_ctrs;

	/* set by the feed */
	bool listed; /* the pod is in the list that is being received */
	struct arena *arena; /* owns the pod and its texts */
	UT_hash_handle hh;
};

struct feed; /* part of a cache (cache_feed) */

/* Begins and completes a list of all pods. feed_complete() drops pods that were not added since
 * feed_begin(). */
void feed_begin(struct feed *f);
void feed_complete(struct feed *f);
/*
 * Stores a copy of a pod and replaces the pod with the same UID. -ENOSPC: over FEED_PODS_MAX or
 * FEED_BYTES_MAX; -ENOMEM. After an error the feed has no pod with that UID.
 */
int feed_put(struct feed *f, const struct fed_pod *desc);
void feed_del(struct feed *f, const char *uid);
void feed_clear(struct feed *f);
/* Returns a pod, valid until it is replaced or dropped; NULL: unknown. */
const struct fed_pod *feed_find(const struct feed *f, const char *uid);
const struct fed_pod *feed_pods(const struct feed *f); /* uthash list, in order of insertion */
unsigned feed_n_pods(const struct feed *f);
unsigned feed_n_ended(const struct feed *f); /* number of ended pods */

/*
 * Sets the resource names that are counted as other resources: as "cpu" (in CPUs, or thousandths if
 * the name ends in FEED_MILLI) and as "memory" (in bytes) they are part of the needs; all others
 * are found under both names.
 */
#define FEED_MILLI "millicpu"
int feed_rename(struct feed *f, const struct conf_rename *list, uint32_t n);

/* Turns the use of the feed's resource requests on (default) or off. */
void feed_use(struct feed *f, bool yes);
/* Returns the feed's data about a pod of the cache; NULL: the feed has none, or feed_use() has
 * turned it off. */
const struct fed_pod *pod_fed(const struct cache *c, const struct pod *pod);
/* Returns the container of that name; NULL: the pod has none. */
const struct fed_ctr *fed_ctr(const struct fed_pod *pod, const char *name);
/* Returns a container's amounts of an extended resource. -ENOENT: it requests none. */
int fed_extended(const struct fed_ctr *ctr, const char *resource, int64_t *ret_request,
		 int64_t *ret_limit);
/* Returns the CPU that the pod itself requests beyond its containers, for its first application
 * container; 0 for the others. */
int64_t fed_cpu_extra(const struct fed_pod *pod, const struct fed_ctr *ctr);
/* Returns the pod's needs as the scheduler counts them: pod-level amounts, else the largest sum of
 * containers that run at the same time. A limit is 0 if some container has none. */
struct needs fed_needs(const struct fed_pod *pod);
/* Returns the pod's needs as the kubelet sends them with the sandbox: limits are summed even if
 * some container has none. */
struct needs fed_sandbox_needs(const struct fed_pod *pod);

/* Takes over what the container's pod requests beyond its containers. The previous amount is kept
 * in pod_cpu_extra_before. */
void feed_follow_pod(const struct cache *c, struct ctr *ctr);
