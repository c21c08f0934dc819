/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource plugins: programs that allocate resources the daemon knows nothing of, over the public
 * gRPC protocol resourceplugin.v1alpha1. They register at kubelet.sock in a folder of ours, and
 * listen at sockets of their own there.
 *
 *   plugins.c     who is there: registration, the folder, what is kept of it
 *   plugin.c      one plugin's connection
 *   pluginask.c   what the daemon asks, spread over the plugins
 *   pluginmsg.c   the plugins' messages
 *
 * A file in the folder has the plugins that are known, so that an agent that is started anew knows
 * which resources are somebody's before they register again. What they have allocated is kept by
 * the daemon, and by them.
 */
#ifndef NRI_RP_AGENT_PLUGINS_H
#define NRI_RP_AGENT_PLUGINS_H

#include "core/nri-rp-agent/plugin.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"
#include "core/lib/wire/rpc.h"

#define PLUGINS_DEFAULT_DIR "/var/lib/nri-rp/resource-plugins"
#define PLUGINS_SOCKET "kubelet.sock"
#define PLUGINS_FILE "kubelet_qrm_checkpoint"
#define PLUGINS_VERSION "v1alpha1"
#define PLUGINS_GRACE_S 300u /* that what a stopped one has allocated counts */

struct link;
struct plugins;

struct plugins_config {
	struct loop *loop;
	struct link *link; /* may be gone when plugins_free() is called, not before */
	const char *folder;
	uint32_t grace_s;
};

int plugins_new(const struct plugins_config *config, struct plugins **ret, struct err *err);
struct plugins *plugins_free(struct plugins *p); /* NULL is fine; returns NULL */
/* Registered with the daemon, once more. */
void plugins_daemon_connected(struct plugins *p);
/* A call of the daemon's. False: it is about something else. */
bool plugins_serve(struct plugins *p, struct rpc_request *req);

/* ---- between the files ---- */

struct known_plugin {
	struct plugin *plugin;
	char *resource, *endpoint;
	/* Its allocations are to be compared with the pods that there are: it is new, or the daemon
	 * is, or it has not answered. */
	bool sweep, sweeping;
	bool connected; /* when it was last looked at */
	bool allocated; /* since the sweep began: what it then tells may be of before */
	/* An allocation has failed that it may still be about to do: until then it is swept. */
	uint64_t unsure_until_ms;
	struct plugins *all;
	struct known_plugin *prev, *next;
};

struct known_plugin *plugins_find(struct plugins *p, const char *resource); /* NULL: unknown */
struct known_plugin *plugins_first(struct plugins *p);
struct link *plugins_link(struct plugins *p);

#endif
