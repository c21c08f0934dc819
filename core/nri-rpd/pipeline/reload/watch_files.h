/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reloads when the configuration's files change: with watchFiles, and without that key in a pod of
 * a cluster, where the files are those of a ConfigMap and no one can send a signal. The kubelet
 * replaces such files by renaming a link in their directory, so the directories are watched.
 */
#pragma once

#include <stdint.h>

#include "core/lib/util/loop.h"

struct pipeline;

struct watch_files {
	int fd; /* inotify; -1: the files are not watched */
	struct loop_io *io;
	struct loop_timer *settle; /* delay of the reload, so that several writes cause one */
	uint64_t sum; /* checksum of the files at the last check */
};

int watch_files_init(struct pipeline *p);
void watch_files_fini(struct pipeline *p);
/* Begins or ends watching, as the active configuration requires. */
void watch_files_configured(struct pipeline *p);
