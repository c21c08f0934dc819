/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/reclog.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/crc32c.h"
#include "core/lib/util/str.h"

#define MAGIC "nrirplg1" /* the last character is the version of this format */
#define MAGIC_SIZE (sizeof MAGIC - 1)
#define NEW ".new" /* suffix of the name of an incomplete log */
#define FILE_MODE 0600
#define LONG_MIN ((size_t)1 << 20)
#define PIECE ((size_t)128 << 10) /* bytes of a new log collected before each write */
#define KEEP ((size_t)16 << 10) /* bytes of memory retained between commits */

struct batch {
	uint32_t size; /* bytes of the records */
	uint32_t sum; /* CRC-32C of the records */
	/* CRC-32C of the two members above and of the batch's offset in the file */
	uint32_t head_sum;
};

static uint32_t head_sum_of(const struct batch *b, uint64_t at)
{
	return crc32c(crc32c(0, &at, sizeof at), b, offsetof(struct batch, head_sum));
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns the text up to the next NUL; NULL: there is no NUL. */
static const char *next_text(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, 0, (size_t)(end - text));
	*at = nul ? nul + 1 : end;
	return nul ? text : NULL;
}

static int check_head(const struct reclog_head *head, const void *record, size_t len,
		      struct err *err)
{
	uint32_t format;
	const char *at = record, *end = at + len;
	if (len < sizeof format)
		return err_set(err, -ENOMSG, "its header is too short");
	memcpy(&format, at, sizeof format);
	at += sizeof format;
	const char *kind = next_text(&at, end), *origin = kind ? next_text(&at, end) : NULL,
		   *version = origin ? next_text(&at, end) : NULL;
	if (!version || !format || !str_eq(kind, head->kind))
		return err_set(err, -ENOMSG, "it is not a log of %s", head->kind);
	if (format > head->format)
		return err_set(err, -EPROTO,
			       "it has format %u, written by version %.64s; this version reads "
			       "formats up to %u",
			       format, *version ? version : "(unknown)", head->format);
	if (!str_eq(origin, head->origin))
		return err_set(err, -ESTALE, "it is from another boot");
	return 0;
}

enum found { FOUND_BATCH, FOUND_END, FOUND_DAMAGE };

/* Checks the batch at that offset; *ret_size is its size with its head. */
static enum found look_at(const uint8_t *data, size_t size, size_t at, size_t *ret_size)
{
	struct batch b;
	size_t rest = size - at;
	if (rest < sizeof b)
		return FOUND_END;
	memcpy(&b, data + at, sizeof b);
	if (b.head_sum != head_sum_of(&b, at))
		return FOUND_DAMAGE;
	if (b.size > rest - sizeof b)
		return FOUND_END;
	*ret_size = sizeof b + b.size;
	return crc32c(0, data + at + sizeof b, b.size) == b.sum ? FOUND_BATCH : FOUND_DAMAGE;
}

/* Returns the length of the first record without its length field of four bytes; SIZE_MAX: the
 * record is incomplete. */
static size_t record_len(const uint8_t *data, size_t size)
{
	uint32_t len;
	if (size < sizeof len)
		return SIZE_MAX;
	memcpy(&len, data, sizeof len);
	return len <= size - sizeof len ? len : SIZE_MAX;
}

static int each_record(const uint8_t *data, size_t size, reclog_each each, void *arg,
		       struct err *err)
{
	while (size) {
		size_t len = record_len(data, size);
		/* the checksum is correct, so it was not written by this code */
		if (len == SIZE_MAX)
			return err_set(err, -EBADMSG, "a record is longer than its batch");
		int r = each(arg, data + sizeof(uint32_t), len);
		if (r)
			return r;
		data += sizeof(uint32_t) + len;
		size -= sizeof(uint32_t) + len;
	}
	return 0;
}

static int parse_head(const uint8_t *data, size_t size, const struct reclog_head *head,
		      size_t *ret_end, struct err *err)
{
	size_t n = 0;
	if (size >= MAGIC_SIZE && !memcmp(data, MAGIC, MAGIC_SIZE - 1) &&
	    data[MAGIC_SIZE - 1] > (uint8_t)MAGIC[MAGIC_SIZE - 1])
		return err_set(err, -EPROTO, "a later version wrote it in another format");
	if (size < MAGIC_SIZE || memcmp(data, MAGIC, MAGIC_SIZE) != 0 ||
	    look_at(data, size, MAGIC_SIZE, &n) != FOUND_BATCH)
		return err_set(err, -ENOMSG, "it is not a log, or its header is damaged");
	const uint8_t *records = data + MAGIC_SIZE + sizeof(struct batch);
	size_t len = record_len(records, n - sizeof(struct batch));
	if (len == SIZE_MAX)
		return err_set(err, -ENOMSG, "it is not a log, or its header is damaged");
	*ret_end = MAGIC_SIZE + n;
	return check_head(head, records + sizeof(uint32_t), len, err);
}

int reclog_parse(const void *data, size_t size, const struct reclog_head *head, reclog_each each,
		 void *arg, struct err *err)
{
	const uint8_t *bytes = data;
	size_t at = 0, n = 0;
	int r = parse_head(bytes, size, head, &at, err);
	while (!r) {
		enum found found = look_at(bytes, size, at, &n);
		if (found == FOUND_END)
			return 0;
		if (found == FOUND_DAMAGE)
			return err_set(err, -EBADMSG, "it is damaged from byte %zu of %zu", at,
				       size);
		const uint8_t *records = bytes + at + sizeof(struct batch);
		r = each_record(records, n - sizeof(struct batch), each, arg, err);
		at += n;
	}
	return r;
}

/* ---- writing --------------------------------------------------------------------------------- */

int reclog_init(struct reclog *l, const char *path, const struct reclog_head *head, size_t size_max)
{
	assert(strlen(head->origin) < RECLOG_ORIGIN_MAX && head->format);
	*l = (struct reclog){.head = head, .size_max = size_max, .fd = -1, .next_fd = -1};
	l->path = strdup(path);
	return l->path ? 0 : -ENOMEM;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(take_fd(fd));
}

void reclog_close(struct reclog *l)
{
	close_fd(&l->fd);
	l->size = l->new_size = 0;
}

static void new_path(const struct reclog *l, char ret[4096])
{
	(void)snprintf(ret, 4096, "%s" NEW, l->path);
}

void reclog_drop(struct reclog *l)
{
	char path[4096];
	buf_reset(&l->batch);
	buf_shrink(&l->batch, KEEP);
	l->batch.failed = 0;
	if (l->next_fd < 0)
		return;
	new_path(l, path);
	(void)unlink(path);
	close_fd(&l->next_fd);
}

void reclog_fini(struct reclog *l)
{
	if (l->path)
		reclog_drop(l);
	reclog_close(l);
	buf_fini(&l->batch);
	free(l->path);
	*l = (struct reclog){.fd = -1, .next_fd = -1};
}

bool reclog_is_long(const struct reclog *l)
{
	return l->fd >= 0 && l->size > LONG_MIN && l->size / 2 > l->new_size;
}

/* Adds a record to the batch, whose head is filled when it is written. */
static int add_record(struct reclog *l, const void *record, size_t len)
{
	struct batch room = {0};
	uint32_t n = (uint32_t)len;
	if (len > RECLOG_RECORD_MAX)
		return -E2BIG;
	if (!buf_len(&l->batch))
		(void)buf_add(&l->batch, &room, sizeof room);
	(void)buf_add(&l->batch, &n, sizeof n);
	(void)buf_add(&l->batch, record, len);
	return l->batch.failed;
}

static int write_all(int fd, const uint8_t *data, size_t len)
{
	ssize_t n = write(fd, data, len);
	if (n == (ssize_t)len)
		return 0;
	return n < 0 ? -errno : -ENOSPC;
}

/* Writes the records added so far as one batch at the end of one of the two files. */
static int write_batch(struct reclog *l, int fd, size_t *size)
{
	assert(fd >= 0 && *size <= l->size_max);
	size_t len = buf_len(&l->batch);
	if (l->batch.failed)
		return l->batch.failed;
	if (len < sizeof(struct batch))
		return 0;
	if (len > l->size_max - *size)
		return -EFBIG;
	uint8_t *bytes = l->batch.data + l->batch.start;
	struct batch b = {.size = (uint32_t)(len - sizeof b)};
	b.sum = crc32c(0, bytes + sizeof b, b.size);
	b.head_sum = head_sum_of(&b, *size);
	memcpy(bytes, &b, sizeof b);
	int r = write_all(fd, bytes, len);
	if (r)
		return r;
	*size += len;
	buf_reset(&l->batch);
	return 0;
}

int reclog_put(struct reclog *l, const void *record, size_t len)
{
	int r = l->batch.failed ? l->batch.failed : add_record(l, record, len);
	if (!r && l->next_fd >= 0 && buf_len(&l->batch) > PIECE)
		r = write_batch(l, l->next_fd, &l->next_size);
	if (r)
		l->batch.failed = r;
	return r;
}

static int begin_file(struct reclog *l)
{
	assert(l->next_fd >= 0 && !buf_len(&l->batch));
	const struct reclog_head *h = l->head;
	struct buf record = BUF_INIT;
	(void)buf_add(&record, &h->format, sizeof h->format);
	(void)buf_add(&record, h->kind, strlen(h->kind) + 1);
	(void)buf_add(&record, h->origin, strlen(h->origin) + 1);
	(void)buf_add(&record, h->version, strlen(h->version) + 1);
	int r = record.failed;
	if (!r)
		r = write_all(l->next_fd, (const uint8_t *)MAGIC, MAGIC_SIZE);
	l->next_size = MAGIC_SIZE;
	if (!r)
		r = add_record(l, buf_bytes(&record), buf_len(&record));
	if (!r)
		r = write_batch(l, l->next_fd, &l->next_size);
	buf_fini(&record);
	return r;
}

int reclog_begin_anew(struct reclog *l, struct err *err)
{
	char path[4096];
	reclog_drop(l);
	new_path(l, path);
	(void)unlink(path);
	l->next_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
			  FILE_MODE);
	int r = l->next_fd < 0 ? -errno : begin_file(l);
	if (!r)
		return 0;
	reclog_drop(l);
	return err_errno(err, r, "cannot write %s", path);
}

static int commit_anew(struct reclog *l)
{
	assert(l->next_fd >= 0);
	char path[4096];
	int r = write_batch(l, l->next_fd, &l->next_size);
	new_path(l, path);
	if (!r && rename(path, l->path) < 0)
		r = -errno;
	if (r)
		return r;
	close_fd(&l->fd);
	l->fd = take_fd(&l->next_fd);
	l->size = l->new_size = l->next_size;
	return 0;
}

static int commit_more(struct reclog *l)
{
	int r = l->fd < 0 ? -EBADF : write_batch(l, l->fd, &l->size);
	/* Remove a partial batch, which would be damage in the middle of the file. */
	if (r && l->fd >= 0 && ftruncate(l->fd, (off_t)l->size) < 0)
		reclog_close(l);
	return r;
}

int reclog_commit(struct reclog *l, struct err *err)
{
	if (l->next_fd < 0 && !buf_len(&l->batch) && !l->batch.failed)
		return 0;
	int r = l->next_fd >= 0 ? commit_anew(l) : commit_more(l);
	reclog_drop(l);
	return r ? err_errno(err, r, "cannot write %s", l->path) : 0;
}
