/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of Kubernetes as messages of proto/agent.proto, out of an arena. What makes no sense in
 * an object is left out.
 */
#ifndef KUBE_OBJECTS_H
#define KUBE_OBJECTS_H

#include <jansson.h>
#include <stdbool.h>

#include "core/lib/util/arena.h"
#include "proto/agent.pb-c.h"

/* Reads a map of texts. -ENOMEM. */
int kube_pairs(struct arena *a, json_t *map, Agent__Pair ***ret, size_t *ret_n);
/* Reads a map of amounts: CPU in milli, everything else in units. -ENOMEM. */
int kube_amounts(struct arena *a, json_t *map, Agent__Amount ***ret, size_t *ret_n);
/* `whole`: with what a runtime knows of a pod: labels, annotations, and the ids of its containers.
 * -EINVAL: it has no name or no UID; -ENOMEM. */
int kube_pod(struct arena *a, const json_t *pod, bool whole, Agent__FedPod *ret);

#endif
