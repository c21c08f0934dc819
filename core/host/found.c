/* SPDX-License-Identifier: Apache-2.0 */
#include "core/host/found.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nri-rp/host.h>

#include "core/cache/crc32c.h"
#include "core/util/cleanup.h"
#include "core/util/fs.h"
#include "core/util/str.h"

#define MAGIC "nrirpfd1" /* the last character is the version */
#define MAGIC_SIZE (sizeof MAGIC - 1)
#define LONG_AT ((size_t)1 << 20)
#define FILE_MODE 0600
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

enum kind { ORIGIN = 1, FOUND, PUT_BACK };

/* As this machine has its numbers: nobody else reads them. */
struct record {
	uint32_t sum; /* of all that follows */
	uint16_t kind, path_len, value_len, zero;
};

struct found {
	char *path, *origin;
	int fd; /* -1: not written yet, or not to be added to */
	size_t size, long_at;
};

/* ---- records ----------------------------------------------------------------------------------------------------- */

static bool is_line(const char *text)
{
	for (const unsigned char *s = (const unsigned char *)text; *s; s++)
		if (*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

bool found_storable(const char *path, const char *value)
{
	size_t len = strlen(path);
	return (str_has_prefix(path, "/sys/devices/system/") ||
		str_has_prefix(path, "/proc/irq/")) &&
	       len < RP_SETTING_PATH_MAX && path[len - 1] != '/' && !strstr(path, "//") &&
	       !strstr(path, "/.") && is_line(path) && strlen(value) < RP_SETTING_MAX &&
	       is_line(value);
}

static uint32_t sum_of(const struct record *r, const void *texts)
{
	uint32_t sum = crc32c(0, &r->kind, sizeof *r - offsetof(struct record, kind));
	return crc32c(sum, texts, (size_t)r->path_len + r->value_len);
}

static int add(struct buf *b, enum kind kind, const char *path, const char *value)
{
	struct record r = {.kind = (uint16_t)kind,
			   .path_len = (uint16_t)strlen(path),
			   .value_len = (uint16_t)strlen(value)};
	uint8_t *at = buf_reserve(b, sizeof r + r.path_len + r.value_len);
	if (!at)
		return -ENOMEM;
	memcpy(at + sizeof r, path, r.path_len);
	memcpy(at + sizeof r + r.path_len, value, r.value_len);
	r.sum = sum_of(&r, at + sizeof r);
	memcpy(at, &r, sizeof r);
	buf_commit(b, sizeof r + r.path_len + r.value_len);
	return 0;
}

int found_add(struct buf *records, const char *path, const char *value)
{
	return add(records, value ? FOUND : PUT_BACK, path, value ? value : "");
}

struct text {
	uint16_t kind;
	char path[RP_SETTING_PATH_MAX], value[RP_SETTING_MAX];
};

/* The bytes of one; 0: there is no sound one. */
static size_t take(const uint8_t *data, size_t size, struct text *ret)
{
	struct record r;
	if (size < sizeof r)
		return 0;
	memcpy(&r, data, sizeof r);
	size_t len = sizeof r + r.path_len + r.value_len;
	if (r.path_len >= sizeof ret->path || r.value_len >= sizeof ret->value || len > size ||
	    r.sum != sum_of(&r, data + sizeof r))
		return 0;
	memcpy(ret->path, data + sizeof r, r.path_len);
	memcpy(ret->value, data + sizeof r + r.path_len, r.value_len);
	ret->path[r.path_len] = ret->value[r.value_len] = '\0';
	ret->kind = r.kind;
	return strlen(ret->path) == r.path_len && strlen(ret->value) == r.value_len ? len : 0;
}

static int each_record(const uint8_t *data, size_t size, const char *origin, struct text *t,
		       found_each each, void *arg)
{
	size_t n = size < MAGIC_SIZE || memcmp(data, MAGIC, MAGIC_SIZE) != 0 ? 0 : MAGIC_SIZE;
	size_t at = n ? n + take(data + n, size - n, t) : 0;
	if (at == n || t->kind != ORIGIN)
		return -EBADMSG;
	if (!str_eq(t->value, origin))
		return -ESTALE;
	while (at < size) {
		n = take(data + at, size - at, t);
		if (!n || (t->kind != FOUND && t->kind != PUT_BACK) ||
		    !found_storable(t->path, t->value))
			return -EBADMSG;
		int r = each(arg, t->path, t->kind == FOUND ? t->value : NULL);
		if (r)
			return r;
		at += n;
	}
	return 0;
}

int found_decode(const void *data, size_t size, const char *origin, found_each each, void *arg)
{
	_free_ struct text *t = malloc(sizeof *t);
	return t ? each_record(data, size, origin, t, each, arg) : -ENOMEM;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* -ENOENT: there is none. */
static int open_to_read(const char *path, size_t *ret_size, struct err *err)
{
	struct stat st;
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT ? -ENOENT : err_errno(err, -errno, "%s", path);
	if (fstat(fd, &st) < 0)
		return err_errno(err, -errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EPERM, "%s is not a regular file", path);
	if (st.st_uid != geteuid() || (st.st_mode & OTHERS_WRITE))
		return err_set(err, -EPERM, "others may write to %s (owner %u, mode %04o)", path,
			       st.st_uid, st.st_mode & 07777u);
	if (st.st_size < 0 || (size_t)st.st_size > FOUND_FILE_MAX)
		return err_set(err, -EFBIG, "%s is larger than %zu MiB", path,
			       FOUND_FILE_MAX >> 20);
	*ret_size = (size_t)st.st_size;
	return take_fd(&fd);
}

static int read_all(int fd, void *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = pread(fd, (char *)data + at, size - at, (off_t)at);
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		at += (size_t)n;
	}
	return 0;
}

static int read_file(const char *path, const char *origin, found_each each, void *arg,
		     struct err *err)
{
	size_t size = 0;
	_close_ int fd = open_to_read(path, &size, err);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	_free_ void *data = malloc(size + 1);
	int r = data ? read_all(fd, data, size) : -ENOMEM;
	if (!r)
		r = found_decode(data, size, origin, each, arg);
	if (r == -EBADMSG)
		return err_set(err, r, "%s is damaged", path);
	return !r || r == -ESTALE ? 0 : err_errno(err, r, "%s", path);
}

int found_open(const char *path, const char *origin, found_each each, void *arg, struct found **ret,
	       struct err *why)
{
	struct found *f = calloc(1, sizeof *f);
	if (!f)
		return -ENOMEM;
	f->fd = -1;
	f->path = strdup(path);
	f->origin = strdup(origin);
	if (!f->path || !f->origin || strlen(origin) >= RP_SETTING_MAX) {
		found_close(f);
		return -ENOMEM;
	}
	(void)read_file(path, origin, each, arg, why);
	*ret = f;
	return 0;
}

struct found *found_close(struct found *f)
{
	if (!f)
		return NULL;
	if (f->fd >= 0)
		(void)close(f->fd);
	free(f->path);
	free(f->origin);
	free(f);
	return NULL;
}

int found_replace(struct found *f, const struct buf *records)
{
	struct buf all = BUF_INIT;
	(void)buf_add(&all, MAGIC, MAGIC_SIZE);
	int r = add(&all, ORIGIN, "", f->origin);
	if (!r)
		r = buf_add(&all, buf_bytes(records), buf_len(records));
	size_t size = buf_len(&all);
	if (!r && all.failed)
		r = all.failed;
	if (!r && size > FOUND_FILE_MAX)
		r = -EFBIG;
	if (!r)
		r = fs_replace(f->path, buf_bytes(&all), size, FILE_MODE, false, NULL);
	buf_fini(&all);
	if (r)
		return r;
	if (f->fd >= 0) /* the one before, whatever comes of this: it has no name any more */
		(void)close(take_fd(&f->fd));
	f->fd = open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
	if (f->fd < 0)
		return -errno;
	f->size = size;
	f->long_at = size * 2 > LONG_AT ? size * 2 : LONG_AT;
	return 0;
}

int found_append(struct found *f, const char *path, const char *value)
{
	struct buf b = BUF_INIT;
	int r = f->fd < 0 ? -EBADF : found_add(&b, path, value);
	size_t n = buf_len(&b);
	if (!r && f->size + n > FOUND_FILE_MAX)
		r = -EFBIG;
	ssize_t written = r ? 0 : write(f->fd, buf_bytes(&b), n);
	if (!r && written != (ssize_t)n) {
		r = written < 0 ? -errno : -ENOSPC;
		if (ftruncate(f->fd, (off_t)f->size) < 0) /* half a record would be its end */
			(void)close(take_fd(&f->fd));
	}
	buf_fini(&b);
	f->size += r ? 0 : n;
	return r;
}

bool found_is_long(const struct found *f)
{
	return f->size > f->long_at;
}
