/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/sd.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/number.h"

#define LISTEN_FDS_START 3
#define LISTEN_FDS_MAX 64

struct sd {
	int fd; /* socket of systemd; -1: not started by systemd */
	struct sockaddr_un address;
	socklen_t address_len;
	struct loop_timer *watchdog;
	uint64_t interval_ms;
	void (*on_feed)(void *arg);
	void *on_feed_arg;
	char status[SD_STATUS_MAX]; /* status sent last */
};

static void send_text(struct sd *sd, const char *text)
{
	if (sd->fd >= 0)
		(void)sendto(sd->fd, text, strlen(text), MSG_NOSIGNAL,
			     (const struct sockaddr *)&sd->address,
			     sd->address_len); /* ignore errors: systemd is not reachable */
}

static void sd_feed(void *arg)
{
	struct sd *sd = arg;
	send_text(sd, "WATCHDOG=1");
	(void)loop_timer_arm(sd->watchdog, sd->interval_ms);
	if (sd->on_feed)
		sd->on_feed(sd->on_feed_arg);
}

static int open_socket(struct sd *sd, const char *path)
{
	size_t len = strlen(path);
	if (len < 2 || len >= sizeof sd->address.sun_path || (*path != '/' && *path != '@'))
		return -1;
	sd->address.sun_family = AF_UNIX;
	memcpy(sd->address.sun_path, path, len);
	if (*path == '@')
		sd->address.sun_path[0] = '\0';
	sd->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void start_watchdog(struct sd *sd, struct loop *loop)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	int64_t interval_us, for_pid;
	if (!usec || str_to_i64(usec, &interval_us) || interval_us < 2000)
		return;
	if (pid && (str_to_i64(pid, &for_pid) || for_pid != getpid()))
		return;
	sd->interval_ms = (uint64_t)interval_us / 2000;
	sd->watchdog = loop_timer_new(loop, sd_feed, sd);
	if (sd->watchdog)
		sd_feed(sd);
}

struct sd *sd_new(struct loop *loop)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sd *sd = calloc(1, sizeof *sd);
	if (!sd)
		return NULL;
	sd->fd = path ? open_socket(sd, path) : -1;
	if (sd->fd >= 0)
		start_watchdog(sd, loop);
	return sd;
}

struct sd *sd_free(struct sd *sd)
{
	if (!sd)
		return NULL;
	loop_timer_free(sd->watchdog);
	if (sd->fd >= 0)
		(void)close(sd->fd);
	free(sd);
	return NULL;
}

void sd_on_feed(struct sd *sd, void (*fn)(void *arg), void *arg)
{
	sd->on_feed = fn;
	sd->on_feed_arg = arg;
}

static void sd_tell(struct sd *sd, const char *before, const char *status)
{
	char text[SD_STATUS_MAX + 32];
	size_t len = utf8_cut(status, sizeof sd->status - 1);
	memcpy(sd->status, status, len);
	sd->status[len] = '\0';
	for (char *line = sd->status; (line = strchr(line, '\n'));)
		*line = ' ';
	(void)snprintf(text, sizeof text, "%sSTATUS=%s", before, sd->status);
	send_text(sd, text);
}

void sd_ready(struct sd *sd, const char *status)
{
	sd_tell(sd, "READY=1\n", status);
}

void sd_status(struct sd *sd, const char *status)
{
	if (!str_eq(sd->status, status))
		sd_tell(sd, "", status);
}

void sd_reloading(struct sd *sd)
{
	char text[96];
	(void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu",
		       (unsigned long long)clock_us());
	send_text(sd, text);
}

void sd_stopping(struct sd *sd)
{
	send_text(sd, "STOPPING=1\nSTATUS=stopping");
}

static int n_listen_fds(void)
{
	const char *fds = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
	int64_t n, for_pid;
	if (!fds || !pid || str_to_i64(fds, &n) || str_to_i64(pid, &for_pid))
		return 0;
	return n > 0 && n <= LISTEN_FDS_MAX && for_pid == getpid() ? (int)n : 0;
}

int sd_listen_fd(unsigned n)
{
	return n < (unsigned)n_listen_fds() ? LISTEN_FDS_START + (int)n : 0;
}

int sd_listen_at(const struct sockaddr *address, socklen_t len)
{
	for (int fd = LISTEN_FDS_START, end = fd + n_listen_fds(); fd < end; fd++) {
		struct sockaddr_storage at = {0};
		socklen_t at_len = sizeof at;
		if (getsockname(fd, (struct sockaddr *)&at, &at_len) < 0 || at_len != len ||
		    memcmp(&at, address, len) != 0)
			continue;
		int flags = fcntl(fd, F_GETFL);
		if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
			return -errno;
		int copy = fcntl(fd, F_DUPFD_CLOEXEC, LISTEN_FDS_START);
		return copy < 0 ? -errno : copy;
	}
	return -ENOENT;
}
