/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/agent/ask.h"
#include "core/nri-rpd/agent/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rpd/pipeline/node/evict.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/pb.h"
#include "proto/agent.pb-c.h"

#define ARENA_BLOCK (16u << 10)
#define ANSWER_ARENA (128u << 20)
/* Additional time before the daemon gives up. An agent normally gives up first and states the
 * reason. */
#define MARGIN_MS 250u

/* ---- answers --------------------------------------------------------------------------------- */

static bool good_name(const char *name)
{
	size_t len = strnlen(name, AGENT_NAME_MAX);
	return len && len < AGENT_NAME_MAX;
}

static int count_devices(const Agent__PodDevices *pod, size_t *ret)
{
	*ret = 0;
	if (!good_name(pod->namespace_) || !good_name(pod->name) ||
	    pod->n_containers > AGENT_CONTAINERS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < pod->n_containers; i++) {
		const Agent__ContainerDevices *c = pod->containers[i];
		if (!good_name(c->name) || c->n_devices > AGENT_RESOURCES_MAX ||
		    c->n_claims > AGENT_CLAIM_DEVICES_MAX)
			return -E2BIG;
		*ret += c->n_devices + c->n_claims;
	}
	return 0;
}

/* Appends the devices of claims of a container, also those without a known place. */
static int ask_describe_claims(struct arena *a, const Agent__ContainerDevices *c,
			       struct device_desc *list, uint32_t *n)
{
	for (size_t i = 0; i < c->n_claims; i++) {
		const Agent__ClaimDevice *d = c->claims[i];
		if (!good_name(d->claim) || !good_name(d->driver) || !good_name(d->device) ||
		    d->n_nodes > RP_NODES_MAX)
			return -E2BIG;
		list[(*n)++] = (struct device_desc){
			.ctr = c->name,
			.resource = arena_printf(a, "claim:%s/%s", d->driver, d->device),
			.nodes = d->nodes,
			.n_nodes = (uint32_t)d->n_nodes,
			.claim = d->claim,
			.pci = d->pci,
			.unknown = d->unknown};
		if (!list[*n - 1].resource)
			return -ENOMEM;
	}
	return 0;
}

static int ask_describe(struct arena *a, const Agent__PodDevices *pod, struct pod_devices_desc *ret)
{
	size_t n;
	int r = count_devices(pod, &n);
	struct device_desc *list = r ? NULL : arena_array(a, n + 1, sizeof *list);
	if (!list)
		return r ? r : -ENOMEM;
	*ret = (struct pod_devices_desc){.ns = pod->namespace_, .name = pod->name, .list = list};
	for (size_t i = 0; i < pod->n_containers; i++) {
		for (size_t k = 0; k < pod->containers[i]->n_devices; k++) {
			const Agent__Devices *d = pod->containers[i]->devices[k];
			if (!good_name(d->resource))
				return -E2BIG;
			if (!d->n_nodes || d->n_nodes > RP_NODES_MAX)
				continue;
			list[ret->n++] = (struct device_desc){.ctr = pod->containers[i]->name,
							      .resource = d->resource,
							      .nodes = d->nodes,
							      .n_nodes = (uint32_t)d->n_nodes};
		}
		r = ask_describe_claims(a, pod->containers[i], list, &ret->n);
		if (r)
			return r;
	}
	return 0;
}

int agent_decode_pod(struct arena *a, const uint8_t *data, size_t n, struct pod_devices_desc *ret)
{
	const Agent__PodDevices *m = PB_UNPACK(a, agent__pod_devices, n, data);
	return m ? ask_describe(a, m, ret) : -EBADMSG;
}

int agent_decode_list(struct arena *a, const uint8_t *data, size_t n, struct pod_devices_desc **ret,
		      uint32_t *ret_n)
{
	const Agent__ListResponse *m = PB_UNPACK(a, agent__list_response, n, data);
	if (!m)
		return -EBADMSG;
	if (m->n_pods > AGENT_PODS_MAX)
		return -E2BIG;
	struct pod_devices_desc *list = arena_array(a, m->n_pods + 1, sizeof *list);
	int r = list ? 0 : -ENOMEM;
	for (size_t i = 0; !r && i < m->n_pods; i++)
		r = ask_describe(a, m->pods[i], &list[i]);
	*ret = list;
	*ret_n = (uint32_t)m->n_pods;
	return r;
}

static void on_pod(const struct rpc_result *result, void *arg)
{
	struct agent_call *q = arg;
	struct pod_devices_desc pod;
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ANSWER_ARENA);
	int r = a ? 0 : -ENOMEM;
	if (!r && !result->error)
		r = agent_decode_pod(a, result->payload, result->payload_len, &pod);
	if (r || result->error)
		pipeline_devices_fail(q->pipeline, q->id, agent_call_error(result, r));
	else
		pipeline_devices_tell(q->pipeline, q->id, pod.list, pod.n);
	free(q);
}

static void on_list(const struct rpc_result *result, void *arg)
{
	struct pipeline *p = arg;
	struct pod_devices_desc *pods;
	uint32_t n;
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ANSWER_ARENA);
	int r = a ? 0 : -ENOMEM;
	if (!r && !result->error)
		r = agent_decode_list(a, result->payload, result->payload_len, &pods, &n);
	if (r || result->error)
		pipeline_devices_not_listed(p, agent_call_error(result, r));
	else
		pipeline_devices_listed(p, TAKE(a), pods, n);
}

/* ---- requests -------------------------------------------------------------------------------- */

static Agent__PodRequest pod_request(const char *ns, const char *name)
{
	Agent__PodRequest msg = AGENT__POD_REQUEST__INIT;
	msg.namespace_ = (char *)(uintptr_t)ns;
	msg.name = (char *)(uintptr_t)name;
	return msg;
}

int agent_ask_pod(void *link, rp_pod pod, const char *ns, const char *name)
{
	Agent__PodRequest msg = pod_request(ns, name);
	return agent_call(link, pod, "GetPod", &msg.base, AGENT_GET_MS + MARGIN_MS, on_pod);
}

int agent_ask_all(void *link)
{
	const struct agent_link *l = link;
	return l->rpc ? rpc_call(l->rpc, AGENT_SERVICE, "ListPods", NULL, AGENT_LIST_MS + MARGIN_MS,
				 on_list, l->pipeline)
		      : -ENOTCONN;
}

static void on_evicted(const struct rpc_result *result, void *arg)
{
	static const enum evict_answer answers[] = {
		[AGENT__EVICT_OUTCOME__GRANTED] = EVICT_GRANTED,
		[AGENT__EVICT_OUTCOME__REFUSED] = EVICT_REFUSED,
		[AGENT__EVICT_OUTCOME__GONE] = EVICT_GONE,
		[AGENT__EVICT_OUTCOME__DENIED] = EVICT_DENIED,
	};
	struct agent_call *q = arg;
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ANSWER_ARENA);
	const Agent__EvictResponse *m = RPC_ANSWER(a, agent__evict_response, result);
	bool sane = m && (unsigned)m->outcome < sizeof answers / sizeof *answers;
	pipeline_evict_told(q->pipeline, q->id, sane ? answers[m->outcome] : EVICT_UNANSWERED,
			    sane ? m->text : agent_call_error(result, -EBADMSG));
	free(q);
}

int agent_ask_evict(void *link, const struct pod *pod, int64_t grace_s)
{
	Agent__EvictRequest msg = AGENT__EVICT_REQUEST__INIT;
	msg.namespace_ = pod->ns;
	msg.name = pod->name;
	msg.uid = pod->uid;
	msg.grace_s = grace_s;
	return agent_call(link, pod->handle, "Evict", &msg.base, AGENT_EVICT_TIMEOUT_MS,
			  on_evicted);
}

void agent_tell_ended(void *link, const char *ns, const char *name)
{
	const struct agent_link *l = link;
	Agent__PodRequest msg = pod_request(ns, name);
	if (l->rpc)
		(void)rpc_call(l->rpc, AGENT_SERVICE, "ForgetPod", &msg.base, AGENT_GET_MS, NULL,
			       NULL);
}
