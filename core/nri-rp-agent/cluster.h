/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster's side of the agent: watches this node's object and writes for the node. main.c lists
 * its files.
 *
 * Addresses and credentials of the API server, and HTTP, are in core/lib/kube.
 */
#pragma once

#include "core/nri-rp-agent/link.h"

struct cluster;

struct cluster_config {
	struct loop *loop;
	struct link *link;
	struct podres *podres; /* source of the devices of claims */
	struct link *bridge; /* link to nri-rp-bridge; NULL: none */
	/* kubeconfig: file, NULL: use the service account; context: NULL: the current one of that
	 * file */
	const char *kubeconfig, *context;
	const char *service_account; /* folder of the service account's files */
	const char *node; /* name of the Node; NULL: $NODE_NAME, or the host name */
	const char *ns; /* NULL: the agent's own namespace, or CLUSTER_DEFAULT_NAMESPACE */
	const char *config_map;
	const char *pods_socket; /* socket of the kubelet's pods API */
	const char *kubelet_root, *cdi_dir; /* folders for claims (dra.h) */
};

#define CLUSTER_DEFAULT_NAMESPACE "kube-system"
#define CLUSTER_DEFAULT_CONFIG_MAP "nri-rp-config"

/* Starts the cluster's side. *ret NULL: no cluster was found and none was configured. */
int cluster_new(const struct cluster_config *config, struct cluster **ret, struct err *err);
/* Call after link_free, which may be running one of the link's calls. Accepts NULL; returns
 * NULL. */
struct cluster *cluster_free(struct cluster *c);
/* Writes final states before the agent stops. Calls done, possibly before it returns, when they are
 * written or cannot be. */
void cluster_retire(struct cluster *c, void (*done)(void *arg), void *arg);
