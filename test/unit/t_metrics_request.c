/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP requests, and where to listen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/metrics/address.h"
#include "core/metrics/metrics.h"
#include "core/metrics/request.h"

static struct http_request req;

static int parse(const char *text)
{
	return http_parse(text, strlen(text), METRICS_HEADER_MAX, &req);
}

static void test_good(void **state)
{
	(void)state;
	assert_int_equal(parse("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n"), HTTP_OK);
	assert_string_equal(req.path, "/metrics");
	assert_false(req.head);
	assert_int_equal(parse("HEAD /healthz?verbose=1 HTTP/1.0\r\n\r\n"), HTTP_OK);
	assert_string_equal(req.path, "/healthz");
	assert_true(req.head);
	assert_int_equal(parse("GET / HTTP/1.1\nHost: x\n\n"), HTTP_OK);
	assert_int_equal(parse("GET / HTTP/1.1\r\nContent-Length:  0 \r\nX:\r\n\r\nmore"), HTTP_OK);
}

static void test_incomplete(void **state)
{
	static const char whole[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
	(void)state;
	for (size_t n = 0; n < sizeof whole - 1; n++)
		assert_int_equal(http_parse(whole, n, METRICS_HEADER_MAX, &req), HTTP_INCOMPLETE);
	assert_int_equal(http_parse(whole, sizeof whole - 1, METRICS_HEADER_MAX, &req), HTTP_OK);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {
		{"\r\n\r\n", 400},
		{"GET\r\n\r\n", 400},
		{"GET /\r\n\r\n", 400},
		{"GET / HTTP/1.1 x\r\n\r\n", 400},
		{"GET  / HTTP/1.1\r\n\r\n", 400},
		{"GET / FTP/1.1\r\n\r\n", 400},
		{"GET / HTTP/1.10\r\n\r\n", 400},
		{"G<T / HTTP/1.1\r\n\r\n", 400},
		{"GET metrics HTTP/1.1\r\n\r\n", 400},
		{"GET ? HTTP/1.1\r\n\r\n", 400},
		{"GET http://x/metrics HTTP/1.1\r\n\r\n", 400},
		{"GET /a\x01 HTTP/1.1\r\n\r\n", 400},
		{"GET / HTTP/2.0\r\n\r\n", 505},
		{"POST / HTTP/1.1\r\n\r\n", 405},
		{"get / HTTP/1.1\r\n\r\n", 405},
		{"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\n: x\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\na b: x\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n", 413},
		{"GET / HTTP/1.1\r\ncontent-length: 00\r\n\r\n", 413},
		{"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (parse(cases[i].text) != cases[i].status)
			fail_msg("%s: %d", cases[i].text, parse(cases[i].text));
}

static void test_nul(void **state)
{
	static const char in_value[] = "GET / HTTP/1.1\r\nA: \0\r\n\r\n";
	static const char in_name[] = "GET / HTTP/1.1\r\nA\0: x\r\n\r\n";
	static const char in_path[] = "GET /\0 HTTP/1.1\r\n\r\n";
	(void)state;
	assert_int_equal(http_parse(in_value, sizeof in_value - 1, METRICS_HEADER_MAX, &req), 400);
	assert_int_equal(http_parse(in_name, sizeof in_name - 1, METRICS_HEADER_MAX, &req), 400);
	assert_int_equal(http_parse(in_path, sizeof in_path - 1, METRICS_HEADER_MAX, &req), 400);
}

static void test_limits(void **state)
{
	static char text[METRICS_HEADER_MAX + 1];
	char path[HTTP_PATH_MAX + 32];
	(void)state;
	memset(text, 'a', METRICS_HEADER_MAX);
	assert_int_equal(http_parse(text, METRICS_HEADER_MAX - 1, METRICS_HEADER_MAX, &req),
			 HTTP_INCOMPLETE);
	assert_int_equal(http_parse(text, METRICS_HEADER_MAX, METRICS_HEADER_MAX, &req), 431);
	memset(path, '/', sizeof path);
	memcpy(path, "GET ", 4);
	strcpy(path + 4 + HTTP_PATH_MAX - 1, " HTTP/1.1\r\n\r\n");
	assert_int_equal(parse(path), HTTP_OK);
	assert_int_equal(strlen(req.path), HTTP_PATH_MAX - 1);
	memset(path + 4, '/', sizeof path - 4);
	strcpy(path + 4 + HTTP_PATH_MAX, " HTTP/1.1\r\n\r\n");
	assert_int_equal(parse(path), 414);
}

static void test_reasons(void **state)
{
	static const int known[] = {200, 400, 404, 405, 413, 414, 431, 500, 505};
	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		assert_string_not_equal(http_reason(known[i]), "Unknown");
	assert_string_equal(http_reason(418), "Unknown");
}

/* ---- addresses ------------------------------------------------------------------------------------------------------- */

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
	(void)state;
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
	(void)state;
	for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
		assert_int_equal(address_parse(addresses[i], &a, &err), 0);
		int fd = address_listen(&a, &err);
		if (fd < 0)
			fail_msg("%s", err.text);
		(void)close(fd);
	}
	/* Nobody has it: a documentation address. */
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
		cmocka_unit_test(test_good),	  cmocka_unit_test(test_incomplete),
		cmocka_unit_test(test_refused),	  cmocka_unit_test(test_nul),
		cmocka_unit_test(test_limits),	  cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_addresses), cmocka_unit_test(test_listen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
