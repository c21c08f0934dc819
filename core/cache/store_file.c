/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB. A commit writes changed pages to where no page in use is, and then one of two meta pages, in turns; the one with the higher
 * transaction number counts. Dying in between is dying before or after the commit, as long as a meta page is written as a whole:
 *
 * - through write(2) it is;
 * - through the map it is a row of plain stores, and the compiler is free to put the transaction number before the root of the tree.
 *   (gcc does: in Debian's liblmdb 0.9.24 the root comes after it.) Dying exactly there leaves a meta page that counts, but has the
 *   root that was in that page before: that of the last commit but one. As pages are used again two commits after they were given up
 *   at the earliest, that tree is still all there. So each commit puts its number into its tree (Meta.commit): where it differs from
 *   the number in the meta page, that page was torn, and the other one, of the last commit that was finished, takes its place.
 *
 * Nothing is locked here: the process has one writer, no readers beside it, and the directory to itself (store_dir.c).
 */
#include "core/cache/store_internal.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "core/util/cleanup.h"
#include "core/util/prefault.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

#define FILE_MODE 0600
#define RECORD_USUAL 4096u
#define SIZE_STEP ((size_t)1 << 20)
#define FLAGS_BOTH (MDB_NOSUBDIR | MDB_NOLOCK)
#define FLAGS_WRITE (FLAGS_BOTH | MDB_NOSYNC | MDB_NOMETASYNC | MDB_NOMEMINIT)

int store_file_error(int rc, struct err *err, const char *what)
{
	int code = rc > 0 ? -rc : rc == MDB_MAP_FULL ? -ENOSPC : -EIO;
	return err_set(err, code, "%s: %s", what, mdb_strerror(rc));
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

int store_reader_open(struct store_reader *r, const char *path)
{
	MDB_dbi dbi;
	*r = (struct store_reader){0};
	int rc = mdb_env_create(&r->env);
	if (!rc)
		rc = mdb_env_open(r->env, path, FLAGS_BOTH | MDB_RDONLY, 0);
	if (!rc)
		rc = mdb_txn_begin(r->env, NULL, MDB_RDONLY, &r->txn);
	if (!rc)
		rc = mdb_dbi_open(r->txn, NULL, 0, &dbi);
	if (!rc)
		rc = mdb_cursor_open(r->txn, dbi, &r->cursor);
	if (rc)
		store_reader_close(r);
	else
		r->commit = mdb_txn_id(r->txn);
	return rc;
}

int store_file_step_back(const char *path, uint64_t commit)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	off_t torn = (off_t)(commit % META_PAGES * size),
	      whole = (off_t)((commit + 1) % META_PAGES * size);
	_free_ void *page = malloc(size);
	_close_ int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (!page)
		return -ENOMEM;
	if (fd < 0)
		return -errno;
	ssize_t n = pread(fd, page, size, whole);
	if (n == (ssize_t)size)
		n = pwrite(fd, page, size, torn);
	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EIO;
}

int store_reader_add_journal(struct store_reader *r, const char *path, uint64_t number)
{
	return number ? store_journal_read(&r->journal, path, number) : 0;
}

static int step(struct store_reader *r)
{
	MDB_val last = r->key;
	int rc = mdb_cursor_get(r->cursor, &r->key, &r->value, r->n ? MDB_NEXT : MDB_FIRST);
	if (rc)
		return rc;
	/* in a damaged tree a branch may lead back to where the walk has been */
	if (r->n && store_compare_keys(&r->key, &last) <= 0)
		return MDB_CORRUPTED;
	return ++r->n > STORE_RECORDS_MAX ? MDB_CORRUPTED : 0;
}

/* The first of those that come next in the file and in the journal; of the same key that of the journal, which may say that it is gone. */
int store_reader_next(struct store_reader *r, MDB_val *ret_key, MDB_val *ret_value)
{
	for (;;) {
		struct journal_reader *j = &r->journal;
		const struct journal_entry *entry = j->next < j->n ? &j->at[j->next] : NULL;
		if (!r->ahead)
			r->rc = step(r);
		if (r->rc && (r->rc != MDB_NOTFOUND || !entry))
			return r->rc;
		int c = !entry ? -1 : r->rc ? 1 : store_compare_keys(&r->key, &entry->key);
		r->ahead = c > 0;
		if (c >= 0)
			j->next++;
		if (c >= 0 && !entry->value.mv_size)
			continue;
		*ret_key = c < 0 ? r->key : entry->key;
		*ret_value = c < 0 ? r->value : entry->value;
		return 0;
	}
}

int store_reader_get(struct store_reader *r, const struct record_key *key, MDB_val *ret_value)
{
	MDB_val k = {key->len, (void *)key->bytes};
	return mdb_get(r->txn, mdb_cursor_dbi(r->cursor), &k, ret_value);
}

void store_reader_close(struct store_reader *r)
{
	store_journal_forget(&r->journal);
	if (r->cursor)
		mdb_cursor_close(r->cursor);
	if (r->txn)
		mdb_txn_abort(r->txn);
	if (r->env)
		mdb_env_close(r->env);
	*r = (struct store_reader){0};
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

int store_file_init(struct store_file *f, size_t size_max)
{
	*f = (struct store_file){.fd = -1, .size_max = size_max ? size_max : STORE_SIZE_MAX};
	return -pthread_mutex_init(&f->sync_lock, NULL);
}

void store_file_fini(struct store_file *f)
{
	store_file_close(f);
	(void)pthread_mutex_destroy(&f->sync_lock);
}

static void set_fd(struct store_file *f, int fd)
{
	(void)pthread_mutex_lock(&f->sync_lock);
	int old = f->fd;
	f->fd = fd;
	(void)pthread_mutex_unlock(&f->sync_lock);
	if (old >= 0)
		(void)close(old);
}

/*
 * Do blocks that were allocated stay writable when the disk is full? Where a write goes to a new place (btrfs, ZFS …), or nobody
 * knows, a page of a map could turn out not to be, and the process would die of it.
 */
static bool keeps_blocks(int fd)
{
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* With write(2) it is enough to know early that the disk is full, so a file system that cannot tell is as good. */
static int allocate(const struct store_file *f, size_t size)
{
	int rc = fallocate(f->fd, 0, 0, (off_t)size) < 0 ? errno : 0;
	if (!f->mapped && (rc == EOPNOTSUPP || rc == ENOSYS))
		return 0;
	return rc;
}

int store_file_create(struct store_file *f, const char *path, size_t size, int write,
		      struct err *err)
{
	(void)unlink(path);
	_close_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (fd < 0)
		return err_errno(err, -errno, "cannot make %s", path);
	size = (size + SIZE_STEP - 1) / SIZE_STEP * SIZE_STEP;
	f->size = size < f->size_max ? size : f->size_max;
	f->mapped = write == STORE_WRITE_MAP || (write == STORE_WRITE_AUTO && keeps_blocks(fd));
	set_fd(f, take_fd(&fd));
	int rc = mdb_env_create(&f->env);
	if (!rc)
		rc = mdb_env_set_mapsize(f->env, f->size);
	if (!rc)
		rc = mdb_env_open(f->env, path, FLAGS_WRITE | (f->mapped ? MDB_WRITEMAP : 0u),
				  FILE_MODE);
	if (!rc)
		rc = allocate(f, f->size);
	if (!rc)
		return 0;
	store_file_close(f);
	(void)unlink(path);
	return store_file_error(rc, err, path);
}

void store_file_close(struct store_file *f)
{
	store_file_abort(f);
	if (f->env)
		mdb_env_close(f->env);
	f->env = NULL;
	set_fd(f, -1);
}

int store_file_grow(struct store_file *f, struct err *err)
{
	size_t size = f->size_max - f->size < f->size ? f->size_max : f->size * 2;
	if (size == f->size)
		return err_set(err, -ENOSPC, "the store has reached its limit of %zu bytes",
			       f->size_max);
	int rc = allocate(f, size);
	if (!rc)
		rc = mdb_env_set_mapsize(f->env, size);
	if (rc)
		return store_file_error(rc, err, "the store cannot grow");
	f->size = size;
	return 0;
}

int store_file_begin(struct store_file *f)
{
	int rc = mdb_txn_begin(f->env, NULL, 0, &f->txn);
	if (!rc)
		rc = mdb_dbi_open(f->txn, NULL, 0, &f->dbi);
	return rc;
}

/* Pages that are added follow each other, and each begins with its number. Without the map a page lies anywhere, and on no boundary. */
static void prefault_file(const struct store_file *f, uint8_t *record)
{
	if (!f->mapped)
		return;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *page = record - (uintptr_t)record % size;
	size_t number;
	memcpy(&number, page, sizeof number);
	if (number < f->size / size && f->coming < f->size - number * size)
		prefault(page, f->coming);
}

/* Most records fit into a little room, and are put together only once. */
int store_file_put(struct store_file *f, const struct record_key *key, const struct record *r,
		   bool *append)
{
	uint8_t room[RECORD_USUAL];
	size_t packed = record_pack(r, key, room, sizeof room);
	MDB_val k = {key->len, (void *)key->bytes}, v = {packed ? packed : record_size(r), NULL};
	if (v.mv_size > RECORD_MAX)
		return MDB_BAD_VALSIZE;
	int rc = mdb_put(f->txn, f->dbi, &k, &v, MDB_RESERVE | (*append ? MDB_APPEND : 0u));
	if (rc == MDB_KEYEXIST && *append) { /* not the largest so far */
		*append = false;
		rc = mdb_put(f->txn, f->dbi, &k, &v, MDB_RESERVE);
	}
	if (!rc && f->coming) {
		prefault_file(f, v.mv_data);
		f->coming = 0;
	}
	if (!rc && packed)
		memcpy(v.mv_data, room + sizeof room - packed, packed);
	else if (!rc)
		record_write(r, key, v.mv_data);
	return rc;
}

int store_file_del(struct store_file *f, const struct record_key *key)
{
	MDB_val k = {key->len, (void *)key->bytes};
	int rc = mdb_del(f->txn, f->dbi, &k, NULL);
	return rc == MDB_NOTFOUND ? 0 : rc;
}

void store_file_abort(struct store_file *f)
{
	if (f->txn)
		mdb_txn_abort(f->txn);
	f->txn = NULL;
}

uint64_t store_file_number(const struct store_file *f)
{
	return mdb_txn_id(f->txn);
}

int store_file_commit(struct store_file *f)
{
	MDB_txn *txn = f->txn;
	f->txn = NULL; /* gone, whatever the result */
	return mdb_txn_commit(txn);
}

int store_file_turn(struct store_file *f)
{
	int rc = store_file_commit(f);
	return rc ? rc : store_file_begin(f);
}

int store_file_remap(struct store_file *f)
{
	return mdb_env_set_mapsize(f->env, f->size);
}
