/* SPDX-License-Identifier: Apache-2.0 */
/* Plays scenario files. */
#pragma once

#include "core/nri-rp-sim/sim.h"

/* Plays scenario files and returns the exit status. */
int play(const struct sim_options *options, char *const *files, int n_files);
