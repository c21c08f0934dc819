/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/lib/private/node_devices.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_SIZE 24u
#define WHY_MAX 256u
#define NODE_PREFIX "cpu-node-"

struct node_device {
	char name[NAME_MAX_SIZE];
	const char *level;
	struct rp_idset cpus, nodes; /* assignable CPUs and NUMA nodes of the device */
	struct rp_ids all; /* all CPUs of the device */
	struct rp_node_info first; /* first of the nodes */
	/* CPUs and bytes that all claims together can get, including the CPUs and bytes that claims
	 * have; bytes that claims have */
	int64_t cpu, memory, claimed;
};

/* Sizes of huge pages that claims can get. */
static const char *const node_devices_huge[] = {"hugepages-2Mi", "hugepages-1Gi"};
#define N_HUGE (sizeof node_devices_huge / sizeof *node_devices_huge)

/* Bytes of whole huge pages that all claims together can get, by NUMA node. */
struct node_huge {
	int64_t of[RP_NODES_MAX][N_HUGE];
};

/* Levels in the order of the devices. */
static const struct node_devices_level {
	uint32_t level;
	const char *prefix, *name;
} node_devices_levels[] = {
	{RP_LEVEL_NODE, NODE_PREFIX, "node"},
	{RP_LEVEL_L3, "cpu-l3-", "l3"},
	{RP_LEVEL_PACKAGE, "cpu-socket-", "socket"},
};

bool node_devices_is_node(const char *device)
{
	return strncmp(device, NODE_PREFIX, sizeof NODE_PREFIX - 1) == 0;
}

/* CPUs and memory of all containers. */
struct node_usage {
	struct rp_idset exclusive; /* exclusive CPUs of containers without a claim */
	/* bytes bound to one node: of containers with exclusive CPUs, and of claims */
	int64_t memory[RP_NODES_MAX], claimed[RP_NODES_MAX];
	int32_t n_wide; /* number of containers bound to several nodes, at the front of the list */
};

static void node_devices_count(const struct node_devices *of, const struct rp_ctr_info *info,
			       rp_ctr ctr, struct node_usage *u)
{
	bool claim = info->flags & RP_CTR_CLAIM;
	if (!claim)
		rp_idset_or(&u->exclusive, rp_ids_of(&u->exclusive), info->exclusive);
	if (rp_ids_empty(info->mems) || (!claim && rp_ids_empty(info->exclusive)))
		return;
	if (rp_ids_count(info->mems) > 1)
		of->list->ctrs[u->n_wide++] = ctr;
	else
		(claim ? u->claimed : u->memory)[rp_ids_first(info->mems)] += info->mem_request;
}

static int32_t node_devices_count_all(const struct node_devices *of, struct node_usage *ret)
{
	int32_t n = ctr_list(of->h, of->list, RP_ORDER_CREATED);
	memset(ret, 0, sizeof *ret);
	rp_idset_clear(&ret->exclusive);
	for (int32_t i = 0; i < n; i++) {
		struct rp_ctr_info info;
		if (!ctr_info(of->h, of->list->ctrs[i], &info))
			node_devices_count(of, &info, of->list->ctrs[i], ret);
	}
	return n < 0 ? n : 0;
}

/* Counts the device's CPUs, and subtracts what containers have of its CPUs and memory. With
 * siblings: own only whole cores count. */
static void node_devices_subtract(const struct node_devices *of, const struct node_usage *u,
				  struct node_device *d)
{
	struct rp_ids nodes = rp_ids_of(&d->nodes);
	struct rp_idset left;
	rp_idset_andnot(&left, rp_ids_of(&d->cpus), rp_ids_of(&u->exclusive));
	isolation_narrow(of->h, of->isolation, &left);
	d->cpu = rp_ids_count(rp_ids_of(&left));
	RP_IDS_EACH (node, nodes) {
		d->memory -= u->memory[node];
		d->claimed += u->claimed[node];
	}
	for (int32_t i = 0; i < u->n_wide; i++) {
		struct rp_ctr_info info;
		if (ctr_info(of->h, of->list->ctrs[i], &info) || !rp_ids_subset(info.mems, nodes))
			continue;
		if (info.flags & RP_CTR_CLAIM)
			d->claimed += info.mem_request;
		else
			d->memory -= info.mem_request;
	}
	if (d->memory < 0)
		d->memory = 0;
}

/* Finds the NUMA nodes of the device's CPUs, and their memory. */
static void node_devices_find_nodes(const struct modhost *h, struct node_device *d)
{
	for (uint32_t i = 0; i < h->topology->n_units(h->ctx, RP_LEVEL_NODE); i++) {
		struct rp_unit_info unit = {.size = sizeof unit};
		struct rp_node_info node = {.size = sizeof node};
		if (h->topology->unit(h->ctx, RP_LEVEL_NODE, i, &unit) ||
		    !rp_ids_overlap(unit.cpus, d->all) || h->topology->node(h->ctx, unit.id, &node))
			continue;
		if (rp_ids_empty(rp_ids_of(&d->nodes)))
			d->first = node;
		rp_idset_add(&d->nodes, unit.id);
		d->memory += (int64_t)node.memory;
	}
}

/* Reads the index-th unit of a level. Returns false if it is no device. */
static bool node_devices_read(const struct node_devices *of, const struct node_usage *usage,
			      const struct node_devices_level *l, uint32_t index,
			      struct node_device *ret)
{
	const struct modhost *h = of->h;
	struct rp_unit_info unit = {.size = sizeof unit};
	*ret = (struct node_device){.level = l->name};
	if (h->topology->unit(h->ctx, l->level, index, &unit) || rp_ids_empty(unit.cpus) ||
	    (l->level != RP_LEVEL_NODE && !of->offers(of->arg, unit.cpus)))
		return false;
	ret->all = unit.cpus;
	rp_idset_and(&ret->cpus, unit.cpus, of->assignable);
	/* numbers of caches are unique only within their parents */
	(void)snprintf(ret->name, sizeof ret->name, "%s%u", l->prefix,
		       l->level == RP_LEVEL_L3 ? index : unit.id);
	node_devices_find_nodes(h, ret);
	node_devices_subtract(of, usage, ret);
	return true;
}

/* Reports the attributes that all CPUs of the device have in common. */
static void node_devices_attributes(const struct modhost *h, const struct node_device *d,
				    const struct rp_devices_sink *sink)
{
	static const char *const types[] = {"DRAM", "PMEM", "HBM", "CXL"};
	const uint32_t size = offsetof(struct rp_cpu_info, base_khz);
	struct rp_cpu_info first = {.size = size}, cpu = {.size = size};
	bool die = true, l3, kind = true;
	struct rp_ids isolated = rp_ids_none();
	if (h->topology->cpu(h->ctx, rp_ids_first(d->all), &first))
		return;
	l3 = first.unit[RP_LEVEL_L3] != RP_IDSET_NONE;
	RP_IDS_EACH (id, d->all) {
		if (h->topology->cpu(h->ctx, id, &cpu))
			continue;
		die = die && cpu.die_id == first.die_id;
		l3 = l3 && cpu.unit[RP_LEVEL_L3] == first.unit[RP_LEVEL_L3];
		kind = kind && cpu.kind == first.kind;
	}
	sink->text(sink->ctx, "level", d->level);
	if (rp_ids_count(rp_ids_of(&d->nodes)) == 1)
		sink->number(sink->ctx, "numaNode", d->first.id);
	sink->number(sink->ctx, "package", first.package_id);
	if (die)
		sink->number(sink->ctx, "die", first.die_id);
	if (l3)
		sink->number(sink->ctx, "l3", first.unit[RP_LEVEL_L3]);
	if (d->first.type < sizeof types / sizeof *types)
		sink->text(sink->ctx, "memoryType", types[d->first.type]);
	(void)h->topology->set(h->ctx, RP_CPUS_ISOLATED, &isolated);
	sink->number(sink->ctx, "isolatedCPUs", rp_ids_count_and(isolated, d->all));
	if (kind)
		sink->text(sink->ctx, "coreType",
			   first.kind == RP_CORE_EFFICIENT ? "efficient" : "performance");
}

static bool node_devices_has_level(const struct node_devices *of,
				   const struct node_devices_level *l)
{
	return l->level == RP_LEVEL_NODE || of->levels & 1u << l->level;
}

/* Reads the huge pages of all NUMA nodes. */
static void node_devices_read_huge(const struct modhost *h, struct node_huge *ret)
{
	struct rp_hugepages_info info = {.size = sizeof info};
	struct rp_idset nodes;
	memset(ret, 0, sizeof *ret);
	modhost_set(h, RP_NODES_MEMORY, &nodes);
	struct rp_ids list = rp_ids_of(&nodes);
	if (!RP_HAS(h->cache, node_hugepages))
		return;
	RP_IDS_EACH (node, list)
		for (uint32_t i = 0; !h->cache->node_hugepages(h->ctx, node, i, &info); i++)
			for (unsigned k = 0; k < N_HUGE; k++)
				if (strcmp(info.resource, node_devices_huge[k]) == 0)
					ret->of[node][k] = (int64_t)((info.left + info.claimed) /
								     info.page * info.page);
}

static void node_devices_report_huge(const struct node_device *d, const struct node_huge *huge,
				     const struct rp_devices_sink *sink)
{
	struct rp_ids nodes = rp_ids_of(&d->nodes);
	for (unsigned k = 0; k < N_HUGE; k++) {
		int64_t bytes = 0;
		RP_IDS_EACH (node, nodes)
			bytes += huge->of[node][k];
		if (bytes)
			sink->capacity(sink->ctx, node_devices_huge[k], bytes);
	}
}

#define N_LEVELS (sizeof node_devices_levels / sizeof *node_devices_levels)

int32_t node_devices_report(const struct node_devices *of, const struct rp_devices_sink *sink)
{
	const struct modhost *h = of->h;
	struct node_usage usage;
	struct node_huge huge;
	int32_t r = node_devices_count_all(of, &usage);
	node_devices_read_huge(h, &huge);
	for (unsigned k = 0; !r && k < N_LEVELS; k++) {
		const struct node_devices_level *l = &node_devices_levels[k];
		uint32_t n =
			node_devices_has_level(of, l) ? h->topology->n_units(h->ctx, l->level) : 0;
		for (uint32_t i = 0; i < n; i++) {
			struct node_device d;
			if (!node_devices_read(of, &usage, l, i, &d) || !d.cpu)
				continue;
			sink->device(sink->ctx, d.name);
			sink->capacity(sink->ctx, "cpu", d.cpu);
			if (of->isolation->threads > 1)
				modhost_limits(sink, of->isolation->threads, 0);
			sink->capacity(sink->ctx, "memory", d.memory);
			node_devices_report_huge(&d, &huge, sink);
			node_devices_attributes(h, &d, sink);
		}
	}
	return r;
}

/* Checks that the device has the huge pages that the claim requests. */
static int32_t node_devices_check_huge(const struct modhost *h, const struct rp_ctr_info *claim,
				       const struct node_device *d)
{
	char why[WHY_MAX];
	if (!RP_HAS(h->cache, hugepages) ||
	    h->cache->hugepages(h->ctx, 0, claim->ctr, rp_ids_of(&d->nodes), why, sizeof why) >= 0)
		return 0;
	return modhost_fail(h, -RP_ENOSPC, "device %s: %s", d->name, why);
}

int32_t node_devices_open(const struct node_devices *of, const struct rp_ctr_info *claim,
			  const char *device, struct rp_idset *ret_cpus)
{
	const struct modhost *h = of->h;
	struct node_usage usage;
	int32_t r = node_devices_count_all(of, &usage);
	if (r)
		return r;
	for (unsigned k = 0; k < N_LEVELS; k++) {
		const struct node_devices_level *l = &node_devices_levels[k];
		size_t len = strlen(l->prefix);
		uint32_t n = node_devices_has_level(of, l) && strncmp(device, l->prefix, len) == 0
				     ? h->topology->n_units(h->ctx, l->level)
				     : 0;
		for (uint32_t i = 0; i < n; i++) {
			struct node_device d;
			if (!node_devices_read(of, &usage, l, i, &d) || strcmp(d.name, device) != 0)
				continue;
			if (d.claimed + claim->mem_request > d.memory)
				return modhost_fail(h, -RP_ENOSPC,
						    "device %s has %" PRId64
						    " MiB of memory left, the claim needs %" PRId64
						    " MiB",
						    device, (d.memory - d.claimed) >> 20,
						    claim->mem_request >> 20);
			rp_idset_copy(ret_cpus, rp_ids_of(&d.cpus));
			return node_devices_check_huge(h, claim, &d);
		}
	}
	return modhost_fail(h, -RP_ENOENT, "this node has no device %s", device);
}
