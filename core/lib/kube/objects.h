/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts objects of Kubernetes to messages of proto/agent.proto, in an arena. Malformed parts of
 * an object are left out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "core/lib/util/arena.h"
#include "proto/agent.pb-c.h"

/* Reads a map of texts. -ENOMEM. */
int kube_pairs(struct arena *a, json_t *map, Agent__Pair ***ret, size_t *ret_n);
/* Reads a map of amounts: CPU in milli-CPU, all other resources in units. -ENOMEM. */
int kube_amounts(struct arena *a, json_t *map, Agent__Amount ***ret, size_t *ret_n);
/* Converts a pod. `whole`: with the attributes that a runtime has, too: labels, annotations, and
 * the ids of its containers. -EINVAL: no name or no UID; -ENOMEM. */
int kube_pod(struct arena *a, const json_t *pod, bool whole, Agent__FedPod *ret);
