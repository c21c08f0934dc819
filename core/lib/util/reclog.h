/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log of records, for what has to survive the death of the process at any instruction, but not
 * that of the machine: each commit is one write(2) to the end of the file, and nothing is ever
 * synced. What outlives a boot belongs in a file of fs_replace.
 *
 *   file     magic, then batches; the first one holds the head and nothing else
 *   batch    struct of three numbers (size of the records, their CRC-32C, CRC-32C of these two and
 *            of the place in the file), records
 *   record   its length in four bytes, its bytes
 *   head     format in four bytes, then kind, origin and version, each with a NUL behind it
 *
 * Numbers are the machine's: a log does not outlive its boot. A batch counts whole or not at all.
 * One that is not finished at the end of the file is what was being written when the process died,
 * which nobody was told of; it is left out without a word. Anything else that is not right is
 * damage: what is before it counts, and nothing behind it, because that may rest upon what was
 * lost.
 *
 * The log that an earlier process has left is only read. The first thing to be written is a new
 * one, which takes the place of the old one, by rename, when it is complete; the same is done again
 * when the log has grown long.
 */
#ifndef UTIL_RECLOG_H
#define UTIL_RECLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

#define RECLOG_RECORD_MAX (16u << 20)
#define RECLOG_ORIGIN_MAX 8192u

/* What a log is of. The text is borrowed; without line breaks. */
struct reclog_head {
	const char *kind; /* one word: what the records are */
	uint32_t format; /* of the records, from 1; a reader takes its own and earlier ones */
	const char *origin; /* what the records mean nothing without: the boot, the root folder */
	const char *version; /* of the program that writes; for messages */
};

/* ---- reading --------------------------------------------------------------------------------- */

/* An error ends the reading and is returned. The record lies within the bytes that are read. */
typedef int (*reclog_each)(void *arg, const void *record, size_t len);

/*
 * Hands out the records of a log in the order in which they were written. 0: all that was
 * committed; -EBADMSG: damaged, and these are the records before that; without any: -ENOMSG: it is
 * no log of this kind; -EPROTO: of a later format; -ESTALE: of another origin. err has a sentence
 * for each of them, without the name of the file.
 */
int reclog_parse(const void *data, size_t size, const struct reclog_head *head, reclog_each each,
		 void *arg, struct err *err);

/* ---- writing --------------------------------------------------------------------------------- */

struct reclog {
	char *path;
	const struct reclog_head *head;
	size_t size_max;
	int fd; /* of the log that is there; -1: none that could be added to */
	size_t size; /* of it */
	size_t new_size; /* that it had when it was new */
	int next_fd; /* of the one that is to take its place; -1: none is being written */
	size_t next_size;
	struct buf batch; /* what was put since the last commit */
};

/* Nothing is opened. `head` has to stay. */
int reclog_init(struct reclog *l, const char *path, const struct reclog_head *head,
		size_t size_max);
void reclog_fini(struct reclog *l);

/* Whether there is a log that can be added to: one that this process wrote. */
static inline bool reclog_is_open(const struct reclog *l)
{
	return l->fd >= 0;
}

/* Worth to be written anew: it has twice the size that it had then, and is not small either. */
bool reclog_is_long(const struct reclog *l);

/*
 * What is put from here to the next commit is all there is: with that commit it takes the place of
 * the log. Until then, and if that fails, the log stays as it is. What is put may be much: it goes
 * to the new file in pieces.
 */
int reclog_begin_anew(struct reclog *l, struct err *err);
/* 0, -ENOMEM, -E2BIG; an error stays until the commit, which returns it. */
int reclog_put(struct reclog *l, const void *record, size_t len);
/*
 * All that was put since the last commit is there when the process dies, or nothing of it: an error
 * leaves the log as it was. -EFBIG: it would be longer than size_max; -EBADF: there is none to add
 * to. Nothing was put, and nothing begun anew: nothing is done.
 */
int reclog_commit(struct reclog *l, struct err *err);
/* Forgets what was put, and the new log that was begun. */
void reclog_drop(struct reclog *l);
/* The next commit has to be of a new log. */
void reclog_close(struct reclog *l);

#endif
