/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of the core: one row each, and the typed struct that the daemon reads. */
#include <nri-rp/set.h>

#include "core/lib/conf/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/lib/util/address.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define MODULEDIR_LOCAL "/usr/local/lib/nri-rp/modules"
#define FRONTENDS "nri"
#define LEVELS "error|warning|notice|info|debug"
#define ON_POLICY_ERROR "reject|unmanaged"
#define REQUEST_SOURCES "auto|feed|runtime"
#define DRA_ENABLED "dra.enabled"
#define POD_SOURCES "auto|kubelet|apiserver"
#define ON_TIMEOUT "reject|allow"
#define TAKERS "peers|named"
#define LISTED_MAX 4u /* largest number of members of a default that a message lists */
#define NAMESPACE_MAX 63u /* longest name of a namespace, in bytes */
#define TRACING "|otlp-http|otlp-grpc"
#define EXPORTERS "|prometheus|otlp-http|otlp-grpc"

#define KEY(path_, type_, fallback_, ...)                                                          \
	.key = {.path = (path_), .type = (type_), .fallback = (fallback_), __VA_ARGS__}
#define ROW(...)                                                                                   \
	{                                                                                          \
		KEY(__VA_ARGS__)                                                                   \
	}
/* A row of the table whose value, or default, is stored unchanged in a member of struct
 * conf_core. */
#define BOUND(member_, ...)                                                                        \
	{                                                                                          \
		KEY(__VA_ARGS__), .at = offsetof(struct conf_core, member_),                       \
				  .size = sizeof(((struct conf_core *)0)->member_)                 \
	}

static const struct core_row {
	struct rp_key key;
	size_t at, size; /* position in struct conf_core; size 0: no member */
} rows[] = {
	BOUND(policy, "policy", RP_T_STRING, "none", .flags = RP_KEY_NON_EMPTY,
	      .doc = "Active policy module."),
	ROW("controllers", RP_T_ANY, "[]",
	    .doc = "Active controller modules: a list of names, or a map of names to required, "
		   "optional, relaxed or disabled. A name in a list is relaxed."),
	ROW("calculators", RP_T_ANY, "[]",
	    .doc = "Active calculator modules of node resources, in this order, written like "
		   "controllers. A required calculator that cannot start makes the configuration "
		   "invalid. In a list, * means all calculators of nri-rp; -NAME excludes one."),
	ROW("adjustments", RP_T_ANY, "[]",
	    .doc = "Adjustments: containers that are placed with requests and limits other than "
		   "those of their pods: a list of maps with name, scope, and resources, classes "
		   "or toptierLimit."),
	ROW("nodeResources", RP_T_MAP, NULL,
	    .doc = "Overcommitted node resources: see nri-rp-node-resources(7)."),
	ROW("nodeResources.strategy", RP_T_ANY, NULL, .doc = "Fields of the strategy, as a map."),
	ROW("nodeResources.nodeConfigs", RP_T_ANY, NULL,
	    .doc = "Fields for nodes with certain labels: a list of maps with name, matchLabels "
		   "and strategy. The first match is used."),
	ROW("nodeResources.least", RP_T_MAP, NULL,
	    .doc = "Lower bounds for intervals of the strategy, whether set here or by an "
		   "annotation of the Node."),
	ROW("nodeResources.least.report", RP_T_DURATION, "30s",
	    .doc = "Lower bound for metricReportIntervalSeconds."),
	ROW("nodeResources.least.aggregate", RP_T_DURATION, "60s",
	    .doc = "Lower bound for metricAggregateDurationSeconds."),
	ROW("nodeResources.prefixes", RP_T_ANY, NULL,
	    .doc = "Replacements for the domains koordinator.sh, node.koordinator.sh, "
		   "scheduling.koordinator.sh, and kubernetes.io (of batch and mid resources): a "
		   "map from these to the domains of this site."),
	ROW("nodeResources.keepOnError", RP_T_BOOL, "true",
	    .doc = "If a calculator fails, keep its last result valid for "
		   "strategy.degradeTimeMinutes."),
	ROW("nodeResources.prediction", RP_T_MAP, NULL,
	    .doc = "Prediction of resources that prod pods will not need, from their past usage."),
	ROW("nodeResources.prediction.coldStart", RP_T_DURATION, "24h",
	    .doc = "Time for which a pod must be observed before it is predicted."),
	ROW("nodeResources.prediction.safetyMargin", RP_T_INT, "10", .max = 1000,
	    .doc = "Safety margin in percent of the predicted usage."),
	ROW("nodeResources.hostApplications", RP_T_ANY, NULL,
	    .doc = "Applications outside pods: a list of maps with name, cgroup and "
		   "priorityClass."),
	ROW("nodeResources.devices", RP_T_STRING, NULL, .flags = RP_KEY_NON_EMPTY,
	    .doc = "File with the devices of the node, as a JSON list."),
	ROW("nodeResources.file", RP_T_STRING, NULL, .flags = RP_KEY_NON_EMPTY,
	    .doc = "File for the wanted content of the Node object, as JSON."),
	ROW("nodeResources.node", RP_T_MAP, NULL,
	    .doc = "Replacement for the Node object, for nodes without a cluster."),
	ROW("nodeResources.node.labels", RP_T_ANY, NULL, .doc = "A map."),
	ROW("nodeResources.node.annotations", RP_T_ANY, NULL, .doc = "A map."),
	ROW("nodeResources.node.reserved", RP_T_MAP, NULL,
	    .doc = "Resources reserved for the system: allocatable is capacity minus this."),
	ROW("nodeResources.node.reserved.cpu", RP_T_CPU, "0", .doc = "CPUs."),
	ROW("nodeResources.node.reserved.memory", RP_T_BYTES, "0", .doc = "Memory."),
	BOUND(on_policy_error, "onPolicyError", RP_T_ENUM, "reject", .choices = ON_POLICY_ERROR,
	      .doc = "Action for a container that the policy cannot place: reject refuses it, "
		     "unmanaged lets it run on the shared CPUs."),
	ROW("admit", RP_T_MAP, NULL,
	    .doc = "Admission of pods before their containers, by policies that admit pods."),
	BOUND(admit.source, "admit.requestSource", RP_T_ENUM, "auto", .choices = REQUEST_SOURCES,
	      .doc = "Source of pods' requests: feed (the cluster, through the agent), runtime "
		     "(the pod sums that the runtime receives), or auto (feed if the agent is "
		     "connected, else runtime)."),
	BOUND(admit.timeout_ms, "admit.timeout", RP_T_DURATION, "1500ms",
	      .doc = "Time for which a pod may wait for its requests from the cluster; at most "
		     "three quarters of the runtime's request timeout, and 500 ms with auto."),
	BOUND(admit.on_timeout, "admit.onTimeout", RP_T_ENUM, "reject", .choices = ON_TIMEOUT,
	      .doc = "Action after that time with requestSource: feed: reject refuses the pod, "
		     "allow uses the runtime's sums."),
	ROW("admit.resourceNames", RP_T_ANY, NULL,
	    .doc = "Map from extended resources that pods request to the resources they count as: "
		   "cpu (thousandths if the name ends in millicpu), memory, or a resource of a "
		   "resource plugin. Needs agent.cluster."),
	ROW("annotations", RP_T_MAP, NULL,
	    .doc = "Rules for which annotations of pods are used in which namespaces."),
	BOUND(annotations.takers_named, "annotations.takers", RP_T_ENUM, "peers", .choices = TAKERS,
	      .doc = "Annotations that take resources from other containers and are not listed in "
		     "allow: with peers they are used in all namespaces, with named only in "
		     "takerNamespaces."),
	ROW("annotations.takerNamespaces", RP_T_LIST, "[]",
	    .doc = "With takers: named, the namespaces (globs) in which all these annotations are "
		   "used."),
	ROW("annotations.allow", RP_T_ANY, NULL,
	    .doc = "Map from annotations to the namespaces in which they are used (a list of "
		   "globs; an empty list: none)."),
	ROW("watchFiles", RP_T_BOOL, NULL,
	    .doc = "Reload when the files change; by default only in a pod of a cluster."),
	BOUND(reset_on_switch, "resetOnSwitch", RP_T_BOOL, "false",
	      .doc = "Place all containers again when the policy changes, instead of keeping valid "
		     "placements."),
	BOUND(rebalance_ms, "rebalanceInterval", RP_T_DURATION, "0s",
	      .doc = "Interval between rebalancings by the policy; 0s: never."),
	BOUND(rebalance_moves, "rebalanceMoves", RP_T_INT, "8", .max = 100000,
	      .doc = "Most containers that one rebalancing, or a shortage of one container, may "
		     "move; 0: no limit."),
	BOUND(strict, "strict", RP_T_BOOL, "true",
	      .doc = "Treat unknown keys and sections of modules that are not installed as errors; "
		     "false makes them warnings."),
	ROW("modules", RP_T_MAP, NULL, .doc = "Location of modules."),
	BOUND(module_path, "modules.path", RP_T_LIST, "[" NRI_RP_MODULEDIR ", " MODULEDIR_LOCAL "]",
	      .flags = RP_KEY_NON_EMPTY, .doc = "Directories searched for modules, in this order."),
	ROW("modules.path[]", RP_T_STRING, NULL, .flags = RP_KEY_NON_EMPTY, .doc = "A directory."),
	ROW("runtime", RP_T_MAP, NULL, .doc = "The container runtime."),
	ROW("runtime.frontend", RP_T_ENUM, "nri", .choices = FRONTENDS, .flags = RP_KEY_RESTART,
	    .doc = "How the runtime is reached. Only nri is supported."),
	BOUND(runtime.socket, "runtime.socket", RP_T_STRING, "/var/run/nri/nri.sock",
	      .flags = RP_KEY_NON_EMPTY, .doc = "The runtime's NRI socket."),
	BOUND(runtime.fallback, "runtime.fallback", RP_T_STRING, "",
	      .doc = "Socket of nri-rp-bridge, used while no runtime accepts the daemon at "
		     "runtime.socket; empty: none."),
	BOUND(runtime.fallback_after_ms, "runtime.fallbackAfter", RP_T_DURATION, "30s",
	      .doc = "Time for which a runtime that was connected may be away before the fallback "
		     "is used."),
	BOUND(runtime.name, "runtime.name", RP_T_STRING, "nri-rp", .flags = RP_KEY_NON_EMPTY,
	      .doc = "Name with which the daemon registers."),
	BOUND(runtime.index, "runtime.index", RP_T_INT, "90", .max = 99,
	      .doc = "Position among the runtime's plugins; lower ones are called first."),
	ROW("orm", RP_T_MAP, NULL,
	    .doc = "Aliases for keys of runtime from Katalyst's out-of-band resource manager."),
	ROW("orm.mode", RP_T_ENUM, NULL, .choices = "nri|bypass",
	    .doc = "bypass: use the socket of nri-rp-bridge as runtime.socket."),
	ROW("orm.fallback", RP_T_BOOL, NULL,
	    .doc = "true: use the socket of nri-rp-bridge as runtime.fallback."),
	ROW("orm.nri", RP_T_MAP, NULL, .doc = "The connection to the runtime."),
	ROW("orm.nri.socket", RP_T_STRING, NULL, .flags = RP_KEY_NON_EMPTY,
	    .doc = "runtime.socket."),
	ROW("orm.nri.fallbackAfter", RP_T_DURATION, NULL, .doc = "runtime.fallbackAfter."),
	ROW("orm.nri.pluginName", RP_T_STRING, NULL, .flags = RP_KEY_NON_EMPTY,
	    .doc = "runtime.name."),
	ROW("orm.nri.pluginIndex", RP_T_INT, NULL, .max = 99, .doc = "runtime.index."),
	ROW("cache", RP_T_MAP, NULL, .doc = "The state on disk."),
	BOUND(cache_dir, "cache.dir", RP_T_STRING, CONF_DEFAULT_STATE_DIR,
	      .flags = RP_KEY_NON_EMPTY | RP_KEY_RESTART, .doc = "Directory of the state."),
	BOUND(export_data, "cache.exportData", RP_T_BOOL, "false",
	      .doc = "Mount a file with the policy's values for the container into it, at "
		     "/.nri-resource-policy/resources.sh."),
	ROW("control", RP_T_MAP, NULL,
	    .doc = "The control socket, and the controllers' parts of a custom resource."),
	BOUND(control_socket, "control.socket", RP_T_STRING, CONF_DEFAULT_RUN_DIR "/control.sock",
	      .flags = RP_KEY_NON_EMPTY, .doc = "Path of the socket that nri-rpctl connects to."),
	ROW("control.cpu", RP_T_MAP, NULL,
	    .doc = "Same keys as the section cpu, which takes precedence."),
	ROW("control.rdt", RP_T_MAP, NULL,
	    .doc = "Same keys as the section rdt, which takes precedence."),
	ROW("control.blockio", RP_T_MAP, NULL,
	    .doc = "Same keys as the section blkio, which takes precedence."),
	ROW("metrics", RP_T_MAP, NULL, .doc = "The HTTP server for metrics and health."),
	ROW("metrics.listen", RP_T_STRING, NULL,
	    .doc = "Address and port, or unix:PATH; an empty text switches the server off. "
		   "Default: instrumentation.httpEndpoint."),
	BOUND(metrics.map, "metrics.map", RP_T_BOOL, "false",
	      .doc = "Serve a page with a live map of the node at /map; only on a loopback address "
		     "or a unix socket."),
	BOUND(metrics.collect_ms, "metrics.collectInterval", RP_T_DURATION, "0s",
	      .doc = "Interval between readings of the containers' usage, 1s to 24h; 0s: never."),
	ROW("metrics.pressure", RP_T_MAP, NULL,
	    .doc = "Thresholds in percent. A container is reported as short of a resource after "
		   "three readings above its threshold; 0: never."),
	BOUND(metrics.pressure[0], "metrics.pressure.throttled", RP_T_INT, "25", .max = 100,
	      .doc = "Periods in which the CPU limit throttled the container."),
	BOUND(metrics.pressure[1], "metrics.pressure.cpu", RP_T_INT, "0", .max = 100,
	      .doc = "Time in which any task of the container waited for a CPU (cgroup v2)."),
	BOUND(metrics.pressure[2], "metrics.pressure.memory", RP_T_INT, "10", .max = 100,
	      .doc = "Time in which any task of the container waited for memory (cgroup v2)."),
	BOUND(metrics.pressure[3], "metrics.pressure.io", RP_T_INT, "0", .max = 100,
	      .doc = "Time in which any task of the container waited for a disk (cgroup v2)."),
	ROW("log", RP_T_MAP, NULL, .doc = "The log on standard error."),
	ROW("log.level", RP_T_ENUM, "info", .choices = LEVELS,
	    .doc = "Least important level that is logged."),
	ROW("log.debug", RP_T_LIST, "[]",
	    .doc = "Sources whose debug messages are logged at any level: SOURCE, SOURCE:on or "
		   "SOURCE:off, separated by commas; * means all sources."),
	ROW("log.debug[]", RP_T_STRING, NULL, .flags = RP_KEY_NON_EMPTY,
	    .doc = "One or more sources."),
	BOUND(log.source, "log.source", RP_T_BOOL, "false",
	      .doc = "Prefix each message with its source as [SOURCE], padded to a fixed width."),
	ROW("log.klog", RP_T_MAP, NULL, .doc = "Accepted from custom resources; no effect."),
	ROW("topology", RP_T_MAP, NULL, .doc = "How the machine is read."),
	BOUND(device_nodes, "topology.deviceMemoryNodes", RP_T_STRING, "auto",
	      .flags = RP_KEY_NON_EMPTY,
	      .doc = "Memory nodes without CPUs that belong to devices, as those of a GPU, and are "
		     "never used for containers: a list, as 2-33; none; auto, those that the "
		     "firmware describes as devices."),
	ROW("agent", RP_T_MAP, NULL, .doc = "The node agent."),
	BOUND(agent.accept, "agent.accept", RP_T_LIST, NULL,
	      .doc = "Sections and keys that the agent may set. Default: all sections of modules, "
		     "and policy, controllers, calculators, metrics, nodeResources, "
		     "rebalanceInterval, log, agent, instrumentation, dra, onPolicyError, "
		     "resetOnSwitch "
		     "and adjustments. An empty list: none."),
	ROW("agent.accept[]", RP_T_STRING, NULL, .flags = RP_KEY_NON_EMPTY,
	    .doc = "A section or key."),
	BOUND(agent.cluster, "agent.cluster", RP_T_BOOL, "false",
	      .doc = "Use the configuration that the cluster has for this node, through the agent; "
		     "only files can set this."),
	BOUND(agent.namespaces, "agent.namespaces", RP_T_LIST, NULL,
	      .doc = "Up to 8 namespaces in which custom resources are looked for besides the "
		     "agent's own, whose objects precede theirs; as [kube-system]. The agent needs "
		     "the rights to read them and to patch their status there."),
	ROW("agent.namespaces[]", RP_T_STRING, NULL, .flags = RP_KEY_NON_EMPTY,
	    .doc = "A namespace."),
	BOUND(agent.node_condition, "agent.nodeCondition", RP_T_BOOL, "true",
	      .doc = "With agent.cluster: keep the condition NRIResourcePolicyReady of the Node."),
	ROW("agent.nodeResourceTopology", RP_T_BOOL, NULL,
	    .doc = "With agent.cluster: publish the policy's zones as a NodeResourceTopology; "
		   "default true."),
	BOUND(agent.pod_resource_api, "agent.podResourceAPI", RP_T_BOOL, "false",
	      .doc = "Let the agent ask the kubelet for the devices of pods, for topology hints."),
	BOUND(agent.pod_source, "agent.podSource", RP_T_ENUM, "auto", .choices = POD_SOURCES,
	      .doc = "Where the agent reads the node's pods: kubelet, from its pods API "
		     "(Kubernetes "
		     "1.36, gate PodsAPI), also without agent.cluster; apiserver; auto, with "
		     "agent.cluster: the kubelet where it serves them, else the API server."),
	BOUND(agent.resource_slices, "agent.resourceSlices", RP_T_BOOL, "false",
	      .doc = "With agent.podResourceAPI: topology hints also from devices that claims "
		     "(Dynamic Resource Allocation) have allocated; the agent watches the "
		     "ResourceSlices of the node for their places."),
	BOUND(agent.socket, "agent.socket", RP_T_STRING, CONF_DEFAULT_RUN_DIR "/agent.sock",
	      .flags = RP_KEY_NON_EMPTY,
	      .doc = "Path of the socket that the agent connects to, if a key above needs one."),
	BOUND(agent.taint_when_away, "agent.taintWhenAway", RP_T_BOOL, "false",
	      .doc = "With agent.cluster: taint the Node with nri-rp.io/not-ready:NoSchedule while "
		     "containers are not placed."),
	BOUND(agent.user, "agent.user", RP_T_STRING, "nri-rp-agent", .flags = RP_KEY_NON_EMPTY,
	      .doc = "User (name or number) that may connect to it besides root."),
	ROW("dra", RP_T_MAP, NULL, .doc = "Dynamic Resource Allocation (nri-rp-dra(7))."),
	BOUND(dra, DRA_ENABLED, RP_T_BOOL, "false",
	      .doc = "With agent.cluster: offer the policy's CPUs and memory as devices that pods "
		     "request in ResourceClaims."),
	ROW("dra.sharedCounters", RP_T_BOOL, NULL,
	    .doc = "Accepted from custom resources; no effect."),
	ROW("instrumentation", RP_T_MAP, NULL, .doc = "Metrics, in the form of custom resources."),
	ROW("instrumentation.httpEndpoint", RP_T_STRING, "127.0.0.1:8891",
	    .doc = "Address and port used if metrics.listen is not set."),
	BOUND(metrics.prometheus, "instrumentation.prometheusExport", RP_T_BOOL, "true",
	      .doc = "Serve metrics for Prometheus."),
	ROW("instrumentation.metricsExporter", RP_T_ENUM, NULL, .choices = EXPORTERS,
	    .doc = "Only prometheus has an effect."),
	ROW("instrumentation.reportPeriod", RP_T_DURATION, NULL,
	    .doc = "Has no effect: metrics are collected when Prometheus scrapes; see "
		   "metrics.collectInterval."),
	ROW("instrumentation.metrics", RP_T_MAP, NULL, .doc = "Selection of metrics."),
	BOUND(metrics.enabled, "instrumentation.metrics.enabled", RP_T_LIST, "[policy, buildinfo]",
	      .doc = "Globs of metrics: a group, a subsystem, or GROUP/SUBSYSTEM."),
	ROW("instrumentation.metrics.enabled[]", RP_T_STRING, NULL, .doc = "A glob."),
	BOUND(metrics.polled, "instrumentation.metrics.polled", RP_T_LIST, "[]",
	      .doc = "Further globs, as in enabled."),
	ROW("instrumentation.metrics.polled[]", RP_T_STRING, NULL, .doc = "A glob."),
	ROW("instrumentation.samplingRatePerMillion", RP_T_INT, NULL, .max = 1000000,
	    .doc = "Has no effect: tracing is not supported."),
	ROW("instrumentation.tracingCollector", RP_T_STRING, NULL,
	    .doc = "Has no effect: tracing is not supported."),
	ROW("instrumentation.logExporter", RP_T_ENUM, NULL, .choices = TRACING,
	    .doc = "Has no effect: logs go to standard error."),
	ROW("instrumentation.logExportPeriod", RP_T_DURATION, NULL,
	    .doc = "Has no effect: logs go to standard error."),
};

static const struct rp_schema schema = {
	.size = sizeof schema,
	.keys = &rows[0].key,
	.n_keys = COUNT(rows),
	.key_size = sizeof rows[0],
};

static const char *const module_dirs[] = {NRI_RP_MODULEDIR, MODULEDIR_LOCAL};
const struct conf_strings conf_module_dirs = {module_dirs, COUNT(module_dirs)};

static const char *const common_parts[] = {"control", "log", "instrumentation", "agent", "dra"};
const struct conf_strings conf_common_parts = {common_parts, COUNT(common_parts)};

bool conf_has_string(const struct conf_strings *list, const char *text)
{
	for (unsigned i = 0; i < list->n; i++)
		if (str_eq(list->items[i], text))
			return true;
	return false;
}

#define COLLECT_MIN_MS 1000
#define COLLECT_MAX_MS (24 * 3600 * 1000)

const struct rp_schema *conf_core_schema(void)
{
	return &schema;
}

bool core_key(const char *key)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		if (str_eq(rows[i].key.path, key))
			return true;
	return false;
}

const char *core_default(const char *path)
{
	size_t i = 0;
	while (i < COUNT(rows) - 1 && !str_eq(rows[i].key.path, path))
		i++;
	return rows[i].key.fallback;
}

/* ---- scalars and lists ----------------------------------------------------------------------- */

static const char *get_text(const struct conf *conf, const char *path)
{
	return conf_text(conf_get(conf->root, path), core_default(path));
}

int64_t conf_core_value(const struct conf *conf, const char *path, uint32_t type)
{
	const struct rp_cfg_node otherwise = {.kind = RP_NODE_SCALAR, .text = core_default(path)};
	return conf_value(conf_get(conf->root, path), type, conf_value(&otherwise, type, 0));
}

/* Reads a list; without one, the default of the form "[a, b]". */
static int get_strings(struct arena *arena, rp_cfg list, const char *fallback,
		       struct conf_strings *ret)
{
	bool given = node_is(list, RP_NODE_LIST);
	char *text = arena_strdup(arena, !given && fallback ? fallback : ""), *rest = NULL;
	const char **items = arena_array(arena, given ? list->n : LISTED_MAX, sizeof *items);
	unsigned n = 0;
	if (!text || !items)
		return -ENOMEM;
	for (; given && n < list->n; n++)
		items[n] = conf_text(list->members[n].node, "");
	for (char *s = strtok_r(text, "[], ", &rest); s; s = strtok_r(NULL, "[], ", &rest))
		items[n++] = s;
	*ret = (struct conf_strings){items, n};
	return 0;
}

/* Returns the number of a choice; 0, the number of the first choice, also for an unknown text. */
static unsigned get_choice(const char *choices, const char *text)
{
	unsigned n = 0;
	for (const char *at = choices; at; at = strchr(at, '|'), n += at != NULL) {
		at += n != 0;
		if (str_has_prefix(at, text) && strcspn(at, "|") == strlen(text))
			return n;
	}
	return 0;
}

/* Sets the member of a row. */
static int fill_row(const struct conf *conf, const struct core_row *row, struct conf_core *core)
{
	const struct rp_key *key = &row->key;
	rp_cfg node = conf_get(conf->root, key->path);
	void *member = (char *)core + row->at;
	bool text = key->type == RP_T_STRING || key->type == RP_T_ENUM;
	if (key->type == RP_T_LIST)
		return get_strings(conf->arena, node, key->fallback, member);
	if (text && row->size == sizeof(const char *)) {
		*(const char **)member = conf_text(node, key->fallback);
		return 0;
	}
	int64_t value = text ? get_choice(key->choices, conf_text(node, key->fallback))
			     : conf_core_value(conf, key->path, key->type);
	if (row->size == sizeof(bool))
		*(bool *)member = value != 0;
	else if (row->size == sizeof(uint32_t))
		*(uint32_t *)member = (uint32_t)value;
	else
		*(uint64_t *)member = (uint64_t)value;
	return 0;
}

int core_module_path(struct arena *arena, const struct rp_cfg_node *root, struct conf_strings *ret)
{
	return get_strings(arena, conf_get(root, "modules.path"), core_default("modules.path"),
			   ret);
}

/* ---- policy and controllers ------------------------------------------------------------------ */

const char *const conf_calculators[CONF_CALCULATORS] = {
	"cpu-normalization", "resource-amplification", "mid", "batch", "gpu", "rdma"};

static int check_module_name(struct conf_errors *errs, rp_cfg node, const char *name)
{
	char found[CONF_PLACE_MAX], plain[RP_NAME_MAX];
	if (name && module_name_valid(name))
		return 0;
	(void)snprintf(plain, sizeof plain, "%s", name ? name : "");
	for (char *c = plain; *c; c++)
		*c = (char)(*c == '_' || *c == ' ' ? '-' : tolower((unsigned char)*c));
	bool close = name && strlen(name) < sizeof plain && module_name_valid(plain);
	if (!close)
		return problem_node(errs, node, NULL, "expected a module's name, found %s",
				    node_found(node, found, sizeof found));
	return problem_node(errs, node, NULL,
			    "expected a module's name, found \"%s\"; did you mean %s?", name,
			    plain);
}

static void fill_policy(struct conf_loader *l, struct conf_core *core)
{
	core->policy_node = node_set(l->conf->root, "policy");
	if (node_is(core->policy_node, RP_NODE_SCALAR))
		(void)check_module_name(l->errs, core->policy_node, core->policy);
}

static int read_mode(struct conf_errors *errs, rp_cfg node, enum conf_mode *ret)
{
	static const char *const words[] = {[CONF_RELAXED] = "relaxed",
					    [CONF_OPTIONAL] = "optional",
					    [CONF_REQUIRED] = "required",
					    [CONF_DISABLED] = "disabled"};
	char found[CONF_PLACE_MAX];
	*ret = CONF_RELAXED;
	if (node_is(node, RP_NODE_NULL))
		return 0;
	for (unsigned i = 0; i < COUNT(words); i++) {
		if (!str_eq(conf_text(node, ""), words[i]))
			continue;
		*ret = (enum conf_mode)i;
		return 0;
	}
	return problem_node(errs, node, NULL,
			    "expected required, optional, relaxed or disabled, found %s",
			    node_found(node, found, sizeof found));
}

static const struct conf_controller *find_controller(const struct conf_core *core, const char *name)
{
	for (unsigned i = 0; i < core->n_controllers; i++)
		if (str_eq(core->controllers[i].name, name))
			return &core->controllers[i];
	return NULL;
}

/* Returns true for an entry "-NAME" in a list of calculators, which removes NAME. */
static bool is_left_out(const struct conf_member *m, uint32_t kind)
{
	return kind == RP_KIND_CALCULATOR && !m->key && conf_text(m->node, "")[0] == '-';
}

static bool is_all(const struct conf_member *m, uint32_t kind)
{
	return kind == RP_KIND_CALCULATOR && !m->key && str_eq(conf_text(m->node, ""), "*");
}

/* Adds one member of `controllers` or `calculators`, in either form. The first entry of a
 * calculator is decisive. */
static void add_controller(struct conf_loader *l, struct conf_core *core,
			   struct conf_controller *list, const struct conf_member *m, uint32_t kind)
{
	bool out = is_left_out(m, kind);
	struct conf_controller c = {.name = m->key ? m->key : conf_text(m->node, NULL),
				    .mode = out ? CONF_DISABLED : CONF_RELAXED,
				    .node = m->node,
				    .kind = kind};
	c.name += out;
	if (check_module_name(l->errs, m->node, c.name) < 0 ||
	    (m->key && read_mode(l->errs, m->node, &c.mode) < 0))
		return;
	const struct conf_controller *before = find_controller(core, c.name);
	if (!before)
		list[core->n_controllers++] = c;
	else if (before->kind != kind || m->key || before->mode == c.mode)
		(void)problem_node(l->errs, m->node, NULL, "%s is listed twice", c.name);
}

/* Adds the calculators that the list does not name, at the position `at` of its "*". */
static void add_all_calculators(struct conf_core *core, struct conf_controller *list, rp_cfg at)
{
	for (unsigned i = 0; i < COUNT(conf_calculators); i++)
		if (!find_controller(core, conf_calculators[i]))
			list[core->n_controllers++] =
				(struct conf_controller){.name = conf_calculators[i],
							 .kind = RP_KIND_CALCULATOR,
							 .node = at};
}

/* Returns the list; NULL: absent, or no list. */
static const struct rp_cfg_node *list_of_modules(struct conf_loader *l, const char *key)
{
	const struct rp_cfg_node *node = node_set(l->conf->root, key);
	char found[CONF_PLACE_MAX];
	if (!node)
		return NULL;
	if (node->kind == RP_NODE_SCALAR)
		(void)problem_node(l->errs, node, NULL,
				   "expected a list of names or a map of names to modes, found %s",
				   node_found(node, found, sizeof found));
	else if (node->n > CONF_CONTROLLERS_MAX)
		(void)problem_node(l->errs, node, NULL, "more than %u %s", CONF_CONTROLLERS_MAX,
				   key);
	else
		return node;
	return NULL;
}

static int fill_controllers(struct conf_loader *l, struct conf_core *core)
{
	static const struct {
		const char *key;
		uint32_t kind;
	} lists[] = {{"controllers", RP_KIND_CONTROLLER}, {"calculators", RP_KIND_CALCULATOR}};
	struct conf_controller *list = arena_array(
		l->arena, COUNT(lists) * CONF_CONTROLLERS_MAX + CONF_CALCULATORS, sizeof *list);
	if (!list)
		return -ENOMEM;
	core->controllers = list;
	for (unsigned k = 0; k < COUNT(lists); k++) {
		const struct rp_cfg_node *node = list_of_modules(l, lists[k].key);
		rp_cfg all = NULL;
		for (uint32_t i = 0; node && i < node->n; i++)
			if (is_all(&node->members[i], lists[k].kind))
				all = node->members[i].node;
			else
				add_controller(l, core, list, &node->members[i], lists[k].kind);
		if (all)
			add_all_calculators(core, list, all);
	}
	return 0;
}

/* ---- log ------------------------------------------------------------------------------------- */

struct sources {
	const char *names[LOG_SOURCES_MAX];
	bool on[LOG_SOURCES_MAX];
	unsigned n;
};

static int set_source(struct conf_loader *l, rp_cfg item, const char *name, bool on,
		      struct sources *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (str_eq(s->names[i], name)) {
			s->on[i] = on;
			return 0;
		}
	if (s->n == LOG_SOURCES_MAX)
		return problem_node(l->errs, item, NULL, "more than %u sources", LOG_SOURCES_MAX);
	s->names[s->n] = name;
	s->on[s->n++] = on;
	return 0;
}

/* Parses "cache:on, topo"; cuts up the caller's text. */
static int read_sources(struct conf_loader *l, rp_cfg item, char *text, struct sources *s)
{
	char *rest = NULL, found[CONF_PLACE_MAX];
	for (char *word = strtok_r(text, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
		char *state = strchr(word, ':');
		bool on = true;
		if (state)
			*state++ = '\0';
		if (!word[0] || (state && str_to_bool(state, &on) < 0))
			return problem_node(l->errs, item, NULL,
					    "expected SOURCE, SOURCE:on or SOURCE:off, found %s",
					    node_found(item, found, sizeof found));
		int rc = set_source(l, item, str_eq(word, "all") ? "*" : word, on, s);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Collects the enabled sources. Disabling a source beside "all" is a problem, because the log does
 * not support it. */
static int collect_sources(struct conf_loader *l, rp_cfg list, const struct sources *s,
			   struct conf_strings *ret)
{
	const char **names = arena_array(l->arena, LOG_SOURCES_MAX, sizeof *names);
	if (!names)
		return -ENOMEM;
	unsigned n = 0, n_off = 0;
	bool all = false;
	for (unsigned i = 0; i < s->n; i++) {
		if (s->on[i])
			names[n++] = s->names[i];
		else
			n_off++;
		all |= s->on[i] && str_eq(s->names[i], "*");
	}
	if (all && n_off)
		warning_node(l->errs, list, NULL,
			     ":off has no effect while * switches all sources on");
	*ret = (struct conf_strings){names, n};
	return 0;
}

static int fill_log(struct conf_loader *l, struct conf_core *core)
{
	const struct conf *conf = l->conf;
	core->log.level = LOG_INFO;
	(void)log_level_from_name(get_text(conf, "log.level"), &core->log.level);
	rp_cfg list = conf_get(conf->root, "log.debug");
	struct sources sources = {.n = 0};
	for (uint32_t i = 0; node_is(list, RP_NODE_LIST) && i < list->n; i++) {
		rp_cfg item = list->members[i].node;
		char *text = arena_strdup(l->arena, conf_text(item, ""));
		if (!text)
			return -ENOMEM;
		if (read_sources(l, item, text, &sources) < 0)
			return 0;
	}
	return collect_sources(l, list, &sources, &core->log.debug);
}

/* ---- metrics --------------------------------------------------------------------------------- */

#define NODE_TOPOLOGY "agent.nodeResourceTopology"
#define RESOURCE_SLICES "agent.resourceSlices"

static void warn_without_effect(const struct conf_loader *l)
{
	static const char no_collector[] = "nri-rp sends nothing to collectors";
	static const struct {
		const char *path, *why;
	} keys[] = {
		{"instrumentation.samplingRatePerMillion", no_collector},
		{"instrumentation.tracingCollector", no_collector},
		{"instrumentation.logExporter", no_collector},
		{"instrumentation.reportPeriod",
		 "metrics are collected when Prometheus scrapes; metrics.collectInterval is for "
		 "the usage of containers"},
		{DRA_ENABLED, "agent.cluster is not set, and claims are objects of the cluster"},
		{NODE_TOPOLOGY, "agent.cluster is not set; nri-rpctl zones --json has the content"},
		{RESOURCE_SLICES, "agent.podResourceAPI is not set"},
	};
	bool cluster = conf_value(conf_get(l->conf->root, "agent.cluster"), RP_T_BOOL, 0);
	bool devices = conf_value(conf_get(l->conf->root, "agent.podResourceAPI"), RP_T_BOOL, 0);
	for (size_t i = 0; i < COUNT(keys); i++) {
		rp_cfg node = conf_get(l->conf->root, keys[i].path);
		const char *text = conf_text(node, "");
		bool off = !text[0] || str_eq(text, "0") || str_eq(text, "0s") ||
			   !conf_value(node, RP_T_BOOL, 1);
		off |= cluster &&
		       (str_eq(keys[i].path, NODE_TOPOLOGY) || str_eq(keys[i].path, DRA_ENABLED));
		off |= devices && str_eq(keys[i].path, RESOURCE_SLICES);
		if (!off)
			warning_node(l->errs, node, NULL, "has no effect: %s", keys[i].why);
	}
}

static void check_collector(struct conf_loader *l, uint64_t ms)
{
	rp_cfg interval = conf_get(l->conf->root, "metrics.collectInterval");
	char found[CONF_PLACE_MAX];
	if (ms && (ms < COLLECT_MIN_MS || ms > COLLECT_MAX_MS))
		(void)problem_node(l->errs, interval, NULL,
				   "expected 0s or a duration from 1s to 24h, found %s",
				   node_found(interval, found, sizeof found));
}

/* Returns the address to listen at, or "". An invalid address is a problem, because a missing
 * server would only be noticed when it is needed. */
static const char *get_listen(struct conf_loader *l, rp_cfg map)
{
	rp_cfg node = conf_get(l->conf->root, "metrics.listen");
	struct address address;
	struct err err = ERR_INIT;
	if (!conf_text(node, NULL))
		node = node_child(map, "httpEndpoint");
	const char *text = conf_text(node, core_default("instrumentation.httpEndpoint"));
	if (*text && address_parse(text, &address, &err))
		(void)problem_node(l->errs, node, NULL, "%s", err.text);
	return text;
}

/* Warns that the map is not served. Only this machine can reach it, and an operator who enabled it
 * should know why it is missing. */
static void warn_of_map(struct conf_loader *l, const struct conf_core *core)
{
	struct address a;
	const char *listen = core->metrics.listen;
	if (!core->metrics.map ||
	    (*listen && (address_parse(listen, &a, NULL) || address_is_local(&a))))
		return;
	warning_node(l->errs, conf_get(l->conf->root, "metrics.map"), NULL,
		     "has no effect: metrics.listen is \"%s\", but the map is only served on a "
		     "loopback address or a unix socket",
		     listen);
}

static void fill_metrics(struct conf_loader *l, struct conf_core *core)
{
	rp_cfg map = node_child(l->conf->root, "instrumentation");
	core->metrics.listen = get_listen(l, map);
	warn_of_map(l, core);
	rp_cfg exporter = node_child(map, "metricsExporter");
	const char *name = conf_text(exporter, "");
	if (name[0] && !str_eq(name, "prometheus")) {
		if (conf_value(node_child(map, "prometheusExport"), RP_T_BOOL, 0))
			(void)problem_node(l->errs, exporter, NULL,
					   "cannot be used together with prometheusExport");
		else
			warning_node(l->errs, exporter, NULL,
				     "has no effect: nri-rp sends nothing to collectors");
	}
	warn_without_effect(l);
	check_collector(l, core->metrics.collect_ms);
}

/* ---- all keys -------------------------------------------------------------------------------- */

/* Checks agent.namespaces, whose items become parts of paths of the API server. */
static void check_namespaces(const struct conf_loader *l, const struct conf_strings *namespaces)
{
	rp_cfg list = conf_get(l->conf->root, "agent.namespaces");
	if (namespaces->n > CONF_NAMESPACES_MAX)
		(void)problem_node(l->errs, list, NULL, "expected up to %u namespaces, found %u",
				   CONF_NAMESPACES_MAX, namespaces->n);
	for (unsigned i = 0; namespaces->n <= CONF_NAMESPACES_MAX && i < namespaces->n; i++) {
		const char *ns = namespaces->items[i];
		if (ns[strspn(ns, "abcdefghijklmnopqrstuvwxyz0123456789-")] ||
		    strlen(ns) > NAMESPACE_MAX)
			(void)problem_node(l->errs, list->members[i].node, NULL,
					   "expected the name of a namespace, found \"%s\"", ns);
	}
}

#define PLUGIN_NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-"

/* Warns of a name with characters that a runtime with NRI 0.12 or later refuses. */
static void check_plugin_name(const struct conf_loader *l, const char *name)
{
	if (name[strspn(name, PLUGIN_NAME_CHARS)])
		warning_node(l->errs, conf_get(l->conf->root, "runtime.name"), NULL,
			     "runtimes with NRI 0.12 or later refuse \"%s\": they accept letters, "
			     "digits and the characters _.+-",
			     name);
}

static void fill_agent(const struct conf_loader *l, struct conf_core *core)
{
	check_namespaces(l, &core->agent.namespaces);
	const struct rp_cfg_node *root = l->conf->root;
	core->agent.accept_all = !node_is(conf_get(root, "agent.accept"), RP_NODE_LIST);
	core->agent.topology = conf_value(conf_get(root, NODE_TOPOLOGY), RP_T_BOOL, 1);
	core->agent.pods = core->agent.cluster || str_eq(core->agent.pod_source, "kubelet");
}

#define RESOURCE_NAMES_MAX 32u
#define RESOURCE_NAME_MAX 256u /* longest name of a resource, in bytes, with the NUL */

static bool is_resource(const char *name)
{
	size_t n = strlen(name);
	return n && n < RESOURCE_NAME_MAX && strcspn(name, " \t\n") == n;
}

static bool is_native(const char *name)
{
	return str_eq(name, "cpu") || str_eq(name, "memory");
}

static int fill_resource_names(struct conf_loader *l, struct conf_core *core)
{
	const struct rp_cfg_node *map = conf_get(l->conf->root, "admit.resourceNames");
	if (!map || node_is(map, RP_NODE_NULL))
		return 0;
	if (!node_is(map, RP_NODE_MAP) || map->n > RESOURCE_NAMES_MAX)
		return problem_node(l->errs, map, NULL,
				    "expected a map from up to %u extended resources to the "
				    "resources they count as, as in {example.com/millicpu: cpu}",
				    RESOURCE_NAMES_MAX);
	struct conf_rename *list = arena_array(l->conf->arena, map->n + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->n; i++) {
		const struct conf_member *m = &map->members[i];
		list[i] = (struct conf_rename){m->key, conf_text(m->node, "")};
		if (!is_resource(m->key) || is_native(m->key) || !is_resource(list[i].counts_as) ||
		    str_eq(m->key, list[i].counts_as))
			return problem_node(
				l->errs, m->node, NULL,
				"expected an extended resource and the resource it counts as: cpu, "
				"memory or a resource of a resource plugin");
	}
	core->admit.names = list;
	core->admit.n_names = map->n;
	return 0;
}

static void check_admit(struct conf_loader *l, const struct conf_core *core)
{
	if (core->admit.source == CONF_REQUESTS_FEED && !core->agent.pods)
		(void)problem_node(l->errs, conf_get(l->conf->root, "admit.requestSource"), NULL,
				   "pods would have no requests: set agent.cluster, or "
				   "agent.podSource: kubelet");
}

static void check_device_nodes(struct conf_loader *l, const struct conf_core *core)
{
	struct rp_idset nodes;
	const char *text = core->device_nodes;
	if (!str_eq(text, "auto") && !str_eq(text, "none") &&
	    rp_idset_parse(&nodes, text, RP_NODES_MAX))
		(void)problem_node(l->errs, conf_get(l->conf->root, "topology.deviceMemoryNodes"),
				   NULL, "expected auto, none or a list of nodes, as 2-33");
}

int core_fill(struct conf_loader *l)
{
	struct conf *conf = l->conf;
	struct conf_core *core = &conf->core;
	rp_cfg watch = conf_get(conf->root, "watchFiles");
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < COUNT(rows); i++)
		if (rows[i].size)
			rc = fill_row(conf, &rows[i], core);
	if (rc)
		return rc;
	core->watch_files = !watch			      ? CONF_WATCH_AUTO
			    : conf_value(watch, RP_T_BOOL, 0) ? CONF_WATCH_ON
							      : CONF_WATCH_OFF;
	fill_policy(l, core);
	rc = fill_controllers(l, core);
	if (rc == 0)
		rc = fill_log(l, core);
	if (rc < 0)
		return rc;
	fill_metrics(l, core);
	fill_agent(l, core);
	check_admit(l, core);
	check_device_nodes(l, core);
	check_plugin_name(l, core->runtime.name);
	rc = annotations_fill(l, &core->annotations);
	prefixes_fill(l, &core->annotations.prefixes);
	return rc < 0 ? rc : fill_resource_names(l, core);
}
