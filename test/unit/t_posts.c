/* SPDX-License-Identifier: Apache-2.0 */
/* Services for policies that nri-rp.host.work/1 adds in 1.3: posted events and files of the
 * node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "core/nri-rpd/host/service/services.h"
#include "test/unit/t_topo_tree.h"
#include "core/lib/util/worker.h"

static int32_t event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	return 0;
}

static const struct rp_policy policy = {.size = sizeof policy, .event = event};
static struct module module = {.name = "poster"};

struct place {
	struct tree tree;
	struct host_env env;
	struct instance a, b; /* two policies */
	char seen[512]; /* received events, in order */
};

static void on_event(struct instance *i, const struct rp_event *ev, void *arg)
{
	struct place *p = arg;
	size_t len = strlen(p->seen);
	assert_int_equal(ev->type, RP_EVENT_POSTED);
	assert_int_equal(ev->size, sizeof *ev);
	assert_true((ev->data == NULL) == !ev->data_size);
	assert_true((uintptr_t)ev->data % 8 == 0);
	(void)snprintf(p->seen + len, sizeof p->seen - len, "%c%llu%.*s ", i == &p->a ? 'a' : 'b',
		       (unsigned long long)ev->cookie, (int)ev->data_size,
		       ev->data ? (const char *)ev->data : "");
	if (ev->cookie == 7)
		assert_int_equal(host_work_service.post(i, 8, "more", 4), 0);
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	assert_non_null(p);
	tree_init(&p->tree);
	p->env = (struct host_env){
		.loop = loop_new(), .root = &p->tree.root, .event = on_event, .arg = p};
	p->env.worker = worker_new(p->env.loop, "test");
	p->a = (struct instance){
		.env = &p->env, .module = &module, .policy = &policy, .thread = pthread_self()};
	p->b = p->a;
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	worker_free(p->env.worker);
	loop_free(p->env.loop);
	tree_fini(&p->tree);
	free(p);
	return 0;
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static void run(struct place *p)
{
	assert_int_equal(loop_post(p->env.loop, stop, p->env.loop), 0);
	assert_int_equal(loop_run(p->env.loop), 0);
}

static void test_order(void **state)
{
	struct place *p = *state;
	char data[] = "first";
	assert_int_equal(host_work_service.post(&p->a, 1, data, 5), 0);
	memset(data, 'x', 5); /* the host has copied the data */
	assert_int_equal(host_work_service.post(&p->b, 7, NULL, 0), 0);
	assert_int_equal(host_work_service.post(&p->a, 1, "first", 5), 0);
	assert_string_equal(p->seen, "");
	run(p);
	assert_string_equal(p->seen, "a1first b7 a1first ");
	run(p); /* delivers the event that the handler of b posted */
	assert_string_equal(p->seen, "a1first b7 a1first b8more ");
}

static int32_t job(void *arg)
{
	struct place *p = arg;
	return host_work_service.post(&p->a, 2, "found", 5);
}

static void done(void *arg, int32_t result)
{
	struct place *p = arg;
	strcat(p->seen, result ? "failed" : "done");
	loop_stop(p->env.loop);
}

static void test_of_a_job(void **state)
{
	struct place *p = *state;
	assert_int_equal(host_work_service.submit(&p->a, job, done, p), 0);
	assert_int_equal(loop_run(p->env.loop), 0);
	assert_string_equal(p->seen, "a2found done");
}

/* Events of an instance that has ended are dropped; events of other instances are delivered. */
static void test_gone(void **state)
{
	struct place *p = *state;
	for (unsigned i = 0; i < RP_POSTS_MAX; i++)
		assert_int_equal(host_work_service.post(&p->a, i, NULL, 0), 0);
	assert_int_equal(host_work_service.post(&p->a, 0, NULL, 0), -RP_E2BIG);
	assert_int_equal(host_work_service.post(&p->b, 1, NULL, 0), 0);
	instance_drop_posts(&p->a);
	memset(&p->a, 0xa5, sizeof p->a);
	run(p);
	assert_string_equal(p->seen, "b1 ");
	assert_null(p->env.posts);
	for (unsigned i = 0; i < RP_POSTS_MAX; i++) /* the queue has its whole capacity again */
		assert_int_equal(host_work_service.post(&p->b, 1, NULL, 0), 0);
	instance_drop_posts(&p->b);
	run(p);
	assert_string_equal(p->seen, "b1 ");
}

static void test_refused(void **state)
{
	struct place *p = *state;
	static const char data[RP_POST_BYTES_MAX + 1];
	struct instance controller = p->a;
	controller.policy = NULL;
	assert_int_equal(host_work_service.post(&p->a, 0, data, sizeof data), -RP_E2BIG);
	assert_int_equal(host_work_service.post(&p->a, 0, data, sizeof data - 1), 0);
	assert_int_equal(host_work_service.post(&controller, 0, NULL, 0), -RP_ENOTSUP);
	p->env.trial = true;
	assert_int_equal(host_work_service.post(&p->a, 0, NULL, 0), -RP_ENOTSUP);
	/* A trial leaves what its parent has posted, and waits for no worker of its parent. */
	assert_int_equal(pthread_mutex_lock(&p->env.posts_lock), 0);
	instance_drop_posts(&p->a);
	assert_int_equal(pthread_mutex_unlock(&p->env.posts_lock), 0);
	assert_non_null(p->env.posts);
	p->env.trial = false;
	instance_drop_posts(&p->a);
	run(p);
	assert_string_equal(p->seen, "");
}

static int32_t read_node(struct place *p, const char *path, char *buf, uint32_t cap)
{
	memset(buf, 'x', 16);
	return host_work_service.read_node(&p->a, path, buf, cap);
}

static void test_files_of_the_node(void **state)
{
	struct place *p = *state;
	char path[PATH_MAX], buf[64];
	static char long_text[RP_NODE_FILE_MAX + 64], room[RP_NODE_FILE_MAX + 64];
	tree_put(&p->tree, "etc/node.conf", "a: 1\nb: 2\n");
	tree_put(&p->tree, "etc/empty", "%s", "");
	tree_link(&p->tree, "/etc/node.conf", "etc/link");
	tree_path(&p->tree, "etc/pipe", path, sizeof path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_node(p, "/etc/node.conf", buf, sizeof buf), 10);
	assert_string_equal(buf, "a: 1\nb: 2\n");
	assert_int_equal(read_node(p, "/etc/node.conf", buf, 11), 10);
	assert_int_equal(read_node(p, "/etc/node.conf", buf, 10), -RP_E2BIG);
	assert_int_equal(read_node(p, "/etc/node.conf", buf, 0), -RP_EINVAL);
	assert_int_equal(read_node(p, "/etc/empty", buf, sizeof buf), 0);
	assert_string_equal(buf, "");
	assert_int_equal(read_node(p, "/etc/link", buf, sizeof buf), 10); /* within the root */
	assert_int_equal(read_node(p, "/etc/none", buf, sizeof buf), -RP_ENOENT);
	assert_int_equal(read_node(p, "etc/node.conf", buf, sizeof buf), -RP_EINVAL);
	assert_int_equal(read_node(p, "/etc/../etc/node.conf", buf, sizeof buf), -RP_EINVAL);
	assert_int_equal(read_node(p, "/etc/..", buf, sizeof buf), -RP_EINVAL);
	assert_int_equal(read_node(p, "/etc", buf, sizeof buf), -RP_EINVAL);
	assert_int_equal(read_node(p, "/etc/pipe", buf, sizeof buf), -RP_EINVAL);
	memset(long_text, 'l', RP_NODE_FILE_MAX);
	tree_put_bytes(&p->tree, "etc/long", long_text, RP_NODE_FILE_MAX);
	assert_int_equal(read_node(p, "/etc/long", room, sizeof room), RP_NODE_FILE_MAX);
	tree_put_bytes(&p->tree, "etc/long", long_text, RP_NODE_FILE_MAX + 1);
	assert_int_equal(read_node(p, "/etc/long", room, sizeof room), -RP_E2BIG);
}

#define T(f) cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(order), T(of_a_job), T(gone), T(refused), T(files_of_the_node),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
