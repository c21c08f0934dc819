/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/topo/hotplug.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "topo"

#define KERNEL_GROUP 1u /* uevents of the kernel; the other groups are udev's */
#define EVENT_MAX 8192u /* the kernel's events have at most 2 KiB, plus an action with its path */
#define BURST_MAX 64u /* largest number of events read before the loop handles other sockets */

struct hotplug {
	struct loop *loop;
	int fd;
	struct loop_io *io;
	struct loop_timer *timer;
	uint64_t first_ms; /* begin of the current burst */
	void (*fn)(void *arg);
	void *arg;
};

bool hotplug_event_matters(const char *msg, size_t len)
{
	static const char *const actions[] = {"add", "remove", "online", "offline"};
	static const char *const subsystems[] = {"cpu", "memory", "node"};
	bool action = false, subsystem = false;
	for (const char *p = msg, *end = msg + len; p < end;) {
		size_t n = strnlen(p, (size_t)(end - p));
		if (p + n == end)
			return false; /* the message was truncated */
		for (unsigned i = 0; i < sizeof actions / sizeof actions[0]; i++)
			action |= strncmp(p, "ACTION=", 7) == 0 && str_eq(p + 7, actions[i]);
		for (unsigned i = 0; i < sizeof subsystems / sizeof subsystems[0]; i++)
			subsystem |=
				strncmp(p, "SUBSYSTEM=", 10) == 0 && str_eq(p + 10, subsystems[i]);
		p += n + 1;
	}
	return action && subsystem;
}

static void on_timer(void *arg)
{
	struct hotplug *h = arg;
	h->fn(h->arg);
}

void hotplug_trigger(struct hotplug *h)
{
	uint64_t now = clock_ms();
	if (!loop_timer_armed(h->timer))
		h->first_ms = now;
	uint64_t last = h->first_ms + HOTPLUG_LONGEST_MS;
	uint64_t left = last > now ? last - now : 0;
	(void)loop_timer_arm(h->timer, left < HOTPLUG_QUIET_MS ? left : HOTPLUG_QUIET_MS);
}

/* Reads an event. 1: a relevant event, 0: another one, -errno. */
static int take_event(int fd)
{
	char msg[EVENT_MAX];
	struct sockaddr_nl from = {0};
	struct iovec iov = {msg, sizeof msg};
	struct msghdr hdr = {
		.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = recvmsg(fd, &hdr, MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	/* The sender is a process that may send to the group, not the kernel. */
	if (hdr.msg_namelen >= sizeof from && from.nl_family == AF_NETLINK && from.nl_pid != 0)
		return 0;
	return hotplug_event_matters(msg, (size_t)n);
}

static void on_readable(unsigned events, void *arg)
{
	struct hotplug *h = arg;
	for (unsigned i = 0; i < BURST_MAX; i++) {
		int rc = take_event(h->fd);
		if (rc == -EAGAIN || rc == -EINTR)
			return;
		/* Events were lost, and one of them may have been relevant. */
		if (rc == 1 || rc == -ENOBUFS) {
			hotplug_trigger(h);
		} else if (rc < 0) {
			log_warning("hot-plug of CPUs and memory is no longer noticed: %s",
				    strerror(-rc));
			(void)loop_io_set(h->io, 0);
			return;
		}
	}
}

#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define WORD(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))
#define SKIP_UNLESS(word, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (word), 0, (n))
#define PASS BPF_STMT(BPF_RET | BPF_K, EVENT_MAX)
#define DROP BPF_STMT(BPF_RET | BPF_K, 0)
/* Each SKIP jumps behind PASS. */
#define PASS_IF_SYSTEM_AT(at)                                                                      \
	LOAD(at), SKIP_UNLESS(WORD('@', '/', 'd', 'e'), 7), LOAD((at) + 4),                        \
		SKIP_UNLESS(WORD('v', 'i', 'c', 'e'), 5), LOAD((at) + 8),                          \
		SKIP_UNLESS(WORD('s', '/', 's', 'y'), 3), LOAD((at) + 12),                         \
		SKIP_UNLESS(WORD('s', 't', 'e', 'm'), 1), PASS

/*
 * Attaches a filter, because every container start causes a dozen uevents that would wake up the
 * daemon. The filter passes events that begin with "ACTION@/devices/system", for actions of 3, 6
 * and 7 letters.
 */
static int filter_events(int fd)
{
	struct sock_filter code[] = {
		PASS_IF_SYSTEM_AT(3),
		PASS_IF_SYSTEM_AT(6),
		PASS_IF_SYSTEM_AT(7),
		DROP,
	};
	struct sock_fprog program = {sizeof code / sizeof code[0], code};
	int rc = setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
	return rc < 0 ? -errno : 0;
}

static int open_uevents(struct err *err)
{
	_close_ int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
	if (fd < 0)
		return err_errno(err, -errno, "cannot open a socket for the kernel's uevents");
	if (bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0)
		return err_errno(err, -errno, "cannot listen to the kernel's uevents");
	return take_fd(&fd);
}

int hotplug_new_on(struct loop *loop, int fd, void (*fn)(void *arg), void *arg,
		   struct hotplug **ret, struct err *err)
{
	struct hotplug *h = calloc(1, sizeof *h);
	if (!h) {
		if (fd >= 0)
			(void)close(fd);
		return err_errno(err, -ENOMEM, "cannot watch for CPUs and memory");
	}
	*h = (struct hotplug){.loop = loop, .fd = fd, .fn = fn, .arg = arg};
	int rc = fd < 0 ? 0 : filter_events(fd);
	if (!rc) {
		h->timer = loop_timer_new(loop, on_timer, h);
		h->io = fd < 0 ? NULL : loop_io_new(loop, fd, LOOP_READ, on_readable, h);
		rc = !h->timer || (fd >= 0 && !h->io) ? -ENOMEM : 0;
	}
	if (rc) {
		hotplug_free(h);
		return err_errno(err, rc, "cannot watch for CPUs and memory");
	}
	*ret = h;
	return 0;
}

int hotplug_new(struct loop *loop, const struct fs_root *root, void (*fn)(void *arg), void *arg,
		struct hotplug **ret, struct err *err)
{
	int fd = -1;
	if (root->real) {
		fd = open_uevents(err);
		if (fd < 0)
			return fd;
	}
	return hotplug_new_on(loop, fd, fn, arg, ret, err);
}

struct hotplug *hotplug_free(struct hotplug *h)
{
	if (!h)
		return NULL;
	loop_timer_free(h->timer);
	loop_io_free(h->io);
	if (h->fd >= 0)
		(void)close(h->fd);
	free(h);
	return NULL;
}
