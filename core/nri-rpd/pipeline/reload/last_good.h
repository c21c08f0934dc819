/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last configuration in force, byte by byte with the names of its files, in a small file that
 * outlives reboots: a start uses it when the files themselves cannot be used. It lies in the
 * directory that the command line names for the state, or in the default one, and not where
 * cache.dir says: that is known only when the files can be used. A second one lies in the run-time
 * directory, for as long as the node is up: the state directory may be lost under running
 * containers. A start takes the later one.
 */
#ifndef PIPELINE_KEPT_H
#define PIPELINE_KEPT_H

#include "core/lib/conf/conf.h"

#define KEPT_FILE "configuration"
#define KEPT_MAX (2u * CONF_TOTAL_MAX) /* bytes of the file */

struct kept {
	struct conf_files files;
	uint64_t wall_ns; /* when it came into force */
};

/* The whole file, into out. 0 or -ENOMEM. */
int kept_write(const struct conf_files *files, uint64_t wall_ns, struct buf *out);
/* -EBADMSG: damaged, or no such file at all; -E2BIG: more files than a configuration may have;
 * -ENOMEM. */
int kept_parse(const void *data, size_t size, struct kept *ret, struct err *err);
/* Reads what a directory keeps. -ENOENT without err: nothing is kept there; else what kept_parse or
 * fs_read_own say. */
int kept_read(const char *dir, struct kept *ret, struct err *err);
/* The same of another file than KEPT_FILE. */
int kept_read_file(const char *dir, const char *file, struct kept *ret, struct err *err);
/* Equal for the same files with the same content. */
uint32_t kept_sum(const struct conf_files *files);
void kept_fini(struct kept *k);

#endif
