/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods and containers come, change and go: the requests of the kubelet, what they make the runtime
 * tell the plugin, and what each runtime does when the plugin refuses. Results are added to a map.
 */
#ifndef SIM_LIFECYCLE_H
#define SIM_LIFECYCLE_H

#include "core/nri-rp-sim/sim.h"

/*
 * A pod with its containers, or more containers for a pod that is there. -EPERM: the plugin
 * refused, err has its words; those containers before the refused one stay.
 */
int lifecycle_create(struct sim *s, const json_t *spec, json_t *result, struct err *err);
/* A pod that was there before anybody listened: nobody is asked. */
int lifecycle_adopt(struct sim *s, const json_t *spec, struct err *err);
int lifecycle_delete(struct sim *s, struct sim_pod *pod, struct err *err);
void lifecycle_exit(struct sim *s, struct sim_ctr *ctr, int exit_code);
void lifecycle_remove(struct sim *s, struct sim_ctr *ctr);
/* In-place resize. -EPERM: refused, everything is as it was. */
int lifecycle_resize(struct sim *s, struct sim_ctr *ctr, const json_t *spec, struct err *err);
/* In-place resize of a pod's own resources, then of its containers without a limit. */
int lifecycle_resize_pod(struct sim *s, struct sim_pod *pod, const json_t *spec, struct err *err);
/* As a runtime that has crashed: the container is made again, and nobody is told of the one
 * before. */
int lifecycle_replace(struct sim *s, struct sim_ctr *ctr, struct err *err);

#endif
