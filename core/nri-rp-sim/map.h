/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine map (term/cpumap.h) of what the runtime and the kernel have, and below it where
 * each container is. Containers that have the same CPUs share a letter.
 */
#ifndef SIM_MAP_H
#define SIM_MAP_H

#include "core/nri-rp-sim/sim.h"
#include "core/lib/term/out.h"

#define MAP_WIDTH_MIN 40u

/* Standard output, with a width even where that has no end. */
void map_terminal(struct term *ret);
/* before is what map_remember gave earlier, or NULL: who has moved since is marked. */
void map_draw(const struct sim *s, const json_t *before, struct out *o);
/* Where everybody is now, a new reference. */
json_t *map_remember(const struct sim *s);

#endif
