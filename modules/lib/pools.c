/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/lib/pools.h"

#include <stdio.h>
#include <stdlib.h>

#include "modules/lib/amount.h"
#include "modules/lib/zones.h"

static rp_cfg get(const struct modhost *h, const struct pools *p, const char *key)
{
	return h->config->get(h->ctx, p->section, key);
}

static int32_t reserve(const struct modhost *h, struct cpualloc *a, const struct reserve_past *past,
		       struct pools *p)
{
	rp_cfg at = get(h, p, "reservedResources.cpu");
	struct rp_idset from, more;
	struct amount amount;
	int32_t r = amount_read(h, at, AMOUNT_TAKES_QUANTITY | AMOUNT_TAKES_CPUS, &amount);
	if (r)
		return r;
	rp_idset_clear(&p->reserved);
	if (amount.kind == AMOUNT_CPUS) {
		rp_idset_and(&p->reserved, rp_ids_of(&amount.cpus), rp_ids_of(&p->available));
	} else if (amount_count(&amount)) {
		uint32_t n = reserve_quantity(past, rp_ids_of(&p->available), cpualloc_online(a),
					      amount_count(&amount), &p->reserved, &from);
		if (cpualloc_allocate(a, &from, n, CPUALLOC_NONE, CPUALLOC_PLAIN, &more) == 0)
			rp_idset_or(&p->reserved, rp_ids_of(&p->reserved), rp_ids_of(&more));
	}
	if (!amount_count(&amount) || past->hotplug || !rp_ids_empty(rp_ids_of(&p->reserved)))
		return 0;
	return modhost_fail_at(h, at, -RP_EINVAL,
			       "none of the CPUs to be reserved is available, or too few are");
}

int32_t pools_read(const struct modhost *h, rp_cfg section, struct cpualloc *a,
		   const struct reserve_past *past, struct pools *ret)
{
	struct amount available;
	ret->section = section;
	ret->pin_cpu = h->config->value(h->ctx, get(h, ret, "pinCPU"), RP_T_BOOL, 1) != 0;
	ret->pin_memory = h->config->value(h->ctx, get(h, ret, "pinMemory"), RP_T_BOOL, 1) != 0;
	int32_t r = amount_read(h, get(h, ret, "availableResources.cpu"),
				AMOUNT_TAKES_CPUS | AMOUNT_TAKES_EXCEPT, &available);
	if (r)
		return r;
	amount_pick(&available, cpualloc_online(a), &ret->available);
	r = reserve(h, a, past, ret);
	rp_idset_andnot(&ret->rest, rp_ids_of(&ret->available), rp_ids_of(&ret->reserved));
	return r;
}

static int32_t stage_cpus(const struct modhost *h, const struct pools *p, rp_txn txn,
			  const struct rp_ctr_info *info, struct rp_ids cpus, uint32_t group)
{
	bool own = p->pin_cpu && group;
	struct rp_idset online;
	int32_t r = 0;
	modhost_set(h, RP_CPUS_ONLINE, &online);
	if (p->pin_cpu || !rp_ids_empty(info->cpus))
		r = h->cache->set_cpus(h->ctx, txn, info->ctr,
				       p->pin_cpu ? cpus : rp_ids_of(&online));
	if (!r)
		r = h->cache->set_exclusive(h->ctx, txn, info->ctr, own ? cpus : rp_ids_none());
	if (!r)
		r = h->cache->set_group(h->ctx, txn, info->ctr, own ? group : 0);
	return r ? r : ctr_set_data_cpus(h, txn, info->ctr, "SHARED_CPUS", cpus);
}

int32_t pools_stage(const struct modhost *h, const struct pools *p, rp_txn txn,
		    const struct rp_ctr_info *info, struct rp_ids cpus, uint32_t group)
{
	struct rp_idset nodes;
	int32_t r = stage_cpus(h, p, txn, info, cpus, group);
	if (!r && info->cpu_request > 0)
		r = ctr_set_shares(h, txn, info->ctr, info->cpu_request);
	rp_idset_clear(&nodes);
	if (p->pin_memory)
		ctr_memory_near(h, cpus, &nodes);
	if (r || info->flags & RP_CTR_PRESERVE_MEM || (!p->pin_memory && rp_ids_empty(info->mems)))
		return r;
	return ctr_set_memory(h, txn, info->ctr, rp_ids_of(&nodes));
}

#define ATTRIBUTE_MAX (POOLS_LABEL_MAX + 8u)

int32_t pools_zones(const struct modhost *h, const struct pools *p, const struct rp_zone_sink *sink,
		    struct rp_ids free_cpus, const struct pools_zone *zones, uint32_t n)
{
	struct zones_set *sets = calloc(n, sizeof *sets);
	char(*names)[ATTRIBUTE_MAX] = calloc(n, sizeof *names);
	bool good = sets && names;
	for (uint32_t i = 0; good && i < n; i++) {
		(void)snprintf(names[i], sizeof names[i], "%s cpuset", zones[i].label);
		sets[i] = (struct zones_set){names[i], zones[i].cpus};
	}
	if (good)
		zones_nodes(h, sink, rp_ids_of(&p->available), free_cpus, sets, n);
	free(sets);
	free(names);
	return good ? 0 : -RP_ENOMEM;
}
