/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: what of the cache outlives the daemon, in one LMDB file below the state directory.
 *
 *   lock               flock'ed while the daemon lives; holds its pid
 *   store.mdb          the records (proto/store.proto)
 *   store.new          its successor while that is being written; without meaning after a crash
 *   store.old          the last one that a reset or a reboot made useless
 *   store.bad.TIME     what could not be used; the STORE_BAD_KEEP youngest are kept
 *   *.journal          what each of them has not got yet: urgent commits (store_journal.c)
 *
 * A file of an earlier run is only ever read, and only after a forked child has walked all of it: bytes that make the library crash
 * or spin end that child and nothing else. The first commit writes a new file and renames it into place. So the daemon never changes
 * a file that it has not written from the first byte on, but for the head of one whose last commit was torn (store_file.c), and a crash
 * in between leaves the old one as it was.
 *
 * A commit costs what changed, an urgent one goes to the journal and no further, and nothing is synced: what was committed survives the
 * death of the process at any instruction (the page cache has it), and nothing here is of use after the death of the machine (the boot
 * id tells). Writing goes through shared maps whose blocks are allocated beforehand, on file systems that keep that promise, and through
 * write(2) on others; either way a full disk is an error of store_commit.
 *
 * Loop thread only, but for store_sync. Where there is no store (NULL, as in a child that let go of it) nothing is kept, nothing is
 * there, and that is no error; this holds for all but store_open and store_restore.
 */
#ifndef CACHE_STORE_H
#define CACHE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cache/cache.h"
#include "core/util/err.h"

#define STORE_FORMAT 2u /* 1 had no journal */
#define STORE_BAD_KEEP 3u
#define STORE_SIZE_MAX ((size_t)4 << 30) /* bytes of the file */
#define STORE_NAME_MAX 128u /* bytes of a module's or a note's name, or a version */
#define STORE_BLOB_MAX (4u << 20) /* bytes of a blob or a note */
#define STORE_BLOBS_MAX 256u

struct store;

struct store_params {
	const char *dir; /* made when missing, mode 0710 */
	const char *boot_id; /* of the running system */
	bool reset; /* what is there is of no interest */
	size_t size_max; /* of the file; 0: STORE_SIZE_MAX */
	enum { STORE_WRITE_AUTO, STORE_WRITE_MAP, STORE_WRITE_PLAIN } write;
};

enum store_outcome {
	STORE_FRESH, /* there was nothing */
	STORE_FOUND, /* there is something to restore */
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
 * Locks the directory and looks at what is there. Fails only when another instance has the lock (-EBUSY, its pid in err) or the
 * directory cannot be used; everything else is an outcome.
 */
int store_open(const struct store_params *params, struct store **ret,
	       struct store_opening *ret_opening, struct err *err);
/*
 * For who only wants to look: copies the file of state directory `dir` into the directory `to`, for store_open there. `dir` stays as it
 * is. -ENOENT: there is no state; -EPERM, -ENOTDIR: one that must not be used. What a daemon writes meanwhile may be torn in the copy.
 */
int store_copy(const char *dir, const char *to, struct err *err);
struct store *store_close(struct store *s); /* returns NULL; NULL is fine; commits nothing */
/* In a child after fork(): lets go of file, map and lock without touching what the parent has. What was kept (store_blob, store_note) can be
 * read from what it returns, and nothing is ever written. NULL is fine. */
struct store *store_abandon(struct store *s);

struct store_counts {
	uint32_t pods, ctrs, decisions, blobs;
	uint32_t bad; /* records left out, each with a warning in the log */
};

/*
 * Ties the store to the cache and fills that with what was found; to be called once, also when nothing was. Containers get
 * RP_CTR_RESTORED, and nothing of their CPUs is checked against the machine. An error (-ENOMEM) leaves a cache with a part of it.
 */
int store_restore(struct store *s, struct cache *cache, struct store_counts *ret, struct err *err);

/*
 * Notes what changed, for the next commit. What a pod or a container is at that time is what gets written, of a container only the
 * parts that say they are not stored (ctr->stored, ctr->unstored); one that is gone by then is passed over. store_del_pod
 * includes its containers, and is to be called while they are there. Nothing here fails: if memory does not suffice for the note,
 * the commit looks for itself what is to be done.
 */
void store_put_pod(struct store *s, struct pod *pod);
void store_put_ctr(struct store *s, struct ctr *ctr);
void store_del_pod(struct store *s, const struct pod *pod);
void store_del_ctr(struct store *s, const struct ctr *ctr);

/*
 * A module's state, and the host's own notes (the policy in force …). No data: it is removed. What is equal to what is
 * there costs a comparison. -E2BIG: over a limit above; -ENOMEM.
 */
#define STORE_NOTE_POLICY "policy"
int store_put_blob(struct store *s, const char *module, const char *version, const void *data,
		   size_t len);
int store_put_note(struct store *s, const char *name, const void *data, size_t len);
/* The bytes, with a NUL behind them; NULL: none. Good until the next put of that name. */
const void *store_blob(const struct store *s, const char *module, const char **ret_version,
		       size_t *ret_len);
const void *store_note(const struct store *s, const char *name, size_t *ret_len);

/*
 * What the next placement relies on is noted as urgent: a decision about a live container with all it takes to be restored
 * (store_put_ctr_now), and that a container which owns CPUs by what is stored has given them up (of itself). The rest, which the runtime
 * tells again at the next Synchronize, may wait. The urgent commit has to follow before a container noted for it is removed.
 */
void store_put_ctr_now(struct store *s, struct ctr *ctr);

/*
 * Makes what was noted durable against the death of the process, all of it or nothing. An error (-ENOSPC, -EIO, -ENOMEM …) loses
 * nothing: the next commit writes what is missing then. Nothing noted: nothing done.
 */
int store_commit(struct store *s, struct err *err);
/* The same for what is urgent. */
int store_commit_urgent(struct store *s, struct err *err);
/* Something is noted, or an earlier commit failed. */
bool store_pending(const struct store *s);

/* Brings the file to the disk. For tidiness (a shutdown); no promise hangs on it. [any thread] */
int store_sync(struct store *s);
/* Gives back the resident memory of the map; what is needed again costs a minor fault a page. */
void store_trim(struct store *s);

struct store_stats {
	uint64_t commits, failures; /* since store_open */
	uint64_t records; /* written or removed */
	uint64_t file_bytes; /* of the file */
	uint64_t used_bytes; /* of these, in use or free for use again */
	uint64_t last_commit_ns; /* wall clock; 0: none yet */
	uint64_t last_duration_ns; /* what the last commit took */
	bool mapped; /* written through a map */
};
void store_stats(const struct store *s, struct store_stats *ret);

#endif
