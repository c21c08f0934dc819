/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transaction: what a request is going to change. Decisions are staged on copies; txn_check tries
 * them against the invariants, txn_commit makes them the containers' own, txn_rollback forgets
 * them. There is at most one transaction at a time.
 *
 * Costs follow the containers touched: per CPU the cache counts how many different sets in use
 * contain it and who owns it exclusively, so that no check ever looks at the containers that a
 * request leaves alone.
 */
#ifndef CACHE_TXN_H
#define CACHE_TXN_H

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/cache/extras.h"

struct txn;

struct stage {
	struct ctr *ctr;
	struct decision next;
	struct stage *link; /* touched containers, in order of first touch */
	bool counted;
};

/* What a policy keeps with a pod. */
struct pod_stage {
	struct pod *pod;
	struct blob *private_data;
	uint32_t policy;
	struct pod_stage *link;
};

struct txn *txn_begin(struct cache *c);
uint64_t txn_id(const struct txn *t);
struct cache *txn_cache(const struct txn *t);
/* The running one, NULL when there is none or the id is another's. */
struct txn *txn_of(struct cache *c, uint64_t id);
/* The container's staged decision, a copy of the current one at first. NULL: out of memory. */
struct decision *txn_stage(struct txn *t, struct ctr *ctr);
/* As it will be: the staged decision if there is one. */
const struct decision *txn_view(const struct ctr *ctr);
/* Keeps it with the pod, NULL: nothing; takes over the reference. -ENOMEM. */
int txn_put_pod_private(struct txn *t, struct pod *pod, uint32_t policy, struct blob *data);
/* As it will be; *ret_policy: whose it is. */
const struct blob *txn_pod_private(const struct pod *pod, uint32_t *ret_policy);
const struct pod_stage *txn_pods(const struct txn *t); /* through ->link */
/* The container being created by this transaction, if any: the extras are its. */
void txn_set_created(struct txn *t, struct ctr *ctr);
struct ctr *txn_created(const struct txn *t);
struct extras *txn_extras(struct txn *t); /* its creation-only values */
bool txn_committed(const struct txn *t);
const struct stage *txn_touched(const struct txn *t); /* through ->link */
unsigned txn_n_touched(const struct txn *t);

/* Puts a set or a blob into a staged field, with its references. */
void txn_put_set(struct cache *c, struct iset **field,
		 struct iset *set); /* takes over the reference */
void txn_put_blob(struct blob **field, struct blob *blob); /* takes over the reference */

/* How long what it gives may be kept from the runtime (rp_host_cache.may_wait). All zeros: not at
 * all. */
struct patience {
	uint32_t quiet_ms, longest_ms;
};
void txn_set_patience(struct txn *t, struct patience patience);
struct patience txn_patience(const struct txn *t);

struct invariants {
	struct rp_ids online, mem_nodes;
};

/* A changed container, from before to after; `changed` are DIFF_… bits of decided values and
 * TXN_CHANGED_… */
#define TXN_CHANGED_CLASS 0x100u
#define TXN_CHANGED_OTHER 0x200u
#define TXN_CHANGED_TOPTIER 0x40000000u /* nothing that is stored */
uint32_t txn_changed(const struct stage *s);
/* The stages stay readable (holding the former decisions) until txn_end. */
void txn_commit(struct txn *t);
void txn_rollback(struct txn *t);
/* Ends it; an open one is rolled back. */
void txn_end(struct txn *t);

/* By what is committed: does any container own CPUs; and those of a container that it owns without
 * others of a group, or NULL. */
bool cache_owned(const struct cache *c);
struct iset *ctr_exclusive(const struct cache *c, const struct ctr *ctr);

/* The id of the running transaction, 0: none. */
uint64_t cache_running_txn(const struct cache *c);

/* The number of the transaction that was begun last, whether it runs or not. */
uint64_t cache_last_txn(const struct cache *c);
void decision_fini(struct cache *c, struct decision *d);

/* Takes a decision into the per-CPU counts, or out of them. */
void count_decision(struct cache *c, const struct ctr *ctr, const struct decision *d, bool in);

#endif
