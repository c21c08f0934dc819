/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log of records for data that has to survive the death of the process at any instruction, but
 * not that of the machine. Each commit is one write(2) to the end of the file, without syncing.
 * Data that outlives a boot belongs in a file of fs_replace.
 *
 *   file     magic, then batches; the first one holds the head and nothing else
 *   batch    struct of three numbers (size of the records, their CRC-32C, CRC-32C of these two and
 *            of the place in the file), records
 *   record   its length in four bytes, its bytes
 *   head     format in four bytes, then kind, origin and version, each with a NUL behind it
 *
 * Numbers have the machine's byte order, because a log does not outlive its boot. A batch is valid
 * as a whole or not at all. An incomplete batch at the end of the file was being written when the
 * process died; its commit never returned, so it is skipped silently. Any other error is damage:
 * records before it are valid, records behind it are not used, because they may depend on lost
 * ones.
 *
 * The log of an earlier process is only read. The first commit creates a new log, which replaces
 * the old one by rename when it is complete. The log is rewritten in the same way when it has grown
 * long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

#define RECLOG_RECORD_MAX (16u << 20)
#define RECLOG_ORIGIN_MAX 8192u

/* Identity of a log. Texts are borrowed and have no line breaks. */
struct reclog_head {
	const char *kind; /* content of the records, one word */
	/* format of the records, from 1; a reader accepts its own and earlier ones */
	uint32_t format;
	/* context outside of which the records are void: the boot, the root folder */
	const char *origin;
	const char *version; /* version of the program that writes; for messages */
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Receives a record, which is within the bytes being read. An error ends the reading and is
 * returned. */
typedef int (*reclog_each)(void *arg, const void *record, size_t len);

/*
 * Passes the records of a log to `each` in the order in which they were written. 0: all committed
 * records; -EBADMSG: damaged, after the records before the damage. Without any record: -ENOMSG: no
 * log of this kind; -EPROTO: of a later format; -ESTALE: of another origin. err has a sentence for
 * each of them, without the name of the file.
 */
int reclog_parse(const void *data, size_t size, const struct reclog_head *head, reclog_each each,
		 void *arg, struct err *err);

/* ---- writing --------------------------------------------------------------------------------- */

struct reclog {
	char *path;
	const struct reclog_head *head;
	size_t size_max;
	int fd; /* descriptor of the present log; -1: no log that can be extended */
	size_t size; /* size of the present log */
	size_t new_size; /* size of the present log directly after its last rewrite */
	int next_fd; /* descriptor of the log that will replace it; -1: none */
	size_t next_size;
	struct buf batch; /* records that were added since the last commit */
};

/* Initializes the structure without opening a file. `head` is borrowed. */
int reclog_init(struct reclog *l, const char *path, const struct reclog_head *head,
		size_t size_max);
void reclog_fini(struct reclog *l);

/* Returns true if there is a log that can be extended: one that this process has written. */
static inline bool reclog_is_open(const struct reclog *l)
{
	return l->fd >= 0;
}

/* Returns true if the log should be rewritten: it is twice as large as after the last rewrite, and
 * not small. */
bool reclog_is_long(const struct reclog *l);

/*
 * Begins to rewrite the log: the records added from here to the next commit replace its contents
 * with that commit. Until then, and if that fails, the log is unchanged. There may be many records,
 * which are written to the new file in pieces.
 */
int reclog_begin_anew(struct reclog *l, struct err *err);
/* Adds a record. Returns 0, -ENOMEM or -E2BIG; the commit returns such an error again. */
int reclog_put(struct reclog *l, const void *record, size_t len);
/*
 * Commits the records put since the last commit: all of them survive the process, or none. An error
 * leaves the log unchanged. -EFBIG: the log would be longer than size_max; -EBADF: no log to
 * extend. Without records and without a rewrite it has no effect.
 */
int reclog_commit(struct reclog *l, struct err *err);
/* Discards the records added since the last commit, and a rewrite that has begun. */
void reclog_drop(struct reclog *l);
/* Closes the log: the next commit has to be a rewrite. */
void reclog_close(struct reclog *l);
