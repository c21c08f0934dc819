/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ownership of CPUs. A CPU is free, or has one owner, or has any number of users. An owner is
 * recorded by container, users only by their number. Changes since owners_begin() can be undone.
 */
#ifndef NRI_RP_LIB_OWNERS_H
#define NRI_RP_LIB_OWNERS_H

#include <stdbool.h>

#include <nri-rp/cache.h>
#include <nri-rp/set.h>

/* State of one CPU. All zeros: free. */
struct owners_cpu {
	rp_ctr owner; /* container that owns the CPU; 0: the CPU is free or has users */
	uint32_t n; /* 1 if the CPU has an owner, else the number of users */
};

#define OWNERS_CHAINS 1024u

/* Ownership of all CPUs. All zeros: every CPU is free. The CPUs with owners are linked in chains,
 * chosen by a hash of the owner, so that the CPUs of one owner are found without visiting all. In
 * its chain the CPUs of one owner are neighbours. */
struct owners {
	struct rp_idset taken; /* CPUs that are not free */
	struct rp_idset touched; /* CPUs changed since owners_begin() */
	struct owners_cpu now[RP_CPUS_MAX];
	struct owners_cpu before[RP_CPUS_MAX]; /* state of touched CPUs at owners_begin() */
	uint16_t chains[OWNERS_CHAINS]; /* the first CPU of each chain, plus 1; 0: none */
	uint16_t prev[RP_CPUS_MAX], next[RP_CPUS_MAX]; /* neighbours in the chain, plus 1 */
};

/* Begins to record changes, and forgets the changes recorded before. */
void owners_begin(struct owners *o);
/* Undoes the changes since owners_begin(). */
void owners_undo(struct owners *o);
/* Gives the CPUs to a container (0: none), whatever their state was. */
void owners_give(struct owners *o, struct rp_ids cpus, rp_ctr ctr);
/* Adds a user to each of the CPUs, or remove one. Joining a CPU with an owner removes the owner.
 * The last user to leave makes the CPU free. */
void owners_join(struct owners *o, struct rp_ids cpus);
void owners_leave(struct owners *o, struct rp_ids cpus);
/* Makes all CPUs free. */
void owners_clear(struct owners *o);
/* Makes these CPUs free, as far as the container owns them. */
void owners_take(struct owners *o, rp_ctr ctr, struct rp_ids cpus);
/* Makes all CPUs of a container free and stores them in ret. Returns their number. */
uint32_t owners_release(struct owners *o, rp_ctr ctr, struct rp_idset *ret);
/* Stores the CPUs with an owner; all other CPUs that are not free have users. */
void owners_given(const struct owners *o, struct rp_idset *ret);
/* Returns the first CPU of a container, or the next CPU of the owner of this CPU, in any order.
 * RP_IDSET_NONE: there is none. owners_is_first() returns true if the CPU is its owner's first. */
uint32_t owners_first_of(const struct owners *o, rp_ctr ctr);
uint32_t owners_next_of(const struct owners *o, uint32_t cpu);
bool owners_is_first(const struct owners *o, uint32_t cpu);
/* Stores the CPUs of a container and returns their number. */
uint32_t owners_owned(const struct owners *o, rp_ctr ctr, struct rp_idset *ret);

#endif
