/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement of all containers: after a start, a new configuration or a lost state, and retries of
 * containers that could not be placed as requested.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/topology-aware/plan.h"

/* Clears the ledger, places all containers and stages them. */
int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* Places overflowed and misplaced containers again after CPUs became free. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn);
