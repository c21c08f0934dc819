/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns which CPU. A CPU is given to one owner, so that two cannot own it by construction; or it
 * is joined by any number of users, who are counted and not named. Changes since owners_begin() can
 * be taken back.
 */
#ifndef NRI_RP_LIB_OWNERS_H
#define NRI_RP_LIB_OWNERS_H

#include <nri-rp/cache.h>
#include <nri-rp/set.h>

/* Of one CPU. Free: all zeros. */
struct owners_cpu {
	rp_ctr owner; /* 0: none, or those who joined */
	uint32_t n; /* the owner, or those who joined */
};

/* All zeros: every CPU is free. */
struct owners {
	struct rp_idset taken; /* CPUs that are not free */
	struct rp_idset touched; /* since owners_begin */
	struct owners_cpu now[RP_CPUS_MAX];
	struct owners_cpu before[RP_CPUS_MAX]; /* of touched CPUs, at owners_begin */
};

void owners_begin(struct owners *o);
void owners_undo(struct owners *o);
/* The CPUs are the container's, whoever had them or had joined. */
void owners_give(struct owners *o, struct rp_ids cpus, rp_ctr ctr);
/* One user more of each of them; a CPU that was given is joined instead. One user less; the last
 * one leaves it free. */
void owners_join(struct owners *o, struct rp_ids cpus);
void owners_leave(struct owners *o, struct rp_ids cpus);
void owners_clear(struct owners *o);
/* Those of these CPUs that the container owns are free. */
void owners_take(struct owners *o, rp_ctr ctr, struct rp_ids cpus);
/* Takes everything from a container; what it had goes to ret. How many CPUs that were. Looks at all
 * CPUs that are not free. */
uint32_t owners_release(struct owners *o, rp_ctr ctr, struct rp_idset *ret);
/* CPUs that have an owner; the other ones that are taken were joined. */
void owners_given(const struct owners *o, struct rp_idset *ret);
uint32_t owners_owned(const struct owners *o, rp_ctr ctr, struct rp_idset *ret);

#endif
