/* SPDX-License-Identifier: Apache-2.0 */
/* A call and what is made of its answer, with memory ending at each point: each call ends once, and nothing is lost. */
#include <string.h>

#include "core/nri-rp-agent/devices.h"
#include "core/nri-rp-agent/grpc.h"
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

/* All that the server has to say, recorded with memory at hand. */
static struct buf recorded;

struct talk {
	struct buf out;
	unsigned n_done, n_pods;
	int error;
};

static void on_output(void *arg)
{
	(void)arg;
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
		t->error = devices_each_pod(r->payload, r->payload_len, on_pod, t, &err);
	/* protobuf-c does not say why it does not unpack */
	OOM_CHECK(t->error == 0 || t->error == -ENOMEM || t->error == -EBADMSG ||
		  t->error == -ECANCELED || t->error == -ECONNRESET);
}

static int converse(struct grpc *g, struct talk *t)
{
	Podresources__ListRequest msg = PODRESOURCES__LIST_REQUEST__INIT;
	struct err err = ERR_INIT;
	int r = grpc_call(g, "/v1.PodResourcesLister/List", &msg.base, 2000, on_done, t);
	if (r) {
		OOM_CHECK(r == -ENOMEM);
		return r;
	}
	r = grpc_feed(g, buf_bytes(&recorded), buf_len(&recorded), &err);
	if (r)
		OOM_CHECK(err.code == r && err.text[0] && !grpc_usable(g));
	return r;
}

static int work(void *arg)
{
	struct talk t = {.out = BUF_INIT};
	(void)arg;
	struct grpc *g = grpc_new(&(struct grpc_config){1u << 20, &t.out, on_output, &t});
	if (!g)
		return -ENOMEM;
	int r = converse(g, &t);
	bool called = r == 0 || t.n_done || grpc_n_calls(g);
	grpc_free(g);
	buf_fini(&t.out);
	OOM_CHECK(t.n_done == (called ? 1 : 0));
	r = r ? r : t.error;
	OOM_CHECK(r || t.n_pods == 2);
	return r;
}

/* Plays the conversation once, and keeps the server's side of it. */
static void record(void)
{
	static struct h2_answer answer = {.data = two_pods, .n_data = MESSAGE_SIZE, .status = "0"};
	Podresources__ListRequest msg = PODRESOURCES__LIST_REQUEST__INIT;
	struct h2_server server;
	struct talk t = {.out = BUF_INIT};
	struct grpc *g = grpc_new(&(struct grpc_config){1u << 20, &t.out, on_output, &t});
	assert_non_null(g);
	assert_int_equal(h2_start(&server), 0);
	assert_int_equal(grpc_call(g, "/v1.PodResourcesLister/List", &msg.base, 2000, on_done, &t),
			 0);
	assert_int_equal(h2_feed(&server, &t.out), 0);
	assert_int_equal(server.n_streams, 1);
	assert_int_equal(h2_answer(&server, server.streams[0], &answer), 0);
	assert_int_equal(buf_add(&recorded, buf_bytes(&server.out), buf_len(&server.out)), 0);
	h2_stop(&server);
	grpc_free(g);
	buf_fini(&t.out);
}

static void test_memory_may_end_anywhere(void **state)
{
	(void)state;
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
