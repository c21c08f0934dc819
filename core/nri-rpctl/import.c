/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the configuration of another resource manager to an rp.conf, with comments about parts
 * that have no equivalent. import.c unwraps documents and reads those of NRI resource policies and
 * of CRI Resource Manager. import_managers.c reads those of the kubelet, CMK and Weka, import_slo.c
 * those of koordinator. import_write.c writes YAML.
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
#include "core/nri-rpctl/import_managers.h"
#include "core/nri-rpctl/import_slo.h"
#include "core/nri-rpctl/import_write.h"

#define EMBEDDED_MAX 16u /* limit of texts in a ConfigMap that are documents themselves */

/* ---- parts without an equivalent ------------------------------------------------------------- */

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

/* ---- RDT ------------------------------------------------------------------------------------- */

/* Modes of rdt.options.mode in CRI Resource Manager and goresctrl. */
enum rdt_mode { RDT_FULL, RDT_DISCOVERY, RDT_DISABLED };

static enum rdt_mode import_rdt_mode(rp_cfg rdt)
{
	const char *mode = import_text(import_get(rdt, "options"), "mode", "");
	if (str_eq_nocase(mode, "disabled"))
		return RDT_DISABLED;
	return str_eq_nocase(mode, "discovery") ? RDT_DISCOVERY : RDT_FULL;
}

/* Converts older names of RDT keys. Omits keys that import_put_rdt writes or that have no
 * equivalent. */
static void import_rdt_key(const char *key, char *buf, size_t size)
{
	static const char *const gone[] = {"mode", "monitoringDisabled", "kubernetes", "enable"};
	for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
		if (str_eq_nocase(gone[i], key)) {
			*buf = 0;
			return;
		}
	import_class(key, buf, size);
}

static void import_note_rdt(struct import *im, rp_cfg rdt)
{
	rp_cfg partitions = import_get(rdt, "partitions");
	for (uint32_t p = 0; p < conf_count(partitions); p++) {
		rp_cfg classes = import_get(conf_item(partitions, p), "classes");
		for (uint32_t c = 0; c < conf_count(classes); c++)
			if (import_get(conf_item(classes, c), "kubernetes"))
				import_note(im,
					    "rdt class %s.kubernetes: use the section annotations "
					    "of rp.conf(5) to choose which annotations are used",
					    conf_key(classes, c));
	}
}

static void import_put_rdt(struct import *im, const char *key, rp_cfg rdt, unsigned indent)
{
	rp_cfg options = import_get(rdt, "options"), enable = import_get(rdt, "enable");
	const enum rdt_mode mode = import_rdt_mode(rdt);
	bool on = mode != RDT_DISABLED && (!enable || conf_value(enable, RP_T_BOOL, 1));
	import_printf(im, "%*s%s:\n%*senable: %s\n", (int)indent, "", key, (int)indent + 2, "",
		      on ? "true" : "false");
	if (conf_value(import_get(options, "monitoringDisabled"), RP_T_BOOL, 0))
		import_printf(im, "%*smonitoring: \"off\"\n", (int)indent + 2, "");
	for (uint32_t i = 0; i < conf_count(rdt); i++) {
		const char *name = conf_key(rdt, i);
		bool written = str_eq_nocase(name, "options") || str_eq_nocase(name, "partitions");
		if (mode != RDT_DISCOVERY || !written)
			import_put(im, name, conf_item(rdt, i), indent + 2, import_rdt_key);
	}
	if (mode == RDT_DISCOVERY)
		import_note(im, "rdt.options.mode Discovery: options and partitions are omitted, "
				"so that existing classes are used and none is written");
	if (mode == RDT_DISABLED)
		import_note(im, "rdt.options.mode Disabled: rdt is not in controllers");
	import_note_rdt(im, rdt);
}

/* ---- custom resources and Helm values -------------------------------------------------------- */

static bool import_is_on(rp_cfg part, bool rdt)
{
	rp_cfg enable = conf_get(part, "enable");
	return part && (!enable || conf_value(enable, RP_T_BOOL, 0)) &&
	       !(rdt && import_rdt_mode(part) == RDT_DISABLED);
}

static void put_controllers(struct import *im, rp_cfg spec)
{
	static const struct {
		const char *path, *name;
	} parts[] = {{"control.cpu", "cpu"}, {"control.rdt", "rdt"}, {"control.blockio", "blkio"}};
	unsigned n = 0;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (import_is_on(conf_get(spec, parts[i].path), str_eq(parts[i].name, "rdt")))
			import_printf(im, "%s%s", n++ ? ", " : "controllers: [", parts[i].name);
	if (n)
		import_printf(im, "]\n");
}

static void put_control(struct import *im, rp_cfg control)
{
	import_printf(im, "control:\n");
	for (uint32_t i = 0; i < conf_count(control); i++) {
		const char *key = conf_key(control, i);
		if (str_eq(key, "rdt") && conf_get(conf_item(control, i), "options"))
			import_put_rdt(im, key, conf_item(control, i), 2);
		else
			import_put(im, key, conf_item(control, i), 2, NULL);
	}
}

static void put_spec(struct import *im, const char *policy, rp_cfg spec)
{
	import_printf(im, "policy: %s\n", policy);
	put_controllers(im, spec);
	for (unsigned i = 0; i < conf_common_parts.n; i++) {
		const char *key = conf_common_parts.items[i];
		rp_cfg part = conf_get(spec, key);
		if (!conf_count(part))
			continue;
		if (str_eq(key, "control"))
			put_control(im, part);
		else
			import_put(im, key, part, 0, NULL);
	}
	import_printf(im, "%s:\n", policy);
	unsigned n = 0;
	for (uint32_t i = 0; i < conf_count(spec); i++) {
		if (conf_has_string(&conf_common_parts, conf_key(spec, i)))
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
		import_note(im,
			    "metadata.name %s: the resource applied to one node or group; this "
			    "file applies to the node it is on",
			    name);
	put_spec(im, policy, conf_get(root, "spec"));
	return true;
}

/* Returns the policy whose name is part of the name of a chart, image or plugin, or NULL. */
static const char *policy_of_name(const char *name)
{
	static const char *const names[] = {"balloons", "topology-aware", "template"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strstr(name, names[i]))
			return names[i];
	return NULL;
}

/* Returns the policy that Helm values are for, by the image, or else by keys that only one policy
 * has. NULL: undecided, or the image is a different one. */
static const char *policy_of_values(rp_cfg root, rp_cfg config)
{
	static const char *const own[][2] = {{"balloonTypes", "balloons"},
					     {"idleCPUClass", "balloons"},
					     {"allocatorTopologyBalancing", "balloons"},
					     {"preferSpreadOnPhysicalCores", "balloons"},
					     {"loadClasses", "balloons"},
					     {"preferIsolatedCPUs", "topology-aware"},
					     {"preferSharedCPUs", "topology-aware"},
					     {"colocatePods", "topology-aware"},
					     {"colocateNamespaces", "topology-aware"},
					     {"defaultCPUPriority", "topology-aware"},
					     {"unlimitedBurstable", "topology-aware"}};
	const char *image = conf_text(conf_get(root, "image.name"), "");
	if (*image)
		return policy_of_name(image);
	if (conf_get(config, "policy"))
		return "none";
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (conf_get(config, own[i][0]))
			return own[i][1];
	return NULL;
}

static void put_rm_policy(struct import *im, rp_cfg policy, const char *fallback);

/* Writes Helm values. `policy`: the policy of the chart if it is known, or NULL. */
static bool put_values(struct import *im, rp_cfg root, const char *policy)
{
	static const struct leftover known[] = {
		{"image", "nri-rpd is a package of the node, not an image"},
		{"initContainerImage",
		 "NRI is enabled in the runtime's configuration: nri-rpctl doctor checks this"},
		{"resources", "belongs to the plugin's pod: nri-rpd has the limits of its unit"},
		{"tolerations",
		 "belongs to the plugin's pod: not needed for a service of the node"},
		{"affinity", "belongs to the plugin's pod: not needed for a service of the node"},
		{"nodeSelector",
		 "belongs to the plugin's pod: install the package on the wanted nodes"},
		{"hostPort", "see metrics.listen in this file"},
		{"configGroupLabel", "node groups are configured in the cluster: nri-rp-agent(8)"},
		{"extraEnv", "nri-rpd uses no environment variables"},
		{"podPriorityClassNodeCritical",
		 "belongs to the plugin's pod: systemd restarts nri-rpd"},
	};
	static const char *const used[] = {"config", "nri"};
	rp_cfg config = conf_get(root, "config");
	policy = policy ? policy : policy_of_values(root, config);
	if (!policy)
		return false;
	im->source = "values of a Helm chart";
	rp_cfg index = conf_get(root, "nri.plugin.index");
	if (index)
		import_printf(im, "runtime: {index: %s}\n", conf_text(index, "90"));
	if (conf_get(root, "nri.runtime"))
		import_note(im, "nri.runtime: the runtime's configuration is not changed; "
				"nri-rpctl doctor shows what it lacks");
	if (conf_get(config, "policy"))
		put_rm_policy(im, conf_get(config, "policy"), policy);
	else if (conf_count(config))
		put_spec(im, policy, config);
	else
		import_printf(im,
			      "policy: %s\n%s:\n  reservedResources: {cpu: 750m} # the chart's "
			      "default\n",
			      policy, policy);
	tell_rest(im, root, known, sizeof known / sizeof known[0], used, 2);
	return true;
}

static bool from_values(struct import *im, rp_cfg root)
{
	rp_cfg config = conf_get(root, "config");
	return conf_kind(config) == RP_NODE_MAP && !conf_get(root, "kind") &&
	       put_values(im, root, NULL);
}

/* Imports a resource of the operator that installs the charts. */
static bool from_operator(struct import *im, rp_cfg root)
{
	rp_cfg spec = conf_get(root, "spec");
	const char *policy = policy_of_name(conf_text(conf_get(spec, "pluginName"), ""));
	if (!str_eq(conf_text(conf_get(root, "kind"), ""), "NriPluginDeployment") || !policy)
		return false;
	if (str_eq(conf_text(conf_get(spec, "state"), ""), "absent"))
		import_note(im, "spec.state absent: the operator had removed the plugin");
	if (!put_values(im, conf_get(spec, "values"), policy))
		return false;
	im->source = "a resource of the operator of NRI plugins";
	return true;
}

/* ---- CRI Resource Manager -------------------------------------------------------------------- */

static void put_static_pools(struct import *im, rp_cfg own)
{
	static const char *const as_they_are[] = {"labelNode", "taintNode"};
	import_put_pools(im, import_get(own, "pools"));
	if (!import_get(own, "pools"))
		import_note(im, "no pools are listed, but the policy needs some: write them into "
				"static-pools.pools");
	for (size_t i = 0; i < 2; i++)
		if (import_get(own, as_they_are[i]))
			import_put(im, as_they_are[i], import_get(own, as_they_are[i]), 2, NULL);
	if (import_get(own, "confFilePath") || import_get(own, "confDirPath"))
		import_note(im, "ConfFilePath, ConfDirPath: pools are only read from this file; "
				"pass the file with the pools to nri-rpctl import");
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
			    "policy.Active %s: not supported; the closest are topology-aware, "
			    "balloons and static",
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
		import_printf(im, "  reservedResources: {cpu: 1} # not set there; required here\n");
	for (uint32_t i = 0; i < conf_count(own); i++)
		import_put(im, conf_key(own, i), conf_item(own, i), 2, import_camel);
}

/* Writes keys of the controllers cpu and blkio in the case that nri-rpd uses; names of classes are
 * unchanged. */
static void import_controller_key(const char *key, char *buf, size_t size)
{
	static const char *const keys[] = {
		"classes",	    "devices",		"weight",	    "throttleReadBps",
		"throttleWriteBps", "throttleReadIOPS", "throttleWriteIOPS"};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (str_eq_nocase(key, keys[i]))
			key = keys[i];
	(void)snprintf(buf, size, "%s", key);
}

static bool from_manager(struct import *im, rp_cfg root)
{
	static const struct leftover known[] = {
		{"resource-manager", "CRI is not relayed: there is no proxy to configure"},
		{"dump", "log.debug: [nri] logs messages of the runtime"},
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
	for (size_t i = 0; i < 3; i++) {
		part = conf_get(root, controllers[i][0]);
		if (conf_count(part) && import_is_on(part, str_eq(controllers[i][0], "rdt")))
			import_printf(im, "%s%s", n++ ? ", " : "controllers: [", controllers[i][1]);
	}
	if (n)
		import_printf(im, "]\n");
	for (size_t i = 0; i < 3; i++) {
		part = conf_get(root, controllers[i][0]);
		if (!conf_count(part))
			continue;
		if (str_eq(controllers[i][0], "rdt"))
			import_put_rdt(im, "rdt", part, 0);
		else
			import_put(im, controllers[i][1], part, 0, import_controller_key);
	}
	part = import_get(conf_get(root, "logger"), "debug");
	if (part)
		import_note(im,
			    "logger.Debug %s: log.debug has other names: see nri-rpctl log debug",
			    conf_text(part, "…"));
	part = import_get(conf_get(root, "instrumentation"), "HTTPEndpoint");
	if (part)
		import_printf(im, "metrics: {listen: \"%s\"}\n", conf_text(part, ""));
	tell_rest(im, root, known, sizeof known / sizeof known[0], used, 6);
	return true;
}

/* ---- recognition of the source --------------------------------------------------------------- */

#define IMPORT_DEPTH_MAX 3u /* deepest nesting: a list of ConfigMaps that contain documents */

static void import_documents(struct import *im, const rp_cfg *roots, unsigned n, unsigned depth);
static void import_list(struct import *im, rp_cfg items, unsigned depth);

static void import_root(struct import *im, rp_cfg root)
{
	static bool (*const sources[])(struct import * im, rp_cfg root) = {
		from_resource, from_operator,	from_manager,	      import_kubelet, import_weka,
		import_cmk,    import_node_slo, import_memory_policy, from_values};
	for (size_t i = 0; !im->source && i < sizeof sources / sizeof sources[0]; i++)
		(void)sources[i](im, root);
}

/* Imports a text of a ConfigMap that is a document itself. Texts that are not YAML, such as
 * scripts, are skipped. */
static void import_text_of(struct import *im, const char *key, const char *text, unsigned depth)
{
	struct err err = ERR_INIT;
	struct documents docs;
	if (documents_parse(key, text, strlen(text), &docs, &err))
		return;
	import_documents(im, docs.roots, docs.n_roots, depth);
	documents_fini(&docs);
}

/* Joins the sections of CRI Resource Manager, one in each key of its ConfigMap, to one document and
 * imports it. */
static void import_sections(struct import *im, rp_cfg data, unsigned depth)
{
	struct buf all = BUF_INIT;
	for (uint32_t i = 0; i < conf_count(data) && i < EMBEDDED_MAX; i++) {
		const char *text = conf_text(conf_item(data, i), "");
		(void)buf_printf(&all, "%s:\n", conf_key(data, i));
		for (size_t n; *text; text += n + (text[n] == '\n')) {
			n = strcspn(text, "\n");
			(void)buf_printf(&all, "  %.*s\n", (int)n, text);
		}
	}
	import_text_of(im, "data", buf_text(&all), depth);
	buf_fini(&all);
}

static void import_config_map(struct import *im, rp_cfg data, unsigned depth)
{
	if (import_slo_data(im, data))
		return;
	if (conf_get(data, "policy")) {
		import_sections(im, data, depth);
		return;
	}
	for (uint32_t i = 0; !im->source && i < conf_count(data) && i < EMBEDDED_MAX; i++)
		import_text_of(im, conf_key(data, i), conf_text(conf_item(data, i), ""), depth);
}

/* Imports a document, or those in it: a ConfigMap's texts, a list's items, or the kubelet's
 * configuration in the answer of its endpoint configz or in OpenShift's resource. */
static void import_document(struct import *im, rp_cfg root, unsigned depth)
{
	const char *kind = conf_text(conf_get(root, "kind"), "");
	rp_cfg items = conf_get(root, "items"), configz = conf_get(root, "kubeletconfig");
	if (depth >= IMPORT_DEPTH_MAX)
		return;
	if (str_eq(kind, "ConfigMap"))
		import_config_map(im, conf_get(root, "data"), depth + 1);
	else if (str_eq(kind, "KubeletConfig"))
		(void)import_kubelet(im, conf_get(root, "spec.kubeletConfig"));
	else if (conf_kind(configz) == RP_NODE_MAP)
		(void)import_kubelet(im, configz);
	else if (conf_kind(items) == RP_NODE_LIST && *kind)
		import_list(im, items, depth + 1);
	else
		import_root(im, root);
}

static void import_list(struct import *im, rp_cfg items, unsigned depth)
{
	const uint32_t n = conf_count(items);
	rp_cfg *roots = calloc(n ? n : 1, sizeof *roots);
	for (uint32_t i = 0; roots && i < n; i++)
		roots[i] = conf_item(items, i);
	if (roots)
		import_documents(im, roots, n, depth);
	free(roots);
}

static void import_documents(struct import *im, const rp_cfg *roots, unsigned n, unsigned depth)
{
	for (unsigned i = 0; i < n; i++) {
		if (im->source) {
			import_note(im,
				    "document %u and later ones are ignored: a node has one "
				    "configuration",
				    i + 1);
			break;
		}
		import_document(im, roots[i], depth);
	}
}

static int import_all(struct import *im, const char *name, const char *text, struct err *err)
{
	struct documents docs;
	int r = documents_parse(name, text, strlen(text), &docs, err);
	if (r)
		return r;
	import_documents(im, docs.roots, docs.n_roots, 0);
	documents_fini(&docs);
	if (im->source)
		return 0;
	return err_set(err, -EINVAL,
		       "%s: unknown format; supported are: a BalloonsPolicy or "
		       "TopologyAwarePolicy, values of their Helm charts with image.name or the "
		       "keys of one policy, an NriPluginDeployment, a configuration of CRI "
		       "Resource Manager, a KubeletConfiguration (kubeadm's ConfigMap, configz, "
		       "OpenShift's KubeletConfig), pools of CMK, the Weka CPUSet plugin, "
		       "koordinator's slo-controller-config or NodeSLO",
		       name);
}

/* Adds a problem that the check of the result has found, with the installed modules. */
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
	(void)buf_printf(&cli->out.buf, "# Created by nri-rpctl import from %s: %s.\n", name,
			 im->source);
	if (im->n_notes)
		(void)buf_add_str(&cli->out.buf, "#\n# Differences:\n");
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
	int r = import_all(&im, name, text, &err);
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
