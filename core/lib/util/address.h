/* SPDX-License-Identifier: Apache-2.0 */
/* Where to listen, as text. */
#ifndef UTIL_ADDRESS_H
#define UTIL_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/util/err.h"

#define ADDRESS_MAX 256u /* bytes of one */

struct address {
	const char *path; /* of a unix socket, within the text; NULL: TCP */
	char host[64]; /* numeric; "": all addresses */
	uint16_t port;
};

/* "host:port", "[v6]:port", ":port", "unix:PATH". -EINVAL: none of them. */
int address_parse(const char *text, struct address *ret, struct err *err);
/* A unix socket or loopback: nobody on another machine reaches it. */
bool address_is_local(const struct address *a);

#endif
