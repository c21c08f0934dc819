/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/nri-rp-sim/sim.h"

/* Reads commands from standard input, a JSON object a line, until its end; writes results and
 * events to standard output. Returns the exit status. */
int serve(const struct sim_options *options);
