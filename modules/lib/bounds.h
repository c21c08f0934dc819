/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs that a policy may assign to containers: availableResources.cpu and reservedResources.cpu
 * of its section, applied to the online CPUs. */
#ifndef NRI_RP_LIB_BOUNDS_H
#define NRI_RP_LIB_BOUNDS_H

#include <stdbool.h>

#include <nri-rp/lib/cpualloc.h>
#include <nri-rp/lib/reserve.h>
#include <nri-rp/lib/section.h>

/* Rows of a schema for the keys that bounds_read() reads. The caller documents the purpose of the
 * reserved CPUs. */
#define BOUNDS_KEYS(reserved_doc, reserved_cpus_doc)                                               \
	SECTION_MAP("availableResources", "Resources for containers."),                            \
		SECTION_AMOUNT(                                                                    \
			"availableResources.cpu",                                                  \
			"CPUs that containers may use, as a set; by default all online ones."),    \
		SECTION_MAP("reservedResources", (reserved_doc)),                                  \
		SECTION_AMOUNT("reservedResources.cpu", (reserved_cpus_doc))

struct bounds {
	struct rp_idset available; /* online CPUs that containers may use */
	struct rp_idset reserved; /* available CPUs that are reserved */
	struct rp_idset rest; /* available CPUs that are not reserved */
	struct rp_idset listed; /* CPUs that reservedResources.cpu lists, online or not */
};

/*
 * Reads the bounds from a section. `past` is what was reserved before (reserve.h).
 *
 * strict: every reserved CPU must be available, and there must be at least one. Otherwise one
 * available CPU of those to be reserved suffices. Listed CPUs that were reserved before and are
 * offline are no error; neither are missing CPUs with past->hotplug. -RP_EINVAL with the place in
 * the section.
 */
int32_t bounds_read(const struct modhost *h, rp_cfg section, struct cpualloc *a,
		    const struct reserve_past *past, bool strict, struct bounds *ret);

/* Stores the CPUs that these bounds reserve, as `past` of the next bounds_read(). busy: CPUs that
 * belong to containers. */
void bounds_past(const struct bounds *b, struct rp_ids busy, struct reserve_past *ret);

/* Checks that a new plan may follow while the CPUs `taken` are exclusive: none is in `reserved`,
 * all are in `usable`. -RP_EBUSY with a message and the place of the key in the section. */
int32_t bounds_check_owners(const struct modhost *h, rp_cfg section, struct rp_ids taken,
			    struct rp_ids reserved, struct rp_ids usable);

#endif
