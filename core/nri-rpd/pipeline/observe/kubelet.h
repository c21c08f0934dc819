/* SPDX-License-Identifier: Apache-2.0 */
/* What the kubelet's managers leave on disk. */
#ifndef HOST_KUBELET_H
#define HOST_KUBELET_H

#include <stdbool.h>
#include <stddef.h>

#include "core/lib/util/fs.h"

#define KUBELET_STATE_MAX (4u << 20) /* bytes of a state file */
#define KUBELET_CPU_STATE "var/lib/kubelet/cpu_manager_state"
#define KUBELET_MEMORY_STATE "var/lib/kubelet/memory_manager_state"

/* The policyName in a state file; false when there is no such file or it does not say. */
bool kubelet_policy(const struct fs_root *root, const char *path, char *ret, size_t size);

#endif
