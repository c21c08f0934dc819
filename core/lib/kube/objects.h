/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts objects of Kubernetes to messages of proto/agent.proto, in an arena. Malformed parts of
 * an object are left out. Functions without a result leave out what exceeds the memory, too, which
 * arena_failed() tells.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "core/lib/util/arena.h"
#include "proto/agent.pb-c.h"

/* Returns a copy of a text in an object, or "". NULL: out of memory. */
char *kube_text(struct arena *a, const json_t *object, const char *key);
/* Reads a map of texts. */
void kube_pairs(struct arena *a, json_t *map, Agent__Pair ***ret, size_t *ret_n);
/* Reads a map of amounts: CPU in milli-CPU, all other resources in units. */
void kube_amounts(struct arena *a, json_t *map, Agent__Amount ***ret, size_t *ret_n);
/* Converts a pod. `whole`: with the attributes that a runtime has, too: labels, annotations, and
 * the ids of its containers. -EINVAL: no name or no UID; -ENOMEM. */
int kube_pod(struct arena *a, const json_t *pod, bool whole, Agent__FedPod *ret);
