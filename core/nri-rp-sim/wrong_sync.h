/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime that lies: what it says exists when a plugin comes is not what there is, or the line
 * ends in the middle. What the plugin then decides is done as ever; whoever asked for the lie has
 * to know what may come of it.
 */
#ifndef SIM_LIE_H
#define SIM_LIE_H

#include "core/nri-rp-sim/sim.h"
#include "core/lib/nri-runtime/runtime.h"

/* From now on this, a map that nri-rp-sim(1) describes; an empty one: the truth. -EINVAL. */
int lie_set(struct sim *s, const json_t *args, struct err *err);
/* The lists of a Synchronize, with room for `more` of each. -ENOMEM. */
int lie_tell(const struct sim *s, struct arena *a, struct nri_existing *all);
size_t lie_more(const struct sim *s);
/* After so many bytes to the plugin the line ends; UINT64_MAX: it does not. It happens once. */
uint64_t lie_cut(struct sim *s);

#endif
