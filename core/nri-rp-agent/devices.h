/* SPDX-License-Identifier: Apache-2.0 */
/* What the kubelet says of pods, as the daemon wants it: a resource of a container with the nodes
 * of all its devices. */
#ifndef NRI_RP_AGENT_DEVICES_H
#define NRI_RP_AGENT_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "proto/agent.pb-c.h"

/* Memory that reading one pod may take. */
#define DEVICES_POD_ARENA (64u << 20)

/*
 * The pods of the kubelet's answer to List, or the one of Get, one after the other: fn gets each,
 * valid for the call. An error of fn ends it. -EBADMSG: it makes no sense; -E2BIG: it is over a
 * limit; -ENOMEM.
 */
int devices_each_pod(const uint8_t *data, size_t n,
		     int (*fn)(const Agent__PodDevices *pod, void *arg), void *arg,
		     struct err *err);
static inline bool devices_any(const Agent__PodDevices *pod)
{
	return pod->n_containers > 0;
}

#endif
