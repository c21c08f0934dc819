/* SPDX-License-Identifier: Apache-2.0 */
/* What of root's rights a process keeps, whoever starts it. */
#ifndef UTIL_PRIVILEGES_H
#define UTIL_PRIVILEGES_H

#include <linux/capability.h>
#include <stdint.h>

#include "core/lib/util/err.h"

#define PRIVILEGE(cap) (UINT64_C(1) << (cap))

/*
 * Gives up every capability but those in `keep`, a sum of PRIVILEGE(), for this process and all
 * that it starts, and with them the right to get any back. Before the first thread. Does nothing
 * where there is nothing to give up, as in the shipped units.
 */
int privileges_drop(uint64_t keep, struct err *err);

#endif
