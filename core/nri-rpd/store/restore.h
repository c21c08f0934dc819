/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_RESTORE_H
#define STORE_RESTORE_H

#include "core/nri-rpd/store/store.h"

/*
 * Ties the store to the cache and fills that with what was found; to be called once, also when
 * nothing was. Containers get RP_CTR_RESTORED, and nothing of their CPUs is checked against the
 * machine. An error (-ENOMEM) leaves a cache with a part of it.
 */
int store_restore(struct store *s, struct cache *cache, struct store_counts *ret, struct err *err);

#endif
