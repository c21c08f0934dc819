/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the served pod-resources API (proto/podresources.proto). Joins the daemon's
 * allocations and the kubelet's devices by namespace, pod and container. Pods that only the kubelet
 * lists are included with their devices, because programs that count devices must not miss any. An
 * invalid answer is rejected as a whole, and err says why.
 */
#pragma once

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "proto/agent.pb-c.h"
#include "proto/podresources.pb-c.h"

struct listmsg_bytes {
	const uint8_t *data;
	size_t n;
};

/*
 * Joins the answers about pods. daemon: an AllocationsResponse; kubelet: its answer to List, NULL:
 * not asked. ns and name: only this pod, or NULL for all. The result is in the arena and refers to
 * both answers. -EBADMSG, -E2BIG, -ENOMEM.
 */
int listmsg_pods(struct arena *a, const struct listmsg_bytes *daemon,
		 const struct listmsg_bytes *kubelet, const char *ns, const char *name,
		 Podresources__ServedList *ret, struct err *err);
/* Joins the answers about the node. daemon: an AllocatableResponse; kubelet: its answer to
 * GetAllocatableResources. */
int listmsg_allocatable(struct arena *a, const struct listmsg_bytes *daemon,
			const struct listmsg_bytes *kubelet, Podresources__ServedAllocatable *ret,
			struct err *err);
