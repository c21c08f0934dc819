/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel counts of a container, from the files of its cgroup, v2 or v1. Any thread. */
#ifndef METRICS_FIGURES_H
#define METRICS_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/nri-rpd/cache/usage.h"
#include "core/lib/util/fs.h"

#define FIGURES_FILE_MAX 65536u /* bytes of a file; a larger one is left out */

struct figures {
	uint32_t has; /* bit 1 << enum figure */
	uint32_t n_files; /* that were read */
	uint64_t value[N_FIGURES];
};

/* Is the cgroup tree v2? */
bool figures_unified(const struct fs_root *root);

struct figures_cgroup {
	const char *path; /* as the runtime tells it */
	uint32_t pid; /* 0: not known */
};

#define FIGURES_SOURCES 8u

/* Directories of a container's cgroup, and files of it that are read again and again. All zeros:
 * closed. -1 and below: not there, not open. */
struct figures_place {
	bool open, unified;
	bool kernels; /* a cgroup file system */
	bool limited; /* it counts periods of a quota */
	int dirs[FIGURES_SOURCES], files[FIGURES_SOURCES]; /* by file; the same directory twice */
};

enum figures_what {
	FIGURES_SLOW = 0x1, /* that which changes slowly or costs much, too */
	FIGURES_KEEP = 0x2, /* leave files open that are read each time */
	/* how long it had to wait, and not only with SLOW */
	FIGURES_CPU_WAIT = 0x4,
	FIGURES_MEMORY_WAIT = 0x8,
	FIGURES_IO_WAIT = 0x10,
};

/* -errno: there is no cgroup. Closed then. */
int figures_place_open(const struct fs_root *root, bool unified, const struct figures_cgroup *of,
		       struct figures_place *ret);
void figures_place_close(struct figures_place *p);
/* Is there each directory that there can be? */
bool figures_place_complete(const struct figures_place *p);
unsigned figures_place_files(const struct figures_place *p); /* descriptors that it has open */
/* -ENOENT: not one file could be read, as when the cgroup is gone; a file that is not there or
 * makes no sense only leaves its figures out. `buf` has FIGURES_FILE_MAX bytes. what: FIGURES_…. */
int figures_read(struct figures_place *p, uint32_t what, char *buf, struct figures *ret);

/* ---- contents of files, as NUL-terminated text; false: it does not say ---- */

/* A number that is all of it. */
bool figures_number(const char *text, uint64_t *ret);
/* Lines "KEY NUMBER", the first one of each key, n up to 31. Returns which were found (bit 1 << i);
 * ret[i] of others is left alone. */
uint32_t figures_keys(const char *text, const char *const *keys, uint32_t n, uint64_t *ret);
/* total= of the line "some …" of a pressure file. */
bool figures_wait(const char *text, uint64_t *ret);
/* Bytes of all devices together: "8:0 rbytes=1 wbytes=2 …" and "8:0 Read 1". */
bool figures_io(const char *text, uint64_t *ret_read, uint64_t *ret_written);
bool figures_io_v1(const char *text, uint64_t *ret_read, uint64_t *ret_written);

#endif
