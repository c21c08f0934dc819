/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/options.h"

#include <stdio.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/cluster.h"
#include "core/lib/kube/kubeconfig.h"
#include "core/nri-rp-agent/kubelet.h"
#include "core/nri-rp-agent/plugins.h"
#include "core/nri-rp-agent/podwatch.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define GRACE_MAX_S 86400u

enum {
	OPT_DAEMON_SOCKET,
	OPT_KUBELET_SOCKET,
	OPT_PODS_SOCKET,
	OPT_BRIDGE_SOCKET,
	OPT_KUBECONFIG,
	OPT_CONTEXT,
	OPT_SERVICE_ACCOUNT,
	OPT_NODE,
	OPT_NAMESPACE,
	OPT_CONFIG_MAP,
	OPT_PLUGIN_DIR,
	OPT_POD_RESOURCES_SOCKET,
	OPT_PLUGIN_GRACE,
	OPT_DEVICES_PROVIDER,
	OPT_LOG_LEVEL,
};

static const struct cmdline_option table[] = {
	{{"daemon-socket", required_argument, NULL, OPT_DAEMON_SOCKET},
	 "PATH",
	 "where nri-rpd listens, default " AGENT_DEFAULT_SOCKET},
	{{"kubelet-socket", required_argument, NULL, OPT_KUBELET_SOCKET},
	 "PATH",
	 "the kubelet's pod-resources socket,\n"
	 "                           default " KUBELET_DEFAULT_SOCKET},
	{{"kubelet-pods-socket", required_argument, NULL, OPT_PODS_SOCKET},
	 "PATH",
	 "the kubelet's socket of its pods API (agent.podSource),\n"
	 "                           default " PODWATCH_DEFAULT_SOCKET},
	{{"bridge-socket", required_argument, NULL, OPT_BRIDGE_SOCKET},
	 "PATH",
	 "where nri-rp-bridge listens that works by cgroups, to tell\n"
	 "                           it the node's pods; default none"},
	{{"kubeconfig", required_argument, NULL, OPT_KUBECONFIG},
	 "FILE",
	 "how to reach the API server; without it, as Kubernetes\n"
	 "                           tells a container"},
	{{"context", required_argument, NULL, OPT_CONTEXT},
	 "NAME",
	 "the context of that file to use, default its current one"},
	{{"service-account", required_argument, NULL, OPT_SERVICE_ACCOUNT},
	 "DIR",
	 "the files of the service account, default\n"
	 "                           " SERVICE_ACCOUNT_DIR},
	{{"node", required_argument, NULL, OPT_NODE},
	 "NAME",
	 "this node's name in the cluster, default $NODE_NAME,\n"
	 "                           else the host's name"},
	{{"namespace", required_argument, NULL, OPT_NAMESPACE},
	 "NAME",
	 "where configurations are, default the account's, else\n"
	 "                           " CLUSTER_DEFAULT_NAMESPACE},
	{{"config-map", required_argument, NULL, OPT_CONFIG_MAP},
	 "NAME",
	 "what names of ConfigMaps begin with, default " CLUSTER_DEFAULT_CONFIG_MAP},
	{{"plugin-dir", required_argument, NULL, OPT_PLUGIN_DIR},
	 "DIR",
	 "where resource plugins register, as\n"
	 "                           " PLUGINS_DEFAULT_DIR ";\n"
	 "                           without it there are none"},
	{{"plugin-grace", required_argument, NULL, OPT_PLUGIN_GRACE},
	 "SECONDS",
	 "that a plugin which has stopped is waited for, default 300"},
	{{"pod-resources-socket", required_argument, NULL, OPT_POD_RESOURCES_SOCKET},
	 "PATH",
	 "where to serve the kubelet's pod-resources API with what\n"
	 "                           nri-rpd has given to containers; default nowhere"},
	{{"devices-provider", required_argument, NULL, OPT_DEVICES_PROVIDER},
	 "NAME",
	 "whose devices are told there: kubelet or none, default none"},
	{{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	 "LEVEL",
	 "error, warning, notice, info or debug, default info"},
	{{"version", no_argument, NULL, CMDLINE_VERSION}, NULL, "print the version and exit"},
	{{"help", no_argument, NULL, CMDLINE_HELP}, NULL, "print this and exit"},
};
static const char **text_option(struct options *o, int option)
{
	const char **const texts[] = {
		[OPT_DAEMON_SOCKET] = &o->daemon_socket,
		[OPT_KUBELET_SOCKET] = &o->kubelet_socket,
		[OPT_PODS_SOCKET] = &o->pods_socket,
		[OPT_BRIDGE_SOCKET] = &o->bridge_socket,
		[OPT_KUBECONFIG] = &o->kubeconfig,
		[OPT_CONTEXT] = &o->context,
		[OPT_SERVICE_ACCOUNT] = &o->service_account,
		[OPT_NODE] = &o->node,
		[OPT_NAMESPACE] = &o->ns,
		[OPT_CONFIG_MAP] = &o->config_map,
		[OPT_PLUGIN_DIR] = &o->plugin_dir,
		[OPT_POD_RESOURCES_SOCKET] = &o->pod_resources_socket,
	};
	return option >= 0 && option < OPT_PLUGIN_GRACE ? texts[option] : NULL;
}

static int take_grace(struct options *o, const char *argument)
{
	if (str_to_u64(argument, &o->plugin_grace_s) == 0 && o->plugin_grace_s &&
	    o->plugin_grace_s <= GRACE_MAX_S)
		return 0;
	fprintf(stderr, "nri-rp-agent: --plugin-grace %s: expected 1 to %u seconds\n", argument,
		GRACE_MAX_S);
	return -1;
}

static int take_provider(struct options *o, const char *argument)
{
	o->kubelet_devices = str_eq(argument, "kubelet");
	if (o->kubelet_devices || str_eq(argument, "none"))
		return 0;
	fprintf(stderr, "nri-rp-agent: --devices-provider %s: expected kubelet or none\n",
		argument);
	return -1;
}

static int take(void *to, int option, const char *argument)
{
	struct options *o = to;
	const char **text = text_option(o, option);
	if (text) {
		*text = argument;
		return 0;
	}
	if (option == OPT_PLUGIN_GRACE)
		return take_grace(o, argument);
	if (option == OPT_DEVICES_PROVIDER)
		return take_provider(o, argument);
	if (log_level_from_name(argument, &o->log_level) == 0)
		return 0;
	fprintf(stderr,
		"nri-rp-agent: --log-level %s: expected error, warning, notice, info or debug\n",
		argument);
	return -1;
}

enum options_result options_parse(int argc, char **argv, struct options *ret)
{
	static const struct cmdline line = {
		.program = "nri-rp-agent",
		.version = NRI_RP_VERSION,
		.before = "Usage: nri-rp-agent [OPTION]…\n"
			  "Talks to the kubelet and the Kubernetes API server for nri-rpd: which "
			  "devices pods have, and\nhow the cluster configures this node.\n"
			  "Runs in the foreground; SIGTERM stops.\n",
		.after = "Exit status: 0 stopped as asked, 1 failed, 2 wrong usage.\n"
			 "See nri-rp-agent(8), nri-rpd(8), rp.conf(5).\n",
		.options = table,
		.n_options = sizeof table / sizeof *table,
		.take = take,
	};
	*ret = (struct options){
		.daemon_socket = AGENT_DEFAULT_SOCKET,
		.kubelet_socket = KUBELET_DEFAULT_SOCKET,
		.pods_socket = PODWATCH_DEFAULT_SOCKET,
		.service_account = SERVICE_ACCOUNT_DIR,
		.config_map = CLUSTER_DEFAULT_CONFIG_MAP,
		.plugin_grace_s = PLUGINS_GRACE_S,
		.log_level = LOG_INFO,
	};
	return cmdline_parse(&line, argc, argv, ret);
}
