/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods with resources of their own (spec.resources of a pod): which CPU and memory amounts belong
 * to a container itself. The kubelet hands the pod's limit down to containers without a limit, so
 * the runtime's values alone promise the pod's amount to each of them.
 *
 * The pod feed has the exact amounts (feed.h). Without it they follow from the pod's values that
 * NRI sends with its sandbox. This file does not place anything.
 */
#ifndef CACHE_POD_LEVEL_H
#define CACHE_POD_LEVEL_H

#include "core/nri-rpd/cache/cache.h"

/*
 * Takes amounts out of ctr->wanted that belong to the pod, by the values of the pod's sandbox and
 * of the live containers beside it, and sets RP_CTR_POD_RESOURCES then. ctr->wanted has the needs
 * that follow from the runtime's values.
 */
void pod_level_amend(struct ctr *ctr);
/* Keeps amounts at 0 that the container did not have itself before a resize (`had`). */
void pod_level_keep(struct ctr *ctr, const struct needs *had);

#endif
