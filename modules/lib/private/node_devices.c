/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/lib/private/node_devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_FORMAT "cpu-node-%u"
#define NAME_MAX_SIZE 24u

struct node_device {
	char name[NAME_MAX_SIZE];
	struct rp_node_info info;
	struct rp_idset cpus; /* assignable CPUs of the node */
	/* CPUs and bytes that all claims together can get, including the CPUs and bytes that claims
	 * have; bytes that claims have */
	int64_t cpu, memory, claimed;
};

/* CPUs and memory of all containers. */
struct node_usage {
	struct rp_idset exclusive; /* exclusive CPUs of containers without a claim */
	/* bytes that are bound to the node alone: of containers with exclusive CPUs; of claims */
	int64_t memory[RP_NODES_MAX], claimed[RP_NODES_MAX];
};

static int32_t node_devices_count(const struct modhost *h, struct ctr_list *list,
				  struct node_usage *ret)
{
	int32_t n = ctr_list(h, list, RP_ORDER_CREATED);
	memset(ret, 0, sizeof *ret);
	rp_idset_clear(&ret->exclusive);
	for (int32_t i = 0; i < n; i++) {
		struct rp_ctr_info info;
		if (ctr_info(h, list->ctrs[i], &info))
			continue;
		bool claim = info.flags & RP_CTR_CLAIM, alone = rp_ids_count(info.mems) == 1;
		if (!claim)
			rp_idset_or(&ret->exclusive, rp_ids_of(&ret->exclusive), info.exclusive);
		if (alone && claim)
			ret->claimed[rp_ids_first(info.mems)] += info.mem_request;
		else if (alone && !rp_ids_empty(info.exclusive))
			ret->memory[rp_ids_first(info.mems)] += info.mem_request;
	}
	return n < 0 ? n : 0;
}

/* Reads the index-th NUMA node. Returns false if it has no CPUs. */
static bool node_devices_read(const struct modhost *h, const struct node_usage *usage,
			      struct rp_ids assignable, uint32_t index, struct node_device *ret)
{
	struct rp_unit_info unit = {.size = sizeof unit};
	*ret = (struct node_device){.info = {.size = sizeof ret->info}};
	if (h->topology->unit(h->ctx, RP_LEVEL_NODE, index, &unit) || rp_ids_empty(unit.cpus) ||
	    h->topology->node(h->ctx, unit.id, &ret->info))
		return false;
	rp_idset_and(&ret->cpus, unit.cpus, assignable);
	(void)snprintf(ret->name, sizeof ret->name, NAME_FORMAT, unit.id);
	struct rp_ids cpus = rp_ids_of(&ret->cpus);
	ret->cpu = rp_ids_count(cpus) - rp_ids_count_and(cpus, rp_ids_of(&usage->exclusive));
	ret->memory = (int64_t)ret->info.memory - usage->memory[unit.id];
	ret->memory = ret->memory < 0 ? 0 : ret->memory;
	ret->claimed = usage->claimed[unit.id];
	return true;
}

int32_t node_devices_report(const struct modhost *h, struct ctr_list *list,
			    struct rp_ids assignable, const struct rp_devices_sink *sink)
{
	struct node_usage usage;
	int32_t r = node_devices_count(h, list, &usage);
	for (uint32_t i = 0; !r && i < h->topology->n_units(h->ctx, RP_LEVEL_NODE); i++) {
		struct node_device d;
		if (!node_devices_read(h, &usage, assignable, i, &d) || !d.cpu)
			continue;
		sink->device(sink->ctx, d.name);
		sink->capacity(sink->ctx, "cpu", d.cpu);
		sink->capacity(sink->ctx, "memory", d.memory);
		sink->number(sink->ctx, "numaNode", d.info.id);
		sink->number(sink->ctx, "package", d.info.package_id);
	}
	return r;
}

int32_t node_devices_open(const struct modhost *h, struct ctr_list *list, struct rp_ids assignable,
			  const struct rp_ctr_info *claim, const char *device,
			  struct rp_idset *ret_cpus)
{
	struct node_usage usage;
	int32_t r = node_devices_count(h, list, &usage);
	if (r)
		return r;
	for (uint32_t i = 0; i < h->topology->n_units(h->ctx, RP_LEVEL_NODE); i++) {
		struct node_device d;
		if (!node_devices_read(h, &usage, assignable, i, &d) || strcmp(d.name, device) != 0)
			continue;
		if (d.claimed + claim->mem_request > d.memory)
			return modhost_fail(h, -RP_ENOSPC,
					    "device %s has %" PRId64 " MiB of memory left, the "
					    "claim needs %" PRId64 " MiB",
					    device, (d.memory - d.claimed) >> 20,
					    claim->mem_request >> 20);
		rp_idset_copy(ret_cpus, rp_ids_of(&d.cpus));
		return 0;
	}
	return modhost_fail(h, -RP_ENOENT, "this node has no device %s", device);
}
