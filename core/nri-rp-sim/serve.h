/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SERVE_H
#define SIM_SERVE_H

#include "core/nri-rp-sim/sim.h"

/* Commands on standard input, a JSON object a line, until it ends; results and events on standard
 * output. The exit status. */
int serve(const struct sim_options *options);
/* Plays scenario files; the exit status. */
int play(const struct sim_options *options, char *const *files, int n_files);

#endif
