/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/frame_check.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/nri-rp-sim/frames.h"
#include "core/lib/util/buf.h"

#define PIECE 65536u
#define PENDING_MAX (8u << 20) /* unsent bytes above which reading stops */

struct side {
	struct tap *tap;
	struct side *other;
	int fd;
	struct loop_io *io;
	struct buf out; /* unsent bytes for this side */
	bool ended; /* the end of the input was reached */
	bool shut; /* the output was shut down because the peer has ended */
};

struct tap {
	struct side plugin, trunk;
	uint64_t left; /* remaining bytes that may go to the plugin */
	struct frames frames;
};

static void frame_check_watch(struct side *s)
{
	unsigned events = 0;
	if (!s->ended && buf_len(&s->other->out) < PENDING_MAX)
		events |= LOOP_READ;
	if (buf_len(&s->out))
		events |= LOOP_WRITE;
	(void)loop_io_set(s->io, events);
}

static void frame_check_flush(struct side *s)
{
	while (buf_len(&s->out)) {
		ssize_t n = send(s->fd, buf_bytes(&s->out), buf_len(&s->out), MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			s->other->ended = true;
			buf_reset(&s->out);
			return;
		}
		buf_consume(&s->out, (size_t)n);
	}
	if (s->other->ended && !s->shut) {
		s->shut = true;
		(void)shutdown(s->fd, SHUT_WR);
	}
}

/* Returns how many of n bytes still go to the plugin. After the last allowed byte both sides
 * end. */
static ssize_t frame_check_take(struct tap *tap, ssize_t n)
{
	if (tap->left > (uint64_t)n) {
		tap->left -= (uint64_t)n;
		return n;
	}
	n = (ssize_t)tap->left;
	tap->left = 0;
	tap->trunk.ended = tap->plugin.ended = true;
	return n;
}

static void frame_check_fill(struct side *s)
{
	uint8_t *room = buf_reserve(&s->other->out, PIECE);
	ssize_t n = room ? recv(s->fd, room, PIECE, 0) : 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		s->ended = true;
		return;
	}
	if (s == &s->tap->plugin)
		frames_feed(&s->tap->frames, room, (size_t)n);
	else
		n = frame_check_take(s->tap, n);
	buf_commit(&s->other->out, (size_t)n);
}

static void on_io(unsigned events, void *arg)
{
	struct side *s = arg;
	if (events & LOOP_READ)
		frame_check_fill(s);
	frame_check_flush(s);
	frame_check_flush(s->other);
	frame_check_watch(s);
	frame_check_watch(s->other);
}

static void fini_side(struct side *s)
{
	loop_io_free(s->io);
	if (s->fd >= 0)
		(void)close(s->fd);
	buf_fini(&s->out);
}

void tap_cut(struct tap *tap, uint64_t after)
{
	tap->left = after;
}

struct tap *tap_free(struct tap *tap)
{
	if (!tap)
		return NULL;
	fini_side(&tap->plugin);
	fini_side(&tap->trunk);
	free(tap);
	return NULL;
}

int tap_new(struct loop *loop, int fd, void (*bad)(const char *what, void *arg), void *arg,
	    struct tap **ret, int *ret_fd, struct err *err)
{
	int pair[2] = {-1, -1};
	struct tap *tap = calloc(1, sizeof *tap);
	int r = tap ? 0 : -ENOMEM;
	if (!r && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		r = -errno;
	if (!r) {
		tap->plugin = (struct side){.tap = tap, .other = &tap->trunk, .fd = fd};
		tap->trunk = (struct side){.tap = tap, .other = &tap->plugin, .fd = pair[0]};
		tap->left = UINT64_MAX;
		frames_init(&tap->frames, bad, arg);
		tap->plugin.io = loop_io_new(loop, fd, LOOP_READ, on_io, &tap->plugin);
		tap->trunk.io = loop_io_new(loop, pair[0], LOOP_READ, on_io, &tap->trunk);
		r = tap->plugin.io && tap->trunk.io ? 0 : -ENOMEM;
	}
	if (!r) {
		*ret = tap;
		*ret_fd = pair[1];
		return 0;
	}
	if (tap && tap->plugin.tap) {
		tap_free(tap);
		(void)close(pair[1]);
	} else {
		free(tap);
		(void)close(fd);
	}
	return err_errno(err, r, "accepting a plugin's connection");
}
