/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory. Refuses a directory of another user, and one that is a link; corrects modes;
 * waits for the lock of a previous process. */
#include "core/nri-rpd/store/internal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/number.h"
#include "core/nri-rpd/store/directory.h"

#define LOG_SOURCE "store"
#define DIR_MODE 0710
#define FILE_MODE 0600
#define LOCK_TRIES 200u
#define LOCK_PAUSE_US 10000u
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

void store_dir_path(const struct store_dir *d, const char *name, char ret[STORE_PATH_MAX])
{
	(void)snprintf(ret, STORE_PATH_MAX, "%s/%s", d->path, name);
}

/* Returns a copy of the path without trailing slashes, because open(2) follows a link with a
 * slash. */
static char *directory_trimmed(const char *path)
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
		return err_errno(err, -errno, "cannot check the state directory %s", d->path);
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return err_set(err, -EPERM,
			       "the state directory %s is owned by user %u; chown it to root or "
			       "the daemon's user",
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
					 "the state directory %s is writable by other users, and "
					 "chmod failed",
					 d->path);
		log_warning("the state directory %s was writable by other users (mode %04o); "
			    "changed to %04o",
			    d->path, st.st_mode & 07777u, DIR_MODE);
	} else if (st.st_mode & 0777 & ~(mode_t)DIR_MODE) {
		log_info("the state directory %s has mode %04o, but %04o is enough", d->path,
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

/* Locks the file, and tries again for a while: a killed predecessor may have left a child that
 * holds the lock until it notices. */
static int lock_patiently(int fd, unsigned tries)
{
	for (unsigned i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == tries)
			return -errno;
		(void)usleep(LOCK_PAUSE_US);
	}
	return 0;
}

/* Opens the lock file. -ENOENT: there is none and none can be created; the directory is read-only
 * then, for other instances as well. */
static int open_lock(const struct store_dir *d)
{
	const int flags = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
	int fd = openat(d->fd, STORE_FILE_LOCK, O_RDWR | O_CREAT | flags, FILE_MODE);
	if (fd < 0 && (errno == EROFS || errno == EACCES))
		fd = openat(d->fd, STORE_FILE_LOCK, O_RDONLY | flags);
	return fd < 0 ? -errno : fd;
}

/* Returns true if the file has further names. It may be any user's file then: locking it does no
 * harm, writing would. */
static bool is_linked(int fd)
{
	struct stat st;
	return fstat(fd, &st) < 0 || st.st_nlink > 1;
}

static int take_lock(struct store_dir *d, unsigned tries, struct err *err)
{
	char pid[32];
	_close_ int fd = open_lock(d);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return err_errno(err, fd, "cannot open %s/" STORE_FILE_LOCK, d->path);
	int r = lock_patiently(fd, tries);
	if (r && r != -EWOULDBLOCK)
		return err_errno(err, r, "cannot lock %s/" STORE_FILE_LOCK, d->path);
	if (r) {
		int holder = lock_holder(fd);
		if (holder)
			return err_set(err, -EBUSY,
				       "another instance (pid %d) uses the state directory %s; "
				       "stop it, or use another directory",
				       holder, d->path);
		return err_set(err, -EBUSY,
			       "another instance uses the state directory %s; stop it, or use "
			       "another directory",
			       d->path);
	}
	/* the pid is for the message above only, so a full disk does not matter */
	int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
	if (is_linked(fd))
		log_warning("%s/" STORE_FILE_LOCK " is a hard link: it is unchanged", d->path);
	else if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
		log_info("cannot write the pid to %s/" STORE_FILE_LOCK, d->path);
	d->lock_fd = take_fd(&fd);
	return 0;
}

/* Opens the directory. -ENOENT without a text in err: there is none. */
static int open_dir(struct store_dir *d, const char *path, struct err *err)
{
	d->path = directory_trimmed(path);
	if (!d->path)
		return err_set(err, -ENOMEM, "out of memory");
	d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->fd >= 0)
		return 0;
	if (errno == ELOOP || errno == ENOTDIR)
		return err_set(
			err, -ENOTDIR,
			"the state directory %s is a link or a file, but must be a directory",
			d->path);
	return errno == ENOENT
		       ? -ENOENT
		       : err_errno(err, -errno, "cannot open the state directory %s", d->path);
}

int store_dir_open(struct store_dir *d, const struct store_params *params, struct err *err)
{
	const char *path = params->dir;
	bool read_only = params->read_only;
	*d = (struct store_dir){.fd = -1, .lock_fd = -1};
	if (strlen(path) > STORE_PATH_MAX - 64)
		return err_set(err, -ENAMETOOLONG, "the path of the state directory is too long");
	int r = read_only ? 0 : fs_mkdirs(path, DIR_MODE, err);
	if (r)
		return r;
	r = open_dir(d, path, err);
	if (r == -ENOENT && !read_only)
		r = err_errno(err, r, "cannot open the state directory %s", d->path);
	struct stat st;
	if (!r)
		r = read_only ? check_owner(d, &st, err) : check_modes(d, err);
	if (!r && !read_only)
		r = take_lock(d, params->at_once ? 0 : LOCK_TRIES, err);
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

bool store_dir_has(const struct store_dir *d, const char *name)
{
	struct stat st;
	return fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- quarantined files ----------------------------------------------------------------------- */

struct bad_list {
	unsigned n;
	char oldest[64];
};

static int note_bad(const char *name, void *arg)
{
	struct bad_list *list = arg;
	if (!str_has_prefix(name, STORE_FILE_BAD) || strlen(name) >= sizeof list->oldest)
		return 0;
	if (!list->n++)
		(void)snprintf(list->oldest, sizeof list->oldest, "%s", name);
	return 0;
}

/* Removes the oldest quarantined files until there is room for one more. fs_list() returns natural
 * order, which is the order of their times. */
static void drop_oldest(const struct store_dir *d)
{
	struct fs_root root = {.fd = d->fd, .path = d->path};
	for (;;) {
		struct bad_list list = {0};
		if (fs_list(&root, ".", note_bad, &list) || list.n < STORE_BAD_KEEP ||
		    unlinkat(d->fd, list.oldest, 0) < 0)
			return;
	}
}

int store_dir_set_aside(const struct store_dir *d, const char *file, enum store_aside how,
			char ret_name[64])
{
	uint64_t now = clock_wall_ns() / 1000000000u;
	(void)snprintf(ret_name, 64, STORE_FILE_OLD);
	if (how != ASIDE_OLD) {
		drop_oldest(d);
		do {
			(void)snprintf(ret_name, 64, STORE_FILE_BAD "%llu",
				       (unsigned long long)now++);
		} while (store_dir_has(d, ret_name));
	}
	int r = how == ASIDE_COPY ? linkat(d->fd, file, d->fd, ret_name, 0)
				  : renameat(d->fd, file, d->fd, ret_name);
	return r < 0 ? -errno : 0;
}
