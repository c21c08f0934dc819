/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was found in files of the machine before anybody set them, in a file of its own, so that a process that is killed does not leave its
 * successor with nothing but what it has made of them.
 *
 * The file is a row of records that only grows, and is written anew when it has become long. It is never synced: it has to survive the
 * process, not the machine, whose next boot makes it void. It belongs where the breadcrumb does, on a tmpfs: nobody waits for a disk then.
 */
#ifndef HOST_FOUND_H
#define HOST_FOUND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/util/buf.h"
#include "core/util/err.h"

#define FOUND_FILE_MAX ((size_t)64 << 20)
#define FOUND_RECORDS_MAX 262144u /* that count: of files that are not put back yet */

/* A value of NULL: it has been put back. */
typedef int (*found_each)(void *arg, const char *path, const char *value);

/*
 * Whether it may be in the file: one line for a file below /sys/devices/system or /proc/irq, by its plain path. What is read from the
 * file is written to the machine, so it is no way to anything else.
 */
bool found_storable(const char *path, const char *value);

/* Records for found_replace. 0, -ENOMEM. */
int found_add(struct buf *records, const char *path, const char *value);

/*
 * The records of a file's bytes, in order, as far as they are sound. 0; -EBADMSG: not to the end; -ESTALE, without any: of another boot or
 * root; or what `each` has returned.
 */
int found_decode(const void *data, size_t size, const char *origin, found_each each, void *arg);

struct found;

/* Reads what the last process has left. `origin`: boot and root, one line. A file that is unsound or not ours is no error; *why says
 * so then, and is empty otherwise. The file itself stays as it is until found_replace. */
int found_open(const char *path, const char *origin, found_each each, void *arg, struct found **ret,
	       struct err *why);
struct found *found_close(struct found *f); /* returns NULL; the file stays */

/* [any, one at a time] The file is these records and nothing else. An error leaves it as it was, or it is so but nothing can be added. */
int found_replace(struct found *f, const struct buf *records);
/* [any, one at a time] One more. An error leaves the file as it was; -EBADF: nothing can be added until found_replace has succeeded. */
int found_append(struct found *f, const char *path, const char *value);
/* It has become so long that it is worth to be written anew. */
bool found_is_long(const struct found *f);

#endif
