/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was found in files of the machine before anybody set them, in a log (util/reclog.h), so
 * that a process that is killed does not leave its successor with nothing but what it has made of
 * them. It has to survive the process, not the machine, whose next boot makes it void. It belongs
 * where the breadcrumb does, on a tmpfs: nobody waits for a disk then.
 */
#ifndef HOST_FOUND_H
#define HOST_FOUND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/lib/util/err.h"

#define FOUND_FILE_MAX ((size_t)64 << 20)
#define FOUND_RECORDS_MAX 262144u /* that count: of files that are not put back yet */

/* A value of NULL: it has been put back. */
typedef int (*found_each)(void *arg, const char *path, const char *value);

/*
 * Whether it may be in the file: one line for a file below /sys/devices/system or /proc/irq, by its
 * plain path. What is read from the file is written to the machine, so it is no way to anything
 * else.
 */
bool found_storable(const char *path, const char *value);

/* The records of a log's bytes, in order: errors as of reclog_parse (also a record that is not
 * storable is damage), or of `each`. */
int found_parse(const void *data, size_t size, const char *origin, found_each each, void *arg,
		struct err *err);

struct found;

/* Reads what the last process has left. `origin`: boot and root, one line. A log that is damaged or
 * not ours is no error; *why says so then, and is empty otherwise. It stays as it is until it is
 * written anew. -ENOMEM. */
int found_open(const char *path, const char *origin, found_each each, void *arg, struct found **ret,
	       struct err *why);
struct found *found_close(struct found *f); /* returns NULL; the file stays */

/* [any, one at a time] What is put from here to the commit is all there is. An error leaves the log
 * as it was. */
int found_begin_anew(struct found *f);
int found_put(struct found *f, const char *path, const char *value);
/* [any, one at a time] An error leaves the log as it was; -EBADF: it has to be written anew
 * first. */
int found_commit(struct found *f);
/* Whether the file has become so long that it is worth to be written anew. */
bool found_is_long(const struct found *f);

#endif
