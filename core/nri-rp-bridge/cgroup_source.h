/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source cgroups: nobody stands between the kubelet and the runtime. Pods and containers are
 * found by their cgroups, the plugin is told of them as if they were just being created, and what
 * it wants is written into the cgroups' files.
 *
 *   cgroup_source.c what there is, what of it is new or gone, and what has to be written again
 *   cgroup_plugin.c what the plugin is asked and told, one by one, and what it answers
 *   cgroup_writer.c files of cgroups, on a thread of their own
 *   describe.c      pods and containers as messages
 *   kubepods.c      where cgroups are          bundle.c   what the runtime has written of them
 *   cgroup_files.c  what is in their files     podlist.c  what the kubelet or agent says of them
 *
 *               new in the tree                 accepted
 *   (nothing) ──────────────────▶ asked ─────────────────────▶ taken ──gone──▶ (told so)
 *       ▲     known or waited for   │ refused: it runs as it is
 *       └──── each reconcile ── refused
 *
 * A container waits until its pod is taken. A pod that the list does not have yet is waited for,
 * half a second, as its annotations are told once. All of it is only while a plugin is there: when
 * that goes nothing is written any more, as it may be on its way to the runtime itself.
 */
#ifndef NRI_RP_BRIDGE_CGROUP_SOURCE_H
#define NRI_RP_BRIDGE_CGROUP_SOURCE_H

#include "core/nri-rp-bridge/podlist.h"
#include "core/lib/util/loop.h"

struct bypass;

struct bypass_config {
	struct loop *loop;
	const char *socket; /* where plugins connect */
	const char *root; /* of the files: "/" */
	const char *cgroup_root; /* the kubelet's --cgroup-root; NULL: it is searched for */
	const char *state; /* where the runtime keeps its bundles, besides the known places; NULL */
	uint64_t reconcile_ms;
	bool migrate; /* with cgroup v1 memory moves with its nodes */
	struct podlist_config pods; /* its changed and arg are set here */
	/* For people, when it changes. */
	void (*status)(const char *text, void *arg);
	void *arg;
};

int bypass_new(const struct bypass_config *config, struct bypass **ret, struct err *err);
/* NULL is fine; returns NULL. */
struct bypass *bypass_free(struct bypass *b);

#endif
