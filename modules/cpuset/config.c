/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the configuration section into settings and CPU sets. plan_fill() is the entry point. */
#include <string.h>

#include "modules/cpuset/cpuset.h"
#include "modules/lib/private/follow.h"

static const struct rp_key keys[] = {
	SECTION_KEY("coreIdsAnnotation", STRING, "Annotation with the CPUs of a pod's containers.",
		    .flags = RP_KEY_NON_EMPTY, .fallback = "weka.io/cores-ids"),
	SECTION_KEY("forbidCoreIdsAnnotation", STRING,
		    "Annotation with CPUs on which a pod's containers must not run.",
		    .flags = RP_KEY_NON_EMPTY, .fallback = "weka.io/forbid-core-ids"),
	BOUNDS_KEYS("Resources that are not exclusive unless a pod names them.",
		    "CPUs that integer containers do not get: a set, or a quantity that is rounded "
		    "up to whole CPUs; by default none."),
	SECTION_KEY("minSharedCPUs", INT,
		    "Number of CPUs that stay free for shared containers; by default one while "
		    "such containers run. 0 needs sharedOverlap.",
		    .max = RP_CPUS_MAX),
	SECTION_BOOL("sharedOverlap", "false",
		     "If no CPU is left for shared containers, let them keep their CPUs, which are "
		     "then exclusive to other containers."),
	SECTION_BOOL("pinMemory", "true",
		     "Annotated containers get their memory from the NUMA nodes of their CPUs."),
	SECTION_CHOICE("integerNeeds", "cpu|cpu-and-memory", "cpu-and-memory",
		       "Whether a container also needs a memory limit to get exclusive CPUs."),
	SECTION_BOOL("classifyByQoS", "false",
		     "Treat the request of a container of a Guaranteed pod without CPU quota as "
		     "its limit: for kubelets that set no quotas."),
	SECTION_KEY("numaAware", BOOL,
		    "Place integer containers on CPUs and memory of one NUMA node if possible; by "
		    "default true, unless parity is set."),
	SECTION_PARITY,
	ISOLATION_KEYS,
	FOLLOW_KEY,
	RELIEF_KEYS,
	SECTION_KEY("updateDelay", DURATION,
		    "Delay before shared containers get CPUs that other containers released, "
		    "restarted by each release.",
		    .fallback = "500ms"),
	SECTION_KEY("maxUpdateDelay", DURATION, "Longest such delay.", .fallback = "2s"),
	SECTION_BOOL("preferSharedCache", "false",
		     "With numaAware: prefer CPUs that share one last-level cache."),
};

const struct rp_schema cpuset_schema = SECTION_SCHEMA(keys, .flags = RP_SCHEMA_FOLD_CASE);

static int32_t read_key(const struct modhost *h, rp_cfg s, const char *path, const char *fallback,
			const char **ret)
{
	*ret = section_text(h, s, path, fallback);
	if (strlen(*ret) <= KEY_MAX)
		return 0;
	return modhost_refuse(h, section_get(h, s, path),
			      "the name of an annotation has at most %u bytes", KEY_MAX);
}

static int32_t read_settings(const struct modhost *h, rp_cfg s, struct rp_plan *p)
{
	int32_t r = read_key(h, s, "coreIdsAnnotation", KEYS_DEFAULT.named, &p->keys.named);
	if (!r)
		r = read_key(h, s, "forbidCoreIdsAnnotation", KEYS_DEFAULT.forbidden,
			     &p->keys.forbidden);
	if (r)
		return r;
	p->min_shared = section_int(h, s, "minSharedCPUs", MIN_SHARED_DEFAULT);
	p->pin_memory = section_bool(h, s, "pinMemory", true);
	p->rules.by_qos = section_bool(h, s, "classifyByQoS", false);
	p->numa_aware = section_bool(h, s, "numaAware", !section_bool(h, s, "parity", false));
	relief_read(h, s, section_bool(h, s, "parity", false), &p->relief);
	if (!p->numa_aware)
		p->relief.moves = 0;
	p->shared_cache = section_bool(h, s, "preferSharedCache", false);
	p->rules.needs_memory =
		strcmp(section_text(h, s, "integerNeeds", "cpu-and-memory"), "cpu") != 0;
	if (p->min_shared == 0 && !section_bool(h, s, "sharedOverlap", false))
		return modhost_refuse(
			h, section_get(h, s, "minSharedCPUs"),
			"with 0, shared containers may run on exclusive CPUs of other containers: "
			"also set sharedOverlap: true, or leave at least 1");
	p->update_delay_ms = section_value(h, s, "updateDelay", RP_T_DURATION, 500);
	p->max_update_delay_ms = section_value(h, s, "maxUpdateDelay", RP_T_DURATION, 2000);
	rp_cfg longest = section_get(h, s, "maxUpdateDelay");
	if (p->max_update_delay_ms > RP_WAIT_MAX_MS)
		return modhost_refuse(h, longest, "maxUpdateDelay is at most %u ms",
				      RP_WAIT_MAX_MS);
	if (p->update_delay_ms > p->max_update_delay_ms)
		return modhost_refuse(h, longest ? longest : section_get(h, s, "updateDelay"),
				      "maxUpdateDelay, %lld ms%s, is at least updateDelay, %lld ms",
				      (long long)p->max_update_delay_ms,
				      longest ? "" : " by default", (long long)p->update_delay_ms);
	if (p->shared_cache && !p->numa_aware)
		return modhost_refuse(h, section_get(h, s, "preferSharedCache"),
				      "needs numaAware: true");
	return 0;
}

static int32_t read_cpus(const struct modhost *h, struct rp_plan *p,
			 const struct reserve_past *past)
{
	struct cpualloc *a = NULL;
	int32_t r = machine_new(h, &p->machine);
	if (!r && cpualloc_new(h->topology, h->ctx, &a))
		r = modhost_no_memory(h);
	if (!r)
		r = bounds_read(h, p->section, a, past, true, &p->cpus);
	cpualloc_free(a);
	return r;
}

int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	p->section = section;
	int32_t r = read_settings(h, section, p);
	if (!r)
		r = isolation_read(h, section, &p->isolation);
	p->isolation.follow = section_bool(h, section, "followScheduler", false);
	p->isolation.follows = p->isolation.follow ? record_follows : NULL;
	return r ? r : read_cpus(h, p, past);
}

void plan_fini(struct rp_plan *p)
{
	machine_free(p->machine);
}
