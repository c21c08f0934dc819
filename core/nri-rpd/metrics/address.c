/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/metrics/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/sd.h"
#include "core/lib/wire/sock.h"

#define UNIX_MODE 0660
#define BACKLOG 256 /* a full queue delays the next connection, a probe for example, by 1 s */

static socklen_t address_fill4(const struct address *a, struct sockaddr_in *sa)
{
	*sa = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(a->port)};
	sa->sin_addr.s_addr = htonl(INADDR_ANY);
	if (*a->host)
		(void)inet_pton(AF_INET, a->host, &sa->sin_addr);
	return sizeof *sa;
}

static socklen_t address_fill6(const struct address *a, struct sockaddr_in6 *sa)
{
	*sa = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(a->port)};
	sa->sin6_addr = in6addr_any;
	if (*a->host)
		(void)inet_pton(AF_INET6, a->host, &sa->sin6_addr);
	return sizeof *sa;
}

static int listen_tcp(int family, const struct sockaddr *sa, socklen_t len)
{
	const int on = 1, off = 0;
	int inherited = sd_listen_at(sa, len);
	if (inherited != -ENOENT)
		return inherited;
	_close_ int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
	    (family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0) ||
	    bind(fd, sa, len) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

int address_listen(const struct address *a, struct err *err)
{
	struct sockaddr_in sa4;
	struct sockaddr_in6 sa6;
	int fd = -EAFNOSUPPORT;
	if (a->path) {
		fd = wire_listen_unix(a->path, UNIX_MODE, err);
		return fd >= 0 ? fd : err_prefix(err, "metrics.listen: ");
	}
	bool v6 = strchr(a->host, ':') != NULL;
	if (v6 || !*a->host) {
		socklen_t len = address_fill6(a, &sa6);
		fd = listen_tcp(AF_INET6, (const struct sockaddr *)&sa6, len);
	}
	/* A kernel without IPv6 listens on all IPv4 addresses. */
	if (!v6 && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)) {
		socklen_t len = address_fill4(a, &sa4);
		fd = listen_tcp(AF_INET, (const struct sockaddr *)&sa4, len);
	}
	return fd >= 0 ? fd
		       : err_errno(err, fd, "metrics.listen: listening on %s port %u failed%s",
				   *a->host ? a->host : "all addresses,", a->port,
				   fd == -EAFNOSUPPORT
					   ? " (a service without network listens where "
					     "nri-rpd-metrics.socket does)"
					   : "");
}
