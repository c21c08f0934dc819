/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of the pod-resources API that is served (proto/podresources.proto): what the daemon
 * says of containers, and the devices that the kubelet says they have, put together by namespace,
 * pod and container. What only the kubelet has is there as well, with its devices alone: whoever
 * counts devices must not miss one. Of what makes no sense nothing is taken, and err says what.
 */
#ifndef NRI_RP_AGENT_LISTMSG_H
#define NRI_RP_AGENT_LISTMSG_H

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "proto/agent.pb-c.h"
#include "proto/podresources.pb-c.h"

struct listmsg_bytes {
	const uint8_t *data;
	size_t n;
};

/*
 * daemon: an AllocationsResponse; kubelet: its answer to List, NULL: it was not asked. ns and name:
 * that pod alone, or NULL. Out of the arena, but for what lies in the answers. -EBADMSG, -E2BIG,
 * -ENOMEM.
 */
int listmsg_pods(struct arena *a, const struct listmsg_bytes *daemon,
		 const struct listmsg_bytes *kubelet, const char *ns, const char *name,
		 Podresources__ServedList *ret, struct err *err);
/* daemon: an AllocatableResponse; kubelet: its answer to GetAllocatableResources. */
int listmsg_allocatable(struct arena *a, const struct listmsg_bytes *daemon,
			const struct listmsg_bytes *kubelet, Podresources__ServedAllocatable *ret,
			struct err *err);

#endif
