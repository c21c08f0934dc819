/* SPDX-License-Identifier: Apache-2.0 */
/* A call and what is made of its answer, with memory ending at each point: each call ends once, and
 * nothing is lost. */
#include <string.h>

#include "core/lib/grpc/call.h"
#include "core/nri-rp-agent/devices.h"
#include "proto/podresources.pb-c.h"
#include "test/unit/h2_server.h"
#include "test/unit/t_oom.h"

/* Two pods: "ns/a" with container "c" and device "x/y" at node 1, "ns/b". */
static const uint8_t two_pods[] = {
	/* not compressed, length */ 0,
	0,
	0,
	0,
	36,
	/* pod of 25 bytes */ 0x0a,
	25,
	0x0a,
	1,
	'a',
	0x12,
	2,
	'n',
	's',
	/* container of 16 */ 0x1a,
	16,
	0x0a,
	1,
	'c',
	/* device of 11 */ 0x12,
	11,
	0x0a,
	3,
	'x',
	'/',
	'y',
	/* topology, node */ 0x1a,
	4,
	0x0a,
	2,
	0x08,
	1,
	/* pod of 7 */ 0x0a,
	7,
	0x0a,
	1,
	'b',
	0x12,
	2,
	'n',
	's'};
#define MESSAGE_SIZE sizeof two_pods

/* Bytes that the server sends, recorded while memory is available. */
static struct buf recorded;

struct talk {
	unsigned n_done, n_pods;
	int error;
};

static void on_touched(void *arg)
{
}

static int on_pod(const Agent__PodDevices *pod, void *arg)
{
	struct talk *t = arg;
	OOM_CHECK(strcmp(pod->namespace_, "ns") == 0);
	t->n_pods++;
	return 0;
}

static void on_done(const struct grpc_result *r, void *arg)
{
	struct talk *t = arg;
	struct err err = ERR_INIT;
	t->n_done++;
	t->error = r->error;
	OOM_CHECK(r->error <= 0 && r->text && (!r->error || *r->text));
	if (!r->error)
		t->error = devices_each_pod(r->payload, r->payload_len, true, on_pod, t, &err);
	/* protobuf-c does not say why it does not unpack */
	OOM_CHECK(t->error == 0 || t->error == -ENOMEM || t->error == -EBADMSG ||
		  t->error == -ECANCELED || t->error == -ECONNRESET);
}

static int list(struct h2 *h, struct loop *loop, struct talk *t)
{
	Podresources__ListRequest msg = PODRESOURCES__LIST_REQUEST__INIT;
	return grpc_call(&(struct grpc_call_config){.h2 = h,
						    .loop = loop,
						    .path = "/v1.PodResourcesLister/List",
						    .timeout_ms = 2000,
						    .done = on_done,
						    .arg = t},
			 &msg.base, NULL);
}

/* Sends the pending frames; fails when memory runs out. */
static int say(struct h2 *h, struct buf *to)
{
	struct buf unheard = BUF_INIT;
	int r = h2_pull(h, to ? to : &unheard, SIZE_MAX);
	buf_fini(&unheard);
	return r;
}

static int converse(struct h2 *h, struct loop *loop, struct talk *t)
{
	struct err err = ERR_INIT;
	int r = list(h, loop, t);
	if (r) {
		OOM_CHECK(r == -ENOMEM);
		return r;
	}
	r = say(h, NULL);
	if (!r)
		r = h2_feed(h, buf_bytes(&recorded), buf_len(&recorded), &err);
	OOM_CHECK(r <= 0 && (!err.code || (err.code == r && err.text[0])));
	return r;
}

static int work(void *arg)
{
	struct talk t = {0};
	struct loop *loop = loop_new();
	struct h2 *h = loop ? h2_new(&(struct h2_config){.touched = on_touched}) : NULL;
	if (!h) {
		loop_free(loop);
		return -ENOMEM;
	}
	int r = converse(h, loop, &t);
	bool called = r == 0 || t.n_done || h2_n_streams(h);
	h2_free(h);
	loop_free(loop);
	OOM_CHECK(t.n_done == (called ? 1 : 0));
	r = r ? r : t.error;
	OOM_CHECK(r || t.n_pods == 2);
	return r;
}

/* Plays the conversation once, and keeps the server's side of it. */
static void record(void)
{
	static struct h2_answer answer = {.data = two_pods, .n_data = MESSAGE_SIZE, .status = "0"};
	struct h2_server server;
	struct talk t = {0};
	struct buf out = BUF_INIT;
	struct loop *loop = loop_new();
	struct h2 *h = h2_new(&(struct h2_config){.touched = on_touched});
	assert_non_null(h);
	assert_int_equal(h2_start(&server), 0);
	assert_int_equal(list(h, loop, &t), 0);
	assert_int_equal(say(h, &out), 0);
	assert_int_equal(h2_feed_server(&server, &out), 0);
	assert_int_equal(server.n_streams, 1);
	assert_int_equal(h2_answer(&server, server.streams[0], &answer), 0);
	assert_int_equal(buf_add(&recorded, buf_bytes(&server.out), buf_len(&server.out)), 0);
	h2_stop(&server);
	h2_free(h);
	loop_free(loop);
	buf_fini(&out);
}

static void test_memory_may_end_anywhere(void **state)
{
	record();
	oom_each(work, NULL);
	buf_fini(&recorded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_may_end_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
