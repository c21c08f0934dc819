/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the store:
 *
 *   directory.c  the state directory: modes, the lock, quarantined files
 *   codec.c      records
 *   restore.c    from records to the cache
 *   blobs.c      blobs and notes
 *   store.c      opening, pending changes, and commits
 */
#pragma once

#include "core/nri-rpd/store/store.h"
#include "core/nri-rpd/store/codec.h"
#include "core/lib/util/reclog.h"

/* ---- directory.c ----------------------------------------------------------------------------- */

struct store_dir {
	char *path;
	int fd, lock_fd;
};

#define STORE_FILE "store.log"
#define STORE_FILE_NEW "store.log.new"
#define STORE_FILE_OLD "store.old"
#define STORE_FILE_BAD "store.bad."
#define STORE_FILE_LOCK "lock"
#define STORE_PATH_MAX 4096u

enum store_aside {
	ASIDE_OLD, /* the log was renamed to store.old */
	ASIDE_BAD, /* renamed to store.bad.TIME */
	ASIDE_COPY, /* linked as store.bad.TIME, too */
};

/* ---- store.c --------------------------------------------------------------------------------- */

enum change_what { CHANGE_POD, CHANGE_CTR, CHANGE_GONE };

struct change {
	enum change_what what;
	uint64_t number; /* handle of the object; CHANGE_GONE: its number */
};

struct saved_blob {
	enum record_kind kind; /* RECORD_BLOB, RECORD_NOTE */
	char *name, *version;
	void *data; /* contents of the blob; NULL: to be removed from the log */
	size_t len;
	bool stored;
};

struct store {
	struct store_dir dir;
	struct reclog_head head;
	struct reclog log;
	struct cache *cache;
	char *boot_id;
	void *found; /* log of a previous run, not restored yet */
	size_t found_size;
	bool abandoned; /* the store is in a child or read-only: nothing is written */
	bool lost_track; /* a change could not be recorded */
	struct change *changes; /* changes since the last commit */
	uint32_t n_changes, cap_changes;
	uint32_t n_new; /* changes of pods and containers that the log lacks */
	struct ctr **moved; /* containers of the running commit of which only the sets changed */
	uint32_t n_moved, cap_moved;
	struct saved_blob *kept;
	uint32_t n_kept;
	struct store_stats stats;
};

/* ---- blobs.c --------------------------------------------------------------------------------- */

/* Stores a blob or note in memory, with a copy of the data. */
int store_keep(struct store *s, enum record_kind kind, const char *name, const char *version,
	       const void *data, size_t len);
/* Returns true if a blob or note waits for a commit. */
bool store_kept_pending(const struct store *s);
/* Marks all blobs and notes as written, after a commit. */
void store_kept_settled(struct store *s);
void store_kept_free(struct store *s);
