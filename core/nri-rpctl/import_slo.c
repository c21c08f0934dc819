/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts koordinator's ConfigMap slo-controller-config, and its resource NodeSLO, to rp.conf.
 * Values of the ConfigMap are JSON texts. The strategy of the cluster is converted. Strategies for
 * nodes with certain labels have an equivalent only in nodeResources.
 */
#include <string.h>

#include "core/lib/conf/documents.h"
#include "core/nri-rpctl/import.h"
#include "core/lib/util/str.h"
#include "core/nri-rpctl/import_slo.h"
#include "core/nri-rpctl/import_write.h"

enum slo_part {
	SLO_COLOCATION,
	SLO_THRESHOLD,
	SLO_QOS,
	SLO_BURST,
	SLO_NORMALIZATION,
	SLO_AMPLIFICATION,
	SLO_PARTS
};

/* Keys of the ConfigMap, and the names of the same strategies in a NodeSLO. */
static const struct {
	const char *key, *of_node;
} slo_parts[SLO_PARTS] = {
	[SLO_COLOCATION] = {"colocation-config", NULL},
	[SLO_THRESHOLD] = {"resource-threshold-config", "resourceUsedThresholdWithBE"},
	[SLO_QOS] = {"resource-qos-config", "resourceQOSStrategy"},
	[SLO_BURST] = {"cpu-burst-config", "cpuBurstStrategy"},
	[SLO_NORMALIZATION] = {"cpu-normalization-config", NULL},
	[SLO_AMPLIFICATION] = {"resource-amplification-config", NULL},
};

static const char *const slo_suppress[] = {"cpuSuppressThresholdPercent", "cpuSuppressMinPercent",
					   "cpuSuppressPolicy", NULL};
static const char *const slo_evict[] = {"cpuEvictBESatisfactionLowerPercent",
					"cpuEvictBESatisfactionUpperPercent",
					"cpuEvictBEUsageThresholdPercent",
					"cpuEvictTimeWindowSeconds",
					"cpuEvictPolicy",
					"cpuEvictThresholdPercent",
					"cpuEvictLowerPercent",
					"memoryEvictThresholdPercent",
					"memoryEvictLowerPercent",
					"cpuAllocatableEvictThresholdPercent",
					"cpuAllocatableEvictLowerPercent",
					"memoryAllocatableEvictThresholdPercent",
					"memoryAllocatableEvictLowerPercent",
					"evictEnabledPriorityThreshold",
					"allocatableEvictPriorityThreshold",
					NULL};
static const char *const slo_burst[] = {"policy",
					"cpuBurstPercent",
					"cfsQuotaBurstPercent",
					"cfsQuotaBurstPeriodSeconds",
					"sharePoolThresholdPercent",
					NULL};
static const char *const slo_memory[] = {"minLimitPercent", "lowLimitPercent", "throttlingPercent",
					 NULL};
static const char *const slo_strategy[] = {"enable",
					   "metricAggregateDurationSeconds",
					   "metricReportIntervalSeconds",
					   "metricAggregatePolicy",
					   "metricMemoryCollectPolicy",
					   "cpuReclaimThresholdPercent",
					   "cpuCalculatePolicy",
					   "memoryReclaimThresholdPercent",
					   "memoryCalculatePolicy",
					   "degradeTimeMinutes",
					   "updateTimeThresholdSeconds",
					   "resourceDiffThreshold",
					   "midReclaimMode",
					   "midCPUThresholdPercent",
					   "midMemoryThresholdPercent",
					   "midUnallocatedPercent",
					   "midStaticCPUReservedPercent",
					   "midStaticMemoryReservedPercent",
					   "batchCPUThresholdPercent",
					   "batchMemoryThresholdPercent",
					   "extensions",
					   NULL};

/* Returns the name in a list that equals a key, ignoring case like Go's JSON reader. NULL: none. */
static const char *slo_name(const char *const *names, const char *key)
{
	for (; *names; names++)
		if (str_eq_nocase(*names, key))
			return *names;
	return NULL;
}

/* Writes the members of a map whose keys are in a list. Returns their number. */
static unsigned slo_put_known(struct import *im, rp_cfg map, const char *const *names,
			      unsigned indent)
{
	unsigned n = 0;
	for (uint32_t i = 0; conf_kind(map) == RP_NODE_MAP && i < conf_count(map); i++) {
		const char *name = slo_name(names, conf_key(map, i));
		if (name && ++n)
			import_put(im, name, conf_item(map, i), indent, NULL);
	}
	return n;
}

/* Notes the members of a map whose keys are in none of the lists. `lists` ends with NULL. */
static void slo_note_unknown(struct import *im, const char *part, rp_cfg map,
			     const char *const *const *lists)
{
	for (uint32_t i = 0; conf_kind(map) == RP_NODE_MAP && i < conf_count(map); i++) {
		const char *key = conf_key(map, i);
		bool known = false;
		for (const char *const *const *list = lists; *list; list++)
			known = known || slo_name(*list, key);
		if (!known)
			import_note(im, "%s.%s: has no equivalent here", part, key);
	}
}

static bool slo_enabled(rp_cfg strategy)
{
	return conf_value(import_get(strategy, "enable"), RP_T_BOOL, 0) != 0;
}

/* ---- nodeResources --------------------------------------------------------------------------- */

/* Writes an entry of nodeConfigs, preceded by that key if it is the first entry. Returns false if
 * the entry is omitted. */
static bool slo_put_node_config(struct import *im, rp_cfg entry, bool first)
{
	static const char *const own[] = {"name", "nodeSelector", NULL};
	const char *const *const lists[] = {own, slo_strategy, NULL};
	rp_cfg labels = conf_get(entry, "nodeSelector.matchLabels");
	const char *name = conf_text(conf_get(entry, "name"), "");
	if (!conf_count(labels)) {
		import_note(im,
			    "colocation-config.nodeConfigs %s: omitted, an entry needs "
			    "nodeSelector.matchLabels",
			    name);
		return false;
	}
	if (conf_get(entry, "nodeSelector.matchExpressions"))
		import_note(im,
			    "colocation-config.nodeConfigs %s: matchExpressions have no equivalent "
			    "here",
			    name);
	if (first)
		import_printf(im, "  nodeConfigs:\n");
	import_printf(im, "  -\n");
	if (*name)
		import_value(im, "name", name, 4);
	import_put(im, "matchLabels", labels, 4, NULL);
	import_printf(im, "    strategy:\n");
	if (!slo_put_known(im, entry, slo_strategy, 6))
		import_printf(im, "      {}\n");
	slo_note_unknown(im, "colocation-config.nodeConfigs", entry, lists);
	return true;
}

static void slo_put_colocation(struct import *im, rp_cfg root)
{
	static const char *const own[] = {"nodeConfigs", NULL};
	const char *const *const lists[] = {own, slo_strategy, NULL};
	rp_cfg configs = import_get(root, "nodeConfigs");
	import_printf(im, "nodeResources:\n  strategy:\n");
	if (!slo_put_known(im, root, slo_strategy, 4))
		import_printf(im, "    {}\n");
	unsigned n = 0;
	for (uint32_t i = 0; i < conf_count(configs); i++)
		n += slo_put_node_config(im, conf_item(configs, i), !n);
	slo_note_unknown(im, "colocation-config", root, lists);
}

struct slo_module {
	const char *name;
	bool wanted;
};

/* Writes "KEY: [NAME, ...]" with the wanted modules; nothing if there are none. */
static void slo_put_wanted(struct import *im, const char *key, const struct slo_module *m, size_t n)
{
	bool any = false;
	for (size_t i = 0; i < n; i++) {
		if (m[i].wanted)
			import_printf(im, "%s%s%s", any ? "" : key, any ? ", " : ": [", m[i].name);
		any = any || m[i].wanted;
	}
	if (any)
		import_printf(im, "]\n");
}

static void slo_put_calculators(struct import *im, const rp_cfg *roots)
{
	rp_cfg colocation = roots[SLO_COLOCATION];
	bool mid = false;
	for (uint32_t i = 0; conf_kind(colocation) == RP_NODE_MAP && i < conf_count(colocation);
	     i++)
		mid = mid || strncmp(conf_key(colocation, i), "mid", 3) == 0;
	const struct slo_module calculators[] = {
		{"cpu-normalization", roots[SLO_NORMALIZATION] != NULL},
		{"resource-amplification", roots[SLO_AMPLIFICATION] != NULL},
		{"mid", mid},
		{"batch", colocation != NULL}};
	slo_put_wanted(im, "calculators", calculators, sizeof calculators / sizeof calculators[0]);
}

/* ---- controllers ----------------------------------------------------------------------------- */

/* Returns the strategy for all nodes: below clusterStrategy in a ConfigMap, or the whole map in a
 * NodeSLO. */
static rp_cfg slo_cluster(struct import *im, enum slo_part part, rp_cfg root)
{
	rp_cfg cluster = import_get(root, "clusterStrategy");
	if (conf_count(import_get(root, "nodeStrategies")))
		import_note(im,
			    "%s.nodeStrategies: omitted, this file applies to the node it is on",
			    slo_parts[part].key);
	if (conf_count(import_get(root, "podStrategies")))
		import_note(im,
			    "%s.podStrategies: omitted, use the pods' annotation "
			    "koordinator.sh/cpuBurst",
			    slo_parts[part].key);
	if (cluster || import_get(root, "nodeStrategies") || import_get(root, "podStrategies"))
		return cluster;
	return root;
}

static void slo_put_threshold(struct import *im, rp_cfg strategy)
{
	static const char *const own[] = {"enable", NULL};
	const char *const *const lists[] = {own, slo_suppress, slo_evict, NULL};
	const char *enable = slo_enabled(strategy) ? "true" : "false";
	import_printf(im, "cpu-suppress:\n  enable: %s\n", enable);
	(void)slo_put_known(im, strategy, slo_suppress, 2);
	import_printf(im, "evict:\n  enable: %s\n", enable);
	(void)slo_put_known(im, strategy, slo_evict, 2);
	slo_note_unknown(im, slo_parts[SLO_THRESHOLD].key, strategy, lists);
}

static const char *const slo_classes[][2] = {
	{"lsrClass", "lsr"}, {"lsClass", "ls"}, {"beClass", "be"}};

static bool slo_has_memory_qos(rp_cfg strategy)
{
	for (size_t i = 0; i < sizeof slo_classes / sizeof slo_classes[0]; i++)
		if (slo_enabled(import_get(import_get(strategy, slo_classes[i][0]), "memoryQOS")))
			return true;
	return false;
}

static void slo_put_memory_qos(struct import *im, rp_cfg strategy)
{
	if (slo_has_memory_qos(strategy))
		import_printf(im, "memory-qos:\n");
	for (size_t i = 0; i < sizeof slo_classes / sizeof slo_classes[0]; i++) {
		rp_cfg memory = import_get(import_get(strategy, slo_classes[i][0]), "memoryQOS");
		if (!slo_enabled(memory))
			continue;
		import_printf(im, "  %s:\n", slo_classes[i][1]);
		if (!slo_put_known(im, memory, slo_memory, 4))
			import_printf(im, "    {}\n");
	}
}

/* Notes the parts of resource-qos-config that no controller uses. */
static void slo_note_qos(struct import *im, rp_cfg strategy)
{
	static const struct {
		const char *key, *why;
	} others[] = {{"cpuQOS", "group identity needs a special kernel"},
		      {"resctrlQOS", "write classes of the controller rdt: nri-rp-rdt(7)"},
		      {"blkioQOS", "write classes of the controller blkio: nri-rp-blkio(7)"},
		      {"networkQOS", "has no equivalent here"}};
	for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
		for (size_t i = 0; i < sizeof slo_classes / sizeof slo_classes[0]; i++) {
			rp_cfg part =
				import_get(import_get(strategy, slo_classes[i][0]), others[k].key);
			if (!slo_enabled(part))
				continue;
			import_note(im, "resource-qos-config.%s.%s: %s", slo_classes[i][0],
				    others[k].key, others[k].why);
		}
}

static bool slo_bursts(rp_cfg strategy)
{
	return !str_eq(import_text(strategy, "policy", "none"), "none");
}

static void slo_put_controllers(struct import *im, const rp_cfg *strategies)
{
	const struct slo_module controllers[] = {
		{"batch-limits", strategies[SLO_COLOCATION] != NULL},
		{"memory-qos", slo_has_memory_qos(strategies[SLO_QOS])},
		{"cpu-suppress", slo_enabled(strategies[SLO_THRESHOLD])},
		{"cpu-burst", slo_bursts(strategies[SLO_BURST])},
		{"evict", slo_enabled(strategies[SLO_THRESHOLD])},
	};
	slo_put_wanted(im, "controllers", controllers, sizeof controllers / sizeof controllers[0]);
}

static void slo_put(struct import *im, rp_cfg *roots)
{
	import_printf(im, "policy: none # the source does not place containers\n");
	for (unsigned p = SLO_THRESHOLD; p <= SLO_BURST; p++)
		if (roots[p])
			roots[p] = slo_cluster(im, p, roots[p]);
	slo_put_calculators(im, roots);
	slo_put_controllers(im, roots);
	import_printf(im, "metrics: {collectInterval: 10s} # usage of containers is read this "
			  "often\n");
	if (roots[SLO_COLOCATION])
		slo_put_colocation(im, roots[SLO_COLOCATION]);
	if (roots[SLO_THRESHOLD])
		slo_put_threshold(im, roots[SLO_THRESHOLD]);
	if (roots[SLO_QOS]) {
		slo_put_memory_qos(im, roots[SLO_QOS]);
		slo_note_qos(im, roots[SLO_QOS]);
	}
	if (roots[SLO_BURST]) {
		import_printf(im, "cpu-burst:\n");
		if (!slo_put_known(im, roots[SLO_BURST], slo_burst, 2))
			import_printf(im, "  {}\n");
	}
	static const struct {
		enum slo_part part;
		const char *section;
		const char *keys[4];
	} sections[] = {
		{SLO_NORMALIZATION, "cpu-normalization", {"enable", "defaultRatio", "ratioModel"}},
		{SLO_AMPLIFICATION,
		 "resource-amplification",
		 {"enable", "resourceAmplificationRatio"}},
	};
	for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
		if (!roots[sections[i].part])
			continue;
		import_printf(im, "%s:\n", sections[i].section);
		if (!slo_put_known(im, roots[sections[i].part], sections[i].keys, 2))
			import_printf(im, "  {}\n");
		if (conf_count(import_get(roots[sections[i].part], "nodeConfigs")))
			import_note(
				im,
				"%s.nodeConfigs: omitted, this file applies to the node it is on",
				slo_parts[sections[i].part].key);
	}
}

/* ---- sources --------------------------------------------------------------------------------- */

static int slo_part_of(const char *key)
{
	for (int p = 0; p < SLO_PARTS; p++)
		if (str_eq(slo_parts[p].key, key))
			return p;
	return -1;
}

/* Parses the text of a key. An invalid text is noted and omitted; as in koordinator, the other keys
 * still apply. */
static void slo_parse(struct import *im, const char *key, const char *text, struct documents *docs,
		      rp_cfg *root)
{
	struct err err = ERR_INIT;
	int r = documents_parse(key, text, strlen(text), docs, &err);
	if (r) {
		import_note(im, "%s: omitted, it cannot be read: %s", key, err_text(&err, r));
		*docs = (struct documents){0};
	} else if (docs->n_roots) {
		*root = docs->roots[0];
	}
}

bool import_slo_data(struct import *im, rp_cfg data)
{
	struct documents docs[SLO_PARTS] = {0};
	rp_cfg roots[SLO_PARTS] = {0};
	bool found = false;
	for (uint32_t i = 0; conf_kind(data) == RP_NODE_MAP && i < conf_count(data); i++)
		found = found || slo_part_of(conf_key(data, i)) >= 0;
	if (!found)
		return false;
	im->source = "koordinator's slo-controller-config";
	for (uint32_t i = 0; i < conf_count(data); i++) {
		int part = slo_part_of(conf_key(data, i));
		if (part >= 0)
			slo_parse(im, conf_key(data, i), conf_text(conf_item(data, i), ""),
				  &docs[part], &roots[part]);
		else if (str_eq(conf_key(data, i), "system-config"))
			import_note(im, "system-config: settings of the kernel belong to "
					"sysctl.d(5)");
		else if (str_eq(conf_key(data, i), "host-application-config"))
			import_note(im, "host-application-config: write nodeResources."
					"hostApplications: nri-rp-node-resources(7)");
		else
			import_note(im, "%s: has no equivalent here", conf_key(data, i));
	}
	slo_put(im, roots);
	for (unsigned p = 0; p < SLO_PARTS; p++)
		if (docs[p].arena)
			documents_fini(&docs[p]);
	return true;
}

bool import_node_slo(struct import *im, rp_cfg root)
{
	rp_cfg roots[SLO_PARTS] = {0}, spec = conf_get(root, "spec");
	if (!str_eq(conf_text(conf_get(root, "kind"), ""), "NodeSLO"))
		return false;
	im->source = "koordinator's NodeSLO";
	for (unsigned p = 0; p < SLO_PARTS; p++)
		if (slo_parts[p].of_node)
			roots[p] = conf_get(spec, slo_parts[p].of_node);
	slo_put(im, roots);
	import_note(im,
		    "a NodeSLO does not contain overcommitment: import slo-controller-config, too");
	return true;
}
