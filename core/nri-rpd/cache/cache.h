/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache: every pod and container of the node with requested resources, decision, and values
 * acknowledged by the runtime.
 *
 *   struct pod, struct ctr   facts, set at insertion and refreshed by the runtime
 *   struct decision          the daemon's decision, changed by transactions only (txn.h), so that a
 *                            failed request leaves no trace
 *   struct values (acked)    values acknowledged by the runtime; where the decision differs, an
 *                            update is due
 *
 * Objects are found by the runtime's id, by name, and by handle (rp_pod, rp_ctr: slot and
 * generation; the handle of a removed object is never used again). The cache owns all objects;
 * pointers are valid until the object is removed. The cache does no I/O: the pipeline calls the
 * store (store.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/cache.h>

#include "core/nri-rpd/cache/kvs.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/backoff.h"
#include "core/lib/util/err.h"
#include "core/lib/util/hash.h"
#include "core/lib/util/intern.h"

#define CACHE_ID_MAX 256u /* longest id or name from the runtime, in bytes */
#define CACHE_PATH_MAX 4096u
#define CACHE_PODS_MAX 65536u
#define CACHE_CTRS_MAX 65536u

/* ---- descriptions from a front end (text borrowed during the call) --------------------------- */

/* CPU shares, quota and period in microseconds, memory limit in bytes; RP_NOT_SET: not set. A
 * struct with CPU_AMOUNTS has them as its own members, and together as `amounts`. */
#define CPU_AMOUNT_MEMBERS int64_t shares, quota, period, mem_limit
struct cpu_amounts {
	CPU_AMOUNT_MEMBERS;
};
#define CPU_AMOUNTS                                                                                \
	union {                                                                                    \
		struct {                                                                           \
			CPU_AMOUNT_MEMBERS;                                                        \
		};                                                                                 \
		struct cpu_amounts amounts;                                                        \
	}
#define CPU_AMOUNTS_NONE                                                                           \
	{                                                                                          \
		RP_NOT_SET, RP_NOT_SET, RP_NOT_SET, RP_NOT_SET                                     \
	}

/* Resource values; RP_NOT_SET and NULL: not reported by the runtime. */
struct values {
	CPU_AMOUNTS;
	struct iset *cpus, *mems; /* references; NULL: not set */
};

/* A request for huge pages of one size, in bytes. */
struct huge_request {
	uint64_t page, bytes;
};
/* Huge pages of a container (hugepages.h). */
#define HUGE_SIZES_MAX 4u
struct huge {
	uint32_t n;
	struct huge_request of[HUGE_SIZES_MAX];
};

struct res_desc {
	CPU_AMOUNTS;
	const char *cpus, *mems; /* list form; NULL or "": absent */
};

struct pod_desc {
	const char *id, *name, *uid, *ns, *runtime_handler, *cgroup_parent;
	const struct kv *labels, *annotations;
	uint32_t n_labels, n_annotations;
	const struct res_desc *sums; /* sums over containers; NULL: not reported */
};

struct ctr_desc {
	const char *id, *pod_id, *name, *cgroups_path;
	uint32_t state; /* RP_STATE_… */
	uint32_t pid;
	uint64_t created_ns; /* creation time by the wall clock; 0: unknown */
	int64_t oom_score_adj; /* score adjustment of the OOM killer; RP_NOT_SET: unknown */
	struct res_desc res;
	struct huge huge;
	const struct kv *labels, *annotations;
	uint32_t n_labels, n_annotations;
	/* following members: valid during the request only */
	const char *const *env; /* environment, KEY=value */
	uint32_t n_env;
	const char *const *args; /* arguments of the process, beginning with the program */
	uint32_t n_args;
	const struct rp_mount_info *mounts;
	uint32_t n_mounts;
	const struct rp_device_info *devices;
	uint32_t n_devices;
	const char *const *cdi; /* device names of the Container Device Interface */
	uint32_t n_cdi;
};

/* ---- objects --------------------------------------------------------------------------------- */

/* Immutable bytes with a reference count, followed by a NUL: classes, private data, reasons. NULL:
 * not set. */
struct blob {
	uint32_t refs, len;
	char data[];
};

/* Returns a new blob with one reference; NULL: out of memory. */
struct blob *blob_new(const void *data, uint32_t len);
struct blob *blob_room(uint32_t len); /* the caller fills the bytes */
struct blob *blob_str(const char *s);
struct blob *blob_ref(struct blob *b);
struct blob *blob_unref(struct blob *b); /* returns NULL */
static inline const char *blob_text(const struct blob *b)
{
	return b ? b->data : NULL;
}
bool blob_equal(const struct blob *a, const struct blob *b);

struct needs {
	int64_t cpu_request, cpu_limit; /* CPU in milli-CPU; 0: none */
	int64_t mem_request, mem_limit; /* memory in bytes; 0: none */
};

#define DECISION_TEXT_MAX (1u << 20) /* largest class, reason or data file */
/* Rows of the blobs of a decision that are stored: member, words for messages, largest size. */
#define DECISION_BLOBS(ROW)                                                                        \
	ROW(rdt_class, "RDT class", DECISION_TEXT_MAX)                                             \
	ROW(blockio_class, "block I/O class", DECISION_TEXT_MAX)                                   \
	ROW(cpu_class, "CPU class", DECISION_TEXT_MAX)                                             \
	ROW(private_data, "private data", RP_PRIVATE_MAX)                                          \
	ROW(degraded, "reason", DECISION_TEXT_MAX)                                                 \
	ROW(data, "data", DECISION_TEXT_MAX)

struct decision {
	/* first the members that are read of all containers */
	uint32_t state; /* RP_STATE_… */
	uint32_t policy; /* number of the deciding policy (cache_policy_number) */
	struct needs needs; /* resources that the decision was made for */
	struct blob *degraded; /* reason why the container is degraded; NULL: it is not */
	struct iset *cpus, *mems, *exclusive; /* references; NULL: not decided */
	CPU_AMOUNTS;
	struct blob *rdt_class, *blockio_class, *cpu_class;
	/* classes of an adjustment, which override the above; derived from the configuration and
	 * never stored */
	struct blob *rdt_adjusted, *blockio_adjusted;
	int64_t toptier_adjusted; /* top-tier memory limit of the adjustment, in bytes; 0: none */
	struct blob *private_data; /* data of the policy that decided */
	struct blob *data; /* content of the exported data file */
	/* the host has chosen the CPUs, because no policy has pinned the container */
	bool confined;
	/* the policy leaves the container without CPUs on purpose, so the host does not confine it;
	 * decided again after each start */
	bool unpinned;
	/* DIFF_CPUS, DIFF_MEMS, DIFF_MEM_LIMIT: values granted by a resource plugin where the
	 * policy decided nothing; derived again after each start */
	uint32_t granted;
	uint32_t group; /* group whose members may share the exclusive CPUs; 0: none */
	/* the CPUs and memory nodes are those of the container's claim (ctr->claim) */
	bool claimed;
};

/* Returns the effective class; NULL: none. */
static inline const struct blob *decision_rdt(const struct decision *d)
{
	return d->rdt_adjusted ? d->rdt_adjusted : d->rdt_class;
}

static inline const struct blob *decision_blockio(const struct decision *d)
{
	return d->blockio_adjusted ? d->blockio_adjusted : d->blockio_class;
}

/* Rows of the texts that describe a pod, besides its id: member, words for messages, largest
 * size. */
#define POD_TEXTS(ROW)                                                                             \
	ROW(name, "pod name", CACHE_ID_MAX)                                                        \
	ROW(uid, "pod uid", CACHE_ID_MAX)                                                          \
	ROW(ns, "pod namespace", CACHE_ID_MAX)                                                     \
	ROW(runtime_handler, "runtime handler", CACHE_ID_MAX)                                      \
	ROW(cgroup_parent, "cgroup parent", CACHE_PATH_MAX)

struct pod {
	rp_pod handle;
	char *id, *name, *uid, *ns, *runtime_handler, *cgroup_parent;
	uint32_t qos;
	struct {
		bool facts; /* the store has the pod's facts */
		bool noted; /* listed in the store's next commit */
	} store;
	uint32_t sync_mark; /* number of the last Synchronize that listed the pod */
	bool stopped;
	bool over; /* all containers have ended finally, and the pod's grants are released */
	bool annotated; /* an effective annotation has one of our domains (annotations_ours) */
	struct kvs labels, annotations; /* labels and annotations as reported by the runtime */
	struct kvs heard; /* effective annotations, if `withheld` is not 0 (annotation_rules.h) */
	uint32_t withheld; /* number of annotations without effect */
	/* sums over containers at creation or the last resize; RP_NOT_SET: not reported */
	struct needs sums;
	bool sums_stale; /* a container was resized since, without new sums from the runtime */
	/* the runtime or the pod feed has sent new resources of the pod, and no container of the
	 * pod was decided since */
	bool resized;
	struct blob *private_data; /* data of policy number `policy` */
	uint32_t policy;
	struct blob *grants; /* grants of resource plugins (grants.h); NULL: none */
	struct pod_stage *stage; /* txn.h */
	uint64_t seq; /* number of the pod, by order of arrival */
	struct ctr *ctrs;
	struct pod *uid_next; /* another sandbox of the same pod */
	UT_hash_handle hh;
	UT_hash_handle hh_uid; /* in pods_by_uid, which holds the first sandbox of each pod */
};

struct stage; /* txn.h */
struct usage; /* usage.h */

struct ctr {
	/* first the members that are read of all containers */
	rp_ctr handle;
	struct pod *pod;
	struct stage *stage; /* stage in the running transaction */
	struct ctr *next, *prev; /* list of all containers, by seq */
	char *id, *name;
	uint32_t flags; /* properties of the container, RP_CTR_… */
	bool late; /* the container was created while the daemon was away, and is not placed yet */
	bool coming; /* a decision about the creation is running */
	uint64_t created_ns, seq;
	struct decision cur;
	char *cgroups_path;
	char *full_name; /* name of the container for messages, namespace/pod/name */
	uint32_t pid;
	uint32_t sync_mark;
	struct {
		bool facts; /* the store has the container's facts */
		bool noted; /* listed in the store's next commit */
		/* parts of the decision that the store lacks: DIFF_…, CTR_UNSTORED_…,
		 * TXN_CHANGED_… */
		uint32_t missing;
	} store;
	bool in_updates; /* the container is in the queue of unsolicited updates */
	struct {
		bool fails; /* the runtime refused the last update; the next one is sent alone */
		struct backoff backoff;
		uint64_t from_ms; /* earliest time of the next unsolicited update */
	} update; /* state of unsolicited updates */
	struct {
		bool waits; /* the container waits for a check of its cgroup */
		/* the container was created at Synchronize, and has not been checked since */
		bool starting;
		uint8_t tries;
		/* from_ms: earliest time of a check; repaired_ms: last repair */
		uint64_t from_ms, repaired_ms;
	} verify;
	struct {
		int watches[3]; /* inotify watches, one for each directory; 0: none */
	} drift;
	int64_t oom_score_adj;
	struct needs wanted; /* resources last requested by the runtime */
	int64_t pod_cpu_extra; /* CPU that the pod requests beyond its containers (rp_ctr_info) */
	int64_t pod_cpu_extra_before; /* value before the resize that is being decided */
	/* the runtime's own values from the creation or its last update, without the daemon's */
	struct values requested;
	struct values acked;
	/* numbers of the last unsolicited update until the runtime acknowledges it; no sets */
	struct values sent;
	struct {
		char *text; /* explanation of the last decision, lines */
		uint64_t txn; /* transaction of the explanation */
	} trail;
	/* description by the runtime, set while a request about this container is handled */
	const struct ctr_desc *desc;
	struct usage *usage; /* measured usage; NULL: not measured */
	struct huge *huge; /* requested huge pages; NULL: none */
	struct kvs labels, annotations;
	/* Claims (claim.h): the device that the claim was allocated from, and the UIDs of the pods
	 * that may use it, separated by blanks; NULL: a container */
	char *device, *users;
	struct ctr *claim; /* claim that the container uses (claim_attach); NULL: none */
	struct ctr *sharers; /* containers that use this claim; NULL: none */
	struct ctr *sharer_next, *sharer_prev; /* list of the containers of the same claim */
	struct ctr *pod_next, *pod_prev; /* list of the pod's containers */
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
/* Sets MemTotal, from which memory requests are derived (oom_score_adj). */
void cache_set_memory_total(struct cache *c, uint64_t bytes);

/*
 * Inserts a pod or container, or refreshes the one with that id. A new container starts in
 * desc->state without a decision; its needs are derived. -EINVAL: the description exceeds a limit
 * or has no id. -ENOSPC: too many objects. -ENOENT: the container's pod is unknown.
 */
int cache_put_pod(struct cache *c, const struct pod_desc *desc, struct pod **ret, struct err *err);
int cache_put_ctr(struct cache *c, const struct ctr_desc *desc, struct ctr **ret, struct err *err);
/* Replaces the reported resources of a pod. Ignores a description without CPU shares. */
void cache_resize_pod(struct pod *pod, const struct res_desc *res);
/* Sets a cgroup path that was unknown at the creation. A path that is too long, or out of memory,
 * leaves it unknown. */
void cache_set_cgroup(struct ctr *ctr, const char *path);
/* Sets the creation time by the wall clock, which runtimes report with the start. 0 leaves it. */
void cache_set_created(struct ctr *ctr, uint64_t wall_ns);
/* Derives the needs after a resize from the runtime's values, without annotations. */
void cache_derive_resized(struct cache *c, struct ctr *ctr);
/* Removes a pod with all its containers. */
void cache_del_pod(struct cache *c, struct pod *pod);
void cache_del_ctr(struct cache *c, struct ctr *ctr);

struct pod *cache_pod(struct cache *c, const char *id);
struct ctr *cache_ctr(struct cache *c, const char *id);
/* Returns the newest container of that name that has not exited. */
struct ctr *cache_ctr_by_name(struct cache *c, const char *full_name);
struct ctr *cache_ctr_named(struct cache *c, const char *ns, const char *pod, const char *name);
/* Registers this container as the one that is found by its name. */
void cache_claim_name(struct cache *c, struct ctr *ctr);
/* Finds a container by id, unique prefix of the id, namespace/pod/name, pod/name or name, for
 * commands of users. NULL with a reason in err if none or several match. */
struct ctr *cache_ctr_find(struct cache *c, const char *text, struct err *err);
struct pod *cache_pod_of(struct cache *c, rp_pod handle);
struct ctr *cache_ctr_of(struct cache *c, rp_ctr handle);
/* Returns the first sandbox of a pod, linked by uid_next; NULL: none. */
struct pod *cache_pod_by_uid(const struct cache *c, const char *uid);
struct pod *cache_pods(struct cache *c); /* uthash list, in order of insertion */
struct ctr *cache_ctrs(struct cache *c); /* list through next, in order of creation */
unsigned cache_n_pods(const struct cache *c);
unsigned cache_n_ctrs(const struct cache *c);

static inline bool ctr_live(uint32_t state)
{
	return state != RP_STATE_EXITED;
}

/* Returns true if the runtime accepts updates of the container. */
static inline bool ctr_can_update(const struct ctr *ctr)
{
	return ctr->cur.state == RP_STATE_CREATED || ctr->cur.state == RP_STATE_RUNNING ||
	       ctr->cur.state == RP_STATE_PAUSED;
}

/* Returns the number of a policy's name in decisions: small and stable while the process lives; 0:
 * none. cache_policy_name() returns the name. */
uint32_t cache_policy_number(struct cache *c, const char *name);
const char *cache_policy_name(const struct cache *c, uint32_t number);

/* ---- values ---------------------------------------------------------------------------------- */

#define VALUES_NONE                                                                                \
	{                                                                                          \
		.amounts = CPU_AMOUNTS_NONE                                                        \
	}

/* Overlays the present values onto v: not RP_NOT_SET, and with zero_is_absent not 0, since runtimes
 * send 0 for "unchanged". Skips a list that does not parse and returns -EINVAL; the other values
 * are overlaid. */
int values_overlay(struct cache *c, struct values *v, const struct res_desc *res,
		   bool zero_is_absent);
void values_fini(struct cache *c, struct values *v);
void values_copy(struct values *dst, const struct values *src);

/* Updates a decision after new requested values: decided numbers that equalled the previous
 * requested ones follow. */
void decision_follow(struct decision *d, const struct values *was, const struct values *now);

#define DIFF_CPUS 0x01u
#define DIFF_MEMS 0x02u
#define DIFF_SHARES 0x04u
#define DIFF_QUOTA 0x08u
#define DIFF_PERIOD 0x10u
#define DIFF_MEM_LIMIT 0x20u
/* Returns DIFF_… of decided values that the runtime does not have. */
uint32_t ctr_diff(const struct ctr *ctr);
/* Bit of ctr->store.missing: the acknowledged CPUs and memory nodes are not stored yet. */
#define CTR_UNSTORED_ACKED_SETS 0x400u
/* Returns the bits of ctr->store.missing for acknowledged fields. */
uint32_t ctr_unstored_acked(uint32_t fields);
/* Records that the runtime has these fields of the decision. */
void ctr_ack(struct cache *c, struct ctr *ctr, uint32_t fields);
/* Records that the runtime has these values, which the decision may have changed since. */
void ctr_ack_values(struct cache *c, struct ctr *ctr, uint32_t fields, const struct values *v);
/* Returns the decided values, with borrowed sets. */
struct values ctr_decided(const struct ctr *ctr);
static inline bool ctr_has_sent(const struct ctr *ctr)
{
	return ctr->sent.shares != RP_NOT_SET || ctr->sent.quota != RP_NOT_SET ||
	       ctr->sent.period != RP_NOT_SET || ctr->sent.mem_limit != RP_NOT_SET;
}
/* Records the numbers among these fields as sent to the runtime and not yet acknowledged. */
void ctr_note_sent(struct ctr *ctr, uint32_t fields, const struct values *v);
