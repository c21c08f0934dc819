/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files under a root: "/" on a node, a recorded or artificial tree in tests and simulations. Paths
 * are relative to the root ("sys/devices/system/cpu/online"); a leading slash is dropped. Symbolic
 * links are resolved within the root.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <nri-rp/set.h>

#include "core/lib/util/err.h"

struct fs_root {
	int fd;
	bool real; /* the root is "/" */
	bool walk; /* the kernel has no openat2: links are resolved step by step */
	char *path;
};

int fs_root_open(struct fs_root *root, const char *path, struct err *err);
void fs_root_close(struct fs_root *root);

/* Opens a directory below the root for several look-ups with fs_read_at. Returns the descriptor or
 * -errno. */
int fs_open_dir(const struct fs_root *root, const char *path);
/* Opens a file below the root for operations other than reading and writing (ioctl); flags as of
 * open(2). Returns the descriptor or -errno. */
int fs_open(const struct fs_root *root, const char *path, int flags);
/* Reads at most size-1 bytes as NUL-terminated text and remove one trailing newline. Returns the
 * length, or -errno; -EFBIG: the file is longer. Made for sysfs, where one read returns all. procfs
 * files of many records (mounts, cpuinfo) need fs_read_all. */
ssize_t fs_read_from(int fd, char *buf, size_t size); /* an open file, from its beginning */
ssize_t fs_read_at(int dirfd, const char *path, char *buf, size_t size);
ssize_t fs_read(const struct fs_root *root, const char *path, char *buf, size_t size);
/* Reads the whole file up to limit, malloc'd and NUL-terminated. */
int fs_read_all(const struct fs_root *root, const char *path, size_t limit, char **ret,
		size_t *ret_len);
int fs_read_i64(const struct fs_root *root, const char *path, int64_t *ret);
int fs_read_i64_at(int dirfd, const char *path, int64_t *ret);
/* Reads a file with a list of ids ("0-3,8"). */
int fs_read_ids(const struct fs_root *root, const char *path, uint32_t max, struct rp_idset *ret);
int fs_read_ids_at(int dirfd, const char *path, uint32_t max, struct rp_idset *ret);
/* Returns true if /sys of this root is the kernel's, at "/" or below "/host" in a container, and
 * not a tree of files. */
bool fs_has_sysfs(const struct fs_root *root);
bool fs_exists(const struct fs_root *root, const char *path);
/* Writes an existing file with one write. */
int fs_write(const struct fs_root *root, const char *path, const char *text);
/* Creates one directory in an existing one. */
int fs_mkdir(const struct fs_root *root, const char *path, mode_t mode);
int fs_rmdir(const struct fs_root *root, const char *path);
/* Reads the target of a link unresolved; -ENAMETOOLONG: buf is too small. */
ssize_t fs_readlink(const struct fs_root *root, const char *path, char *buf, size_t size);
/* Resolves the canonical path below the root, with links resolved within it. */
int fs_realpath(const struct fs_root *root, const char *path, char *buf, size_t size);

/* Calls fn for the entries of a directory except "." and "..", in natural order. A non-zero result
 * of fn ends the iteration and is returned. */
int fs_list(const struct fs_root *root, const char *path, int (*fn)(const char *name, void *arg),
	    void *arg);

/*
 * Replaces a file of the real system as a whole: temporary file, optional fsync, rename. With
 * `sync` the contents are on the disk when the function returns, and a power failure leaves the
 * previous file or this one. Small files that outlive a boot are written so: the last good
 * configuration and pushed ones. This waits for the disk, so it is only for the worker's thread, or
 * before and after the loop runs.
 */
int fs_replace(const char *path, const void *data, size_t len, mode_t mode, bool sync,
	       struct err *err);
/* Writes all bytes, in several parts if needed. */
int fs_write_all(int fd, const void *bytes, size_t len);
/* Removes the temporary files of fs_replace() for `path` that a killed process has left. No other
 * process may be writing the file. Returns their number. */
unsigned fs_remove_leftovers(const char *path);
/*
 * Reads a file that fs_replace has written, up to limit, malloc'd and NUL-terminated. -ENOENT
 * without a text in err: there is no file. -EPERM: no regular file (a link, a device), another
 * owner, or writable by others; -EFBIG: longer than limit. The contents are not checked: another
 * version may have written them.
 */
int fs_read_own(const char *path, size_t limit, char **ret, size_t *ret_len, struct err *err);
/* Writes the directory of a path: "." for a mere name, "/" for an entry of the root. Cut if it does
 * not fit. */
void fs_parent(const char *path, char *ret, size_t size);
/* Creates a directory and its parents, like mkdir -p. */
int fs_mkdirs(const char *path, mode_t mode, struct err *err);
