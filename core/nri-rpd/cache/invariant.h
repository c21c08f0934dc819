/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants that every decision has to keep, whatever a policy stages. */
#pragma once

#include "core/nri-rpd/cache/txn.h"

/* Checks the staged decisions. Returns 0, or -EINVAL with a text that names the invariant, the
 * containers and the CPUs. May be called again after further stages. */
int txn_check(struct txn *t, const struct invariants *inv, struct err *err);
