/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration that the cluster has for this node: found among custom resources of all kinds
 * that the cluster has in the group config.nri, and ConfigMaps (choice.h), sent to the daemon, and
 * what became of it written back (verdict.h).
 */
#ifndef NRI_RP_AGENT_CONFIGS_H
#define NRI_RP_AGENT_CONFIGS_H

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"

struct configs;

struct configs_config {
	struct kube *kube;
	struct link *link;
	const char *node; /* its name */
	const char *ns; /* where the objects are */
	const char *config_map; /* what names of ConfigMaps begin with: "nri-rp-config" */
};

int configs_new(const struct configs_config *config, struct configs **ret, struct err *err);
struct configs *configs_free(struct configs *c); /* NULL is fine; returns NULL */
/* The node's group; NULL: it has none. Until this is called for the first time the shared objects
 * are not looked at. */
void configs_set_group(struct configs *c, const char *group);
/* The Node has changed. */
void configs_node_seen(const struct configs *c, const json_t *node);
/* The daemon is there, or there again. */
void configs_daemon_connected(struct configs *c);
/* The agent stops: done is called, perhaps from inside, when the cluster has been told, or cannot
 * be. */
void configs_retire(struct configs *c, void (*done)(void *arg), void *arg);

#endif
