/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the model to NRI messages in an arena, with the labels and annotations that the
 * simulated runtime adds. NULL: out of memory. */
#pragma once

#include "core/nri-rp-sim/sim.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/pb.h"
#include "proto/nri.pb-c.h"

Nri__PodSandbox *message_pod(const struct sim *s, struct arena *a, const struct sim_pod *p);
Nri__Container *message_ctr(const struct sim *s, struct arena *a, const struct sim_ctr *c);
/* Converts resources. update: all fields are set, a missing limit as 0, as the kubelet sends
 * updates. */
Nri__LinuxResources *message_resources(struct arena *a, const struct resources *res, bool update);
