/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU sets of pods (topologyManagerScope: pod). A Guaranteed pod gets one set of as many whole CPUs
 * as it requests, chosen by one topology hint when its first container with exclusive CPUs is
 * placed. Its containers take their exclusive CPUs from the set. Containers that use the pod-level
 * resources share the rest of the set as a group. The set is persisted with the pod and freed when
 * the pod is removed.
 *
 * The pod is registered as owner of the rest of its set (owners.h), so that the policy's shared
 * CPUs never contain it.
 */
#pragma once

#include "modules/static/static.h"

/* Returns the number that stands for a pod as owner of CPUs. */
rp_ctr pod_set_owner(rp_pod pod);
/* Returns the number of the pod's group, derived from the pod's slot in the host's table. */
uint32_t pod_set_group(rp_pod pod);
/*
 * Chooses the pod's set if the scope is pod and the pod has none. Returns 0, or -RP_ENOSPC with the
 * reason in p->text.
 */
int32_t pod_set_ensure(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		       struct placing *p);
/* Returns true if a set was chosen for the pod. */
bool pod_set_exists(const struct rp_instance *inst, rp_pod pod);
/*
 * Chooses n exclusive CPUs from the rest of the pod's set for a container that owns the CPUs `own`.
 * Returns false if the pod has no set or the rest is too small.
 */
bool pod_set_take(struct rp_instance *inst, const struct rp_ctr_info *info, struct rp_ids own,
		  int64_t n, struct placing *p);
/* Returns the rest of the set to *ret; false if it is empty. */
bool pod_set_rest(const struct rp_instance *inst, rp_pod pod, struct rp_idset *ret);
/* Returns released CPUs of the pod's set to the pod. */
void pod_set_return(struct rp_instance *inst, rp_pod pod, struct rp_ids released);
/* Returns true if the container shares the rest of its pod's set, which *ret receives. */
bool pod_set_shares(const struct rp_instance *inst, const struct rp_ctr_info *info,
		    struct rp_idset *ret);
/* Stages a container on the rest of its pod's set. */
int32_t pod_set_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		      struct rp_ids rest);
/* Stages the rest of the set for the pod's containers that share it, except container `except`. */
int32_t pod_set_follow(struct rp_instance *inst, rp_txn txn, rp_pod pod, rp_ctr except);
/* Assigns the CPUs of persisted sets that no container owns to the pods. */
void pod_set_restore(struct rp_instance *inst);
/* Frees the set of a removed pod. Returns true if there was one. */
bool pod_set_free(struct rp_instance *inst, rp_pod pod);
/* Frees the sets of stopped pods, in which no container can be created. Returns true if there were
 * some. */
bool pod_set_free_stopped(struct rp_instance *inst);
/* Calls `each` for all pods that are not stopped, or for all that are. Returns the number of calls
 * that returned true. */
uint32_t pod_set_each_pod(struct rp_instance *inst, bool stopped,
			  bool (*each)(struct rp_instance *inst, rp_pod pod));
