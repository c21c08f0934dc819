/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the kubelet's data about pods for the daemon: for each resource of a container the nodes
 * of its devices, and the devices of its claims. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "proto/agent.pb-c.h"

/* Memory limit for reading one pod. */
#define DEVICES_POD_ARENA (64u << 20)

/*
 * Calls fn for each pod of the kubelet's answer to List, or for the one of Get; the pod is valid
 * during the call. claims: include the devices of claims, whose places are not known yet. An error
 * of fn ends the iteration. -EBADMSG: invalid answer; -E2BIG: a limit is exceeded; -ENOMEM.
 */
int devices_each_pod(const uint8_t *data, size_t n, bool claims,
		     int (*fn)(const Agent__PodDevices *pod, void *arg), void *arg,
		     struct err *err);
static inline bool devices_any(const Agent__PodDevices *pod)
{
	return pod->n_containers > 0;
}
