/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the machine map (core/lib/term/cpumap.h) with the placements of the runtime and the kernel,
 * and lists the place of each container below it. Containers with the same CPUs share a letter, a
 * capital one if nri-rpd says that the CPUs are exclusive.
 */
#pragma once

#include "core/nri-rp-sim/sim.h"
#include "core/lib/term/out.h"

#define MAP_WIDTH_MIN 40u

/* Initialises standard output, with a default width if it is not a terminal. */
void map_terminal(struct term *ret);
/* Draws the map. before: result of an earlier map_remember, to mark moved containers; NULL:
 * none. */
void map_draw(struct sim *s, const json_t *before, struct out *o);
/* Returns the present places of all containers, a new reference. */
json_t *map_remember(const struct sim *s);
