/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/cri_info.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static json_t *read_info(const char *info)
{
	size_t n = strlen(info);
	return n <= CRI_INFO_MAX ? json_loadb(info, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static int64_t number_at(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const json_t *spec_linux(const json_t *root)
{
	return json_object_get(json_object_get(root, "runtimeSpec"), "linux");
}

const char *cri_info_parent(struct arena *a, const char *info)
{
	json_t *root = read_info(info);
	const json_t *config = json_object_get(json_object_get(root, "config"), "linux");
	const char *parent = text_at(config, "cgroup_parent");
	if (!*parent)
		parent = text_at(spec_linux(root), "cgroupsPath");
	const char *copy = arena_strdup(a, parent);
	json_decref(root);
	return copy;
}

Cri__Resources *cri_spec_resources(struct arena *a, const json_t *spec)
{
	const json_t *resources = json_object_get(json_object_get(spec, "linux"), "resources");
	const json_t *cpu = json_object_get(resources, "cpu");
	const json_t *memory = json_object_get(resources, "memory");
	Cri__Resources *r = resources ? arena_zero(a, Cri__Resources) : NULL;
	if (!r)
		return NULL;
	cri__resources__init(r);
	r->cpu_shares = number_at(cpu, "shares");
	r->cpu_quota = number_at(cpu, "quota");
	r->cpu_period = number_at(cpu, "period");
	r->cpuset_cpus = arena_strdup(a, text_at(cpu, "cpus"));
	r->cpuset_mems = arena_strdup(a, text_at(cpu, "mems"));
	r->memory_limit = number_at(memory, "limit");
	r->memory_swap = number_at(memory, "swap");
	r->oom_score_adj = number_at(json_object_get(spec, "process"), "oomScoreAdj");
	return r->cpuset_cpus && r->cpuset_mems ? r : NULL;
}

int cri_info_container(struct arena *a, const char *info, struct cri_about *ret)
{
	json_t *root = read_info(info);
	const json_t *spec = json_object_get(root, "runtimeSpec");
	bool has_resources = json_object_get(json_object_get(spec, "linux"), "resources") != NULL;
	int64_t pid = number_at(root, "pid");
	ret->pid = pid > 0 && pid <= INT32_MAX ? (uint32_t)pid : 0;
	ret->cgroups_path = arena_strdup(a, text_at(spec_linux(root), "cgroupsPath"));
	ret->resources = cri_spec_resources(a, spec);
	json_decref(root);
	return ret->cgroups_path && (ret->resources || !has_resources) ? 0 : -ENOMEM;
}
