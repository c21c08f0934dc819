/* SPDX-License-Identifier: Apache-2.0 */
/* A conversation over a real socket, with a failing allocation at each point: no peer waits for
 * ever, and no message is lost. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/lib/wire/client.h"
#include "core/lib/wire/trunk.h"
#include "proto/nri.pb-c.h"
#include "test/unit/t_oom.h"

#define SERVICE "some.Service"
#define CALLS 3u
#define GIVE_UP_MS 20000u
#define NAME_SIZE 70000u /* more than a read and a first frame take */

struct talk {
	struct loop *loop;
	struct loop_timer *give_up;
	bool mux;
	bool keeps; /* the second end answers all at once, at the end */
	char *name;
	struct trunk *a, *b;
	struct rpc_request *kept[CALLS];
	unsigned n_kept;
	unsigned n_accepted, n_done, n_good;
	unsigned n_closed;
	bool running, late;
};

static void on_give_up(void *arg)
{
	struct talk *t = arg;
	t->late = true;
	loop_stop(t->loop);
}

static void check_end(struct talk *t)
{
	if (t->running && (t->n_done == t->n_accepted || t->n_closed == 2))
		loop_stop(t->loop);
}

static void on_closed(struct trunk *trunk, const struct err *err, void *arg)
{
	struct talk *t = arg;
	OOM_CHECK(!trunk_connected(trunk));
	OOM_CHECK(err->code < 0 && err->text[0]);
	t->n_closed++;
	check_end(t);
}

static void answer(struct talk *t, struct rpc_request *req)
{
	Nri__PodSandbox pod = NRI__POD_SANDBOX__INIT;
	pod.name = t->name;
	int r = rpc_reply(req, &pod.base);
	OOM_CHECK(r == 0 || r == -ENOMEM || r == -ENOTCONN);
}

static void answer_kept(struct talk *t)
{
	while (t->n_kept)
		answer(t, t->kept[--t->n_kept]);
}

static void on_done(const struct rpc_result *result, void *arg)
{
	struct talk *t = arg;
	t->n_done++;
	t->n_good += result->error == 0;
	OOM_CHECK(result->text != NULL);
	if (result->error && t->running)
		answer_kept(t); /* the last one will not come */
	check_end(t);
}

static void on_request(struct rpc_request *req, void *arg)
{
	struct talk *t = arg;
	if (!t->keeps) {
		answer(t, req);
		return;
	}
	t->kept[t->n_kept++] = req;
	if (t->n_kept == CALLS)
		answer_kept(t);
}

static int begin(struct talk *t)
{
	const struct trunk_config config = {.mux = t->mux, .closed = on_closed, .arg = t};
	struct err err = ERR_INIT;
	int fds[2];
	OOM_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
	int r = trunk_new(t->loop, fds[0], &config, &t->a, &err);
	if (r) {
		(void)close(fds[1]);
		OOM_CHECK(err.code == r && err.text[0]);
		return r;
	}
	r = trunk_new(t->loop, fds[1], &config, &t->b, &err);
	if (r)
		return r;
	rpc_serve(trunk_rpc(t->b, MUX_CONN_PLUGIN), on_request, t);
	return 0;
}

static int converse(struct talk *t)
{
	Nri__PodSandbox pod = NRI__POD_SANDBOX__INIT;
	pod.name = t->name;
	int r = begin(t);
	for (unsigned i = 0; i < CALLS && !r; i++) {
		struct rpc *rpc = trunk_rpc(t->a, MUX_CONN_PLUGIN);
		r = rpc_call(rpc, SERVICE, "Call", &pod.base, 0, on_done, t);
		OOM_CHECK(r == 0 || r == -ENOMEM || r == -ENOTCONN);
		OOM_CHECK(r != 0 || rpc_n_calls(rpc) == i + 1);
		t->n_accepted += r == 0;
	}
	t->running = true;
	if (!r)
		(void)loop_run(t->loop);
	t->running = false;
	return r;
}

static int talk(void *arg)
{
	struct talk *t = arg;
	struct talk fresh = {.loop = t->loop,
			     .give_up = t->give_up,
			     .mux = t->mux,
			     .keeps = t->keeps,
			     .name = t->name};
	*t = fresh;
	int r = converse(t);
	t->a = trunk_free(t->a);
	t->b = trunk_free(t->b);
	for (unsigned i = 0; i < t->n_kept; i++)
		OOM_CHECK(rpc_reply(t->kept[i], NULL) == -ENOTCONN);
	OOM_CHECK(!t->late);
	OOM_CHECK(t->n_done == t->n_accepted);
	if (r)
		return r;
	/* A call may be answered for good although the connection has ended after it. */
	return t->n_good == CALLS ? 0 : -ECONNRESET;
}

static void check_talk(bool mux, bool keeps, size_t name_size)
{
	struct talk t = {.loop = loop_new(), .mux = mux, .keeps = keeps};
	t.give_up = loop_timer_new(t.loop, on_give_up, &t);
	t.name = malloc(name_size + 1);
	assert_non_null(t.give_up);
	assert_non_null(t.name);
	memset(t.name, 'n', name_size);
	t.name[name_size] = '\0';
	assert_int_equal(loop_timer_arm(t.give_up, GIVE_UP_MS), 0);
	oom_each(talk, &t);
	free(t.name);
	loop_timer_free(t.give_up);
	loop_free(t.loop);
}

static void test_plain(void **state)
{
	check_talk(false, false, 10);
	check_talk(false, true, NAME_SIZE);
}

static void test_mux(void **state)
{
	check_talk(true, false, 10);
	check_talk(true, true, NAME_SIZE);
}

/* ---- the client that waits ------------------------------------------------------------------- */

/* Makes a call whose answer is in the socket before the request is sent. */
static int ask(void *arg)
{
	static uint8_t message[TTRPC_HEADER_SIZE + 8192];
	struct ttrpc_out answer = {.code = TTRPC_OK, .payload = arg};
	uint32_t size = (uint32_t)ttrpc_response_size(&answer);
	ttrpc_header_encode(message, &(struct ttrpc_header){size, 1, TTRPC_RESPONSE, 0});
	ttrpc_response_encode(&answer, message + TTRPC_HEADER_SIZE);
	int fds[2];
	OOM_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	ssize_t total = (ssize_t)(TTRPC_HEADER_SIZE + size);
	OOM_CHECK(write(fds[1], message, (size_t)total) == total);
	struct ttrpc_client client;
	struct err err = ERR_INIT;
	const uint8_t *payload = NULL;
	size_t len = 0;
	ttrpc_client_init(&client, fds[0]);
	int r = ttrpc_client_call(&client, SERVICE, "Ask", arg, 1000, &payload, &len, &err);
	OOM_CHECK(r == 0 || (r == -ENOMEM && err.text[0] && !payload));
	OOM_CHECK(r != 0 || len == protobuf_c_message_get_packed_size(arg));
	ttrpc_client_fini(&client);
	(void)close(fds[0]);
	(void)close(fds[1]);
	return r;
}

static void test_client(void **state)
{
	Nri__PodSandbox pod = NRI__POD_SANDBOX__INIT;
	pod.name = (char *)(uintptr_t) "a name";
	oom_each(ask, &pod);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_mux),
		cmocka_unit_test(test_client),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
