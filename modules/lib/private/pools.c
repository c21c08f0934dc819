/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of a policy with pools, and staging of a container in a pool. */
#include "modules/lib/private/pools.h"

#include <stdio.h>
#include <stdlib.h>

#include <nri-rp/lib/section.h>
#include <nri-rp/lib/zones.h>

int32_t pools_read(const struct modhost *h, rp_cfg section, struct cpualloc *a,
		   const struct reserve_past *past, struct pools *ret)
{
	ret->section = section;
	ret->pin_cpu = section_bool(h, section, "pinCPU", true);
	ret->pin_memory = section_bool(h, section, "pinMemory", true);
	return bounds_read(h, section, a, past, false, &ret->cpus);
}

static int32_t stage_cpus(const struct modhost *h, const struct pools *p, rp_txn txn,
			  const struct rp_ctr_info *info, struct rp_ids cpus, bool own,
			  struct ctr_stage s)
{
	s.cpus = cpus;
	s.own = own ? cpus : rp_ids_none();
	s.group = own ? s.group : 0;
	if (p->pin_cpu || !rp_ids_empty(info->cpus))
		return ctr_stage(h, txn, info->ctr, &s);
	return h->cache->set_degraded(h->ctx, txn, info->ctr, s.degraded);
}

int32_t pools_stage(const struct modhost *h, const struct pools *p, rp_txn txn,
		    const struct rp_ctr_info *info, struct rp_ids cpus, uint32_t group,
		    const char *degraded)
{
	struct rp_idset online;
	bool own = p->pin_cpu && group && !rp_ids_empty(cpus);
	modhost_set(h, RP_CPUS_ONLINE, &online);
	if (rp_ids_empty(cpus))
		cpus = rp_ids_of(rp_ids_empty(rp_ids_of(&p->cpus.reserved)) ? &online
									    : &p->cpus.reserved);
	int32_t r = stage_cpus(h, p, txn, info, p->pin_cpu ? cpus : rp_ids_of(&online), own,
			       (struct ctr_stage){.group = group, .degraded = degraded});
	if (!r)
		r = ctr_set_data_cpus(h, txn, info->ctr, "SHARED_CPUS", cpus);
	if (!r && info->cpu_request > 0)
		r = ctr_set_shares(h, txn, info->ctr, info->cpu_request);
	return r ? r : ctr_pin_memory(h, txn, info, p->pin_memory, cpus);
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
		zones_nodes(h, sink, rp_ids_of(&p->cpus.available), free_cpus, sets, n);
	free(sets);
	free(names);
	return good ? 0 : -RP_ENOMEM;
}
