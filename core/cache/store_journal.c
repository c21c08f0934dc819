/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: what urgent commits have written since the last complete one. A creation is answered when its few records stand at the
 * end of a row of bytes, which costs a tenth of a transaction of LMDB; the complete commit, which comes a moment later and for many
 * creations at once, has all of it again and makes the journal void by counting on.
 *
 *   batch   one urgent commit: struct head, then entries; the next follows immediately
 *   entry   struct entry_head, the key, the value as in the file (no value: the record is gone)
 *
 * A batch counts whole or not at all: its checksum is over everything behind that. Reading ends where one is not right, or is not of
 * the number that Meta.journal has: that is where writing ended, or what stood there before. The number begins at random with each
 * file, so that nobody who writes bytes into records can foresee it.
 *
 * Dying between any two stores of a batch leaves it unfinished, and it was not answered. A complete commit that is not finished leaves
 * the file of before, whose number is still that of the journal.
 */
#include "core/cache/store_internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "core/util/crc32c.h"
#include "core/util/cleanup.h"
#include "core/util/loop.h"

#define FILE_MODE 0600
#define ENTRY_USUAL 4096u
#define ROOM_FIRST ((size_t)4 << 10)

/* Numbers are the machine's: a state does not outlive its boot. */
struct head {
	uint32_t sum; /* CRC-32C of all that follows in the batch */
	uint32_t size; /* of the entries */
	uint64_t number;
};

struct entry_head {
	uint32_t value_len;
	uint32_t key_len;
};

/* ---- writing ------------------------------------------------------------------------------------------------------- */

static uint64_t first_number(void)
{
	uint64_t number;
	if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
		number = (uint64_t)getpid() << 40 ^ clock_wall_ns();
	return number >> 1 | 1u; /* 0 is none */
}

int store_journal_path(const char *of, char ret[STORE_PATH_MAX])
{
	return snprintf(ret, STORE_PATH_MAX, "%s" STORE_JOURNAL, of) < (int)STORE_PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

static int make_file(struct journal *j, const char *path, bool mapped)
{
	(void)unlink(path);
	_close_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (fd < 0)
		return -errno;
	/* with write(2) it is enough to have the room, and not all file systems can give it beforehand */
	if (fallocate(fd, 0, 0, JOURNAL_SIZE) < 0 &&
	    (mapped || (errno != EOPNOTSUPP && errno != ENOSYS)))
		return -errno;
	if (mapped) {
		void *map = mmap(NULL, JOURNAL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			return -errno;
		j->map = map;
	}
	j->fd = take_fd(&fd);
	return 0;
}

int store_journal_create(struct journal *j, const char *of, bool mapped, struct err *err)
{
	char path[STORE_PATH_MAX];
	store_journal_close(j);
	int r = store_journal_path(of, path);
	if (!r)
		r = make_file(j, path, mapped);
	if (r) {
		(void)unlink(path);
		return err_errno(err, r, "cannot make the journal %s", path);
	}
	j->number = first_number();
	return 0;
}

void store_journal_close(struct journal *j)
{
	if (j->map)
		(void)munmap(j->map, JOURNAL_SIZE);
	if (j->fd >= 0)
		(void)close(j->fd);
	free(j->batch);
	*j = (struct journal){.fd = -1};
}

void store_journal_begin(struct journal *j)
{
	j->len = sizeof(struct head);
}

/* So many bytes at the batch's end; NULL and *ret_rc. */
static uint8_t *extend(struct journal *j, size_t n, int *ret_rc)
{
	if (n > JOURNAL_SIZE || j->end + j->len + n > JOURNAL_SIZE) {
		*ret_rc = JOURNAL_FULL;
		return NULL;
	}
	if (j->len + n > j->cap) {
		size_t cap = j->cap ? j->cap : ROOM_FIRST;
		while (cap < j->len + n)
			cap *= 2;
		uint8_t *grown = realloc(j->batch, cap);
		if (!grown) {
			*ret_rc = ENOMEM;
			return NULL;
		}
		j->batch = grown;
		j->cap = cap;
	}
	uint8_t *room = j->batch + j->len;
	j->len += n;
	return room;
}

/* Where the value goes. */
static uint8_t *add_entry(struct journal *j, const struct record_key *key, size_t value_len,
			  int *ret_rc)
{
	struct entry_head head = {(uint32_t)value_len, (uint32_t)key->len};
	size_t before = sizeof head + key->len;
	uint8_t *to = extend(j, before + value_len, ret_rc);
	if (!to)
		return NULL;
	memcpy(to, &head, sizeof head);
	memcpy(to + sizeof head, key->bytes, key->len);
	return to + before;
}

int store_journal_put(struct journal *j, const struct record_key *key, const struct record *r)
{
	uint8_t room[ENTRY_USUAL];
	size_t packed = record_pack(r, key, room, sizeof room);
	int rc = 0;
	uint8_t *to = add_entry(j, key, packed ? packed : record_size(r), &rc);
	if (to && packed)
		memcpy(to, room + sizeof room - packed, packed);
	else if (to)
		record_write(r, key, to);
	return rc;
}

int store_journal_del(struct journal *j, const struct record_key *key)
{
	int rc = 0;
	(void)add_entry(j, key, 0, &rc);
	return rc;
}

int store_journal_write(struct journal *j)
{
	struct head head = {.size = (uint32_t)(j->len - sizeof head), .number = j->number};
	memcpy(j->batch, &head, sizeof head);
	head.sum = crc32c(0, j->batch + sizeof head.sum, j->len - sizeof head.sum);
	memcpy(j->batch, &head.sum, sizeof head.sum);
	if (j->map) {
		memcpy(j->map + j->end, j->batch, j->len);
	} else {
		ssize_t n = pwrite(j->fd, j->batch, j->len, (off_t)j->end);
		if (n != (ssize_t)j->len)
			return n < 0 ? errno : ENOSPC;
	}
	j->end += j->len;
	return 0;
}

void store_journal_restart(struct journal *j)
{
	j->number++;
	j->end = 0;
}

void store_journal_trim(struct journal *j)
{
	if (j->map)
		(void)madvise(j->map, JOURNAL_SIZE,
			      MADV_DONTNEED); /* it is shared: the file has it */
	free(j->batch);
	j->batch = NULL;
	j->cap = 0;
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static int load(struct journal_reader *r, const char *path)
{
	struct stat st;
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT ? 0 : errno;
	if (fstat(fd, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EINVAL;
	r->size = (uint64_t)st.st_size < JOURNAL_SIZE ? (size_t)st.st_size : JOURNAL_SIZE;
	r->data = malloc(r->size + 1);
	if (!r->data)
		return ENOMEM;
	ssize_t n = pread(fd, r->data, r->size, 0);
	r->size = n < 0 ? 0 : (size_t)n;
	return n < 0 ? errno : 0;
}

static int keep(struct journal_reader *r, const struct journal_entry *entry)
{
	if (r->n == r->cap) {
		uint32_t cap = r->cap ? r->cap * 2 : 64;
		struct journal_entry *grown = realloc(r->at, cap * sizeof *grown);
		if (!grown)
			return ENOMEM;
		r->at = grown;
		r->cap = cap;
	}
	r->at[r->n] = *entry;
	r->at[r->n].order = r->n;
	r->n++;
	return 0;
}

/* A batch whose checksum is right and whose entries are not was written by nobody: that is damage. */
static int read_entries(struct journal_reader *r, const uint8_t *data, size_t size)
{
	struct entry_head head;
	int rc = 0;
	while (!rc && size) {
		if (size < sizeof head)
			return EBADMSG;
		memcpy(&head, data, sizeof head);
		size_t rest = size - sizeof head;
		if (head.key_len > rest || head.value_len > rest - head.key_len)
			return EBADMSG;
		const uint8_t *key = data + sizeof head;
		rc = keep(r, &(struct journal_entry){
				     .key = {head.key_len, (void *)key},
				     .value = {head.value_len, (void *)(key + head.key_len)}});
		data = key + head.key_len + head.value_len;
		size = rest - head.key_len - head.value_len;
	}
	return rc;
}

/* The size of the batch there, with its head; 0: there is none of this number. */
static size_t batch_at(const struct journal_reader *r, size_t at, uint64_t number)
{
	struct head head;
	size_t rest = r->size - at;
	if (rest < sizeof head)
		return 0;
	memcpy(&head, r->data + at, sizeof head);
	if (head.number != number || head.size > rest - sizeof head)
		return 0;
	size_t size = sizeof head + head.size;
	return crc32c(0, r->data + at + sizeof head.sum, size - sizeof head.sum) == head.sum ? size
											     : 0;
}

int store_compare_keys(const MDB_val *a, const MDB_val *b)
{
	size_t n = a->mv_size < b->mv_size ? a->mv_size : b->mv_size;
	int c = n ? memcmp(a->mv_data, b->mv_data, n) : 0;
	if (c)
		return c;
	return a->mv_size < b->mv_size ? -1 : a->mv_size > b->mv_size;
}

static int compare_entries(const void *left, const void *right)
{
	const struct journal_entry *a = left, *b = right;
	int c = store_compare_keys(&a->key, &b->key);
	return c ? c : a->order < b->order ? -1 : 1;
}

/* Of each key the last word, in the order of keys. */
static void settle(struct journal_reader *r)
{
	uint32_t n = 0;
	if (r->n)
		qsort(r->at, r->n, sizeof *r->at, compare_entries);
	for (uint32_t i = 0; i < r->n; i++)
		if (i + 1 == r->n || store_compare_keys(&r->at[i].key, &r->at[i + 1].key))
			r->at[n++] = r->at[i];
	r->n = n;
}

int store_journal_parse(struct journal_reader *r, uint64_t number)
{
	size_t at = 0, size;
	int rc = 0;
	while (!rc && (size = batch_at(r, at, number)) != 0) {
		rc = read_entries(r, r->data + at + sizeof(struct head),
				  size - sizeof(struct head));
		at += size;
	}
	settle(r);
	return rc;
}

int store_journal_read(struct journal_reader *r, const char *of, uint64_t number)
{
	char path[STORE_PATH_MAX];
	*r = (struct journal_reader){0};
	int rc = -store_journal_path(of, path);
	if (!rc)
		rc = load(r, path);
	if (!rc)
		rc = store_journal_parse(r, number);
	if (rc)
		store_journal_forget(r);
	return rc;
}

bool store_passes(int rc)
{
	return rc == ENOMEM || rc == EMFILE || rc == ENFILE;
}

void store_journal_forget(struct journal_reader *r)
{
	free(r->data);
	free(r->at);
	*r = (struct journal_reader){0};
}
