/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store that versions up to 0.1 have written, made a log of, so that an upgrade on a node in
 * use moves nobody. To be removed with the first version that need not follow them.
 *
 * It was LMDB's: a tree of pages, with two pages in front that say where its root is, written in
 * turns; the one with the higher number counts, unless its last commit was torn. What urgent
 * commits had written since then is in a journal beside it. Nothing of either is trusted: every
 * offset is checked against the bytes that there are, and no page is looked at more often than
 * there are pages.
 *
 *   key     'o', the number (big-endian, 8 bytes), then the kind: of an object · 'l', a number:
 *           Moved · 'm': Former
 *           'b' or 'n', a name: Blob
 *   value   CRC-32C of key and message, the message
 */
#include "core/nri-rpd/store/internal.h"

#include "core/lib/util/cleanup.h"
#include "core/lib/util/crc32c.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"

#define MAGIC 0xbeefc0deu
#define PAGE_HEAD 16u
#define NODE_HEAD 8u
#define META_SIZE 136u
#define DEPTH_MAX 32u
#define PAGE_BRANCH 1u
#define PAGE_LEAF 2u
#define NODE_ELSEWHERE 1u /* its data is on pages of its own */
#define NO_PAGE UINT64_MAX
#define OBJECT_KEY 10u
#define MOVED_KEY 9u
#define SUM 4u
#define FORMAT_LAST 2u
#define NAME_FIELD 0x1au /* Blob.name */

struct former {
	struct bytes file, journal;
	size_t page_size;
	uint64_t root, commit, visits_left;
	uint64_t journal_number;
	struct reclog *to;
	bool moves; /* this time around only those are wanted, which have to come last */
	const char *boot_id;
	struct bytes head; /* the message of the record of that kind */
};

static uint64_t get(const uint8_t *at, unsigned n)
{
	uint64_t value = 0;
	memcpy(&value, at, n); /* the machine's order of bytes, as it has written them */
	return value;
}

/* ---- records --------------------------------------------------------------------------------- */

static int put_record(const struct former *f, uint8_t kind, uint64_t number, struct bytes message,
		      struct bytes name)
{
	struct buf b = BUF_INIT;
	const uint8_t len[] = {NAME_FIELD, (uint8_t)(name.size | (name.size > 127 ? 0x80 : 0)), 1};
	(void)buf_add(&b, &kind, sizeof kind);
	(void)buf_add(&b, &number, sizeof number);
	(void)buf_add(&b, message.data, message.size);
	if (name.size) {
		(void)buf_add(&b, len, name.size > 127 ? 3 : 2);
		(void)buf_add(&b, name.data, name.size);
	}
	int r = b.failed ? b.failed : reclog_put(f->to, buf_bytes(&b), buf_len(&b));
	buf_fini(&b);
	return r;
}

static uint64_t number_in(struct bytes key)
{
	uint64_t number = 0;
	for (unsigned i = 1; i < MOVED_KEY; i++)
		number = number << 8 | key.data[i];
	return number;
}

/* What is of no kind that there was, or whose sum is wrong, is left out. */
static int take_record(struct former *f, struct bytes key, struct bytes value)
{
	const struct bytes none = {NULL, 0};
	if (!key.size || value.size < SUM ||
	    crc32c(crc32c(0, key.data, key.size), value.data + SUM, value.size - SUM) !=
		    get(value.data, SUM))
		return 0;
	struct bytes message = {value.data + SUM, value.size - SUM},
		     name = {key.data + 1, key.size - 1};
	uint8_t kind = key.data[0];
	if (kind == 'm')
		f->head = message;
	if (!f->to || (kind == 'l') != f->moves)
		return 0;
	if (kind == 'l' && key.size == MOVED_KEY)
		return put_record(f, RECORD_MOVED, 0, message, none);
	if (kind == 'o' && key.size == OBJECT_KEY && number_in(key))
		return put_record(f, key.data[OBJECT_KEY - 1], number_in(key), message, none);
	if ((kind == RECORD_BLOB || kind == RECORD_NOTE) && name.size &&
	    name.size <= STORE_NAME_MAX)
		return put_record(f, kind, 0, message, name);
	return 0;
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* NULL: there are not so many bytes. */
static const uint8_t *page_at(const struct former *f, uint64_t page, size_t size)
{
	uint64_t pages = f->file.size / f->page_size;
	return page < pages && size <= (pages - page) * f->page_size
		       ? f->file.data + page * f->page_size
		       : NULL;
}

static int take_leaf(struct former *f, struct bytes node)
{
	size_t len = get(node.data, 4), key_len = get(node.data + 6, 2);
	struct bytes key = {node.data + NODE_HEAD, key_len}, value = {key.data + key_len, len};
	if (key_len > node.size - NODE_HEAD)
		return -EBADMSG;
	size_t rest = node.size - NODE_HEAD - key_len;
	if (get(node.data + 4, 2) & NODE_ELSEWHERE) {
		const uint8_t *page =
			rest >= 8 ? page_at(f, get(value.data, 8), PAGE_HEAD + len) : NULL;
		if (!page)
			return -EBADMSG;
		value.data = page + PAGE_HEAD;
	} else if (len > rest) {
		return -EBADMSG;
	}
	return take_record(f, key, value);
}

static int walk(struct former *f, uint64_t number, unsigned depth)
{
	const uint8_t *page = page_at(f, number, f->page_size);
	if (!page || depth == DEPTH_MAX || !f->visits_left--)
		return -EBADMSG;
	unsigned flags = (unsigned)get(page + 10, 2), lower = (unsigned)get(page + 12, 2);
	if (lower < PAGE_HEAD || lower > f->page_size || !(flags & (PAGE_BRANCH | PAGE_LEAF)))
		return -EBADMSG;
	int r = 0;
	for (unsigned i = 0; !r && i < (lower - PAGE_HEAD) / 2; i++) {
		size_t at = get(page + PAGE_HEAD + 2 * i, 2);
		if (at < lower || at > f->page_size - NODE_HEAD)
			return -EBADMSG;
		struct bytes node = {page + at, f->page_size - at};
		r = flags & PAGE_BRANCH ? walk(f, get(node.data, 6), depth + 1)
					: take_leaf(f, node);
	}
	return r;
}

static int walk_all(struct former *f)
{
	f->visits_left = f->file.size / f->page_size;
	return f->root == NO_PAGE ? 0 : walk(f, f->root, 0);
}

/* ---- the journal ----------------------------------------------------------------------------- */

static int take_entries(struct former *f, struct bytes batch)
{
	int r = 0;
	while (!r && batch.size) {
		if (batch.size < 8)
			return -EBADMSG;
		size_t len = get(batch.data, 4), key_len = get(batch.data + 4, 4);
		if (key_len > batch.size - 8 || len > batch.size - 8 - key_len)
			return -EBADMSG;
		struct bytes key = {batch.data + 8, key_len}, value = {key.data + key_len, len};
		bool gone = !len && key_len == OBJECT_KEY && key.data[0] == 'o';
		if (gone && !f->moves)
			r = put_record(f, RECORD_GONE, number_in(key), value,
				       (struct bytes){NULL, 0});
		else
			r = take_record(f, key, value);
		batch.data = value.data + len;
		batch.size -= 8 + key_len + len;
	}
	return r;
}

/* To where writing has ended, or what was there before begins. */
static int take_journal(struct former *f)
{
	struct bytes rest = f->journal;
	int r = 0;
	while (!r && f->journal_number && rest.size >= 16) {
		size_t size = get(rest.data + 4, 4);
		if (get(rest.data + 8, 8) != f->journal_number || size > rest.size - 16 ||
		    crc32c(0, rest.data + 4, 12 + size) != get(rest.data, 4))
			break;
		r = take_entries(f, (struct bytes){rest.data + 16, size});
		rest.data += 16 + size;
		rest.size -= 16 + size;
	}
	return r;
}

/* ---- the head -------------------------------------------------------------------------------- */

static int check_head(struct former *f, struct err *err)
{
	_arena_ struct arena *a = arena_new(4096, RECORD_ARENA_LIMIT);
	if (!a)
		return err_set(err, -ENOMEM, "out of memory");
	ProtobufCAllocator alloc = pb_arena(a);
	const RpStore__Former *m =
		f->head.data ? rp_store__former__unpack(&alloc, f->head.size, f->head.data) : NULL;
	if (!m || !m->format || m->format > FORMAT_LAST)
		return err_set(err, -ENOMSG, "its head is damaged");
	if (!str_eq(m->boot_id, f->boot_id))
		return err_set(err, -ESTALE, "it is of another boot");
	f->journal_number = m->journal;
	return m->commit == f->commit ? 0 : err_set(err, -ENOMSG, "its last commit is not whole");
}

static bool take_meta(struct former *f, size_t at)
{
	if (f->file.size < at + PAGE_HEAD + META_SIZE)
		return false;
	const uint8_t *meta = f->file.data + at + PAGE_HEAD;
	f->page_size = get(meta + 24, 4);
	f->root = get(meta + 112, 8);
	f->commit = get(meta + 128, 8);
	return get(meta, 4) == MAGIC && f->page_size >= 512 && f->page_size <= 32768;
}

/* One of the two, after which the tree is whole and its own record says the same. */
static int try_meta(struct former *f, size_t at, struct err *err)
{
	f->head = (struct bytes){NULL, 0};
	if (!take_meta(f, at))
		return err_set(err, -ENOMSG, "it is no store, or its head is damaged");
	if (walk_all(f))
		return err_set(err, -EBADMSG, "its pages are damaged");
	return check_head(f, err);
}

static int choose_meta(struct former *f, struct err *err)
{
	struct former other = *f;
	struct err later = ERR_INIT;
	int r = try_meta(f, 0, err);
	if (!f->page_size || try_meta(&other, f->page_size, &later))
		return r;
	if (r || other.commit > f->commit)
		*f = other;
	return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int write_log(struct former *f, struct reclog *to, struct err *err)
{
	int r = reclog_begin_anew(to, err);
	f->to = to;
	for (unsigned i = 0; !r && i < 2; i++) {
		f->moves = i > 0;
		r = walk_all(f);
		if (!r)
			r = take_journal(f);
	}
	if (r) {
		reclog_drop(to);
		return err_errno(err, r, "it cannot be converted");
	}
	return reclog_commit(to, err);
}

int store_former_write(struct bytes file, struct bytes journal, const char *boot_id,
		       struct reclog *to, struct err *err)
{
	struct former f = {.file = file, .journal = journal, .boot_id = boot_id};
	int r = choose_meta(&f, err);
	return r ? r : write_log(&f, to, err);
}

int store_former_convert(const struct store_dir *d, const char *boot_id, struct reclog *to,
			 struct err *err)
{
	char path[STORE_PATH_MAX];
	size_t size = 0, journal_size = 0;
	_free_ char *file = NULL, *journal = NULL;
	store_dir_path(d, STORE_FILE_FORMER, path);
	int r = fs_read_own(path, STORE_SIZE_MAX, &file, &size, err);
	if (r)
		return r;
	store_dir_path(d, STORE_FILE_FORMER_TOO, path);
	r = fs_read_own(path, STORE_SIZE_MAX, &journal, &journal_size, err);
	if (r && r != -ENOENT)
		return r;
	return store_former_write((struct bytes){(const uint8_t *)file, size},
				  (struct bytes){(const uint8_t *)journal, journal_size}, boot_id,
				  to, err);
}
