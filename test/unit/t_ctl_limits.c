/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket from outside: how much may be asked at a time. */
#include <poll.h>

#include "core/nri-rpctl/call.c"
#include "core/lib/term/out.c"

#include "core/nri-rpd/pipeline/observe/events.h"
#include "t_ctl_fixture.h"

#include "coverage_exit.h"

#define STATIC "policy: static\nstatic: {reservedResources: {cpu: \"cpuset:0\"}}\n"
#define NONE "policy: none\n"

static struct fixture fx;

static int setup(void **state)
{
	fixture_init(&fx, "modules");
	return 0;
}

static int teardown(void **state)
{
	fixture_fini(&fx);
	return 0;
}

/* Requests of one connection, all of them in one piece: the server sees the last before the first
 * can be answered. */
static int send_at_once(const struct fixture *f, const char *method, const Control__Request *m,
			unsigned n_times, struct link **ret, struct err *err)
{
	struct ttrpc_out out = {.service = CTL_SERVICE, .method = method, .payload = &m->base};
	struct buf all = BUF_INIT;
	size_t n = ttrpc_request_size(&out);
	int r = link_open(f->socket, ret, err);
	for (unsigned i = 0; !r && i < n_times; i++) {
		const struct ttrpc_header h = {(uint32_t)n, 2 * i + 1, TTRPC_REQUEST, 0};
		uint8_t *to = buf_reserve(&all, n + TTRPC_HEADER_SIZE);
		ttrpc_header_encode(to, &h);
		ttrpc_request_encode(&out, to + TTRPC_HEADER_SIZE);
		buf_commit(&all, n + TTRPC_HEADER_SIZE);
	}
	if (!r && write((*ret)->fd, buf_bytes(&all), buf_len(&all)) != (ssize_t)buf_len(&all))
		r = -EPIPE;
	buf_fini(&all);
	return r;
}

/* How often the text is in what comes; ends with n_answers of them. */
static unsigned count_answers(struct link *l, unsigned n_answers, const char *text)
{
	struct buf in = BUF_INIT;
	unsigned n = 0;
	while (n < n_answers) {
		struct pollfd p = {.fd = l->fd, .events = POLLIN};
		uint8_t *to = buf_reserve(&in, 4096);
		(void)poll(&p, 1, 20000);
		ssize_t got = read(l->fd, to, 4096);
		if (got <= 0)
			break;
		buf_commit(&in, (size_t)got);
		n = 0;
		for (size_t at = 0; at + TTRPC_HEADER_SIZE <= buf_len(&in); n++) {
			struct ttrpc_header h;
			ttrpc_header_decode(buf_bytes(&in) + at, &h);
			at += TTRPC_HEADER_SIZE + h.length;
			if (at > buf_len(&in))
				break;
		}
	}
	n = 0;
	for (const uint8_t *at = buf_bytes(&in), *end = at + buf_len(&in);
	     (at = memmem(at, (size_t)(end - at), text, strlen(text))); at++)
		n++;
	buf_fini(&in);
	return n;
}

static void three_plans(struct asking *a)
{
	Control__Request m = CONTROL__REQUEST__INIT;
	char *args[] = {a->f->config};
	struct link *l;
	m.args = args;
	m.n_args = 1;
	a->result = send_at_once(a->f, "Plan", &m, 3, &l, &a->err);
	if (a->result)
		return;
	if (count_answers(l, 3, "are already being tried") != 1)
		a->result = -EPROTO;
	link_close(l);
}

static void test_plans_are_bounded(void **state)
{
	struct asking a = {.f = &fx, .fn = three_plans};
	fixture_start(&fx, NONE);
	fixture_write(fx.config, "policy: static\nstatic: {reservedResources: {cpu: 1}}\n");
	fixture_run(&a);
	assert_int_equal(a.result, 0);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static int call_raw(const char *socket, const char *service, const char *method,
		    const ProtobufCMessage *msg, struct ttrpc_client *c, struct err *err)
{
	const uint8_t *data;
	size_t len;
	int fd = wire_connect_unix(socket, err);
	if (fd < 0)
		return fd;
	ttrpc_client_init(c, fd);
	int r = ttrpc_client_call(c, service, method, msg, 10000, &data, &len, err);
	ttrpc_client_fini(c);
	(void)close(fd);
	return r;
}

static void wrong_calls(struct asking *a)
{
	static char text[CTL_ARG_MAX + 2], huge[CTL_REQUEST_MAX];
	char a_arg[] = "a", b_arg[] = "b", bad_arg[] = "\xff";
	char *two[] = {a_arg, b_arg}, *bad[] = {bad_arg}, *large[] = {text}, *largest[] = {huge};
	const struct {
		const char *service, *method;
		char **args;
		size_t n_args;
		int code;
		const char *text;
	} cases[] = {
		{"other", "Status", NULL, 0, TTRPC_UNIMPLEMENTED, "unknown command"},
		{CTL_SERVICE, "Stutas", NULL, 0, TTRPC_UNIMPLEMENTED, "unknown command"},
		{CTL_SERVICE, "Status", two, 1, TTRPC_INVALID_ARGUMENT, "takes 0 to 0 arguments"},
		{CTL_SERVICE, "Explain", NULL, 0, TTRPC_INVALID_ARGUMENT, "takes 1 to 1"},
		{CTL_SERVICE, "Explain", two, 2, TTRPC_INVALID_ARGUMENT, "takes 1 to 1"},
		{CTL_SERVICE, "Explain", bad, 1, TTRPC_INVALID_ARGUMENT, "not UTF-8"},
		{CTL_SERVICE, "Explain", large, 1, TTRPC_INVALID_ARGUMENT, "at most 4096"},
		{CTL_SERVICE, "More", NULL, 0, TTRPC_NOT_FOUND, "no further part"},
	};
	memset(text, 'x', sizeof text - 1);
	memset(huge, 'x', sizeof huge - 1);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		Control__Request m = CONTROL__REQUEST__INIT;
		struct ttrpc_client c;
		m.args = cases[i].args;
		m.n_args = cases[i].n_args;
		int r = call_raw(a->f->socket, cases[i].service, cases[i].method, &m.base, &c,
				 &a->err);
		if (r != -EREMOTEIO || c.code != cases[i].code ||
		    !strstr(a->err.text, cases[i].text)) {
			a->result = (int)i + 1;
			return;
		}
	}
	/* Over the size of a message: the connection ends. */
	Control__Request m = CONTROL__REQUEST__INIT;
	struct ttrpc_client c;
	m.args = largest;
	m.n_args = 1;
	a->result = call_raw(a->f->socket, CTL_SERVICE, "Explain", &m.base, &c, &a->err);
	if (a->result == -ECONNRESET || a->result == -EREMOTEIO)
		a->result = 0;
}

static void test_wrong_calls(void **state)
{
	struct asking a = {.f = &fx, .fn = wrong_calls};
	fixture_start(&fx, NONE);
	fixture_run(&a);
	if (a.result)
		fail_msg("case %d: %s", a.result, a.err.text);
	/* The socket still serves other clients. */
	json_decref(fixture_get(&fx, "Version", NULL, CTL_OK));
}

static void test_long_document(void **state)
{
	int exit;
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	for (unsigned i = 0; i < 2500; i++) {
		char name[64];
		(void)snprintf(name, sizeof name, "a-pod-whose-name-is-not-that-short-%u", i);
		assert_int_equal(fixture_create(&fx, name, 0, NULL, 0), 0);
	}
	const struct question req = {.method = "Containers"};
	json_t *doc = fixture_ask(&fx, &req, &exit);
	assert_int_equal(json_array_size(doc), 2500);
	char *text = json_dumps(doc, JSON_COMPACT);
	assert_true(strlen(text) > CTL_PIECE_MAX);
	free(text);
	json_decref(doc);
}

/* Asks for a part of the containers' document. Returns the id of the rest, or 0 on an error. */
static uint64_t next_part(struct asking *a, struct ttrpc_client *c, uint64_t rest)
{
	Control__Request m = CONTROL__REQUEST__INIT;
	const uint8_t *data;
	size_t len;
	m.rest = rest;
	a->result = ttrpc_client_call(c, CTL_SERVICE, rest ? "More" : "Containers", &m.base, 10000,
				      &data, &len, &a->err);
	Control__Response *res = a->result ? NULL : control__response__unpack(NULL, len, data);
	uint64_t id = res ? res->rest : 0;
	if (res && rest && !res->json.len)
		a->result = -EPROTO;
	if (res)
		control__response__free_unpacked(res, NULL);
	return id;
}

static void two_documents(struct asking *a)
{
	struct ttrpc_client c;
	int fd = wire_connect_unix(a->f->socket, &a->err);
	ttrpc_client_init(&c, fd);
	uint64_t first = next_part(a, &c, 0), second = a->result ? 0 : next_part(a, &c, 0);
	if (!a->result && (!first || !second))
		a->result = -EPROTO;
	if (!a->result)
		(void)next_part(a, &c, first);
	if (!a->result)
		(void)next_part(a, &c, second);
	ttrpc_client_fini(&c);
	(void)close(fd);
}

/* A client reads two long documents by turns on one connection. */
static void test_long_documents_at_once(void **state)
{
	struct asking a = {.f = &fx, .fn = two_documents};
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	for (unsigned i = 0; i < 2500; i++) {
		char name[64];
		(void)snprintf(name, sizeof name, "a-pod-whose-name-is-not-that-short-%u", i);
		assert_int_equal(fixture_create(&fx, name, 0, NULL, 0), 0);
	}
	fixture_run(&a);
	if (a.result)
		fail_msg("%s", a.err.text);
}

static void many_clients(struct asking *a)
{
	int fds[CTL_CLIENTS_MAX + 1];
	char byte;
	for (unsigned i = 0; i <= CTL_CLIENTS_MAX; i++)
		fds[i] = wire_connect_unix(a->f->socket, &a->err);
	struct pollfd p = {.fd = fds[CTL_CLIENTS_MAX], .events = POLLIN};
	(void)poll(&p, 1, 10000);
	a->result = recv(p.fd, &byte, 1, MSG_DONTWAIT) == 0 ? 0 : -EPROTO;
	/* The earlier connections are still open. */
	if (recv(fds[0], &byte, 1, MSG_DONTWAIT) != -1)
		a->result = -ECONNRESET;
	for (unsigned i = 0; i <= CTL_CLIENTS_MAX; i++)
		(void)close(fds[i]);
}

static void test_clients_are_bounded(void **state)
{
	struct asking a = {.f = &fx, .fn = many_clients};
	fixture_start(&fx, NONE);
	fixture_run(&a);
	assert_int_equal(a.result, 0);
	json_decref(fixture_get(&fx, "Version", NULL, CTL_OK));
}

static void wait_too_much(struct asking *a)
{
	Control__Request m = CONTROL__REQUEST__INIT;
	struct link *l;
	m.after = 1000;
	m.wait_ms = 5000;
	a->result = send_at_once(a->f, "Events", &m, CTL_JOBS_MAX + 1, &l, &a->err);
	if (a->result)
		return;
	if (count_answers(l, 1, "too many clients are already waiting") != 1)
		a->result = -EPROTO;
	link_close(l);
}

static void test_waits_are_bounded(void **state)
{
	struct asking a = {.f = &fx, .fn = wait_too_much};
	fixture_start(&fx, NONE);
	/* Report events until `after` has an earlier and a later event. */
	while (pipeline_last_event(fx.pipeline) < 1000)
		pipeline_event(fx.pipeline, EV_MACHINE, "x");
	fixture_run(&a);
	assert_int_equal(a.result, 0);
	json_decref(fixture_get(&fx, "Version", NULL, CTL_OK));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_plans_are_bounded),	TEST(test_wrong_calls),
		TEST(test_long_document),	TEST(test_long_documents_at_once),
		TEST(test_clients_are_bounded), TEST(test_waits_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
