/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's figures of a container from the files of its cgroup, v2 or v1. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/nri-rpd/cache/usage.h"
#include "core/lib/util/fs.h"

#define FIGURES_FILE_MAX 65536u /* bytes of a file; larger files are skipped */

struct figures {
	uint32_t has; /* bit mask of the values that were read: 1 << enum figure */
	uint32_t n_files; /* number of files that were read */
	uint64_t value[N_FIGURES];
};

struct figures_cgroup {
	const char *path; /* path of the cgroup as the runtime reports it */
	uint32_t pid; /* a process of the cgroup; 0: unknown */
};

#define FIGURES_SOURCES 8u

/* Directories of a container's cgroup, and its files that are read repeatedly. All zeros: closed.
 * Negative descriptors: missing or not open. */
struct figures_place {
	bool open, unified;
	bool kernels; /* the tree is a cgroup file system of the kernel */
	bool limited; /* the cgroup has a quota and counts periods */
	/* by source; a directory may occur twice */
	int dirs[FIGURES_SOURCES], files[FIGURES_SOURCES];
};

enum figures_what {
	FIGURES_SLOW = 0x1, /* also figures that change slowly or are expensive */
	FIGURES_KEEP = 0x2, /* leave files open that are read each time */
	/* Waiting times each time, not only with SLOW. */
	FIGURES_CPU_WAIT = 0x4,
	FIGURES_MEMORY_WAIT = 0x8,
	FIGURES_IO_WAIT = 0x10,
};

/* Opens the cgroup. -errno: there is no cgroup, and *ret is closed. */
int figures_place_open(const struct fs_root *root, bool unified, const struct figures_cgroup *of,
		       struct figures_place *ret);
void figures_place_close(struct figures_place *p);
/* Returns true if all possible directories exist. */
bool figures_place_complete(const struct figures_place *p);
unsigned figures_place_files(const struct figures_place *p); /* number of open descriptors */
/* Reads the figures. -ENOENT: no file could be read, for example because the cgroup is gone. The
 * figures of a single file that is missing or malformed are left out. `buf` has FIGURES_FILE_MAX
 * bytes. what: FIGURES_…. */
int figures_read(struct figures_place *p, uint32_t what, char *buf, struct figures *ret);

/* ---- parsers of files' contents, as NUL-terminated text; false: no value found ---- ---- */

/* Parses a text that is one number. */
bool figures_number(const char *text, uint64_t *ret);
/* Parses lines "KEY NUMBER", the first one of each key, n up to 31. Returns the keys found (bit 1
 * << i); ret[i] of other keys is unchanged. */
uint32_t figures_keys(const char *text, const char *const *keys, uint32_t n, uint64_t *ret);
/* Parses total= in the line "some …" of a pressure file. */
bool figures_wait(const char *text, uint64_t *ret);
/* Parses and adds the bytes of all devices: "8:0 rbytes=1 wbytes=2 …" and "8:0 Read 1". */
bool figures_io(const char *text, uint64_t *ret_read, uint64_t *ret_written);
bool figures_io_v1(const char *text, uint64_t *ret_read, uint64_t *ret_written);
