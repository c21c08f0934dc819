/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes Synchronize wrong on purpose: its lists differ from the model, or the connection ends in
 * the middle. The plugin's decisions are applied as usual, so a scenario must expect the
 * consequences.
 */
#pragma once

#include "core/nri-rp-sim/sim.h"
#include "core/lib/nri-runtime/runtime.h"

/* Sets the deviations, a map described in nri-rp-sim(1); empty: none. -EINVAL. */
int lie_set(struct sim *s, const json_t *args, struct err *err);
/* Changes the lists of a Synchronize, whose arrays have room for lie_more() additional items.
 * -ENOMEM. */
int lie_tell(const struct sim *s, struct arena *a, struct nri_existing *all);
size_t lie_more(const struct sim *s);
/* Returns the number of bytes to the plugin after which the connection ends, once; UINT64_MAX: it
 * does not end. */
uint64_t lie_cut(struct sim *s);
