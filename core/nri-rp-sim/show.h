/* SPDX-License-Identifier: Apache-2.0 */
/* Prints data from nri-rpd's control socket for people. */
#ifndef SIM_SHOW_H
#define SIM_SHOW_H

#include "core/nri-rp-sim/sim.h"

/* args: arguments of nri-rpctl, as one text or a list. */
void show_control(struct sim *s, const json_t *args);

#endif
