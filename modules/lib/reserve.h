/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserved CPUs over time. Reserved CPUs stay the same over restarts, reloads and CPUs that go
 * offline. For a quantity, only missing CPUs are replaced. For a list that was active before,
 * offline CPUs are awaited.
 */
#ifndef NRI_RP_LIB_RESERVE_H
#define NRI_RP_LIB_RESERVE_H

#include <stdbool.h>

#include <nri-rp/lib/host.h>

/* The state before the next configuration. All zeros: none. */
struct reserve_past {
	struct rp_idset cpus; /* reserved by a quantity; empty: none */
	struct rp_idset listed; /* named by the configuration, offline or not */
	struct rp_idset busy; /* CPUs of containers, which are avoided */
	bool hotplug; /* the machine has changed, the configuration has not */
};

/* Determines, for a quantity of n CPUs of `from`, the CPUs to keep and the CPUs from which to
 * choose the others. Returns the number still to choose. */
uint32_t reserve_quantity(const struct reserve_past *past, struct rp_ids from, struct rp_ids online,
			  uint32_t n, struct rp_idset *ret_kept, struct rp_idset *ret_others);
/*
 * Divides the CPUs of a list that are not `allowed` into those that are an error and those that are
 * awaited. Logs a warning about awaited ones unless there is an error. Both sets may be empty.
 */
void reserve_list(const struct modhost *h, const struct reserve_past *past, struct rp_ids listed,
		  struct rp_ids allowed, struct rp_ids online, struct rp_idset *ret_wrong,
		  struct rp_idset *ret_awaited);

/*
 * Stores the past of the first configuration: the saved state of the previous run, and in `busy`
 * the CPUs that these containers own as far as the host knows, since no ledger exists yet. `n` may
 * be the error of listing the containers, which is returned.
 */
int32_t reserve_first(const struct modhost *h, const rp_ctr *ctrs, int32_t n,
		      const struct reserve_past *remembered, struct reserve_past *ret);

/* Writes cpus and listed as bytes, which the host saves for a later run on this machine. Returns
 * their number, at most RESERVE_SAVED_MAX. */
#define RESERVE_SAVED_MAX (3 * sizeof(uint32_t) + 2 * sizeof(((struct rp_idset *)0)->w))
uint32_t reserve_save(const struct reserve_past *past, uint8_t ret[RESERVE_SAVED_MAX]);
/* Reads the bytes of reserve_save(). False: not of this version; *ret is unchanged. */
bool reserve_load(const void *data, uint32_t size, struct reserve_past *ret);

#endif
