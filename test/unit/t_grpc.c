/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of gRPC on one loop, over a real socket: what one says, the other hears; and the limits
 * in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lib/grpc/call.h"
#include "core/lib/grpc/conn.h"
#include "core/lib/grpc/served.h"
#include "core/lib/grpc/server.h"
#include "core/lib/wire/sock.h"

#define TURNS_MAX 1000000u

/* The method name selects the behaviour of the server below. */
struct fixture {
	struct loop *loop;
	char dir[64], path[96];
	struct grpc_server *server;
	struct grpc_conn *conn;
	unsigned n_served, n_gone, n_finished;
	struct grpc_served *held; /* open call of /t/Hold */
	struct h2_stream *raw; /* open stream of /t/Raw */
	size_t sent; /* bytes sent by /t/Flood */
	char metadata[32];
};

struct outcome {
	struct fixture *f;
	unsigned n, n_messages;
	int error;
	int32_t status;
	char text[128];
	size_t n_payload;
	char payload[32];
};

/* ---- the server ------------------------------------------------------------------------------ */

struct method {
	struct fixture *f;
	char path[16];
	struct grpc_served *served;
};

static void on_message(struct grpc_served *c, const struct grpc_message *m, void *arg)
{
	const struct method *method = arg;
	if (strcmp(method->path, "/t/Echo") == 0 || strcmp(method->path, "/t/Chat") == 0)
		assert_int_equal(grpc_served_send(c, m->data, m->n), 0);
}

static void on_finished(struct grpc_served *c, void *arg)
{
	static const uint8_t many[100000];
	struct method *method = arg;
	struct fixture *f = method->f;
	f->n_finished++;
	if (strcmp(method->path, "/t/Hold") == 0) {
		f->held = c;
		return;
	}
	if (strcmp(method->path, "/t/Count") == 0)
		for (char i = '0'; i < '5'; i++)
			assert_int_equal(grpc_served_send(c, (const uint8_t *)&i, 1), 0);
	if (strcmp(method->path, "/t/Flood") == 0)
		for (unsigned i = 0; i < 50; i++)
			assert_int_equal(grpc_served_send(c, many, sizeof many), 0);
	if (strcmp(method->path, "/t/Refuse") == 0)
		grpc_served_end(
			c, GRPC_FAILED_PRECONDITION, "no: \xc3\xa9 100%",
			&(struct h2_fields){(struct h2_field[]){H2_FIELD("x-why", "so")}, 1});
	else
		grpc_served_end(c, GRPC_OK, NULL, NULL);
	free(method);
}

static void on_sent(struct grpc_served *c, size_t n, void *arg)
{
	((struct method *)arg)->f->sent += n;
}

static void on_gone(struct grpc_served *c, void *arg)
{
	struct method *method = arg;
	method->f->n_gone++;
	if (method->f->held == c)
		method->f->held = NULL;
	free(method);
}

static void on_raw_closed(struct h2_stream *s, const struct h2_end *end, void *arg)
{
	struct fixture *f = arg;
	f->raw = NULL;
}

static void on_accept(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg)
{
	static const struct h2_events raw = {.closed = on_raw_closed};
	struct fixture *f = arg;
	const struct h2_field *path = h2_field_find(fields, ":path"),
			      *metadata = h2_field_find(fields, "x-who");
	f->n_served++;
	(void)snprintf(f->metadata, sizeof f->metadata, "%s", metadata ? metadata->value : "");
	if (strcmp(path->value, "/t/Raw") == 0) {
		h2_stream_listen(s, &raw, f);
		f->raw = s;
		return;
	}
	if (strcmp(path->value, "/t/None") == 0) {
		grpc_refuse(s, GRPC_UNIMPLEMENTED, "unknown method None");
		return;
	}
	struct method *method = calloc(1, sizeof *method);
	method->f = f;
	(void)snprintf(method->path, sizeof method->path, "%s", path->value);
	assert_int_equal(grpc_serve(s, fields, last,
				    &(struct grpc_served_config){.loop = f->loop,
								 .message_max = 1u << 20,
								 .message = on_message,
								 .finished = on_finished,
								 .sent = on_sent,
								 .gone = on_gone,
								 .arg = method},
				    &method->served),
			 0);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void on_conn_ended(struct grpc_conn *c, const struct err *err, void *arg)
{
	struct fixture *f = arg;
	f->conn = grpc_conn_free(c);
}

static struct grpc_conn *connect_to(struct fixture *f)
{
	struct err err = ERR_INIT;
	struct grpc_conn *c = NULL;
	int fd = wire_connect_unix(f->path, &err);
	assert_true(fd >= 0);
	assert_int_equal(grpc_conn_new(fd,
				       &(struct grpc_conn_config){.loop = f->loop,
								  .peer = "the server",
								  .ended = on_conn_ended,
								  .arg = f},
				       &c, &err),
			 0);
	return c;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct err err = ERR_INIT;
	(void)snprintf(f->dir, sizeof f->dir, "/tmp/nri-rp-grpc.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->path, sizeof f->path, "%s/s.sock", f->dir);
	f->loop = loop_new();
	assert_int_equal(grpc_server_new(&(struct grpc_server_config){.loop = f->loop,
								      .path = f->path,
								      .mode = 0600,
								      .accept = on_accept,
								      .arg = f},
					 &f->server, &err),
			 0);
	f->conn = connect_to(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	grpc_conn_free(f->conn);
	grpc_server_free(f->server);
	loop_free(f->loop);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void on_answer(const uint8_t *payload, size_t n, void *arg)
{
	struct outcome *o = arg;
	o->payload[o->n_messages++ % sizeof o->payload] = n ? (char)*payload : ' ';
}

static void on_done(const struct grpc_result *r, void *arg)
{
	struct outcome *o = arg;
	o->n++;
	o->error = r->error;
	o->status = r->status;
	o->n_payload = r->payload_len;
	(void)snprintf(o->text, sizeof o->text, "%s", r->text);
	if (r->payload)
		(void)snprintf(o->payload, sizeof o->payload, "%.*s", (int)r->payload_len,
			       (const char *)r->payload);
}

static struct grpc_call *call(struct fixture *f, const char *path, const void *payload, size_t n,
			      uint32_t timeout_ms, bool streams, struct outcome *o)
{
	struct h2_field who = H2_FIELD("x-who", "me");
	struct grpc_call *c = NULL;
	*o = (struct outcome){.f = f};
	assert_int_equal(
		grpc_call_packed(&(struct grpc_call_config){.h2 = grpc_conn_h2(f->conn),
							    .loop = f->loop,
							    .path = path,
							    .timeout_ms = timeout_ms,
							    .metadata = {&who, 1},
							    .message = streams ? on_answer : NULL,
							    .done = on_done,
							    .arg = o},
				 payload, n, &c),
		0);
	return c;
}

static void stop(void *arg)
{
	loop_stop(arg);
}

/* Runs one iteration of the loop without waiting. */
static void turn(struct fixture *f)
{
	assert_int_equal(loop_post(f->loop, stop, f->loop), 0);
	assert_int_equal(loop_run(f->loop), 0);
}

#define UNTIL(f, condition)                                                                        \
	do {                                                                                       \
		unsigned n_turns_ = 0;                                                             \
		while (!(condition)) {                                                             \
			turn(f);                                                                   \
			assert_true(n_turns_++ < TURNS_MAX);                                       \
		}                                                                                  \
	} while (0)

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_a_call_is_answered(void **state)
{
	struct fixture *f = *state;
	static struct outcome o;
	call(f, "/t/Echo", "hello", 5, 0, false, &o);
	UNTIL(f, o.n);
	assert_int_equal(o.error, 0);
	assert_string_equal(o.payload, "hello");
	assert_string_equal(f->metadata, "me");
	assert_int_equal(f->n_gone, 0);
	UNTIL(f, !h2_n_streams(grpc_conn_h2(f->conn)));
}

static void test_a_large_message_goes_both_ways(void **state)
{
	struct fixture *f = *state;
	static struct outcome o;
	size_t n = 1u << 20;
	char *much = calloc(1, n);
	memset(much, 'x', n);
	call(f, "/t/Echo", much, n, 0, false, &o);
	UNTIL(f, o.n);
	assert_int_equal(o.error, 0);
	assert_int_equal(o.n_payload, n);
	/* The payload exceeds the server's limit by one byte. */
	char *more = calloc(1, n + 1);
	call(f, "/t/Echo", more, n + 1, 0, false, &o);
	UNTIL(f, o.n);
	assert_int_equal(o.error, -EREMOTEIO);
	assert_int_equal(o.status, GRPC_RESOURCE_EXHAUSTED);
	assert_int_equal(f->n_gone, 1);
	free(much);
	free(more);
}

static void test_a_stream_of_answers_comes_in_order(void **state)
{
	struct fixture *f = *state;
	static struct outcome o;
	call(f, "/t/Count", "", 0, 0, true, &o);
	UNTIL(f, o.n);
	assert_int_equal(o.error, 0);
	assert_int_equal(o.n_messages, 5);
	assert_memory_equal(o.payload, "01234", 5);
}

static void test_a_refusal_has_its_text(void **state)
{
	struct fixture *f = *state;
	static struct outcome o;
	call(f, "/t/Refuse", "", 0, 0, false, &o);
	UNTIL(f, o.n);
	assert_int_equal(o.error, -EREMOTEIO);
	assert_int_equal(o.status, GRPC_FAILED_PRECONDITION);
	assert_string_equal(o.text, "no: \xc3\xa9 100%");
	call(f, "/t/None", "", 0, 0, false, &o);
	UNTIL(f, o.n);
	assert_int_equal(o.status, GRPC_UNIMPLEMENTED);
	assert_string_equal(o.text, "unknown method None");
}

static void test_a_deadline_ends_both_sides(void **state)
{
	struct fixture *f = *state;
	static struct outcome o;
	call(f, "/t/Hold", "", 0, 50, false, &o);
	UNTIL(f, f->held || f->n_gone);
	UNTIL(f, o.n && f->n_gone);
	/* Whichever clock was first. */
	assert_int_equal(
		grpc_result_error(&(struct grpc_result){.error = o.error, .status = o.status}),
		-ETIMEDOUT);
	assert_int_equal(o.n, 1);
	assert_int_equal(f->n_gone, 1);
}

static void test_a_call_that_is_cancelled_is_gone_for_the_server(void **state)
{
	struct fixture *f = *state;
	static struct outcome o, other;
	struct grpc_call *c = call(f, "/t/Hold", "", 0, 0, false, &o);
	UNTIL(f, f->held);
	grpc_call_cancel(c);
	UNTIL(f, f->n_gone);
	assert_int_equal(o.n, 0);
	call(f, "/t/Echo", "x", 1, 0, false, &other);
	UNTIL(f, other.n);
	assert_int_equal(other.error, 0);
}

static void test_a_caller_that_vanishes_ends_its_calls(void **state)
{
	struct fixture *f = *state;
	static struct outcome o;
	call(f, "/t/Hold", "", 0, 0, false, &o);
	UNTIL(f, f->held);
	f->conn = grpc_conn_free(f->conn);
	assert_int_equal(o.n, 1);
	assert_int_equal(o.error, -ECANCELED);
	UNTIL(f, f->n_gone && !grpc_server_n_connections(f->server));
}

static void test_a_server_that_vanishes_ends_the_calls(void **state)
{
	struct fixture *f = *state;
	static struct outcome o;
	call(f, "/t/Hold", "", 0, 0, false, &o);
	UNTIL(f, f->held);
	f->server = grpc_server_free(f->server);
	assert_int_equal(f->n_gone, 1);
	UNTIL(f, o.n && !f->conn);
	assert_int_equal(o.error, -ECONNRESET);
}

/* ---- streams by themselves ------------------------------------------------------------------- */

struct reader {
	size_t got, kept; /* kept: not consumed */
	bool closed;
	struct h2_end end;
};

static void on_kept_data(struct h2_stream *s, const uint8_t *data, size_t n, void *arg)
{
	struct reader *r = arg;
	r->got += n;
	r->kept += n;
}

static void on_reader_closed(struct h2_stream *s, const struct h2_end *end, void *arg)
{
	struct reader *r = arg;
	r->closed = true;
	r->end = *end;
}

static const struct h2_events reader_events = {.data = on_kept_data, .closed = on_reader_closed};

static struct h2_stream *open_stream(struct fixture *f, const char *path, struct reader *r)
{
	struct h2_field list[] = {H2_FIELD(":method", "POST"), H2_FIELD(":scheme", "http"),
				  H2_FIELD(":path", path), H2_FIELD(":authority", "localhost"),
				  H2_FIELD("content-type", GRPC_CONTENT_TYPE)};
	struct h2_stream *s = NULL;
	assert_int_equal(h2_open(grpc_conn_h2(f->conn), &(struct h2_fields){list, 5}, false,
				 &reader_events, r, &s),
			 0);
	return s;
}

static void test_a_slow_reader_slows_its_sender_and_nobody_else(void **state)
{
	struct fixture *f = *state;
	static struct reader r;
	r = (struct reader){0};
	static struct outcome o;
	size_t all = 50 * (100000 + GRPC_PREFIX_SIZE);
	struct h2_stream *s = open_stream(f, "/t/Flood", &r);
	assert_int_equal(h2_stream_finish(s, NULL), 0);
	UNTIL(f, r.got >= H2_STREAM_WINDOW);
	/* Others get their answers past it; more than the window does not come. */
	for (unsigned i = 0; i < 20; i++) {
		call(f, "/t/Echo", "x", 1, 0, false, &o);
		UNTIL(f, o.n);
		assert_int_equal(o.error, 0);
	}
	assert_int_equal(r.got, H2_STREAM_WINDOW);
	while (!r.closed) {
		size_t n = r.kept;
		r.kept = 0;
		h2_stream_consume(s, n);
		turn(f);
	}
	assert_int_equal(r.got, all);
	assert_int_equal(r.end.error, 0);
	assert_int_equal(r.end.code, H2_NO_ERROR);
}

static void test_a_stream_in_both_directions(void **state)
{
	static const uint8_t one[] = {0, 0, 0, 0, 1, 'a'};
	struct fixture *f = *state;
	static struct reader r;
	r = (struct reader){0};
	struct h2_stream *s = open_stream(f, "/t/Chat", &r);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(h2_stream_write(s, one, sizeof one), 0);
		UNTIL(f, r.got == i * sizeof one);
		assert_int_equal(f->n_finished, 0);
	}
	assert_int_equal(h2_stream_finish(s, NULL), 0);
	UNTIL(f, r.closed);
	assert_int_equal(r.end.code, H2_NO_ERROR);
	assert_int_equal(f->n_finished, 1);
}

static void test_an_answer_in_full_ends_what_the_caller_still_says(void **state)
{
	struct fixture *f = *state;
	static struct reader r;
	r = (struct reader){0};
	(void)open_stream(f, "/t/None", &r);
	UNTIL(f, r.closed);
	assert_int_equal(r.end.code, H2_NO_ERROR);
	UNTIL(f, !h2_n_streams(grpc_conn_h2(f->conn)));
}

/* Checks that a single connection cannot use all calls of the server. */
static void test_calls_at_once_have_a_limit(void **state)
{
	struct fixture *f = *state;
	const unsigned most = GRPC_CALLS_MAX - GRPC_CALLS_SPARE;
	struct reader *readers = calloc(most, sizeof *readers);
	for (unsigned i = 0; i < most; i++)
		(void)open_stream(f, "/t/Raw", &readers[i]);
	UNTIL(f, f->n_served == most);
	struct grpc_conn *first = f->conn;
	static struct outcome o;
	call(f, "/t/Echo", "x", 1, 0, false, &o);
	UNTIL(f, o.n);
	assert_int_equal(o.status, GRPC_RESOURCE_EXHAUSTED);
	f->conn = connect_to(f);
	call(f, "/t/Echo", "x", 1, 0, false, &o);
	UNTIL(f, o.n);
	assert_int_equal(o.error, 0);
	grpc_conn_free(first);
	UNTIL(f, grpc_server_n_connections(f->server) == 1);
	free(readers);
}

/* Checks that a new connection replaces the one that has been idle for longest, and is refused
 * if all are busy. */
static void test_connections_have_a_limit(void **state)
{
	struct fixture *f = *state;
	struct grpc_conn *conns[GRPC_CONNECTIONS_MAX];
	static struct reader readers[GRPC_CONNECTIONS_MAX];
	static struct outcome o;
	for (unsigned i = 1; i < GRPC_CONNECTIONS_MAX; i++) {
		conns[i] = connect_to(f);
		turn(f); /* there is room for few in the socket's queue */
	}
	UNTIL(f, grpc_server_n_connections(f->server) == GRPC_CONNECTIONS_MAX);
	conns[0] = connect_to(f);
	UNTIL(f, !f->conn); /* the first one */
	unsigned before = f->n_served;
	for (unsigned i = 0; i < GRPC_CONNECTIONS_MAX; i++) {
		f->conn = conns[i];
		(void)open_stream(f, "/t/Raw", &readers[i]);
	}
	UNTIL(f, f->n_served == before + GRPC_CONNECTIONS_MAX);
	f->conn = connect_to(f);
	call(f, "/t/Echo", "x", 1, 0, false, &o);
	UNTIL(f, o.n);
	assert_int_equal(o.error, -ECONNRESET);
	UNTIL(f, !f->conn);
	f->conn = conns[0];
	call(f, "/t/Echo", "x", 1, 0, false, &o);
	UNTIL(f, o.n);
	assert_int_equal(o.error, 0);
	for (unsigned i = 1; i < GRPC_CONNECTIONS_MAX; i++)
		grpc_conn_free(conns[i]);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void check_timeout(const char *text, int error, uint64_t ms)
{
	uint64_t got = 0;
	struct h2_field field = H2_FIELD("grpc-timeout", text);
	assert_int_equal(grpc_timeout_ms(&field, &got), error);
	assert_int_equal(got, ms);
}

static void test_timeouts_are_read(void **state)
{
	uint64_t got = 0;
	check_timeout("2S", 0, 2000);
	check_timeout("1H", 0, 3600000);
	check_timeout("3M", 0, 180000);
	check_timeout("250m", 0, 250);
	check_timeout("1001u", 0, 2);
	check_timeout("1n", 0, 1);
	check_timeout("99999999H", 0, 99999999ull * 3600000);
	check_timeout("0S", 0, 0);
	check_timeout("999999999S", -EINVAL, 0);
	check_timeout("S", -EINVAL, 0);
	check_timeout("", -EINVAL, 0);
	check_timeout("-1S", -EINVAL, 0);
	check_timeout("1s", -EINVAL, 0);
	assert_int_equal(grpc_timeout_ms(NULL, &got), 0);
	assert_true(got == UINT64_MAX);
}

static void test_texts_survive_their_encoding(void **state)
{
	static const char *const texts[] = {"", "plain", "100% \xc3\xa9", "%41"};
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		char encoded[64], decoded[64];
		grpc_encode_text(texts[i], encoded, sizeof encoded);
		for (const char *p = encoded; *p; p++)
			assert_true(*p >= ' ' && *p <= '~');
		grpc_decode_text((const uint8_t *)encoded, strlen(encoded), decoded,
				 sizeof decoded);
		assert_string_equal(decoded, texts[i]);
	}
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SERVER(test_a_call_is_answered),
		WITH_SERVER(test_a_large_message_goes_both_ways),
		WITH_SERVER(test_a_stream_of_answers_comes_in_order),
		WITH_SERVER(test_a_refusal_has_its_text),
		WITH_SERVER(test_a_deadline_ends_both_sides),
		WITH_SERVER(test_a_call_that_is_cancelled_is_gone_for_the_server),
		WITH_SERVER(test_a_caller_that_vanishes_ends_its_calls),
		WITH_SERVER(test_a_server_that_vanishes_ends_the_calls),
		WITH_SERVER(test_a_slow_reader_slows_its_sender_and_nobody_else),
		WITH_SERVER(test_a_stream_in_both_directions),
		WITH_SERVER(test_an_answer_in_full_ends_what_the_caller_still_says),
		WITH_SERVER(test_calls_at_once_have_a_limit),
		WITH_SERVER(test_connections_have_a_limit),
		cmocka_unit_test(test_timeouts_are_read),
		cmocka_unit_test(test_texts_survive_their_encoding),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
