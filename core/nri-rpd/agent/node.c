/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/agent/node.h"
#include "core/nri-rpd/agent/call.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/node/cluster.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "proto/agent.pb-c.h"

#define ARENA_BLOCK (16u << 10)
#define NODE_ARENA (8u * AGENT_NODE_MAX)

/* ---- lists ----------------------------------------------------------------------------------- */

static int cmp_kv(const void *a, const void *b)
{
	return strcmp(((const struct kv *)a)->key, ((const struct kv *)b)->key);
}

static int cmp_amount(const void *a, const void *b)
{
	return strcmp(((const struct node_amount *)a)->name, ((const struct node_amount *)b)->name);
}

static int cmp_taint(const void *a, const void *b)
{
	const struct node_taint *x = a, *y = b;
	int by_key = strcmp(x->key, y->key);
	return by_key ? by_key : strcmp(x->effect, y->effect);
}

/* Sorts a list, because the sender's order is not trusted. -EINVAL: duplicate entries. */
static int put_in_order(void *list, size_t n, size_t size, int (*cmp)(const void *, const void *))
{
	qsort(list, n, size, cmp);
	for (size_t i = 1; i < n; i++)
		if (cmp((char *)list + (i - 1) * size, (char *)list + i * size) == 0)
			return -EINVAL;
	return 0;
}

static int take_pairs(struct arena *a, Agent__Pair *const *from, size_t n, const struct kv **ret,
		      uint32_t *ret_n)
{
	if (n > AGENT_NODE_ITEMS_MAX)
		return -E2BIG;
	struct kv *list = arena_array(a, n + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!agent_name_valid(from[i]->key, AGENT_NAME_MAX))
			return -EINVAL;
		list[i] = (struct kv){from[i]->key, from[i]->value};
	}
	*ret = list;
	*ret_n = (uint32_t)n;
	return put_in_order(list, n, sizeof *list, cmp_kv);
}

static int take_amounts(struct arena *a, Agent__Amount *const *from, size_t n,
			const struct node_amount **ret, uint32_t *ret_n)
{
	if (n > AGENT_NODE_ITEMS_MAX)
		return -E2BIG;
	struct node_amount *list = arena_array(a, n + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!agent_name_valid(from[i]->name, AGENT_NAME_MAX) || from[i]->amount < 0)
			return -EINVAL;
		list[i] = (struct node_amount){from[i]->name, from[i]->amount};
	}
	*ret = list;
	*ret_n = (uint32_t)n;
	return put_in_order(list, n, sizeof *list, cmp_amount);
}

static int take_taints(struct arena *a, const Agent__SetNodeRequest *m, struct node_object *ret)
{
	if (m->n_taints > AGENT_NODE_ITEMS_MAX)
		return -E2BIG;
	struct node_taint *list = arena_array(a, m->n_taints + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_taints; i++) {
		const Agent__Taint *t = m->taints[i];
		if (!agent_name_valid(t->key, AGENT_NAME_MAX) ||
		    !agent_name_valid(t->effect, AGENT_NAME_MAX))
			return -EINVAL;
		list[i] = (struct node_taint){t->key, t->value, t->effect};
	}
	ret->taints = list;
	ret->n_taints = (uint32_t)m->n_taints;
	return put_in_order(list, m->n_taints, sizeof *list, cmp_taint);
}

/* ---- the Node -------------------------------------------------------------------------------- */

int agent_decode_node(struct arena *a, const uint8_t *data, size_t n,
		      const struct node_object **ret)
{
	if (n > AGENT_NODE_MAX)
		return -E2BIG;
	const Agent__SetNodeRequest *m = PB_UNPACK(a, agent__set_node_request, n, data);
	struct node_object *node = m ? arena_alloc(a, sizeof *node) : NULL;
	if (!m)
		return -EBADMSG;
	if (!node)
		return -ENOMEM;
	if (!agent_name_valid(m->name, AGENT_NAME_MAX))
		return -EINVAL;
	node->name = m->name;
	node->uid = m->uid;
	node->unschedulable = m->unschedulable;
	int r = take_pairs(a, m->labels, m->n_labels, &node->labels, &node->n_labels);
	if (!r)
		r = take_pairs(a, m->annotations, m->n_annotations, &node->annotations,
			       &node->n_annotations);
	if (!r)
		r = take_taints(a, m, node);
	if (!r)
		r = take_amounts(a, m->capacity, m->n_capacity, &node->capacity, &node->n_capacity);
	if (!r)
		r = take_amounts(a, m->allocatable, m->n_allocatable, &node->allocatable,
				 &node->n_allocatable);
	if (!r)
		*ret = node;
	return r;
}

void agent_serve_node(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, NODE_ARENA);
	const struct node_object *node;
	if (!conf_core(pipeline_conf(p))->agent.cluster) {
		(void)rpc_reply_error(req, TTRPC_FAILED_PRECONDITION,
				      "this node accepts no data from the cluster: agent.cluster "
				      "is not set in its rp.conf");
		return;
	}
	int r = a ? agent_decode_node(a, req->payload, req->payload_len, &node) : -ENOMEM;
	if (r == -E2BIG) {
		(void)rpc_reply_error(req, TTRPC_RESOURCE_EXHAUSTED,
				      "the Node is larger than %u bytes, or one of its lists is "
				      "longer than %u",
				      AGENT_NODE_MAX, AGENT_NODE_ITEMS_MAX);
		return;
	}
	if (!r)
		pipeline_node_take(p, TAKE(a), node);
	agent_answer(req, r, "not a Node", NULL);
}
