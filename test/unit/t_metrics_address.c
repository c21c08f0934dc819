/* SPDX-License-Identifier: Apache-2.0 */
/* Where metrics may listen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/metrics/address.h"

static void test_addresses(void **state)
{
	static const struct {
		const char *text, *host;
		unsigned port;
	} good[] = {
		{"127.0.0.1:8891", "127.0.0.1", 8891},
		{":8891", "", 8891},
		{"[::1]:1", "::1", 1},
		{"localhost:0", "127.0.0.1", 0},
		{"0.0.0.0:65535", "0.0.0.0", 65535},
	};
	static const char *const bad[] = {"",
					  "8891",
					  "127.0.0.1",
					  "127.0.0.1:",
					  "host.x:80",
					  "127.0.0.1:65536",
					  "127.0.0.1:-1",
					  "::1:80",
					  "[]:80",
					  "[::1:80",
					  "unix:",
					  "unix:relative",
					  "1.2.3:80",
					  "a:b:c",
					  "[x]:80"};
	struct address a;
	struct err err = ERR_INIT;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_int_equal(address_parse(good[i].text, &a, &err), 0);
		assert_string_equal(a.host, good[i].host);
		assert_int_equal(a.port, good[i].port);
		assert_null(a.path);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (address_parse(bad[i], &a, &err) != -EINVAL)
			fail_msg("\"%s\" is accepted", bad[i]);
	assert_int_equal(address_parse("unix:/run/x.sock", &a, &err), 0);
	assert_string_equal(a.path, "/run/x.sock");
	char large[ADDRESS_MAX + 1];
	memset(large, '1', sizeof large - 1);
	large[sizeof large - 1] = '\0';
	assert_int_equal(address_parse(large, &a, &err), -EINVAL);
	memset(large, 'a', 80);
	strcpy(large + 80, ":80");
	assert_int_equal(address_parse(large, &a, &err), -EINVAL);
}

static void test_listen(void **state)
{
	static const char *const addresses[] = {"127.0.0.1:0", ":0", "0.0.0.0:0"};
	struct address a;
	struct err err = ERR_INIT;
	for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
		assert_int_equal(address_parse(addresses[i], &a, &err), 0);
		int fd = address_listen(&a, &err);
		if (fd < 0)
			fail_msg("%s", err.text);
		(void)close(fd);
	}
	/* No interface has this address, which is reserved for documentation. */
	assert_int_equal(address_parse("192.0.2.1:0", &a, &err), 0);
	assert_int_equal(address_listen(&a, &err), -EADDRNOTAVAIL);
	assert_non_null(strstr(err.text, "192.0.2.1"));
	assert_int_equal(address_parse("unix:/nowhere/at/all.sock", &a, &err), 0);
	err = (struct err)ERR_INIT;
	assert_true(address_listen(&a, &err) < 0);
	assert_non_null(strstr(err.text, "metrics"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_listen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
