/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHE_INVARIANT_H
#define CACHE_INVARIANT_H

#include "core/nri-rpd/cache/txn.h"

/* 0, or -EINVAL with the broken invariant, the containers and the CPUs named. May be called again
 * after more was staged. */
int txn_check(struct txn *t, const struct invariants *inv, struct err *err);

#endif
