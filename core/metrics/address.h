/* SPDX-License-Identifier: Apache-2.0 */
/* Where to listen: text to a socket. */
#ifndef METRICS_ADDRESS_H
#define METRICS_ADDRESS_H

#include <stdint.h>
#include <sys/socket.h>

#include "core/util/err.h"

struct address {
	const char *path; /* of a unix socket, within the text; NULL: TCP */
	char host[64]; /* numeric; "": all addresses */
	uint16_t port;
};

/* "host:port", "[v6]:port", ":port", "unix:PATH". -EINVAL: none of them. */
int address_parse(const char *text, struct address *ret, struct err *err);
/* A listening socket, non-blocking; -errno. */
int address_listen(const struct address *a, struct err *err);

#endif
