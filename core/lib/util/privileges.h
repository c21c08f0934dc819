/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the privileges of root that a process keeps, however it was started. */
#pragma once

#include <linux/capability.h>
#include <stdint.h>

#include "core/lib/util/err.h"

#define PRIVILEGE(cap) (UINT64_C(1) << (cap))

/*
 * Drops every capability except those in `keep`, a sum of PRIVILEGE(), for this process and all
 * that it starts, and the right to regain any. Call it before the first thread. Without
 * capabilities, as in the shipped units, it has no effect.
 */
int privileges_drop(uint64_t keep, struct err *err);
