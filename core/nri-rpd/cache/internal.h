/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct cache, handles and the counts of CPU owners, shared by the files of this folder only.
 */
#pragma once

#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/cache/feed.h"

#define POLICY_NAMES_MAX 64u

struct slot {
	void *object;
	uint32_t generation;
	uint32_t next_free;
};

struct slots {
	struct slot *slot;
	uint32_t n, cap, free; /* free: 1 + index of the first free slot; 0: none */
};

struct stage;

struct feed {
	struct fed_pod *pods;
	size_t bytes;
	unsigned n_ended;
	bool unused;
	struct arena *names; /* owns `renamed` */
	const struct conf_rename *renamed;
	uint32_t n_renamed;
};

/* Huge pages of one size on one node that other programs used when they were last counted. */
struct huge_others {
	uint32_t node;
	uint64_t page, bytes;
};

struct cache {
	uint64_t memory_total;
	struct intern *sets;
	struct pod *pods;
	struct pod *pods_by_uid; /* uthash, the first sandbox of each pod */
	struct ctr *by_id, *by_name;
	/* results of the last searches by id; a request repeats its searches */
	rp_pod latest_pod;
	rp_ctr latest_ctr;
	struct ctr *ctrs; /* list of containers (utlist), sorted by seq */
	struct slots pod_slots, ctr_slots;
	struct feed feed;
	const struct conf_annotations *hears; /* rules for annotations, annotation_rules.h */
	uint64_t seq;
	char *policies[POLICY_NAMES_MAX];
	uint32_t n_policies;

	struct txn *txn;
	uint64_t txn_ids;
	struct stage *spare_stages;
	/*
	 * By CPU: number of sets in use that contain it for other containers than its
	 * owners; key of its owner (owner_key; 0: none); number of that owner's sets with it.
	 */
	uint32_t *cpu_sets, *cpu_owner, *cpu_owners;
	uint32_t n_owned; /* number of CPUs with an owner */
	struct huge_others *huge_others;
	uint32_t n_huge_others;
};

#define OWNER_GROUP 0x80000000u
#define OWNER_POLICY_SHIFT 16u /* groups are numbered by policy, up to RP_GROUP_MAX */

/* Returns the exclusive CPUs of a decision; NULL: none. */
static inline struct iset *owned_of(const struct decision *d)
{
	return d->exclusive && d->exclusive->count ? d->exclusive : NULL;
}

/* Returns the key of the owner of a decision's exclusive CPUs: the container (slot + 1), its
 * claim or its group. 0: no exclusive CPUs. */
static inline uint32_t owner_key(const struct ctr *ctr, const struct decision *d)
{
	if (!owned_of(d))
		return 0;
	if (d->claimed)
		return (uint32_t)ctr->claim->handle;
	if (ctr->device) /* all parts of a claim */
		return (uint32_t)claim_first((struct ctr *)(uintptr_t)ctr)->handle;
	return d->group ? OWNER_GROUP | d->policy << OWNER_POLICY_SHIFT | d->group
			: (uint32_t)ctr->handle;
}
