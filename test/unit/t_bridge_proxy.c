/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that the proxy ends a call with an error if it cannot store the whole reply that it defers.
 * The test plays the interceptor, the caller and the runtime. */
#include "core/nri-rp-bridge/proxy.c"
#include "test/unit/h2_server.h"
#include "test/unit/t_oom.h"

#define N_REPLY 20000u /* two frames */

/* ---- other parts of the bridge --------------------------------------------------------------- */

static struct h2 *up; /* connection to the runtime */
static enum intercept_outcome outcome;

int upstream_connection(struct upstream *u, struct h2 **ret, struct err *err)
{
	*ret = up;
	return 0;
}

bool intercept_wants(const char *path)
{
	return true;
}

void intercept_begin(struct intercept *p, const char *path, const uint8_t *payload, size_t n,
		     uint64_t left_ms, const struct intercept_events *events, void *arg,
		     struct intercept_call **ret)
{
	*ret = (struct intercept_call *)&outcome;
	events->forward(payload, n, true, arg);
}

struct intercept_call *intercept_end(struct intercept_call *c, enum intercept_outcome o,
				     const uint8_t *payload, size_t n)
{
	outcome = o;
	return NULL;
}

int events_listen(struct events *e, struct events_listener *l, struct err *err)
{
	return 0;
}

void events_leave(struct events *e, struct events_listener *l)
{
}

enum trace_level trace_level_of(const struct trace_rules *rules, const char *path)
{
	return TRACE_OFF;
}

const char *trace_method(const char *path)
{
	return path;
}

void trace_log_message(const char *path, const char *arrow, const uint8_t *data, size_t n)
{
}

/* ---- a call ---------------------------------------------------------------------------------- */

struct outcome_of_call {
	unsigned n;
	int error;
	int32_t status;
	size_t n_payload;
};

static void on_done(const struct grpc_result *r, void *arg)
{
	struct outcome_of_call *o = arg;
	o->n++;
	o->error = r->error;
	o->status = r->status;
	o->n_payload = r->payload_len;
}

static void on_touched(void *arg)
{
}

static bool move(struct h2 *from, struct h2 *to)
{
	struct buf bytes = BUF_INIT;
	assert_int_equal(h2_pull(from, &bytes, SIZE_MAX), 0);
	bool any = buf_len(&bytes) > 0;
	assert_int_equal(h2_feed(to, buf_bytes(&bytes), buf_len(&bytes), NULL), 0);
	buf_fini(&bytes);
	return any;
}

/* Passes bytes between the caller and the proxy until neither side has any left to send. */
static void exchange(struct h2 *caller, struct h2 *down)
{
	while (move(caller, down) || move(down, caller))
		;
}

/* Sends the request to the runtime and its reply to the proxy, for which allocations fail. */
static void reply(struct h2_server *runtime)
{
	static uint8_t data[GRPC_PREFIX_SIZE + N_REPLY];
	static const struct h2_answer answer = {.data = data, .n_data = sizeof data, .status = "0"};
	struct buf bytes = BUF_INIT;
	struct err err = ERR_INIT;
	grpc_prefix(data, N_REPLY);
	assert_int_equal(h2_pull(up, &bytes, SIZE_MAX), 0);
	assert_int_equal(h2_feed_server(runtime, &bytes), 0);
	assert_int_equal(runtime->n_streams, 1);
	assert_int_equal(h2_answer(runtime, runtime->streams[0], &answer), 0);
	oom.armed = true;
	int r = h2_feed(up, buf_bytes(&runtime->out), buf_len(&runtime->out), &err);
	oom.armed = false;
	if (r)
		h2_close(up, r, err.text);
	buf_fini(&bytes);
}

static void one_call(struct outcome_of_call *ret)
{
	struct h2_server runtime;
	struct loop *loop = loop_new();
	struct proxy proxy = {.config = {.loop = loop},
			      .sweep = loop_timer_new(loop, on_sweep, &proxy)};
	struct h2 *caller = h2_new(&(struct h2_config){.touched = on_touched});
	struct h2 *down = h2_new(&(struct h2_config){
		.server = true, .accept = on_accept, .touched = on_touched, .arg = &proxy});
	up = h2_new(&(struct h2_config){.touched = on_touched});
	assert_int_equal(h2_start(&runtime), 0);
	*ret = (struct outcome_of_call){0};
	assert_int_equal(grpc_call_packed(&(struct grpc_call_config){.h2 = caller,
								     .loop = loop,
								     .path = "/a/Create",
								     .done = on_done,
								     .arg = ret},
					  (const uint8_t *)"x", 1, NULL),
			 0);
	exchange(caller, down);
	reply(&runtime);
	exchange(caller, down);
	assert_int_equal(ret->n, 1);
	h2_free(caller);
	h2_free(down);
	up = h2_free(up);
	assert_null(proxy.calls);
	loop_timer_free(proxy.sweep);
	loop_free(loop);
	h2_stop(&runtime);
}

static int work(void *arg)
{
	unsigned *n_refused = arg;
	struct outcome_of_call o;
	oom.armed = false;
	oom.for_good = false; /* without any memory, no end of the call can be sent */
	one_call(&o);
	oom.held = 0; /* some of it was freed later */
	if (o.error == -EBADMSG)
		fail_msg("allocation %u fails, and the caller gets a malformed reply", oom.at);
	if (o.error == -EREMOTEIO && o.status == GRPC_RESOURCE_EXHAUSTED) {
		assert_int_equal(outcome, OUTCOME_BROKEN);
		++*n_refused;
	} else if (!o.error) {
		assert_int_equal(o.n_payload, N_REPLY);
		assert_int_equal(outcome, OUTCOME_DONE);
	}
	return o.error;
}

static void test_reply_not_stored(void **state)
{
	unsigned n_refused = 0;
	oom_each(work, &n_refused);
#ifndef SANITIZED
	assert_true(n_refused > 0);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_reply_not_stored)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
