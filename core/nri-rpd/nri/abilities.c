/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the abilities of a runtime from the name and version that it reports. */
#include <stdio.h>

#include "core/nri-rpd/nri/internal.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/nri/abilities.h"

#define AS_EVER (RP_RUNTIME_CAN_REFUSE | RP_RUNTIME_CAN_INJECT)
#define NRI_0_11                                                                                   \
	(RP_RUNTIME_CAN_CDI | RP_RUNTIME_CAN_ARGS | RP_RUNTIME_CAN_SCHEDULE | RP_RUNTIME_CAN_RDT)

/* Releases that extended NRI support; the latest release of each runtime first. */
static const struct release {
	const char *name;
	unsigned major, minor, patch;
	uint32_t more;
} releases[] = {
	{"containerd", 2, 2, 1, NRI_0_11},
	{"containerd", 2, 2, 0, RP_RUNTIME_CAN_CDI | RP_RUNTIME_CAN_ARGS},
	{"containerd", 1, 7, 26, RP_RUNTIME_CAN_CDI},
	{"cri-o", 1, 35, 0, NRI_0_11},
	{"cri-o", 1, 34, 0, RP_RUNTIME_CAN_CDI | RP_RUNTIME_CAN_ARGS},
	{"cri-o", 1, 32, 0, RP_RUNTIME_CAN_CDI},
};

static bool at_least(const char *version, const struct release *r)
{
	unsigned v[3] = {0, 0, 0};
	if (sscanf(version + (*version == 'v'), "%5u.%5u.%5u", &v[0], &v[1], &v[2]) < 2)
		return false;
	if (v[0] != r->major)
		return v[0] > r->major;
	return v[1] != r->minor ? v[1] > r->minor : v[2] >= r->patch;
}

/* Returns the abilities of a runtime, RP_RUNTIME_…. nri-rp-bridge states its mode by its name. A
 * runtime reports NRI's version from 0.12 on. */
uint32_t runtime_flags(const char *name, const char *version, const char *nri_version)
{
	if (str_eq(name, "nri-rp-bridge/cgroups"))
		return RP_RUNTIME_CREATION_IS_LATE;
	if (str_eq(name, "nri-rp-bridge/cri"))
		return AS_EVER | RP_RUNTIME_CAN_SWAP;
	if (*nri_version)
		return AS_EVER | NRI_0_11 | RP_RUNTIME_CAN_MEMPOLICY;
	for (unsigned i = 0; i < sizeof releases / sizeof *releases; i++)
		if (str_eq(name, releases[i].name) && at_least(version, &releases[i]))
			return AS_EVER | releases[i].more;
	return AS_EVER;
}

bool runtime_has_pod_updates(const struct runtime_facts *facts, const char *nri_version)
{
	/* Both came with NRI 0.10. */
	return *nri_version || (facts->flags & RP_RUNTIME_CAN_ARGS);
}
