/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/metrics/held.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/lib/util/log.h"
#include "core/lib/util/sd.h"
#include "core/lib/wire/sock.h"

#define LOG_SOURCE "metrics"

/* Returns true if b is certainly another socket than a. */
static bool held_differs(int a, int b)
{
	uint64_t x = 0, y = 0;
	socklen_t len = sizeof x;
	return a < 0 || (getsockopt(a, SOL_SOCKET, SO_COOKIE, &x, &len) == 0 &&
			 getsockopt(b, SOL_SOCKET, SO_COOKIE, &y, &len) == 0 && x != y);
}

static bool held_listens(int fd)
{
	int on = 0;
	socklen_t len = sizeof on;
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) == 0 && on;
}

static void held_tell(int fd)
{
	static struct log_limit limit = LOG_LIMIT(1, 3600000);
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof at;
	char host[64] = "a socket", port[16] = "-";
	if (!log_allowed(&limit, LOG_SOURCE))
		return;
	if (getsockname(fd, (struct sockaddr *)&at, &len) == 0)
		(void)getnameinfo((struct sockaddr *)&at, len, host, sizeof host, port, sizeof port,
				  NI_NUMERICHOST | NI_NUMERICSERV);
	log_warning("closed a connection to %s port %s: systemd listens there, but metrics.listen "
		    "has another address (nri-rpd-metrics.socket, see nri-rpd(8))",
		    host, port);
}

/* Accepts and closes one connection per call, so that many of them do not delay other work. */
static void send_away(unsigned events, void *arg)
{
	const struct held_socket *s = arg;
	int fd = wire_accept(s->fd);
	if (fd >= 0) {
		(void)close(fd);
		held_tell(s->fd);
	} else if (fd != -EAGAIN && fd != -EINTR && fd != -ECONNABORTED) {
		/* no descriptors are available: let the connections wait */
		(void)loop_io_set(s->io, 0);
	}
}

void held_serve(struct held *h, struct loop *loop, int served)
{
	for (unsigned n = 0; n < HELD_MAX; n++) {
		struct held_socket *s = &h->sockets[n];
		s->fd = sd_listen_fd(n);
		s->io = loop_io_free(s->io);
		if (s->fd && held_differs(served, s->fd) && held_listens(s->fd) &&
		    fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0)
			s->io = loop_io_new(loop, s->fd, LOOP_READ, send_away, s);
	}
}

void held_fini(struct held *h)
{
	for (unsigned n = 0; n < HELD_MAX; n++)
		h->sockets[n].io = loop_io_free(h->sockets[n].io);
}
