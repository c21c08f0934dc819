/* SPDX-License-Identifier: Apache-2.0 */
/* Composes the published data and sends it to the agent when it has changed. */
#include "core/nri-rpd/agent/publisher.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rpd/host/node.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/observe/conditions.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/observe/zones.h"
#include "core/nri-rpd/pipeline/node/cluster.h"
#include "core/nri-rpd/pipeline/node/noderes.h"
#include "core/nri-rpd/pipeline/request/claims.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/crc32c.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "proto/agent.pb-c.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/host/service/node.h"
#include "core/nri-rpd/pipeline/observe/status.h"

#define LOG_SOURCE "publish"
#define ARENA_BLOCK (16u << 10)
/* largest memory for the description of a policy's zones, in bytes */
#define ARENA_LIMIT (32u << 20)
#define TELL_TIMEOUT_MS 10000u

struct publisher {
	struct loop *loop;
	struct pipeline *pipeline;
	struct rpc *rpc; /* connection to the agent; NULL: no agent is connected */
	struct loop_timer *timer;
	uint64_t told_ms; /* time of the last message to the agent; 0: none was sent */
	uint32_t told_sum; /* checksum of the last message */
	bool told;
	const char *unready; /* condition composed last; constant text */
	unsigned refused; /* number of refused containers composed last */
	char last_error[ERR_TEXT_MAX]; /* error logged last */
	char devices_error[ERR_TEXT_MAX]; /* problem with devices of claims, logged last */
};

/* ---- a message under construction ------------------------------------------------------------ */

struct composing {
	struct arena *arena;
	Agent__PublishedRequest *m;
	Agent__Device *device; /* device begun last */
};

static void on_device(void *ctx, const char *name)
{
	struct composing *c = ctx;
	c->device = PB_ADD(c->arena, c->m, devices, agent__device);
	if (c->device)
		c->device->name = pb_build_text(c->arena, name);
}

static void on_device_capacity(void *ctx, const char *name, int64_t amount)
{
	struct composing *c = ctx;
	Agent__Amount *a = c->device ? PB_ADD(c->arena, c->device, capacity, agent__amount) : NULL;
	if (!a)
		return;
	a->name = pb_build_text(c->arena, name);
	a->amount = amount;
}

static void on_device_limits(void *ctx, int64_t min, int64_t max)
{
	struct composing *c = ctx;
	if (!c->device || !c->device->n_capacity || min < 0 || (max && max < min))
		return; /* the module has a bug, and the capacity has the usual limits */
	Agent__Limits *limits = pb_build(c->arena, &agent__limits__descriptor);
	if (!limits)
		return;
	limits->min = min;
	limits->max = max;
	c->device->capacity[c->device->n_capacity - 1]->limits = limits;
}

static Agent__DeviceAttribute *add_device_attribute(struct composing *c, const char *name)
{
	Agent__DeviceAttribute *a =
		c->device ? PB_ADD(c->arena, c->device, attributes, agent__device_attribute) : NULL;
	if (a)
		a->name = pb_build_text(c->arena, name);
	return a;
}

static void on_device_number(void *ctx, const char *name, int64_t value)
{
	Agent__DeviceAttribute *a = add_device_attribute(ctx, name);
	if (a)
		a->number = value;
}

static void on_device_text(void *ctx, const char *name, const char *value)
{
	struct composing *c = ctx;
	Agent__DeviceAttribute *a = add_device_attribute(c, name);
	if (!a)
		return;
	a->is_text = true;
	a->text = pb_build_text(c->arena, value);
}

/* Logs a problem, unless it was logged last; "": there is none. */
static void publisher_say(char last[ERR_TEXT_MAX], const char *what, const char *text)
{
	if (strcmp(last, text) == 0)
		return;
	if (*text)
		log_warning("%s: %s", what, text);
	(void)snprintf(last, ERR_TEXT_MAX, "%s", text);
}

/* Adds the devices of claims; none if a module fails to report them, or if there are too many. */
static void add_devices(struct publisher *u, struct composing *c)
{
	struct err err = ERR_INIT;
	const struct rp_devices_sink sink = {.size = sizeof sink,
					     .ctx = c,
					     .device = on_device,
					     .capacity = on_device_capacity,
					     .number = on_device_number,
					     .text = on_device_text,
					     .limits = on_device_limits};
	c->m->dra = conf_core(pipeline_conf(u->pipeline))->dra;
	int r = c->m->dra ? pipeline_devices(u->pipeline, &sink, &err) : 0;
	if (!r && c->m->n_devices > AGENT_DEVICES_MAX)
		r = err_set(&err, -E2BIG,
			    "the modules offer %zu devices, a ResourceSlice has room for %u: offer "
			    "fewer (policy balloons: fewer balloonTypes)",
			    c->m->n_devices, AGENT_DEVICES_MAX);
	publisher_say(u->devices_error, "no devices of claims are published",
		      r ? err_text(&err, r) : "");
	if (r)
		c->m->n_devices = 0;
}

static void add_wish(struct arena *arena, Agent__PublishedRequest *m, const struct node_wish *w)
{
	if (w->kind == WISH_TAINT) {
		Agent__Taint *t = PB_ADD(arena, m, taints, agent__taint);
		if (!t)
			return;
		t->key = pb_build_text(arena, w->key);
		t->value = pb_build_text(arena, w->value);
		t->effect = pb_build_text(arena, w->effect);
	} else if (w->kind == WISH_RESOURCE) {
		Agent__Amount *a = PB_ADD(arena, m, resources, agent__amount);
		if (!a)
			return;
		a->name = pb_build_text(arena, w->key);
		a->amount = w->amount;
	} else {
		Agent__Pair *pair = w->kind == WISH_LABEL
					    ? PB_ADD(arena, m, labels, agent__pair)
					    : PB_ADD(arena, m, annotations, agent__pair);
		if (!pair)
			return;
		pair->key = pb_build_text(arena, w->key);
		pair->value = pb_build_text(arena, w->value);
	}
}

/* Composes the message. Data that a policy does not report is empty; data that it fails to report
 * is left out. */
static int publisher_compose(struct publisher *u, struct arena *a, Agent__PublishedRequest *m,
			     struct err *err)
{
	struct composing c = {.arena = a, .m = m};
	struct pipeline_status s;
	struct noderes_view lent;
	const struct conf_core *core = conf_core(pipeline_conf(u->pipeline));
	int r = core->agent.topology ? zones_collect(u->pipeline, a, m, err) : 0;
	if (r && r != -ENOTSUP)
		return r;
	r = zones_collect_extended(u->pipeline, a, m, err);
	if (r && r != -ENOTSUP)
		return r;
	add_devices(u, &c);
	pipeline_status(u->pipeline, &s);
	m->policy = pb_build_text(a, s.policy);
	m->topology = core->agent.topology;
	const struct node_wish *wishes = pipeline_wishes(u->pipeline);
	for (const struct node_wish *w = wishes; w; w = w->next)
		if (!node_wish_waits(wishes, w))
			add_wish(a, m, w);
	(void)pipeline_noderes(u->pipeline, &lent);
	m->settling = lent.settling;
	m->unready = (char *)(uintptr_t)conditions_unplaced(u->pipeline);
	m->node_condition = core->agent.node_condition;
	m->taint_when_away = core->agent.taint_when_away;
	u->unready = m->unready;
	m->degraded = s.n_degraded;
	m->refused = u->refused = conditions_refusals(u->pipeline);
	return arena_failed(a) ? err_errno(err, -ENOMEM, "the policy's zones") : 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void publisher_told(const struct rpc_result *result, void *arg)
{
	struct publisher *u = arg;
	if (result->error == -ECANCELED || result->error == -ECONNRESET)
		return;
	publisher_say(u->last_error, "not published", result->error ? result->text : "");
	if (!result->error) {
		pipeline_cluster_published(u->pipeline);
		return;
	}
	u->told = false;
	publisher_changed(u);
}

static uint32_t sum_of(const Agent__PublishedRequest *m, struct err *err)
{
	size_t n = agent__published_request__get_packed_size(m);
	uint8_t *packed = malloc(n + 1);
	uint32_t sum = 0;
	if (packed)
		sum = crc32c(1, packed, agent__published_request__pack(m, packed));
	else
		(void)err_errno(err, -ENOMEM, "the published zones");
	free(packed);
	return sum;
}

static void publisher_tell(void *arg)
{
	struct publisher *u = arg;
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_LIMIT);
	Agent__PublishedRequest m = AGENT__PUBLISHED_REQUEST__INIT;
	struct err err = ERR_INIT;
	if (!u->rpc)
		return;
	int r = a ? publisher_compose(u, a, &m, &err)
		  : err_errno(&err, -ENOMEM, "the published zones");
	uint32_t sum = r ? 0 : sum_of(&m, &err);
	u->told_ms = clock_ms();
	if (!r && !err.code && !(u->told && sum == u->told_sum))
		r = rpc_call(u->rpc, AGENT_SERVICE, "Published", &m.base, TELL_TIMEOUT_MS,
			     publisher_told, u);
	if (r || err.code) {
		publisher_say(u->last_error, "not published", err_text(&err, r));
		return;
	}
	u->told = true;
	u->told_sum = sum;
}

void publisher_changed(struct publisher *u)
{
	uint64_t now = clock_ms(), due = u->told_ms ? u->told_ms + PUBLISH_INTERVAL_MS : 0;
	if (!u->rpc || loop_timer_armed(u->timer))
		return;
	(void)loop_timer_arm(u->timer, due > now + PUBLISH_QUIET_MS ? due - now : PUBLISH_QUIET_MS);
}

void publisher_status_changed(struct publisher *u)
{
	if (u->rpc && u->told && !str_eq(u->unready, conditions_unplaced(u->pipeline)))
		(void)loop_timer_arm(u->timer, PUBLISH_QUIET_MS);
	else if (u->refused != conditions_refusals(u->pipeline))
		publisher_changed(u);
}

void publisher_set_agent(struct publisher *u, struct rpc *rpc)
{
	u->rpc = rpc;
	u->told = false;
	u->told_ms = 0;
	loop_timer_disarm(u->timer);
	publisher_changed(u);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct publisher *publisher_new(struct loop *loop, struct pipeline *p)
{
	struct publisher *u = calloc(1, sizeof *u);
	if (!u)
		return NULL;
	u->loop = loop;
	u->pipeline = p;
	u->timer = loop_timer_new(loop, publisher_tell, u);
	return u->timer ? u : publisher_free(u);
}

struct publisher *publisher_free(struct publisher *u)
{
	if (u)
		loop_timer_free(u->timer);
	free(u);
	return NULL;
}
