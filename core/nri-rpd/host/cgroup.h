/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a container's cgroup is. The runtime's cgroups_path comes in two forms:
 *   cgroupfs  /kubepods/burstable/podUID/ID
 *   systemd   kubepods-burstable-podUID.slice:cri-containerd:ID, which is
 *             kubepods.slice/kubepods-burstable.slice/…/cri-containerd-ID.scope
 */
#ifndef HOST_CGROUP_H
#define HOST_CGROUP_H

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/util/fs.h"

/* Relative to the cgroup mount: no leading slash. -EINVAL: neither form; -E2BIG. */
int cgroup_relative(const char *cgroups_path, char *buf, size_t size);
/* The directory below the root, for a v1 controller ("cpuset") or "" on v2; a v1 controller on a v2
 * machine means the unified tree. -ENOENT: it is not there. Any thread. */
int cgroup_dir_of(const struct fs_root *root, const char *cgroups_path, const char *controller,
		  char *buf, size_t size);

/*
 * The same, and when nothing is there the directory that the process is in, as /proc tells, unless
 * it is the root or no container's own. pid 0: not known.
 */
int cgroup_find_dir(const struct fs_root *root, const char *cgroups_path, uint32_t pid,
		    const char *controller, char *buf, size_t size);

#endif
