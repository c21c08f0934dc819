/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/node.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/kube/objects.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/log.h"
#include "core/lib/util/pb.h"
#include "proto/agent.pb-c.h"

#define LOG_SOURCE "node"
#define ARENA_BLOCK (16u << 10)
/* memory for one object of the largest size that a server may send */
#define ARENA_LIMIT (16u << 20)
#define QUIET_MS 100u /* time within which changes are collected and sent together */
#define ANSWER_TIMEOUT_MS 5000u
#define PROBLEM "the daemon's Node"

struct node_feed {
	struct kube *kube;
	struct link *link;
	struct arena *arena; /* memory of the message; NULL: no message */
	Agent__SetNodeRequest message;
	uint8_t *packed; /* packed form of the message, for comparisons; NULL: none */
	size_t packed_len;
	struct loop_timer *timer;
	struct kube_backoff backoff;
	/* a call is under way; another is needed because its content is outdated */
	bool under_way, again;
};

/* ---- a Node as a message --------------------------------------------------------------------- */

static void put_taints(struct arena *a, const json_t *list, Agent__SetNodeRequest *m)
{
	json_t *item;
	size_t i;
	json_array_foreach(list, i, item)
	{
		Agent__Taint *t = PB_ADD(a, m, taints, agent__taint);
		if (!t)
			return;
		t->key = kube_text(a, item, "key");
		t->value = kube_text(a, item, "value");
		t->effect = kube_text(a, item, "effect");
	}
}

int node_message(struct arena *a, const json_t *node, Agent__SetNodeRequest *ret)
{
	const json_t *meta = json_object_get(node, "metadata"),
		     *spec = json_object_get(node, "spec");
	const json_t *status = json_object_get(node, "status");
	Agent__SetNodeRequest m = AGENT__SET_NODE_REQUEST__INIT;
	m.name = kube_text(a, meta, "name");
	m.uid = kube_text(a, meta, "uid");
	m.unschedulable = json_is_true(json_object_get(spec, "unschedulable"));
	kube_pairs(a, json_object_get(meta, "labels"), &m.labels, &m.n_labels);
	kube_pairs(a, json_object_get(meta, "annotations"), &m.annotations, &m.n_annotations);
	put_taints(a, json_object_get(spec, "taints"), &m);
	kube_amounts(a, json_object_get(status, "capacity"), &m.capacity, &m.n_capacity);
	kube_amounts(a, json_object_get(status, "allocatable"), &m.allocatable, &m.n_allocatable);
	if (arena_failed(a))
		return -ENOMEM;
	if (!*m.name)
		return -EINVAL;
	*ret = m;
	return 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void node_told(const struct rpc_result *result, void *arg)
{
	struct node_feed *f = arg;
	bool lost = result->error == -ECANCELED || result->error == -ECONNRESET;
	f->under_way = false;
	if (lost) /* node_feed_daemon_connected() starts again */
		return;
	kube_set_problem(f->kube, PROBLEM, result->error ? result->text : NULL);
	if (!result->error)
		kube_backoff_reset(&f->backoff);
	if (f->again)
		(void)loop_timer_arm(f->timer, QUIET_MS);
	else if (result->error)
		(void)loop_timer_arm(f->timer, kube_backoff_next_ms(&f->backoff));
}

static void node_tell(void *arg)
{
	struct node_feed *f = arg;
	if (!f->arena || f->under_way)
		return;
	f->again = false;
	int r = link_call(f->link, "SetNode", &f->message.base, ANSWER_TIMEOUT_MS, node_told, f);
	f->under_way = !r;
	if (r && r != -ENOTCONN)
		(void)loop_timer_arm(f->timer, kube_backoff_next_ms(&f->backoff));
}

static void tell_soon(struct node_feed *f)
{
	f->again = f->under_way;
	if (!f->under_way && !loop_timer_armed(f->timer))
		(void)loop_timer_arm(f->timer, QUIET_MS);
}

static uint8_t *node_pack(const Agent__SetNodeRequest *m, size_t *ret_n)
{
	uint8_t *packed = malloc(agent__set_node_request__get_packed_size(m) + 1);
	if (packed)
		*ret_n = agent__set_node_request__pack(m, packed);
	return packed;
}

void node_feed_seen(struct node_feed *f, const json_t *node)
{
	struct arena *a = arena_new(ARENA_BLOCK, ARENA_LIMIT);
	Agent__SetNodeRequest m;
	size_t n = 0;
	int r = a ? node_message(a, node, &m) : -ENOMEM;
	uint8_t *packed = r ? NULL : node_pack(&m, &n);
	if (!packed || (f->packed && n == f->packed_len && memcmp(packed, f->packed, n) == 0)) {
		if (!packed)
			log_warning("cannot send the Node to nri-rpd: %s",
				    r == -EINVAL ? "it has no name" : "no memory");
		free(packed);
		arena_free(a);
		return;
	}
	arena_free(f->arena);
	free(f->packed);
	f->arena = a;
	f->message = m;
	f->packed = packed;
	f->packed_len = n;
	tell_soon(f);
}

void node_feed_daemon_connected(struct node_feed *f)
{
	kube_backoff_reset(&f->backoff);
	tell_soon(f);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct node_feed *node_feed_new(struct kube *k, struct link *l)
{
	struct node_feed *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	f->kube = k;
	f->link = l;
	f->timer = loop_timer_new(kube_loop(k), node_tell, f);
	return f->timer ? f : node_feed_free(f);
}

struct node_feed *node_feed_free(struct node_feed *f)
{
	if (!f)
		return NULL;
	loop_timer_free(f->timer);
	arena_free(f->arena);
	free(f->packed);
	free(f);
	return NULL;
}
