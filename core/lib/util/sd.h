/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd's notification protocol: one documented datagram to $NOTIFY_SOCKET. Its library is not
 * used because it would bring compression and encryption into a root daemon. Without the variable
 * all functions have no effect.
 */
#pragma once

#include <sys/socket.h>

#include "core/lib/util/loop.h"

struct sd;

/* Starts to feed the unit's watchdog, if it has one, as long as the loop runs. NULL: out of
 * memory. */
struct sd *sd_new(struct loop *loop);
struct sd *sd_free(struct sd *sd);
/* Sets a function that is called whenever the watchdog is fed. */
void sd_on_feed(struct sd *sd, void (*fn)(void *arg), void *arg);
/* Status that `systemctl status` shows; longer texts are cut. */
#define SD_STATUS_MAX 512u
void sd_ready(struct sd *sd, const char *status);
/* Sends the status, unless it equals the last one. */
void sd_status(struct sd *sd, const char *status);
void sd_reloading(struct sd *sd);
void sd_stopping(struct sd *sd);
/* Returns the n-th socket that systemd has opened for the daemon; 0: there are no more. */
int sd_listen_fd(unsigned n);
/* Returns a duplicate, non-blocking descriptor of the systemd socket that is bound to the address.
 * -ENOENT: none. */
int sd_listen_at(const struct sockaddr *address, socklen_t len);
