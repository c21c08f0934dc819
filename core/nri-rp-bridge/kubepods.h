/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet's cgroups: where they are, which pods and containers have one, and when that changes.
 *
 *   cgroupfs  kubepods[/burstable|/besteffort]/pod<UID>/<ID>
 *   systemd   kubepods.slice[/kubepods-burstable.slice|…]
 *             /kubepods[-burstable|…]-pod<UID>.slice/cri-containerd-<ID>.scope
 *
 * Pods of a node's system partition are in the same tree below the cgroup "system" or
 * kubepods-system.slice. With --cgroup-root the kubelet has all of it below another cgroup, and the
 * slices' names begin with that one's.
 *
 * All folders are found by walking them, and are watched by inotify from then on. An event names
 * the folder that has changed, of a pod or of a QoS class, and only that one is walked again.
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
 * returned; -E2BIG: there are too many. Changes up to then are forgotten. */
int kubepods_walk(struct kubepods *k, int (*fn)(const struct kubepods_entry *e, void *arg),
		  void *arg);

/* ---- changes, of which changed() tells ---- */

#define KUBEPODS_CHANGES_MAX 64u
/* Returns true if so much has changed, or it is not known what, that all has to be walked. */
bool kubepods_all_changed(const struct kubepods *k);
unsigned kubepods_n_changes(const struct kubepods *k);
/* Takes the oldest change: a cgroup of a pod or of a QoS class. False: there is none. */
bool kubepods_take_change(struct kubepods *k, char ret[CGROUP_PATH_MAX]);
/* Adds a cgroup to the changes, for another look at it. */
void kubepods_add_change(struct kubepods *k, const char *cgroup);
/* As kubepods_walk, for what is in one cgroup of a pod or of a QoS class, which may have gone. */
int kubepods_walk_below(struct kubepods *k, const char *cgroup,
			int (*fn)(const struct kubepods_entry *e, void *arg), void *arg);
/* How many folders have been listed since the start. */
uint64_t kubepods_n_listed(const struct kubepods *k);

/* Names of folders. False: it is another one's. */
bool kubepods_is_top(const char *name);
bool kubepods_is_qos(const char *name);
bool kubepods_pod_uid(const char *name, char ret[KUBEPODS_UID_SIZE]);
bool kubepods_ctr_id(const char *name, char ret[KUBEPODS_ID_SIZE]);

#endif
