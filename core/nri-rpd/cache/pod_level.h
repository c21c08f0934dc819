/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pod-level resources (spec.resources of a pod): determines which CPU and memory amounts are a
 * container's own. The kubelet passes the pod's limit to containers without a limit, so the
 * runtime's values alone would count the pod's amount for each of them.
 *
 * The pod feed has the exact amounts (feed.h). Without the feed they are derived from the pod's
 * values that NRI sends with its sandbox. This file does not place anything.
 */
#pragma once

#include "core/nri-rpd/cache/cache.h"

/*
 * Removes amounts from ctr->wanted that belong to the pod, judged by the values of the pod's
 * sandbox and of its other live containers, and sets RP_CTR_POD_RESOURCES then. On entry
 * ctr->wanted has the needs derived from the runtime's values.
 */
void pod_level_amend(struct ctr *ctr);
/* Returns the pod's own amounts, of the pod feed or of the sandbox; NULL: none are known. */
const struct needs *pod_level_own(const struct cache *c, const struct pod *pod);
/* Resets amounts to 0 that the container did not have itself before a resize (`had`). */
void pod_level_keep(struct ctr *ctr, const struct needs *had);
