/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/options.h"

#include <stdio.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/cdi.h"
#include "core/nri-rp-agent/cluster.h"
#include "core/nri-rp-agent/dra.h"
#include "core/lib/kube/kubeconfig.h"
#include "core/nri-rp-agent/kubelet.h"
#include "core/nri-rp-agent/plugins.h"
#include "core/nri-rp-agent/podwatch.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define GRACE_MAX_S 86400u

static int take_grace(void *to, const struct cmdline_option *option, const char *argument)
{
	struct options *o = to;
	if (str_to_u64(argument, &o->plugin_grace_s) == 0 && o->plugin_grace_s &&
	    o->plugin_grace_s <= GRACE_MAX_S)
		return 0;
	fprintf(stderr, "nri-rp-agent: --plugin-grace %s: expected 1 to %u seconds\n", argument,
		GRACE_MAX_S);
	return -1;
}

static int take_provider(void *to, const struct cmdline_option *option, const char *argument)
{
	struct options *o = to;
	o->kubelet_devices = str_eq(argument, "kubelet");
	if (o->kubelet_devices || str_eq(argument, "none"))
		return 0;
	fprintf(stderr, "nri-rp-agent: --devices-provider %s: expected kubelet or none\n",
		argument);
	return -1;
}

#define OPTION_AT(member) offsetof(struct options, member)

static const struct cmdline_option table[] = {
	OPTION("daemon-socket", "PATH", "socket of nri-rpd, default " AGENT_DEFAULT_SOCKET,
	       OPTION_TEXT(daemon_socket)),
	OPTION("kubelet-socket", "PATH",
	       "the kubelet's pod-resources socket,\n"
	       "                           default " KUBELET_DEFAULT_SOCKET,
	       OPTION_TEXT(kubelet_socket)),
	OPTION("kubelet-pods-socket", "PATH",
	       "the kubelet's socket of its pods API (agent.podSource),\n"
	       "                           default " PODWATCH_DEFAULT_SOCKET,
	       OPTION_TEXT(pods_socket)),
	OPTION("bridge-socket", "PATH",
	       "socket of nri-rp-bridge --source cgroups, to send it the\n                         "
	       "  node's pods; default none",
	       OPTION_TEXT(bridge_socket)),
	OPTION("kubeconfig", "FILE",
	       "kubeconfig for the API server; default: the service account\n                      "
	       "     of this container",
	       OPTION_TEXT(kubeconfig)),
	OPTION("context", "NAME", "context of that file, default its current one",
	       OPTION_TEXT(context)),
	OPTION("service-account", "DIR",
	       "folder of the service account's files, default\n                          "
	       " " SERVICE_ACCOUNT_DIR,
	       OPTION_TEXT(service_account)),
	OPTION("node", "NAME",
	       "this node's name in the cluster, default $NODE_NAME,\n"
	       "                           else the host's name",
	       OPTION_TEXT(node)),
	OPTION("namespace", "NAME",
	       "namespace of configurations, default the account's, else\n                         "
	       "  " CLUSTER_DEFAULT_NAMESPACE,
	       OPTION_TEXT(ns)),
	OPTION("config-map", "NAME",
	       "prefix of the names of ConfigMaps, default " CLUSTER_DEFAULT_CONFIG_MAP,
	       OPTION_TEXT(config_map)),
	OPTION("plugin-dir", "DIR",
	       "folder in which resource plugins register, as in\n                          "
	       " " PLUGINS_DEFAULT_DIR ";\n                           default: none",
	       OPTION_TEXT(plugin_dir)),
	OPTION("plugin-grace", "SECONDS", "to wait for a plugin that has stopped, default 300",
	       .take = take_grace),
	OPTION("pod-resources-socket", "PATH",
	       "socket on which to serve the kubelet's pod-resources API\n                         "
	       "  with the placements of nri-rpd; default none",
	       OPTION_TEXT(pod_resources_socket)),
	OPTION("devices-provider", "NAME",
	       "source of the devices listed there: kubelet or none,\n                           "
	       "default none",
	       .take = take_provider),
	OPTION("kubelet-root", "DIR",
	       "the kubelet's folder, for claims (dra.enabled), default\n                          "
	       " " DRA_DEFAULT_KUBELET_ROOT,
	       OPTION_TEXT(kubelet_root)),
	OPTION("cdi-dir", "DIR", "folder of the CDI files of claims, default " CDI_DEFAULT_DIR,
	       OPTION_TEXT(cdi_dir)),
	OPTION("log-level", "LEVEL", "error, warning, notice, info or debug, default info",
	       OPTION_LEVEL(log_level)),
};

enum options_result options_parse(int argc, char **argv, struct options *ret)
{
	static const struct cmdline line = {
		.program = "nri-rp-agent",
		.version = NRI_RP_VERSION,
		.before = "Usage: nri-rp-agent [OPTION]…\nConnects nri-rpd to the kubelet and the "
			  "Kubernetes API server: reads the devices of pods and\nthe cluster's "
			  "configuration for this node, and publishes results.\nRuns in the "
			  "foreground; SIGTERM stops it.\n",
		.after = "Exit status: 0 stopped on request, 1 failed, 2 wrong usage.\nSee "
			 "nri-rp-agent(8), nri-rpd(8), rp.conf(5).\n",
		.options = table,
		.n_options = sizeof table / sizeof *table,
	};
	*ret = (struct options){
		.daemon_socket = AGENT_DEFAULT_SOCKET,
		.kubelet_socket = KUBELET_DEFAULT_SOCKET,
		.pods_socket = PODWATCH_DEFAULT_SOCKET,
		.service_account = SERVICE_ACCOUNT_DIR,
		.config_map = CLUSTER_DEFAULT_CONFIG_MAP,
		.kubelet_root = DRA_DEFAULT_KUBELET_ROOT,
		.cdi_dir = CDI_DEFAULT_DIR,
		.plugin_grace_s = PLUGINS_GRACE_S,
		.log_level = LOG_INFO,
	};
	return cmdline_parse(&line, argc, argv, ret);
}
