/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns which CPU. Two containers cannot own one CPU by construction. Changes since ledger_begin() can be taken back.
 */
#ifndef STATIC_LEDGER_H
#define STATIC_LEDGER_H

#include <nri-rp/cache.h>
#include <nri-rp/set.h>

struct ledger {
	struct rp_idset taken; /* CPUs with an owner */
	struct rp_idset touched; /* since ledger_begin */
	rp_ctr owner[RP_CPUS_MAX]; /* 0: nobody */
	rp_ctr before[RP_CPUS_MAX]; /* of touched CPUs: the owner at ledger_begin */
};

void ledger_begin(struct ledger *l);
void ledger_undo(struct ledger *l);
/* The CPUs are the container's, whoever had them. */
void ledger_give(struct ledger *l, struct rp_ids cpus, rp_ctr ctr);
void ledger_clear(struct ledger *l);
/* Takes everything from a container; what it had goes to ret. How many CPUs that were. */
uint32_t ledger_release(struct ledger *l, rp_ctr ctr, struct rp_idset *ret);
uint32_t ledger_owned(const struct ledger *l, rp_ctr ctr, struct rp_idset *ret);

#endif
