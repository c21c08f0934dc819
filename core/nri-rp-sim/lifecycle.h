/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates, changes and removes pods and containers as the kubelet requests it: sends the events
 * that the runtime sends to a plugin, and handles refusals as each runtime does. Results are added
 * to a map.
 */
#pragma once

#include "core/nri-rp-sim/sim.h"

/*
 * Creates a pod with its containers, or more containers in an existing pod. -EPERM: the plugin has
 * refused one; err has its text. Containers created before the refused one remain.
 */
int lifecycle_create(struct sim *s, const json_t *spec, json_t *result, struct err *err);
/* Adds a pod that existed before the plugin connected. The plugin gets no request for it. */
int lifecycle_adopt(struct sim *s, const json_t *spec, struct err *err);
int lifecycle_delete(struct sim *s, struct sim_pod *pod, struct err *err);
void lifecycle_exit(struct sim *s, struct sim_ctr *ctr, int exit_code);
void lifecycle_remove(struct sim *s, struct sim_ctr *ctr);
/* Resizes a container in place. -EPERM: refused; the container is unchanged. */
int lifecycle_resize(struct sim *s, struct sim_ctr *ctr, const json_t *spec, struct err *err);
/* Resizes a pod's own resources in place, then its containers without limits. */
int lifecycle_resize_pod(struct sim *s, struct sim_pod *pod, const json_t *spec, struct err *err);
/* Creates a container again without events for the previous one, as a runtime that has crashed. */
int lifecycle_replace(struct sim *s, struct sim_ctr *ctr, struct err *err);
