/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files under a root: "/" on a node, a recorded or made-up tree in tests and simulations. Paths are
 * relative to the root ("sys/devices/system/cpu/online"); a leading slash is dropped. Symbolic
 * links are resolved within the root.
 */
#ifndef UTIL_FS_H
#define UTIL_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <nri-rp/set.h>

#include "core/lib/util/err.h"

struct fs_root {
	int fd;
	bool real; /* it is "/" */
	bool walk; /* the kernel has no openat2: links are resolved step by step */
	char *path;
};

int fs_root_open(struct fs_root *root, const char *path, struct err *err);
void fs_root_close(struct fs_root *root);

/* Opens a directory below the root for a run of look-ups; use its fd with fs_read_at. -errno or the
 * fd. */
int fs_open_dir(const struct fs_root *root, const char *path);
/* Any file below the root, for what is neither reading nor writing it (ioctl): flags as open(2) has
 * them. -errno or the fd. */
int fs_open(const struct fs_root *root, const char *path, int flags);
/* At most size-1 bytes, NUL-terminated, one trailing newline removed. Length, or -errno; -EFBIG
 * when there is more. Made for sysfs, where one read gives all: procfs files of many records
 * (mounts, cpuinfo) want fs_read_all. */
ssize_t fs_read_from(int fd, char *buf, size_t size); /* an open one, from its beginning */
ssize_t fs_read_at(int dirfd, const char *path, char *buf, size_t size);
ssize_t fs_read(const struct fs_root *root, const char *path, char *buf, size_t size);
/* The whole file up to limit, malloc'd and NUL-terminated. */
int fs_read_all(const struct fs_root *root, const char *path, size_t limit, char **ret,
		size_t *ret_len);
int fs_read_i64(const struct fs_root *root, const char *path, int64_t *ret);
int fs_read_i64_at(int dirfd, const char *path, int64_t *ret);
/* A list file ("0-3,8"). */
int fs_read_ids(const struct fs_root *root, const char *path, uint32_t max, struct rp_idset *ret);
int fs_read_ids_at(int dirfd, const char *path, uint32_t max, struct rp_idset *ret);
/* Whether /sys of this root is the kernel's, at "/" or below "/host" in a container, and no tree of
 * files. */
bool fs_has_sysfs(const struct fs_root *root);
bool fs_exists(const struct fs_root *root, const char *path);
/* To a file that is there, in one write. */
int fs_write(const struct fs_root *root, const char *path, const char *text);
/* One directory, whose parent is there. */
int fs_mkdir(const struct fs_root *root, const char *path, mode_t mode);
int fs_rmdir(const struct fs_root *root, const char *path);
/* Where a link points to, as it is written there; -ENAMETOOLONG when buf is too small. */
ssize_t fs_readlink(const struct fs_root *root, const char *path, char *buf, size_t size);
/* The canonical path below the root, links resolved within it. */
int fs_realpath(const struct fs_root *root, const char *path, char *buf, size_t size);

/* Entries of a directory but "." and "..", in natural order. A non-zero result of fn ends the walk
 * and is returned. */
int fs_list(const struct fs_root *root, const char *path, int (*fn)(const char *name, void *arg),
	    void *arg);

/*
 * Whole-file replacement on the real system: temporary file, optional fsync, rename. With `sync` it
 * has reached the disk when this returns, and a power cut leaves the former file or this one: so
 * are small files written that outlive a boot (the configuration that was in force, one that was
 * pushed). It waits for the disk then: only on the worker's thread, or before and after the loop
 * runs.
 */
int fs_replace(const char *path, const void *data, size_t len, mode_t mode, bool sync,
	       struct err *err);
/* Removes the temporary files of fs_replace() for `path` that a process left which was killed
 * meanwhile. No other process may be writing it. Returns their number. */
unsigned fs_remove_leftovers(const char *path);
/*
 * A file of our own that fs_replace has written, up to limit, malloc'd and NUL-terminated. -ENOENT
 * without a word in err: there is none. -EPERM: it is no regular file (a link, a device), is not
 * ours, or others may write to it; -EFBIG: it is longer. Nothing else is known of its bytes: who
 * has written it may have been another version.
 */
int fs_read_own(const char *path, size_t limit, char **ret, size_t *ret_len, struct err *err);
/* The directory that a path is in: "." for a mere name, "/" for what is in that. Cut when it does
 * not fit. */
void fs_parent(const char *path, char *ret, size_t size);
/* mkdir -p. */
int fs_mkdirs(const char *path, mode_t mode, struct err *err);

#endif
