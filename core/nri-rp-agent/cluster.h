/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster's side of the agent: this node's object, and what is done for the node there.
 *
 *   kubeconfig.c  where the API server is
 *   http.c        requests on the loop
 *   kube.c        how many, and when
 *   watch.c       objects kept in view
 *   node.c        the Node, for the daemon
 *   evict.c       pods that have to leave the node
 *   configs.c     which configuration is this node's, and what became of it
 *   choice.c      which of several it is
 *   verdict.c     the status of it
 *   published.c   what is said of the node
 *   wishes.c      what modules want it to have
 *   report.c      events of pods and of the node
 *   adjust.c      containers that are placed by other requests than their pods have
 *   writer.c      writes of one object, one after the other
 */
#ifndef NRI_RP_AGENT_CLUSTER_H
#define NRI_RP_AGENT_CLUSTER_H

#include "core/nri-rp-agent/link.h"

struct cluster;

struct cluster_config {
	struct loop *loop;
	struct link *link;
	struct link *bridge; /* NULL: there is none */
	const char *kubeconfig, *context; /* NULL: in the cluster; the current one */
	const char *service_account; /* the folder of its files */
	const char *node; /* NULL: NODE_NAME of the environment, else the host's name */
	const char *ns; /* NULL: ours, else CLUSTER_DEFAULT_NAMESPACE */
	const char *config_map;
};

#define CLUSTER_DEFAULT_NAMESPACE "kube-system"
#define CLUSTER_DEFAULT_CONFIG_MAP "nri-rp-config"

/* *ret NULL: this is no cluster, and none is named. */
int cluster_new(const struct cluster_config *config, struct cluster **ret, struct err *err);
/* After the link is gone, which may be in the middle of a call. NULL is fine; returns NULL. */
struct cluster *cluster_free(struct cluster *c);
/* The agent stops: done is called, perhaps from inside, when the cluster has been told, or cannot
 * be. */
void cluster_retire(struct cluster *c, void (*done)(void *arg), void *arg);

#endif
