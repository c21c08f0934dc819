/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of resource plugins (proto/resourceplugin.proto): what they are asked, and what they
 * answer, as the daemon wants it. A plugin is anybody's program: of an answer that breaks a limit
 * or makes no sense nothing is taken, and err says what is wrong with it.
 */
#ifndef NRI_RP_AGENT_PLUGINMSG_H
#define NRI_RP_AGENT_PLUGINMSG_H

#include "core/lib/util/grants.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "proto/agent.pb-c.h"
#include "proto/resourceplugin.pb-c.h"

/* Packed bytes in an arena. */
struct packed {
	const uint8_t *data;
	size_t n;
};

/* Grants of one pod, in an arena. */
struct grant_list {
	Grants__Grant *list[GRANTS_MAX];
	uint32_t n;
};

/* A ResourceRequest for what a container wants, or a PodResourceRequest for what a pod as a whole
 * wants. -ENOMEM. */
int pluginmsg_request(struct arena *a, const Agent__PluginRequest *pod, const Agent__Wanted *w,
		      struct packed *ret);
/* An answer to that: of GetTopologyHints or GetPodTopologyHints. -EBADMSG, -EINVAL, -E2BIG,
 * -ENOMEM. */
int pluginmsg_hints(struct arena *a, const struct packed *answer, const Agent__PluginRequest *pod,
		    const Agent__Wanted *w, Agent__Hints *ret, struct err *err);
/* Of Allocate or AllocateForPod: one grant for each resource in it, appended. */
int pluginmsg_grants(struct arena *a, const struct packed *answer, const Agent__PluginRequest *pod,
		     const Agent__Wanted *w, struct grant_list *to, struct err *err);
/* Of GetResourcesAllocation. */
int pluginmsg_pods(struct arena *a, const struct packed *answer, const char *resource,
		   Agent__CheckPodsRequest *ret, struct err *err);

int pluginmsg_pack(struct arena *a, const ProtobufCMessage *m, struct packed *ret);
int pluginmsg_pack_grants(struct arena *a, const struct grant_list *list, struct packed *ret);

#endif
