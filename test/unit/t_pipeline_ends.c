/* SPDX-License-Identifier: Apache-2.0 */
/* Controllers are notified of the start and end of containers in unusual cases, too. */
#include <sys/wait.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "test/unit/t_world.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/request/sync.h"

static struct world *start(struct world *w, const char *conf)
{
	char text[CONF_MAX];
	world_configure(w, in_folder(w, conf, text));
	world_must_start(w);
	forget_trace(w);
	return w;
}

#define HAND "policy: puppet\ncontrollers: [hand]\nhand: {trace: $/trace}\n"

static void assert_heard(struct world *w, const char *calls)
{
	struct calls heard;
	assert_string_equal(trace_of(w, &heard), calls);
	forget_trace(w);
}

static void test_replaced_has_ended(void **state)
{
	struct world *w = start(*state, HAND);
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	forget_trace(w);
	assert_int_equal(
		box_create(w, &(struct box){.name = "a", .id = "second", .alloc = "cpus 0-3"}), 0);
	assert_heard(w, "hand ended c-a ; ");
	box_start(w, &(struct box){.name = "a", .id = "third", .alloc = "cpus 0-3"});
	assert_heard(w, "hand changed third ; hand ended second ; ");
}

/* Checks that a replaced container is released even if its successor cannot be placed. */
static void test_replaced_by_one_unmanaged(void **state)
{
	struct world *w = start(*state, HAND "onPolicyError: unmanaged\n");
	char script[CONF_MAX];
	const char *alloc = in_folder(w, "once $/once; cpus 0-3; excl 0-3", script);
	box_run(w, &(struct box){.name = "a", .alloc = alloc});
	forget_trace(w);
	assert_int_equal(box_create(w, &(struct box){.name = "a", .id = "second"}), 0);
	assert_int_equal(pipeline_stats(w->p)->unmanaged, 1);
	assert_int_equal(cache_ctr(pipeline_cache(w->p), "c-a")->cur.state, RP_STATE_EXITED);
	assert_heard(w, "hand ended c-a ; ");
	assert_string_equal(box_cpus(w, "a"), "0-15");
}

/* Checks that the older of two containers of the same name in the runtime's list has ended. */
static void test_replaced_in_a_list(void **state)
{
	struct world *w = start(*state, HAND);
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	forget_trace(w);
	const struct box both[] = {{.name = "a", .alloc = "cpus 0-3"},
				   {.name = "a", .id = "second", .alloc = "cpus 0-3"}};
	(void)boxes_sync(w, both, 2);
	struct calls heard;
	assert_non_null(strstr(trace_of(w, &heard), "hand ended c-a ; "));
	assert_int_equal(cache_ctr(pipeline_cache(w->p), "c-a")->cur.state, RP_STATE_EXITED);
}

static void test_required_controller_refuses(void **state)
{
	struct world *w =
		start(*state, "policy: puppet\nonPolicyError: unmanaged\ncontrollers: {hand: "
			      "required}\nhand: {preCreate: '16 busy'}\n");
	assert_int_equal(box_create(w, &(struct box){.name = "a", .alloc = "cpus 0-3"}), -RP_EBUSY);
	assert_string_equal(w->err.text, "container default/a/c: controller hand: busy");
	assert_null(box_ctr(w, "a"));
	/* A required controller also refuses a container that the policy has refused first. */
	assert_int_equal(box_create(w, &(struct box){.name = "a", .alloc = "fail 28 no room"}),
			 -RP_EBUSY);
	assert_null(box_ctr(w, "a"));
	assert_int_equal(pipeline_stats(w->p)->unmanaged, 0);
}

/* Checks a creation whose reply was dropped: controllers are notified of the container's end,
 * not of a change. */
static void test_dropped_reply(void **state)
{
	struct world *w = start(*state, HAND);
	struct reply reply;
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	forget_trace(w);
	assert_int_equal(
		box_begin(w, &(struct box){.name = "n", .alloc = "cpus 0; on c; cpus 1-3"}, &reply),
		0);
	reply_dropped(w->p, &reply);
	assert_heard(w, "hand changed c-a ; hand ended c-n ; ");
}

static void test_others_hear_of_an_adopted(void **state)
{
	struct world *w = start(*state, HAND);
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	forget_trace(w);
	box_start(w, &(struct box){.name = "b", .alloc = "cpus 0; on c; cpus 1-3"});
	assert_heard(w, "hand changed c-b ; hand changed c-a ; ");
}

#define LIMIT "/sys/devices/system/cpu/cpu3/cpufreq/scaling_max_freq"

static bool has(struct world *w, const char *text)
{
	char now[64];
	ssize_t n = fs_read(&w->tree.root, LIMIT, now, sizeof now);
	return n >= 0 && strncmp(now, text, strlen(text)) == 0;
}

static bool is_set(struct world *w, void *text)
{
	return has(w, text);
}

static int nothing(void *arg)
{
	return 0;
}

static void note(void *arg, int result)
{
	*(bool *)arg = result == 0;
}

static bool is_noted(struct world *w, void *arg)
{
	return *(bool *)arg;
}

/* Waits until the worker has done all jobs submitted so far. */
static void wait_for_worker(struct world *w)
{
	bool noted = false;
	assert_int_equal(worker_submit(w->p->env.worker, nothing, note, &noted), 0);
	world_until(w, is_noted, &noted);
}

static void run_first_life(struct world *w)
{
	(void)start(w, "policy: balloons\nballoons: {reservedResources: {cpu: 'cpuset:15'}, "
		       "idleCPUClass: lo, cpuClasses: [{name: lo, maxFreq: 2GHz}]}\n");
	assert_int_equal(boxes_sync(w, NULL, 0), 0);
	world_until(w, is_set, (void *)(uintptr_t) "2000000");
	_exit(0);
}

/* Checks that an unreadable list places no containers: the previous process's settings stay
 * until a list can be read. */
static void test_unreadable_list(void **state)
{
	struct world *w = *state;
	int status;
	tree_put(&w->tree, LIMIT, "3000000\n");
	pid_t pid = fork();
	if (!pid)
		run_first_life(w);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)start(w, "policy: none\n");
	request_begin(w->p, REQ_SYNCHRONIZE);
	sync_begin(w->p);
	sync_abandon(w->p);
	reply_sent(w->p, NULL, true);
	wait_for_worker(w);
	assert_true(has(w, "2000000"));
	assert_int_equal(boxes_sync(w, NULL, 0), 0);
	world_until(w, is_set, (void *)(uintptr_t) "3000000");
}

/* Checks, with a sanitizer, that a write of nodeResources.file that ends with the daemon reads
 * nothing of the configuration. */
static void test_stop_during_a_write(void **state)
{
	struct world *w = start(*state, "policy: none\nnodeResources: {file: $/node.json}\n");
	char path[PATH_MAX];
	world_stop(w);
	tree_path(&w->tree, "node.json", path, sizeof path);
	assert_int_equal(access(path, R_OK), 0);
}

static void run_sandbox(struct world *w, const char *name, const char *id)
{
	struct box_desc d;
	box_describe(&(struct box){.name = name}, &d);
	d.pod.uid = "u1";
	d.pod.id = id;
	request_begin(w->p, REQ_RUN_POD);
	assert_int_equal(request_run_pod(w->p, &d.pod, &w->err), 0);
	reply_sent(w->p, NULL, false);
}

/* A new sandbox of a pod ends the last one, whose end was not reported. */
static void test_new_sandbox(void **state)
{
	struct world *w = start(*state, "policy: puppet\n");
	struct cache *c = pipeline_cache(w->p);
	run_sandbox(w, "a", "first");
	box_run(w, &(struct box){.name = "a", .pod_id = "first", .alloc = "cpus 0-3"});
	/* another pod with the UID, as users of crictl may write */
	run_sandbox(w, "b", "other");
	assert_non_null(cache_ctr(c, "c-a"));
	run_sandbox(w, "a", "second");
	assert_null(cache_ctr(c, "c-a"));
	assert_null(cache_pod(c, "first"));
	assert_null(cache_pod(c, "other")); /* without containers it is removed in any case */
	assert_non_null(cache_pod(c, "second"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bare_test(test_replaced_has_ended), bare_test(test_replaced_by_one_unmanaged),
		bare_test(test_replaced_in_a_list), bare_test(test_required_controller_refuses),
		bare_test(test_dropped_reply),	    bare_test(test_others_hear_of_an_adopted),
		bare_test(test_unreadable_list),    bare_test(test_stop_during_a_write),
		bare_test(test_new_sandbox),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
