/* SPDX-License-Identifier: Apache-2.0 */
/* Unsolicited updates: the queue, its failures, and the check of the kernel's values. */
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "test/unit/t_world.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/request/updates.h"

/* ---- the queue ------------------------------------------------------------------------------- */

/* Runs n containers a, b, … on CPU i each; `move` makes the policy move each to CPU i + 8. */
static void run_some(struct world *w, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char name[2] = {(char)('a' + i), '\0'}, alloc[32], sync[32];
		(void)snprintf(alloc, sizeof alloc, "cpus %u", i);
		(void)snprintf(sync, sizeof sync, "cpus %u", i + 8);
		box_run(w, &(struct box){.name = name, .alloc = alloc, .sync = sync});
	}
}

static bool reloaded(struct world *w, void *arg)
{
	return pipeline_stats(w->p)->reloads == *(uint64_t *)arg;
}

static void move(struct world *w)
{
	uint64_t wanted = pipeline_stats(w->p)->reloads + 1;
	pipeline_reload(w->p, NULL, NULL);
	world_until(w, reloaded, &wanted);
}

static void test_batch(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	run_some(w, 3);
	assert_null(updates_next(w->p, &n));
	move(w);
	assert_true(w->n_ready >= 1);
	assert_int_equal(updates_waiting(w->p), 3);
	const struct update *items = updates_next(w->p, &n);
	assert_int_equal(n, 3);
	assert_string_equal(items[0].ctr->id, "c-a");
	assert_string_equal(items[2].values.cpus->text, "10");
	assert_int_equal(items[0].fields, DIFF_CPUS);
	assert_true(updates_outstanding(w->p));
	assert_null(updates_next(w->p, &n)); /* a single batch at a time */
	updates_acked(w->p);
	assert_false(updates_outstanding(w->p));
	assert_string_equal(box_acked(w, "c"), "10");
	assert_int_equal(updates_waiting(w->p), 0);
	assert_int_equal(pipeline_stats(w->p)->updates_sent, 3);
}

static void test_losers_first(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	box_run(w, &(struct box){.name = "gains", .alloc = "cpus 0", .sync = "cpus 0-3"});
	box_run(w, &(struct box){.name = "loses", .alloc = "cpus 1-5", .sync = "cpus 4-5"});
	move(w);
	const struct update *items = updates_next(w->p, &n);
	assert_int_equal(n, 2);
	assert_string_equal(items[0].ctr->id, "c-loses");
	assert_string_equal(items[1].ctr->id, "c-gains");
	updates_acked(w->p);
}

static bool is_ready_again(struct world *w, void *arg)
{
	return w->n_ready > *(unsigned *)arg;
}

/* Checks that an update that adds CPUs waits, if the policy allows it, until its time is up or
 * until an update revokes CPUs. */
static void test_patience(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	unsigned ready;
	box_run(w, &(struct box){.name = "gains",
				 .alloc = "cpus 0",
				 .sync = "cpus 0-3; wait 60000 60000"});
	ready = w->n_ready;
	move(w);
	assert_int_equal(updates_waiting(w->p), 1);
	assert_null(updates_next(w->p, &n));
	assert_int_equal(w->n_ready, ready);
	box_run(w, &(struct box){.name = "a",
				 .alloc = "cpus 10-11",
				 .start = "cpus 10; wait 60000 60000"});
	assert_int_equal(w->n_ready, ready + 1);
	const struct update *items = updates_next(w->p, &n);
	assert_int_equal(n, 2);
	assert_string_equal(items[0].ctr->id, "c-a");
	updates_acked(w->p);
	box_run(w, &(struct box){
			   .name = "b", .alloc = "cpus 11", .start = "on c; cpus 0-4; wait 1 1"});
	world_until(w, is_ready_again, &(unsigned){ready + 1});
	assert_non_null(updates_next(w->p, &n));
	updates_acked(w->p);
	/* another one of the kind puts the first one's time off, but only so long */
	box_run(w, &(struct box){
			   .name = "c", .alloc = "cpus 12", .start = "on c; cpus 0-5; wait 50 50"});
	box_run(w, &(struct box){.name = "d",
				 .alloc = "cpus 13",
				 .start = "on c; cpus 0-6; wait 60000 60000"});
	world_until(w, is_ready_again, &(unsigned){ready + 2});
	assert_string_equal(updates_next(w->p, &n)->values.cpus->text, "0-6");
	updates_acked(w->p);
	/* the runtime's socket is another one now: what waits goes first */
	box_run(w, &(struct box){.name = "e",
				 .alloc = "cpus 14",
				 .start = "on c; cpus 0-7; wait 60000 60000"});
	assert_null(updates_next(w->p, &n));
	updates_hurry(w->p);
	assert_non_null(updates_next(w->p, &n));
	updates_acked(w->p);
}

/* Checks an update of every field. */
static void test_every_field(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	box_run(w, &(struct box){.name = "a",
				 .alloc = "cpus 0",
				 .sync = "cpus 1; mems 1; int 1 512; int 2 20000; int 3 100000; "
					 "int 4 1000000"});
	move(w);
	const struct update *items = updates_next(w->p, &n);
	assert_int_equal(n, 1);
	assert_int_equal(items[0].fields, DIFF_CPUS | DIFF_MEMS | DIFF_SHARES | DIFF_QUOTA |
						  DIFF_PERIOD | DIFF_MEM_LIMIT);
	updates_acked(w->p);
	const struct values *acked = &box_ctr(w, "a")->acked;
	assert_string_equal(acked->mems->text, "1");
	assert_int_equal(acked->shares, 512);
	assert_int_equal(acked->quota, 20000);
	assert_int_equal(acked->period, 100000);
	assert_int_equal(acked->mem_limit, 1000000);
	assert_int_equal(ctr_diff(box_ctr(w, "a")), 0);
}

static void stop_ctr(struct world *w, const char *name, bool remove)
{
	struct box_desc d;
	struct reply reply;
	box_describe(&(struct box){.name = name}, &d);
	request_begin(w->p, REQ_STOP);
	request_stop(w->p, &d.pod, &d.ctr, &reply);
	reply_sent(w->p, &reply, false);
	if (!remove)
		return;
	request_begin(w->p, REQ_REMOVE);
	request_remove(w->p, &d.pod, &d.ctr);
	reply_sent(w->p, NULL, false);
}

/* Containers that end before or during an update need no further updates. */
static void test_ended_meanwhile(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	run_some(w, 4);
	move(w);
	stop_ctr(w, "a", false);
	stop_ctr(w, "b", true);
	const struct update *items = updates_next(w->p, &n);
	assert_int_equal(n, 2);
	assert_string_equal(items[0].ctr->id, "c-c");
	stop_ctr(w, "c", true);
	stop_ctr(w, "d", true);
	updates_acked(w->p);
	assert_int_equal(updates_waiting(w->p), 0);
	run_some(w, 1);
	move(w);
	assert_non_null(updates_next(w->p, &n));
	stop_ctr(w, "a", true);
	updates_failed(w->p, false, "no such container");
	assert_null(updates_next(w->p, &n));
	assert_int_equal(updates_waiting(w->p), 0);
}

/* Checks that a decision that changes during the update is sent again. */
static void test_changed_meanwhile(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0", .sync = "cpus 1"});
	move(w);
	assert_non_null(updates_next(w->p, &n));
	box_run(w, &(struct box){.name = "b", .alloc = "cpus 9", .start = "on c; cpus 2"});
	updates_acked(w->p);
	assert_string_equal(box_acked(w, "a"), "1");
	const struct update *items = updates_next(w->p, &n);
	assert_int_equal(n, 1);
	assert_string_equal(items[0].values.cpus->text, "2");
	updates_acked(w->p);
}

static bool next_is_there(struct world *w, void *arg)
{
	return updates_next(w->p, arg) != NULL;
}

/* Checks a failing batch whose container the runtime does not name: halves of the batch find the
 * container, whose updates wait longer and longer. */
static void test_failures(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	unsigned acked = 0, failed = 0;
	run_some(w, 3);
	move(w);
	assert_non_null(updates_next(w->p, &n));
	updates_failed(w->p, false, "one of them is bad");
	assert_int_equal(updates_waiting(w->p), 3);
	assert_false(world_told(w, "one of them is bad"));
	while (acked < 2) {
		assert_non_null(updates_next(w->p, &n));
		bool bad = strcmp(w->p->requests.updates.batch.items[0].ctr->id, "c-b") == 0;
		assert_true(n <= 2);
		if (bad)
			updates_failed(w->p, false, "it is bad");
		else
			updates_acked(w->p);
		acked += bad ? 0 : n;
		failed += bad && n == 1;
	}
	assert_int_equal(failed, 1);
	assert_true(world_told(w, "default/b/c: it is bad"));
	assert_int_equal(box_ctr(w, "b")->update.backoff.ms, 500);
	world_until(w, next_is_there, &n);
	updates_failed(w->p, false, "it is bad");
	assert_int_equal(box_ctr(w, "b")->update.backoff.ms, 1000);
	assert_null(updates_next(w->p, &n));
	assert_true(loop_timer_armed(w->p->requests.updates.retry));
	world_until(w, next_is_there, &n);
	updates_acked(w->p);
	assert_int_equal(box_ctr(w, "b")->update.backoff.ms, 0);
	assert_string_equal(box_acked(w, "b"), "9");
	assert_true(pipeline_stats(w->p)->updates_failed >= 5);
}

static void test_longest_backoff(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	run_some(w, 1);
	move(w);
	for (unsigned i = 0; i < 10; i++) {
		box_ctr(w, "a")->update.from_ms = 0;
		assert_non_null(updates_next(w->p, &n));
		updates_failed(w->p, false, "never");
	}
	assert_int_equal(box_ctr(w, "a")->update.backoff.ms, 30000);
}

static void test_connection_lost(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	run_some(w, 2);
	move(w);
	assert_non_null(updates_next(w->p, &n));
	updates_failed(w->p, true, "gone");
	assert_int_equal(updates_waiting(w->p), 2);
	assert_non_null(updates_next(w->p, &n));
	assert_int_equal(n, 2);
	updates_acked(w->p);
}

static void test_many(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	for (unsigned i = 0; i < 200; i++) {
		char name[16];
		(void)snprintf(name, sizeof name, "n%u", i);
		box_run(w, &(struct box){.name = name, .alloc = "cpus 0", .sync = "cpus 1"});
	}
	move(w);
	assert_non_null(updates_next(w->p, &n));
	assert_int_equal(n, 200);
	updates_acked(w->p);
	/* a reply with as many */
	struct box boxes[200];
	char names[200][16];
	for (unsigned i = 0; i < 200; i++) {
		(void)snprintf(names[i], sizeof names[i], "n%u", i);
		boxes[i] =
			(struct box){.name = names[i], .state = RP_STATE_RUNNING, .res.cpus = "5"};
	}
	assert_int_equal(boxes_sync(w, boxes, 200), 200);
}

/* Updates that do not fit into the reply are sent after it, in the same order. */
static void test_deferred_from_a_reply(void **state)
{
	struct world *w = *state;
	struct reply reply;
	uint32_t n = 0;
	run_some(w, 3);
	const struct box boxes[] = {
		{.name = "a", .state = RP_STATE_RUNNING, .res.cpus = "5"},
		{.name = "b", .state = RP_STATE_RUNNING, .res.cpus = "5"},
		{.name = "c", .state = RP_STATE_RUNNING, .res.cpus = "5"},
	};
	boxes_begin_sync(w, boxes, 3);
	sync_end(w->p, &reply);
	assert_int_equal(reply.n_updates, 3);
	const char *first = reply.updates[0].ctr->id, *second = reply.updates[1].ctr->id;
	reply_defer_updates(w->p, &reply, 1);
	assert_int_equal(reply.n_updates, 1);
	reply_sent(w->p, &reply, false);
	const struct update *items = updates_next(w->p, &n);
	assert_int_equal(n, 2);
	assert_string_not_equal(items[0].ctr->id, first);
	assert_string_equal(items[0].ctr->id, second);
	updates_acked(w->p);
	assert_null(updates_next(w->p, &n));
}

/* ---- the second look ------------------------------------------------------------------------- */

static bool verified(struct world *w, void *arg)
{
	return !w->p->verify.n && !w->p->verify.running && !loop_timer_armed(w->p->verify.timer);
}

static void look(struct world *w, const char *name)
{
	box_ctr(w, name)->verify.from_ms = 0;
	verify_later(w->p, box_ctr(w, name));
	verify_later(w->p, box_ctr(w, name)); /* once is enough */
	assert_int_equal(w->p->verify.n, 1);
	assert_int_equal(loop_timer_arm(w->p->verify.timer, 1), 0);
	world_until(w, verified, NULL);
}

static void ack_all(struct world *w)
{
	uint32_t n = 0;
	while (updates_next(w->p, &n))
		updates_acked(w->p);
}

static void test_verify(void **state)
{
	struct world *w = *state;
	w->p->verify.delay_ms = 0;
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3", .cgroups_path = "/pods/a"});
	/* An unreadable cgroup file is no difference. */
	look(w, "a");
	assert_int_equal(updates_waiting(w->p), 0);
	tree_put(&w->tree, "sys/fs/cgroup/cgroup.controllers", "cpuset\n");
	tree_put(&w->tree, "sys/fs/cgroup/pods/a/cpuset.cpus", "0-3\n");
	look(w, "a");
	assert_int_equal(updates_waiting(w->p), 0);
	assert_int_equal(box_ctr(w, "a")->verify.tries, 0);
	tree_put(&w->tree, "sys/fs/cgroup/pods/a/cpuset.cpus", "0-15\n");
	look(w, "a");
	assert_int_equal(updates_waiting(w->p), 1);
	assert_string_equal(box_acked(w, "a"), "0-15");
	uint32_t n = 0;
	const struct update *items = updates_next(w->p, &n);
	assert_string_equal(items[0].values.cpus->text, "0-3");
	updates_acked(w->p);
	assert_true(world_told(
		w, "default/a/c: had CPUs 0-15 instead of 0-3: restored; possibly changed by "
		   "a program that set all CPUs"));
	tree_put(&w->tree, "sys/fs/cgroup/pods/a/cpuset.cpus", "0-3\n");
	look(w, "a");
	assert_int_equal(updates_waiting(w->p), 0);
}

static void test_verify_v1(void **state)
{
	struct world *w = *state;
	w->p->verify.delay_ms = 0;
	box_run(w, &(struct box){.name = "a",
				 .alloc = "cpus 0-3",
				 .cgroups_path = "pods-x.slice:cri:1234"});
	tree_put(&w->tree,
		 "sys/fs/cgroup/cpuset/pods.slice/pods-x.slice/cri-1234.scope/cpuset.cpus", "2\n");
	look(w, "a");
	assert_string_equal(box_acked(w, "a"), "2");
	ack_all(w);
}

static bool is_verifying(struct world *w, void *arg)
{
	return w->p->verify.running || (!w->p->verify.n && !loop_timer_armed(w->p->verify.timer));
}

static void test_verify_those_that_ended(void **state)
{
	struct world *w = *state;
	w->p->verify.delay_ms = 0;
	tree_put(&w->tree, "sys/fs/cgroup/cgroup.controllers", "cpuset\n");
	tree_put(&w->tree, "sys/fs/cgroup/pods/a/cpuset.cpus", "0-15\n");
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3", .cgroups_path = "/pods/a"});
	box_run(w, &(struct box){.name = "b", .alloc = "cpus 0-3", .cgroups_path = "/pods/a"});
	verify_later(w->p, box_ctr(w, "a"));
	verify_later(w->p, box_ctr(w, "b"));
	stop_ctr(w, "a", true);
	stop_ctr(w, "b", false);
	assert_int_equal(loop_timer_arm(w->p->verify.timer, 1), 0);
	world_until(w, verified, NULL);
	assert_int_equal(updates_waiting(w->p), 0);
	/* under way when the pipeline ends */
	box_run(w, &(struct box){.name = "d", .alloc = "cpus 0-3", .cgroups_path = "/pods/a"});
	verify_later(w->p, box_ctr(w, "d"));
	assert_int_equal(loop_timer_arm(w->p->verify.timer, 1), 0);
	world_until(w, is_verifying, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(test_batch),
		world_test(test_losers_first),
		world_test(test_patience),
		world_test(test_every_field),
		world_test(test_ended_meanwhile),
		world_test(test_changed_meanwhile),
		world_test(test_failures),
		world_test(test_longest_backoff),
		world_test(test_connection_lost),
		world_test(test_many),
		world_test(test_deferred_from_a_reply),
		world_test(test_verify),
		world_test(test_verify_v1),
		world_test(test_verify_those_that_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
