/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs that a container had before its policy first placed it: assigned by another policy, the
 * kubelet or a previous run. */
#pragma once

#include <nri-rp/lib/host.h>

/* Returns the CPUs on which the container runs, whichever component assigned them: the CPUs decided
 * earlier, else the CPUs that the runtime reports. Valid as long as the sets of `info`. */
struct rp_ids adopt_cpus(const struct rp_ctr_info *info);
/* Stores the CPUs that are in the sets of at least two of these containers, which therefore cannot
 * be exclusive. Errors are as of get_ctr. */
int32_t adopt_common(const struct modhost *h, const rp_ctr *ctrs, uint32_t n, struct rp_idset *ret);
