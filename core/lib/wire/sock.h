/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets: all of them close-on-exec and non-blocking. */
#ifndef WIRE_SOCK_H
#define WIRE_SOCK_H

#include <sys/socket.h>
#include <sys/types.h>

#include "core/lib/util/err.h"

/*
 * The fd, or -errno: -ENOENT and -ECONNREFUSED when nobody listens, -EAGAIN when too many wait to
 * be accepted.
 */
int wire_connect_unix(const char *path, struct err *err);
/*
 * Listens with the given mode, which is in force from the first moment. A socket file that nobody
 * listens on is replaced; -EADDRINUSE when somebody does; -EEXIST when the path is something else.
 */
int wire_listen_unix(const char *path, mode_t mode, struct err *err);
/* The next connection's fd, or -errno: -EAGAIN when there is none. */
int wire_accept(int listen_fd);
/* The process, user and group at the other end. */
int wire_peer(int fd, struct ucred *ret);
/* Makes an inherited fd fit for the trunk; -ENOTSOCK and the like when it isn't a stream socket. */
int wire_adopt(int fd, struct err *err);
/*
 * -EPERM when somebody other than root and ourselves could have put a socket into the folder of
 * path.
 */
int wire_check_folder(const char *path, struct err *err);

#endif
