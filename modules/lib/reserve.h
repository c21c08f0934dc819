/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserved CPUs over time. What was reserved stays reserved, over restarts, reloads and CPUs that
 * go off line: of a quantity only those are replaced that are gone; of a list those that are off
 * line are waited for, if it was in force before.
 */
#ifndef NRI_RP_LIB_RESERVE_H
#define NRI_RP_LIB_RESERVE_H

#include <stdbool.h>

#include "modules/lib/host.h"

/* What was before. All zeros: nothing was. */
struct reserve_past {
	struct rp_idset cpus; /* reserved last, as a quantity; empty: none were */
	struct rp_idset listed; /* named by the configuration then, off line or not */
	struct rp_idset busy; /* belong to containers: rather others than these */
	bool hotplug; /* the machine has changed, the configuration has not */
};

/* For a quantity of n CPUs out of `from`: what stays, and what the rest is to be chosen from; how
 * many that are. */
uint32_t reserve_quantity(const struct reserve_past *past, struct rp_ids from, struct rp_ids online,
			  uint32_t n, struct rp_idset *ret_kept, struct rp_idset *ret_others);
/*
 * For a list of which not all are `allowed`: those that are missing and an error, and those that
 * are waited for, with a warning unless there is an error. Both may be empty.
 */
void reserve_list(const struct modhost *h, const struct reserve_past *past, struct rp_ids listed,
		  struct rp_ids allowed, struct rp_ids online, struct rp_idset *ret_wrong,
		  struct rp_idset *ret_awaited);

/*
 * The past of a first configuration: what is remembered of the daemon's former run, and in `busy`
 * what these containers have to themselves as far as the host knows, as there is no ledger to tell.
 * `n` may be the error of listing them, which is returned.
 */
int32_t reserve_first(const struct modhost *h, const rp_ctr *ctrs, int32_t n,
		      const struct reserve_past *remembered, struct reserve_past *ret);

/* cpus and listed as bytes, to be kept by the host and read on the same machine. The size is at
 * most RESERVE_SAVED_MAX. */
#define RESERVE_SAVED_MAX (3 * sizeof(uint32_t) + 2 * sizeof(((struct rp_idset *)0)->w))
uint32_t reserve_save(const struct reserve_past *past, uint8_t ret[RESERVE_SAVED_MAX]);
/* false: nothing that this version wrote; *ret is as it was then. */
bool reserve_load(const void *data, uint32_t size, struct reserve_past *ret);

#endif
