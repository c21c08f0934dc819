/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: what of the cache outlives the daemon, in one log (util/reclog.h) below the state
 * directory.
 *
 *   lock               flock'ed while the daemon lives; holds its pid
 *   store.log          the records (proto/store.proto)
 *   store.log.new      its successor while that is being written; without meaning after a crash
 *   store.old          the last one that a reset or a reboot made useless
 *   store.bad.TIME     what could not be used, or not to its end; the STORE_BAD_KEEP youngest are
 *                      kept
 *
 * The log of an earlier run is only ever read. The first commit writes a new one and renames it
 * into place, so a crash in between leaves the old one as it was. A commit is one write(2) of what
 * has changed; what was committed survives the death of the process at any instruction (the page
 * cache has it), and nothing here is of use after the death of the machine (the boot id tells). A
 * full disk is an error of store_commit.
 *
 * Loop thread only. Where there is no store (NULL, as in a child that let go of it) nothing is
 * kept, nothing is there, and that is no error; this holds for all but store_open and
 * store_restore.
 */
#ifndef CACHE_STORE_H
#define CACHE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/util/err.h"

#define STORE_FORMAT 3u
#define STORE_BAD_KEEP 3u
#define STORE_SIZE_MAX ((size_t)1 << 30) /* bytes of the file */
#define STORE_NAME_MAX 128u /* bytes of a module's or a note's name, or a version */
#define STORE_BLOB_MAX (4u << 20) /* bytes of a blob or a note */
#define STORE_BLOBS_MAX 256u
#define STORE_ERROR_MAX 256u /* bytes of an error that is remembered */

struct store;

struct store_params {
	const char *dir; /* made when missing, mode 0710 */
	const char *boot_id; /* of the running system */
	bool reset; /* what is there is of no interest */
	bool read_only; /* to look only: no lock, nothing is made, renamed or written */
	bool at_once; /* who has the lock is not waited for, as a predecessor's child is */
	size_t size_max; /* of the file; 0: STORE_SIZE_MAX */
};

enum store_outcome {
	STORE_FRESH, /* there was nothing */
	STORE_FOUND, /* there is something to restore */
	/* there is, but it is damaged: what is before the damage; a copy is set aside */
	STORE_PART,
	STORE_RESET, /* moved to store.old, as asked for */
	STORE_OTHER_BOOT, /* moved to store.old */
	STORE_NEWER, /* set aside: of a format that a later version writes */
	STORE_DAMAGED, /* set aside: damaged, or not a store */
	STORE_UNSAFE, /* set aside: a link, somebody else's, or writable by others */
};

struct store_opening {
	enum store_outcome outcome;
	char why[ERR_TEXT_MAX]; /* for the log; "" for STORE_FRESH */
};

/*
 * Locks the directory and looks at what is there. Fails when another instance has the lock (-EBUSY,
 * its pid in err) or the directory cannot be used; everything else is an outcome. Of a directory
 * that cannot be written what is there is found, and commits fail. Read only, -ENOENT without a
 * word in err: there is no directory.
 */
int store_open(const struct store_params *params, struct store **ret,
	       struct store_opening *ret_opening, struct err *err);
struct store *store_close(struct store *s); /* returns NULL; NULL is fine; commits nothing */
/* In a child after fork(), or after a look: lets go of file and lock. What was kept (store_blob,
 * store_note) can be read from what it returns, and nothing is ever written. NULL is fine. */
struct store *store_abandon(struct store *s);

struct store_counts {
	uint32_t pods, ctrs, decisions, blobs;
	uint32_t bad; /* records left out, each with a warning in the log */
};

/*
 * Notes what changed, for the next commit. What a pod or a container is at that time is what gets
 * written, of a container only the parts that say they are not stored (ctr->store.facts,
 * ctr->store.missing); one that is gone by then is passed over. store_del_pod includes its
 * containers, and is to be called while they are there. Nothing here fails: if memory does not
 * suffice for the note, the commit writes all there is.
 */
void store_put_pod(struct store *s, struct pod *pod);
void store_put_ctr(struct store *s, struct ctr *ctr);
void store_del_pod(struct store *s, const struct pod *pod);
void store_del_ctr(struct store *s, const struct ctr *ctr);

/*
 * A module's state, and the host's own notes (the policy in force …). No data: it is removed. What
 * is equal to what is there costs a comparison. -E2BIG: over a limit above; -ENOMEM.
 */
#define STORE_NOTE_POLICY "policy"

/*
 * Makes what was noted durable against the death of the process, all of it or nothing. An error
 * (-ENOSPC, -EIO, -ENOMEM …) loses nothing: the next commit writes what is missing then. Nothing
 * noted: nothing done.
 */
int store_commit(struct store *s, struct err *err);
/* Something is noted, or an earlier commit failed. */
bool store_pending(const struct store *s);
/* For quiet moments: writes the log anew when most of it is of the past. Costs as much as all there
 * is. */
int store_tidy(struct store *s, struct err *err);

struct store_stats {
	uint64_t commits, failures; /* since store_open */
	uint64_t records; /* written or removed */
	uint64_t file_bytes; /* of the file */
	uint64_t last_commit_ns; /* wall clock, for people; 0: none yet */
	uint64_t last_commit_ms; /* clock_ms() */
	uint64_t last_duration_ns; /* what the last commit took */
	char last_error[STORE_ERROR_MAX]; /* of the last one that failed */
};
void store_stats(const struct store *s, struct store_stats *ret);

#endif
