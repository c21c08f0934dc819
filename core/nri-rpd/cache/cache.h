/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache: every pod and container of the node, what each asks for, what was decided for it, and
 * what the runtime is known to have.
 *
 *   struct pod, struct ctr   facts, set at insertion and refreshed by the runtime
 *   struct decision          what we decided; changed only through a transaction (txn.h), so that a
 *                            failed request leaves no trace
 *   struct values (acked)    what the runtime has acknowledged; the difference to the decision is
 *                            what an update has to say
 *
 * Objects are found by the runtime's id, by name and by handle (rp_pod, rp_ctr: slot and
 * generation; the handle of a removed object never comes back). Everything is owned by the cache;
 * pointers are good until the object is removed. Nothing here does I/O: the store (store.h) is
 * driven by the pipeline.
 */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/cache.h>

#include "core/nri-rpd/cache/kvs.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/backoff.h"
#include "core/lib/util/err.h"
#include "core/lib/util/hash.h"
#include "core/lib/util/intern.h"

#define CACHE_ID_MAX 256u /* bytes of an id or a name that the runtime may give */
#define CACHE_PATH_MAX 4096u
#define CACHE_PODS_MAX 65536u
#define CACHE_CTRS_MAX 65536u

/* ---- what a front end tells (borrowed text, for the call) ------------------------------------ */

/* Resource values; RP_NOT_SET and NULL where the runtime said nothing. */
struct values {
	int64_t shares, quota, period, mem_limit;
	struct iset *cpus, *mems; /* references; NULL: not set */
};

struct res_desc {
	int64_t shares, quota, period, mem_limit; /* RP_NOT_SET: absent */
	const char *cpus, *mems; /* list form; NULL or "": absent */
};

struct pod_desc {
	const char *id, *name, *uid, *ns, *runtime_handler, *cgroup_parent;
	const struct kv *labels, *annotations;
	uint32_t n_labels, n_annotations;
	const struct res_desc *sums; /* of its containers; NULL: not told */
};

struct ctr_desc {
	const char *id, *pod_id, *name, *cgroups_path;
	uint32_t state; /* RP_STATE_… */
	uint32_t pid;
	uint64_t created_ns; /* 0: unknown */
	int64_t oom_score_adj; /* RP_NOT_SET: unknown */
	struct res_desc res;
	const struct kv *labels, *annotations;
	uint32_t n_labels, n_annotations;
	/* only looked at during the request */
	const char *const *env; /* KEY=value */
	uint32_t n_env;
	const char *const *args; /* of the process, the program first */
	uint32_t n_args;
	const struct rp_mount_info *mounts;
	uint32_t n_mounts;
	const struct rp_device_info *devices;
	uint32_t n_devices;
	const char *const *cdi; /* names of devices in the Container Device Interface */
	uint32_t n_cdi;
};

/* ---- objects --------------------------------------------------------------------------------- */

/* Immutable counted bytes with a NUL behind them: classes, private data, reasons. NULL: not set. */
struct blob {
	uint32_t refs, len;
	char data[];
};

struct blob *blob_new(const void *data, uint32_t len);
struct blob *blob_room(uint32_t len); /* its bytes are for the caller to fill */
struct blob *blob_str(const char *s);
struct blob *blob_ref(struct blob *b);
struct blob *blob_unref(struct blob *b); /* returns NULL */
static inline const char *blob_text(const struct blob *b)
{
	return b ? b->data : NULL;
}
bool blob_equal(const struct blob *a, const struct blob *b);

struct needs {
	int64_t cpu_request, cpu_limit; /* milli-CPU, 0: none */
	int64_t mem_request, mem_limit; /* bytes, 0: none */
};

struct decision {
	struct iset *cpus, *mems, *exclusive; /* references; NULL: not decided */
	int64_t shares, quota, period, mem_limit; /* RP_NOT_SET: not decided */
	struct blob *rdt_class, *blockio_class, *cpu_class;
	/* those of an adjustment, which count instead; derived from the configuration, never
	 * stored */
	struct blob *rdt_adjusted, *blockio_adjusted;
	int64_t toptier_adjusted; /* bytes; 0: no limit */
	struct blob *private_data; /* of the policy that decided */
	struct blob *degraded; /* why it does not run as it should */
	struct blob *data; /* lines of the exported data file */
	struct needs needs; /* the requirements it was made for */
	uint32_t state; /* RP_STATE_… */
	uint32_t policy; /* number of the policy that decided (cache_policy_number) */
	bool confined; /* the CPUs are the host's doing, as nobody has pinned the container */
	/* DIFF_CPUS, DIFF_MEMS, DIFF_MEM_LIMIT: what a resource plugin has given, as the policy
	 * leaves it alone; known anew after each start */
	uint32_t granted;
	uint32_t group; /* whose members may share its exclusive CPUs; 0: nobody may */
};

/* The class that counts; NULL: none. */
static inline const struct blob *decision_rdt(const struct decision *d)
{
	return d->rdt_adjusted ? d->rdt_adjusted : d->rdt_class;
}

static inline const struct blob *decision_blockio(const struct decision *d)
{
	return d->blockio_adjusted ? d->blockio_adjusted : d->blockio_class;
}

struct pod {
	rp_pod handle;
	char *id, *name, *uid, *ns, *runtime_handler, *cgroup_parent;
	uint32_t qos;
	struct {
		bool facts; /* it has the pod as the pod is */
		bool noted; /* for its next commit */
	} store;
	uint32_t sync_mark; /* the last Synchronize that listed it */
	bool stopped;
	bool over; /* its containers have ended for good, and what it was granted is free */
	bool annotated; /* annotations_ours, of those that count */
	struct kvs labels, annotations; /* all that it came with */
	struct kvs heard; /* with `withheld`: those of them that count (hear.h) */
	uint32_t withheld; /* how many do not */
	struct needs sums; /* of its containers, as the pod came; RP_NOT_SET: not told */
	bool sums_stale; /* a container was resized since, and the runtime sent no new ones */
	bool resized; /* the runtime sent new ones, and no container was decided since */
	struct blob *private_data; /* a policy's, that of this number */
	uint32_t policy;
	struct blob *grants; /* of resource plugins (grants.h); NULL: none */
	struct pod_stage *stage; /* txn.h */
	uint64_t seq; /* order of arrival */
	struct ctr *ctrs;
	UT_hash_handle hh;
};

struct stage; /* txn.h */
struct usage; /* usage.h */

struct ctr {
	rp_ctr handle;
	struct pod *pod;
	char *id, *name, *cgroups_path;
	char *full_name; /* namespace/pod/name */
	uint32_t flags; /* RP_CTR_… */
	uint32_t pid;
	uint32_t sync_mark;
	struct {
		bool facts; /* it has the container's facts */
		bool noted; /* for its next commit */
		/* what of its decision it has not: DIFF_…, CTR_UNSTORED_…, and what else txn.h
		 * knows */
		uint32_t missing;
	} store;
	bool coming; /* its creation is being decided */
	bool in_updates; /* waits in the unsolicited queue */
	struct {
		bool fails; /* the runtime refused its last one: sent in a message of its own */
		struct backoff backoff;
		uint64_t from_ms; /* not sent before */
	} update; /* unsolicited updates */
	struct {
		bool waits; /* for a look at its cgroup */
		uint8_t tries;
		uint64_t from_ms,
			repaired_ms; /* not looked at before; when its sets were put back last */
	} verify;
	struct {
		int watches[3]; /* inotify's numbers, of a directory each; 0: not watched */
	} drift;
	int64_t oom_score_adj;
	uint64_t created_ns, seq;
	struct needs wanted; /* as the runtime asked for last */
	int64_t pod_cpu_extra; /* as of rp_ctr_info */
	/* the runtime's own values at creation or from its last update, ours not among them */
	struct values requested;
	struct values acked;
	/* numbers of the last unsolicited update, until the runtime has acknowledged it; no sets */
	struct values sent;
	struct decision cur;
	struct stage *stage; /* in the running transaction */
	struct {
		char *text; /* explanation of the last decision: lines */
		uint64_t txn; /* that it belongs to */
	} trail;
	const struct ctr_desc *desc; /* while its request is handled */
	struct usage *usage; /* NULL: nothing was measured */
	struct kvs labels, annotations;
	struct ctr *next, *prev; /* all containers, by seq */
	struct ctr *pod_next, *pod_prev; /* of its pod */
	UT_hash_handle hh;
	UT_hash_handle hh_name;
};

/* ---- the cache ------------------------------------------------------------------------------- */

struct cache;
struct feed;

struct cache *cache_new(uint64_t memory_total);
struct cache *cache_free(struct cache *c);
struct intern *cache_sets(struct cache *c);
struct feed *cache_feed(struct cache *c); /* feed.h */
/* MemTotal, for what is derived from oom_score_adj. */
void cache_set_memory_total(struct cache *c, uint64_t bytes);

/*
 * Inserts, or refreshes what is known by that id. -EINVAL: the description breaks a limit or lacks
 * an id; -ENOSPC: too many. A new container starts in desc->state with nothing decided; its needs
 * are derived. Its pod has to be there (-ENOENT).
 */
int cache_put_pod(struct cache *c, const struct pod_desc *desc, struct pod **ret, struct err *err);
int cache_put_ctr(struct cache *c, const struct ctr_desc *desc, struct ctr **ret, struct err *err);
/* Replaces what the runtime told of the pod's resources; a description without CPU shares is left
 * out. */
void cache_resize_pod(struct pod *pod, const struct res_desc *res);
/* One that was not known when it was created. One that is too long, or for which there is no
 * memory, stays unknown. */
void cache_set_cgroup(struct ctr *ctr, const char *path);
/* Derives the needs after a resize: the runtime's values count, no annotation does any more. */
void cache_derive_resized(struct cache *c, struct ctr *ctr);
/* With all its containers. */
void cache_del_pod(struct cache *c, struct pod *pod);
void cache_del_ctr(struct cache *c, struct ctr *ctr);

struct pod *cache_pod(struct cache *c, const char *id);
struct ctr *cache_ctr(struct cache *c, const char *id);
/* The newest container of that name that has not exited. */
struct ctr *cache_ctr_by_name(struct cache *c, const char *full_name);
struct ctr *cache_ctr_named(struct cache *c, const char *ns, const char *pod, const char *name);
/* This container is the one that its name means from now on. */
void cache_claim_name(struct cache *c, struct ctr *ctr);
/* By id, unique id prefix, namespace/pod/name or pod/name, for people. NULL and a reason when none
 * or several match. */
struct ctr *cache_ctr_find(struct cache *c, const char *text, struct err *err);
struct pod *cache_pod_of(struct cache *c, rp_pod handle);
struct ctr *cache_ctr_of(struct cache *c, rp_ctr handle);
struct pod *cache_pods(struct cache *c); /* uthash list, by insertion */
struct ctr *cache_ctrs(struct cache *c); /* list through next, by creation */
unsigned cache_n_pods(const struct cache *c);
unsigned cache_n_ctrs(const struct cache *c);

static inline bool ctr_live(uint32_t state)
{
	return state != RP_STATE_EXITED;
}

/* Can the runtime be told something of it? */
static inline bool ctr_can_update(const struct ctr *ctr)
{
	return ctr->cur.state == RP_STATE_CREATED || ctr->cur.state == RP_STATE_RUNNING ||
	       ctr->cur.state == RP_STATE_PAUSED;
}

/* The number of a policy's name in decisions: small, stable while the process lives; 0: none. Names
 * come back by cache_policy_name. */
uint32_t cache_policy_number(struct cache *c, const char *name);
const char *cache_policy_name(const struct cache *c, uint32_t number);

/* ---- values ---------------------------------------------------------------------------------- */

#define VALUES_NONE                                                                                \
	{                                                                                          \
		RP_NOT_SET, RP_NOT_SET, RP_NOT_SET, RP_NOT_SET, NULL, NULL                         \
	}

/* Overlays what is present (not RP_NOT_SET, and not 0 for an update: runtimes write 0 for
 * "unchanged") onto v. A list that does not parse is left out: -EINVAL, the rest is taken. */
int values_overlay(struct cache *c, struct values *v, const struct res_desc *res,
		   bool zero_is_absent);
void values_fini(struct cache *c, struct values *v);
void values_copy(struct values *dst, const struct values *src);

/* The runtime asks for other numbers than before: those that were decided as it had asked for
 * follow. */
void decision_follow(struct decision *d, const struct values *was, const struct values *now);

#define DIFF_CPUS 0x01u
#define DIFF_MEMS 0x02u
#define DIFF_SHARES 0x04u
#define DIFF_QUOTA 0x08u
#define DIFF_PERIOD 0x10u
#define DIFF_MEM_LIMIT 0x20u
/* What the decision wants otherwise than the runtime has it. */
uint32_t ctr_diff(const struct ctr *ctr);
/* In ctr->store.missing: which CPUs and memory nodes the runtime has. */
#define CTR_UNSTORED_ACKED_SETS 0x400u
/* In ctr->store.missing: that the runtime has these fields now. */
uint32_t ctr_unstored_acked(uint32_t fields);
/* The runtime has these fields of the decision now. */
void ctr_ack(struct cache *c, struct ctr *ctr, uint32_t fields);
/* The same when what was sent may be decided otherwise by now. */
void ctr_ack_values(struct cache *c, struct ctr *ctr, uint32_t fields, const struct values *v);
struct values ctr_decided(const struct ctr *ctr); /* borrowed sets */
static inline bool ctr_has_sent(const struct ctr *ctr)
{
	return ctr->sent.shares != RP_NOT_SET || ctr->sent.quota != RP_NOT_SET ||
	       ctr->sent.period != RP_NOT_SET || ctr->sent.mem_limit != RP_NOT_SET;
}
/* Records the numbers among these fields as sent to the runtime and not yet acknowledged. */
void ctr_note_sent(struct ctr *ctr, uint32_t fields, const struct values *v);

#endif
