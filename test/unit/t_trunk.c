/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections on the loop: two ends of a socketpair, or one end and what a test writes to it by
 * hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lib/util/str.h"
#include "core/lib/wire/be.h"
#include "core/lib/wire/trunk.h"
#include "proto/nri.pb-c.h"

#define SERVICE "some.Service"
#define WATCHDOG_MS 20000u
#define KEPT_MAX 8u

enum on_request { ECHO, KEEP, FREE_TRUNK, ANSWER_AND_FREE };

struct end {
	struct fixture *fixture;
	struct trunk *trunk;
	enum on_request on_request;
	size_t echo_size;
	unsigned n_requests, n_closed;
	size_t last_size;
	struct rpc_request *kept[KEPT_MAX];
	unsigned n_kept;
	struct err closed;
	unsigned n_done_at_close;
	bool free_when_closed;
};

struct result {
	struct end *end;
	unsigned n;
	int error;
	int32_t code;
	size_t len;
	char text[200];
	bool free_trunk, call_again;
};

struct fixture {
	struct loop *loop;
	struct loop_timer *watchdog, *pause;
	struct end a, b;
	unsigned n_done;
	int fd; /* socket of the peer, if the test plays it */
};

static void on_watchdog(void *arg)
{
	fail_msg("nothing happens any more");
}

static void on_pause(void *arg)
{
	loop_stop(arg);
}

/* Waits for the condition: every callback stops the loop, after which the condition is checked. */
#define WAIT(f, condition)                                                                         \
	while (!(condition)) {                                                                     \
		loop_timer_arm((f)->watchdog, WATCHDOG_MS);                                        \
		loop_run((f)->loop);                                                               \
	}

static void let_run(struct fixture *f, unsigned ms)
{
	loop_timer_arm(f->pause, ms);
	while (loop_timer_armed(f->pause))
		loop_run(f->loop);
}

static char *text_of(size_t n)
{
	char *s = malloc(n + 1);
	memset(s, 's', n);
	s[n] = '\0';
	return s;
}

static int reply_text(struct rpc_request *req, size_t n)
{
	char *text = text_of(n);
	Nri__PodSandbox pod = NRI__POD_SANDBOX__INIT;
	pod.name = text;
	int r = rpc_reply(req, &pod.base);
	free(text);
	return r;
}

static void on_request(struct rpc_request *req, void *arg)
{
	struct end *e = arg;
	int r = 0;
	e->n_requests++;
	e->last_size = req->payload_len;
	assert_true(req->received_ns > 0);
	switch (e->on_request) {
	case ECHO:
		r = reply_text(req, e->echo_size);
		assert_true(r == 0 || r == -ENOBUFS);
		break;
	case KEEP:
		assert_true(e->n_kept < KEPT_MAX);
		e->kept[e->n_kept++] = req;
		break;
	case FREE_TRUNK:
		e->kept[e->n_kept++] = req;
		e->trunk = trunk_free(e->trunk);
		break;
	case ANSWER_AND_FREE:
		assert_int_equal(0, rpc_reply(req, NULL));
		e->trunk = trunk_free(e->trunk);
		break;
	}
	loop_stop(e->fixture->loop);
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	struct end *e = arg;
	assert_ptr_equal(trunk, e->trunk);
	assert_false(trunk_connected(trunk));
	e->n_closed++;
	e->closed = *err;
	e->n_done_at_close = e->fixture->n_done;
	if (e->free_when_closed)
		e->trunk = trunk_free(e->trunk);
	loop_stop(e->fixture->loop);
}

static void end_open(struct fixture *f, struct end *e, int fd, struct trunk_config config)
{
	config.closed = on_closed;
	config.arg = e;
	*e = (struct end){.fixture = f};
	assert_int_equal(0, trunk_new(f->loop, fd, &config, &e->trunk, NULL));
	assert_true(trunk_connected(e->trunk));
	rpc_serve(trunk_rpc(e->trunk, MUX_CONN_PLUGIN), on_request, e);
	rpc_serve(trunk_rpc(e->trunk, MUX_CONN_RUNTIME), on_request, e);
}

static void open_pair(int fds[2])
{
	assert_int_equal(0,
			 socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
}

static void open_both(struct fixture *f, struct trunk_config a, struct trunk_config b)
{
	int fds[2];
	open_pair(fds);
	end_open(f, &f->a, fds[0], a);
	end_open(f, &f->b, fds[1], b);
}

static void open_one(struct fixture *f, struct trunk_config a)
{
	int fds[2];
	open_pair(fds);
	end_open(f, &f->a, fds[0], a);
	f->fd = fds[1];
}

static const struct trunk_config mux = {.mux = true}, plain = {.mux = false};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	f->fd = -1;
	f->loop = loop_new();
	f->watchdog = loop_timer_new(f->loop, on_watchdog, f);
	f->pause = loop_timer_new(f->loop, on_pause, f->loop);
	*state = f;
	return f->loop && f->watchdog && f->pause ? 0 : -1;
}

static void end_close(struct end *e)
{
	e->trunk = trunk_free(e->trunk);
	for (unsigned i = 0; i < e->n_kept; i++)
		assert_int_equal(-ENOTCONN, rpc_reply(e->kept[i], NULL));
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	end_close(&f->a);
	end_close(&f->b);
	if (f->fd >= 0)
		(void)close(f->fd);
	loop_timer_free(f->watchdog);
	loop_timer_free(f->pause);
	loop_free(f->loop);
	free(f);
	return 0;
}

static void on_done(const struct rpc_result *r, void *arg)
{
	struct result *to = arg;
	to->n++;
	to->end->fixture->n_done++;
	to->error = r->error;
	to->code = r->code;
	to->len = r->payload_len;
	(void)snprintf(to->text, sizeof to->text, "%s", r->text);
	if (to->free_trunk)
		to->end->trunk = trunk_free(to->end->trunk);
	if (to->call_again) {
		assert_int_equal(-ENOTCONN, rpc_call(trunk_rpc(to->end->trunk, MUX_CONN_PLUGIN),
						     SERVICE, "M", NULL, 0, NULL, NULL));
		assert_int_equal(-ENOTCONN, rpc_call(trunk_rpc(to->end->trunk, MUX_CONN_RUNTIME),
						     SERVICE, "M", NULL, 0, NULL, NULL));
	}
	loop_stop(to->end->fixture->loop);
}

static int call(struct end *e, uint32_t conn, size_t n, uint64_t timeout_ms, struct result *res)
{
	char *text = text_of(n);
	Nri__PodSandbox pod = NRI__POD_SANDBOX__INIT;
	pod.name = text;
	res->end = e;
	int r = rpc_call(trunk_rpc(e->trunk, conn), SERVICE, "Get", &pod.base, timeout_ms, on_done,
			 res);
	free(text);
	return r;
}

static void write_all(int fd, const void *data, size_t n)
{
	assert_int_equal(n, write(fd, data, n));
}

/* Writes a plain ttrpc message. */
static void write_message(int fd, uint32_t stream, uint8_t type, const void *data, size_t n)
{
	uint8_t bytes[TTRPC_HEADER_SIZE + 100];
	assert_true(n <= 100);
	ttrpc_header_encode(bytes, &(struct ttrpc_header){(uint32_t)n, stream, type, 0});
	if (n)
		memcpy(bytes + TTRPC_HEADER_SIZE, data, n);
	write_all(fd, bytes, TTRPC_HEADER_SIZE + n);
}

/* ---- the usual ---- */

static void test_plain(void **state)
{
	struct fixture *f = *state;
	struct result r = {0}, s = {0};
	open_both(f, plain, plain);
	f->b.echo_size = 10;
	assert_int_equal(0, call(&f->a, 0, 5, 0, &r));
	assert_int_equal(0, trunk_unsent(f->a.trunk));
	WAIT(f, r.n);
	assert_int_equal(0, r.error);
	assert_int_equal(12, r.len);
	assert_int_equal(7, f->b.last_size);
	assert_int_equal(0, call(&f->b, 0, 5, 0, &s));
	WAIT(f, s.n);
	assert_int_equal(0, s.error);
}

static void test_four_ways(void **state)
{
	struct fixture *f = *state;
	struct result r[4] = {0};
	open_both(f, mux, mux);
	assert_ptr_not_equal(trunk_rpc(f->a.trunk, 1), trunk_rpc(f->a.trunk, 2));
	assert_int_equal(0, call(&f->a, MUX_CONN_PLUGIN, 1, 0, &r[0]));
	assert_int_equal(0, call(&f->a, MUX_CONN_RUNTIME, 2, 0, &r[1]));
	assert_int_equal(0, call(&f->b, MUX_CONN_PLUGIN, 3, 0, &r[2]));
	assert_int_equal(0, call(&f->b, MUX_CONN_RUNTIME, 4, 0, &r[3]));
	for (unsigned i = 0; i < 4; i++) {
		WAIT(f, r[i].n);
		assert_int_equal(0, r[i].error);
	}
	assert_int_equal(2, f->a.n_requests);
	assert_int_equal(2, f->b.n_requests);
}

/* Requests of both connections are handled in the order they were sent. */
static void test_order_of_connections(void **state)
{
	struct fixture *f = *state;
	struct result r[3] = {0};
	open_both(f, mux, mux);
	f->b.on_request = KEEP;
	assert_int_equal(0, call(&f->a, MUX_CONN_RUNTIME, 1, 0, &r[0]));
	assert_int_equal(0, call(&f->a, MUX_CONN_PLUGIN, 2, 0, &r[1]));
	assert_int_equal(0, call(&f->a, MUX_CONN_RUNTIME, 3, 0, &r[2]));
	WAIT(f, f->b.n_kept == 3);
	assert_ptr_equal(trunk_rpc(f->b.trunk, 2), f->b.kept[0]->rpc);
	assert_ptr_equal(trunk_rpc(f->b.trunk, 1), f->b.kept[1]->rpc);
	assert_ptr_equal(trunk_rpc(f->b.trunk, 2), f->b.kept[2]->rpc);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(0, rpc_reply(f->b.kept[i], NULL));
	f->b.n_kept = 0;
	WAIT(f, f->n_done == 3);
}

static void test_byte_by_byte(void **state)
{
	struct fixture *f = *state;
	static const uint8_t frame[] = {0, 0, 0, 1, 0, 0, 0, 13,   0, 0,  0,
					3, 0, 0, 0, 1, 1, 0, 0x12, 1, 'm'};
	open_one(f, mux);
	for (size_t i = 0; i < sizeof frame; i++) {
		assert_int_equal(0, f->a.n_requests);
		write_all(f->fd, frame + i, 1);
		let_run(f, 1);
	}
	WAIT(f, f->a.n_requests == 1);
	uint8_t answer[100];
	assert_int_equal(18, read(f->fd, answer, sizeof answer));
	assert_int_equal(1, get_be32(answer));
	assert_int_equal(10, get_be32(answer + 4));
}

/* ---- size ---- */

/*
 * Checks that both ends send more than the sockets take, up to the limit: an end that stopped
 * reading while it writes would wait for ever.
 */
static void test_both_send_large(void **state)
{
	struct fixture *f = *state;
	struct result r[10] = {0};
	const size_t size = TTRPC_MESSAGE_MAX - 100;
	open_both(f, mux, mux);
	f->a.echo_size = f->b.echo_size = size;
	for (unsigned i = 0; i < 10; i += 2) {
		assert_int_equal(0, call(&f->a, MUX_CONN_PLUGIN, size, 0, &r[i]));
		assert_int_equal(0, call(&f->b, MUX_CONN_RUNTIME, size, 0, &r[i + 1]));
	}
	assert_int_equal(-ENOBUFS, call(&f->a, MUX_CONN_PLUGIN, size, 0, &(struct result){0}));
	assert_int_equal(-ENOBUFS, call(&f->b, MUX_CONN_PLUGIN, size, 0, &(struct result){0}));
	for (unsigned i = 0; i < 10; i++) {
		WAIT(f, r[i].n);
		assert_int_equal(0, r[i].error);
		assert_true(r[i].len > size);
	}
	assert_int_equal(0, trunk_unsent(f->a.trunk));
	assert_int_equal(0, trunk_unsent(f->b.trunk));
}

/* As containerd 1.7 sends a large Synchronize. */
static void test_one_large_frame(void **state)
{
	struct fixture *f = *state;
	struct result r = {0};
	open_both(
		f,
		(struct trunk_config){.mux = true, .send_max = MUX_RECV_MAX, .first_max = SIZE_MAX},
		mux);
	const size_t size = 20u << 20;
	assert_int_equal(0, call(&f->a, MUX_CONN_PLUGIN, size, 0, &r));
	/* More than the limit waits, but that does not keep the answer out. */
	assert_true(trunk_unsent(f->a.trunk) > TRUNK_CALLS_OUT_MAX);
	assert_int_equal(-ENOBUFS, call(&f->a, MUX_CONN_PLUGIN, 1, 0, &(struct result){0}));
	WAIT(f, r.n);
	assert_int_equal(0, r.error);
	assert_true(f->b.last_size > size);
}

static void test_frame_over_limit(void **state)
{
	struct fixture *f = *state;
	struct result r = {0};
	static const uint8_t frame[] = {0, 0, 0, 1, 0x04, 0, 0, 0x0b, 'x'};
	open_one(f, mux);
	assert_int_equal(0, call(&f->a, MUX_CONN_RUNTIME, 1, 0, &r));
	write_all(f->fd, frame, sizeof frame);
	WAIT(f, f->a.n_closed);
	assert_int_equal(-EMSGSIZE, f->a.closed.code);
	assert_int_equal(-ECONNRESET, r.error);
	assert_int_equal(1, f->a.n_done_at_close);
}

static void test_message_over_limit(void **state)
{
	struct fixture *f = *state;
	static const uint8_t message[] = {0, 0x40, 0, 1, 0, 0, 0, 1, 1, 0};
	static const uint8_t framed[] = {0, 0, 0, 2, 0, 0, 0, 10, 4, 0, 0, 1, 0, 0, 0, 1, 1, 0};
	open_one(f, plain);
	write_all(f->fd, message, sizeof message);
	WAIT(f, f->a.n_closed);
	assert_int_equal(-EMSGSIZE, f->a.closed.code);
	end_close(&f->a);
	(void)close(f->fd);
	open_one(f, mux);
	write_all(f->fd, framed, sizeof framed);
	WAIT(f, f->a.n_closed);
	assert_int_equal(-EMSGSIZE, f->a.closed.code);
}

static void read_exactly(int fd, uint8_t *to, size_t n, struct fixture *f)
{
	while (n) {
		ssize_t got = read(fd, to, n);
		if (got < 0) {
			assert_int_equal(EAGAIN, errno);
			loop_timer_arm(f->watchdog, WATCHDOG_MS);
			let_run(f, 1);
			continue;
		}
		assert_true(got > 0);
		to += got;
		n -= (size_t)got;
	}
}

static void ask(struct fixture *f, uint32_t stream)
{
	uint8_t frame[18] = {0, 0, 0, 1, 0, 0, 0, 10};
	ttrpc_header_encode(frame + 8, &(struct ttrpc_header){0, stream, TTRPC_REQUEST, 0});
	write_all(f->fd, frame, sizeof frame);
}

/* Checks that a peer that sends many requests before it reads gets its answers. */
static void test_peer_reads_late(void **state)
{
	struct fixture *f = *state;
	const unsigned n_requests = 40;
	open_one(f, mux);
	f->a.echo_size = 1u << 20;
	for (uint32_t i = 0; i < n_requests; i++)
		ask(f, 2 * i + 1);
	WAIT(f, f->a.n_requests == n_requests);
	assert_true(trunk_unsent(f->a.trunk) > (n_requests - 2) << 20);
	uint8_t *answer = malloc(2u << 20);
	for (uint32_t i = 0; i < n_requests; i++) {
		read_exactly(f->fd, answer, 8, f);
		assert_int_equal(MUX_FIRST_FRAME_MAX, get_be32(answer + 4));
		read_exactly(f->fd, answer, MUX_FIRST_FRAME_MAX, f);
		assert_int_equal(2 * i + 1, get_be32(answer + 4));
		size_t left = get_be32(answer) + TTRPC_HEADER_SIZE - MUX_FIRST_FRAME_MAX;
		read_exactly(f->fd, answer, 8, f);
		assert_int_equal(left, get_be32(answer + 4));
		assert_true(left < 2u << 20);
		read_exactly(f->fd, answer, left, f);
	}
	free(answer);
	assert_int_equal(0, f->a.n_closed);
	assert_int_equal(0, trunk_unsent(f->a.trunk));
}

static void test_peer_never_reads(void **state)
{
	struct fixture *f = *state;
	open_one(f, mux);
	f->a.echo_size = 4000000;
	for (uint32_t i = 0; i < 30; i++)
		ask(f, 2 * i + 1);
	WAIT(f, f->a.n_closed);
	assert_int_equal(-ENOBUFS, f->a.closed.code);
	assert_non_null(strstr(f->a.closed.text, "does not read its replies"));
	assert_in_range(f->a.n_requests, 17, 20);
}

static void test_large_message(void **state)
{
	struct fixture *f = *state;
	struct result r = {0};
	open_both(f, mux, mux);
	f->b.echo_size = 3u << 20;
	assert_int_equal(0, call(&f->a, MUX_CONN_PLUGIN, 4000000, 0, &r));
	WAIT(f, r.n);
	assert_int_equal(0, r.error);
	assert_true(f->b.last_size > 4000000);
}

/* ---- time ---- */

static void test_timeout(void **state)
{
	struct fixture *f = *state;
	struct result r[3] = {0};
	open_both(f, mux, mux);
	f->b.on_request = KEEP;
	assert_int_equal(0, call(&f->a, MUX_CONN_RUNTIME, 1, 30, &r[0]));
	assert_int_equal(0, call(&f->a, MUX_CONN_PLUGIN, 1, 5, &r[1]));
	assert_int_equal(0, call(&f->a, MUX_CONN_RUNTIME, 1, 600000, &r[2]));
	WAIT(f, r[1].n);
	assert_int_equal(0, r[2].n);
	WAIT(f, r[0].n);
	assert_int_equal(-ETIMEDOUT, r[0].error);
	assert_int_equal(-ETIMEDOUT, r[1].error);
	assert_int_equal(0, r[2].n);
	/* The connection is as good as before; late answers are not. */
	WAIT(f, f->b.n_kept == 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(0, rpc_reply(f->b.kept[i], NULL));
	f->b.n_kept = 0;
	WAIT(f, r[2].n);
	assert_int_equal(0, r[2].error);
	assert_int_equal(1, r[0].n);
}

static void test_free_at_timeout(void **state)
{
	struct fixture *f = *state;
	struct result r = {.free_trunk = true};
	open_one(f, mux);
	assert_int_equal(0, call(&f->a, MUX_CONN_RUNTIME, 1, 1, &r));
	WAIT(f, r.n);
	assert_int_equal(-ETIMEDOUT, r.error);
	assert_null(f->a.trunk);
}

/* ---- the end ---- */

static void test_peer_closes(void **state)
{
	struct fixture *f = *state;
	struct result r[2] = {{.call_again = true}, {.call_again = true}};
	open_both(f, mux, mux);
	f->b.on_request = f->a.on_request = KEEP;
	assert_int_equal(0, call(&f->a, MUX_CONN_RUNTIME, 1, 0, &r[0]));
	assert_int_equal(0, call(&f->a, MUX_CONN_PLUGIN, 1, 0, &r[1]));
	WAIT(f, f->b.n_kept == 2);
	/* Not answered, as the other end would on its own: the process is gone. */
	rpc_shut(trunk_rpc(f->b.trunk, 1));
	rpc_shut(trunk_rpc(f->b.trunk, 2));
	f->b.trunk = trunk_free(f->b.trunk);
	WAIT(f, f->a.n_closed);
	assert_int_equal(-ECONNRESET, f->a.closed.code);
	assert_string_equal("the peer closed the connection", f->a.closed.text);
	assert_int_equal(2, f->a.n_done_at_close);
	assert_int_equal(-ECONNRESET, r[0].error);
	assert_int_equal(-ECONNRESET, r[1].error);
	let_run(f, 1);
	assert_int_equal(1, f->a.n_closed);
}

static void test_pending_when_peer_closes(void **state)
{
	struct fixture *f = *state;
	open_one(f, plain);
	f->a.on_request = KEEP;
	f->a.free_when_closed = true;
	write_message(f->fd, 1, TTRPC_REQUEST, NULL, 0);
	WAIT(f, f->a.n_kept);
	(void)close(f->fd);
	f->fd = -1;
	WAIT(f, f->a.n_closed);
	assert_null(f->a.trunk);
	assert_null(f->a.kept[0]->rpc);
	/* answered by tear_down */
}

static void test_peer_closes_in_the_middle(void **state)
{
	struct fixture *f = *state;
	static const uint8_t bytes[] = {0, 0, 0, 1, 0, 0, 0, 4, 0, 0};
	static const size_t cuts[] = {4, 8, 10};
	for (unsigned i = 0; i < 3; i++) {
		open_one(f, mux);
		write_all(f->fd, bytes, cuts[i]);
		(void)close(f->fd);
		f->fd = -1;
		WAIT(f, f->a.n_closed);
		assert_int_equal(-ECONNRESET, f->a.closed.code);
		assert_non_null(strstr(f->a.closed.text, "in the middle of a message"));
		end_close(&f->a);
	}
}

/* Checks that the reason of a disconnection is read although writing already fails. */
static void test_answer_before_close(void **state)
{
	struct fixture *f = *state;
	struct result r[3] = {0};
	static const uint8_t refusal[] = {0x0a, 8, 0x08, 2, 0x12, 4, 'n', 'o', 'p', 'e'};
	open_one(f, plain);
	assert_int_equal(0, call(&f->a, 0, 1, 0, &r[0]));
	write_message(f->fd, 1, TTRPC_RESPONSE, refusal, sizeof refusal);
	(void)close(f->fd);
	f->fd = -1;
	assert_int_equal(0, call(&f->a, 0, 1, 0, &r[1]));
	assert_int_equal(0, call(&f->a, 0, 1, 0, &r[2]));
	assert_int_equal(0, trunk_unsent(f->a.trunk));
	assert_int_equal(0, f->a.n_closed + f->n_done);
	WAIT(f, f->a.n_closed);
	assert_int_equal(-EREMOTEIO, r[0].error);
	assert_string_equal("nope", r[0].text);
	assert_int_equal(-ECONNRESET, r[1].error);
	assert_int_equal(-ECONNRESET, r[2].error);
	assert_int_equal(3, f->a.n_done_at_close);
	assert_int_equal(1, f->a.n_closed);
}

/* Checks a peer that stops reading: writing fails. */
static void test_peer_stops_reading(void **state)
{
	struct fixture *f = *state;
	struct result r = {0};
	open_one(f, plain);
	assert_int_equal(0, shutdown(f->fd, SHUT_RD));
	assert_int_equal(0, call(&f->a, 0, 1, 0, &r));
	WAIT(f, f->a.n_closed);
	assert_int_equal(-EPIPE, f->a.closed.code);
	assert_non_null(strstr(f->a.closed.text, "writing"));
	assert_int_equal(-ECONNRESET, r.error);
}

static void test_free_answers_pending(void **state)
{
	struct fixture *f = *state;
	struct result r = {0};
	open_both(f, mux, mux);
	f->b.on_request = KEEP;
	assert_int_equal(0, call(&f->a, MUX_CONN_PLUGIN, 1, 0, &r));
	WAIT(f, f->b.n_kept);
	f->b.trunk = trunk_free(f->b.trunk);
	WAIT(f, r.n);
	assert_int_equal(-EREMOTEIO, r.error);
	assert_int_equal(TTRPC_UNAVAILABLE, r.code);
	WAIT(f, f->a.n_closed);
	assert_int_equal(0, f->b.n_closed); /* trunk_free() does not report its own closing */
}

static void test_free_cancels_calls(void **state)
{
	struct fixture *f = *state;
	struct result r = {0};
	open_one(f, mux);
	assert_int_equal(0, call(&f->a, MUX_CONN_RUNTIME, 1, 1000, &r));
	f->a.trunk = trunk_free(f->a.trunk);
	assert_int_equal(1, r.n);
	assert_int_equal(-ECANCELED, r.error);
	assert_int_equal(0, f->a.n_closed);
	assert_null(trunk_free(NULL));
}

static void test_free_in_handler(void **state)
{
	struct fixture *f = *state;
	struct result r[2] = {0};
	open_both(f, mux, mux);
	f->b.on_request = FREE_TRUNK;
	assert_int_equal(0, call(&f->a, MUX_CONN_PLUGIN, 1, 0, &r[0]));
	assert_int_equal(0, call(&f->a, MUX_CONN_RUNTIME, 1, 0, &r[1]));
	WAIT(f, f->a.n_closed);
	assert_int_equal(1, f->b.n_requests);
	assert_int_equal(-EREMOTEIO, r[0].error);
	assert_int_equal(-ECONNRESET, r[1].error);
}

static void test_answer_and_free_in_handler(void **state)
{
	struct fixture *f = *state;
	struct result r = {0};
	open_both(f, plain, plain);
	f->b.on_request = ANSWER_AND_FREE;
	assert_int_equal(0, call(&f->a, 0, 1, 0, &r));
	WAIT(f, f->a.n_closed);
	assert_int_equal(1, r.n);
	assert_int_equal(0, r.error);
}

static void test_free_in_callback(void **state)
{
	struct fixture *f = *state;
	struct result r[2] = {{.free_trunk = true}, {.free_trunk = true}};
	open_both(f, mux, mux);
	assert_int_equal(0, call(&f->a, MUX_CONN_PLUGIN, 1, 0, &r[0]));
	assert_int_equal(0, call(&f->a, MUX_CONN_RUNTIME, 1, 0, &r[1]));
	WAIT(f, r[0].n);
	assert_null(f->a.trunk);
	assert_int_equal(0, r[0].error);
	assert_int_equal(1, r[1].n);
	assert_int_equal(-ECANCELED, r[1].error);
}

static void test_late_answer(void **state)
{
	struct fixture *f = *state;
	open_one(f, plain);
	f->a.on_request = KEEP;
	write_message(f->fd, 1, TTRPC_REQUEST, NULL, 0);
	write_message(f->fd, 3, TTRPC_REQUEST, NULL, 0);
	WAIT(f, f->a.n_kept == 2);
	assert_int_equal(0, rpc_reply(f->a.kept[1], NULL));
	assert_int_equal(0, rpc_reply_error(f->a.kept[0], TTRPC_INTERNAL, "x"));
	f->a.n_kept = 0;
	uint8_t answers[100];
	assert_int_equal(10 + 10 + 7, read(f->fd, answers, sizeof answers));
	assert_int_equal(3, get_be32(answers + 4));
	assert_int_equal(1, get_be32(answers + 14));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_plain),
		TEST(test_four_ways),
		TEST(test_order_of_connections),
		TEST(test_byte_by_byte),
		TEST(test_both_send_large),
		TEST(test_one_large_frame),
		TEST(test_frame_over_limit),
		TEST(test_message_over_limit),
		TEST(test_peer_reads_late),
		TEST(test_peer_never_reads),
		TEST(test_large_message),
		TEST(test_timeout),
		TEST(test_free_at_timeout),
		TEST(test_peer_closes),
		TEST(test_pending_when_peer_closes),
		TEST(test_peer_closes_in_the_middle),
		TEST(test_answer_before_close),
		TEST(test_peer_stops_reading),
		TEST(test_free_answers_pending),
		TEST(test_free_cancels_calls),
		TEST(test_free_in_handler),
		TEST(test_answer_and_free_in_handler),
		TEST(test_free_in_callback),
		TEST(test_late_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
