/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/dynamic-pools/dynamic-pools.h"
#include "modules/lib/glob.h"

const char *const pool_names[N_BUILT_IN] = {"reserved", "shared"};

static const struct rp_key keys[] = {
	POOLS_KEYS,
	{.path = "reservedPoolNamespaces",
	 .type = RP_T_LIST,
	 .doc = "Containers of these namespaces, and of kube-system, go to the pool reserved."},
	{.path = "reservedPoolNamespaces[]", .type = RP_T_STRING, .doc = "A name or a pattern."},
	{.path = "dynamicPoolTypes",
	 .type = RP_T_LIST,
	 .doc = "Pools beside reserved and shared, or more about those two."},
	{.path = "dynamicPoolTypes[]", .type = RP_T_MAP, .doc = "A pool."},
	{.path = "dynamicPoolTypes[].name",
	 .type = RP_T_STRING,
	 .flags = RP_KEY_REQUIRED | RP_KEY_NON_EMPTY,
	 .doc = "As pods name it. reserved and shared are the built-in ones."},
	{.path = "dynamicPoolTypes[].namespaces",
	 .type = RP_T_LIST,
	 .doc = "Whose containers go there."},
	{.path = "dynamicPoolTypes[].namespaces[]",
	 .type = RP_T_STRING,
	 .doc = "A name or a pattern."},
	{.path = "dynamicPoolTypes[].cpuClass",
	 .type = RP_T_STRING,
	 .doc = "The class that the cpu controller gives to the CPUs of its containers."},
	{.path = "dynamicPoolTypes[].allocatorPriority",
	 .type = RP_T_ENUM,
	 .choices = "high|normal|low|none|0|1|2|3",
	 .fallback = "high",
	 .doc = "Which CPUs are preferred, by name or number. Of no effect on reserved and shared, "
		"which have any."},
};

const struct rp_schema dynpools_schema = {
	.size = sizeof(struct rp_schema),
	.flags = RP_SCHEMA_FOLD_CASE,
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
};

struct rp_plan *plan_free(struct rp_plan *p)
{
	if (!p)
		return NULL;
	cpualloc_free(p->alloc);
	blocks_fini(&p->memory);
	free(p);
	return NULL;
}

uint32_t plan_find(const struct rp_plan *p, const char *name)
{
	uint32_t i = 0;
	while (i < p->n && strcmp(p->types[i].name, name) != 0)
		i++;
	return i;
}

void plan_carry(struct rp_plan *p, const struct pools_named *had)
{
	uint32_t k = plan_find(p, had->name);
	if (k == p->n || k == POOL_RESERVED)
		return;
	struct pool *pool = &p->pools[k];
	pool->weight = had->value;
	rp_idset_and(&pool->cpus, rp_ids_of(&had->cpus), rp_ids_of(&p->bounds.rest));
	for (uint32_t i = 0; i < p->n; i++)
		if (i != k)
			rp_idset_andnot(&pool->cpus, rp_ids_of(&pool->cpus),
					rp_ids_of(&p->pools[i].cpus));
}

static int32_t read_namespaces(const struct modhost *h, struct rp_plan *p, rp_cfg list,
			       struct texts *ret)
{
	int32_t r = texts_read(h, &p->memory, list, 0, ret);
	for (uint32_t i = 0; !r && i < ret->n; i++)
		if (!glob_valid(ret->list[i]))
			r = modhost_fail_at(h, h->config->item(h->ctx, list, i), -RP_EINVAL,
					    "\"%.64s\" is no pattern", ret->list[i]);
	return r;
}

static enum cpualloc_prio read_priority(const char *text)
{
	static const char *const names[] = {"high", "normal", "low"};
	for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(text, names[i]) == 0 || text[0] == (char)('0' + i))
			return (enum cpualloc_prio)i;
	return CPUALLOC_NONE;
}

static int32_t read_type(const struct modhost *h, struct rp_plan *p, rp_cfg at)
{
	const char *name = h->config->text(h->ctx, h->config->get(h->ctx, at, "name"), "");
	uint32_t k = plan_find(p, name);
	if (!*name || strlen(name) > POOLS_NAME_MAX)
		return modhost_fail_at(h, at, -RP_EINVAL, "a pool has a name of 1 to %u bytes",
				       POOLS_NAME_MAX);
	if (k < p->n && p->types[k].at)
		return modhost_fail_at(h, at, -RP_EINVAL, "two pools are named \"%s\"", name);
	if (k == POOLS_MAX)
		return modhost_fail_at(h, at, -RP_EINVAL, "there are at most %u pools", POOLS_MAX);
	p->n += k == p->n;
	struct pool_type *t = &p->types[k];
	t->at = at;
	(void)snprintf(t->name, sizeof t->name, "%s", name);
	t->cpu_class = h->config->text(h->ctx, h->config->get(h->ctx, at, "cpuClass"), "");
	if (k >= N_BUILT_IN)
		t->prio = read_priority(h->config->text(
			h->ctx, h->config->get(h->ctx, at, "allocatorPriority"), "high"));
	return read_namespaces(h, p, h->config->get(h->ctx, at, "namespaces"), &t->namespaces);
}

static int32_t read_types(const struct modhost *h, struct rp_plan *p)
{
	rp_cfg list = h->config->get(h->ctx, p->bounds.section, "dynamicPoolTypes");
	for (; p->n < N_BUILT_IN; p->n++) {
		struct pool_type *t = &p->types[p->n];
		(void)snprintf(t->name, sizeof t->name, "%s", pool_names[p->n]);
		t->cpu_class = "";
		t->prio = CPUALLOC_NONE;
	}
	int32_t r = 0;
	for (uint32_t i = 0; !r && i < h->config->count(h->ctx, list); i++)
		r = read_type(h, p, h->config->item(h->ctx, list, i));
	return r;
}

static int32_t read_section(const struct modhost *h, struct rp_plan *p)
{
	struct texts *system = &p->system_namespaces;
	rp_cfg list = h->config->get(h->ctx, p->bounds.section, "reservedPoolNamespaces");
	int32_t r = read_namespaces(h, p, list, system);
	if (!r)
		r = read_types(h, p);
	if (r)
		return r;
	p->pools = blocks_alloc(&p->memory, p->n, sizeof *p->pools);
	p->before = blocks_alloc(&p->memory, p->n, sizeof *p->before);
	if (!p->pools || !p->before)
		return modhost_fail(h, -RP_ENOMEM, "out of memory");
	rp_idset_copy(&p->pools[POOL_RESERVED].cpus, rp_ids_of(&p->bounds.reserved));
	return 0;
}

int32_t plan_new(const struct modhost *h, rp_cfg section, const struct reserve_past *past,
		 struct rp_plan **ret)
{
	struct rp_plan *p = calloc(1, sizeof *p);
	int32_t r = !p || cpualloc_new(h->topology, h->ctx, &p->alloc)
			    ? modhost_fail(h, -RP_ENOMEM, "out of memory")
			    : 0;
	if (!r)
		r = pools_read(h, section, p->alloc, past, &p->bounds);
	if (!r && !past->hotplug && rp_ids_empty(rp_ids_of(&p->bounds.rest)))
		r = modhost_fail_at(h, section, -RP_EINVAL,
				    "no CPU is left for the pools beside reserved");
	if (!r)
		r = read_section(h, p);
	if (r) {
		plan_free(p);
		return r;
	}
	*ret = p;
	return 0;
}
