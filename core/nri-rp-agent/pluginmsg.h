/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of resource plugins (proto/resourceplugin.proto): builds requests, and converts answers
 * for the daemon. Plugins are not trusted: an answer that exceeds a limit or is invalid is rejected
 * as a whole, and err says why.
 */
#pragma once

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

/* Builds a ResourceRequest for a container's resource, or a PodResourceRequest for a pod's.
 * -ENOMEM. */
int pluginmsg_request(struct arena *a, const Agent__PluginRequest *pod, const Agent__Wanted *w,
		      struct packed *ret);
/* Converts the answer to GetTopologyHints or GetPodTopologyHints. -EBADMSG, -EINVAL, -E2BIG,
 * -ENOMEM. */
int pluginmsg_hints(struct arena *a, const struct packed *answer, const Agent__PluginRequest *pod,
		    const Agent__Wanted *w, Agent__Hints *ret, struct err *err);
/* Converts the answer to Allocate or AllocateForPod and appends a grant for each of its
 * resources. */
int pluginmsg_grants(struct arena *a, const struct packed *answer, const Agent__PluginRequest *pod,
		     const Agent__Wanted *w, struct grant_list *to, struct err *err);
/* Converts the answer to GetResourcesAllocation. */
int pluginmsg_pods(struct arena *a, const struct packed *answer, const char *resource,
		   Agent__CheckPodsRequest *ret, struct err *err);

int pluginmsg_pack(struct arena *a, const ProtobufCMessage *m, struct packed *ret);
int pluginmsg_pack_grants(struct arena *a, const struct grant_list *list, struct packed *ret);
