/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel counts of a container, from the files of its cgroup, v2 or v1. Any thread. */
#ifndef METRICS_FIGURES_H
#define METRICS_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/cache/usage.h"
#include "core/util/fs.h"

#define FIGURES_FILE_MAX 65536u /* bytes of a file; a larger one is left out */

struct figures {
	uint32_t has; /* bit 1 << enum figure */
	uint32_t n_files; /* that were read */
	uint64_t value[N_FIGURES];
};

/* Is the cgroup tree v2? */
bool figures_unified(const struct fs_root *root);
/* -errno when there is no cgroup; a file that is not there or makes no sense only leaves its
 * figures out. `buf` has FIGURES_FILE_MAX bytes. pid: of the container, 0: not known. */
int figures_read(const struct fs_root *root, bool unified, const char *cgroups_path, uint32_t pid,
		 char *buf, struct figures *ret);

/* ---- contents of files, as NUL-terminated text; false: it does not say ---- */

/* A number that is all of it. */
bool figures_number(const char *text, uint64_t *ret);
/* The line "KEY NUMBER". */
bool figures_key(const char *text, const char *key, uint64_t *ret);
/* total= of the line "some …" of a pressure file. */
bool figures_wait(const char *text, uint64_t *ret);
/* Bytes of all devices together: "8:0 rbytes=1 wbytes=2 …" and "8:0 Read 1". */
bool figures_io(const char *text, uint64_t *ret_read, uint64_t *ret_written);
bool figures_io_v1(const char *text, uint64_t *ret_read, uint64_t *ret_written);

#endif
