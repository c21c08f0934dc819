/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State files of the kubelet's CPU and memory managers. They are in the kubelet's root directory:
 * that of the option --root-dir of a running kubelet, else one of the directories that
 * distributions use.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/lib/util/fs.h"

#define KUBELET_STATE_MAX (4u << 20) /* largest state file in bytes */
#define KUBELET_PATH_MAX 512u

enum kubelet_manager { KUBELET_CPU, KUBELET_MEMORY };

struct kubelet_state {
	char path[KUBELET_PATH_MAX]; /* path of the file, from "/" */
	char policy[64];
};

/* Reads the state of a manager. Returns false if there is no such file or it names no policy. */
bool kubelet_read_state(const struct fs_root *root, enum kubelet_manager manager,
			struct kubelet_state *ret);
