/* SPDX-License-Identifier: Apache-2.0 */
/* What nri-rpd says of itself through its control socket, as text for people. */
#ifndef SIM_SHOW_H
#define SIM_SHOW_H

#include "core/nri-rp-sim/sim.h"

/* args: what nri-rpctl would be given, as one text or a list. */
void show_control(struct sim *s, const json_t *args);

#endif
