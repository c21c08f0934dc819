/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the cgroup directory of a container. The runtime's cgroups_path has one of two forms:
 *   cgroupfs  /kubepods/burstable/podUID/ID
 *   systemd   kubepods-burstable-podUID.slice:cri-containerd:ID, which is
 *             kubepods.slice/kubepods-burstable.slice/…/cri-containerd-ID.scope
 */
#pragma once

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/util/fs.h"

/* Writes the path relative to the cgroup mount, without a leading slash. -EINVAL: neither form;
 * -E2BIG. */
int cgroup_relative(const char *cgroups_path, char *buf, size_t size);
/* Returns true if the machine has the unified tree (cgroup v2). Any thread. */
bool cgroup_unified(const struct fs_root *root);
/* Writes the directory below the root, for a v1 controller ("cpuset") or for v2 (""). A v1
 * controller on a v2 machine means the unified tree. -ENOENT: the directory does not exist. Any
 * thread. */
int cgroup_dir_of(const struct fs_root *root, const char *cgroups_path, const char *controller,
		  char *buf, size_t size);

/*
 * Works like cgroup_dir_of(). If that directory does not exist, takes the process's cgroup from
 * /proc, unless it is the root or does not belong to one container. pid 0: unknown.
 */
int cgroup_find_dir(const struct fs_root *root, const char *cgroups_path, uint32_t pid,
		    const char *controller, char *buf, size_t size);
/* Opens the directory that cgroup_find_dir() would find, with O_PATH, for a caller that asks once
 * for many containers whether the machine is unified. Negative: as there. Any thread. */
int cgroup_open(const struct fs_root *root, bool unified, const char *cgroups_path, uint32_t pid,
		const char *controller);
