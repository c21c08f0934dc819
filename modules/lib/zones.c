/* SPDX-License-Identifier: Apache-2.0 */
/* Zones of NUMA nodes. */
#include <nri-rp/lib/zones.h>

#include <stdio.h>

#define ZONE_NAME_MAX 32u

static void name_of(uint32_t node, char buf[ZONE_NAME_MAX])
{
	(void)snprintf(buf, ZONE_NAME_MAX, "NUMA node #%u", node);
}

static int64_t zones_mcpu(struct rp_ids cpus, struct rp_ids of)
{
	return 1000 * (int64_t)rp_ids_count_and(cpus, of);
}

void zones_attribute(const struct rp_zone_sink *sink, const char *name, struct rp_ids ids)
{
	char text[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(ids, text, sizeof text);
	sink->attribute(sink->ctx, name, text);
}

static void put_attribute(const struct rp_zone_sink *sink, const char *name, struct rp_ids cpus,
			  struct rp_ids of)
{
	struct rp_idset part;
	rp_idset_and(&part, cpus, of);
	zones_attribute(sink, name, rp_ids_of(&part));
}

static void put_costs(const struct modhost *h, const struct rp_zone_sink *sink, uint32_t node)
{
	for (uint32_t i = 0; i < h->topology->n_units(h->ctx, RP_LEVEL_NODE); i++) {
		struct rp_unit_info other = {.size = sizeof other};
		char name[ZONE_NAME_MAX];
		if (h->topology->unit(h->ctx, RP_LEVEL_NODE, i, &other) || rp_ids_empty(other.cpus))
			continue; /* the node has no zone */
		uint32_t d = h->topology->distance(h->ctx, node, other.id);
		name_of(other.id, name);
		if (d)
			sink->cost(sink->ctx, name, d);
	}
}

void zones_hugepages(const struct modhost *h, const struct rp_zone_sink *sink, struct rp_ids nodes)
{
	struct rp_hugepages_info first = {.size = sizeof first};
	uint32_t any = rp_ids_first(nodes);
	if (!RP_HAS(h->cache, node_hugepages) || rp_ids_empty(nodes))
		return;
	for (uint32_t i = 0; !h->cache->node_hugepages(h->ctx, any, i, &first); i++) {
		int64_t total = 0, others = 0, left = 0;
		RP_IDS_EACH (node, nodes) {
			struct rp_hugepages_info info = {.size = sizeof info};
			(void)h->cache->node_hugepages(h->ctx, node, i, &info);
			total += (int64_t)info.total;
			others += (int64_t)info.others;
			left += (int64_t)info.left;
		}
		if (total && *first.resource)
			sink->resource(sink->ctx, first.resource, total, total - others, left);
	}
}

void zones_nodes(const struct modhost *h, const struct rp_zone_sink *sink,
		 struct rp_ids allocatable, struct rp_ids free, const struct zones_set *sets,
		 uint32_t n)
{
	for (uint32_t i = 0; i < h->topology->n_units(h->ctx, RP_LEVEL_NODE); i++) {
		struct rp_unit_info node = {.size = sizeof node};
		struct rp_idset self;
		char name[ZONE_NAME_MAX];
		if (h->topology->unit(h->ctx, RP_LEVEL_NODE, i, &node) || rp_ids_empty(node.cpus))
			continue;
		name_of(node.id, name);
		sink->zone(sink->ctx, name, "numa node", "");
		sink->resource(sink->ctx, "cpu", zones_mcpu(node.cpus, node.cpus),
			       zones_mcpu(allocatable, node.cpus), zones_mcpu(free, node.cpus));
		rp_idset_clear(&self);
		rp_idset_add(&self, node.id);
		zones_hugepages(h, sink, rp_ids_of(&self));
		put_attribute(sink, "cpuset", node.cpus, node.cpus);
		for (uint32_t k = 0; k < n; k++)
			put_attribute(sink, sets[k].name, sets[k].cpus, node.cpus);
		put_costs(h, sink, node.id);
	}
}
