/* SPDX-License-Identifier: Apache-2.0 */
/* Parses addresses to listen at. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/util/err.h"

#define ADDRESS_MAX 256u /* largest size of an address, in bytes */

struct address {
	const char *path; /* path of a unix socket, within the text; NULL: TCP */
	char host[64]; /* numeric address of the host; "": all addresses */
	uint16_t port;
};

/* Parses "host:port", "[v6]:port", ":port" or "unix:PATH". -EINVAL: none of these forms. */
int address_parse(const char *text, struct address *ret, struct err *err);
/* Returns true for a unix socket or a loopback address, which other machines cannot reach. */
bool address_is_local(const struct address *a);
