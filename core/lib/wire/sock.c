/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, binds and accepts unix sockets. */
#include "core/lib/wire/sock.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"

#define BACKLOG 64

static int set_address(struct sockaddr_un *ret, const char *path, struct err *err)
{
	size_t len = strlen(path);
	if (!len)
		return err_set(err, -EINVAL, "the path of a socket is empty");
	if (len >= sizeof ret->sun_path)
		return err_set(err, -ENAMETOOLONG,
			       "the path of a socket has at most %zu bytes, %s has %zu",
			       sizeof ret->sun_path - 1, path, len);
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret->sun_path, path, len + 1);
	return 0;
}

static int open_socket(struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd >= 0 ? fd : err_errno(err, -errno, "creating a socket failed");
}

static int try_connect(const struct sockaddr_un *addr, struct err *err)
{
	_close_ int fd = open_socket(err);
	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)addr, sizeof *addr) < 0)
		return err_errno(err, -errno, "connecting to %s failed", addr->sun_path);
	return take_fd(&fd);
}

int wire_connect_unix(const char *path, struct err *err)
{
	struct sockaddr_un addr;
	int r = set_address(&addr, path, err);
	return r ? r : try_connect(&addr, err);
}

/* Removes an old socket from the path: only a socket, and only if no process listens on it. */
static int remove_stale(const struct sockaddr_un *addr, struct err *err)
{
	struct stat st;
	if (lstat(addr->sun_path, &st) < 0)
		return errno == ENOENT
			       ? 0
			       : err_errno(err, -errno, "checking %s failed", addr->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, -EEXIST, "%s exists and is not a socket", addr->sun_path);
	_close_ int fd = try_connect(addr, err);
	if (fd >= 0 || fd == -EAGAIN)
		return err_set(err, -EADDRINUSE, "another process already listens on %s",
			       addr->sun_path);
	if (fd != -ECONNREFUSED && fd != -ENOENT)
		return fd;
	if (unlink(addr->sun_path) < 0 && errno != ENOENT)
		return err_errno(err, -errno, "removing the old socket %s failed", addr->sun_path);
	return 0;
}

static int bind_and_listen(int fd, const struct sockaddr_un *addr, mode_t mode, struct err *err)
{
	/* bind() creates the file with this mode less the umask, so the mode is set again. */
	if (fchmod(fd, mode) < 0 || bind(fd, (const struct sockaddr *)addr, sizeof *addr) < 0)
		return err_errno(err, -errno, "creating the socket %s failed", addr->sun_path);
	if (chmod(addr->sun_path, mode) < 0 || listen(fd, BACKLOG) < 0) {
		int r = err_errno(err, -errno, "listening on %s failed", addr->sun_path);
		(void)unlink(addr->sun_path);
		return r;
	}
	return 0;
}

int wire_listen_unix(const char *path, mode_t mode, struct err *err)
{
	struct sockaddr_un addr;
	int r = set_address(&addr, path, err);
	if (!r)
		r = remove_stale(&addr, err);
	if (r)
		return r;
	_close_ int fd = open_socket(err);
	if (fd < 0)
		return fd;
	r = bind_and_listen(fd, &addr, mode, err);
	return r ? r : take_fd(&fd);
}

int wire_accept(int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	return fd >= 0 ? fd : -errno;
}

int wire_peer(int fd, struct ucred *ret)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	*ret = cred;
	return 0;
}

int wire_adopt(int fd, struct err *err)
{
	int type = 0;
	socklen_t len = sizeof type;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
		return err_errno(err, -errno,
				 "the inherited file descriptor %d is not a connection", fd);
	if (type != SOCK_STREAM)
		return err_set(err, -EPROTOTYPE, "the inherited socket %d is not a stream", fd);
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return err_errno(err, -errno, "setting up the inherited socket %d failed", fd);
	return 0;
}

int wire_check_folder(const char *path, struct err *err)
{
	char copy[PATH_MAX];
	size_t len = strlen(path);
	if (len >= sizeof copy)
		return err_set(err, -ENAMETOOLONG, "the path of a socket has %zu bytes", len);
	memcpy(copy, path, len + 1);
	const char *folder = dirname(copy);
	struct stat st;
	if (stat(folder, &st) < 0)
		return err_errno(err, -errno, "checking the folder %s failed", folder);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(err, -EPERM,
			       "the folder %s is owned by user %u, who could impersonate the peer: "
			       "chown root",
			       folder, st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, -EPERM,
			       "the folder %s (mode %04o) is writable by other users, who could "
			       "impersonate the peer: chmod go-w %s",
			       folder, st.st_mode & 07777u, folder);
	return 0;
}
