/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets: all of them close-on-exec and non-blocking. */
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include "core/lib/util/err.h"

/*
 * Returns the descriptor, or -errno: -ENOENT and -ECONNREFUSED: no process listens; -EAGAIN: the
 * queue is full.
 */
int wire_connect_unix(const char *path, struct err *err);
/*
 * Listens with the given mode, which applies from the first moment. A socket file without listener
 * is replaced; -EADDRINUSE: a process listens there; -EEXIST: the path is no socket.
 */
int wire_listen_unix(const char *path, mode_t mode, struct err *err);
/* Returns the descriptor of the next connection, or -errno: -EAGAIN: none waits. */
int wire_accept(int listen_fd);
/* Returns process, user and group of the peer. */
int wire_peer(int fd, struct ucred *ret);
/* Prepares an inherited descriptor for the trunk; -ENOTSOCK and similar: no stream socket. */
int wire_adopt(int fd, struct err *err);
/*
 * Checks the folder of path. -EPERM: a user other than root and the daemon's own could have put a
 * socket there.
 */
int wire_check_folder(const char *path, struct err *err);
