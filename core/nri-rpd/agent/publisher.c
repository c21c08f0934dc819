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

/* List that grows by doubling, because modules report items one at a time. */
struct list {
	void **items;
	size_t n, cap;
};

struct zone {
	Agent__Zone msg;
	struct list resources, attributes, costs;
};

struct device {
	Agent__Device msg;
	struct list capacity, attributes;
};

struct composing {
	struct arena *arena;
	struct list zones, extended, patterns;
	/* changes of the Node that modules want */
	struct list labels, annotations, taints, resources;
	struct zone *zone; /* zone begun last */
	struct list devices;
	struct device *device; /* device begun last */
	bool failed;
};

static void *publisher_add(struct composing *c, struct list *l, size_t size)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 8;
		void **items = arena_array(c->arena, cap, sizeof *items);
		if (items && l->n)
			memcpy(items, l->items, l->n * sizeof *items);
		l->items = items ? items : l->items;
		l->cap = items ? cap : l->cap;
	}
	void *item = l->n < l->cap ? arena_alloc(c->arena, size) : NULL;
	c->failed |= !item;
	if (item)
		l->items[l->n++] = item;
	return item;
}

/* Sets a list of a message. */
#define PUBLISHER_SET(to, member, list)                                                            \
	((to)->member = (void *)(list).items, (to)->n_##member = (list).n)

static char *publisher_keep(struct composing *c, const char *text)
{
	char *copy = arena_strdup(c->arena, text ? text : "");
	c->failed |= !copy;
	return copy;
}

static void on_zone(void *ctx, const char *name, const char *type, const char *parent)
{
	struct composing *c = ctx;
	c->zone = publisher_add(c, &c->zones, sizeof *c->zone);
	if (!c->zone)
		return;
	agent__zone__init(&c->zone->msg);
	c->zone->msg.name = publisher_keep(c, name);
	c->zone->msg.type = publisher_keep(c, type);
	c->zone->msg.parent = publisher_keep(c, parent);
}

static void on_resource(void *ctx, const char *name, int64_t capacity, int64_t allocatable,
			int64_t available)
{
	struct composing *c = ctx;
	Agent__ZoneResource *r = c->zone ? publisher_add(c, &c->zone->resources, sizeof *r) : NULL;
	if (!r)
		return;
	agent__zone_resource__init(r);
	r->name = publisher_keep(c, name);
	r->capacity = capacity;
	r->allocatable = allocatable;
	r->available = available;
}

static void on_attribute(void *ctx, const char *name, const char *value)
{
	struct composing *c = ctx;
	Agent__Attribute *a = c->zone ? publisher_add(c, &c->zone->attributes, sizeof *a) : NULL;
	if (!a)
		return;
	agent__attribute__init(a);
	a->name = publisher_keep(c, name);
	a->value = publisher_keep(c, value);
}

static void on_cost(void *ctx, const char *other, int64_t value)
{
	struct composing *c = ctx;
	Agent__Cost *cost = c->zone ? publisher_add(c, &c->zone->costs, sizeof *cost) : NULL;
	if (!cost)
		return;
	agent__cost__init(cost);
	cost->name = publisher_keep(c, other);
	cost->value = value;
}

static void on_own(void *ctx, const char *pattern)
{
	struct composing *c = ctx;
	char **at = publisher_add(c, &c->patterns, 1);
	if (at)
		c->patterns.items[c->patterns.n - 1] = publisher_keep(c, pattern);
}

static void add_amount(struct composing *c, struct list *to, const char *name, int64_t amount)
{
	Agent__Amount *a = publisher_add(c, to, sizeof *a);
	if (!a)
		return;
	agent__amount__init(a);
	a->name = publisher_keep(c, name);
	a->amount = amount;
}

static void on_extended(void *ctx, const char *name, int64_t amount)
{
	struct composing *c = ctx;
	add_amount(c, &c->extended, name, amount);
}

static void on_device(void *ctx, const char *name)
{
	struct composing *c = ctx;
	c->device = publisher_add(c, &c->devices, sizeof *c->device);
	if (!c->device)
		return;
	*c->device = (struct device){.msg = AGENT__DEVICE__INIT};
	c->device->msg.name = publisher_keep(c, name);
}

static void on_device_capacity(void *ctx, const char *name, int64_t amount)
{
	struct composing *c = ctx;
	if (c->device)
		add_amount(c, &c->device->capacity, name, amount);
}

static void on_device_limits(void *ctx, int64_t min, int64_t max)
{
	struct composing *c = ctx;
	const struct list *l = c->device ? &c->device->capacity : NULL;
	if (!l || !l->n || min < 0 || (max && max < min))
		return; /* the module has a bug, and the capacity has the usual limits */
	Agent__Limits *limits = PB_NEW(c->arena, Agent__Limits, agent__limits);
	c->failed |= !limits;
	if (!limits)
		return;
	limits->min = min;
	limits->max = max;
	((Agent__Amount *)l->items[l->n - 1])->limits = limits;
}

static Agent__DeviceAttribute *add_device_attribute(struct composing *c, const char *name)
{
	Agent__DeviceAttribute *a =
		c->device ? publisher_add(c, &c->device->attributes, sizeof *a) : NULL;
	if (!a)
		return NULL;
	agent__device_attribute__init(a);
	a->name = publisher_keep(c, name);
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
	Agent__DeviceAttribute *a = add_device_attribute(ctx, name);
	if (!a)
		return;
	a->is_text = true;
	a->text = publisher_keep(ctx, value);
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
static void add_devices(struct publisher *u, struct composing *c, Agent__PublishedRequest *m)
{
	struct err err = ERR_INIT;
	const struct rp_devices_sink sink = {.size = sizeof sink,
					     .ctx = c,
					     .device = on_device,
					     .capacity = on_device_capacity,
					     .number = on_device_number,
					     .text = on_device_text,
					     .limits = on_device_limits};
	m->dra = conf_core(pipeline_conf(u->pipeline))->dra;
	int r = m->dra ? pipeline_devices(u->pipeline, &sink, &err) : 0;
	if (!r && c->devices.n > AGENT_DEVICES_MAX)
		r = err_set(&err, -E2BIG,
			    "the modules offer %zu devices, a ResourceSlice has room for %u: offer "
			    "fewer (policy balloons: fewer balloonTypes)",
			    c->devices.n, AGENT_DEVICES_MAX);
	publisher_say(u->devices_error, "no devices of claims are published",
		      r ? err_text(&err, r) : "");
	if (r)
		return;
	PUBLISHER_SET(m, devices, c->devices);
	for (size_t i = 0; i < c->devices.n; i++) {
		struct device *d = c->devices.items[i];
		PUBLISHER_SET(&d->msg, capacity, d->capacity);
		PUBLISHER_SET(&d->msg, attributes, d->attributes);
	}
}

static void add_pair(struct composing *c, struct list *to, const struct node_wish *w)
{
	Agent__Pair *pair = publisher_add(c, to, sizeof *pair);
	if (!pair)
		return;
	agent__pair__init(pair);
	pair->key = publisher_keep(c, w->key);
	pair->value = publisher_keep(c, w->value);
}

static void add_taint(struct composing *c, const struct node_wish *w)
{
	Agent__Taint *t = publisher_add(c, &c->taints, sizeof *t);
	if (!t)
		return;
	agent__taint__init(t);
	t->key = publisher_keep(c, w->key);
	t->value = publisher_keep(c, w->value);
	t->effect = publisher_keep(c, w->effect);
}

static void add_wishes(struct composing *c, const struct node_wish *all)
{
	for (const struct node_wish *w = all; w; w = w->next) {
		if (node_wish_waits(all, w))
			continue;
		if (w->kind == WISH_LABEL)
			add_pair(c, &c->labels, w);
		else if (w->kind == WISH_ANNOTATION)
			add_pair(c, &c->annotations, w);
		else if (w->kind == WISH_TAINT)
			add_taint(c, w);
		else
			add_amount(c, &c->resources, w->key, w->amount);
	}
}

static void publisher_finish(struct composing *c, Agent__PublishedRequest *m)
{
	PUBLISHER_SET(m, labels, c->labels);
	PUBLISHER_SET(m, annotations, c->annotations);
	PUBLISHER_SET(m, taints, c->taints);
	PUBLISHER_SET(m, resources, c->resources);
	PUBLISHER_SET(m, zones, c->zones);
	PUBLISHER_SET(m, extended, c->extended);
	PUBLISHER_SET(m, owned, c->patterns);
	for (size_t i = 0; i < c->zones.n; i++) {
		struct zone *z = c->zones.items[i];
		PUBLISHER_SET(&z->msg, resources, z->resources);
		PUBLISHER_SET(&z->msg, attributes, z->attributes);
		PUBLISHER_SET(&z->msg, costs, z->costs);
	}
}

/* Composes the message. Data that a policy does not report is empty; data that it fails to report
 * is left out. */
static int publisher_compose(struct publisher *u, struct arena *a, Agent__PublishedRequest *m,
			     struct err *err)
{
	struct composing c = {.arena = a};
	struct pipeline_status s;
	struct noderes_view lent;
	const struct rp_zone_sink zones = {.size = sizeof zones,
					   .ctx = &c,
					   .zone = on_zone,
					   .resource = on_resource,
					   .attribute = on_attribute,
					   .cost = on_cost};
	const struct rp_extended_sink extended = {
		.size = sizeof extended, .ctx = &c, .own = on_own, .resource = on_extended};
	const struct conf_core *core = conf_core(pipeline_conf(u->pipeline));
	int r = core->agent.topology ? pipeline_zones(u->pipeline, &zones, err) : 0;
	if (r && r != -ENOTSUP)
		return r;
	r = pipeline_extended(u->pipeline, &extended, err);
	if (r && r != -ENOTSUP)
		return r;
	add_devices(u, &c, m);
	pipeline_status(u->pipeline, &s);
	m->policy = publisher_keep(&c, s.policy);
	m->topology = core->agent.topology;
	add_wishes(&c, pipeline_wishes(u->pipeline));
	(void)pipeline_noderes(u->pipeline, &lent);
	m->settling = lent.settling;
	m->unready = (char *)(uintptr_t)conditions_unplaced(u->pipeline);
	m->node_condition = core->agent.node_condition;
	m->taint_when_away = core->agent.taint_when_away;
	u->unready = m->unready;
	m->degraded = s.n_degraded;
	m->refused = u->refused = conditions_refusals(u->pipeline);
	publisher_finish(&c, m);
	return c.failed ? err_errno(err, -ENOMEM, "the policy's zones") : 0;
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
