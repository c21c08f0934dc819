/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that controllers read and write on a node: counters below /proc, a disk, resctrl, and the
 * cgroup v2 of a container with all cgroups above it. A controller's jobs work on them as on a real
 * node; the kernel's reactions to a write are not imitated.
 */
#pragma once

#include "core/nri-rp-modcheck/check.h"

/* Writes the files of the node, which exist until the machine is removed. */
int fixture_node(const struct check_machine *m, struct err *err);
/* Writes the cgroup at `path`, below the cgroup mount, and its parents. */
int fixture_cgroup(const struct check_machine *m, const char *path, struct err *err);
/* Removes the files of the node and all cgroups. */
void fixture_remove(const struct check_machine *m);
