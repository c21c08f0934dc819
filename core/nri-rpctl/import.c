/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of others as an rp.conf: it is written from the source's documents, with comments,
 * and what has no equivalent is said. import.c knows the sources, import_write.c how YAML is
 * written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/set.h>

#include "core/lib/conf/documents.h"
#include "core/nri-rpctl/cli.h"
#include "core/nri-rpctl/import.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define EMBEDDED_MAX 16u /* texts of a ConfigMap that are documents themselves */

/* ---- what has no equivalent ------------------------------------------------------------------ */

struct leftover {
	const char *key, *why;
};

static void tell_rest(struct import *im, rp_cfg map, const struct leftover *known, size_t n_known,
		      const char *const *used, size_t n_used)
{
	for (uint32_t i = 0; i < conf_count(map); i++) {
		const char *key = conf_key(map, i), *why = NULL;
		bool taken = false;
		for (size_t k = 0; k < n_used; k++)
			taken = taken || str_eq_nocase(used[k], key);
		for (size_t k = 0; k < n_known && !why; k++)
			if (str_eq_nocase(known[k].key, key))
				why = known[k].why;
		if (!taken)
			import_note(im, "%s: %s", key, why ? why : "has no equivalent here");
	}
}

/* ---- custom resources and Helm values -------------------------------------------------------- */

static const char *const common_parts[] = {"control", "log", "instrumentation", "agent"};
#define N_COMMON (sizeof common_parts / sizeof common_parts[0])

static bool is_common(const char *key)
{
	for (size_t i = 0; i < N_COMMON; i++)
		if (str_eq(common_parts[i], key))
			return true;
	return false;
}

static void put_controllers(struct import *im, rp_cfg spec)
{
	static const struct {
		const char *path, *name;
	} parts[] = {{"control.cpu", "cpu"}, {"control.rdt", "rdt"}, {"control.blockio", "blkio"}};
	unsigned n = 0;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		rp_cfg part = conf_get(spec, parts[i].path);
		rp_cfg enable = conf_get(part, "enable");
		if (!part || (enable && !conf_value(enable, RP_T_BOOL, 0)))
			continue;
		import_printf(im, "%s%s", n++ ? ", " : "controllers: [", parts[i].name);
	}
	if (n)
		import_printf(im, "]\n");
}

static void put_spec(struct import *im, const char *policy, rp_cfg spec)
{
	import_printf(im, "policy: %s\n", policy);
	put_controllers(im, spec);
	for (size_t i = 0; i < N_COMMON; i++) {
		rp_cfg part = conf_get(spec, common_parts[i]);
		if (conf_count(part))
			import_put(im, common_parts[i], part, 0, NULL);
	}
	import_printf(im, "%s:\n", policy);
	unsigned n = 0;
	for (uint32_t i = 0; i < conf_count(spec); i++) {
		if (is_common(conf_key(spec, i)))
			continue;
		import_put(im, conf_key(spec, i), conf_item(spec, i), 2, NULL);
		n++;
	}
	if (!n)
		import_printf(im, "  {}\n");
}

static const char *policy_of_kind(const char *kind)
{
	static const struct {
		const char *kind, *policy;
	} kinds[] = {{"BalloonsPolicy", "balloons"},
		     {"TopologyAwarePolicy", "topology-aware"},
		     {"TemplatePolicy", "template"}};
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (str_eq(kinds[i].kind, kind))
			return kinds[i].policy;
	return NULL;
}

static bool from_resource(struct import *im, rp_cfg root)
{
	const char *policy = policy_of_kind(conf_text(conf_get(root, "kind"), ""));
	const char *name = conf_text(conf_get(root, "metadata.name"), "");
	if (!policy)
		return false;
	im->source = "a custom resource of NRI resource policies";
	if (*name && !str_eq(name, "default"))
		import_note(
			im,
			"metadata.name %s: it was for one node or group; this file is for the node "
			"that it lies on",
			name);
	put_spec(im, policy, conf_get(root, "spec"));
	return true;
}

static const char *policy_of_values(rp_cfg root, rp_cfg config)
{
	static const char *const names[] = {"balloons", "topology-aware", "template"};
	const char *image = conf_text(conf_get(root, "image.name"), "");
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strstr(image, names[i]))
			return names[i];
	return conf_get(config, "balloonTypes") ? "balloons" : "topology-aware";
}

static void put_rm_policy(struct import *im, rp_cfg policy, const char *fallback);

static bool from_values(struct import *im, rp_cfg root)
{
	static const struct leftover known[] = {
		{"image", "nri-rpd is a package of the node, no image"},
		{"initContainerImage", "NRI is switched on in the runtime: nri-rpctl doctor looks"},
		{"resources", "of the plugin's pod: limits of nri-rpd are those of its unit"},
		{"tolerations", "of the plugin's pod: a service of the node needs none"},
		{"affinity", "of the plugin's pod: a service of the node needs none"},
		{"nodeSelector", "of the plugin's pod: install the package where it is wanted"},
		{"hostPort", "metrics.listen of this file"},
		{"configGroupLabel", "groups of nodes are chosen in the cluster: nri-rp-agent(8)"},
		{"extraEnv", "nri-rpd takes no environment"},
		{"podPriorityClassNodeCritical", "of the plugin's pod: systemd keeps nri-rpd up"},
	};
	static const char *const used[] = {"config", "nri"};
	rp_cfg config = conf_get(root, "config");
	if (conf_kind(config) != RP_NODE_MAP || conf_get(root, "kind"))
		return false;
	im->source = "values of a Helm chart";
	const char *policy = policy_of_values(root, config);
	rp_cfg index = conf_get(root, "nri.plugin.index");
	if (index)
		import_printf(im, "runtime: {index: %s}\n", conf_text(index, "90"));
	if (conf_get(root, "nri.runtime"))
		import_note(
			im,
			"nri.runtime: the runtime's own configuration is not touched; nri-rpctl "
			"doctor says what it lacks");
	if (conf_get(config, "policy"))
		put_rm_policy(im, conf_get(config, "policy"), policy);
	else
		put_spec(im, policy, config);
	tell_rest(im, root, known, sizeof known / sizeof known[0], used, 2);
	return true;
}

/* ---- CRI Resource Manager -------------------------------------------------------------------- */

/* Names of pools stay as they are. */
static void pool_key(const char *key, char *buf, size_t size)
{
	static const char *const keys[] = {"exclusive", "cpuLists", "cpuset", "socket"};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (str_eq_nocase(key, keys[i]))
			key = keys[i];
	(void)snprintf(buf, size, "%s", key);
}

static void put_pools(struct import *im, rp_cfg pools)
{
	import_printf(im, "policy: static-pools\nstatic-pools:\n");
	if (pools)
		import_put(im, "pools", pools, 2, pool_key);
	else
		import_printf(im, "  pools: {}\n");
	import_note(im, "cmk.intel.com/exclusive-cores is published by nri-rp-agent; without it: "
			"CMK_NUM_CORES in the container");
}

static void put_static_pools(struct import *im, rp_cfg own)
{
	static const char *const as_they_are[] = {"labelNode", "taintNode"};
	put_pools(im, import_get(own, "pools"));
	if (!import_get(own, "pools"))
		import_note(im,
			    "no pools are named, and the policy does not start without: put them "
			    "into static-pools.pools");
	for (size_t i = 0; i < 2; i++)
		if (import_get(own, as_they_are[i]))
			import_put(im, as_they_are[i], import_get(own, as_they_are[i]), 2, NULL);
	if (import_get(own, "confFilePath") || import_get(own, "confDirPath"))
		import_note(im, "ConfFilePath, ConfDirPath: pools are in this file alone; give "
				"nri-rpctl import the file with them");
}

static const char *const rm_policies[] = {
	"topology-aware", "balloons", "static", "static-plus", "podpools", "dynamic-pools", "none"};

static void put_rm_policy(struct import *im, rp_cfg policy, const char *fallback)
{
	const char *active = import_text(policy, "active", fallback), *name = NULL;
	rp_cfg own = import_get(policy, active);
	for (size_t i = 0; i < sizeof rm_policies / sizeof rm_policies[0]; i++)
		if (str_eq(rm_policies[i], active))
			name = active;
	if (str_eq(active, "static-pools")) {
		put_static_pools(im, own);
		return;
	}
	if (!name)
		import_note(im,
			    "policy.Active %s: there is no such policy; the nearest are "
			    "topology-aware, balloons and static",
			    active);
	name = name ? name : "none";
	import_printf(im, "policy: %s\n", name);
	if (str_eq(name, "none"))
		return;
	import_printf(im, "%s:\n", name);
	rp_cfg available = import_get(policy, "availableResources"),
	       reserved = import_get(policy, "reservedResources");
	if (available)
		import_put(im, "availableResources", available, 2, import_camel);
	if (reserved)
		import_put(im, "reservedResources", reserved, 2, import_camel);
	else if (!str_eq(name, "dynamic-pools"))
		import_printf(im,
			      "  reservedResources: {cpu: 1} # nothing was said; one is needed\n");
	for (uint32_t i = 0; i < conf_count(own); i++)
		import_put(im, conf_key(own, i), conf_item(own, i), 2, import_camel);
}

static bool from_manager(struct import *im, rp_cfg root)
{
	static const struct leftover known[] = {
		{"resource-manager", "containers are not relayed: there is no proxy to configure"},
		{"dump", "what the runtime says is logged by log.debug: [nri]"},
	};
	static const char *const used[] = {"policy", "rdt",    "blockio",
					   "cpu",    "logger", "instrumentation"};
	rp_cfg policy = conf_get(root, "policy"), part;
	if (conf_kind(policy) != RP_NODE_MAP || !import_get(policy, "active"))
		return false;
	im->source = "a configuration of CRI Resource Manager";
	put_rm_policy(im, policy, "none");
	unsigned n = 0;
	static const char *const controllers[][2] = {
		{"cpu", "cpu"}, {"rdt", "rdt"}, {"blockio", "blkio"}};
	for (size_t i = 0; i < 3; i++)
		if (conf_count(conf_get(root, controllers[i][0])))
			import_printf(im, "%s%s", n++ ? ", " : "controllers: [", controllers[i][1]);
	if (n)
		import_printf(im, "]\n");
	for (size_t i = 0; i < 3; i++)
		if (conf_count(conf_get(root, controllers[i][0])))
			import_put(im, controllers[i][1], conf_get(root, controllers[i][0]), 0,
				   import_class);
	part = import_get(conf_get(root, "logger"), "debug");
	if (part)
		import_note(
			im,
			"logger.Debug %s: log.debug takes names of our own: nri-rpctl log debug",
			conf_text(part, "…"));
	part = import_get(conf_get(root, "instrumentation"), "HTTPEndpoint");
	if (part)
		import_printf(im, "metrics: {listen: \"%s\"}\n", conf_text(part, ""));
	tell_rest(im, root, known, sizeof known / sizeof known[0], used, 6);
	return true;
}

/* ---- the kubelet's CPU manager --------------------------------------------------------------- */

static void put_kubelet_reserved(struct import *im, rp_cfg root)
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
		import_printf(im,
			      "  reservedResources: {cpu: 1} # nothing was said; one is needed\n");
}

static bool from_kubelet(struct import *im, rp_cfg root)
{
	const char *policy = conf_text(conf_get(root, "cpuManagerPolicy"), "none");
	rp_cfg options = conf_get(root, "cpuManagerPolicyOptions");
	if (!str_eq(conf_text(conf_get(root, "kind"), ""), "KubeletConfiguration") &&
	    !conf_get(root, "cpuManagerPolicy"))
		return false;
	im->source = "the kubelet's configuration";
	if (!str_eq(policy, "static"))
		import_note(im, "cpuManagerPolicy %s: the kubelet has placed nothing so far",
			    policy);
	import_printf(im, "policy: static\nstatic:\n");
	put_kubelet_reserved(im, root);
	if (conf_count(options))
		import_put(im, "cpuManagerPolicyOptions", options, 2, NULL);
	const char *topology = conf_text(conf_get(root, "topologyManagerPolicy"), "none");
	import_printf(im, "  topologyManagerPolicy: %s\n", topology);
	if (str_eq(conf_text(conf_get(root, "topologyManagerScope"), ""), "pod"))
		import_note(im, "topologyManagerScope pod: containers are aligned one by one");
	if (conf_get(root, "topologyManagerPolicyOptions"))
		import_note(im, "topologyManagerPolicyOptions: have no equivalent");
	if (str_eq(conf_text(conf_get(root, "memoryManagerPolicy"), ""), "Static"))
		import_printf(im, "  pinMemory: true # memoryManagerPolicy: Static\n");
	if (conf_get(root, "reservedMemory"))
		import_note(im, "reservedMemory: memory is pinned, and not counted");
	import_note(im, "the kubelet has to let go: cpuManagerPolicy: none, and remove "
			"/var/lib/kubelet/cpu_manager_state");
	return true;
}

/* ---- the Weka plugin ------------------------------------------------------------------------- */

static rp_cfg find_env(rp_cfg ctr, const char *name)
{
	rp_cfg env = conf_get(ctr, "env");
	for (uint32_t i = 0; i < conf_count(env); i++)
		if (str_eq(conf_text(conf_get(conf_item(env, i), "name"), ""), name))
			return conf_get(conf_item(env, i), "value");
	return NULL;
}

static void put_cpuset(struct import *im, const char *index, const char *min_shared)
{
	im->source = "the Weka CPUSet plugin";
	import_printf(im, "policy: cpuset\n");
	if (index && *index)
		import_note(im,
			    "plugin index %s: runtime.index is from 0 to 99; 90 if nothing is said",
			    index);
	import_printf(im, "cpuset:\n  integerNeeds: cpu-and-memory # as the plugin has it\n");
	if (min_shared && *min_shared)
		import_printf(im, "  minSharedCPUs: %s\n", min_shared);
	import_note(im,
		    "annotations weka.io/cores-ids and weka.io/forbid-core-ids count as before");
}

static bool from_weka(struct import *im, rp_cfg root)
{
	rp_cfg ctrs = conf_get(root, "spec.template.spec.containers");
	for (uint32_t i = 0; i < conf_count(ctrs); i++) {
		rp_cfg ctr = conf_item(ctrs, i);
		const char *image = conf_text(conf_get(ctr, "image"), "");
		if (!strstr(image, "weka") && !strstr(image, "cpuset"))
			continue;
		put_cpuset(im, conf_text(find_env(ctr, "NRI_PLUGIN_IDX"), ""), NULL);
		return true;
	}
	rp_cfg numa = conf_get(root, "config.numa"), cpu = conf_get(root, "config.cpu");
	rp_cfg shared = conf_get(cpu, "min_shared_cpus");
	if (!shared && !strstr(conf_text(conf_get(root, "image.repository"), ""), "weka"))
		return false;
	put_cpuset(im, conf_text(conf_get(root, "config.plugin.index"), ""), conf_text(shared, ""));
	if (conf_get(cpu, "validate_topology"))
		import_note(im, "cpu.validate_topology: the plugin never read it");
	if (!conf_value(conf_get(numa, "enable_memory_placement"), RP_T_BOOL, 1))
		import_printf(im, "  pinMemory: false\n");
	if (conf_get(numa, "fallback_to_node0"))
		import_note(im, "numa.fallback_to_node0: the plugin never read it");
	return true;
}

/* ---- which of them --------------------------------------------------------------------------- */

static bool from_cmk(struct import *im, rp_cfg root)
{
	rp_cfg pools = conf_get(root, "pools");
	if (conf_kind(pools) != RP_NODE_MAP || !conf_count(pools) ||
	    !import_get(conf_item(pools, 0), "cpuLists"))
		return false;
	im->source = "pools of CMK";
	put_pools(im, pools);
	return true;
}

static bool take(struct import *im, rp_cfg root)
{
	static bool (*const sources[])(struct import * im, rp_cfg root) = {
		from_resource, from_manager, from_kubelet, from_weka, from_cmk, from_values};
	for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
		if (sources[i](im, root))
			return true;
	return false;
}

/* The data of a ConfigMap are texts: "policy: {…}" has become policy: |. They are put together
 * again. */
static int unfold(rp_cfg root, struct buf *out)
{
	rp_cfg data = conf_get(root, "data");
	if (!str_eq(conf_text(conf_get(root, "kind"), ""), "ConfigMap"))
		return 0;
	for (uint32_t i = 0; i < conf_count(data) && i < EMBEDDED_MAX; i++) {
		const char *text = conf_text(conf_item(data, i), ""), *key = conf_key(data, i);
		bool whole = strchr(key, '.') || str_eq(key, "config");
		(void)buf_printf(out, whole ? "" : "%s:\n", key);
		for (size_t n; *text; text += n + (text[n] == '\n')) {
			n = strcspn(text, "\n");
			(void)buf_printf(out, "%s%.*s\n", whole ? "" : "  ", (int)n, text);
		}
	}
	return buf_len(out) ? 1 : 0;
}

static int import_all(struct import *im, const char *name, const char *text, unsigned depth,
		      struct err *err)
{
	struct documents docs;
	struct buf inner = BUF_INIT;
	bool found = false;
	int r = documents_parse(name, text, strlen(text), &docs, err);
	if (r)
		return r;
	for (unsigned i = 0; !r && i < docs.n_roots; i++) {
		buf_reset(&inner);
		if (found) {
			import_note(im,
				    "document %u and what follows are left out: a node has one "
				    "configuration",
				    i + 1);
			break;
		}
		if (!depth && unfold(docs.roots[i], &inner))
			r = import_all(im, name, buf_text(&inner), depth + 1, err);
		else
			take(im, docs.roots[i]);
		found = im->source != NULL;
	}
	documents_fini(&docs);
	buf_fini(&inner);
	if (r || found || depth)
		return r;
	return err_set(
		err, -EINVAL,
		"%s: it is none of these: a BalloonsPolicy or TopologyAwarePolicy, values of their "
		"Helm charts, a configuration of CRI Resource Manager, a KubeletConfiguration, "
		"pools of CMK, the Weka CPUSet plugin",
		name);
}

/* What a check of it says, against the modules that are installed. */
static void add_problem(const char *text, void *arg)
{
	import_note(arg, "check: %s", text);
}

static void print_import(struct cli *cli, struct import *im, const char *name)
{
	if (cli->json) {
		json_t *notes = json_array();
		for (unsigned i = 0; i < im->n_notes; i++)
			(void)json_array_append_new(notes, json_string(im->notes[i]));
		json_t *doc = json_pack("{s:s, s:s, s:o}", "source", im->source, "config",
					buf_text(&im->text), "notes", notes);
		char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
		(void)buf_printf(&cli->out.buf, "%s\n", text ? text : "{}");
		free(text);
		json_decref(doc);
		return;
	}
	(void)buf_printf(&cli->out.buf, "# Made by nri-rpctl import of %s: %s.\n", name,
			 im->source);
	if (im->n_notes)
		(void)buf_add_str(&cli->out.buf, "#\n# What is not the same:\n");
	for (unsigned i = 0; i < im->n_notes; i++)
		(void)buf_printf(&cli->out.buf, "# - %s\n", im->notes[i]);
	(void)buf_printf(&cli->out.buf, "\n%s", buf_text(&im->text));
}

int cmd_import(struct cli *cli)
{
	struct import im = {.text = BUF_INIT};
	struct err err = ERR_INIT;
	char *text = cli_read_text(cli, cli->args[0]);
	const char *name = str_eq(cli->args[0], "-") ? "standard input" : cli->args[0];
	if (!text)
		return CTL_FAILED;
	int r = import_all(&im, name, text, 0, &err);
	free(text);
	if (r)
		complain(cli, "%s", err_text(&err, r));
	else
		local_problems(cli, buf_text(&im.text), add_problem, &im);
	if (!r)
		print_import(cli, &im, name);
	import_fini(&im);
	return r ? CTL_FAILED : CTL_OK;
}
