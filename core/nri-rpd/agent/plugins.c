/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/agent/plugins.h"
#include "core/nri-rpd/agent/call.h"

#include <stdlib.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rpd/pipeline/wait/plugins.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "proto/agent.pb-c.h"
#include "core/nri-rpd/pipeline/wait/plugin_question.h"

#define ARENA_BLOCK (16u << 10)
/* Time by which the agent's limit is shorter than the daemon's. An agent normally gives up first
 * and states the reason. */
#define MARGIN_MS 100u
#define REMOVE_MS 5000u

_Static_assert(AGENT_PLUGINS_MAX == PLUGINS_MAX, "both ends have the same limits");

/* ---- calls of the agent ---------------------------------------------------------------------- */

static int read_plugins(const Agent__SetPluginsRequest *m, struct plugin_desc list[PLUGINS_MAX])
{
	if (m->n_plugins > PLUGINS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < m->n_plugins; i++) {
		const Agent__Plugin *x = m->plugins[i];
		if (!grant_name(x->resource) || !grant_name(x->endpoint))
			return -EINVAL;
		utf8_mend(x->error);
		str_one_line(x->error);
		list[i] = (struct plugin_desc){.resource = x->resource,
					       .endpoint = x->endpoint,
					       .error = x->error,
					       .connected = x->connected,
					       .aligns = x->aligns,
					       .pre_start = x->pre_start,
					       .reconciles = x->reconciles,
					       .calls = x->calls,
					       .failures = x->failures};
	}
	return 0;
}

void agent_serve_plugins(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, AGENT_PLUGINS_ARENA);
	struct plugin_desc list[PLUGINS_MAX];
	const Agent__SetPluginsRequest *m = RPC_MESSAGE(a, agent__set_plugins_request, req);
	int r = m ? read_plugins(m, list) : -EBADMSG;
	if (!r)
		r = pipeline_plugins_set(p, list, (uint32_t)m->n_plugins);
	agent_answer(req, r, "not a list of plugins", NULL);
}

static void add_gone(const char *uid, void *arg)
{
	Agent__CheckPodsResponse *out = arg;
	out->gone[out->n_gone++] = (char *)(uintptr_t)uid;
}

static int read_pods(struct arena *a, const Agent__CheckPodsRequest *m, struct plugin_pod *list)
{
	struct err err = ERR_INIT;
	for (size_t i = 0; i < m->n_pods; i++) {
		const Agent__PluginPod *x = m->pods[i];
		list[i].uid = x->uid;
		if (!grant_name(x->uid))
			return -EINVAL;
		int r = grants_unpack(a, x->grants.data, x->grants.len, &list[i].grants, &err);
		if (r)
			return r;
		for (size_t k = 0; k < list[i].grants->n_grants; k++)
			if (!str_eq(list[i].grants->grants[k]->resource, m->resource))
				return -EINVAL;
	}
	return 0;
}

void agent_serve_check_pods(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, AGENT_PLUGINS_ARENA);
	Agent__CheckPodsResponse out = AGENT__CHECK_PODS_RESPONSE__INIT;
	const Agent__CheckPodsRequest *m = RPC_MESSAGE(a, agent__check_pods_request, req);
	int r = !m ? -EBADMSG : m->n_pods > AGENT_PODS_MAX ? -E2BIG : 0;
	struct plugin_pod *list = r ? NULL : arena_array(a, m->n_pods + 1, sizeof *list);
	out.gone = list ? arena_array(a, m->n_pods + 1, sizeof *out.gone) : NULL;
	if (!r)
		r = out.gone ? read_pods(a, m, list) : -ENOMEM;
	if (!r)
		r = pipeline_plugins_check(p, m->resource, m->reconcile, list, (uint32_t)m->n_pods,
					   add_gone, &out);
	if (r == -EAGAIN)
		(void)rpc_reply_error(req, TTRPC_UNAVAILABLE, "the list of pods is not yet known");
	else if (r)
		(void)rpc_reply_error(
			req, r == -ENOMEM ? TTRPC_RESOURCE_EXHAUSTED : TTRPC_INVALID_ARGUMENT,
			"not a list of allocations");
	else
		(void)rpc_reply(req, &out.base);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void plugins_failed(const struct agent_call *q, const struct rpc_result *result)
{
	bool late = result->error == -ETIMEDOUT ||
		    (result->error == -EREMOTEIO && result->code == TTRPC_DEADLINE_EXCEEDED);
	pipeline_plugins_failed(q->pipeline, (uint32_t)q->id, late,
				agent_call_error(result, -EBADMSG));
}

static int read_hints(struct arena *a, const Agent__Hints *m, struct plugin_hints *ret)
{
	struct plugin_hint *list = arena_array(a, m->n_hints + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	if (m->n_hints > AGENT_HINTS_MAX)
		return -E2BIG;
	utf8_mend(m->error);
	str_one_line(m->error);
	*ret = (struct plugin_hints){m->told, *m->error ? m->error : NULL, list,
				     (uint32_t)m->n_hints};
	for (size_t i = 0; i < m->n_hints; i++) {
		struct rp_idset nodes;
		rp_idset_clear(&nodes);
		for (size_t k = 0; k < m->hints[i]->n_nodes; k++) {
			if (m->hints[i]->nodes[k] >= RP_NODES_MAX)
				return -EBADMSG;
			rp_idset_add(&nodes, m->hints[i]->nodes[k]);
		}
		struct rp_ids ids = rp_ids_of(&nodes);
		list[i].preferred = m->hints[i]->preferred;
		list[i].nodes = ids;
		list[i].nodes.w = arena_memdup(a, ids.w, ids.nw * sizeof *ids.w);
		if (!list[i].nodes.w)
			return -ENOMEM;
	}
	return 0;
}

int agent_decode_hints(struct arena *a, const uint8_t *data, size_t n, struct plugin_hints **ret,
		       uint32_t *ret_n)
{
	const Agent__PluginHintsResponse *m = PB_UNPACK(a, agent__plugin_hints_response, n, data);
	if (!m)
		return -EBADMSG;
	if (m->n_of > AGENT_WANTED_MAX)
		return -E2BIG;
	struct plugin_hints *list = arena_array(a, m->n_of + 1, sizeof *list);
	int r = list ? 0 : -ENOMEM;
	for (size_t i = 0; !r && i < m->n_of; i++)
		r = read_hints(a, m->of[i], &list[i]);
	*ret = list;
	*ret_n = (uint32_t)m->n_of;
	return r;
}

static void on_hints(const struct rpc_result *result, void *arg)
{
	struct agent_call *q = arg;
	struct arena *a = pipeline_plugins_arena(q->pipeline, (uint32_t)q->id);
	struct plugin_hints *list;
	uint32_t n;
	if (!a || result->error ||
	    agent_decode_hints(a, result->payload, result->payload_len, &list, &n))
		plugins_failed(q, result);
	else
		pipeline_plugins_hinted(q->pipeline, (uint32_t)q->id, list, n);
	free(q);
}

static void on_allocated(const struct rpc_result *result, void *arg)
{
	struct agent_call *q = arg;
	struct arena *a = pipeline_plugins_arena(q->pipeline, (uint32_t)q->id);
	const Agent__PluginAllocateResponse *m =
		RPC_ANSWER(a, agent__plugin_allocate_response, result);
	const Grants__Grants *grants;
	struct err err = ERR_INIT;
	if (!m || grants_unpack(a, m->grants.data, m->grants.len, &grants, &err))
		plugins_failed(q, result);
	else
		pipeline_plugins_allocated(q->pipeline, (uint32_t)q->id, grants);
	free(q);
}

static void on_ready(const struct rpc_result *result, void *arg)
{
	struct agent_call *q = arg;
	if (result->error)
		plugins_failed(q, result);
	else
		pipeline_plugins_ready(q->pipeline, (uint32_t)q->id);
	free(q);
}

static void put_pair(Agent__Pair *pair, const struct kv *from)
{
	if (!pair)
		return;
	pair->key = (char *)(uintptr_t)from->key;
	pair->value = (char *)(uintptr_t)from->value;
}

static void put_hint(struct arena *a, const struct plugin_wanted *from, Agent__Wanted *to)
{
	uint32_t *nodes = arena_array(a, rp_ids_count(from->nodes) + 1, sizeof *nodes);
	if (!PB_PART(a, to->hint, agent__hint) || !nodes)
		return;
	to->hint->preferred = from->preferred;
	to->hint->nodes = nodes;
	RP_IDS_EACH (node, from->nodes)
		nodes[to->hint->n_nodes++] = node;
}

static void put_wanted(struct arena *a, const struct plugin_wanted *w, Agent__Wanted *to)
{
	if (!to)
		return;
	to->container = (char *)(uintptr_t)w->ctr;
	to->kind = (Agent__PluginContainer)w->kind; /* the numbers are equal */
	to->index = w->index;
	to->resource = (char *)(uintptr_t)w->resource;
	to->amount = w->amount;
	if (w->chosen)
		put_hint(a, w, to);
}

static int plugins_ask(const struct agent_link *l, const struct plugin_question *q,
		       const char *method, rpc_done done)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, AGENT_PLUGINS_ARENA);
	Agent__PluginRequest m = AGENT__PLUGIN_REQUEST__INIT;
	if (!a)
		return -ENOMEM;
	for (uint32_t i = 0; i < q->n_wanted; i++)
		put_wanted(a, &q->wanted[i], PB_ADD(a, &m, wanted, agent__wanted));
	for (uint32_t i = 0; i < q->n_labels; i++)
		put_pair(PB_ADD(a, &m, labels, agent__pair), &q->labels[i]);
	for (uint32_t i = 0; i < q->n_annotations; i++)
		put_pair(PB_ADD(a, &m, annotations, agent__pair), &q->annotations[i]);
	if (arena_failed(a))
		return -ENOMEM;
	m.uid = (char *)(uintptr_t)q->uid;
	m.namespace_ = (char *)(uintptr_t)q->ns;
	m.name = (char *)(uintptr_t)q->name;
	m.qos = (char *)(uintptr_t)q->qos;
	/* Leave time for the request to reach the agent and for the answer to return. */
	m.timeout_ms = q->timeout_ms > 2 * MARGIN_MS ? q->timeout_ms - MARGIN_MS : q->timeout_ms;
	return agent_call(l, q->serial, method, &m.base, q->timeout_ms, done);
}

static int ask_hints(void *arg, const struct plugin_question *q)
{
	return plugins_ask(arg, q, "PluginHints", on_hints);
}

static int ask_allocate(void *arg, const struct plugin_question *q)
{
	return plugins_ask(arg, q, "PluginAllocate", on_allocated);
}

static int ask_pre_start(void *arg, const struct plugin_question *q)
{
	return plugins_ask(arg, q, "PluginPreStart", on_ready);
}

static void tell_removed(void *arg, const char *uid)
{
	const struct agent_link *l = arg;
	Agent__PluginRemoveRequest m = AGENT__PLUGIN_REMOVE_REQUEST__INIT;
	m.uid = (char *)(uintptr_t)uid;
	if (l->rpc)
		(void)rpc_call(l->rpc, AGENT_SERVICE, "PluginRemove", &m.base, REMOVE_MS, NULL,
			       NULL);
}

void agent_ask_plugins(struct agent_link *l, bool on)
{
	const struct plugin_source source = {ask_hints, ask_allocate, ask_pre_start, tell_removed,
					     l};
	pipeline_plugins_source(l->pipeline, on ? &source : NULL);
}
