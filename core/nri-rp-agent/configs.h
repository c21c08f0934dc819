/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the configuration that the cluster has for this node (candidate.h), sends it to the daemon,
 * and writes the outcome back (object_status.h). Objects are ConfigMaps and custom resources of all
 * kinds in the group config.nri.
 */
#pragma once

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"

struct configs;

struct configs_config {
	struct kube *kube;
	struct link *link;
	const char *node; /* name of the node */
	const char *ns; /* namespace of the objects */
	const char *config_map; /* prefix of the ConfigMaps' names: "nri-rp-config" */
};

int configs_new(const struct configs_config *config, struct configs **ret, struct err *err);
struct configs *configs_free(struct configs *c); /* accepts NULL; returns NULL */
/* Sets the namespaces in which custom resources are looked for besides config.ns, whose objects
 * precede theirs, in the order of precedence. */
void configs_set_namespaces(struct configs *c, char *const *list, size_t n);
/* Sets the node's group; NULL: none. Shared objects are ignored until the first call. */
void configs_set_group(struct configs *c, const char *group);
/* Call when the Node has changed. */
void configs_node_seen(struct configs *c, const json_t *node);
/* Call when the daemon has connected, or connected again. */
void configs_daemon_connected(struct configs *c);
/* Withdraws the statuses before the agent stops. Calls done, possibly before it returns, when they
 * are written or cannot be. */
void configs_retire(struct configs *c, void (*done)(void *arg), void *arg);
