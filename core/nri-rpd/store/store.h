/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: saves the cache over restarts of the daemon, in one log (core/lib/util/reclog.h) in
 * the state directory.
 *
 *   lock               locked with flock() while the daemon lives; holds its pid
 *   store.log          the records (proto/store.proto)
 *   store.log.new      next log while it is written; ignored after a crash
 *   store.old          log that the latest reset or reboot made useless
 *   store.bad.TIME     unusable or partly unusable logs; the latest STORE_BAD_KEEP are kept
 *
 * The log of a previous run is only read. The first commit writes a new log and renames it into
 * place, so that a crash in between leaves the old one. A commit is one write(2) of the changes.
 * Committed data survives the death of the process at any instruction, because the page cache has
 * it. After a reboot the data is useless, which the boot id tells. A full disk is an error of
 * store_commit().
 *
 * Loop thread only. Without a store (NULL, as in a child that has released it) all functions but
 * store_open() and store_restore() do nothing and report no error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/util/err.h"

#define STORE_FORMAT 3u
#define STORE_BAD_KEEP 3u
#define STORE_SIZE_MAX ((size_t)1 << 30) /* largest file in bytes */
#define STORE_NAME_MAX 128u /* longest name of a module or note, or version, in bytes */
#define STORE_BLOB_MAX (4u << 20) /* largest blob or note in bytes */
#define STORE_BLOBS_MAX 256u
#define STORE_ERROR_MAX 256u /* longest saved error in bytes */

struct store;

struct store_params {
	const char *dir; /* created if missing, with mode 0710 */
	const char *boot_id; /* boot id of the running system */
	bool reset; /* ignore an existing log */
	bool read_only; /* take no lock, and create, rename or write no file */
	bool at_once; /* do not wait for the lock; a predecessor's child may hold it for a while */
	size_t size_max; /* largest file in bytes; 0: STORE_SIZE_MAX */
};

enum store_outcome {
	STORE_FRESH, /* no log exists */
	STORE_FOUND, /* a log can be restored */
	/* a damaged log can be restored up to the damage; a copy is quarantined */
	STORE_PART,
	STORE_RESET, /* moved to store.old, as requested */
	STORE_OTHER_BOOT, /* the log is of another boot and was moved to store.old */
	STORE_NEWER, /* quarantined: written by a later version */
	STORE_DAMAGED, /* quarantined: damaged, or not a store */
	STORE_UNSAFE, /* quarantined: a link, another user's file, or writable by others */
};

struct store_opening {
	enum store_outcome outcome;
	/* why the log is not restored, for a log message; "" with STORE_FRESH */
	char why[ERR_TEXT_MAX];
};

/*
 * Locks the directory and reads an existing log. Fails if another instance holds the lock (-EBUSY,
 * its pid in err) or the directory is unusable; everything else is an outcome. In a read-only
 * directory the log is read, and commits fail. With read_only, -ENOENT without a text in err: there
 * is no directory.
 */
int store_open(const struct store_params *params, struct store **ret,
	       struct store_opening *ret_opening, struct err *err);
struct store *store_close(struct store *s); /* returns NULL; accepts NULL; commits nothing */
/* Closes file and lock, in a child after fork() or after a read-only use. Blobs and notes remain
 * readable from the returned store, and nothing more is written. Accepts NULL. */
struct store *store_abandon(struct store *s);

struct store_counts {
	uint32_t pods, ctrs, decisions, blobs;
	uint32_t bad; /* skipped records, each with a warning in the log */
};

/*
 * Records changes for the next commit, which writes the object's state at that time: of a container
 * the parts that are not stored (ctr->store.facts, ctr->store.missing). Objects that are gone by
 * then are skipped. store_del_pod() includes the pod's containers and has to be called while they
 * exist. The functions do not fail: without memory for a change, the next commit writes everything.
 */
void store_put_pod(struct store *s, struct pod *pod);
void store_put_ctr(struct store *s, struct ctr *ctr);
void store_del_pod(struct store *s, const struct pod *pod);
void store_del_ctr(struct store *s, const struct ctr *ctr);

/* Name of the note with the active policy. Functions for blobs and notes are in blobs.h. */
#define STORE_NOTE_POLICY "policy"

/*
 * Writes all recorded changes, completely or not at all, so that they survive the death of the
 * process. After an error (-ENOSPC, -EIO, -ENOMEM …) the next commit writes them. Without changes
 * it does nothing.
 */
int store_commit(struct store *s, struct err *err);
/* Returns true if changes are recorded or an earlier commit has failed. */
bool store_pending(const struct store *s);
/* Rewrites the log if most of it is outdated. Call it when no request waits, because it writes all
 * records. */
int store_tidy(struct store *s, struct err *err);

struct store_stats {
	uint64_t commits, failures; /* numbers since store_open */
	uint64_t records; /* number of written or removed records */
	uint64_t file_bytes; /* size of the file */
	/* time of the last commit by the wall clock, for display; 0: none */
	uint64_t last_commit_ns;
	uint64_t last_commit_ms; /* time of the last commit, by clock_ms() */
	uint64_t last_duration_ns; /* duration of the last commit */
	char last_error[STORE_ERROR_MAX]; /* error of the last failed commit */
};
void store_stats(const struct store *s, struct store_stats *ret);
