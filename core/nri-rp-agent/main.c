/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp-agent: connects nri-rpd with the kubelet and the cluster. It is a program of its own, so
 * that the daemon, which runs as root, neither talks to them nor parses their data.
 *
 *   main.c           start and stop
 *   options.c        command line options
 *   link.c           connection to nri-rpd, or to nri-rp-bridge
 *
 * Kubelet:
 *   kubelet.c        calls to the kubelet's socket
 *   podres.c         client of the pod-resources API
 *   podwatch.c       client of the pods API
 *   devices.c        converts the kubelet's data for the daemon
 *   lister.c         serves the pod-resources API
 *   listmsg.c        messages of the served API
 *   unary.c          server side of simple gRPC calls
 *
 * Resource plugins:
 *   plugins.c        registration, the folder, the saved list of plugins
 *   plugin.c         connection of one plugin
 *   pluginask.c      the daemon's requests to plugins
 *   pluginmsg.c      messages of plugins
 *
 * Cluster:
 *   cluster.c        the agent's part in the cluster
 *   kube.c           requests to the API server: rate, order, back-off
 *   watch.c          lists and watches objects
 *   writer.c         writes one object, one write at a time
 *   rbac_hint.c      the missing right or kind behind a refusal
 *   node.c           sends the Node to the daemon
 *   pods.c           sends the node's pods to the daemon
 *   configs.c        finds this node's configuration and sends it to the daemon
 *   configs_objects.c  watches the objects that may hold it
 *   candidate.c      chooses among several configurations
 *   object_status.c  writes the outcome into the object's status
 *   adjust.c         adjustments of containers
 *   published.c      NodeResourceTopology and extended resources
 *   node_patch.c     labels, annotations and taints of the Node
 *   readiness.c      condition and taint of the Node by the daemon's state
 *   report.c         events of pods and of the node
 *   evict.c          evicts pods
 *   dra.c            driver of Dynamic Resource Allocation
 *   claim_work.c     claims from the kubelet's request to its answer
 *   claim_object.c   what a ResourceClaim has allocated
 *   slices.c         publishes devices in a ResourceSlice
 *   cdi.c            CDI files of claims
 *   places.c         places of devices that claims allocate
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/nri-rp-agent/cluster.h"
#include "core/nri-rp-agent/link.h"
#include "core/nri-rp-agent/lister.h"
#include "core/nri-rp-agent/options.h"
#include "core/nri-rp-agent/plugins.h"
#include "core/nri-rp-agent/pods.h"
#include "core/lib/util/privileges.h"

#define LOG_SOURCE "nri-rp-agent"

struct agent {
	struct loop *loop;
	struct podres *podres;
	struct link *link;
	struct link *bridge; /* link to nri-rp-bridge; NULL: there is no bridge */
	struct cluster *cluster; /* parts that need the API server; NULL: there is no cluster */
	/* sends pods to the daemon if there is no cluster; NULL: there is one */
	struct pod_feed *pods;
	struct link_client client; /* callbacks of `link` for `pods` */
	struct plugins *plugins; /* resource plugins; NULL: not enabled */
	struct lister *lister; /* server of the pod-resources API; NULL: not enabled */
	bool stopping;
};

static void agent_retired(void *arg)
{
	loop_stop(arg);
}

/* Stops the agent. A second signal stops it without waiting for the cluster. */
static void on_signal(int signo, void *arg)
{
	struct agent *a = arg;
	bool again = a->stopping;
	log_notice("stopping");
	a->stopping = true;
	if (a->cluster && !again)
		cluster_retire(a->cluster, agent_retired, a->loop);
	else
		loop_stop(a->loop);
}

static int start_cluster(struct agent *a, const struct options *o, struct err *err)
{
	const struct cluster_config config = {
		.loop = a->loop,
		.link = a->link,
		.podres = a->podres,
		.bridge = a->bridge,
		.kubeconfig = o->kubeconfig,
		.context = o->context,
		.service_account = o->service_account,
		.node = o->node,
		.ns = o->ns,
		.config_map = o->config_map,
		.pods_socket = o->pods_socket,
		.kubelet_root = o->kubelet_root,
		.cdi_dir = o->cdi_dir,
	};
	return cluster_new(&config, &a->cluster, err);
}

static void pods_connected(const Agent__RegisterResponse *m, void *arg)
{
	const struct agent *a = arg;
	pod_feed_daemon_connected(a->pods, m->pod_source);
	podres_set_claims(a->podres, m->resource_slices, NULL, NULL);
}

/* Starts the feed of the kubelet's pods on a node without a cluster. */
static int start_pods(struct agent *a, const struct options *o, struct err *err)
{
	const struct pod_feed_config config = {
		.loop = a->loop, .link = a->link, .kubelet_socket = o->pods_socket};
	if (a->cluster)
		return 0;
	a->pods = pod_feed_new(&config);
	if (!a->pods)
		return err_errno(err, -ENOMEM, "pods");
	a->client = (struct link_client){.connected = pods_connected, .arg = a};
	link_set_client(a->link, &a->client);
	return 0;
}

static int start_plugins(struct agent *a, const struct options *o, struct err *err)
{
	const struct plugins_config config = {.loop = a->loop,
					      .link = a->link,
					      .folder = o->plugin_dir,
					      .grace_s = (uint32_t)o->plugin_grace_s};
	if (!o->plugin_dir)
		return 0;
	int r = plugins_new(&config, &a->plugins, err);
	link_set_plugins(a->link, a->plugins);
	return r;
}

static int start_lister(struct agent *a, const struct options *o, struct err *err)
{
	const struct lister_config config = {
		.loop = a->loop,
		.link = a->link,
		.socket = o->pod_resources_socket,
		.kubelet_socket = o->kubelet_devices ? o->kubelet_socket : NULL,
	};
	if (!o->pod_resources_socket && o->kubelet_devices)
		log_warning("--devices-provider has no effect without --pod-resources-socket");
	return o->pod_resources_socket ? lister_new(&config, &a->lister, err) : 0;
}

static int agent_start(struct agent *a, const struct options *o, struct err *err)
{
	static const int signos[] = {SIGTERM, SIGINT};
	a->loop = loop_new();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN); /* no configuration to reload */
	if (!a->loop || loop_take_signals(a->loop, signos, 2, on_signal, a))
		return err_errno(err, -ENOMEM, "start");
	int r = podres_new(a->loop, o->kubelet_socket, &a->podres, err);
	if (!r)
		r = link_new(a->loop, "nri-rpd", o->daemon_socket, a->podres, &a->link, err);
	if (!r && o->bridge_socket)
		r = link_new(a->loop, "nri-rp-bridge", o->bridge_socket, NULL, &a->bridge, err);
	if (!r)
		r = start_plugins(a, o, err);
	if (!r)
		r = start_lister(a, o, err);
	if (!r)
		r = start_cluster(a, o, err);
	if (!r)
		r = start_pods(a, o, err);
	if (r)
		return r;
	link_connect(a->link);
	if (a->bridge && !a->cluster)
		log_warning("--bridge-socket has no effect without a cluster");
	else if (a->bridge)
		link_connect(a->bridge);
	return 0;
}

static void agent_stop(struct agent *a)
{
	a->bridge = link_free(a->bridge);
	if (a->link)
		link_set_plugins(a->link, NULL);
	a->link = link_free(a->link); /* also ends the pending calls of plugins */
	a->lister = lister_free(a->lister);
	a->plugins = plugins_free(a->plugins);
	a->cluster = cluster_free(a->cluster);
	a->pods = pod_feed_free(a->pods);
	a->podres = podres_free(a->podres);
	a->loop = loop_free(a->loop);
}

int main(int argc, char **argv)
{
	struct agent a = {0};
	struct options o;
	struct err err = ERR_INIT;
	log_init("nri-rp-agent");
	enum options_result parsed = options_parse(argc, argv, &o);
	if (parsed != OPTIONS_RUN)
		return parsed;
	(void)umask(0077);
	log_set_level(o.log_level);
	log_info("nri-rp-agent %s", NRI_RP_VERSION);
	/* The capability to override file permissions is kept: the sockets of nri-rpd and the
	 * kubelet belong to root, and the agent may run as another user. */
	int r = privileges_drop(PRIVILEGE(CAP_DAC_OVERRIDE), &err);
	if (!r)
		r = agent_start(&a, &o, &err);
	if (r)
		log_error("%s", err_text(&err, r));
	else
		r = loop_run(a.loop);
	agent_stop(&a);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
