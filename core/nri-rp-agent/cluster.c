/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/cluster.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rp-agent/adjust.h"
#include "core/nri-rp-agent/configs.h"
#include "core/nri-rp-agent/dra.h"
#include "core/nri-rp-agent/evict.h"
#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/node.h"
#include "core/nri-rp-agent/pods.h"
#include "core/nri-rp-agent/published.h"
#include "core/nri-rp-agent/readiness.h"
#include "core/nri-rp-agent/report.h"
#include "core/nri-rp-agent/watch.h"
#include "core/nri-rp-agent/node_patch.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "cluster"
#define NODE_MAX (KUBE_NAME_MAX + 1)
#define STATE_QUIET_MS 200u /* time within which changes are collected and sent together */
#define STATE_TIMEOUT_MS 5000u

struct cluster {
	struct kube *kube;
	struct configs *configs;
	struct published *published;
	struct wishes *wishes;
	struct dra *dra;
	struct readiness *readiness;
	struct evict *evict;
	struct report *report;
	struct adjust *adjust;
	struct node_feed *node_feed;
	struct pod_feed *pod_feed;
	struct pod_feed *bridge_feed; /* sends pods to nri-rp-bridge; NULL: there is no bridge */
	struct watch *node_watch;
	struct link *link;
	struct podres *podres;
	struct link_client client, bridge_client;
	struct loop_timer *state_timer;
	char ns[NODE_MAX];
	char node[NODE_MAX];
	const char *warned_label;
	void (*retired)(void *arg);
	void *retired_arg;
};

/* ---- the node -------------------------------------------------------------------------------- */

/* Labels that name the node's group; those after the first belong to predecessor programs. */
static const char *const group_labels[] = {
	"config.nri/group",
	"group.config.nri",
	"resource-policy.nri.io/group",
	"cri-resource-manager.intel.com/group",
};

static void take_node(struct cluster *c, const json_t *node)
{
	const json_t *labels = kube_meta(node, "labels");
	const char *group = NULL;
	unsigned i = 0;
	for (; i < sizeof group_labels / sizeof *group_labels && !group; i++)
		group = json_string_value(json_object_get(labels, group_labels[i]));
	if (group && i > 1 && c->warned_label != group_labels[i - 1]) {
		c->warned_label = group_labels[i - 1];
		log_warning("the label %s of node %s is obsolete; name the group with %s",
			    group_labels[i - 1], c->node, group_labels[0]);
	}
	configs_set_group(c->configs, group && *group ? group : NULL);
}

static void on_node(enum watch_event event, json_t *object, const char *text, void *arg)
{
	struct cluster *c = arg;
	if (event == WATCH_OBJECT) {
		take_node(c, object);
		configs_node_seen(c->configs, object);
		published_seen(c->published, object);
		wishes_seen(c->wishes, object);
		dra_node_seen(c->dra, object);
		readiness_seen(c->readiness, object);
		node_feed_seen(c->node_feed, object);
	}
	if (event != WATCH_DENIED)
		return;
	log_warning("the labels of node %s cannot be read, so its group is unknown; grant get, "
		    "list and watch of nodes",
		    c->node);
	configs_set_group(c->configs, NULL);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Sends the state of the cluster's side to the daemon. A failed call does not matter: a daemon that
 * connects later gets the state again. */
static void tell_state(void *arg)
{
	struct cluster *c = arg;
	const char *problems[KUBE_PROBLEMS_MAX];
	const struct kube_written *written;
	Agent__Written list[KUBE_WRITTEN_MAX], *at[KUBE_WRITTEN_MAX];
	Agent__SetStateRequest m = AGENT__SET_STATE_REQUEST__INIT;
	const struct report_counts events = report_counts(c->report);
	m.server = (char *)(uintptr_t)kube_server(c->kube);
	m.node = c->node;
	m.namespace_ = c->ns;
	m.unreachable = (char *)(uintptr_t)kube_unreachable(c->kube);
	m.n_problems = kube_problems(c->kube, problems);
	m.problems = (char **)(uintptr_t)problems;
	m.events_waiting = events.waiting;
	m.events_lost = events.lost;
	m.n_written = kube_written(c->kube, &written);
	m.written = at;
	for (size_t i = 0; i < m.n_written; i++) {
		agent__written__init(at[i] = &list[i]);
		list[i].what = (char *)(uintptr_t)written[i].what;
		list[i].time_s = written[i].time_s;
	}
	(void)link_call(c->link, "SetState", &m.base, STATE_TIMEOUT_MS, NULL, NULL);
}

static void state_changed(void *arg)
{
	const struct cluster *c = arg;
	if (!loop_timer_armed(c->state_timer))
		(void)loop_timer_arm(c->state_timer, STATE_QUIET_MS);
}

static void connected(const Agent__RegisterResponse *m, void *arg)
{
	struct cluster *c = arg;
	configs_set_namespaces(c->configs, m->namespaces, m->n_namespaces);
	configs_daemon_connected(c->configs);
	node_feed_daemon_connected(c->node_feed);
	pod_feed_daemon_connected(c->pod_feed, m->pod_source);
	adjust_daemon_connected(c->adjust);
	dra_daemon_connected(c->dra);
	podres_set_claims(c->podres, m->resource_slices, c->kube, c->node);
	tell_state(c);
}

static void cluster_lost(void *arg)
{
	const struct cluster *c = arg;
	readiness_lost(c->readiness);
}

static void bridge_connected(const Agent__RegisterResponse *m, void *arg)
{
	struct cluster *c = arg;
	pod_feed_daemon_connected(c->bridge_feed, m->pod_source);
}

static int publish(const Agent__PublishedRequest *m, void *arg)
{
	const struct cluster *c = arg;
	int r = published_take(c->published, m);
	readiness_take(c->readiness, m);
	if (!r)
		r = dra_take(c->dra, m);
	return r ? r : wishes_take(c->wishes, m);
}

static void evict(const Agent__EvictRequest *m, struct rpc_request *req, void *arg)
{
	const struct cluster *c = arg;
	evict_serve(c->evict, m, req);
}

static void tell(const Agent__TellRequest *m, void *arg)
{
	const struct cluster *c = arg;
	report_tell(c->report, m);
}

static void check_claim(const Agent__Claim *m, struct rpc_request *req, void *arg)
{
	const struct cluster *c = arg;
	dra_check_claim(c->dra, m, req);
}

static int find_node(struct cluster *c, const char *given, struct err *err)
{
	char host[HOST_NAME_MAX + 1] = "";
	const char *env = getenv("NODE_NAME");
	if (!given && env && *env)
		given = env;
	if (!given && gethostname(host, sizeof host - 1) == 0)
		given = host;
	if (!given || !kube_name_valid(given, true))
		return err_set(err, -EINVAL,
			       "\"%.100s\" is not a node's name: set it with --node or the "
			       "environment variable NODE_NAME",
			       given ? given : "");
	(void)snprintf(c->node, sizeof c->node, "%s", given);
	return 0;
}

static int read_access(const struct cluster_config *config, struct kubeconfig *ret, struct err *err)
{
	return config->kubeconfig ? kubeconfig_read(config->kubeconfig, config->context, ret, err)
				  : kubeconfig_in_cluster(config->service_account, ret, err);
}

static int cluster_start(struct cluster *c, const struct cluster_config *config, struct err *err)
{
	struct kubeconfig access;
	int r = find_node(c, config->node, err);
	if (!r)
		r = read_access(config, &access, err);
	if (!r)
		r = kube_new(config->loop, &access, &c->kube, err);
	if (r)
		return r;
	const char *own = kube_namespace(c->kube);
	const struct configs_config configs = {
		.kube = c->kube,
		.link = config->link,
		.node = c->node,
		.ns = config->ns    ? config->ns
		      : own && *own ? own
				    : CLUSTER_DEFAULT_NAMESPACE,
		.config_map = config->config_map,
	};
	r = configs_new(&configs, &c->configs, err);
	if (r)
		return r;
	(void)snprintf(c->ns, sizeof c->ns, "%s", configs.ns);
	c->link = config->link;
	c->podres = config->podres;
	c->published = published_new(c->kube, c->node);
	c->wishes = wishes_new(c->kube, c->node);
	c->dra = dra_new(&(struct dra_config){.link = c->link,
					      .kube = c->kube,
					      .node = c->node,
					      .kubelet_root = config->kubelet_root,
					      .cdi_dir = config->cdi_dir});
	c->readiness = readiness_new(c->kube, c->link, c->node);
	c->evict = evict_new(c->kube);
	c->report = report_new(c->kube, c->node, state_changed, c);
	c->adjust = adjust_new(c->kube, c->link, c->node, c->ns);
	c->node_feed = node_feed_new(c->kube, c->link);
	struct pod_feed_config pods = {.loop = config->loop,
				       .link = c->link,
				       .kube = c->kube,
				       .node = c->node,
				       .kubelet_socket = config->pods_socket};
	c->pod_feed = pod_feed_new(&pods);
	pods.link = config->bridge;
	pods.kubelet_socket = NULL;
	pods.whole = true;
	if (config->bridge)
		c->bridge_feed = pod_feed_new(&pods);
	c->state_timer = loop_timer_new(config->loop, tell_state, c);
	kube_on_state(c->kube, state_changed, c);
	_free_ char *selector = str_printf("metadata.name=%s", c->node);
	if (selector && c->published && c->wishes && c->dra && c->readiness && c->evict &&
	    c->report && c->adjust && c->node_feed && c->pod_feed &&
	    (c->bridge_feed || !config->bridge) && c->state_timer)
		c->node_watch = watch_new(c->kube, "/api/v1/nodes", selector, on_node, c);
	if (!c->node_watch)
		return err_errno(err, -ENOMEM, "cluster");
	log_info("node %s, configured by namespace %s", c->node, configs.ns);
	return 0;
}

int cluster_new(const struct cluster_config *config, struct cluster **ret, struct err *err)
{
	*ret = NULL;
	if (!config->kubeconfig && !kubeconfig_is_in_cluster())
		return 0;
	struct cluster *c = calloc(1, sizeof *c);
	if (!c)
		return err_errno(err, -ENOMEM, "cluster");
	int r = cluster_start(c, config, err);
	if (r) {
		cluster_free(c);
		return r;
	}
	c->client = (struct link_client){.connected = connected,
					 .lost = cluster_lost,
					 .publish = publish,
					 .evict = evict,
					 .tell = tell,
					 .check_claim = check_claim,
					 .arg = c};
	c->bridge_client = (struct link_client){.connected = bridge_connected, .arg = c};
	link_set_client(config->link, &c->client);
	if (config->bridge)
		link_set_client(config->bridge, &c->bridge_client);
	*ret = c;
	return 0;
}

struct cluster *cluster_free(struct cluster *c)
{
	if (!c)
		return NULL;
	if (c->podres)
		podres_set_claims(c->podres, false, NULL, NULL);
	watch_free(c->node_watch);
	configs_free(c->configs);
	published_free(c->published);
	readiness_free(c->readiness);
	wishes_free(c->wishes);
	dra_free(c->dra);
	evict_free(c->evict);
	report_free(c->report);
	adjust_free(c->adjust);
	node_feed_free(c->node_feed);
	pod_feed_free(c->pod_feed);
	pod_feed_free(c->bridge_feed);
	if (c->kube)
		kube_on_state(c->kube, NULL, NULL);
	kube_free(c->kube);
	loop_timer_free(c->state_timer);
	free(c);
	return NULL;
}

static void cluster_retire_readiness(void *arg)
{
	struct cluster *c = arg;
	readiness_retire(c->readiness, c->retired, c->retired_arg);
}

void cluster_retire(struct cluster *c, void (*done)(void *arg), void *arg)
{
	c->retired = done;
	c->retired_arg = arg;
	configs_retire(c->configs, cluster_retire_readiness, c);
}
