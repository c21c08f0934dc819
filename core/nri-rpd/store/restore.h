/* SPDX-License-Identifier: Apache-2.0 */
/* Restores the cache from the log of a previous run. */
#pragma once

#include "core/nri-rpd/store/store.h"

/*
 * Connects the store with the cache and restores the log of a previous run, if there is one. Call
 * it once, also without a log. Restored containers have RP_CTR_RESTORED, and their CPUs are not
 * checked against the topology. After an error (-ENOMEM) the cache is partly filled.
 */
int store_restore(struct store *s, struct cache *cache, struct store_counts *ret, struct err *err);
