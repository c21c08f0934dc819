/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and watches the kubelet's cgroups: their place, the pods and containers that have one, and
 * changes.
 *
 *   cgroupfs  kubepods[/burstable|/besteffort]/pod<UID>/<ID>
 *   systemd   kubepods.slice[/kubepods-burstable.slice|…]
 *             /kubepods[-burstable|…]-pod<UID>.slice/cri-containerd-<ID>.scope
 *
 * Pods of a node's system partition are in the same tree, below the cgroup "system" or
 * kubepods-system.slice. With --cgroup-root the kubelet places the tree below another cgroup, and
 * the names of the slices begin with the name of that cgroup.
 *
 * A full walk finds all folders; inotify watches them from then on. An event names the changed
 * folder of a pod or of a QoS class, and only this folder is walked again.
 */
#pragma once

#include "core/nri-rp-bridge/cgroup_files.h"
#include "core/lib/util/loop.h"

#define KUBEPODS_UID_SIZE 65u
#define KUBEPODS_ID_SIZE 65u
/* largest number of cgroups of containers and sandboxes in a walk */
#define KUBEPODS_CTRS_MAX 32768u

struct kubepods;

/* The cgroup of a container or of a pod's sandbox, passed to the callback of a walk; valid until
 * the callback returns. */
struct kubepods_entry {
	const char *uid, *id;
	const char *pod; /* cgroup of the pod */
	const char *cgroup; /* cgroup of the container or sandbox, below that of the pod */
	const char *path; /* `cgroup` in the notation that runtimes send to plugins */
};

int kubepods_new(struct loop *loop, const struct cgroup_fs *c,
		 const char *under, /* the kubelet's --cgroup-root; NULL: searched for */
		 void (*changed)(void *arg), void *arg, struct kubepods **ret, struct err *err);
/* Accepts NULL; returns NULL. */
struct kubepods *kubepods_free(struct kubepods *k);
/* Returns the topmost cgroup of the kubelet; NULL: it does not exist yet. */
const char *kubepods_top(const struct kubepods *k);
/* Calls fn for each cgroup of a container or of a pod's sandbox. A non-zero result of fn ends the
 * walk and is returned. -E2BIG: too many cgroups. Drops the changes recorded before the walk. */
int kubepods_walk(struct kubepods *k, int (*fn)(const struct kubepods_entry *e, void *arg),
		  void *arg);

/* ---- changes --------------------------------------------------------------------------------- */

#define KUBEPODS_CHANGES_MAX 64u
/* Returns true if a full walk is needed: too much has changed, or the changed folder is unknown. */
bool kubepods_all_changed(const struct kubepods *k);
unsigned kubepods_n_changes(const struct kubepods *k);
/* Removes the oldest change and writes its cgroup, that of a pod or of a QoS class, to `ret`.
 * False: no changes. */
bool kubepods_take_change(struct kubepods *k, char ret[CGROUP_PATH_MAX]);
/* Adds a cgroup to the changes, so that it is walked again. */
void kubepods_add_change(struct kubepods *k, const char *cgroup);
/* Walks one cgroup of a pod or of a QoS class, as kubepods_walk does with all. The cgroup may have
 * been removed. */
int kubepods_walk_below(struct kubepods *k, const char *cgroup,
			int (*fn)(const struct kubepods_entry *e, void *arg), void *arg);
/* Returns the number of folders listed since the start. */
uint64_t kubepods_n_listed(const struct kubepods *k);

/* Recognises names of the kubelet's folders. False: another kind of name. */
bool kubepods_is_top(const char *name);
bool kubepods_is_qos(const char *name);
bool kubepods_pod_uid(const char *name, char ret[KUBEPODS_UID_SIZE]);
bool kubepods_ctr_id(const char *name, char ret[KUBEPODS_ID_SIZE]);
