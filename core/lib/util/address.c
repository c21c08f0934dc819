/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/address.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

static int address_bad(const char *text, struct err *err)
{
	return err_set(err, -EINVAL,
		       "expected an address and a port (127.0.0.1:8891, [::1]:8891, :8891), "
		       "unix:PATH, or nothing, found \"%.*s\"",
		       (int)ADDRESS_MAX, text);
}

static bool host_valid(const char *host)
{
	struct in6_addr any;
	return !*host || inet_pton(AF_INET, host, &any) == 1 ||
	       inet_pton(AF_INET6, host, &any) == 1;
}

int address_parse(const char *text, struct address *ret, struct err *err)
{
	struct address a = {.path = NULL};
	const char *colon = strrchr(text, ':'), *host = text;
	uint64_t port;
	if (strnlen(text, ADDRESS_MAX) == ADDRESS_MAX)
		return address_bad(text, err);
	if (str_has_prefix(text, "unix:")) {
		a.path = text + strlen("unix:");
		if (a.path[0] != '/')
			return address_bad(text, err);
		*ret = a;
		return 0;
	}
	if (!colon || str_to_u64(colon + 1, &port) || port > UINT16_MAX)
		return address_bad(text, err);
	size_t n = (size_t)(colon - text);
	bool brackets = n >= 2 && text[0] == '[' && colon[-1] == ']';
	if (brackets) {
		host++;
		n -= 2;
	}
	if (n >= sizeof a.host || (!brackets && memchr(host, ':', n)))
		return address_bad(text, err);
	memcpy(a.host, host, n);
	if (str_eq(a.host, "localhost"))
		(void)snprintf(a.host, sizeof a.host, "127.0.0.1");
	if (!host_valid(a.host) || (brackets && !*a.host))
		return address_bad(text, err);
	a.port = (uint16_t)port;
	*ret = a;
	return 0;
}

bool address_is_local(const struct address *a)
{
	struct in_addr v4;
	struct in6_addr v6;
	if (a->path)
		return true;
	if (inet_pton(AF_INET, a->host, &v4) == 1)
		return ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
	return inet_pton(AF_INET6, a->host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}
