/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Below "/" a path is opened directly. Below any other root the kernel's openat2 keeps links
 * inside. Without openat2 the path is walked here, which is slower and, unlike openat2, not safe if
 * the tree is changed at the same time.
 */
#include "core/lib/util/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define LINKS_MAX 40 /* largest number of links followed within one path, as in the kernel */
#define LIST_MEMORY_MAX (64u << 20) /* largest memory for the names in one directory, in bytes */
#define PIECE_MIN 2048 /* the kernel returns long files in pieces of a page */

static const char *fs_relative(const char *path)
{
	while (*path == '/')
		path++;
	return *path ? path : ".";
}

static int open_in_root(int root, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(unsigned)flags, .resolve = RESOLVE_IN_ROOT};
	long fd;
	do {
		fd = syscall(SYS_openat2, root, path, &how, sizeof how);
	} while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	return fd < 0 ? -errno : (int)fd;
}

int fs_root_open(struct fs_root *root, const char *path, struct err *err)
{
	_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, -errno, "cannot open the root folder %s", path);
	struct stat st, real;
	if (fstat(fd, &st) < 0 || stat("/", &real) < 0)
		return err_errno(err, -errno, "cannot examine the root folder %s", path);
	_free_ char *copy = strdup(path);
	if (!copy)
		return err_errno(err, -ENOMEM, "cannot open the root folder %s", path);
	_close_ int probe = open_in_root(fd, ".", O_PATH | O_CLOEXEC);
	*root = (struct fs_root){
		.real = st.st_dev == real.st_dev && st.st_ino == real.st_ino,
		.walk = probe == -ENOSYS,
	};
	root->fd = take_fd(&fd);
	root->path = TAKE(copy);
	return 0;
}

void fs_root_close(struct fs_root *root)
{
	if (root->fd >= 0)
		(void)close(root->fd);
	free(root->path);
	*root = (struct fs_root){.fd = -1};
}

/* ---- walking without openat2 ----------------------------------------------------------------- */

struct walk {
	const struct fs_root *root;
	char done[PATH_MAX]; /* canonical, without a leading slash; "" is the root */
	char rest[PATH_MAX]; /* part of the path that is not resolved yet */
	unsigned n_links;
};

static int walk_up(struct walk *w)
{
	struct stat st;
	if (!w->done[0])
		return 0;
	if (fstatat(w->root->fd, w->done, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	char *slash = strrchr(w->done, '/');
	*(slash ? slash : w->done) = '\0';
	return 0;
}

/* Replaces the last part of w->done, a link, by its target. */
static int walk_link(struct walk *w, char *target)
{
	char rest[PATH_MAX];
	if (++w->n_links > LINKS_MAX)
		return -ELOOP;
	int n = snprintf(rest, sizeof rest, "%s/%s", target, w->rest);
	if (n < 0 || (size_t)n >= sizeof rest)
		return -ENAMETOOLONG;
	memcpy(w->rest, rest, (size_t)n + 1);
	char *slash = target[0] == '/' ? NULL : strrchr(w->done, '/');
	*(slash ? slash : w->done) = '\0';
	return 0;
}

static int walk_part(struct walk *w, const char *name, size_t n, bool follow)
{
	size_t len = strlen(w->done);
	if (len + 1 + n >= sizeof w->done)
		return -ENAMETOOLONG;
	if (len)
		w->done[len++] = '/';
	memcpy(w->done + len, name, n);
	w->done[len + n] = '\0';
	if (!follow)
		return 0;
	char target[PATH_MAX];
	ssize_t r = readlinkat(w->root->fd, w->done, target, sizeof target - 1);
	if (r < 0)
		return errno == EINVAL ? 0 : -errno; /* EINVAL: not a link */
	target[r] = '\0';
	return walk_link(w, target);
}

/* Resolves path into w->done. The last part may be missing; if it is a link and !follow_last, it is
 * not followed. */
static int fs_walk(struct walk *w, const struct fs_root *root, const char *path, bool follow_last)
{
	w->root = root;
	w->n_links = 0;
	w->done[0] = '\0';
	if (strlen(path) >= sizeof w->rest)
		return -ENAMETOOLONG;
	memcpy(w->rest, path, strlen(path) + 1);
	for (;;) {
		size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/");
		if (!n)
			return 0;
		char part[NAME_MAX + 1];
		if (n >= sizeof part)
			return -ENAMETOOLONG;
		memcpy(part, w->rest + skip, n);
		part[n] = '\0';
		memmove(w->rest, w->rest + skip + n, strlen(w->rest + skip + n) + 1);
		int r = 0;
		if (str_eq(part, ".."))
			r = walk_up(w);
		else if (!str_eq(part, "."))
			r = walk_part(w, part, n, follow_last || w->rest[0]);
		if (r)
			return r;
	}
}

int fs_realpath(const struct fs_root *root, const char *path, char *buf, size_t size)
{
	struct walk w;
	int r = fs_walk(&w, root, path, true);
	if (r)
		return r;
	size_t len = strlen(w.done);
	if (len >= size)
		return -ENAMETOOLONG;
	memcpy(buf, w.done, len + 1);
	return 0;
}

static int open_walked(const struct fs_root *root, const char *path, int flags)
{
	struct walk w;
	int r = fs_walk(&w, root, path, !(flags & O_NOFOLLOW));
	if (r)
		return r;
	int fd = openat(root->fd, w.done[0] ? w.done : ".", flags | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int open_below(const struct fs_root *root, const char *path, int flags)
{
	flags |= O_CLOEXEC;
	path = fs_relative(path);
	if (root->real) {
		int fd = openat(root->fd, path, flags);
		return fd < 0 ? -errno : fd;
	}
	return root->walk ? open_walked(root, path, flags) : open_in_root(root->fd, path, flags);
}

int fs_open_dir(const struct fs_root *root, const char *path)
{
	return open_below(root, path, O_RDONLY | O_DIRECTORY);
}

int fs_open(const struct fs_root *root, const char *path, int flags)
{
	return open_below(root, path, flags);
}

static ssize_t end_text(char *buf, size_t len, size_t size)
{
	if (len == size)
		return -EFBIG;
	if (len && buf[len - 1] == '\n')
		len--;
	buf[len] = '\0';
	return (ssize_t)len;
}

/* Returns true if a further read is needed after n bytes. Files of the kernel end with a newline
 * and mostly come in one piece, which saves the read that would return 0. A read that was cut short
 * ends anywhere. */
static bool may_go_on(ssize_t n, const char *buf, size_t len, size_t size)
{
	return n > 0 && len < size && (n >= PIECE_MIN || buf[len - 1] != '\n');
}

/* Reads from the position of the file, or from its beginning. */
static ssize_t read_text(int fd, char *buf, size_t size, bool beginning)
{
	size_t len = 0;
	ssize_t n;
	do {
		n = beginning ? pread(fd, buf + len, size - len, (off_t)len)
			      : read(fd, buf + len, size - len);
		if (n < 0)
			return -errno;
		len += (size_t)n;
	} while (may_go_on(n, buf, len, size));
	return end_text(buf, len, size);
}

ssize_t fs_read_from(int fd, char *buf, size_t size)
{
	return read_text(fd, buf, size, true);
}

ssize_t fs_read_at(int dirfd, const char *path, char *buf, size_t size)
{
	_close_ int fd = openat(dirfd, fs_relative(path), O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : read_text(fd, buf, size, false);
}

ssize_t fs_read(const struct fs_root *root, const char *path, char *buf, size_t size)
{
	_close_ int fd = open_below(root, path, O_RDONLY);
	return fd < 0 ? fd : read_text(fd, buf, size, false);
}

int fs_read_all(const struct fs_root *root, const char *path, size_t limit, char **ret,
		size_t *ret_len)
{
	_close_ int fd = open_below(root, path, O_RDONLY);
	if (fd < 0)
		return fd;
	_cleanup_(buf_fini) struct buf b = BUF_INIT;
	ssize_t n;
	do {
		uint8_t *to = buf_reserve(&b, 4096);
		if (!to)
			return -ENOMEM;
		n = read(fd, to, 4096);
		if (n < 0)
			return -errno;
		buf_commit(&b, (size_t)n);
		if (buf_len(&b) > limit)
			return -EFBIG;
	} while (n);
	b.data[b.end] = 0; /* read() left room: it returned 0 for 4096 */
	*ret_len = buf_len(&b);
	*ret = (char *)TAKE(b.data);
	return 0;
}

static int parse_i64(const char *text, ssize_t len, int64_t *ret)
{
	return len < 0 ? (int)len : str_to_i64(text, ret);
}

int fs_read_i64(const struct fs_root *root, const char *path, int64_t *ret)
{
	char text[32];
	return parse_i64(text, fs_read(root, path, text, sizeof text), ret);
}

int fs_read_i64_at(int dirfd, const char *path, int64_t *ret)
{
	char text[32];
	return parse_i64(text, fs_read_at(dirfd, path, text, sizeof text), ret);
}

static int parse_ids(const char *text, ssize_t len, uint32_t max, struct rp_idset *ret)
{
	struct rp_idset set;
	if (len < 0)
		return (int)len;
	if (rp_idset_parse(&set, text, max))
		return -EINVAL;
	rp_idset_copy(ret, rp_ids_of(&set));
	return 0;
}

int fs_read_ids(const struct fs_root *root, const char *path, uint32_t max, struct rp_idset *ret)
{
	char text[RP_IDSET_TEXT_MAX];
	return parse_ids(text, fs_read(root, path, text, sizeof text), max, ret);
}

int fs_read_ids_at(int dirfd, const char *path, uint32_t max, struct rp_idset *ret)
{
	char text[RP_IDSET_TEXT_MAX];
	return parse_ids(text, fs_read_at(dirfd, path, text, sizeof text), max, ret);
}

bool fs_has_sysfs(const struct fs_root *root)
{
	struct statfs st;
	_close_ int fd = fs_open(root, "sys", O_PATH | O_DIRECTORY);
	return fd >= 0 && fstatfs(fd, &st) == 0 && st.f_type == SYSFS_MAGIC;
}

bool fs_exists(const struct fs_root *root, const char *path)
{
	_close_ int fd = open_below(root, path, O_PATH);
	return fd >= 0;
}

int fs_write(const struct fs_root *root, const char *path, const char *text)
{
	_close_ int fd = open_below(root, path, O_WRONLY | O_TRUNC);
	if (fd < 0)
		return fd;
	size_t len = strlen(text);
	ssize_t n = write(fd, text, len);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

/* Opens the directory with the last part of path, and copies that part. */
static int open_parent(const struct fs_root *root, const char *path, char name[NAME_MAX + 1])
{
	char parent[PATH_MAX];
	size_t len = strlen(path);
	while (len && path[len - 1] == '/')
		len--;
	size_t start = len;
	while (start && path[start - 1] != '/')
		start--;
	if (start == len)
		return -EINVAL;
	if (len - start > NAME_MAX || start >= sizeof parent)
		return -ENAMETOOLONG;
	memcpy(name, path + start, len - start);
	name[len - start] = '\0';
	if (str_eq(name, ".") || str_eq(name, ".."))
		return -EINVAL;
	memcpy(parent, path, start);
	parent[start] = '\0';
	return open_below(root, parent, O_PATH | O_DIRECTORY);
}

int fs_mkdir(const struct fs_root *root, const char *path, mode_t mode)
{
	char name[NAME_MAX + 1];
	_close_ int fd = open_parent(root, path, name);
	if (fd < 0)
		return fd;
	return mkdirat(fd, name, mode) < 0 ? -errno : 0;
}

int fs_rmdir(const struct fs_root *root, const char *path)
{
	char name[NAME_MAX + 1];
	_close_ int fd = open_parent(root, path, name);
	if (fd < 0)
		return fd;
	return unlinkat(fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

ssize_t fs_readlink(const struct fs_root *root, const char *path, char *buf, size_t size)
{
	_close_ int fd = open_below(root, path, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	ssize_t n = readlinkat(fd, "", buf, size);
	if (n < 0)
		return errno == ENOENT ? -EINVAL : -errno; /* ENOENT: exists, but is not a link */
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	return n;
}

/* ---- listing --------------------------------------------------------------------------------- */

static int cmp_names(const void *a, const void *b)
{
	return str_cmp_natural(*(char *const *)a, *(char *const *)b);
}

/* Collects pointers to the names, which are in the arena. */
static int collect_names(DIR *dir, struct arena *arena, struct buf *names)
{
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(dir);
		if (!entry)
			return -errno;
		if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
			continue;
		char *name = arena_strdup(arena, entry->d_name);
		if (!name)
			return -ENOMEM;
		int r = buf_add(names, &name, sizeof name);
		if (r)
			return r;
	}
}

int fs_list(const struct fs_root *root, const char *path, int (*fn)(const char *name, void *arg),
	    void *arg)
{
	_close_ int fd = fs_open_dir(root, path);
	if (fd < 0)
		return fd;
	_closedir_ DIR *dir = fdopendir(fd);
	_arena_ struct arena *arena = arena_new(16384, LIST_MEMORY_MAX);
	_cleanup_(buf_fini) struct buf names = BUF_INIT;
	if (!dir || !arena)
		return -ENOMEM;
	(void)take_fd(&fd); /* closedir closes it */
	int r = collect_names(dir, arena, &names);
	if (r)
		return r;
	char **name = (char **)(void *)names.data;
	size_t n = buf_len(&names) / sizeof *name;
	if (n)
		qsort(name, n, sizeof *name, cmp_names);
	for (size_t i = 0; i < n && !r; i++)
		r = fn(name[i], arg);
	return r;
}

/* ---- changing the real system ---------------------------------------------------------------- */

int fs_write_all(int fd, const void *bytes, size_t len)
{
	const char *data = bytes;
	while (len) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int sync_folder_of(const char *path)
{
	char folder[PATH_MAX];
	fs_parent(path, folder, sizeof folder);
	_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fsync(fd) < 0 ? -errno : 0;
}

static int fill_and_rename(int fd, const char *tmp, const char *path, const void *data, size_t len,
			   mode_t mode, bool sync)
{
	int r = fs_write_all(fd, data, len);
	if (r)
		return r;
	if (fchmod(fd, mode) < 0 || (sync && fsync(fd) < 0) || rename(tmp, path) < 0)
		return -errno;
	return sync ? sync_folder_of(path) : 0;
}

int fs_replace(const char *path, const void *data, size_t len, mode_t mode, bool sync,
	       struct err *err)
{
	_free_ char *tmp = str_printf("%s.XXXXXX", path);
	if (!tmp)
		return err_errno(err, -ENOMEM, "cannot write %s", path);
	_close_ int fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, -errno, "cannot create a temporary file for %s", path);
	int r = fill_and_rename(fd, tmp, path, data, len, mode, sync);
	if (r) {
		(void)unlink(tmp);
		return err_errno(err, r, "cannot write %s", path);
	}
	return 0;
}

/* Returns true for "NAME.XXXXXX" as created by mkostemp(). Six lower-case letters are more likely a
 * word, and the name of another file. */
static bool is_leftover(const char *entry, const char *name)
{
	static const char digits[] = "0123456789", upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
			  lower[] = "abcdefghijklmnopqrstuvwxyz";
	size_t len = strlen(name), rest;
	if (strncmp(entry, name, len) != 0 || entry[len] != '.')
		return false;
	entry += len + 1;
	rest = strlen(entry);
	if (rest != 6 || strspn(entry, lower) == rest)
		return false;
	while (*entry && (strchr(digits, *entry) || strchr(upper, *entry) || strchr(lower, *entry)))
		entry++;
	return !*entry;
}

unsigned fs_remove_leftovers(const char *path)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	unsigned n = 0;
	struct stat st;
	fs_parent(path, dir, sizeof dir);
	DIR *d = slash ? opendir(dir) : NULL;
	for (const struct dirent *e; d && (e = readdir(d));) {
		if (!is_leftover(e->d_name, slash + 1) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode) || st.st_uid != geteuid())
			continue;
		n += unlinkat(dirfd(d), e->d_name, 0) == 0;
	}
	if (d)
		(void)closedir(d);
	return n;
}

/* Opens a file of the daemon's own and returns descriptor and size. `flags` as of open(2). */
static int fs_open_own(const char *path, int flags, size_t *ret_size, struct err *err)
{
	struct stat st;
	_close_ int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 && errno == ELOOP)
		return err_set(err, -EPERM, "%s is a symbolic link", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot open %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EPERM, "%s is not a regular file", path);
	if (st.st_uid != geteuid())
		return err_set(err, -EPERM, "%s is owned by user %u", path, st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, -EPERM, "%s is writable by other users (mode %04o)", path,
			       st.st_mode & 07777u);
	*ret_size = (size_t)st.st_size;
	return take_fd(&fd);
}

int fs_read_own(const char *path, size_t limit, char **ret, size_t *ret_len, struct err *err)
{
	size_t size = 0, len = 0;
	_close_ int fd = fs_open_own(path, O_RDONLY, &size, err);
	if (fd < 0)
		return fd;
	if (size > limit)
		return err_set(err, -EFBIG, "%s has %zu bytes, more than %zu", path, size, limit);
	_free_ char *data = malloc(size + 1);
	if (!data)
		return err_errno(err, -ENOMEM, "cannot read %s", path);
	while (len < size) {
		ssize_t n = read(fd, data + len, size - len);
		if (n < 0 && errno != EINTR)
			return err_errno(err, -errno, "cannot read %s", path);
		if (n == 0) /* the file was truncated */
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	data[len] = '\0';
	*ret = TAKE(data);
	*ret_len = len;
	return 0;
}

void fs_parent(const char *path, char *ret, size_t size)
{
	const char *slash = strrchr(path, '/');
	int len = slash && slash != path ? (int)(slash - path) : 1;
	(void)snprintf(ret, size, "%.*s", len, slash ? path : ".");
}

/* Creates a directory with that mode, regardless of the umask. */
static int make_folder(const char *path, mode_t mode)
{
	if (mkdir(path, mode) < 0)
		return errno == EEXIST ? 0 : -errno;
	_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}

int fs_mkdirs(const char *path, mode_t mode, struct err *err)
{
	_free_ char *part = strdup(path);
	if (!part)
		return err_errno(err, -ENOMEM, "cannot create the folder %s", path);
	for (char *p = part + strspn(part, "/");;) {
		p += strcspn(p, "/");
		char c = *p;
		*p = '\0';
		int r = make_folder(part, mode);
		if (r)
			return err_errno(err, r, "cannot create the folder %s", part);
		*p = c;
		p += strspn(p, "/");
		if (!*p)
			break;
	}
	struct stat st;
	if (stat(path, &st) < 0)
		return err_errno(err, -errno, "cannot create the folder %s", path);
	if (!S_ISDIR(st.st_mode))
		return err_errno(err, -ENOTDIR, "cannot create the folder %s", path);
	return 0;
}
