/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a connected agent about pods and evictions. The answers go to the pipeline. */
#pragma once

#include "core/nri-rpd/pipeline/wait/devices.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/lib/wire/rpc.h"

/* The functions are slots of a struct device_source or evict_source, whose argument is a struct
 * agent_link. */

/* Requests the devices of a pod. 0: pipeline_devices_tell or _fail is called later, once. */
int agent_ask_pod(void *link, rp_pod pod, const char *ns, const char *name);
/* Requests the devices of all pods. 0: pipeline_devices_listed or _not_listed is called later,
 * once. */
int agent_ask_all(void *link);
/* Requests an eviction. 0: pipeline_evict_told is called later, once. */
int agent_ask_evict(void *link, const struct pod *pod, int64_t grace_s);
void agent_tell_ended(void *link, const char *ns, const char *name);

/*
 * Decode answers of the agent, for tests as well, into the arena. -EBADMSG: not decodable; -E2BIG:
 * exceeds a limit of protocol.h; -ENOMEM.
 */
struct arena;
int agent_decode_pod(struct arena *a, const uint8_t *data, size_t n, struct pod_devices_desc *ret);
int agent_decode_list(struct arena *a, const uint8_t *data, size_t n, struct pod_devices_desc **ret,
		      uint32_t *ret_n);
