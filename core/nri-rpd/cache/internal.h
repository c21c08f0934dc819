/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share and nobody else needs. */
#ifndef CACHE_INTERNAL_H
#define CACHE_INTERNAL_H

#include "core/nri-rpd/cache/feed.h"

#define POLICY_NAMES_MAX 64u

struct slot {
	void *object;
	uint32_t generation;
	uint32_t next_free;
};

struct slots {
	struct slot *slot;
	uint32_t n, cap, free; /* free: 1 + index of the first free one */
};

struct stage;

struct feed {
	struct fed_pod *pods;
	size_t bytes;
	unsigned n_ended;
	bool unused;
	struct arena *names; /* renamed is in it */
	const struct conf_rename *renamed;
	uint32_t n_renamed;
};

struct cache {
	uint64_t memory_total;
	struct intern *sets;
	struct pod *pods;
	struct ctr *by_id, *by_name;
	struct ctr *ctrs; /* utlist, by seq */
	struct slots pod_slots, ctr_slots;
	struct feed feed;
	const struct conf_annotations *hears; /* hear.h */
	uint64_t seq;
	char *policies[POLICY_NAMES_MAX];
	uint32_t n_policies;

	struct txn *txn;
	uint64_t txn_ids;
	struct stage *spare_stages;
	/*
	 * Per CPU: how many sets in use contain it for others than those who own it; whose alone it
	 * is (owner_key below, 0: nobody's), and in how many of that owner's sets.
	 */
	uint32_t *cpu_sets, *cpu_owner, *cpu_owners;
	uint32_t n_owned; /* CPUs that are somebody's alone */
};

#define OWNER_GROUP 0x80000000u
#define OWNER_POLICY_SHIFT 16u /* groups are numbered by their policy, up to RP_GROUP_MAX */

/* What a container has for itself, NULL: nothing. */
static inline struct iset *owned_of(const struct decision *d)
{
	return d->exclusive && d->exclusive->count ? d->exclusive : NULL;
}

/* Who owns the exclusive CPUs of a decision: the container (slot + 1), or the group that it is in.
 * 0: there are none. */
static inline uint32_t owner_key(const struct ctr *ctr, const struct decision *d)
{
	if (!owned_of(d))
		return 0;
	return d->group ? OWNER_GROUP | d->policy << OWNER_POLICY_SHIFT | d->group
			: (uint32_t)ctr->handle;
}

#endif
