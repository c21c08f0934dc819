/* SPDX-License-Identifier: Apache-2.0 */
/* Prints data from nri-rpd's control socket for people. */
#pragma once

#include "core/nri-rp-sim/sim.h"

/* Shows a control step as the command line of nri-rpctl; args: one text or a list. */
void show_control(struct sim *s, const json_t *args);
