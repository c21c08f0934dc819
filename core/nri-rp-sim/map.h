/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine map: packages, memory nodes, cores, and on each CPU the letter of who runs there,
 * which mean what they do in nri-rpctl's map: capitals are CPUs of one container alone, small
 * letters are shared ones. Containers that have the same CPUs share a letter; "*" is a CPU of
 * several groups, "." one of nobody, "x" one that is offline.
 */
#ifndef SIM_MAP_H
#define SIM_MAP_H

#include "core/nri-rp-sim/sim.h"
#include "core/util/buf.h"

#define MAP_WIDTH_MIN 40u

struct map_style {
	unsigned width; /* columns */
	bool colour;
};

/* For standard output. */
struct map_style map_style_of_terminal(void);
/* before is what map_remember gave earlier, or NULL: who has moved since is marked. */
void map_draw(const struct sim *s, struct map_style style, const json_t *before, struct buf *out);
/* Where everybody is now, a new reference. */
json_t *map_remember(const struct sim *s);

#endif
