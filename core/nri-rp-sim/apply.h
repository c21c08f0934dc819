/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the answers of a plugin to the model as NRI and the runtime do. Reports as problems
 * (sim_problem) what a runtime would refuse or silently ignore.
 */
#pragma once

#include "core/nri-rp-sim/sim.h"
#include "proto/nri.pb-c.h"

/* Applies the updates of other containers, then the adjustment. An error fails the creation. */
int apply_creation(struct sim *s, struct sim_ctr *ctr, const Nri__CreateContainerResponse *m,
		   struct err *err);
/* Applies the updates of other containers, then the kubelet's request overwritten by the plugin's
 * update of the container. An error fails the update. */
int apply_resize(struct sim *s, struct sim_ctr *ctr, const struct resources *wanted,
		 const Nri__UpdateContainerResponse *m, struct err *err);
/* Applies a list of updates; `via` is stored in the records. Returns the number of failures,
 * without those that the plugin allows (ignore_failure). */
unsigned apply_updates(struct sim *s, Nri__ContainerUpdate **list, size_t n, const char *via);
