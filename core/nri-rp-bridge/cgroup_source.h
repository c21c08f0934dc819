/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source "cgroups": the kubelet and the runtime talk to each other directly. The bridge finds
 * pods and containers by their cgroups, presents them to the plugin as if they were just being
 * created, and writes the resources that the plugin wants into the cgroups' files.
 *
 *   cgroup_source.c   tracks pods and containers: new ones, removed ones, drifted files
 *   cgroup_plugin.c   requests and events for the plugin, and its answers
 *   cgroup_writer.c   writes to cgroup files, on a thread
 *   describe.c        pods and containers as NRI messages
 *   kubepods.c        finds and watches the kubelet's cgroups
 *   cgroup_files.c    reads and writes the files of one cgroup
 *   bundle.c          reads what the runtime has written about a container
 *   podlist.c         pods as the kubelet or nri-rp-agent lists them
 *
 * States of a pod or container (enum told):
 *
 *               new cgroup                      accepted
 *   (nothing) ──────────────▶ asked ─────────────────────▶ taken ──removed──▶ (plugin notified)
 *       ▲                       │ refused: it runs unmanaged
 *       └──── each reconcile ── refused
 *
 * A container waits until its pod is taken. A pod that the list does not have yet waits for half a
 * second, because its annotations are sent to the plugin only once. Without a plugin nothing is
 * written: the plugin may just be reconnecting to the runtime itself.
 */
#pragma once

#include "core/nri-rp-bridge/podlist.h"
#include "core/lib/util/loop.h"

struct cgroup_source;

struct cgroup_source_config {
	struct loop *loop;
	const char *socket; /* path of the socket to which plugins connect */
	const char *root; /* root of the host's files: "/" */
	const char *cgroup_root; /* the kubelet's --cgroup-root; NULL: searched for */
	/* additional folder in which the runtime keeps its bundles; NULL: none */
	const char *state;
	uint64_t reconcile_ms;
	/* cgroup v1: move a container's memory when its memory nodes change
	 * (cpuset.memory_migrate) */
	bool migrate;
	struct podlist_config pods; /* `changed` and `arg` are set by cgroup_source_new */
	/* Called with a text for people when the status changes. */
	void (*status)(const char *text, void *arg);
	void *arg;
};

int cgroup_source_new(const struct cgroup_source_config *config, struct cgroup_source **ret,
		      struct err *err);
/* Accepts NULL; returns NULL. */
struct cgroup_source *cgroup_source_free(struct cgroup_source *b);
