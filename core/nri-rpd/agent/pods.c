/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/agent/pods.h"
#include "core/nri-rpd/agent/call.h"

#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rpd/cache/hugepages.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "proto/agent.pb-c.h"

#define ARENA_BLOCK (16u << 10)
#define PODS_ARENA (8u * AGENT_SET_PODS_MAX)

/* ---- amounts --------------------------------------------------------------------------------- */

/* Returns the place for an amount of that name and adds a new name. NULL: too many. */
static int64_t *amount_of(struct fed_ctr *c, struct fed_amount *extended, const char *name,
			  bool limit)
{
	if (str_eq(name, "cpu"))
		return limit ? &c->needs.cpu_limit : &c->needs.cpu_request;
	if (str_eq(name, "memory"))
		return limit ? &c->needs.mem_limit : &c->needs.mem_request;
	for (uint32_t i = 0; i < c->n_extended; i++)
		if (str_eq(extended[i].name, name))
			return limit ? &extended[i].limit : &extended[i].request;
	if (c->n_extended == FEED_AMOUNTS_MAX)
		return NULL;
	struct fed_amount *e = &extended[c->n_extended++];
	e->name = name;
	return limit ? &e->limit : &e->request;
}

static int take_amounts(Agent__Amount *const *from, size_t n, bool limit, struct fed_ctr *c,
			struct fed_amount *extended)
{
	if (n > FEED_AMOUNTS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++) {
		if (!agent_name_valid(from[i]->name, AGENT_NAME_MAX - 1) || from[i]->amount < 0 ||
		    from[i]->amount > FEED_AMOUNT_MAX)
			return -EINVAL;
		int64_t *to = amount_of(c, extended, from[i]->name, limit);
		if (!to)
			return -E2BIG;
		if (*to)
			return -EINVAL;
		*to = from[i]->amount;
	}
	return 0;
}

static void default_to(int64_t *request, int64_t limit)
{
	if (!*request)
		*request = limit;
}

/* Sets missing requests to the limits, as the API server does. */
static void default_requests(struct fed_ctr *c, struct fed_amount *extended)
{
	default_to(&c->needs.cpu_request, c->needs.cpu_limit);
	default_to(&c->needs.mem_request, c->needs.mem_limit);
	for (uint32_t i = 0; i < c->n_extended; i++)
		default_to(&extended[i].request, extended[i].limit);
}

/* ---- pods ------------------------------------------------------------------------------------ */

static enum fed_kind kind_of(Agent__PodContainerKind kind)
{
	return kind == AGENT__POD_CONTAINER_KIND__INIT	    ? FED_INIT
	       : kind == AGENT__POD_CONTAINER_KIND__SIDECAR ? FED_SIDECAR
							    : FED_APP;
}

static int take_ctr(struct arena *a, const Agent__PodContainer *m, struct fed_ctr *ret)
{
	/* the pod's own huge pages may be added */
	size_t n = m->n_requests + m->n_limits + HUGE_SIZES_MAX + 1;
	struct fed_amount *extended =
		arena_array(a, n < FEED_AMOUNTS_MAX ? n : FEED_AMOUNTS_MAX, sizeof *extended);
	if (!extended)
		return -ENOMEM;
	*ret = (struct fed_ctr){.name = m->name, .kind = kind_of(m->kind), .extended = extended};
	if (!agent_name_valid(m->name, AGENT_NAME_MAX - 1))
		return -EINVAL;
	int r = take_amounts(m->requests, m->n_requests, false, ret, extended);
	if (!r)
		r = take_amounts(m->limits, m->n_limits, true, ret, extended);
	default_requests(ret, extended);
	return r;
}

/* Counts the pod's own huge pages that no container requests itself with the first container. */
static int take_own_pages(const struct fed_ctr *own, struct fed_pod *pod, struct fed_ctr *ctrs)
{
	struct fed_ctr *first = ctrs;
	uint32_t n = 0;
	while (first < ctrs + pod->n_ctrs && first->kind != FED_APP)
		first++;
	for (uint32_t i = 0; i < own->n_extended && first < ctrs + pod->n_ctrs; i++) {
		const struct fed_amount *e = &own->extended[i];
		int64_t left = e->request, request, limit;
		if (!str_has_prefix(e->name, HUGE_RESOURCE) ||
		    !hugepages_size(e->name + strlen(HUGE_RESOURCE)))
			continue;
		for (uint32_t k = 0; k < pod->n_ctrs; k++)
			if (ctrs[k].kind != FED_INIT &&
			    !fed_extended(&ctrs[k], e->name, &request, &limit))
				left -= request;
		if (left <= 0)
			continue;
		int64_t *to = amount_of(first, (struct fed_amount *)(uintptr_t)first->extended,
					e->name, false);
		if (!to || n++ == HUGE_SIZES_MAX)
			return -E2BIG;
		*to += left;
	}
	return 0;
}

/* Takes the pod's own CPU, memory and huge pages. */
static int take_own(struct arena *a, const Agent__FedPod *m, struct fed_pod *ret,
		    struct fed_ctr *ctrs)
{
	struct fed_amount *others = arena_array(a, FEED_AMOUNTS_MAX, sizeof *others);
	struct fed_ctr own = {.name = "", .extended = others};
	if (!others)
		return -ENOMEM;
	int r = take_amounts(m->requests, m->n_requests, false, &own, others);
	if (!r)
		r = take_amounts(m->limits, m->n_limits, true, &own, others);
	default_requests(&own, others);
	ret->own = own.needs;
	ret->has_own = own.needs.cpu_request || own.needs.mem_request;
	return r ? r : take_own_pages(&own, ret, ctrs);
}

static int take_pod(struct arena *a, const Agent__FedPod *m, struct fed_pod *ret)
{
	if (m->n_containers > FEED_CTRS_MAX)
		return -E2BIG;
	struct fed_ctr *ctrs = arena_array(a, m->n_containers + 1, sizeof *ctrs);
	if (!ctrs)
		return -ENOMEM;
	*ret = (struct fed_pod){.uid = m->uid,
				.ns = m->namespace_,
				.name = m->name,
				.owner = m->owner,
				.priority = m->priority,
				.ended = m->ended,
				.ctrs = ctrs};
	if (!agent_name_valid(m->uid, AGENT_NAME_MAX - 1) ||
	    !agent_name_valid(m->namespace_, AGENT_NAME_MAX - 1) ||
	    !agent_name_valid(m->name, AGENT_NAME_MAX - 1) ||
	    (*m->owner && !agent_name_valid(m->owner, AGENT_NAME_MAX - 1)))
		return -EINVAL;
	for (size_t i = 0; i < m->n_containers; i++) {
		int r = take_ctr(a, m->containers[i], &ctrs[i]);
		if (!r && fed_ctr(ret, ctrs[i].name))
			r = -EINVAL;
		if (r)
			return r;
		ret->n_ctrs++;
	}
	return m->n_requests || m->n_limits ? take_own(a, m, ret, ctrs) : 0;
}

int agent_decode_pods(struct arena *a, const uint8_t *data, size_t n, struct fed_message *ret)
{
	if (n > AGENT_SET_PODS_MAX)
		return -E2BIG;
	const Agent__SetPodsRequest *m = PB_UNPACK(a, agent__set_pods_request, n, data);
	if (!m)
		return -EBADMSG;
	if (m->n_pods > FEED_PODS_MAX || m->n_gone > FEED_PODS_MAX)
		return -E2BIG;
	struct fed_pod *pods = arena_array(a, m->n_pods + 1, sizeof *pods);
	if (!pods)
		return -ENOMEM;
	*ret = (struct fed_message){.begin = m->begin,
				    .complete = m->complete,
				    .gone = (const char *const *)m->gone,
				    .n_gone = (uint32_t)m->n_gone,
				    .source = m->source,
				    .problem = m->problem,
				    .pods = pods};
	for (size_t i = 0; i < m->n_pods; i++) {
		int r = take_pod(a, m->pods[i], &pods[ret->n_pods]);
		if (r == -ENOMEM)
			return r;
		ret->n_pods += !r;
		ret->n_left_out += r != 0;
	}
	return 0;
}

/* ---- the request ----------------------------------------------------------------------------- */

void agent_serve_pods(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, PODS_ARENA);
	struct fed_message m;
	if (!conf_core(pipeline_conf(p))->agent.pods) {
		(void)rpc_reply_error(req, TTRPC_FAILED_PRECONDITION,
				      "this node takes no pods: set agent.cluster, or "
				      "agent.podSource: kubelet, in its rp.conf");
		return;
	}
	int r = a ? agent_decode_pods(a, req->payload, req->payload_len, &m) : -ENOMEM;
	if (r == -E2BIG) {
		(void)rpc_reply_error(req, TTRPC_RESOURCE_EXHAUSTED,
				      "more than %u bytes or %u pods", AGENT_SET_PODS_MAX,
				      FEED_PODS_MAX);
		return;
	}
	if (!r)
		pipeline_feed_take(p, &m);
	agent_answer(req, r, "not a list of pods", NULL);
}
