/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cache/store_internal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "core/util/cleanup.h"
#include "core/util/fs.h"
#include "core/util/log.h"
#include "core/util/loop.h"
#include "core/util/str.h"

#define LOG_SOURCE "store"
#define DIR_MODE 0710
#define FILE_MODE 0600
#define LOCK_TRIES 200u
#define LOCK_PAUSE_US 10000u
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)
#define NAME_ROOM 80u /* store.bad.TIME and its journal */
#define COPY_CHUNK ((size_t)64 << 10)

void store_dir_path(const struct store_dir *d, const char *name, char ret[STORE_PATH_MAX])
{
	(void)snprintf(ret, STORE_PATH_MAX, "%s/%s", d->path, name);
}

/* The name without slashes at its end, with which open(2) would follow a link. */
static char *trimmed(const char *path)
{
	char *copy = strdup(path);
	size_t n = copy ? strlen(copy) : 0;
	while (n > 1 && copy[n - 1] == '/')
		copy[--n] = '\0';
	return copy;
}

static int check_owner(const struct store_dir *d, struct stat *st, struct err *err)
{
	if (fstat(d->fd, st) < 0)
		return err_errno(err, -errno, "cannot look at the state directory %s", d->path);
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return err_set(
			err, -EPERM,
			"the state directory %s belongs to user %u; it has to be ours or root's",
			d->path, st->st_uid);
	return 0;
}

static int check_modes(const struct store_dir *d, struct err *err)
{
	struct stat st;
	int r = check_owner(d, &st, err);
	if (r)
		return r;
	if (st.st_mode & OTHERS_WRITE) {
		if (fchmod(d->fd, DIR_MODE) < 0)
			return err_errno(err, -errno,
					 "others may write to the state directory %s, and that "
					 "cannot be changed",
					 d->path);
		log_warning(
			"others could write to the state directory %s (mode %04o); it is %04o now",
			d->path, st.st_mode & 07777u, DIR_MODE);
	} else if (st.st_mode & 0777 & ~(mode_t)DIR_MODE) {
		log_info("the state directory %s has mode %04o, %04o would do", d->path,
			 st.st_mode & 07777u, DIR_MODE);
	}
	return 0;
}

static int lock_holder(int fd)
{
	char text[32];
	int64_t pid;
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return str_to_i64(text, &pid) || pid < 1 || pid > INT32_MAX ? 0 : (int)pid;
}

/* A predecessor that was killed may have left a child that has its lock until it notices. */
static int lock_patiently(int fd)
{
	for (unsigned i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == LOCK_TRIES)
			return -errno;
		(void)usleep(LOCK_PAUSE_US);
	}
	return 0;
}

static int take_lock(struct store_dir *d, struct err *err)
{
	char pid[32];
	_close_ int fd = openat(d->fd, STORE_FILE_LOCK,
				O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK,
				FILE_MODE);
	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s/" STORE_FILE_LOCK, d->path);
	int r = lock_patiently(fd);
	if (r && r != -EWOULDBLOCK)
		return err_errno(err, r, "cannot lock %s/" STORE_FILE_LOCK, d->path);
	if (r) {
		int holder = lock_holder(fd);
		if (holder)
			return err_set(err, -EBUSY,
				       "another instance (pid %d) uses the state directory %s; "
				       "stop it, or give this one a directory of its own",
				       holder, d->path);
		return err_set(err, -EBUSY,
			       "another instance uses the state directory %s; stop it, or give "
			       "this one a directory of its own",
			       d->path);
	}
	/* for the message above alone, so a full disk does not matter */
	int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
		log_info("cannot write the pid to %s/" STORE_FILE_LOCK, d->path);
	d->lock_fd = take_fd(&fd);
	return 0;
}

/* -ENOENT without a word: there is none. */
static int open_dir(struct store_dir *d, const char *path, struct err *err)
{
	d->path = trimmed(path);
	if (!d->path)
		return err_set(err, -ENOMEM, "out of memory");
	d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->fd >= 0)
		return 0;
	if (errno == ELOOP || errno == ENOTDIR)
		return err_set(
			err, -ENOTDIR,
			"the state directory %s is a link or a file; it has to be a directory",
			d->path);
	return errno == ENOENT
		       ? -ENOENT
		       : err_errno(err, -errno, "cannot open the state directory %s", d->path);
}

int store_dir_open(struct store_dir *d, const char *path, struct err *err)
{
	*d = (struct store_dir){.fd = -1, .lock_fd = -1};
	if (strlen(path) > STORE_PATH_MAX - 64)
		return err_set(err, -ENAMETOOLONG, "the name of the state directory is too long");
	int r = fs_mkdirs(path, DIR_MODE, err);
	if (r)
		return r;
	r = open_dir(d, path, err);
	if (r == -ENOENT)
		r = err_errno(err, r, "cannot open the state directory %s", d->path);
	if (!r)
		r = check_modes(d, err);
	if (!r)
		r = take_lock(d, err);
	if (r)
		store_dir_close(d);
	return r;
}

void store_dir_close(struct store_dir *d)
{
	if (d->lock_fd >= 0)
		(void)close(d->lock_fd);
	if (d->fd >= 0)
		(void)close(d->fd);
	free(d->path);
	*d = (struct store_dir){.fd = -1, .lock_fd = -1};
}

static int check_file(const struct store_dir *d, const char *name, const char *what,
		      struct err *err)
{
	struct stat st;
	if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -ENOENT
				       : err_errno(err, -EPERM, "cannot look at %s", what);
	if (S_ISLNK(st.st_mode))
		return err_set(err, -EPERM, "%s is a symbolic link", what);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EPERM, "%s is not a regular file", what);
	if (st.st_uid != geteuid())
		return err_set(err, -EPERM, "%s belongs to user %u", what, st.st_uid);
	if (st.st_mode & OTHERS_WRITE)
		return err_set(err, -EPERM, "others may write to %s (mode %04o)", what,
			       st.st_mode & 07777u);
	return 0;
}

int store_dir_check(const struct store_dir *d, struct err *err)
{
	int r = check_file(d, STORE_FILE, "it", err);
	if (!r)
		r = check_file(d, STORE_FILE STORE_JOURNAL, "its journal", err);
	else
		return r;
	return r == -ENOENT ? 0 : r;
}

static bool taken(const struct store_dir *d, const char *name)
{
	struct stat st;
	return fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- a copy, to look at ------------------------------------------------------------------------------------------- */

static int copy_bytes(int from, const char *from_name, int to, const char *to_name, struct err *err)
{
	_free_ uint8_t *chunk = malloc(COPY_CHUNK);
	if (!chunk)
		return err_set(err, -ENOMEM, "out of memory");
	for (;;) {
		ssize_t n = read(from, chunk, COPY_CHUNK);
		if (n < 0)
			return err_errno(err, -errno, "cannot read %s", from_name);
		if (n == 0)
			return 0;
		ssize_t written = write(to, chunk, (size_t)n);
		if (written != n)
			return err_errno(err, written < 0 ? -errno : -ENOSPC,
					 "cannot write a copy to %s", to_name);
	}
}

static int copy_file(const struct store_dir *d, const char *file, const char *to, struct err *err)
{
	char name[STORE_PATH_MAX], copy[STORE_PATH_MAX];
	store_dir_path(d, file, name);
	if (snprintf(copy, sizeof copy, "%s/%s", to, file) >= (int)sizeof copy)
		return err_set(err, -ENAMETOOLONG, "%s is too long a name", to);
	_close_ int in =
		openat(d->fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (in < 0)
		return err_errno(err, -errno, "cannot open %s", name);
	_close_ int out =
		open(copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (out < 0)
		return err_errno(err, -errno, "cannot write a copy to %s", copy);
	return copy_bytes(in, name, out, copy, err);
}

int store_copy(const char *dir, const char *to, struct err *err)
{
	struct store_dir d = {.fd = -1, .lock_fd = -1};
	struct stat st;
	if (strlen(dir) > STORE_PATH_MAX - 64)
		return err_set(err, -ENAMETOOLONG, "the name of the state directory is too long");
	int r = open_dir(&d, dir, err);
	if (!r)
		r = check_owner(&d, &st, err);
	if (!r)
		r = store_dir_check(&d, err);
	/* the journal first: one that is younger than the file would not count */
	if (!r && taken(&d, STORE_FILE STORE_JOURNAL))
		r = copy_file(&d, STORE_FILE STORE_JOURNAL, to, err);
	if (!r)
		r = copy_file(&d, STORE_FILE, to, err);
	store_dir_close(&d);
	return r;
}

/* ---- what is set aside --------------------------------------------------------------------------------------------- */

struct bad_list {
	unsigned n;
	char oldest[64];
};

static int note_bad(const char *name, void *arg)
{
	struct bad_list *list = arg;
	if (!str_has_prefix(name, STORE_FILE_BAD) || str_has_suffix(name, STORE_JOURNAL) ||
	    strlen(name) >= sizeof list->oldest)
		return 0;
	if (!list->n++)
		(void)snprintf(list->oldest, sizeof list->oldest, "%s", name);
	return 0;
}

/* Leaves room for one more; entries come in natural order, which is that of their times. */
static void drop_oldest(const struct store_dir *d)
{
	struct fs_root root = {.fd = d->fd, .path = d->path};
	for (;;) {
		struct bad_list list = {0};
		char journal[NAME_ROOM];
		if (fs_list(&root, ".", note_bad, &list) || list.n < STORE_BAD_KEEP ||
		    unlinkat(d->fd, list.oldest, 0) < 0)
			return;
		(void)snprintf(journal, sizeof journal, "%s" STORE_JOURNAL, list.oldest);
		(void)unlinkat(d->fd, journal, 0);
	}
}

int store_dir_set_aside(const struct store_dir *d, bool bad, char ret_name[64])
{
	uint64_t now = clock_wall_ns() / 1000000000u;
	char journal[NAME_ROOM];
	(void)snprintf(ret_name, 64, STORE_FILE_OLD);
	if (bad) {
		drop_oldest(d);
		do {
			(void)snprintf(ret_name, 64, STORE_FILE_BAD "%llu",
				       (unsigned long long)now++);
		} while (taken(d, ret_name));
	}
	if (renameat(d->fd, STORE_FILE, d->fd, ret_name) < 0)
		return -errno;
	(void)snprintf(journal, sizeof journal, "%s" STORE_JOURNAL, ret_name);
	(void)unlinkat(d->fd, journal, 0);
	(void)renameat(d->fd, STORE_FILE STORE_JOURNAL, d->fd, journal);
	return 0;
}
