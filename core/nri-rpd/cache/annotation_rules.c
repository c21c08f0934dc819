/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for annotations: which ones take effect in a namespace, and which are restricted by default
 * because they take resources from other pods. */
#include "core/nri-rpd/cache/annotation_rules.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define DOMAIN "." ANNOTATION_DOMAIN

/*
 * Annotations that take from other pods: exclusive, shared or scarce CPUs, protected memory and
 * cache, precedence by a class, named pools, earlier eviction of others, and requests that no
 * scheduler has counted. Annotations that only change how a pod uses its own resources are not
 * listed.
 */
static const char *const takers[] = {
	"cpu.preserve" DOMAIN,
	"memory.preserve" DOMAIN,
	"prefer-reserved-cpus" DOMAIN,
	"prefer-isolated-cpus" DOMAIN,
	"require-isolated-cpus" DOMAIN,
	"prefer-cpu-priority" DOMAIN,
	"memory-type" DOMAIN,
	"irq-affinity" DOMAIN,
	"cpu-class" DOMAIN,
	"cpuclass" DOMAIN,
	"rdtclass" DOMAIN,
	"blockioclass" DOMAIN,
	"scheduling-class" DOMAIN,
	"balloon.balloons" DOMAIN,
	"pool.podpools" DOMAIN,
	"dynamic-pool.dynamic-pools" DOMAIN,
	"class.memory-qos.nri.io",
	"weka.io/cores-ids",
	"katalyst.kubewharf.io/qos_level",
	"katalyst.kubewharf.io/memory_enhancement",
	"katalyst.kubewharf.io/cpu_enhancement",
	"koordinator.sh/memoryQOS",
	"koordinator.sh/cpuBurst",
	"koordinator.sh/eviction-policy",
	"koordinator.sh/eviction-priority",
	"node.koordinator.sh/extended-resource-spec",
	"noderesource.dev/resources",
};

/* Groups of annotations with one meaning; the first one represents the group in rules. The values
 * in the JSON of Katalyst's enhancements are also read from separate annotations, with or without
 * its domain. */
#define KATALYST "katalyst.kubewharf.io/"
static const char *const families[][12] = {
	{KATALYST "memory_enhancement", "numa_binding", "numa_exclusive", "rss_overuse_threshold",
	 "oom_priority"},
	{KATALYST "cpu_enhancement", "cpuset_pool", "numa_share", "numa_number", "numa_ids",
	 "align_by_socket", "distribute_evenly_across_numa", "full_pcpus_pairing",
	 "cpu_burst_policy", "cpu_burst_percent", "cpu_burst_threshold",
	 "suppression_tolerance_rate"},
	{"noderesource.dev/resources", "intel.com/resources"},
};

static const char *family_of(const char *key)
{
	bool theirs = strncmp(key, KATALYST, strlen(KATALYST)) == 0;
	const char *bare = theirs ? key + strlen(KATALYST) : key;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		for (size_t k = 1; k < sizeof *families / sizeof **families; k++)
			if (families[i][k] && str_eq(bare, families[i][k]))
				return families[i][0];
	return key;
}

static bool is_taker(const struct prefixes *p, const char *key)
{
	struct site_name name;
	for (size_t i = 0; i < sizeof takers / sizeof *takers; i++)
		if (annotation_is(key, site_name(p, takers[i], &name)))
			return true;
	return false;
}

/* Returns true if one of the globs matches the namespace. */
static bool hear_namespace(const struct conf_strings *globs, const char *ns)
{
	for (unsigned i = 0; i < globs->n; i++)
		if (str_glob(globs->items[i], ns))
			return true;
	return false;
}

/* Returns true if the annotation takes effect in pods of this namespace. */
static bool hear_key(const struct conf_annotations *rules, const char *ns, const char *key)
{
	bool named = false;
	struct site_name name;
	if (!rules)
		return true;
	key = family_of(key);
	for (unsigned i = 0; i < rules->n; i++) {
		const struct conf_annotation *a = &rules->list[i];
		if (!annotation_is(key, site_name(&rules->prefixes, family_of(a->name), &name)))
			continue;
		named = true;
		if (hear_namespace(&a->namespaces, ns))
			return true;
	}
	if (named)
		return false;
	return !rules->takers_named || hear_namespace(&rules->taker_namespaces, ns) ||
	       !is_taker(&rules->prefixes, key);
}

static int annotation_rules_filter(const struct cache *c, struct pod *pod)
{
	uint32_t n = 0, kept = 0;
	KVS_EACH(k, v, &pod->annotations)
	{
		n++;
		kept += hear_key(c->hears, pod->ns, k);
	}
	pod->withheld = n - kept;
	if (!pod->withheld)
		return 0;
	_free_ struct kv *list = malloc((kept + 1) * sizeof *list);
	if (!list) /* no annotation takes effect */
		return -ENOMEM;
	n = 0;
	KVS_EACH(k, v, &pod->annotations)
	{
		if (hear_key(c->hears, pod->ns, k))
			list[n++] = (struct kv){k, v};
	}
	int r = kvs_init(&pod->heard, list, n);
	return r < 0 ? r : 0;
}

int hear_pod(const struct cache *c, struct pod *pod)
{
	bool any = c->hears && (c->hears->n || c->hears->takers_named);
	kvs_fini(&pod->heard);
	pod->withheld = 0;
	int r = any && pod->ns ? annotation_rules_filter(c, pod) : 0;
	pod->annotated = annotations_ours(pod_heard(pod));
	return r;
}

const struct prefixes *cache_prefixes(const struct cache *c)
{
	return c->hears ? &c->hears->prefixes : NULL;
}

int cache_hear(struct cache *c, const struct conf_annotations *rules)
{
	int r = 0;
	c->hears = rules;
	for (struct pod *pod = c->pods; pod; pod = pod->hh.next) {
		int e = hear_pod(c, pod);
		r = r ? r : e;
	}
	struct ctr *ctr;
	DL_FOREACH (c->ctrs, ctr)
		derive_preserved(ctr);
	return r;
}

/* Returns true if the key concerns the whole pod or this container. */
static bool annotation_rules_concerns(const char *key, const char *ctr_name)
{
	const char *name = strstr(key, "/container.");
	return !name || str_eq(name + strlen("/container."), ctr_name);
}

const char *withheld_next(const struct ctr *ctr, const char *after)
{
	const struct pod *pod = ctr->pod;
	bool passed = !after;
	if (!pod->withheld)
		return NULL;
	KVS_EACH(k, v, &pod->annotations)
	{
		if (passed && annotation_rules_concerns(k, ctr->name) && !kvs_get(&pod->heard, k))
			return k;
		passed = passed || k == after;
	}
	return NULL;
}
