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

/* Counts a container: exclusive CPUs, and memory that is bound to the node alone. */
static void node_devices_count(struct node_device *d, const struct rp_ctr_info *info)
{
	bool claim = info->flags & RP_CTR_CLAIM;
	bool here = rp_ids_count(info->mems) == 1 && rp_ids_has(info->mems, d->info.id);
	if (!claim)
		d->cpu -= rp_ids_count_and(info->exclusive, rp_ids_of(&d->cpus));
	if (here && claim)
		d->claimed += info->mem_request;
	else if (here && !rp_ids_empty(info->exclusive))
		d->memory -= info->mem_request;
}

/* Reads the index-th NUMA node. 1: it has no CPUs. */
static int32_t node_devices_read(const struct modhost *h, struct ctr_list *list,
				 struct rp_ids assignable, uint32_t index, struct node_device *ret)
{
	struct rp_unit_info unit = {.size = sizeof unit};
	*ret = (struct node_device){.info = {.size = sizeof ret->info}};
	if (h->topology->unit(h->ctx, RP_LEVEL_NODE, index, &unit) || rp_ids_empty(unit.cpus) ||
	    h->topology->node(h->ctx, unit.id, &ret->info))
		return 1;
	rp_idset_and(&ret->cpus, unit.cpus, assignable);
	(void)snprintf(ret->name, sizeof ret->name, NAME_FORMAT, unit.id);
	ret->cpu = rp_ids_count(rp_ids_of(&ret->cpus));
	ret->memory = (int64_t)ret->info.memory;
	int32_t n = ctr_list(h, list, RP_ORDER_CREATED);
	for (int32_t i = 0; i < n; i++) {
		struct rp_ctr_info info;
		if (!ctr_info(h, list->ctrs[i], &info))
			node_devices_count(ret, &info);
	}
	if (ret->memory < 0)
		ret->memory = 0;
	return n < 0 ? n : 0;
}

int32_t node_devices_report(const struct modhost *h, struct ctr_list *list,
			    struct rp_ids assignable, const struct rp_devices_sink *sink)
{
	for (uint32_t i = 0; i < h->topology->n_units(h->ctx, RP_LEVEL_NODE); i++) {
		struct node_device d;
		int32_t r = node_devices_read(h, list, assignable, i, &d);
		if (r < 0)
			return r;
		if (r || !d.cpu)
			continue;
		sink->device(sink->ctx, d.name);
		sink->capacity(sink->ctx, "cpu", d.cpu);
		sink->capacity(sink->ctx, "memory", d.memory);
		sink->number(sink->ctx, "numaNode", d.info.id);
		sink->number(sink->ctx, "package", d.info.package_id);
	}
	return 0;
}

int32_t node_devices_open(const struct modhost *h, struct ctr_list *list, struct rp_ids assignable,
			  const struct rp_ctr_info *claim, const char *device,
			  struct rp_idset *ret_cpus)
{
	for (uint32_t i = 0; i < h->topology->n_units(h->ctx, RP_LEVEL_NODE); i++) {
		struct node_device d;
		int32_t r = node_devices_read(h, list, assignable, i, &d);
		if (r < 0)
			return r;
		if (r || strcmp(d.name, device) != 0)
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
