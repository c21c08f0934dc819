/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log of the previous contents of files of the machine that modules have set (util/reclog.h). After
 * a kill, the next process can restore these values instead of taking the module's values for the
 * originals. The log has to survive the process, not the machine: the next boot makes it void. It
 * belongs beside the breadcrumb, on a tmpfs, so that no write waits for a disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/lib/util/err.h"
#include "core/lib/util/reclog.h"

#define FOUND_FILE_MAX ((size_t)64 << 20)
#define FOUND_CGROUPS "/sys/fs/cgroup/"
#define FOUND_RECORDS_MAX 262144u /* largest number of records of files that are not restored yet */

/* Receives one record; value NULL: the file has been restored. */
typedef int (*found_each)(void *arg, const char *path, const char *value);

/*
 * Returns true if the log of former settings accepts this record. The value must be one line. The
 * file must be below /sys/devices/system, /sys/devices/virtual/workqueue or /proc/irq, or a cgroup
 * file that modules set. Values from the log are written back to the machine, so other paths are
 * refused.
 */
bool found_storable(const char *path, const char *value);

/* Parses the records of a log in order. Errors: those of reclog_parse (a record that is not
 * storable is damage too) and those of `each`. */
int found_parse(const void *data, size_t size, const char *origin, found_each each, void *arg,
		struct err *err);

struct found {
	struct reclog log;
	struct reclog_head head;
	char *origin;
};

/* Opens the log and reads what the previous process left. `origin`: boot and root, one line. A log
 * that is damaged or in another format is no error: *why then has the reason, and is empty
 * otherwise. Such a log is unchanged until it is rewritten. Error: -ENOMEM. */
int found_open(const char *path, const char *origin, found_each each, void *arg, struct found **ret,
	       struct err *why);
struct found *found_close(struct found *f); /* returns NULL; the file is unchanged */

/* [any, one at a time] Adds a record, which a commit of the log writes. */
int found_put(struct found *f, const char *path, const char *value);
