/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet's cgroups: where they are, which pods and containers have one, and when that changes.
 *
 *   cgroupfs  kubepods[/burstable|/besteffort]/pod<UID>/<ID>
 *   systemd   kubepods.slice[/kubepods-burstable.slice|…]
 *             /kubepods[-burstable|…]-pod<UID>.slice/cri-containerd-<ID>.scope
 *
 * With --cgroup-root the kubelet has all of it below another cgroup, and the slices' names begin
 * with that one's. Folders are watched by inotify; what is there is found by walking all of them,
 * which is what follows any event.
 */
#ifndef NRI_RP_BRIDGE_KUBEPODS_H
#define NRI_RP_BRIDGE_KUBEPODS_H

#include "core/nri-rp-bridge/cgroup_files.h"
#include "core/lib/util/loop.h"

#define KUBEPODS_UID_SIZE 65u
#define KUBEPODS_ID_SIZE 65u
#define KUBEPODS_CTRS_MAX 32768u /* cgroups of containers and sandboxes that are looked at */

struct kubepods;

/* A cgroup of a container or of a pod's sandbox, while it is told. */
struct kubepods_entry {
	const char *uid, *id;
	const char *pod; /* the pod's cgroup */
	const char *cgroup; /* its own, below that */
	const char *path; /* the same as runtimes tell it to plugins */
};

int kubepods_new(struct loop *loop, const struct cgroup_fs *c,
		 const char *under, /* the kubelet's --cgroup-root; NULL: it is searched for */
		 void (*changed)(void *arg), void *arg, struct kubepods **ret, struct err *err);
/* NULL is fine; returns NULL. */
struct kubepods *kubepods_free(struct kubepods *k);
/* The topmost cgroup; NULL: there is none yet. */
const char *kubepods_top(const struct kubepods *k);
/* Calls fn for each cgroup of a container or of a pod's sandbox. Not 0 ends the walk and is
 * returned; -E2BIG: there are too many. */
int kubepods_walk(struct kubepods *k, int (*fn)(const struct kubepods_entry *e, void *arg),
		  void *arg);

/* Names of folders. False: it is another one's. */
bool kubepods_is_top(const char *name);
bool kubepods_is_qos(const char *name);
bool kubepods_pod_uid(const char *name, char ret[KUBEPODS_UID_SIZE]);
bool kubepods_ctr_id(const char *name, char ret[KUBEPODS_ID_SIZE]);

#endif
