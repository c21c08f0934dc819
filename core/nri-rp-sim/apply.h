/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plugin answers, taken over into the model as NRI and the runtime do it, and judged on the
 * way: what a runtime refuses, and what one silently ignores, are problems (sim_problem).
 */
#ifndef SIM_APPLY_H
#define SIM_APPLY_H

#include "core/nri-rp-sim/sim.h"
#include "proto/nri.pb-c.h"

/* Updates of other containers, then the adjustment. An error fails the creation. */
int apply_creation(struct sim *s, struct sim_ctr *ctr, const Nri__CreateContainerResponse *m,
		   struct err *err);
/* Updates of others, then the kubelet's request with the plugin's update of the container over it.
 * An error fails the update. */
int apply_resize(struct sim *s, struct sim_ctr *ctr, const struct resources *wanted,
		 const Nri__UpdateContainerResponse *m, struct err *err);
/* A list of updates; via is for the record. The number that failed and may not. */
unsigned apply_updates(struct sim *s, Nri__ContainerUpdate **list, size_t n, const char *via);

/* ---- check.c --------------------------------------------------------------------------------- */

/* The text of every field is UTF-8, and there is no field that the release does not know: else Go
 * refuses or drops it. */
int check_message(struct sim *s, const ProtobufCMessage *m, const char *what);
/* Nothing is claimed twice: by two entries of a map, or two updates of one container. -EINVAL with
 * what NRI says. */
int check_adjustment(struct sim *s, const Nri__ContainerAdjustment *m, struct err *err);
int check_claims(struct sim *s, Nri__ContainerUpdate *const *list, size_t n, struct err *err);
/* What a kernel takes: CPUs that are online, memory nodes with memory. "" is fine. */
int check_sets(const struct sim *s, const char *cpus, const char *mems, struct err *err);
/* What no runtime takes over from an update. */
void check_ignored(struct sim *s, const Nri__LinuxResources *m, bool update, const char *whose);

#endif
