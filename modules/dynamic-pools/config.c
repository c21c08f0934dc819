/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the configuration section into pools without sizes; size.c computes these. */
#include <stdio.h>
#include <string.h>

#include "modules/dynamic-pools/dynamic-pools.h"
#include <nri-rp/lib/glob.h>
#include <nri-rp/lib/section.h>

const char *const pool_names[N_BUILT_IN] = {"reserved", "shared"};

static const struct rp_key keys[] = {
	POOLS_KEYS,
	SECTION_LIST(
		"reservedPoolNamespaces",
		"Containers of these namespaces, and of kube-system, go to the pool reserved."),
	SECTION_TEXT("reservedPoolNamespaces[]", "A name or a pattern."),
	SECTION_LIST("dynamicPoolTypes",
		     "Pools besides reserved and shared, or settings of those two."),
	SECTION_MAP("dynamicPoolTypes[]", "A pool."),
	SECTION_KEY("dynamicPoolTypes[].name", STRING,
		    "Name used by pods. reserved and shared are built in.",
		    .flags = RP_KEY_REQUIRED | RP_KEY_NON_EMPTY),
	SECTION_LIST("dynamicPoolTypes[].namespaces", "Namespaces whose containers use the pool."),
	SECTION_TEXT("dynamicPoolTypes[].namespaces[]", "A name or a pattern."),
	SECTION_TEXT("dynamicPoolTypes[].cpuClass",
		     "Class of the controller cpu for the CPUs of its containers."),
	SECTION_CHOICE("dynamicPoolTypes[].allocatorPriority", "high|normal|low|none|0|1|2|3",
		       "high",
		       "Preferred CPUs, by name or number. No effect for reserved and shared."),
};

const struct rp_schema dynpools_schema = SECTION_SCHEMA(keys, .flags = RP_SCHEMA_FOLD_CASE);

void plan_fini(struct rp_plan *p)
{
	cpualloc_free(p->alloc);
	blocks_fini(&p->memory);
}

uint32_t plan_pool(const struct rp_plan *p, const char *name)
{
	uint32_t i = 0;
	while (i < p->n && strcmp(p->pools[i].name, name) != 0)
		i++;
	return i;
}

static void config_set_name(struct pool *pool, const char *name)
{
	(void)snprintf(pool->name, sizeof pool->name, "%s", name);
}

static enum cpualloc_prio read_priority(const struct modhost *h, rp_cfg at)
{
	static const char *const names[] = {"high", "normal", "low"};
	const char *text = section_text(h, at, "allocatorPriority", names[0]);
	for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(text, names[i]) == 0 || text[0] == (char)('0' + i))
			return (enum cpualloc_prio)i;
	return CPUALLOC_NONE;
}

static int32_t read_type(const struct modhost *h, struct rp_plan *p, rp_cfg at)
{
	const char *name = section_text(h, at, "name", "");
	uint32_t k = plan_pool(p, name);
	if (!*name || strlen(name) > POOLS_NAME_MAX)
		return modhost_refuse(h, at, "a pool has a name of 1 to %u bytes", POOLS_NAME_MAX);
	if (k < p->n && p->types[k].at)
		return modhost_refuse(h, at, "two pools are named \"%s\"", name);
	if (k == POOLS_MAX)
		return modhost_refuse(h, at, "there are at most %u pools", POOLS_MAX);
	p->n += k == p->n;
	config_set_name(&p->pools[k], name);
	p->types[k].at = at;
	p->types[k].cpu_class = section_text(h, at, "cpuClass", "");
	p->pools[k].prio = k < N_BUILT_IN ? CPUALLOC_NONE : read_priority(h, at);
	return glob_read(h, &p->memory, section_get(h, at, "namespaces"), &p->types[k].namespaces);
}

static int32_t read_section(const struct modhost *h, struct rp_plan *p)
{
	rp_cfg types = section_get(h, p->bounds.section, "dynamicPoolTypes"),
	       system = section_get(h, p->bounds.section, "reservedPoolNamespaces");
	for (; p->n < N_BUILT_IN; p->n++) {
		config_set_name(&p->pools[p->n], pool_names[p->n]);
		p->pools[p->n].prio = CPUALLOC_NONE;
		p->types[p->n].cpu_class = "";
	}
	rp_idset_copy(&p->pools[POOL_RESERVED].cpus, rp_ids_of(&p->bounds.cpus.reserved));
	int32_t r = glob_read(h, &p->memory, system, &p->system_namespaces);
	for (uint32_t i = 0; !r && i < h->config->count(h->ctx, types); i++)
		r = read_type(h, p, h->config->item(h->ctx, types, i));
	return r;
}

int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	int32_t r = cpualloc_new(h->topology, h->ctx, &p->alloc) ? modhost_no_memory(h) : 0;
	if (!r)
		r = pools_read(h, section, p->alloc, past, &p->bounds);
	if (!r && !past->hotplug && rp_ids_empty(rp_ids_of(&p->bounds.cpus.rest)))
		r = modhost_refuse(h, section, "no CPU is left for the pools beside reserved");
	if (!r)
		r = read_section(h, p);
	if (!r)
		saved_carry(inst, p);
	return r;
}
