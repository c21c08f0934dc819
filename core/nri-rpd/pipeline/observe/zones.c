/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/pipeline/observe/zones.h"

struct zones {
	struct arena *arena;
	Agent__PublishedRequest *ret;
	Agent__Zone *zone; /* zone reported last; NULL: none */
};

static void zones_on_zone(void *ctx, const char *name, const char *type, const char *parent)
{
	struct zones *z = ctx;
	z->zone = PB_ADD(z->arena, z->ret, zones, agent__zone);
	if (!z->zone)
		return;
	z->zone->name = pb_build_text(z->arena, name);
	z->zone->type = pb_build_text(z->arena, type);
	z->zone->parent = pb_build_text(z->arena, parent);
}

static void zones_on_resource(void *ctx, const char *name, int64_t capacity, int64_t allocatable,
			      int64_t available)
{
	struct zones *z = ctx;
	Agent__ZoneResource *r =
		z->zone ? PB_ADD(z->arena, z->zone, resources, agent__zone_resource) : NULL;
	if (!r)
		return;
	r->name = pb_build_text(z->arena, name);
	r->capacity = capacity;
	r->allocatable = allocatable;
	r->available = available;
}

static void zones_on_attribute(void *ctx, const char *name, const char *value)
{
	struct zones *z = ctx;
	Agent__Attribute *a =
		z->zone ? PB_ADD(z->arena, z->zone, attributes, agent__attribute) : NULL;
	if (!a)
		return;
	a->name = pb_build_text(z->arena, name);
	a->value = pb_build_text(z->arena, value);
}

static void zones_on_cost(void *ctx, const char *other, int64_t value)
{
	struct zones *z = ctx;
	Agent__Cost *cost = z->zone ? PB_ADD(z->arena, z->zone, costs, agent__cost) : NULL;
	if (!cost)
		return;
	cost->name = pb_build_text(z->arena, other);
	cost->value = value;
}

int zones_collect(struct pipeline *p, struct arena *a, Agent__PublishedRequest *ret,
		  struct err *err)
{
	struct zones z = {.arena = a, .ret = ret};
	const struct rp_zone_sink sink = {.size = sizeof sink,
					  .ctx = &z,
					  .zone = zones_on_zone,
					  .resource = zones_on_resource,
					  .attribute = zones_on_attribute,
					  .cost = zones_on_cost};
	return pipeline_zones(p, &sink, err);
}

static void zones_on_own(void *ctx, const char *pattern)
{
	struct zones *z = ctx;
	(void)pb_build_item(z->arena, pb_build_text(z->arena, pattern), &z->ret->owned,
			    &z->ret->n_owned);
}

static void zones_on_extended(void *ctx, const char *name, int64_t amount)
{
	struct zones *z = ctx;
	Agent__Amount *a = PB_ADD(z->arena, z->ret, extended, agent__amount);
	if (!a)
		return;
	a->name = pb_build_text(z->arena, name);
	a->amount = amount;
}

int zones_collect_extended(struct pipeline *p, struct arena *a, Agent__PublishedRequest *ret,
			   struct err *err)
{
	struct zones z = {.arena = a, .ret = ret};
	const struct rp_extended_sink sink = {
		.size = sizeof sink, .ctx = &z, .own = zones_on_own, .resource = zones_on_extended};
	return pipeline_extended(p, &sink, err);
}
