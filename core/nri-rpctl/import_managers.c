/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts configurations of the kubelet's CPU manager, of CMK and of the Weka CPUSet plugin to
 * rp.conf.
 */
#include <string.h>

#include <nri-rp/set.h>

#include "core/nri-rpctl/import.h"
#include "core/lib/util/str.h"
#include "core/nri-rpctl/import_managers.h"
#include "core/nri-rpctl/import_write.h"

/* ---- the kubelet's CPU manager --------------------------------------------------------------- */

static void managers_put_reserved(struct import *im, rp_cfg root)
{
	const char *cpus = conf_text(conf_get(root, "reservedSystemCPUs"), "");
	int64_t mcpu = conf_value(conf_get(root, "systemReserved.cpu"), RP_T_CPU, 0) +
		       conf_value(conf_get(root, "kubeReserved.cpu"), RP_T_CPU, 0);
	if (*cpus)
		import_printf(im,
			      "  reservedResources: {cpu: \"cpuset:%s\"} # reservedSystemCPUs\n",
			      cpus);
	else if (mcpu)
		import_printf(
			im, "  reservedResources: {cpu: %lldm} # systemReserved and kubeReserved\n",
			(long long)mcpu);
	else
		import_printf(im, "  reservedResources: {cpu: 1} # not set there, required here\n");
}

/* Notes the options of the topology manager. The policy static always prefers close nodes, so the
 * option for it needs no equivalent. */
static void managers_note_topology_options(struct import *im, rp_cfg options)
{
	for (uint32_t i = 0; i < conf_count(options); i++) {
		const char *key = conf_key(options, i);
		if (str_eq(key, "prefer-closest-numa-nodes"))
			import_note(im, "%s: the policy static always behaves so", key);
		else
			import_note(im, "topologyManagerPolicyOptions: %s has no equivalent here",
				    key);
	}
}

bool import_kubelet(struct import *im, rp_cfg root)
{
	const char *policy = conf_text(conf_get(root, "cpuManagerPolicy"), "none");
	rp_cfg options = conf_get(root, "cpuManagerPolicyOptions");
	if (!str_eq(conf_text(conf_get(root, "kind"), ""), "KubeletConfiguration") &&
	    !conf_get(root, "cpuManagerPolicy"))
		return false;
	im->source = "the kubelet's configuration";
	if (!str_eq(policy, "static"))
		import_note(im, "cpuManagerPolicy %s: the kubelet has not pinned containers so far",
			    policy);
	import_printf(im, "policy: static\nstatic:\n");
	managers_put_reserved(im, root);
	if (conf_count(options))
		import_put(im, "cpuManagerPolicyOptions", options, 2, NULL);
	const char *topology = conf_text(conf_get(root, "topologyManagerPolicy"), "none");
	import_printf(im, "  topologyManagerPolicy: %s\n", topology);
	if (str_eq(conf_text(conf_get(root, "topologyManagerScope"), ""), "pod"))
		import_printf(im, "  topologyManagerScope: pod\n");
	managers_note_topology_options(im, conf_get(root, "topologyManagerPolicyOptions"));
	if (str_eq(conf_text(conf_get(root, "memoryManagerPolicy"), ""), "Static"))
		import_printf(im, "  pinMemory: true # memoryManagerPolicy: Static\n");
	if (conf_count(conf_get(root, "reservedMemory")))
		import_note(im, "reservedMemory: memory is pinned, and only huge pages are counted "
				"by NUMA node");
	import_note(im, "switch off the kubelet's CPU manager: cpuManagerPolicy: none, and remove "
			"/var/lib/kubelet/cpu_manager_state");
	if (conf_get(root, "memoryManagerPolicy"))
		import_note(im, "switch off the kubelet's memory manager: memoryManagerPolicy: "
				"None, and remove /var/lib/kubelet/memory_manager_state");
	return true;
}

/* ---- the memory-policy plugin ---------------------------------------------------------------- */

/* Converts the plugin's configuration, or its Helm chart's values, which have it in `config`. */
bool import_memory_policy(struct import *im, rp_cfg root)
{
	rp_cfg inner = conf_get(root, "config"), config = inner ? inner : root;
	rp_cfg classes = conf_get(config, "classes");
	uint32_t n = conf_count(classes);
	if (!n || !conf_get(conf_item(classes, 0), "policy.mode"))
		return false;
	im->source = "the memory-policy plugin";
	import_printf(im, "policy: topology-aware\ntopology-aware:\n"
			  "  reservedResources: {cpu: 1} # not set there, required here\n"
			  "  memoryPolicyClasses:\n");
	for (uint32_t i = 0; i < n; i++) {
		rp_cfg class = conf_item(classes, i), policy = conf_get(class, "policy");
		import_printf(im, "  -\n");
		import_value(im, "name", conf_text(conf_get(class, "name"), ""), 4);
		import_value(im, "mode", conf_text(conf_get(policy, "mode"), ""), 4);
		if (conf_get(policy, "nodes"))
			import_value(im, "nodes", conf_text(conf_get(policy, "nodes"), ""), 4);
		if (conf_count(conf_get(policy, "flags")))
			import_put(im, "flags", conf_get(policy, "flags"), 4, NULL);
	}
	import_note(im, "memoryPolicyClasses belong to topology-aware or balloons: move them to "
			"the policy in use");
	import_note(im, "annotations class.memory-policy.nri.io and policy.memory-policy.nri.io "
			"work as before");
	if (conf_get(config, "injectMpolset"))
		import_note(im, "injectMpolset: the runtime sets policies, with NRI 0.12 or later");
	return true;
}

/* ---- the Weka plugin ------------------------------------------------------------------------- */

static rp_cfg managers_env(rp_cfg ctr, const char *name)
{
	rp_cfg env = conf_get(ctr, "env");
	for (uint32_t i = 0; i < conf_count(env); i++)
		if (str_eq(conf_text(conf_get(conf_item(env, i), "name"), ""), name))
			return conf_get(conf_item(env, i), "value");
	return NULL;
}

static void managers_put_weka(struct import *im, const char *index, const char *min_shared)
{
	im->source = "the Weka CPUSet plugin";
	import_printf(im, "policy: cpuset\n");
	if (index && *index)
		import_note(im, "plugin index %s: runtime.index is from 0 to 99, default 90",
			    index);
	import_printf(im, "cpuset:\n  integerNeeds: cpu-and-memory # as the plugin has it\n");
	if (min_shared && *min_shared)
		import_printf(im, "  minSharedCPUs: %s\n", min_shared);
	import_note(im, "annotations weka.io/cores-ids and weka.io/forbid-core-ids work as before");
}

/* Returns true if a name, an image or a label of the workload contains the plugin's name. */
static bool managers_is_weka(rp_cfg root, rp_cfg ctr)
{
	const char *const texts[] = {conf_text(conf_get(ctr, "image"), ""),
				     conf_text(conf_get(ctr, "name"), ""),
				     conf_text(conf_get(root, "metadata.name"), "")};
	rp_cfg labels = conf_get(root, "metadata.labels");
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if ((strstr(texts[i], "weka") && strstr(texts[i], "cpuset")) ||
		    strstr(texts[i], "nri-cpuset"))
			return true;
	for (uint32_t i = 0; i < conf_count(labels); i++) {
		const char *text = conf_text(conf_item(labels, i), "");
		if (strstr(text, "weka") && strstr(text, "cpuset"))
			return true;
	}
	return false;
}

bool import_weka(struct import *im, rp_cfg root)
{
	rp_cfg ctrs = conf_get(root, "spec.template.spec.containers");
	for (uint32_t i = 0; i < conf_count(ctrs); i++) {
		rp_cfg ctr = conf_item(ctrs, i);
		if (!managers_is_weka(root, ctr))
			continue;
		managers_put_weka(im, conf_text(managers_env(ctr, "NRI_PLUGIN_IDX"), ""), NULL);
		return true;
	}
	rp_cfg numa = conf_get(root, "config.numa"), cpu = conf_get(root, "config.cpu");
	rp_cfg shared = conf_get(cpu, "min_shared_cpus");
	if (!shared && !strstr(conf_text(conf_get(root, "image.repository"), ""), "weka"))
		return false;
	managers_put_weka(im, conf_text(conf_get(root, "config.plugin.index"), ""),
			  conf_text(shared, ""));
	if (conf_get(cpu, "validate_topology"))
		import_note(im, "cpu.validate_topology: the plugin never read it");
	if (!conf_value(conf_get(numa, "enable_memory_placement"), RP_T_BOOL, 1))
		import_printf(im, "  pinMemory: false\n");
	if (conf_get(numa, "fallback_to_node0"))
		import_note(im, "numa.fallback_to_node0: the plugin never read it");
	return true;
}

/* ---- CMK ------------------------------------------------------------------------------------- */

/* Writes keys of pools in the usual case; names of pools are unchanged. */
static void managers_pool_key(const char *key, char *buf, size_t size)
{
	static const char *const keys[] = {"exclusive", "cpuLists", "cpuset", "socket"};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (str_eq_nocase(key, keys[i]))
			key = keys[i];
	(void)snprintf(buf, size, "%s", key);
}

static void managers_note_cmk(struct import *im)
{
	import_note(im, "cmk.intel.com/exclusive-cores is published by nri-rp-agent; without it: "
			"CMK_NUM_CORES in the container");
}

void import_put_pools(struct import *im, rp_cfg pools)
{
	import_printf(im, "policy: static-pools\nstatic-pools:\n");
	if (pools)
		import_put(im, "pools", pools, 2, managers_pool_key);
	else
		import_printf(im, "  pools: {}\n");
	managers_note_cmk(im);
}

static bool managers_has_only(const char *text, const char *letters)
{
	return *text && strspn(text, letters) == strlen(text);
}

/* Returns true for the state that CMK stores in its ConfigMap: pools by name, sockets by number,
 * and lists of CPUs with their tasks. */
static bool managers_is_cmk_state(rp_cfg root)
{
	unsigned n = 0;
	if (conf_kind(root) != RP_NODE_MAP)
		return false;
	for (uint32_t i = 0; i < conf_count(root); i++) {
		rp_cfg pool = conf_item(root, i);
		if (conf_kind(pool) != RP_NODE_MAP)
			return false;
		for (uint32_t s = 0; s < conf_count(pool); s++) {
			rp_cfg lists = conf_item(pool, s);
			if (!managers_has_only(conf_key(pool, s), "0123456789") ||
			    conf_kind(lists) != RP_NODE_MAP)
				return false;
			for (uint32_t l = 0; l < conf_count(lists); l++, n++)
				if (!managers_has_only(conf_key(lists, l), "0123456789,-"))
					return false;
		}
	}
	return n > 0;
}

static void managers_put_cmk_pool(struct import *im, const char *name, rp_cfg pool)
{
	unsigned n = 0;
	import_key(im, name, 4);
	import_printf(im, "\n      exclusive: %s\n      cpuLists:",
		      strncmp(name, "exclusive", 9) == 0 ? "true" : "false");
	for (uint32_t s = 0; s < conf_count(pool); s++) {
		rp_cfg lists = conf_item(pool, s);
		for (uint32_t l = 0; l < conf_count(lists); l++)
			import_printf(im, "%s      - {cpuset: \"%s\", socket: %s}\n",
				      n++ ? "" : "\n", conf_key(lists, l), conf_key(pool, s));
	}
	if (!n)
		import_printf(im, " []\n");
}

bool import_cmk(struct import *im, rp_cfg root)
{
	rp_cfg pools = conf_get(root, "pools");
	im->source = "pools of CMK";
	if (conf_kind(pools) == RP_NODE_MAP && conf_count(pools) &&
	    import_get(conf_item(pools, 0), "cpuLists")) {
		import_put_pools(im, pools);
		return true;
	}
	if (managers_is_cmk_state(root)) {
		import_printf(im, "policy: static-pools\nstatic-pools:\n  pools:\n");
		for (uint32_t i = 0; i < conf_count(root); i++)
			managers_put_cmk_pool(im, conf_key(root, i), conf_item(root, i));
		managers_note_cmk(im);
		return true;
	}
	im->source = NULL;
	return false;
}
