/* SPDX-License-Identifier: Apache-2.0 */
/* Checks steps before anything runs. */
#pragma once

#include "core/nri-rp-sim/sim.h"

/* Checks a step before anything runs: its word, its keys, the syntax of expressions. -EINVAL. */
int step_check(const json_t *step, struct err *err);
