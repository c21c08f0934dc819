/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod feed: what the cluster says of the pods of this node, by UID. A pod may be here before
 * the runtime has it, and stay when the runtime has it no more; what is here changes no container
 * that was placed already.
 */
#ifndef CACHE_FEED_H
#define CACHE_FEED_H

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/conf/conf.h"

#define FEED_PODS_MAX 4096u
#define FEED_BYTES_MAX (32u << 20) /* that all take */
#define FEED_CTRS_MAX 64u /* of one pod */
#define FEED_AMOUNTS_MAX 16u /* extended resources of one container */
#define FEED_AMOUNT_MAX (INT64_C(1) << 56) /* so that sums stay within 64 bit */

enum fed_kind { FED_APP, FED_INIT, FED_SIDECAR };

struct fed_amount {
	const char *name;
	int64_t request, limit; /* units; 0: none */
	const char *counts_as; /* the feed's own: another resource (feed_rename); NULL: itself */
};

struct fed_ctr {
	const char *name;
	enum fed_kind kind;
	struct needs needs;
	const struct fed_amount *extended;
	uint32_t n_extended;

	/* the feed's own */
	struct needs told; /* without what other resources count for */
	const char *twice; /* a resource that counts for one that it asks for, too; NULL: none */
};

struct fed_pod {
	const char *uid, *ns, *name;
	const char *owner; /* kind of its controller; "": none */
	int32_t priority;
	bool ended; /* nothing runs in it any more */
	bool has_own; /* the pod has resources of its own (spec.resources): `own` */
	struct needs own; /* 0: the pod leaves this amount to its containers */
	const struct fed_ctr *ctrs; /* those that begin before the apps come first */
	uint32_t n_ctrs;

	/* the feed's own */
	bool listed; /* in the list that has begun */
	struct arena *arena; /* that all of it is in */
	UT_hash_handle hh;
};

struct feed; /* of a cache (cache_feed) */

/* A list begins; what is not put until it is complete is dropped then. */
void feed_begin(struct feed *f);
void feed_complete(struct feed *f);
/*
 * Copied, in place of what is known by that UID. -ENOSPC: over FEED_PODS_MAX or FEED_BYTES_MAX;
 * -ENOMEM. What is not taken is not known from then on.
 */
int feed_put(struct feed *f, const struct fed_pod *desc);
void feed_del(struct feed *f, const char *uid);
void feed_clear(struct feed *f);
/* NULL: not known. Valid until it is put or dropped. */
const struct fed_pod *feed_find(const struct feed *f, const char *uid);
const struct fed_pod *feed_pods(const struct feed *f); /* uthash list, by insertion */
unsigned feed_n_pods(const struct feed *f);
unsigned feed_n_ended(const struct feed *f); /* pods */

/*
 * Which resources count as which others, by the name that pods ask for: "cpu" and "memory" are
 * those of needs (CPUs, but thousandths where the name ends in FEED_MILLI; bytes), others are found
 * by both names. Copied, and for pods that are known, too. -ENOMEM: all is as before.
 */
#define FEED_MILLI "millicpu"
int feed_rename(struct feed *f, const struct conf_rename *list, uint32_t n);

/* Is what the feed says of requests to be used? It is, until this says otherwise. */
void feed_use(struct feed *f, bool yes);
/* What the cluster has told of a pod of the cache, for its requests. NULL: nothing, or it is not to
 * be used. */
const struct fed_pod *pod_fed(const struct cache *c, const struct pod *pod);
const struct fed_ctr *fed_ctr(const struct fed_pod *pod, const char *name); /* NULL: it has none */
/* -ENOENT: it asks for none. */
int fed_extended(const struct fed_ctr *ctr, const char *resource, int64_t *ret_request,
		 int64_t *ret_limit);
/* Returns the CPU that the pod itself requests beyond its containers, for its first application
 * container; 0 for the others. */
int64_t fed_cpu_extra(const struct fed_pod *pod, const struct fed_ctr *ctr);
/* Returns what the scheduler counts for the pod: its own amounts, else what all containers take
 * that run at the same time, at most. A limit that not every container has is 0. */
struct needs fed_needs(const struct fed_pod *pod);
/* Returns the same as the kubelet sends it with the pod's sandbox: limits are summed up even if
 * containers without a limit exist. */
struct needs fed_sandbox_needs(const struct fed_pod *pod);

#endif
