/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of a policy with pools, staging of a container in a pool, and resizing of pools. */
#include "modules/lib/private/pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/section.h>
#include <nri-rp/lib/zones.h>

static rp_cfg pools_get(const struct modhost *h, const struct pools *p, const char *key)
{
	return section_get(h, p->section, key);
}

int32_t pools_read(const struct modhost *h, rp_cfg section, struct cpualloc *a,
		   const struct reserve_past *past, struct pools *ret)
{
	ret->section = section;
	ret->pin_cpu = h->config->value(h->ctx, pools_get(h, ret, "pinCPU"), RP_T_BOOL, 1) != 0;
	ret->pin_memory =
		h->config->value(h->ctx, pools_get(h, ret, "pinMemory"), RP_T_BOOL, 1) != 0;
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

/* ---- dynamic pools --------------------------------------------------------------------------- */

uint32_t pools_find(const struct pools_pool *list, uint32_t n, const char *name)
{
	uint32_t i = 0;
	while (i < n && strcmp(list[i].name, name) != 0)
		i++;
	return i;
}

void pools_name(struct pools_pool *pool, const char *name)
{
	(void)snprintf(pool->name, sizeof pool->name, "%s", name);
}

static uint32_t n_cpus(const struct pools_pool *pool)
{
	return rp_ids_count(rp_ids_of(&pool->cpus));
}

uint64_t pools_resize(struct cpualloc *a, struct pools_pool *list, uint32_t n, struct rp_ids from,
		      const uint32_t *sizes)
{
	uint64_t changed = 0;
	struct rp_idset left, part;
	rp_idset_copy(&left, from);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t has = n_cpus(&list[i]);
		if (has > sizes[i] && cpualloc_release(a, &list[i].cpus, has - sizes[i],
						       list[i].prio, CPUALLOC_PLAIN, &part) == 0)
			changed |= UINT64_C(1) << i;
		rp_idset_andnot(&left, rp_ids_of(&left), rp_ids_of(&list[i].cpus));
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t has = n_cpus(&list[i]);
		if (has >= sizes[i] || cpualloc_allocate(a, &left, sizes[i] - has, list[i].prio,
							 CPUALLOC_PLAIN, &part))
			continue;
		rp_idset_or(&list[i].cpus, rp_ids_of(&list[i].cpus), rp_ids_of(&part));
		changed |= UINT64_C(1) << i;
	}
	return changed;
}

void pools_gauges(const struct rp_metric_sink *sink, const char *name,
		  const struct pools_pool *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		char labels[POOLS_LABEL_MAX], metric[POOLS_LABEL_MAX];
		const struct {
			const char *suffix, *help;
			double value;
		} rows[] = {
			{"cpus", "CPUs of a pool.", n_cpus(&list[i])},
			{"containers", "Containers in a pool.", list[i].n_ctrs},
			{"requests", "Milli-CPU requested in a pool.", (double)list[i].mcpu},
			{"weight", "Milli-CPU used in a pool at the last reading.",
			 (double)list[i].weight},
		};
		(void)snprintf(labels, sizeof labels, "pool=\"%s\"", list[i].name);
		for (uint32_t k = 0; k < sizeof rows / sizeof *rows; k++) {
			(void)snprintf(metric, sizeof metric, "policy_%s_%s", name, rows[k].suffix);
			sink->gauge(sink->ctx, metric, rows[k].help, labels, rows[k].value);
		}
	}
}
