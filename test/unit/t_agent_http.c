/* SPDX-License-Identifier: Apache-2.0 */
/* Tests nri-rp-agent where the other end of its connection is silent. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lib/kube/http.h"

#define SHORT_MS 150u
#define LONG_MS 60000u
#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome of it"

struct server {
	struct loop *loop;
	int listener, peers[4];
	unsigned n_peers;
	struct loop_io *io;
	struct loop_timer *later;
	bool speaks; /* the first one is answered a little more, later */
};

struct outcome {
	struct loop *loop;
	struct http *http;
	unsigned n; /* ended */
	int errors[4];
	bool again; /* the first that ends begins another one */
};

static void say(const struct server *s, const char *text)
{
	assert_int_equal(send(s->peers[0], text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void on_peer(unsigned events, void *arg)
{
	struct server *s = arg;
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0 || s->n_peers == 4)
		return;
	s->peers[s->n_peers++] = fd;
	if (s->n_peers == 1)
		say(s, ANSWER);
}

static void speak(void *arg)
{
	say(arg, "and more");
}

static void listen_on(struct server *s, struct loop *loop, char url[64])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	s->loop = loop;
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(s->listener, 4), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
	(void)snprintf(url, 64, "http://127.0.0.1:%u", ntohs(at.sin_port));
	s->io = loop_io_new(loop, s->listener, LOOP_READ, on_peer, s);
	s->later = loop_timer_new(loop, speak, s);
	if (s->speaks)
		assert_int_equal(loop_timer_arm(s->later, SHORT_MS), 0);
}

static void server_fini(struct server *s)
{
	loop_io_free(s->io);
	loop_timer_free(s->later);
	for (unsigned i = 0; i < s->n_peers; i++)
		(void)close(s->peers[i]);
	(void)close(s->listener);
}

static int take(unsigned status, const void *data, size_t n, void *arg)
{
	return 0;
}

static void ended(const struct http_result *result, void *arg);

static void begin(struct outcome *o, uint32_t timeout_ms)
{
	struct err err = ERR_INIT;
	const struct http_request q = {.method = "GET",
				       .path = "/",
				       .timeout_ms = timeout_ms,
				       .data = take,
				       .done = ended,
				       .arg = o};
	assert_non_null(http_start(o->http, &q, &err));
}

static void ended(const struct http_result *result, void *arg)
{
	struct outcome *o = arg;
	o->errors[o->n++] = result->error;
	if (o->n == 1 && o->again)
		begin(o, LONG_MS);
	if (o->n >= 2)
		loop_stop(o->loop);
}

static void begin_short(void *arg)
{
	begin(arg, SHORT_MS);
}

static void stop(void *arg)
{
	loop_stop(arg);
}

/* A long call, whose answer has begun, and a short one, which times out. */
static void two_calls(struct server *s, struct outcome *o)
{
	struct loop *loop = loop_new();
	struct kubeconfig k = {0};
	struct err err = ERR_INIT;
	char url[64];
	listen_on(s, loop, url);
	k.server = url;
	assert_int_equal(http_new(loop, &k, &o->http, &err), 0);
	o->loop = loop;
	struct loop_timer *limit = loop_timer_new(loop, stop, loop);
	struct loop_timer *second = loop_timer_new(loop, begin_short, o);
	assert_int_equal(loop_timer_arm(limit, 4 * SHORT_MS), 0);
	begin(o, LONG_MS);
	assert_int_equal(loop_timer_arm(second, SHORT_MS / 2), 0);
	assert_int_equal(loop_run(loop), 0);
	http_free(o->http);
	loop_timer_free(limit);
	loop_timer_free(second);
	server_fini(s);
	loop_free(loop);
}

static void test_a_silent_server_ends_all_calls(void **state)
{
	struct server s = {.n_peers = 0};
	struct outcome o = {.again = true};
	two_calls(&s, &o);
	/* calls started by a callback continue */
	assert_int_equal(o.n, 2);
	assert_int_equal(o.errors[0], -ETIMEDOUT);
	assert_int_equal(o.errors[1], -ETIMEDOUT);
}

static void test_one_that_speaks_ends_one(void **state)
{
	struct server s = {.speaks = true};
	struct outcome o = {.n = 0};
	two_calls(&s, &o);
	assert_int_equal(o.n, 1);
	assert_int_equal(o.errors[0], -ETIMEDOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_silent_server_ends_all_calls),
		cmocka_unit_test(test_one_that_speaks_ends_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
