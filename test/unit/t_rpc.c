/* SPDX-License-Identifier: Apache-2.0 */
/* Calling and serving without a socket: what one end puts out is fed to the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lib/util/str.h"
#include "core/lib/wire/mux.h"
#include "core/lib/wire/rpc.h"
#include "proto/nri.pb-c.h"

#define SERVICE "some.Service"
#define KEPT_MAX 300u

struct result {
	unsigned n;
	int error;
	int32_t code;
	char text[ERR_TEXT_MAX];
	struct buf payload;
};

struct end {
	struct rpc *rpc;
	struct buf in, out;
	struct buf log; /* requests that the handler received */
	unsigned n_outputs, n_failed;
	int failed;
	bool keep; /* the handler keeps requests instead of answering */
	struct rpc_request *kept[KEPT_MAX];
	unsigned n_kept;
};

struct pair {
	struct end client, server;
};

static void on_output(void *arg)
{
	struct end *e = arg;
	e->n_outputs++;
}

static void on_failed(int error, void *arg)
{
	struct end *e = arg;
	e->failed = error;
	e->n_failed++;
}

static void end_open(struct end *e, struct rpc_config config)
{
	memset(e, 0, sizeof *e);
	config.out = &e->out;
	config.output = on_output;
	config.failed = on_failed;
	config.arg = e;
	e->rpc = rpc_new(&config);
	assert_non_null(e->rpc);
}

static void end_close(struct end *e)
{
	e->rpc = rpc_free(e->rpc);
	for (unsigned i = 0; i < e->n_kept; i++)
		if (e->kept[i])
			assert_int_equal(-ENOTCONN, rpc_reply(e->kept[i], NULL));
	buf_fini(&e->in);
	buf_fini(&e->out);
	buf_fini(&e->log);
}

/* Answers with the request's own payload, as a pod's name says: error, huge, later or at once. */
static void on_request(struct rpc_request *req, void *arg)
{
	struct end *e = arg;
	(void)buf_printf(&e->log, "%u:%s/%s:%zu:%lld ", req->stream, req->service, req->method,
			 req->payload_len, (long long)req->timeout_ns);
	assert_int_equal(4711, req->received_ns);
	assert_null(req->user);
	if (e->keep) {
		assert_true(e->n_kept < KEPT_MAX);
		e->kept[e->n_kept++] = req;
		req->user = e;
		return;
	}
	if (str_eq(req->method, "Fail")) {
		assert_int_equal(0, rpc_reply_error(req, TTRPC_NOT_FOUND, "no pod %d", 7));
		return;
	}
	Nri__PodSandbox *pod = nri__pod_sandbox__unpack(NULL, req->payload_len, req->payload);
	assert_non_null(pod);
	(void)rpc_reply(req, &pod->base);
	nri__pod_sandbox__free_unpacked(pod, NULL);
}

static int set_up(void **state)
{
	struct pair *p = calloc(1, sizeof *p);
	end_open(&p->client, (struct rpc_config){0});
	end_open(&p->server, (struct rpc_config){0});
	rpc_serve(p->server.rpc, on_request, &p->server);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *p = *state;
	end_close(&p->client);
	end_close(&p->server);
	free(p);
	return 0;
}

static int input(struct end *to, const void *data, size_t n, struct err *err)
{
	assert_int_equal(0, buf_add(&to->in, data, n));
	return rpc_input(to->rpc, &to->in, 4711, err);
}

static void move(struct end *from, struct end *to)
{
	size_t n = buf_len(&from->out);
	if (!n)
		return;
	assert_int_equal(0, input(to, buf_bytes(&from->out), n, NULL));
	buf_consume(&from->out, n);
}

static void pump(struct pair *p)
{
	move(&p->client, &p->server);
	move(&p->server, &p->client);
}

static void on_done(const struct rpc_result *r, void *arg)
{
	struct result *to = arg;
	to->n++;
	to->error = r->error;
	to->code = r->code;
	(void)snprintf(to->text, sizeof to->text, "%s", r->text);
	buf_reset(&to->payload);
	(void)buf_add(&to->payload, r->payload, r->payload_len);
}

static Nri__PodSandbox pod_named(const char *name)
{
	Nri__PodSandbox pod = NRI__POD_SANDBOX__INIT;
	pod.name = (char *)name;
	return pod;
}

static int call(struct pair *p, const char *method, const char *name, struct result *res)
{
	Nri__PodSandbox pod = pod_named(name);
	return rpc_call(p->client.rpc, SERVICE, method, &pod.base, 0, on_done, res);
}

static void assert_pod(struct result *r, const char *name)
{
	assert_int_equal(1, r->n);
	assert_int_equal(0, r->error);
	assert_int_equal(TTRPC_OK, r->code);
	Nri__PodSandbox *pod =
		nri__pod_sandbox__unpack(NULL, buf_len(&r->payload), r->payload.data);
	assert_non_null(pod);
	assert_string_equal(name, pod->name);
	nri__pod_sandbox__free_unpacked(pod, NULL);
	buf_fini(&r->payload);
}

static void assert_error(const struct result *r, int error, int32_t code, const char *text)
{
	assert_int_equal(1, r->n);
	assert_int_equal(error, r->error);
	assert_int_equal(code, r->code);
	assert_non_null(strstr(r->text, text));
	assert_null(r->payload.data);
}

static void send_raw(struct end *to, uint32_t stream, uint8_t type, const void *data, size_t n)
{
	uint8_t head[TTRPC_HEADER_SIZE];
	ttrpc_header_encode(head, &(struct ttrpc_header){(uint32_t)n, stream, type, 0});
	assert_int_equal(0, buf_add(&to->in, head, sizeof head));
	assert_int_equal(0, buf_add(&to->in, data, n));
	assert_int_equal(0, rpc_input(to->rpc, &to->in, 4711, NULL));
}

/* Checks the only response in the output of e. */
static void assert_answer(struct end *e, uint32_t stream, int32_t code, const char *text)
{
	struct ttrpc_header h;
	struct ttrpc_response r;
	assert_true(buf_len(&e->out) >= TTRPC_HEADER_SIZE);
	ttrpc_header_decode(buf_bytes(&e->out), &h);
	assert_int_equal(buf_len(&e->out) - TTRPC_HEADER_SIZE, h.length);
	assert_int_equal(stream, h.stream);
	assert_int_equal(TTRPC_RESPONSE, h.type);
	assert_int_equal(0, h.flags);
	assert_int_equal(0, ttrpc_response_decode(buf_bytes(&e->out) + TTRPC_HEADER_SIZE, h.length,
						  &r, NULL));
	assert_int_equal(code, r.code);
	char got[ERR_TEXT_MAX];
	(void)snprintf(got, sizeof got, "%.*s", (int)r.text_len,
		       r.text ? (const char *)r.text : "");
	assert_non_null(strstr(got, text));
	buf_reset(&e->out);
}

/* ---- the usual ---- */

static void test_call(void **state)
{
	struct pair *p = *state;
	struct result a = {0}, b = {0}, c = {0};
	assert_int_equal(0, call(p, "Get", "x", &a));
	assert_int_equal(1, rpc_n_calls(p->client.rpc));
	assert_int_equal(0, a.n);
	pump(p);
	assert_pod(&a, "x");
	assert_int_equal(0, rpc_n_calls(p->client.rpc));
	assert_int_equal(0, rpc_n_pending(p->server.rpc));
	assert_int_equal(0, call(p, "Get", "", &b));
	assert_int_equal(0, rpc_call(p->client.rpc, SERVICE, "Get", NULL, 2500, on_done, &c));
	pump(p);
	assert_pod(&b, "");
	assert_pod(&c, "");
	assert_string_equal("1:some.Service/Get:3:0 3:some.Service/Get:0:0 "
			    "5:some.Service/Get:0:2500000000 ",
			    buf_text(&p->server.log));
	assert_int_equal(3, p->client.n_outputs);
	assert_int_equal(3, p->server.n_outputs);
}

static void test_error_answer(void **state)
{
	struct pair *p = *state;
	struct result a = {0};
	assert_int_equal(0, call(p, "Fail", "x", &a));
	pump(p);
	assert_error(&a, -EREMOTEIO, TTRPC_NOT_FOUND, "no pod 7");
}

static void test_nobody_serves(void **state)
{
	struct pair *p = *state;
	struct result a = {0};
	rpc_serve(p->server.rpc, NULL, NULL);
	assert_int_equal(0, call(p, "Get", "x", &a));
	pump(p);
	assert_error(&a, -EREMOTEIO, TTRPC_UNIMPLEMENTED, "serves no requests");
}

static void test_later_and_in_any_order(void **state)
{
	struct pair *p = *state;
	struct result r[3] = {0};
	p->server.keep = true;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(0, call(p, "Get", "x", &r[i]));
	pump(p);
	assert_int_equal(3, rpc_n_pending(p->server.rpc));
	for (unsigned i = 0; i < 3; i++) {
		/* Pointers into the input buffer have been cleared. */
		assert_null(p->server.kept[i]->service);
		assert_null(p->server.kept[i]->payload);
		assert_int_equal(0, p->server.kept[i]->payload_len);
		assert_ptr_equal(&p->server, p->server.kept[i]->user);
	}
	static const unsigned order[] = {1, 2, 0};
	for (unsigned i = 0; i < 3; i++) {
		char name[] = {(char)('0' + order[i]), '\0'};
		Nri__PodSandbox pod = pod_named(name);
		assert_int_equal(0, rpc_reply(p->server.kept[order[i]], &pod.base));
		assert_int_equal(2 - i, rpc_n_pending(p->server.rpc));
		pump(p);
		assert_pod(&r[order[i]], name);
	}
	p->server.n_kept = 0;
}

static void on_done_again(const struct rpc_result *r, void *arg)
{
	struct pair *p = arg;
	static struct result last;
	assert_int_equal(0, r->error);
	last = (struct result){0};
	assert_int_equal(0, call(p, "Last", "y", &last));
}

static void test_call_from_callback(void **state)
{
	struct pair *p = *state;
	assert_int_equal(0, rpc_call(p->client.rpc, SERVICE, "Get", NULL, 0, on_done_again, p));
	pump(p);
	assert_int_equal(1, rpc_n_calls(p->client.rpc));
	pump(p);
	assert_int_equal(0, rpc_n_calls(p->client.rpc));
	assert_int_equal(0, rpc_call(p->client.rpc, SERVICE, "Get", NULL, 0, NULL, NULL));
	pump(p);
	assert_int_equal(0, rpc_n_calls(p->client.rpc));
}

static void test_error_text(void **state)
{
	struct pair *p = *state;
	struct result r[4] = {0};
	p->server.keep = true;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(0, call(p, "Get", "x", &r[i]));
	pump(p);
	char text[2000];
	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = '\0';
	memcpy(text + TTRPC_TEXT_MAX - 2, "\xf0\x9f\x98\x80", 4); /* across the limit */
	assert_int_equal(0, rpc_reply_error(p->server.kept[0], TTRPC_UNKNOWN, "%s", text));
	assert_int_equal(0, rpc_reply_error(p->server.kept[1], TTRPC_UNKNOWN, "a\xff%s", "b"));
	assert_int_equal(0, rpc_reply_error(p->server.kept[2], TTRPC_OK, "never success"));
	assert_int_equal(0, rpc_reply_error(p->server.kept[3], TTRPC_UNKNOWN, "%s", "\xc3\xa4"));
	p->server.n_kept = 0;
	pump(p);
	assert_int_equal(-EREMOTEIO, r[0].error);
	assert_true(utf8_valid(r[0].text, strlen(r[0].text)));
	assert_int_equal(TTRPC_TEXT_MAX - 2, strlen(r[0].text));
	assert_error(&r[1], -EREMOTEIO, TTRPC_UNKNOWN, "a?b");
	assert_error(&r[2], -EREMOTEIO, TTRPC_UNKNOWN, "never success");
	assert_error(&r[3], -EREMOTEIO, TTRPC_UNKNOWN, "\xc3\xa4");
}

/* ---- the peer's mistakes ---- */

static void test_stream_numbers(void **state)
{
	struct pair *p = *state;
	static const uint32_t bad[] = {0, 2, 7, 5, 1, 8, 0xfffffffe};
	send_raw(&p->server, 7, TTRPC_REQUEST, NULL, 0);
	buf_reset(&p->server.out);
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		send_raw(&p->server, bad[i], TTRPC_REQUEST, NULL, 0);
		assert_answer(&p->server, bad[i], TTRPC_INVALID_ARGUMENT, "odd and increasing");
	}
	send_raw(&p->server, 9, TTRPC_REQUEST, NULL, 0);
	assert_answer(&p->server, 9, TTRPC_OK, "");
	send_raw(&p->server, 0xffffffff, TTRPC_REQUEST, NULL, 0);
	assert_answer(&p->server, 0xffffffff, TTRPC_OK, "");
}

static void test_undecodable_request(void **state)
{
	struct pair *p = *state;
	send_raw(&p->server, 1, TTRPC_REQUEST, "\x0a", 1);
	assert_answer(&p->server, 1, TTRPC_INVALID_ARGUMENT, "not a ttrpc request");
	assert_int_equal(0, buf_len(&p->server.log));
	send_raw(&p->server, 1, TTRPC_REQUEST, NULL, 0);
	assert_answer(&p->server, 1, TTRPC_INVALID_ARGUMENT, "odd and increasing");
}

static void test_other_messages(void **state)
{
	struct pair *p = *state;
	static const uint8_t types[] = {0, 4, 255};
	for (unsigned i = 0; i < sizeof types; i++)
		send_raw(&p->server, 1, types[i], "xyz", 3);
	send_raw(&p->server, 1, TTRPC_RESPONSE, NULL, 0); /* to nothing */
	assert_int_equal(0, buf_len(&p->server.out));
	send_raw(&p->server, 1, TTRPC_DATA, "xyz", 3);
	assert_answer(&p->server, 1, TTRPC_INVALID_ARGUMENT, "closed stream");
	p->server.keep = true;
	send_raw(&p->server, 1, TTRPC_REQUEST, NULL, 0);
	send_raw(&p->server, 1, TTRPC_DATA, "xyz", 3); /* there its answer is still to come */
	assert_int_equal(0, buf_len(&p->server.out));
	send_raw(&p->server, 3, TTRPC_DATA, "xyz", 3);
	assert_answer(&p->server, 3, TTRPC_INVALID_ARGUMENT, "closed stream");
}

static void test_too_many_pending(void **state)
{
	struct pair *p = *state;
	p->server.keep = true;
	for (uint32_t i = 0; i < RPC_PENDING_MAX; i++)
		send_raw(&p->server, 2 * i + 1, TTRPC_REQUEST, NULL, 0);
	assert_int_equal(0, buf_len(&p->server.out));
	send_raw(&p->server, 2 * RPC_PENDING_MAX + 1, TTRPC_REQUEST, NULL, 0);
	assert_answer(&p->server, 2 * RPC_PENDING_MAX + 1, TTRPC_RESOURCE_EXHAUSTED, "too many");
	for (uint32_t i = 0; i < RPC_PENDING_MAX; i++)
		assert_int_equal(0, rpc_reply(p->server.kept[i], NULL));
	p->server.n_kept = 0;
	buf_reset(&p->server.out);
	send_raw(&p->server, 2 * RPC_PENDING_MAX + 3, TTRPC_REQUEST, NULL, 0);
	assert_int_equal(1, rpc_n_pending(p->server.rpc));
}

static void test_undecodable_response(void **state)
{
	struct pair *p = *state;
	struct result a = {0}, b = {0};
	assert_int_equal(0, call(p, "Get", "x", &a));
	assert_int_equal(0, call(p, "Get", "x", &b));
	send_raw(&p->client, 5, TTRPC_RESPONSE, "\xff", 1); /* no call waits for this response */
	send_raw(&p->client, 3, TTRPC_RESPONSE, "\xff", 1);
	assert_int_equal(0, a.n);
	assert_error(&b, -EBADMSG, TTRPC_INTERNAL, "not a ttrpc response");
	send_raw(&p->client, 1, TTRPC_RESPONSE, "\x0a\x02\x08\x05", 4); /* a code and no text */
	assert_error(&a, -EREMOTEIO, TTRPC_NOT_FOUND, "");
}

static void test_long_text_of_the_peer(void **state)
{
	struct pair *p = *state;
	struct result a = {0};
	assert_int_equal(0, call(p, "Get", "x", &a));
	uint8_t status[6 + 3000] = {0x0a, 0xbb, 0x17, 0x12, 0xb8, 0x17};
	memset(status + 6, 'z', 3000);
	send_raw(&p->client, 1, TTRPC_RESPONSE, status, sizeof status);
	/* A text without a code is success. */
	assert_int_equal(1, a.n);
	assert_int_equal(0, a.error);
	a.n = 0;
	assert_int_equal(0, call(p, "Get", "x", &a));
	uint8_t failed[8 + 3000] = {0x0a, 0xbd, 0x17, 0x08, 2, 0x12, 0xb8, 0x17};
	memset(failed + 8, 'z', 3000);
	send_raw(&p->client, 3, TTRPC_RESPONSE, failed, sizeof failed);
	assert_error(&a, -EREMOTEIO, TTRPC_UNKNOWN, "zzz");
	assert_int_equal(ERR_TEXT_MAX - 1, strlen(a.text));
}

/* ---- limits ---- */

static void test_message_over_limit(void **state)
{
	struct pair *p = *state;
	struct err err = ERR_INIT;
	uint8_t head[TTRPC_HEADER_SIZE];
	ttrpc_header_encode(head, &(struct ttrpc_header){TTRPC_MESSAGE_MAX, 1, TTRPC_REQUEST, 0});
	assert_int_equal(0, input(&p->server, head, sizeof head, &err));
	buf_reset(&p->server.in);
	ttrpc_header_encode(head,
			    &(struct ttrpc_header){TTRPC_MESSAGE_MAX + 1, 1, TTRPC_REQUEST, 0});
	assert_int_equal(-EMSGSIZE, input(&p->server, head, sizeof head, &err));
	assert_non_null(strstr(err.text, "4194305 bytes, at most 4194304"));
}

static char *text_of(size_t n)
{
	char *s = malloc(n + 1);
	memset(s, 's', n);
	s[n] = '\0';
	return s;
}

static void test_call_over_limit(void **state)
{
	struct pair *p = *state;
	struct result a = {0};
	/* The envelope of this call takes 12 + 2 + 3 + 2 + 5 bytes, the name within it 5. */
	char *name = text_of(TTRPC_MESSAGE_MAX - 29);
	assert_int_equal(0, call(p, "Get", name, &a));
	assert_int_equal(TTRPC_MESSAGE_MAX + TTRPC_HEADER_SIZE, buf_len(&p->client.out));
	pump(p);
	assert_pod(&a, name);
	free(name);
	name = text_of(TTRPC_MESSAGE_MAX - 28);
	assert_int_equal(-EMSGSIZE, call(p, "Get", name, &a));
	assert_int_equal(0, buf_len(&p->client.out));
	assert_int_equal(0, rpc_n_calls(p->client.rpc));
	free(name);
}

static void test_answer_over_limit(void **state)
{
	struct pair *p = *state;
	struct result a = {0};
	p->server.keep = true;
	assert_int_equal(0, call(p, "Get", "x", &a));
	pump(p);
	char *name = text_of(TTRPC_MESSAGE_MAX);
	Nri__PodSandbox pod = pod_named(name);
	p->server.n_kept = 0;
	assert_int_equal(-EMSGSIZE, rpc_reply(p->server.kept[0], &pod.base));
	free(name);
	pump(p);
	assert_error(&a, -EREMOTEIO, TTRPC_RESOURCE_EXHAUSTED, "at most 4194304 can be sent");
	assert_int_equal(0, p->server.n_failed);
}

static void test_numbers_used_up(void **state)
{
	struct pair p;
	struct result a = {0}, b = {0};
	end_open(&p.client, (struct rpc_config){.first_stream = 0xffffffff});
	end_open(&p.server, (struct rpc_config){0});
	rpc_serve(p.server.rpc, on_request, &p.server);
	assert_int_equal(0, call(&p, "Get", "x", &a));
	assert_int_equal(-EOVERFLOW, call(&p, "Get", "x", &b));
	pump(&p);
	assert_pod(&a, "x");
	assert_int_equal(0, b.n);
	end_close(&p.client);
	end_close(&p.server);
}

static void test_output_limits(void **state)
{
	struct end e;
	struct result r = {0};
	end_open(&e, (struct rpc_config){.calls_out_max = 40, .answers_out_max = 100});
	rpc_serve(e.rpc, on_request, &e);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(0, rpc_call(e.rpc, SERVICE, "Get", NULL, 0, on_done, &r));
	assert_true(buf_len(&e.out) > 40);
	assert_int_equal(-ENOBUFS, rpc_call(e.rpc, SERVICE, "Get", NULL, 0, on_done, &r));
	uint32_t stream = 1;
	for (; buf_len(&e.out) <= 100; stream += 2)
		send_raw(&e, stream, TTRPC_REQUEST, NULL, 0);
	assert_int_equal(0, e.n_failed);
	send_raw(&e, stream, TTRPC_REQUEST, NULL, 0);
	assert_int_equal(-ENOBUFS, e.failed);
	/* The connection has failed: further requests are ignored. */
	size_t seen = buf_len(&e.log);
	send_raw(&e, stream + 2, TTRPC_REQUEST, NULL, 0);
	assert_int_equal(seen, buf_len(&e.log));
	assert_int_equal(1, e.n_failed);
	end_close(&e);
}

/* ---- time ---- */

static void test_timeouts(void **state)
{
	struct pair *p = *state;
	struct result r[4] = {0};
	struct rpc *rpc = p->client.rpc;
	static const uint64_t limits[] = {0, 50000, 10000, UINT64_MAX};
	assert_int_equal(0, rpc_deadline_ms(rpc));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(0, rpc_call(rpc, SERVICE, "Get", NULL, limits[i], on_done, &r[i]));
	uint64_t first = rpc_deadline_ms(rpc);
	assert_true(first > 10000);
	rpc_expire(rpc, first - 1);
	assert_int_equal(0, r[2].n);
	rpc_expire(rpc, first);
	assert_error(&r[2], -ETIMEDOUT, TTRPC_DEADLINE_EXCEEDED, "in time");
	uint64_t second = rpc_deadline_ms(rpc);
	assert_true(second >= first + 40000);
	rpc_expire(rpc, second + 1000);
	assert_error(&r[1], -ETIMEDOUT, TTRPC_DEADLINE_EXCEEDED, "in time");
	pump(p); /* answers to all come now */
	assert_int_equal(1, r[1].n);
	assert_int_equal(1, r[2].n);
	assert_pod(&r[0], "");
	assert_pod(&r[3], "");
	assert_int_equal(0, rpc_deadline_ms(rpc));
	rpc_expire(rpc, UINT64_MAX);
}

/* ---- the end ---- */

static void test_connection_ends(void **state)
{
	struct pair *p = *state;
	struct result a = {0}, b = {0}, c = {0};
	p->server.keep = true;
	assert_int_equal(0, call(p, "Get", "x", &a));
	assert_int_equal(0, call(p, "Get", "x", &b));
	pump(p);
	rpc_close(p->client.rpc, -ECONNRESET);
	assert_error(&a, -ECONNRESET, TTRPC_UNAVAILABLE, "lost");
	assert_error(&b, -ECONNRESET, TTRPC_UNAVAILABLE, "lost");
	assert_int_equal(-ENOTCONN, call(p, "Get", "x", &c));
	rpc_close(p->server.rpc, -ECONNRESET);
	assert_int_equal(0, rpc_n_pending(p->server.rpc));
	assert_null(p->server.kept[0]->rpc);
	assert_int_equal(-ENOTCONN, rpc_reply(p->server.kept[0], NULL));
	assert_int_equal(-ENOTCONN, rpc_reply_error(p->server.kept[1], TTRPC_UNKNOWN, "late"));
	p->server.n_kept = 0;
	/* A closed end takes nothing in. */
	send_raw(&p->server, 99, TTRPC_REQUEST, NULL, 0);
	assert_int_equal(0, buf_len(&p->server.out));
}

static void test_free_cancels(void **state)
{
	struct pair *p = *state;
	struct result a = {0};
	assert_int_equal(0, call(p, "Get", "x", &a));
	p->client.rpc = rpc_free(p->client.rpc);
	assert_null(p->client.rpc);
	assert_error(&a, -ECANCELED, TTRPC_CANCELLED, "was closed");
	assert_null(rpc_free(NULL));
}

static void test_refuse_pending(void **state)
{
	struct pair *p = *state;
	struct result a = {0}, b = {0};
	p->server.keep = true;
	assert_int_equal(0, call(p, "Get", "x", &a));
	assert_int_equal(0, call(p, "Get", "x", &b));
	pump(p);
	rpc_refuse_pending(p->server.rpc, TTRPC_UNAVAILABLE, "going down");
	pump(p);
	assert_error(&a, -EREMOTEIO, TTRPC_UNAVAILABLE, "going down");
	assert_error(&b, -EREMOTEIO, TTRPC_UNAVAILABLE, "going down");
	/* tear_down answers the remaining requests, whose connection is closed */
}

/* Checks more handles and calls at once than the pools retain for reuse. */
static void test_many_at_once(void **state)
{
	struct pair *p = *state;
	static struct result r[100];
	memset(r, 0, sizeof r);
	for (unsigned round = 0; round < 3; round++) {
		p->server.keep = true;
		for (unsigned i = 0; i < 100; i++) {
			r[i].n = 0;
			assert_int_equal(0, call(p, "Get", "x", &r[i]));
		}
		pump(p);
		for (unsigned i = 0; i < 100; i++)
			assert_int_equal(0, rpc_reply(p->server.kept[i], NULL));
		p->server.n_kept = 0;
		pump(p);
		for (unsigned i = 0; i < 100; i++)
			assert_int_equal(1, r[i].n);
	}
}

/* ---- cuts ---- */

/* Requests of the client in multiplexer frames, one of them in two. */
static void make_stream(struct buf *ret)
{
	struct end e;
	struct result r = {0};
	char *name = text_of(5000);
	end_open(&e, (struct rpc_config){.conn = MUX_CONN_PLUGIN});
	Nri__PodSandbox pod = pod_named(name);
	assert_int_equal(0, rpc_call(e.rpc, SERVICE, "One", NULL, 0, on_done, &r));
	assert_int_equal(0, rpc_call(e.rpc, SERVICE, "Two", &pod.base, 1, on_done, &r));
	assert_int_equal(0, rpc_call(e.rpc, SERVICE, "Three", NULL, 0, on_done, &r));
	assert_int_equal(0, buf_add(ret, buf_bytes(&e.out), buf_len(&e.out)));
	free(name);
	end_close(&e);
}

static void feed(struct mux_rx *rx, struct end *e, const uint8_t *data, size_t n)
{
	while (n) {
		ssize_t used = mux_rx_feed(rx, data, n, NULL);
		assert_true(used > 0);
		data += used;
		n -= (size_t)used;
		assert_int_equal(0, rpc_input(e->rpc, &e->in, 4711, NULL));
	}
}

static void test_every_cut(void **state)
{
	struct buf stream = BUF_INIT, first_out = BUF_INIT;
	make_stream(&stream);
	for (size_t cut = 0; cut <= buf_len(&stream); cut++) {
		struct end e;
		struct mux_rx rx;
		struct buf other = BUF_INIT;
		end_open(&e, (struct rpc_config){.conn = MUX_CONN_PLUGIN});
		rpc_serve(e.rpc, on_request, &e);
		mux_rx_init(&rx, &e.in, &other, MUX_RECV_MAX);
		feed(&rx, &e, buf_bytes(&stream), cut);
		feed(&rx, &e, buf_bytes(&stream) + cut, buf_len(&stream) - cut);
		assert_string_equal("1:some.Service/One:0:0 3:some.Service/Two:5003:1000000 "
				    "5:some.Service/Three:0:0 ",
				    buf_text(&e.log));
		if (!cut)
			assert_int_equal(0,
					 buf_add(&first_out, buf_bytes(&e.out), buf_len(&e.out)));
		assert_int_equal(buf_len(&first_out), buf_len(&e.out));
		assert_memory_equal(buf_bytes(&first_out), buf_bytes(&e.out), buf_len(&e.out));
		assert_int_equal(0, buf_len(&other));
		end_close(&e);
	}
	buf_fini(&stream);
	buf_fini(&first_out);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_call),
		TEST(test_error_answer),
		TEST(test_nobody_serves),
		TEST(test_later_and_in_any_order),
		TEST(test_call_from_callback),
		TEST(test_error_text),
		TEST(test_stream_numbers),
		TEST(test_undecodable_request),
		TEST(test_other_messages),
		TEST(test_too_many_pending),
		TEST(test_undecodable_response),
		TEST(test_long_text_of_the_peer),
		TEST(test_message_over_limit),
		TEST(test_call_over_limit),
		TEST(test_answer_over_limit),
		cmocka_unit_test(test_numbers_used_up),
		cmocka_unit_test(test_output_limits),
		TEST(test_timeouts),
		TEST(test_connection_ends),
		TEST(test_free_cancels),
		TEST(test_refuse_pending),
		TEST(test_many_at_once),
		cmocka_unit_test(test_every_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
