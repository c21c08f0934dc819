/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and containers of the node. */
#pragma once

#include "core/nri-rp-sim/sim.h"

struct sim_pod *model_find_pod(const struct sim *s, const char *name); /* NAME or NAMESPACE/NAME */
/* Checks the keys of a pod and its containers. more: further keys allowed for the pod; "": none. */
int model_check_pod(const json_t *spec, const char *more, struct err *err);
/* Finds a container by ID, CONTAINER, POD/CONTAINER or NAMESPACE/POD/CONTAINER. Of several the
 * latest is returned; exited containers only if no other matches. */
struct sim_ctr *model_find_ctr(const struct sim *s, const char *name);
struct sim_ctr *model_ctr_of_id(const struct sim *s, const char *id);
/* Creates a pod from {pod, namespace, uid, labels, annotations, …}, without its containers. */
int model_new_pod(struct sim *s, const json_t *spec, struct sim_pod **ret, struct err *err);
int model_new_ctr(struct sim *s, struct sim_pod *pod, const json_t *spec, struct sim_ctr **ret,
		  struct err *err);
void model_free_pod(struct sim *s, struct sim_pod *pod); /* frees its containers, too */
void model_free_ctr(struct sim *s, struct sim_ctr *ctr);
/* Writes "namespace/pod/container", or "pod/container" in the default namespace, to buf and returns
 * buf. */
#define MODEL_NAME_MAX 512
const char *model_name(const struct sim_ctr *ctr, char buf[MODEL_NAME_MAX]);
/* Returns the CPUs or memory nodes that the container may use: all online ones if none are set. */
void model_cpus(const struct sim *s, const struct sim_ctr *ctr, struct rp_idset *ret);
void model_mems(const struct sim *s, const struct sim_ctr *ctr, struct rp_idset *ret);
/* Describes a container in results. */
json_t *model_describe(const struct sim *s, const struct sim_ctr *ctr);
const char *model_state_name(enum ctr_state state);
