/* SPDX-License-Identifier: Apache-2.0 */
/* Calculates shares, quota and other values from requests and limits, as the kubelet does. */
#pragma once

#include "core/nri-rp-sim/sim.h"

/* Parses {cpu, memory, requests, limits}; missing keys leave *ret unchanged. */
int kubelet_wants(const json_t *spec, struct wants *ret, struct err *err);
/* Returns the QoS class of a pod with these containers. */
enum qos kubelet_qos(const struct wants *wants, size_t n);
/* Computes a pod's resources: the sum of its containers, or the largest init container. The pod has
 * a limit only if all containers have one. */
void kubelet_sum(const struct wants *wants, const bool *init, size_t n, struct wants *ret);
const char *kubelet_qos_name(enum qos qos);
/* Applies a pod's own resources (spec.resources): they replace the sums, and become limits of
 * containers without limits. */
void kubelet_put_own(const struct wants *own, struct wants *sums);
void kubelet_hand_down(const struct wants *own, struct wants *ctr);
int64_t kubelet_shares(const struct wants *w);
/* Returns the CFS quota for a container, as the kubelet calculates it; 0: none. */
int64_t kubelet_quota(const struct wants *w);
int64_t kubelet_oom_score_adj(const struct wants *w, enum qos qos, bool critical, int64_t capacity);
#define KUBELET_PERIOD 100000
/* Returns malloc'd paths; NULL: out of memory. */
char *kubelet_cgroup_parent(enum sim_cgroups driver, enum qos qos, const char *uid);
char *kubelet_cgroups_path(enum sim_cgroups driver, enum sim_runtime runtime, const char *parent,
			   const char *id);
