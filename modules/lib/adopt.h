/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs that a container had before its policy looked at it: given by another policy, the kubelet or
 * a former run. */
#ifndef NRI_RP_LIB_ADOPT_H
#define NRI_RP_LIB_ADOPT_H

#include "modules/lib/host.h"

/* Where it runs, by whoever said so. As long-lived as the info's sets. */
struct rp_ids adopt_cpus(const struct rp_ctr_info *info);
/* CPUs that are in the sets of several of these containers: nobody has those to itself, whoever
 * gave them. Errors of get_ctr. */
int32_t adopt_common(const struct modhost *h, const rp_ctr *ctrs, uint32_t n, struct rp_idset *ret);

#endif
