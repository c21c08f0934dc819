/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC calls over HTTP/2: what is sent, and each way in which an answer can be wrong, whole and
 * byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/lib/grpc/call.h"
#include "proto/podresources.pb-c.h"
#include "test/unit/h2_server.h"

#define MESSAGE_MAX 65536u
#define METHOD "/v1.PodResourcesLister/Get"

struct outcome {
	struct fixture *fixture;
	unsigned n;
	int error;
	int32_t status;
	char text[ERR_TEXT_MAX];
	size_t n_payload;
	uint8_t payload[64]; /* first bytes of the payload */
	bool call_again;
	struct loop *loop; /* stopped when the call ends */
};

struct fixture {
	struct h2 *h2;
	struct loop *loop;
	struct buf out;
	uint32_t timeout_ms;
	struct h2_server server;
	size_t piece; /* bytes the client gets at a time; 0: all */
	int fed; /* first error of h2_feed */
	char why[ERR_TEXT_MAX];
};

static void on_touched(void *arg)
{
}

static void call(struct fixture *f, struct outcome *o);

static void on_done(const struct grpc_result *r, void *arg)
{
	struct outcome *o = arg;
	o->n++;
	o->error = r->error;
	o->status = r->status;
	(void)snprintf(o->text, sizeof o->text, "%s", r->text);
	o->n_payload = r->payload_len;
	if (r->payload_len)
		memcpy(o->payload, r->payload,
		       r->payload_len < sizeof o->payload ? r->payload_len : sizeof o->payload);
	if (o->loop)
		loop_stop(o->loop);
	if (o->call_again) {
		o->call_again = false;
		call(o->fixture, o);
	}
}

static void begin(struct fixture *f, size_t piece)
{
	*f = (struct fixture){.out = BUF_INIT, .piece = piece, .timeout_ms = 1000};
	f->loop = loop_new();
	f->h2 = h2_new(&(struct h2_config){.touched = on_touched});
	assert_non_null(f->h2);
	assert_int_equal(h2_start(&f->server), 0);
}

static void finish(struct fixture *f)
{
	f->h2 = h2_free(f->h2);
	loop_free(f->loop);
	h2_stop(&f->server);
	buf_fini(&f->out);
}

static int try_call(struct fixture *f, struct outcome *o, const ProtobufCMessage *msg)
{
	return grpc_call(&(struct grpc_call_config){.h2 = f->h2,
						    .loop = f->loop,
						    .path = METHOD,
						    .timeout_ms = f->timeout_ms,
						    .message_max = MESSAGE_MAX,
						    .done = on_done,
						    .arg = o},
			 msg, NULL);
}

static void call(struct fixture *f, struct outcome *o)
{
	Podresources__GetRequest msg = PODRESOURCES__GET_REQUEST__INIT;
	char ns[] = "ns", name[] = "pod";
	msg.pod_namespace = ns;
	msg.pod_name = name;
	o->fixture = f;
	assert_int_equal(try_call(f, o, &msg.base), 0);
}

static void pull(struct fixture *f)
{
	assert_int_equal(h2_pull(f->h2, &f->out, SIZE_MAX), 0);
}

/* Exchanges bytes until neither side has any left to send. */
static void exchange(struct fixture *f)
{
	struct err err = ERR_INIT;
	pull(f);
	while (!f->fed && (buf_len(&f->out) || buf_len(&f->server.out))) {
		assert_int_equal(h2_feed_server(&f->server, &f->out), 0);
		size_t n = buf_len(&f->server.out);
		if (f->piece && n > f->piece)
			n = f->piece;
		if (!n)
			continue;
		f->fed = h2_feed(f->h2, buf_bytes(&f->server.out), n, &err);
		pull(f);
		buf_consume(&f->server.out, n);
		(void)snprintf(f->why, sizeof f->why, "%s", err.text);
	}
}

static void ask_and_answer(struct fixture *f, struct outcome *o, const struct h2_answer *a)
{
	call(f, o);
	exchange(f);
	assert_int_equal(f->server.n_streams, 1);
	assert_int_equal(h2_answer(&f->server, f->server.streams[0], a), 0);
	exchange(f);
}

/* Returns the outcome of an answer, and checks that it is independent of the division into
 * pieces. */
static void one_answer(const struct h2_answer *a, struct outcome *ret)
{
	static const size_t pieces[] = {0, 1, 7};
	for (unsigned i = 0; i < 3; i++) {
		struct fixture f;
		struct outcome o = {0};
		begin(&f, pieces[i]);
		ask_and_answer(&f, &o, a);
		assert_int_equal(o.n, 1);
		assert_int_equal(f.fed, 0);
		assert_true(h2_usable(f.h2)); /* a bad answer is no reason for others to fail */
		assert_int_equal(h2_n_streams(f.h2), 0);
		finish(&f);
		assert_int_equal(o.n, 1);
		if (i)
			assert_memory_equal(&o.error, &ret->error, sizeof o.error);
		*ret = o;
	}
}

static void test_a_request_is_what_grpc_wants(void **state)
{
	struct fixture f;
	struct outcome o = {0};
	begin(&f, 0);
	call(&f, &o);
	exchange(&f);
	assert_string_equal(f.server.path, METHOD);
	assert_string_equal(f.server.type, "application/grpc");
	assert_string_equal(f.server.te, "trailers");
	assert_string_equal(f.server.timeout, "1000m");
	/* not compressed; length 9; pod_name = "pod", pod_namespace = "ns" */
	static const uint8_t body[] = {0, 0, 0, 0, 9, 0x0a, 3, 'p', 'o', 'd', 0x12, 2, 'n', 's'};
	assert_int_equal(buf_len(&f.server.body), sizeof body);
	assert_memory_equal(buf_bytes(&f.server.body), body, sizeof body);
	assert_int_equal(o.n, 0);
	finish(&f);
	assert_int_equal(o.error, -ECANCELED);
}

static void test_a_message_is_given_to_the_caller(void **state)
{
	static const uint8_t data[] = {0, 0, 0, 0, 3, 'a', 'b', 'c'}, none[] = {0, 0, 0, 0, 0};
	struct outcome o;
	one_answer(&(struct h2_answer){.data = data, .n_data = sizeof data, .status = "0"}, &o);
	assert_int_equal(o.error, 0);
	assert_int_equal(o.n_payload, 3);
	assert_memory_equal(o.payload, "abc", 3);
	one_answer(&(struct h2_answer){.data = none, .n_data = sizeof none, .status = "0"}, &o);
	assert_int_equal(o.error, 0);
	assert_int_equal(o.n_payload, 0);
}

static void test_a_large_message_comes_whole(void **state)
{
	uint8_t *data = test_malloc(GRPC_PREFIX_SIZE + MESSAGE_MAX);
	struct fixture f;
	struct outcome o = {0};
	memset(data, 'x', GRPC_PREFIX_SIZE + MESSAGE_MAX);
	memcpy(data, (const uint8_t[]){0, 0, 1, 0, 0}, GRPC_PREFIX_SIZE);
	begin(&f, 1000);
	ask_and_answer(&f, &o,
		       &(struct h2_answer){.data = data,
					   .n_data = GRPC_PREFIX_SIZE + MESSAGE_MAX,
					   .status = "0"});
	assert_int_equal(o.error, 0);
	assert_int_equal(o.n_payload, MESSAGE_MAX);
	finish(&f);
	test_free(data);
}

static void test_a_status_other_than_ok_is_an_error_with_its_text(void **state)
{
	struct outcome o;
	one_answer(&(struct h2_answer){.only_trailers = true,
				       .status = "12",
				       .message = "unknown method Get%3A caf%C3%A9"},
		   &o);
	assert_int_equal(o.error, -EREMOTEIO);
	assert_int_equal(o.status, 12);
	assert_string_equal(o.text, "unknown method Get: caf\xc3\xa9");
	one_answer(&(struct h2_answer){.status = "5", .message = "no such pod"}, &o);
	assert_int_equal(o.error, -EREMOTEIO);
	assert_int_equal(o.status, 5);
	assert_string_equal(o.text, "no such pod");
	one_answer(&(struct h2_answer){.status = "2"}, &o);
	assert_int_equal(o.error, -EREMOTEIO);
	assert_true(*o.text);
}

static void test_a_status_that_is_none_is_unknown(void **state)
{
	static const char *const odd[] = {"17", "-1", "abc", "99999", "0x0"};
	struct outcome o;
	for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++) {
		one_answer(&(struct h2_answer){.only_trailers = true, .status = odd[i]}, &o);
		assert_int_equal(o.error, -EREMOTEIO);
		assert_int_equal(o.status, 2);
	}
}

static void test_an_answer_that_breaks_the_rules_is_refused(void **state)
{
	static const uint8_t whole[] = {0, 0, 0, 0, 1, 'a'}, compressed[] = {1, 0, 0, 0, 1, 'a'},
			     cut[] = {0, 0, 0, 0, 9, 'a'}, head[] = {0, 0, 0},
			     two[] = {0, 0, 0, 0, 1, 'a', 0, 0, 0, 0, 1, 'b'};
	static const struct {
		struct h2_answer answer;
		int error;
		const char *says;
	} cases[] = {
		{{.data = whole, .n_data = 6, .no_status = true},
		 -EBADMSG,
		 "without a gRPC status"},
		{{.data = compressed, .n_data = 6, .status = "0"}, -EBADMSG, "compressed"},
		{{.data = cut, .n_data = 6, .status = "0"}, -EBADMSG, "ends within"},
		{{.data = head, .n_data = 3, .status = "0"}, -EBADMSG, "ends within"},
		{{.status = "0"}, -EBADMSG, "ends within"},
		{{.data = two, .n_data = 12, .status = "0"}, -EBADMSG, "more than one"},
		{{.http_status = "503", .data = whole, .n_data = 6, .status = "0"},
		 -EBADMSG,
		 "503"},
		{{.type = "text/html", .data = whole, .n_data = 6, .status = "0"},
		 -EBADMSG,
		 "not gRPC"},
	};
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct outcome o;
		one_answer(&cases[i].answer, &o);
		assert_int_equal(o.error, cases[i].error);
		assert_non_null(strstr(o.text, cases[i].says));
	}
}

static void test_a_message_over_the_limit_is_not_received(void **state)
{
	uint8_t data[2000] = {0, 0, 1, 0, 1}; /* 65537 bytes are announced */
	struct outcome o;
	one_answer(&(struct h2_answer){.data = data, .n_data = sizeof data, .status = "0"}, &o);
	assert_int_equal(o.error, -EMSGSIZE);
	assert_non_null(strstr(o.text, "65537"));
}

static void test_headers_have_a_limit(void **state)
{
	static const uint8_t data[] = {0, 0, 0, 0, 0};
	struct outcome o;
	one_answer(
		&(struct h2_answer){
			.data = data, .n_data = 5, .status = "0", .padding = H2_HEADERS_MAX},
		&o);
	assert_int_equal(o.error, -EMSGSIZE);
}

static void test_a_call_without_an_answer_runs_out_of_time(void **state)
{
	struct fixture f;
	struct outcome o = {0};
	begin(&f, 0);
	f.timeout_ms = 20;
	call(&f, &o);
	exchange(&f);
	assert_string_equal(f.server.timeout, "20m");
	o.loop = f.loop;
	assert_int_equal(loop_run(f.loop), 0);
	assert_int_equal(o.n, 1);
	assert_int_equal(o.error, -ETIMEDOUT);
	exchange(&f);
	/* The server receives a reset, and its late answer is ignored. */
	assert_int_equal(h2_answer(&f.server, f.server.streams[0],
				   &(struct h2_answer){.only_trailers = true, .status = "0"}),
			 0);
	exchange(&f);
	assert_int_equal(f.server.n_resets, 1);
	assert_int_equal(o.n, 1);
	assert_int_equal(f.fed, 0);
	finish(&f);
	assert_int_equal(o.n, 1);
}

static void test_several_calls_are_answered_each_with_its_own(void **state)
{
	static const uint8_t a[] = {0, 0, 0, 0, 1, 'a'}, b[] = {0, 0, 0, 0, 1, 'b'};
	struct fixture f;
	struct outcome first = {0}, second = {0};
	begin(&f, 3);
	call(&f, &first);
	call(&f, &second);
	exchange(&f);
	assert_int_equal(f.server.n_streams, 2);
	assert_int_equal(h2_answer(&f.server, f.server.streams[1],
				   &(struct h2_answer){.data = b, .n_data = 6, .status = "0"}),
			 0);
	exchange(&f);
	assert_int_equal(second.n, 1);
	assert_int_equal(first.n, 0);
	assert_int_equal(h2_answer(&f.server, f.server.streams[0],
				   &(struct h2_answer){.data = a, .n_data = 6, .status = "0"}),
			 0);
	exchange(&f);
	assert_int_equal(first.payload[0], 'a');
	assert_int_equal(second.payload[0], 'b');
	finish(&f);
}

static void test_an_answer_may_lead_to_the_next_call(void **state)
{
	static const uint8_t a[] = {0, 0, 0, 0, 1, 'a'};
	const struct h2_answer answer = {.data = a, .n_data = 6, .status = "0"};
	struct fixture f;
	struct outcome o = {.call_again = true};
	begin(&f, 0);
	ask_and_answer(&f, &o, &answer);
	assert_int_equal(f.server.n_streams, 2);
	assert_int_equal(h2_answer(&f.server, f.server.streams[1], &answer), 0);
	exchange(&f);
	assert_int_equal(o.n, 2);
	assert_int_equal(o.error, 0);
	finish(&f);
}

static void test_calls_have_a_limit(void **state)
{
	Podresources__ListRequest msg = PODRESOURCES__LIST_REQUEST__INIT;
	struct outcome o[H2_STREAMS_MAX] = {0}, more = {0};
	struct fixture f;
	begin(&f, 0);
	for (unsigned i = 0; i < H2_STREAMS_MAX; i++)
		call(&f, &o[i]);
	assert_int_equal(try_call(&f, &more, &msg.base), -ENOBUFS);
	finish(&f);
	assert_int_equal(more.n, 0);
	for (unsigned i = 0; i < H2_STREAMS_MAX; i++)
		assert_int_equal(o[i].n, 1);
}

static void test_a_server_that_breaks_off_a_call_is_an_error_of_it(void **state)
{
	struct fixture f;
	struct outcome o = {0};
	begin(&f, 1);
	call(&f, &o);
	exchange(&f);
	assert_int_equal(nghttp2_submit_rst_stream(f.server.session, 0, f.server.streams[0],
						   NGHTTP2_INTERNAL_ERROR),
			 0);
	assert_int_equal(h2_flush(&f.server), 0);
	exchange(&f);
	assert_int_equal(o.error, -ECONNRESET);
	assert_non_null(strstr(o.text, "INTERNAL_ERROR"));
	assert_true(h2_usable(f.h2));
	finish(&f);
}

static void test_a_server_that_goes_away_gets_no_more_calls(void **state)
{
	Podresources__ListRequest msg = PODRESOURCES__LIST_REQUEST__INIT;
	static const uint8_t a[] = {0, 0, 0, 0, 1, 'a'};
	struct fixture f;
	struct outcome o = {0};
	begin(&f, 0);
	call(&f, &o);
	exchange(&f);
	assert_int_equal(
		nghttp2_submit_goaway(f.server.session, 0, f.server.streams[0], 0, NULL, 0), 0);
	assert_int_equal(h2_flush(&f.server), 0);
	exchange(&f);
	assert_int_equal(o.n, 0);
	assert_false(h2_usable(f.h2));
	assert_int_equal(try_call(&f, &o, &msg.base), -ENOTCONN);
	/* The one that is under way still gets its answer. */
	assert_int_equal(h2_answer(&f.server, f.server.streams[0],
				   &(struct h2_answer){.data = a, .n_data = 6, .status = "0"}),
			 0);
	exchange(&f);
	assert_int_equal(o.n, 1);
	assert_int_equal(o.error, 0);
	finish(&f);
}

static void test_what_is_no_http2_ends_the_connection(void **state)
{
	static const char garbage[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
	struct err err = ERR_INIT;
	struct fixture f;
	struct outcome o = {0};
	begin(&f, 0);
	call(&f, &o);
	assert_int_equal(h2_feed(f.h2, (const uint8_t *)garbage, sizeof garbage - 1, &err), 0);
	pull(&f);
	assert_true(h2_finished(f.h2));
	assert_non_null(h2_complaint(f.h2));
	(void)err_set(&err, -EBADMSG, "%s", h2_complaint(f.h2));
	h2_close(f.h2, err.code, err.text);
	assert_false(h2_usable(f.h2));
	assert_int_equal(h2_feed(f.h2, (const uint8_t *)garbage, 1, NULL), -ENOTCONN);
	assert_int_equal(o.n, 1);
	assert_int_equal(o.error, -EBADMSG);
	assert_string_equal(o.text, err.text);
	finish(&f);
	assert_int_equal(o.n, 1);
}

static void check_text(const char *from, size_t size, const char *expected)
{
	char to[64];
	grpc_decode_text((const uint8_t *)from, strlen(from), to, size);
	assert_string_equal(to, expected);
}

static void test_texts_are_decoded(void **state)
{
	check_text("", 64, "");
	check_text("a%20b%2", 64, "a b%2");
	check_text("100%", 64, "100%");
	check_text("%zz%41", 64, "%zzA");
	check_text("%00x", 64, "?x");
	check_text("a%0Ab", 64, "a b");
	check_text("\xff\xfe ok", 64, "?? ok");
	check_text("%C3%A9", 64, "\xc3\xa9");
	check_text("abcdefgh", 5, "abc"); /* cut, at most one character too early */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_request_is_what_grpc_wants),
		cmocka_unit_test(test_a_message_is_given_to_the_caller),
		cmocka_unit_test(test_a_large_message_comes_whole),
		cmocka_unit_test(test_a_status_other_than_ok_is_an_error_with_its_text),
		cmocka_unit_test(test_a_status_that_is_none_is_unknown),
		cmocka_unit_test(test_an_answer_that_breaks_the_rules_is_refused),
		cmocka_unit_test(test_a_message_over_the_limit_is_not_received),
		cmocka_unit_test(test_headers_have_a_limit),
		cmocka_unit_test(test_a_call_without_an_answer_runs_out_of_time),
		cmocka_unit_test(test_several_calls_are_answered_each_with_its_own),
		cmocka_unit_test(test_an_answer_may_lead_to_the_next_call),
		cmocka_unit_test(test_calls_have_a_limit),
		cmocka_unit_test(test_a_server_that_breaks_off_a_call_is_an_error_of_it),
		cmocka_unit_test(test_a_server_that_goes_away_gets_no_more_calls),
		cmocka_unit_test(test_what_is_no_http2_ends_the_connection),
		cmocka_unit_test(test_texts_are_decoded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
