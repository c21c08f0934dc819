/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource plugins: programs that allocate resources unknown to the daemon, over the public gRPC
 * protocol resourceplugin.v1alpha1. They register at kubelet.sock in a folder of the agent, and
 * listen at sockets of their own there.
 *
 *   plugins.c     registration, the folder, the saved list of plugins
 *   plugin.c      connection of one plugin
 *   pluginask.c   the daemon's requests to plugins
 *   pluginmsg.c   messages of plugins
 *
 * A file in the folder has the list of plugins, so that a restarted agent knows which resources
 * have a plugin before the plugins register again. Allocations are stored by the daemon and the
 * plugins.
 */
#pragma once

#include "core/nri-rp-agent/plugin.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"
#include "core/lib/wire/rpc.h"

#define PLUGINS_DEFAULT_DIR "/var/lib/nri-rp/resource-plugins"
#define PLUGINS_SOCKET "kubelet.sock"
#define PLUGINS_FILE "kubelet_qrm_checkpoint"
#define PLUGINS_VERSION "v1alpha1"
#define PLUGINS_GRACE_S 300u /* time that allocations of a stopped plugin stay valid */

struct link;
struct plugins;

struct plugins_config {
	struct loop *loop;
	struct link *link; /* must not be freed earlier than right before plugins_free() */
	const char *folder;
	uint32_t grace_s;
};

int plugins_new(const struct plugins_config *config, struct plugins **ret, struct err *err);
struct plugins *plugins_free(struct plugins *p); /* accepts NULL; returns NULL */
/* Call when the agent has registered with the daemon. */
void plugins_daemon_connected(struct plugins *p);
/* Serves a call of the daemon. Returns false if the call does not concern plugins. */
bool plugins_serve(struct plugins *p, struct rpc_request *req);

/* ---- functions between these files ----------------------------------------------------------- */

struct known_plugin {
	struct plugin *plugin;
	char *resource, *endpoint;
	/* Compare the plugin's allocations with the existing pods: the plugin or the daemon is new,
	 * or the last comparison failed. sweeping: a comparison is under way. */
	bool sweep, sweeping;
	bool connected; /* whether the plugin was connected at the last call of `changed` */
	/* allocated something since the sweep began, so the plugin's list may be older */
	bool allocated;
	/* Sweeps are repeated until then, because the plugin may still carry out an allocation that
	 * has failed for the agent. */
	uint64_t unsure_until_ms;
	struct plugins *all;
	struct known_plugin *prev, *next;
};

/* Returns the plugin of a resource; NULL: none. */
struct known_plugin *plugins_find(struct plugins *p, const char *resource);
struct known_plugin *plugins_first(struct plugins *p);
struct link *plugins_link(struct plugins *p);
