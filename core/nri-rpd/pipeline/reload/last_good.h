/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last good configuration: a copy of the files of the last active configuration, in one small
 * file that survives reboots. A start uses the copy if the files cannot be used.
 *
 * The copy is in the state directory of the command line, or in the default one. cache.dir does not
 * apply, because it is known only if the files can be used. A second copy is in the run-time
 * directory while the node is up, since the state directory may be lost under running containers. A
 * start uses the newer copy.
 */
#pragma once

#include "core/lib/conf/conf.h"

#define KEPT_FILE "configuration"
#define KEPT_MAX (2u * CONF_TOTAL_MAX) /* largest file in bytes */

struct kept {
	struct conf_files files;
	uint64_t wall_ns; /* time of activation, by the wall clock */
};

/* Writes a complete copy to out. 0 or -ENOMEM. */
int kept_write(const struct conf_files *files, uint64_t wall_ns, struct buf *out);
/* Reads a copy. -EBADMSG: damaged, or a file of another kind. -E2BIG: more files than a
 * configuration may have. -ENOMEM. */
int kept_parse(const void *data, size_t size, struct kept *ret, struct err *err);
/* Reads the copy in a directory. -ENOENT without a text in err: there is none. Otherwise the errors
 * of kept_parse() and fs_read_own(). */
int kept_read(const char *dir, struct kept *ret, struct err *err);
/* Reads a copy from another file of the directory. Fails as kept_read() does. */
int kept_read_file(const char *dir, const char *file, struct kept *ret, struct err *err);
/* Returns the identity of the files: a hash of names, flags and contents, never 0. */
uint64_t kept_sum(const struct conf_files *files);
