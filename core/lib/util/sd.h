/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd's notification protocol: one documented datagram to $NOTIFY_SOCKET, by hand, as its
 * library would bring compression and encryption into a root daemon. Without the variable
 * everything here does nothing.
 */
#ifndef UTIL_SD_H
#define UTIL_SD_H

#include <sys/socket.h>

#include "core/lib/util/loop.h"

struct sd;

/* Starts to feed the watchdog, when the unit has one: as long as the loop turns. NULL only when out
 * of memory. */
struct sd *sd_new(struct loop *loop);
struct sd *sd_free(struct sd *sd);
/* Called whenever the watchdog is fed. */
void sd_on_feed(struct sd *sd, void (*fn)(void *arg), void *arg);
/* What `systemctl status` shows; longer ones are cut. */
#define SD_STATUS_MAX 512u
void sd_ready(struct sd *sd, const char *status);
/* Says nothing when it is what was said last. */
void sd_status(struct sd *sd, const char *status);
void sd_reloading(struct sd *sd);
void sd_stopping(struct sd *sd);
/* The n-th socket that systemd listens on for us, 0: there are no more. */
int sd_listen_fd(unsigned n);
/* Of all of these the one that is bound to the address: another descriptor of it for the caller,
 * non-blocking. -ENOENT: there is none. */
int sd_listen_at(const struct sockaddr *address, socklen_t len);

#endif
