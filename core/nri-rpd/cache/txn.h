/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transaction: the changes of one request. Decisions are staged as copies; txn_check() checks the
 * invariants, txn_commit() makes the copies current, txn_rollback() drops them. At most one
 * transaction exists at a time.
 *
 * Costs depend on the touched containers only: the cache counts for each CPU the distinct sets that
 * contain it and its exclusive owner, so that checks never visit other containers.
 */
#pragma once

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/cache/extras.h"

struct txn;

struct stage {
	struct ctr *ctr;
	struct decision next;
	struct stage *link; /* stage of the container that was changed next; NULL: last */
	bool counted;
};

/* Staged private data of a policy about a pod. */
struct pod_stage {
	struct pod *pod;
	struct blob *private_data;
	uint32_t policy;
	struct pod_stage *link;
};

/* Begins a transaction; no other may exist. NULL: out of memory. */
struct txn *txn_begin(struct cache *c);
uint64_t txn_id(const struct txn *t);
struct cache *txn_cache(const struct txn *t);
/* Returns the running transaction if it has that id; else NULL. */
struct txn *txn_of(struct cache *c, uint64_t id);
/* Returns the container's staged decision, at first a copy of the current one. NULL: out of
 * memory. */
struct decision *txn_stage(struct txn *t, struct ctr *ctr);
/* Returns the staged decision of a container, or the current one if none is staged. */
const struct decision *txn_view(const struct ctr *ctr);
/* Stages private data of a policy about a pod (NULL: none) and takes ownership of the reference.
 * -ENOMEM. */
int txn_put_pod_private(struct txn *t, struct pod *pod, uint32_t policy, struct blob *data);
/* Returns the staged or current private data of a pod; *ret_policy: the number of its policy. */
const struct blob *txn_pod_private(const struct pod *pod, uint32_t *ret_policy);
const struct pod_stage *txn_pods(const struct txn *t); /* list through ->link */
/* Sets the container that the transaction creates, which the extras belong to. */
void txn_set_created(struct txn *t, struct ctr *ctr);
struct ctr *txn_created(const struct txn *t);
struct extras *txn_extras(struct txn *t); /* the created container's extras */
bool txn_committed(const struct txn *t);
/* Stores and returns the stage that broke an invariant in the latest txn_check(); NULL: none. */
void txn_set_broken(struct txn *t, const struct stage *s);
const struct stage *txn_broken(const struct txn *t);
const struct stage *txn_touched(const struct txn *t); /* list through ->link */
unsigned txn_n_touched(const struct txn *t);

/* Puts a set or blob into a staged field. Takes ownership of the reference, and release the
 * previous one. */
void txn_put_set(struct cache *c, struct iset **field, struct iset *set);
void txn_put_blob(struct blob **field, struct blob *blob);

/* Time by which updates that only add CPUs may be deferred (rp_host_cache.may_wait). All zeros: not
 * deferred. */
struct patience {
	uint32_t quiet_ms, longest_ms;
};
void txn_set_patience(struct txn *t, struct patience patience);
struct patience txn_patience(const struct txn *t);

struct invariants {
	struct rp_ids online, mem_nodes;
};

/* Return DIFF_… of changed decided values and TXN_CHANGED_… of other changes between the current
 * and the staged decision. */
#define TXN_CHANGED_CLASS 0x100u
#define TXN_CHANGED_OTHER 0x200u
#define TXN_CHANGED_TOPTIER 0x40000000u /* not stored */
uint32_t txn_changed(const struct stage *s);
/* Commits the stages. They remain readable until txn_end(), and hold the previous decisions. */
void txn_commit(struct txn *t);
void txn_rollback(struct txn *t);
/* Ends a transaction; an uncommitted one is rolled back. */
void txn_end(struct txn *t);

/* Reads committed decisions: cache_owned() returns the number of exclusive CPUs of all containers;
 * ctr_exclusive() returns a container's exclusive CPUs that it shares with no member of a group, or
 * NULL. */
uint32_t cache_owned(const struct cache *c);
struct iset *ctr_exclusive(const struct cache *c, const struct ctr *ctr);

/* Returns the id of the running transaction; 0: none. */
uint64_t cache_running_txn(const struct cache *c);

/* Returns the id of the latest transaction, running or not. */
uint64_t cache_last_txn(const struct cache *c);
void decision_fini(struct cache *c, struct decision *d);

/* Adds a decision to the per-CPU counts, or removes it. */
void count_decision(struct cache *c, const struct ctr *ctr, const struct decision *d, bool in);
