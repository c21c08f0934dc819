/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "modules/cpuset/cpuset.h"
#include "modules/lib/cpualloc.h"

static const struct rp_key keys[] = {
	{.path = "coreIdsAnnotation",
	 .type = RP_T_STRING,
	 .flags = RP_KEY_NON_EMPTY,
	 .fallback = "weka.io/cores-ids",
	 .doc = "Annotation by which a pod names the CPUs of its containers."},
	{.path = "forbidCoreIdsAnnotation",
	 .type = RP_T_STRING,
	 .flags = RP_KEY_NON_EMPTY,
	 .fallback = "weka.io/forbid-core-ids",
	 .doc = "Annotation by which a pod names CPUs that its containers must not run on."},
	{.path = "availableResources", .type = RP_T_MAP, .doc = "What containers may use."},
	{.path = "availableResources.cpu",
	 .type = RP_T_AMOUNT,
	 .doc = "CPUs that containers may use, as a set; by default all online ones."},
	{.path = "reservedResources",
	 .type = RP_T_MAP,
	 .doc = "What no container gets for itself unless its pod names it."},
	{.path = "reservedResources.cpu",
	 .type = RP_T_AMOUNT,
	 .doc = "CPUs that no integer container gets: a set, or a quantity that is rounded up to "
		"whole CPUs; by default none."},
	{.path = "minSharedCPUs",
	 .type = RP_T_INT,
	 .max = RP_CPUS_MAX,
	 .doc = "CPUs that have to be left for shared containers; by default one while such "
		"containers run. 0 needs sharedOverlap."},
	{.path = "sharedOverlap",
	 .type = RP_T_BOOL,
	 .fallback = "false",
	 .doc = "Where nothing is left for shared containers, let them run on where they are, on "
		"CPUs that belong to others by now."},
	{.path = "pinMemory",
	 .type = RP_T_BOOL,
	 .fallback = "true",
	 .doc = "Annotated containers get their memory from the NUMA nodes of their CPUs."},
	{.path = "integerNeeds",
	 .type = RP_T_ENUM,
	 .choices = "cpu|cpu-and-memory",
	 .fallback = "cpu-and-memory",
	 .doc = "Whether a container has to have a memory limit, too, to get CPUs for itself."},
	{.path = "classifyByQoS",
	 .type = RP_T_BOOL,
	 .fallback = "false",
	 .doc = "Take a container of a Guaranteed pod without CPU quota for one whose limit is its "
		"request: for kubelets that set no quotas."},
	{.path = "numaAware",
	 .type = RP_T_BOOL,
	 .fallback = "false",
	 .doc = "Integer containers get CPUs of one NUMA node where they can, and their memory "
		"from there."},
	{.path = "preferSharedCache",
	 .type = RP_T_BOOL,
	 .fallback = "false",
	 .doc = "With numaAware: CPUs that share one last-level cache where they can."},
};

const struct rp_schema cpuset_schema = {
	.size = sizeof(struct rp_schema),
	.flags = RP_SCHEMA_FOLD_CASE,
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
};

static rp_cfg at(const struct modhost *h, const struct rp_plan *p, const char *path)
{
	return h->config->get(h->ctx, p->section, path);
}

static int flag(const struct modhost *h, const struct rp_plan *p, const char *key, int fallback)
{
	return h->config->value(h->ctx, at(h, p, key), RP_T_BOOL, fallback) != 0;
}

static int32_t read_key(const struct modhost *h, const struct rp_plan *p, const char *path,
			const char *fallback, char ret[256])
{
	const char *text = h->config->text(h->ctx, at(h, p, path), fallback);
	if (strlen(text) >= 256)
		return modhost_fail_at(h, at(h, p, path), -RP_EINVAL,
				       "a key of an annotation has at most 255 characters");
	memcpy(ret, text, strlen(text) + 1);
	return 0;
}

static int32_t read_settings(const struct modhost *h, struct rp_plan *p)
{
	int32_t r = read_key(h, p, "coreIdsAnnotation", "weka.io/cores-ids", p->named_key);
	if (!r)
		r = read_key(h, p, "forbidCoreIdsAnnotation", "weka.io/forbid-core-ids",
			     p->forbidden_key);
	if (!r)
		r = amount_read(h, at(h, p, "availableResources.cpu"),
				AMOUNT_TAKES_CPUS | AMOUNT_TAKES_EXCEPT, &p->available);
	if (!r)
		r = amount_read(h, at(h, p, "reservedResources.cpu"),
				AMOUNT_TAKES_CPUS | AMOUNT_TAKES_QUANTITY, &p->reserve);
	if (r)
		return r;
	p->min_shared =
		h->config->value(h->ctx, at(h, p, "minSharedCPUs"), RP_T_INT, MIN_SHARED_DEFAULT);
	p->shared_overlap = flag(h, p, "sharedOverlap", 0);
	p->pin_memory = flag(h, p, "pinMemory", 1);
	p->by_qos = flag(h, p, "classifyByQoS", 0);
	p->numa_aware = flag(h, p, "numaAware", 0);
	p->shared_cache = flag(h, p, "preferSharedCache", 0);
	p->needs_memory =
		strcmp(h->config->text(h->ctx, at(h, p, "integerNeeds"), "cpu-and-memory"),
		       "cpu") != 0;
	if (p->min_shared == 0 && !p->shared_overlap)
		return modhost_fail_at(
			h, at(h, p, "minSharedCPUs"), -RP_EINVAL,
			"0 lets shared containers run on CPUs of others when none are "
			"left: say sharedOverlap: true, too, or leave at least 1");
	if (p->shared_cache && !p->numa_aware)
		return modhost_fail_at(
			h, at(h, p, "preferSharedCache"), -RP_EINVAL,
			"it chooses among what numaAware finds: say numaAware: true, too");
	return 0;
}

static int32_t reserve(const struct modhost *h, struct rp_plan *p)
{
	struct rp_idset from = p->allowed;
	struct cpualloc *a = NULL;
	uint32_t n = amount_count(&p->reserve), n_allowed = rp_ids_count(rp_ids_of(&p->allowed));
	if (p->reserve.kind == AMOUNT_CPUS)
		rp_idset_and(&p->reserved, rp_ids_of(&p->reserve.cpus), rp_ids_of(&p->allowed));
	if (p->reserve.kind != AMOUNT_QUANTITY)
		return 0;
	int r = cpualloc_new(h->topology, h->ctx, &a);
	if (!r)
		r = cpualloc_allocate(a, &from, n < n_allowed ? n : n_allowed, CPUALLOC_NONE,
				      CPUALLOC_PLAIN, &p->reserved);
	cpualloc_free(a);
	return r ? modhost_fail(h, r, "CPUs cannot be reserved") : 0;
}

static int32_t check_sets(const struct modhost *h, const struct rp_plan *p)
{
	char text[SET_TEXT_MAX];
	struct rp_idset missing;
	if (rp_ids_empty(rp_ids_of(&p->allowed)))
		return modhost_fail_at(h, at(h, p, "availableResources.cpu"), -RP_EINVAL,
				       "none of these CPUs is online");
	uint32_t n = amount_count(&p->reserve), n_allowed = rp_ids_count(rp_ids_of(&p->allowed));
	if (p->reserve.kind == AMOUNT_QUANTITY && n > n_allowed)
		return modhost_fail_at(h, at(h, p, "reservedResources.cpu"), -RP_EINVAL,
				       "%u CPUs are to be reserved, and %u are available", n,
				       n_allowed);
	if (p->reserve.kind != AMOUNT_CPUS)
		return 0;
	rp_idset_andnot(&missing, rp_ids_of(&p->reserve.cpus), rp_ids_of(&p->allowed));
	if (rp_ids_empty(rp_ids_of(&missing)))
		return 0;
	return modhost_fail_at(h, at(h, p, "reservedResources.cpu"), -RP_EINVAL,
			       "CPUs %s are not available",
			       modhost_set_text(rp_ids_of(&missing), text, sizeof text));
}

static int32_t make(const struct modhost *h, rp_cfg section, bool check, struct rp_plan **ret)
{
	struct rp_plan *p = calloc(1, sizeof *p);
	if (!p)
		return modhost_fail(h, -RP_ENOMEM, "out of memory");
	p->section = section;
	int32_t r = read_settings(h, p);
	if (!r)
		r = machine_new(h, &p->machine);
	if (!r) {
		amount_pick(&p->available, rp_ids_of(&p->machine->online), &p->allowed);
		r = check ? check_sets(h, p) : 0;
	}
	if (!r)
		r = reserve(h, p);
	if (r)
		plan_free(p);
	else
		*ret = p;
	return r;
}

int32_t plan_new(const struct modhost *h, rp_cfg section, struct rp_plan **ret)
{
	return make(h, section, true, ret);
}

int32_t plan_look(const struct modhost *h, rp_cfg section, struct rp_plan **ret)
{
	return make(h, section, false, ret);
}

struct rp_plan *plan_free(struct rp_plan *p)
{
	if (!p)
		return NULL;
	machine_free(p->machine);
	free(p);
	return NULL;
}
