/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the runtime: what is decided, told, kept, and what an error leaves behind:
 * nothing. */
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "test/unit/t_world.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/request/sync.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#include <signal.h>
#include <sys/resource.h>

/* ---- creation -------------------------------------------------------------------------------- */

static void test_create(void **state)
{
	struct world *w = *state;
	struct reply reply;
	assert_int_equal(
		box_begin(w,
			  &(struct box){
				  .name = "a",
				  .alloc = "cpus 0-3; mems 0; int 1 512; pair 200 KEY some value"},
			  &reply),
		0);
	assert_non_null(reply.created);
	assert_int_equal(reply.created_fields, DIFF_CPUS | DIFF_MEMS | DIFF_SHARES);
	assert_int_equal(reply.n_updates, 0);
	assert_int_equal(reply.extras->n, 1);
	assert_string_equal(reply.extras->list[0].key, "KEY");
	assert_string_equal(reply.extras->list[0].text, "some value");
	assert_string_equal(box_acked(w, "a"), "-");
	reply_sent(w->p, &reply, false);
	assert_string_equal(box_cpus(w, "a"), "0-3");
	assert_string_equal(box_acked(w, "a"), "0-3");
	assert_int_equal(box_ctr(w, "a")->cur.state, RP_STATE_CREATED);
	assert_int_equal(pipeline_stats(w->p)->requests[REQ_CREATE].n, 1);
	assert_true(world_told(w, "default/a/c: CPUs 0-3, memory nodes 0"));
	assert_int_equal(updates_waiting(w->p), 0);
}

static void test_create_without_decision(void **state)
{
	struct world *w = *state;
	struct reply reply;
	assert_int_equal(box_begin(w, &(struct box){.name = "a"}, &reply), 0);
	assert_int_equal(reply.created_fields, 0);
	reply_sent(w->p, &reply, false);
	assert_string_equal(box_cpus(w, "a"), "-");
	assert_true(world_told(w, "default/a/c: CPUs not pinned, memory nodes not pinned"));
}

static void refused(struct world *w, const struct box *b, const char *part)
{
	uint64_t failed = pipeline_stats(w->p)->requests[REQ_CREATE].failed;
	unsigned n = cache_n_ctrs(pipeline_cache(w->p));
	assert_true(box_create(w, b) < 0);
	if (!strstr(w->err.text, part))
		fail_msg("'%s' does not tell '%s'", w->err.text, part);
	assert_int_equal(pipeline_stats(w->p)->requests[REQ_CREATE].failed, failed + 1);
	assert_int_equal(cache_n_ctrs(pipeline_cache(w->p)), n);
	assert_int_equal(cache_running_txn(pipeline_cache(w->p)), 0);
}

static void test_create_refused(void **state)
{
	struct world *w = *state;
	box_run(w, &(struct box){.name = "old", .alloc = "cpus 0-15"});
	refused(w, &(struct box){.name = "a", .alloc = "on c; cpus 5; fail 28 no room at all"},
		"container default/a/c: no room at all");
	assert_int_equal(w->err.code, -RP_ENOSPC);
	assert_string_equal(box_cpus(w, "old"), "0-15");
	refused(w, &(struct box){.name = "b", .alloc = "quiet 28"}, "without an error text");
	refused(w, &(struct box){.name = "d", .alloc = "what is this"}, "no such statement");
	assert_int_equal(pipeline_stats(w->p)->policy_errors, 3);
	assert_true(world_told(w, "no room at all"));
}

static void test_broken_invariants(void **state)
{
	struct world *w = *state;
	box_run(w, &(struct box){.name = "old", .alloc = "cpus 0-15"});
	refused(w, &(struct box){.name = "a", .alloc = "cpus 16-17"}, "not online");
	refused(w, &(struct box){.name = "b", .alloc = "mems 9"}, "no memory");
	refused(w, &(struct box){.name = "d", .alloc = "cpus "}, "without any CPU");
	refused(w, &(struct box){.name = "e", .alloc = "cpus 3; excl 3"},
		"on which other containers run");
	assert_int_equal(pipeline_stats(w->p)->invariant_breaks, 4);
	assert_int_equal(pipeline_stats(w->p)->policy_errors, 0);
	assert_int_equal(pipeline_stats(w->p)->resyncs, 0);
	assert_string_equal(box_cpus(w, "old"), "0-15");
}

static void test_others_in_reply(void **state)
{
	struct world *w = *state;
	struct reply reply;
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	struct box b = {.name = "b", .alloc = "cpus 4-15"};
	box_run(w, &b);
	/* names are those of containers, all "c": the first one is a's */
	assert_int_equal(
		box_begin(w, &(struct box){.name = "n", .alloc = "cpus 0; excl 0; on c; cpus 1-3"},
			  &reply),
		0);
	assert_int_equal(reply.n_updates, 1);
	assert_ptr_equal(reply.updates[0].ctr, box_ctr(w, "a"));
	assert_int_equal(reply.updates[0].fields, DIFF_CPUS);
	reply_sent(w->p, &reply, false);
	assert_string_equal(box_acked(w, "a"), "1-3");
	assert_int_equal(pipeline_stats(w->p)->updates_in_replies, 1);
	/* Other containers cannot get these CPUs. */
	refused(w, &(struct box){.name = "m", .alloc = "cpus 0-1"},
		"is exclusive to container default/n/c");
}

/* Checks that updates that remove CPUs come before updates that add CPUs. */
static void test_losers_first(void **state)
{
	struct world *w = *state;
	struct reply reply;
	const struct box boxes[] = {
		{.name = "a", .alloc = "cpus 0-1", .sync = "cpus 0-7", .state = RP_STATE_RUNNING},
		{.name = "b", .alloc = "cpus 2-9", .sync = "cpus 8-9", .state = RP_STATE_RUNNING},
		{.name = "d", .alloc = "cpus 10", .sync = "cpus 10-11", .state = RP_STATE_RUNNING},
		{.name = "e", .alloc = "cpus 12-13", .sync = "cpus 14", .state = RP_STATE_RUNNING}};
	for (unsigned i = 0; i < 4; i++)
		box_run(w, &boxes[i]);
	boxes_begin_sync(w, boxes, 4);
	sync_end(w->p, &reply);
	assert_int_equal(reply.n_updates, 4);
	assert_ptr_equal(reply.updates[0].ctr, box_ctr(w, "b"));
	assert_ptr_equal(reply.updates[1].ctr, box_ctr(w, "e"));
	assert_ptr_equal(reply.updates[2].ctr, box_ctr(w, "a"));
	assert_ptr_equal(reply.updates[3].ctr, box_ctr(w, "d"));
	reply_sent(w->p, &reply, false);
}

static void test_unmanaged(void **state)
{
	struct world *w = world_new(PUPPET "onPolicyError: unmanaged\n");
	assert_int_equal(
		box_create(w, &(struct box){.name = "a", .alloc = "cpus 1; fail 28 no room"}), 0);
	assert_string_equal(box_cpus(w, "a"), "0-15"); /* every CPU, as none is exclusive */
	const struct ctr *ctr = box_ctr(w, "a");
	assert_string_equal(ctr->cur.degraded->data, "no room");
	assert_int_equal(ctr->cur.state, RP_STATE_CREATED);
	assert_int_equal(pipeline_stats(w->p)->unmanaged, 1);
	assert_true(world_told(w, "default/a/c runs unmanaged: no room"));
	struct pipeline_status status;
	pipeline_status(w->p, &status);
	assert_int_equal(status.n_degraded, 1);
	assert_true(status.degraded);
	world_free(w);
}

static void test_replaced(void **state)
{
	struct world *w = *state;
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3; excl 0-3"});
	const struct ctr *old = box_ctr(w, "a");
	assert_int_equal(box_create(w, &(struct box){.name = "a",
						     .id = "second",
						     .alloc = "cpus 0-3; excl 0-3"}),
			 0);
	assert_int_equal(old->cur.state, RP_STATE_EXITED);
	assert_string_equal(box_ctr(w, "a")->id, "second");
	/* The policy refuses to release the container. */
	box_run(w, &(struct box){.name = "b", .alloc = "cpus 4", .release = "fail 16 stays"});
	assert_int_equal(box_create(w, &(struct box){.name = "b", .id = "third"}), -RP_EBUSY);
	assert_string_equal(w->err.text, "container default/b/c: stays");
	assert_string_equal(box_ctr(w, "b")->id, "c-b");
	assert_null(cache_ctr(pipeline_cache(w->p), "third"));
}

static void test_bad_descriptions(void **state)
{
	struct world *w = *state;
	struct box_desc d;
	struct reply reply;
	box_describe(&(struct box){.name = "a", .id = ""}, &d);
	request_begin(w->p, REQ_CREATE);
	assert_int_equal(request_create(w->p, &d.pod, &d.ctr, &reply, &w->err), -EINVAL);
	reply_sent(w->p, NULL, true);
	box_describe(&(struct box){.name = "b", .pod_id = ""}, &d);
	request_begin(w->p, REQ_CREATE);
	assert_int_equal(request_create(w->p, &d.pod, &d.ctr, &reply, &w->err), -EINVAL);
	reply_sent(w->p, NULL, true);
	request_begin(w->p, REQ_RUN_POD);
	assert_int_equal(request_run_pod(w->p, &d.pod, &w->err), -EINVAL);
	reply_sent(w->p, NULL, true);
	char longest[3 * CACHE_ID_MAX];
	memset(longest, 'x', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	box_describe(&(struct box){.name = "a"}, &d);
	d.ctr.name = longest;
	request_begin(w->p, REQ_CREATE);
	assert_int_equal(request_create(w->p, &d.pod, &d.ctr, &reply, &w->err), -EINVAL);
	reply_sent(w->p, NULL, true);
	assert_int_equal(cache_n_ctrs(pipeline_cache(w->p)), 0);
}

static void test_dropped_reply(void **state)
{
	struct world *w = *state;
	struct reply reply;
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	assert_int_equal(
		box_begin(w, &(struct box){.name = "n", .alloc = "cpus 0; on c; cpus 1-3"}, &reply),
		0);
	assert_int_equal(reply.n_updates, 1);
	reply_dropped(w->p, &reply);
	assert_null(box_ctr(w, "n")); /* the runtime has not made it with our word */
	assert_string_equal(box_acked(w, "a"), "0-3");
	assert_string_equal(box_cpus(w, "a"), "1-3");
	assert_true(updates_waiting(w->p) >= 1);
	assert_true(w->n_ready >= 1);
	assert_int_equal(cache_running_txn(pipeline_cache(w->p)), 0);
}

/* ---- the rest of a life ---------------------------------------------------------------------- */

static void test_start(void **state)
{
	struct world *w = *state;
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3", .start = "cpus 0-1"});
	assert_string_equal(box_cpus(w, "a"), "0-1");
	assert_int_equal(updates_waiting(w->p), 1);
	box_run(w,
		&(struct box){.name = "b", .alloc = "cpus 0-3", .start = "fail 22 not like this"});
	assert_string_equal(box_cpus(w, "b"), "0-3");
	assert_int_equal(updates_waiting(w->p), 1);
}

static void note(struct world *w, const struct box *b, uint32_t pid)
{
	struct box_desc d;
	box_describe(b, &d);
	d.ctr.pid = pid;
	request_begin(w->p, REQ_POST_START);
	request_note(w->p, &d.pod, &d.ctr);
	reply_sent(w->p, NULL, false);
}

static void test_notes(void **state)
{
	struct world *w = *state;
	assert_int_equal(box_create(w, &(struct box){.name = "a", .alloc = "cpus 0-3"}), 0);
	note(w, &(struct box){.name = "a", .state = RP_STATE_RUNNING, .created_ns = 77}, 4711);
	const struct ctr *ctr = box_ctr(w, "a");
	assert_int_equal(ctr->cur.state, RP_STATE_RUNNING);
	assert_int_equal(ctr->pid, 4711);
	assert_int_equal(ctr->created_ns, 77);
	note(w, &(struct box){.name = "a", .state = RP_STATE_PAUSED}, 0);
	assert_int_equal(ctr->cur.state, RP_STATE_PAUSED);
	assert_int_equal(ctr->pid, 4711);
	note(w, &(struct box){.name = "a", .state = RP_STATE_EXITED}, 0);
	note(w, &(struct box){.name = "a", .state = RP_STATE_CREATING}, 0);
	assert_int_equal(ctr->cur.state, RP_STATE_PAUSED);
	note(w, &(struct box){.name = "nobody", .state = RP_STATE_RUNNING}, 0);
	assert_int_equal(cache_n_ctrs(pipeline_cache(w->p)), 1);
}

static void test_unknown_is_adopted(void **state)
{
	struct world *w = *state;
	box_start(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	assert_string_equal(box_cpus(w, "a"), "0-3");
	assert_int_equal(box_ctr(w, "a")->cur.state, RP_STATE_RUNNING);
	assert_int_equal(updates_waiting(w->p), 1);
	assert_int_equal(pipeline_stats(w->p)->adopted, 1);
	box_start(w, &(struct box){
			     .name = "b", .alloc = "fail 28 no room", .state = RP_STATE_RUNNING});
	assert_int_equal(box_ctr(w, "b")->cur.state, RP_STATE_RUNNING);
	assert_true(world_told(w, "default/b/c: no room"));
	/* A container without a name or an id cannot be tracked. */
	box_start(w, &(struct box){.name = "", .pod_id = "p", .id = "x"});
	assert_null(cache_ctr(pipeline_cache(w->p), "x"));
	box_start(w, &(struct box){.name = "z", .id = ""});
	assert_int_equal(cache_n_ctrs(pipeline_cache(w->p)), 2);
}

static int update(struct world *w, const struct box *b, const struct res_desc *res,
		  struct reply *ret)
{
	struct box_desc d;
	struct reply mine, *reply = ret ? ret : &mine;
	w->err = (struct err)ERR_INIT;
	box_describe(b, &d);
	request_begin(w->p, REQ_UPDATE);
	int r = request_update(w->p, &d.pod, &d.ctr, res, reply, &w->err);
	if (!ret)
		reply_sent(w->p, r ? NULL : reply, r != 0);
	return r;
}

#define SHARES(n) (&(struct res_desc){.amounts = {n, RP_NOT_SET, RP_NOT_SET, RP_NOT_SET}})

static void test_resize(void **state)
{
	struct world *w = *state;
	struct reply reply;
	struct box b = {.name = "a", .alloc = "cpus 0-3", .update = "cpus 0-7"};
	box_run(w, &b);
	const struct ctr *ctr = box_ctr(w, "a");
	assert_int_equal(update(w, &b, SHARES(2048), &reply), 0);
	assert_int_equal(ctr->cur.needs.cpu_request, 2000);
	assert_int_equal(reply.n_updates, 1);
	assert_ptr_equal(reply.updates[0].ctr, ctr);
	assert_int_equal(reply.updates[0].fields, DIFF_CPUS);
	reply_sent(w->p, &reply, false);
	assert_string_equal(box_acked(w, "a"), "0-7");
	assert_int_equal(ctr->acked.shares, 2048);
	/* An unchanged request does not reach the policy. */
	assert_int_equal(update(w, &b, SHARES(2048), &reply), 0);
	assert_int_equal(reply.n_updates, 0);
	reply_sent(w->p, &reply, false);
	/* Runtimes send 0 for "unchanged". */
	assert_int_equal(update(w, &b, SHARES(0), NULL), 0);
	assert_int_equal(ctr->cur.needs.cpu_request, 2000);
}

static void test_resize_refused(void **state)
{
	struct world *w = *state;
	struct box b = {.name = "a", .alloc = "cpus 0-3", .update = "cpus 0-7; fail 28 too much"};
	box_run(w, &b);
	const struct ctr *ctr = box_ctr(w, "a");
	const struct needs before = ctr->cur.needs;
	assert_int_equal(update(w, &b, SHARES(4096), NULL), -RP_ENOSPC);
	assert_string_equal(w->err.text, "container default/a/c: too much");
	assert_memory_equal(&ctr->cur.needs, &before, sizeof before);
	assert_memory_equal(&ctr->wanted, &before, sizeof before);
	assert_int_equal(ctr->requested.shares, RP_NOT_SET);
	assert_string_equal(box_cpus(w, "a"), "0-3");
	assert_true(world_told(w, "resize of container default/a/c: too much"));
}

static void test_update_of_others(void **state)
{
	struct world *w = *state;
	struct reply reply;
	/* not known: adopted, placed, then resized */
	struct box b = {
		.name = "a", .alloc = "cpus 0-3", .update = "cpus 4-5", .state = RP_STATE_RUNNING};
	assert_int_equal(update(w, &b, SHARES(1024), &reply), 0);
	assert_string_equal(box_cpus(w, "a"), "4-5");
	reply_sent(w->p, &reply, false);
	/* not known, and cannot be */
	assert_int_equal(
		update(w, &(struct box){.name = "", .pod_id = "x", .id = "y"}, SHARES(1024), NULL),
		0);
	/* the kubelet's own CPU manager */
	assert_int_equal(
		update(w, &b,
		       &(struct res_desc){.amounts = CPU_AMOUNTS_NONE, .cpus = "0-1", .mems = "0"},
		       &reply),
		0);
	assert_int_equal(reply.n_updates, 1);
	assert_true(w->p->requests.warned_kubelet);
	reply_sent(w->p, &reply, false);
	assert_string_equal(box_acked(w, "a"), "4-5");
}

static unsigned stop(struct world *w, const char *name)
{
	struct box_desc d;
	struct reply reply;
	box_describe(&(struct box){.name = name}, &d);
	request_begin(w->p, REQ_STOP);
	request_stop(w->p, &d.pod, &d.ctr, &reply);
	unsigned n = reply.n_updates;
	reply_sent(w->p, &reply, false);
	return n;
}

static void test_stop(void **state)
{
	struct world *w = *state;
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	box_run(w, &(struct box){.name = "b",
				 .alloc = "cpus 4-7; excl 4-7",
				 .release = "on c; cpus 0-7"});
	struct ctr *b = box_ctr(w, "b");
	assert_int_equal(stop(w, "b"), 1);
	assert_int_equal(b->cur.state, RP_STATE_EXITED);
	assert_null(b->cur.exclusive);
	assert_string_equal(box_acked(w, "a"), "0-7");
	assert_int_equal(stop(w, "b"), 0);
	assert_int_equal(stop(w, "nobody"), 0);
	assert_true(world_told(w, "default/b/c"));
}

/* Checks that a container is released even if its policy refuses. */
static void test_release_by_force(void **state)
{
	struct world *w = world_new(PUPPET "puppet: {resync: 1}\n");
	log_set_level(LOG_ERROR);
	box_run(w, &(struct box){
			   .name = "a", .alloc = "cpus 0-3; excl 0-3", .release = "fail 16 mine"});
	assert_int_equal(stop(w, "a"), 0);
	assert_int_equal(box_ctr(w, "a")->cur.state, RP_STATE_EXITED);
	assert_null(box_ctr(w, "a")->cur.exclusive);
	assert_int_equal(pipeline_stats(w->p)->resyncs, 1);
	struct box c = {.name = "c", .alloc = "cpus 4", .update = "fail 28 no", .sync = "asked"};
	box_run(w, &c); /* a refused resize: the policy sees the former values again */
	assert_int_equal(update(w, &c, SHARES(4096), NULL), -RP_ENOSPC);
	assert_int_equal(box_ctr(w, "c")->cur.shares, RP_NOT_SET);
	/* The next sync() of the policy fails as well. */
	box_run(w, &(struct box){.name = "b",
				 .alloc = "cpus 0-3",
				 .release = "fail 16 mine",
				 .sync = "fail 22 no"});
	box_run(w, &(struct box){.name = "d", .alloc = "cpus 5", .sync = "fail 22 no"});
	assert_int_equal(stop(w, "b"), 0);
	assert_int_equal(box_ctr(w, "b")->cur.state, RP_STATE_EXITED);
	struct pipeline_status status;
	pipeline_status(w->p, &status);
	assert_true(status.degraded);
	assert_true(w->p->requests.sync_failed);
	world_free(w);
}

static void test_remove(void **state)
{
	struct world *w = *state;
	struct box_desc d;
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	box_run(w, &(struct box){.name = "b", .alloc = "cpus 4-7", .release = "on c; cpus 0-7"});
	box_describe(&(struct box){.name = "b"}, &d);
	request_begin(w->p, REQ_REMOVE);
	request_remove(w->p, &d.pod, &d.ctr);
	reply_sent(w->p, NULL, false);
	assert_null(box_ctr(w, "b"));
	assert_string_equal(box_cpus(w, "a"), "0-7");
	assert_int_equal(updates_waiting(w->p), 1);
	request_begin(w->p, REQ_REMOVE);
	request_remove(w->p, &d.pod, &d.ctr);
	reply_sent(w->p, NULL, false);
	(void)stop(w, "a");
	box_describe(&(struct box){.name = "a"}, &d);
	request_begin(w->p, REQ_REMOVE);
	request_remove(w->p, &d.pod, &d.ctr);
	reply_sent(w->p, NULL, false);
	assert_int_equal(cache_n_ctrs(pipeline_cache(w->p)), 0);
}

static void test_pods(void **state)
{
	struct world *w = *state;
	struct box_desc a, b;
	box_describe(&(struct box){.name = "a"}, &a);
	box_describe(&(struct box){.name = "b"}, &b);
	request_begin(w->p, REQ_RUN_POD);
	assert_int_equal(request_run_pod(w->p, &a.pod, &w->err), 0);
	reply_sent(w->p, NULL, false);
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	box_run(w, &(struct box){.name = "b", .alloc = "cpus 4-7"});
	for (unsigned twice = 0; twice < 2; twice++) {
		request_begin(w->p, REQ_STOP_POD);
		request_stop_pod(w->p, &a.pod);
		reply_sent(w->p, NULL, false);
	}
	assert_int_equal(cache_ctr(pipeline_cache(w->p), "c-a")->cur.state, RP_STATE_EXITED);
	assert_true(world_told(w, "default/a/c: its pod ended"));
	for (unsigned twice = 0; twice < 2; twice++) {
		request_begin(w->p, REQ_REMOVE_POD);
		request_remove_pod(w->p, &b.pod);
		request_stop_pod(w->p, &b.pod);
		reply_sent(w->p, NULL, false);
	}
	assert_null(cache_pod(pipeline_cache(w->p), "p-b"));
	assert_int_equal(cache_n_ctrs(pipeline_cache(w->p)), 1);
}

/* ---- Synchronize ----------------------------------------------------------------------------- */

static void test_sync(void **state)
{
	struct world *w = *state;
	struct box boxes[] = {
		{.name = "a", .alloc = "cpus 0-3", .state = RP_STATE_RUNNING},
		{.name = "b", .alloc = "cpus 4-7", .res = {.cpus = "4-7"}},
		{.name = "d", .sync = "degraded nowhere to go", .state = RP_STATE_CREATED},
		{.name = "gone", .alloc = "cpus 8"}};
	assert_int_equal(boxes_sync(w, boxes, 4), 2);
	assert_int_equal(w->n_synchronized, 1);
	assert_true(pipeline_runtime(w->p)->synchronized);
	assert_string_equal(box_cpus(w, "a"), "0-3");
	assert_string_equal(box_acked(w, "a"), "0-3");
	assert_int_equal(box_ctr(w, "b")->cur.state, RP_STATE_RUNNING);
	/* An unchanged list causes no updates, and containers that are not listed are dropped. */
	boxes[0].res.cpus = "0-3";
	assert_int_equal(boxes_sync(w, boxes, 3), 0);
	assert_null(box_ctr(w, "gone"));
	assert_null(cache_pod(pipeline_cache(w->p), "p-gone"));
	uint32_t n;
	assert_null(updates_next(w->p, &n));
	assert_int_equal(updates_waiting(w->p), 0);
	/* Another process has changed the CPUs of the container. */
	boxes[0].res.cpus = "0-15";
	assert_int_equal(boxes_sync(w, boxes, 3), 1);
	assert_string_equal(box_acked(w, "a"), "0-3");
	struct pipeline_status status;
	pipeline_status(w->p, &status);
	assert_int_equal(status.n_degraded, 1);
	assert_int_equal(status.n_ctrs, 3);
	assert_int_equal(status.n_pods, 3);
}

/* Checks that a container confirmed silently and one that was moved both get updates. */
static void test_sync_tells_those_not_touched(void **state)
{
	struct world *w = *state;
	struct box boxes[] = {
		{.name = "a",
		 .alloc = "cpus 0-3",
		 .sync = "note still good",
		 .state = RP_STATE_RUNNING},
		{.name = "b", .alloc = "cpus 4-7", .sync = "cpus 5", .state = RP_STATE_RUNNING}};
	box_run(w, &boxes[0]);
	box_run(w, &boxes[1]);
	boxes[0].res.cpus = "0-15";
	assert_int_equal(boxes_sync(w, boxes, 2), 1);
	assert_string_equal(box_acked(w, "b"), "5");
	uint32_t n = 0;
	const struct update *items = updates_next(w->p, &n);
	assert_non_null(items);
	assert_int_equal(n, 1);
	assert_string_equal(items[0].ctr->id, "c-a");
	assert_string_equal(items[0].values.cpus->text, "0-3");
	updates_acked(w->p);
	assert_string_equal(box_acked(w, "a"), "0-3");
	assert_int_equal(updates_waiting(w->p), 0);
}

static void test_sync_resized_meanwhile(void **state)
{
	struct world *w = *state;
	struct box b = {.name = "a", .alloc = "cpus 0-3", .state = RP_STATE_RUNNING};
	box_run(w, &b);
	b.res.shares = 3072;
	b.res.quota = 300000;
	b.res.period = 100000;
	(void)boxes_sync(w, &b, 1);
	assert_int_equal(box_ctr(w, "a")->cur.needs.cpu_request, 3000);
	/* A container whose pod annotation requested exact resources at its creation. */
	struct box c = {.name = "b",
			.alloc = "cpus 4-7",
			.state = RP_STATE_RUNNING,
			.res = {.shares = 1024},
			.extra_key = "noderesource.dev/resources",
			.extra_value = "{\"containers\": {\"c\": {\"requests\": {\"cpu\": "
				       "\"1\"}}}}"};
	box_run(w, &c);
	assert_true(box_ctr(w, "b")->flags & RP_CTR_EXACT_NEEDS);
	c.res.shares = 3072;
	(void)boxes_sync(w, &c, 1);
	assert_int_equal(box_ctr(w, "b")->cur.needs.cpu_request, 3000);
	assert_false(box_ctr(w, "b")->flags & RP_CTR_EXACT_NEEDS);
}

static void test_sync_names(void **state)
{
	struct world *w = *state;
	const struct box boxes[] = {
		{.name = "a",
		 .id = "late",
		 .pod_id = "p1",
		 .alloc = "cpus 0",
		 .created_ns = 9,
		 .state = RP_STATE_RUNNING},
		{.name = "a",
		 .id = "early",
		 .pod_id = "p1",
		 .alloc = "cpus 1",
		 .created_ns = 3,
		 .state = RP_STATE_RUNNING},
		{.name = "b", .id = "b1", .pod_id = "p2", .state = RP_STATE_RUNNING},
		{.name = "b", .id = "b2", .pod_id = "p2", .state = RP_STATE_CREATED},
		{.name = "d", .id = "d1", .pod_id = "p3", .state = RP_STATE_RUNNING},
		{.name = "d", .id = "d2", .pod_id = "p3", .state = RP_STATE_RUNNING},
	};
	(void)boxes_sync(w, boxes, 6);
	assert_string_equal(box_ctr(w, "a")->id, "late");
	assert_string_equal(box_ctr(w, "b")->id, "b2");
	assert_string_equal(box_ctr(w, "d")->id, "d2");
	assert_int_equal(cache_ctr(pipeline_cache(w->p), "early")->cur.state, RP_STATE_EXITED);
	assert_int_equal(cache_ctr(pipeline_cache(w->p), "b1")->cur.state, RP_STATE_EXITED);
	assert_int_equal(cache_ctr(pipeline_cache(w->p), "d1")->cur.state, RP_STATE_EXITED);
}

static void test_sync_refused(void **state)
{
	struct world *w = *state;
	struct box b = {.name = "a",
			.alloc = "cpus 0-3",
			.sync = "cpus 9; fail 22 lost track",
			.state = RP_STATE_RUNNING};
	box_run(w, &b);
	log_set_level(LOG_ERROR);
	assert_int_equal(boxes_sync(w, &b, 1), 0);
	assert_string_equal(box_cpus(w, "a"), "0-3");
	assert_true(world_told(w, "synchronisation: lost track"));
	assert_true(pipeline_runtime(w->p)->synchronized);
	struct pipeline_status status;
	pipeline_status(w->p, &status);
	assert_true(status.degraded);
}

static void test_sync_abandoned(void **state)
{
	struct world *w = *state;
	struct box boxes[] = {{.name = "a", .alloc = "cpus 0-3", .state = RP_STATE_RUNNING},
			      {.name = "b"}};
	box_run(w, &boxes[0]);
	box_run(w, &boxes[1]);
	boxes_begin_sync(w, boxes, 1);
	sync_abandon(w->p);
	reply_sent(w->p, NULL, true);
	assert_non_null(box_ctr(w, "b"));
	assert_false(pipeline_runtime(w->p)->synchronized);
}

static void test_sync_leaves_out(void **state)
{
	struct world *w = *state;
	struct box boxes[] = {{.name = "a", .pod_id = ""},
			      {.name = "b", .id = ""},
			      {.name = "d", .alloc = "cpus 0"}};
	(void)boxes_sync(w, boxes, 3);
	assert_int_equal(cache_n_ctrs(pipeline_cache(w->p)), 1);
	assert_int_equal(cache_n_pods(pipeline_cache(w->p)), 2);
}

/* ---- restarts -------------------------------------------------------------------------------- */

static void test_restart(void **state)
{
	struct world *w = *state;
	struct box b = {.name = "a",
			.alloc = "cpus 0-3; mems 1; private remembered",
			.state = RP_STATE_RUNNING};
	box_run(w, &b);
	world_stop(w);
	world_must_start(w);
	struct pipeline_status status;
	pipeline_status(w->p, &status);
	assert_string_equal(status.store_state, "restored");
	assert_string_equal(status.policy, "puppet");
	assert_string_equal(box_cpus(w, "a"), "0-3");
	assert_true(box_ctr(w, "a")->flags & RP_CTR_RESTORED);
	/* the runtime has what we told it */
	b.res.cpus = "0-3";
	b.res.mems = "1";
	assert_int_equal(boxes_sync(w, &b, 1), 0);
	assert_int_equal(updates_waiting(w->p), 0);
	/* another start that wants to know nothing of it */
	world_stop(w);
	struct pipeline_config config = world_config(w);
	config.reset_cache = true;
	assert_int_equal(pipeline_new(&config, &w->p, &w->err), 0);
	pipeline_status(w->p, &status);
	assert_string_equal(status.store_state, "reset");
	assert_int_equal(cache_n_ctrs(pipeline_cache(w->p)), 0);
}

static void test_second_instance(void **state)
{
	struct world *w = *state;
	struct pipeline *second;
	struct pipeline_config config = world_config(w);
	struct err err = ERR_INIT;
	assert_int_equal(pipeline_new(&config, &second, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another instance"));
}

static bool no_store_errors(struct world *w, void *arg)
{
	return !store_pending(pipeline_store(w->p));
}

/* Checks that an unusable state directory is reported and containers are still placed. */
static void test_no_state_directory(void **state)
{
	struct world *w = *state;
	struct pipeline_status status;
	struct box b = {.name = "a", .alloc = "cpus 0-3", .state = RP_STATE_RUNNING};
	world_configure(w, PUPPET);
	assert_int_equal(symlink("/tmp", w->state), 0);
	assert_int_equal(world_start(w), 0);
	assert_int_equal(box_create(w, &b), 0);
	assert_string_equal(box_cpus(w, "a"), "0-3");
	pipeline_status(w->p, &status);
	assert_true(status.degraded);
	assert_string_equal(status.store_state, "unusable");
}

/* Checks that a full disk causes a warning, and that lost changes are written later. */
static void test_full_disk(void **state)
{
	struct world *w = *state;
	struct rlimit had, tight = {64, RLIM_INFINITY};
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &had), 0);
	tight.rlim_max = had.rlim_max;
	(void)signal(SIGXFSZ, SIG_IGN);
	world_configure(w, PUPPET);
	struct box b = {.name = "a", .alloc = "cpus 0-3", .state = RP_STATE_RUNNING};
	world_must_start(w);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	int r = box_create(w, &b);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &had), 0);
	assert_int_equal(r, 0);
	assert_true(pipeline_stats(w->p)->store_errors > 0);
	assert_true(store_pending(pipeline_store(w->p)));
	world_until(w, no_store_errors, NULL);
	world_stop(w);
	world_must_start(w);
	assert_string_equal(box_cpus(w, "a"), "0-3");
}

/* ---- status and events ----------------------------------------------------------------------- */

static void count_event(void *arg)
{
	++*(unsigned *)arg;
}

static void test_events(void **state)
{
	struct world *w = *state;
	unsigned n = 0;
	uint64_t before = pipeline_last_event(w->p);
	pipeline_on_event(w->p, count_event, &n);
	assert_null(pipeline_event_after(w->p, before));
	for (unsigned i = 0; i < EVENTS_MAX + 10; i++)
		pipeline_event(w->p, EV_CONFIG, "number %u", i);
	assert_int_equal(n, EVENTS_MAX + 10);
	const struct event *e = pipeline_event_after(w->p, 0);
	assert_non_null(e);
	assert_int_equal(e->seq, before + 11);
	assert_string_equal(e->text, "number 10");
	e = pipeline_event_after(w->p, pipeline_last_event(w->p) - 1);
	assert_int_equal(e->seq, pipeline_last_event(w->p));
	assert_null(pipeline_event_after(w->p, pipeline_last_event(w->p)));
	/* a long one is cut between characters */
	char text[400];
	memset(text, 'x', sizeof text);
	memcpy(text + EVENT_TEXT_MAX - 2, "\xc3\xa4", 2);
	text[sizeof text - 1] = '\0';
	pipeline_event(w->p, EV_MODULE, "%s", text);
	e = pipeline_event_after(w->p, pipeline_last_event(w->p) - 1);
	assert_int_equal(strlen(e->text), EVENT_TEXT_MAX - 2);
	assert_string_equal(event_kind_name(EV_MODULE), "module");
	assert_string_equal(event_kind_name(N_EVENT_KINDS), "?");
	assert_string_equal(request_name(REQ_STOP), "StopContainer");
	assert_string_equal(request_name(N_REQUESTS), "?");
	pipeline_on_event(w->p, NULL, NULL);
}

static int count_instance(struct instance *i, void *arg)
{
	assert_non_null(instance_name(i));
	++*(unsigned *)arg;
	return 0;
}

static void test_getters(void **state)
{
	struct world *w = *state;
	unsigned n = 0;
	assert_non_null(pipeline_topo(w->p));
	assert_non_null(pipeline_loader(w->p));
	assert_non_null(pipeline_crumb(w->p));
	assert_non_null(pipeline_root(w->p));
	assert_non_null(pipeline_conf(w->p));
	assert_int_equal(pipeline_conf_generation(w->p), 1);
	assert_string_equal(instance_name(pipeline_policy(w->p)), "puppet");
	assert_int_equal(pipeline_each_instance(w->p, count_instance, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(w->n_configured, 1);
}

/* ---- time and the machine -------------------------------------------------------------------- */

static bool moved(struct world *w, void *arg)
{
	return strcmp(box_cpus(w, "a"), arg) == 0;
}

static void test_timer(void **state)
{
	struct world *w = world_new(PUPPET "puppet: {timer: 'on c; cpus 6-7'}\n");
	box_run(w,
		&(struct box){.name = "a", .alloc = "cpus 0-3; arm 1 20; arm 2 1000000; arm 2 0"});
	world_until(w, moved, (void *)(uintptr_t) "6-7");
	assert_int_equal(updates_waiting(w->p), 1);
	world_free(w);
}

static void test_failing_timer(void **state)
{
	struct world *w =
		world_new(PUPPET "puppet: {resync: 1, timer: 'on c; cpus 6-7; fail 22 no'}\n");
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3; arm 1 20", .sync = "cpus 1"});
	world_until(w, moved, (void *)(uintptr_t) "1");
	assert_true(pipeline_stats(w->p)->resyncs >= 1);
	assert_int_equal(updates_waiting(w->p), 1);
	assert_true(world_told(w, "default/a/c: CPUs 0-3 → 1"));
	world_free(w);
}

static bool machine_told(struct world *w, void *arg)
{
	return world_told(w, "went offline: 15");
}

static void test_machine_changes(void **state)
{
	struct world *w = world_new(PUPPET "puppet: {topology: 'on c; cpus 0-14'}\n");
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-15"});
	tree_put(&w->tree, CPU "/online", "0-14\n");
	tree_put(&w->tree, NODE "/node3/cpulist", "12-14\n");
	pipeline_reload(w->p, NULL, NULL);
	world_until(w, machine_told, NULL);
	world_until(w, moved, (void *)(uintptr_t) "0-14");
	assert_true(world_told(w, "default/a/c: CPUs 0-15 → 0-14"));
	world_free(w);
}

static void test_machine_changes_badly(void **state)
{
	struct world *w = world_new(PUPPET "puppet: {topology: 'fail 22 too few'}\n");
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	tree_put(&w->tree, CPU "/online", "0-14\n");
	tree_put(&w->tree, NODE "/node3/cpulist", "12-14\n");
	hotplug_trigger(w->p->hotplug);
	world_until(w, world_is_told, (void *)(uintptr_t) "changed machine: too few");
	/* The daemon stops normally after the policy has refused the new topology. */
	world_stop(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(test_create),
		world_test(test_create_without_decision),
		world_test(test_create_refused),
		world_test(test_broken_invariants),
		world_test(test_others_in_reply),
		world_test(test_losers_first),
		cmocka_unit_test(test_unmanaged),
		world_test(test_replaced),
		world_test(test_bad_descriptions),
		world_test(test_dropped_reply),
		world_test(test_start),
		world_test(test_notes),
		world_test(test_unknown_is_adopted),
		world_test(test_resize),
		world_test(test_resize_refused),
		world_test(test_update_of_others),
		world_test(test_stop),
		cmocka_unit_test(test_release_by_force),
		world_test(test_remove),
		world_test(test_pods),
		world_test(test_sync),
		world_test(test_sync_tells_those_not_touched),
		world_test(test_sync_resized_meanwhile),
		world_test(test_sync_names),
		world_test(test_sync_refused),
		world_test(test_sync_abandoned),
		world_test(test_sync_leaves_out),
		world_test(test_restart),
		world_test(test_second_instance),
		bare_test(test_full_disk),
		bare_test(test_no_state_directory),
		world_test(test_events),
		world_test(test_getters),
		cmocka_unit_test(test_timer),
		cmocka_unit_test(test_failing_timer),
		cmocka_unit_test(test_machine_changes),
		cmocka_unit_test(test_machine_changes_badly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
