/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the store share:
 *
 *   store_dir.c      the directory: its modes, the lock, what is set aside
 *   store_file.c     LMDB: reading a file of an earlier run, writing our own
 *   store_journal.c  what is urgent, until a complete commit has it
 *   store_probe.c    is an earlier file usable? asked in a child that may die of it
 *   store_restore.c  records to cache
 *   store_moved.c    sets of many containers at once
 *   store_kept.c     blobs and notes
 *   store.c          what is to be written, and commits
 */
#ifndef CACHE_STORE_INTERNAL_H
#define CACHE_STORE_INTERNAL_H

#include <lmdb.h>
#include <pthread.h>

#include "core/cache/store.h"
#include "core/cache/store_codec.h"

/* All that a cache and the limits above can have. */
#define STORE_RECORDS_MAX                                                                          \
	(1u + CACHE_PODS_MAX + 2u * CACHE_CTRS_MAX + STORE_BLOBS_MAX + MOVED_RECORDS_MAX +         \
	 MOVED_GROUPS_MAX)
/* Before there are so many, a commit is a complete one; so many come with one commit at most. */
#define MOVED_RECORDS_MAX 256u
#define MOVED_GROUPS_MAX 64u

/* ---- store_dir.c --------------------------------------------------------------------------------------------------- */

struct store_dir {
	char *path;
	int fd, lock_fd;
};

#define STORE_FILE "store.mdb"
#define STORE_FILE_NEW "store.new"
#define STORE_FILE_OLD "store.old"
#define STORE_FILE_BAD "store.bad."
#define STORE_FILE_LOCK "lock"
#define STORE_JOURNAL ".journal" /* behind the name of the file that it goes with */
#define STORE_PATH_MAX 4096u

/* Opened, its modes put right, locked. */
int store_dir_open(struct store_dir *d, const char *path, struct err *err);
void store_dir_close(struct store_dir *d);
void store_dir_path(const struct store_dir *d, const char *name, char ret[STORE_PATH_MAX]);
/* Is there a store file? -ENOENT; -EPERM and the reason when it must not be used. */
int store_dir_check(const struct store_dir *d, struct err *err);
/* Renames the file to store.old, or to store.bad.TIME; ret_name is what it is called now. */
int store_dir_set_aside(const struct store_dir *d, bool bad, char ret_name[64]);

/* LMDB's, at the file's begin, written in turns. */
#define META_PAGES 2u

/* ---- store_journal.c ----------------------------------------------------------------------------------------------- */

#define JOURNAL_SIZE ((size_t)512 << 10)
#define JOURNAL_FULL                                                                               \
	(-1) /* among errno values: what is to be written belongs into a complete commit */

struct journal {
	int fd; /* -1: there is none */
	uint8_t *map; /* NULL: it is written with write(2) */
	size_t end; /* of what it has */
	uint64_t number; /* Meta.journal of what it goes over */
	uint8_t *batch; /* being put together */
	size_t len, cap;
};

/* `of` is the name of the file that it goes with. */
int store_journal_path(const char *of, char ret[STORE_PATH_MAX]);
/* An empty one. -errno. */
int store_journal_create(struct journal *j, const char *of, bool mapped, struct err *err);
void store_journal_close(struct journal *j);
/* A batch is begun, filled and written; what was not written is forgotten by the next begin. 0, positive errno or JOURNAL_FULL. */
void store_journal_begin(struct journal *j);
int store_journal_put(struct journal *j, const struct record_key *key, const struct record *r);
int store_journal_del(struct journal *j, const struct record_key *key);
int store_journal_write(struct journal *j);
/* A complete commit has written number + 1. */
void store_journal_restart(struct journal *j);
void store_journal_trim(struct journal *j);

struct journal_entry {
	MDB_val key, value; /* without a value: there is no such record any more */
	uint32_t order;
};

struct journal_reader {
	uint8_t *data;
	size_t size;
	struct journal_entry *at; /* of each key the last one, in the order of keys */
	uint32_t n, cap, next;
};

int store_compare_keys(const MDB_val *a, const MDB_val *b);
/* The entries of this number; none is no error. Positive errno; EBADMSG: it is damaged. */
int store_journal_read(struct journal_reader *r, const char *of, uint64_t number);
/* An error that is the machine's at this moment, and says nothing about the file. */
bool store_passes(int rc);
/* The same of bytes that are there already: r->data, r->size. */
int store_journal_parse(struct journal_reader *r, uint64_t number);
void store_journal_forget(struct journal_reader *r);

/* ---- store_file.c -------------------------------------------------------------------------------------------------- */

/* A file of an earlier run. Its bytes may be anything: see store_probe. */
struct store_reader {
	MDB_env *env;
	MDB_txn *txn;
	MDB_cursor *cursor;
	MDB_val key, value; /* where the cursor is */
	int rc; /* of going there */
	bool ahead; /* it has not been returned yet */
	uint32_t n;
	uint64_t commit; /* the number of the last one */
	struct journal_reader journal;
};

/* Errors are positive errno or LMDB's negative ones, for mdb_strerror. */
int store_reader_open(struct store_reader *r, const char *path);
/* From now on with what the journal of this number has to say, if there is one. */
int store_reader_add_journal(struct store_reader *r, const char *path, uint64_t number);
/* The next record; MDB_NOTFOUND after the last, MDB_CORRUPTED when there are too many or they are out of order. */
int store_reader_next(struct store_reader *r, MDB_val *ret_key, MDB_val *ret_value);
/* Of the file, whatever the journal says. */
int store_reader_get(struct store_reader *r, const struct record_key *key, MDB_val *ret_value);
void store_reader_close(struct store_reader *r);
/* For a file whose last commit, of that number, was torn: makes the one before it the last. -errno. */
int store_file_step_back(const char *path, uint64_t commit);

/* The file of this run. */
struct store_file {
	MDB_env *env; /* NULL: there is none */
	MDB_dbi dbi;
	MDB_txn *txn; /* while writing */
	size_t size, size_max;
	size_t coming; /* bytes that are about to be added at the end; a guess */
	bool mapped;
	pthread_mutex_t sync_lock; /* held while fd changes and while it is taken for a sync */
	int fd;
};

int store_file_init(struct store_file *f, size_t size_max);
void store_file_fini(struct store_file *f);
/* An empty one at path, with room for size bytes at first. */
int store_file_create(struct store_file *f, const char *path, size_t size, int write,
		      struct err *err);
void store_file_close(struct store_file *f);
/* More room, after MDB_MAP_FULL. */
int store_file_grow(struct store_file *f, struct err *err);
int store_file_begin(struct store_file *f);
/* *append: try to put it behind all there is; false when it does not belong there. MDB_BAD_VALSIZE: it is larger than RECORD_MAX. */
int store_file_put(struct store_file *f, const struct record_key *key, const struct record *r,
		   bool *append);
int store_file_del(struct store_file *f, const struct record_key *key);
void store_file_abort(struct store_file *f);
/* The number that the commit of what is being written will have. */
uint64_t store_file_number(const struct store_file *f);
int store_file_commit(struct store_file *f);
/* Commits and begins again. */
int store_file_turn(struct store_file *f);
/* Nothing of the map is resident afterwards. */
int store_file_remap(struct store_file *f);
/* For people and callers: fills err, returns -errno. */
int store_file_error(int rc, struct err *err, const char *what);

/* ---- store_probe.c ------------------------------------------------------------------------------------------------- */

struct probe_result {
	uint32_t outcome; /* STORE_FOUND, STORE_OTHER_BOOT, STORE_NEWER, STORE_DAMAGED */
	uint32_t n_records, n_bad;
	uint64_t commit; /* the number of the last one */
	uint64_t journal; /* number of the journal that goes with it */
	bool torn; /* the last commit was not finished */
	char why[256];
};

/* Reads all of the file as store_restore will. What is wrong with it may crash or hang the caller. */
void store_check_file(const char *path, const char *boot_id, struct probe_result *ret);
/* The same in a child, which gets so many seconds. */
void store_probe(const char *path, const char *boot_id, int lock_fd, unsigned seconds,
		 struct probe_result *ret);

/* ---- store_moved.c ------------------------------------------------------------------------------------------------- */

struct moved {
	struct ctr **list; /* for the next commit; who goes before that leaves it */
	uint64_t *numbers; /* room for those of a record */
	uint32_t n, cap;
	uint64_t first, next; /* numbers of the records that the journal has: first … next - 1 */
	uint64_t epoch; /* counts complete commits, from 1; ctr->moved */
};

/* Is it stored, but for its sets? */
bool store_moved_only(const struct ctr *ctr);
int store_moved_add(struct moved *m, struct ctr *ctr); /* -ENOMEM */
void store_moved_forget(struct moved *m, const struct ctr *ctr);
/* Are there few enough records, and few enough sets? */
bool store_moved_fits(struct moved *m);
/* A record of the one at `from` and all behind it with the same sets; where the others begin. Valid until the next call. */
uint32_t store_moved_group(struct moved *m, uint32_t from, struct record *r);
void store_moved_written(struct moved *m); /* by an urgent commit */
void store_moved_settled(struct moved *m); /* by a complete one */
void store_moved_free(struct moved *m);

/* ---- store.c ------------------------------------------------------------------------------------------------------- */

enum change_what { CHANGE_POD, CHANGE_CTR, CHANGE_DEL };

struct change {
	enum change_what what;
	uint64_t handle; /* CHANGE_POD, CHANGE_CTR */
	enum record_kind kind; /* CHANGE_DEL */
	uint64_t number;
};

struct changes {
	struct change *list;
	uint32_t n, cap;
};

struct kept {
	enum record_kind kind; /* RECORD_BLOB, RECORD_NOTE */
	char *name, *version;
	void *data; /* NULL: to be removed from the file */
	size_t len;
	bool stored;
	bool journaled; /* but the file has not got it yet */
};

/* Of a container; ctr->journaled */
#define JOURNAL_FACTS 1u
#define JOURNAL_DECISION 2u

struct store {
	struct store_dir dir;
	struct store_file file;
	struct journal journal;
	struct cache *cache;
	char *boot_id;
	int write; /* of the parameters */
	bool found; /* there is an earlier file, not restored yet */
	uint64_t found_journal; /* number of its journal */
	bool published; /* ours has its name */
	bool abandoned; /* this is a child, and the file its parent's */
	bool lost_track; /* a change could not be noted */
	struct changes urgent, later; /* by the commit that has to write them */
	uint32_t noting; /* counts complete commits, tried ones as well: pod->noted, ctr->noted */
	struct moved moved;
	struct kept *kept;
	uint32_t n_kept;
	struct store_stats stats;
};

/* ---- store_kept.c -------------------------------------------------------------------------------------------------- */

/* Puts a blob or a note in its place; takes over data (malloc'd). */
int store_keep(struct store *s, enum record_kind kind, const char *name, const char *version,
	       const void *data, size_t len);
bool store_kept_pending(const struct store *s);
void store_kept_journaled(struct store *s); /* an urgent commit has written all of them */
void store_kept_settled(struct store *s); /* a complete one has */
void store_kept_free(struct store *s);

#endif
