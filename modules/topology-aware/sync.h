/* SPDX-License-Identifier: Apache-2.0 */
/* Everything at once. */
#ifndef TOPOLOGY_AWARE_SYNC_H
#define TOPOLOGY_AWARE_SYNC_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/topology-aware/plan.h"

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* After CPUs came free: places those that had to make do with something else. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn);

#endif
