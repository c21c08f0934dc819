/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs a policy may give to containers: availableResources.cpu and reservedResources.cpu of
 * its section, on the machine as it is. */
#ifndef NRI_RP_LIB_BOUNDS_H
#define NRI_RP_LIB_BOUNDS_H

#include <stdbool.h>

#include "modules/lib/cpualloc.h"
#include "modules/lib/reserve.h"

/* Rows of a schema for what bounds_read() reads; what reserved CPUs are for is the policy's to
 * say. */
#define BOUNDS_KEYS(reserved_doc, reserved_cpus_doc)                                               \
	{.path = "availableResources", .type = RP_T_MAP, .doc = "What containers may use."},       \
		{.path = "availableResources.cpu",                                                 \
		 .type = RP_T_AMOUNT,                                                              \
		 .doc = "CPUs that containers may use, as a set; by default all online ones."},    \
		{.path = "reservedResources", .type = RP_T_MAP, .doc = (reserved_doc)},            \
	{                                                                                          \
		.path = "reservedResources.cpu", .type = RP_T_AMOUNT, .doc = (reserved_cpus_doc)   \
	}

struct bounds {
	struct rp_idset available; /* online ones */
	struct rp_idset reserved; /* of these */
	struct rp_idset rest; /* available, but not reserved */
	struct rp_idset listed; /* named by reservedResources.cpu, online or not */
};

/*
 * `past`: what was reserved before (reserve.h). strict: each CPU that is to be reserved has to be
 * available, and one has to be; else it is enough that one of those to be reserved is. Listed CPUs
 * that were reserved before and are offline are awaited, and missing CPUs are no error with
 * past->hotplug. -RP_EINVAL with the place in the section.
 */
int32_t bounds_read(const struct modhost *h, rp_cfg section, struct cpualloc *a,
		    const struct reserve_past *past, bool strict, struct bounds *ret);

/* Returns the past for the next bounds_read(). busy: CPUs that belong to containers. */
void bounds_past(const struct bounds *b, struct rp_ids busy, struct reserve_past *ret);

#endif
