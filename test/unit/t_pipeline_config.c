/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations: the first one, reloads, plans and switches of the policy; modules that refuse,
 * crash, hang or leave; safe mode. */
#include "test/unit/t_reload.h"
#include "core/lib/util/crc32c.h"
#include "core/nri-rpd/pipeline/controllers/controllers.h"
#include "core/nri-rpd/pipeline/reload/last_good.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' does not tell '%s'", text, part);
}

static struct pipeline_status status_of(struct world *w)
{
	struct pipeline_status status;
	pipeline_status(w->p, &status);
	return status;
}

static void is_refused(struct world *w, const char *conf, int code, const char *part)
{
	uint64_t generation = pipeline_conf_generation(w->p),
		 refused = pipeline_stats(w->p)->reloads_refused;
	struct answer a = reload(w, conf);
	says(a.text, part);
	assert_true(a.code < 0);
	if (code)
		assert_int_equal(a.code, code);
	assert_int_equal(pipeline_conf_generation(w->p), generation);
	assert_int_equal(pipeline_stats(w->p)->reloads_refused, refused + 1);
	struct pipeline_status status = status_of(w);
	assert_false(status.config_ok);
	says(status.config_error, part);
	assert_true(status.degraded);
	assert_string_equal(status.policy, "puppet");
}

static void test_reload(void **state)
{
	struct world *w = *state;
	box_run(w, &(struct box){
			   .name = "a", .alloc = "cpus 0-3; mems 0", .sync = "cpus 4-5; mems 0-1"});
	box_run(w, &(struct box){.name = "b", .alloc = "cpus 6"});
	struct answer a = reload(w, PUPPET "puppet: {sync: ''}\nlog: {level: debug}\ncache: {dir: "
					   "/elsewhere}\nfoo: {x: 1}\nstrict: false\n");
	assert_int_equal(a.code, 0);
	assert_string_equal(a.moves, "default/a/c: 0-3>4-5 0>0-1 \n");
	says(a.changes, "log.level");
	says(a.changes, "(after a restart)");
	says(a.warnings, "foo");
	assert_true(a.restart_needed);
	assert_string_equal(box_cpus(w, "a"), "4-5");
	assert_string_equal(box_acked(w, "a"), "0-3");
	assert_int_equal(updates_waiting(w->p), 1);
	assert_int_equal(pipeline_conf_generation(w->p), 2);
	assert_int_equal(pipeline_stats(w->p)->reloads, 1);
	assert_int_equal(pipeline_stats(w->p)->moved, 1);
	assert_int_equal(w->n_configured, 2);
	assert_true(world_told(w, "reloaded: policy puppet, 1 containers moved"));
	assert_true(status_of(w).config_ok);
}

static void test_reload_refused(void **state)
{
	struct world *w = *state;
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	is_refused(w, "policy: [\n", -EINVAL, "rp.conf");
	is_refused(w, "policy: nowhere\n", 0, "nowhere");
	is_refused(w, "policy: hand\n", -EINVAL, "not a policy");
	is_refused(w, PUPPET "puppet: {prepare: fail_at}\n", -EINVAL,
		   "rp.conf:2:10: puppet.prepare: does not please");
	is_refused(w, PUPPET "puppet: {prepare: 'fail 28 too small'}\n", -ENOSPC, "too small");
	is_refused(w, PUPPET "puppet: {sync: 'fail 22 cannot place'}\n", -EINVAL, "cannot place");
	is_refused(w, PUPPET "puppet: {sync: 'on c; cpus 77'}\n", -EINVAL, "not online");
	/* After all failures, a valid configuration is still accepted. */
	assert_int_equal(reload(w, PUPPET).code, 0);
	assert_true(status_of(w).config_ok);
}

static void test_reload_survives_modules(void **state)
{
	struct world *w = *state;
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	is_refused(w, PUPPET "puppet: {prepare: crash}\n", 0, "puppet");
	is_refused(w, PUPPET "puppet: {sync: exit}\n", 0, "exit");
	is_refused(w, PUPPET "puppet: {sync: hang}\n", 0, "puppet");
	assert_string_equal(box_cpus(w, "a"), "0-3");
	assert_int_equal(status_of(w).n_module_deaths, 0);
}

/* Checks that the policy keeps the previous configuration if the trial succeeds but the
 * activation fails. */
static void test_reload_fails_late(void **state)
{
	struct world *w = *state;
	char conf[512], told[256];
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	(void)snprintf(conf, sizeof conf, PUPPET "puppet: {prepare: 'once %s/first'}\n",
		       w->tree.dir);
	is_refused(w, conf, -RP_EBUSY, "not twice");
	/* While it still has the one that is refused, it is told that nothing came of it. */
	(void)snprintf(conf, sizeof conf,
		       PUPPET "puppet: {sync: 'on c; cpus 9; once %s/second', "
			      "rolledBack: 'once %s/told'}\n",
		       w->tree.dir, w->tree.dir);
	(void)snprintf(told, sizeof told, "%s/told", w->tree.dir);
	is_refused(w, conf, -RP_EBUSY, "not twice");
	assert_int_equal(access(told, F_OK), 0);
	assert_string_equal(box_cpus(w, "a"), "0-3");
	(void)snprintf(conf, sizeof conf, "policy: puppet2\npuppet2: {sync: 'once %s/third'}\n",
		       w->tree.dir);
	is_refused(w, conf, -RP_EBUSY, "not twice");
	assert_int_equal(box_create(w, &(struct box){.name = "b", .alloc = "cpus 8"}), 0);
}

static void test_switch(void **state)
{
	struct world *w = *state;
	box_run(w, &(struct box){.name = "a",
				 .alloc = "cpus 0-3; excl 0-3; private mine",
				 .sync = "note kept"});
	box_run(w, &(struct box){.name = "b", .alloc = "degraded not well", .sync = "note kept"});
	struct answer a = reload(w, "policy: none\n");
	assert_int_equal(a.code, 0);
	assert_int_equal(a.n_moves, 0);
	assert_string_equal(status_of(w).policy, "none");
	/* The policy none leaves container a its exclusive CPUs; the unpinned container b is kept
	 * off them. */
	const struct ctr *ctr = box_ctr(w, "a");
	assert_string_equal(box_cpus(w, "a"), "0-3");
	assert_string_equal(box_cpus(w, "b"), "4-15");
	assert_string_equal(ctr->cur.exclusive->text, "0-3");
	assert_string_equal(blob_text(ctr->cur.private_data), "mine");
	assert_null(box_ctr(w, "b")->cur.degraded);
	a = reload(w, PUPPET "resetOnSwitch: true\n");
	assert_string_equal(a.moves, "default/a/c: 0-3>0-15 > \ndefault/b/c: 4-15>0-15 > \n");
	assert_string_equal(box_cpus(w, "a"), "0-15");
	assert_string_equal(box_cpus(w, "b"), "0-15");
	assert_null(ctr->cur.exclusive);
}

/* Checks that the exclusive CPUs of container a become free when the new policy leaves it
 * unpinned. */
static void test_switch_leaves_unpinned(void **state)
{
	struct world *w = *state;
	box_run(w, &(struct box){.name = "a",
				 .alloc = "cpus 0-3; excl 0-3; private mine",
				 .sync = "note kept"});
	struct answer a = reload(w, "policy: puppet2\n");
	const struct ctr *ctr = box_ctr(w, "a");
	assert_int_equal(a.code, 0);
	assert_string_equal(status_of(w).policy, "puppet2");
	assert_string_equal(a.moves, "default/a/c: 0-3>0-15 > \n");
	assert_string_equal(box_cpus(w, "a"), "0-15");
	assert_null(ctr->cur.exclusive);
	assert_string_equal(blob_text(ctr->cur.private_data), "mine");
}

#define AT_ONCE 8u

static struct {
	unsigned n, order[AT_ONCE];
} in_order;

static void answered_in_order(const struct reload_result *res, void *arg)
{
	assert_int_equal(res->code, 0);
	in_order.order[in_order.n++] = *(unsigned *)arg;
}

static bool all_answered(struct world *w, void *arg)
{
	return in_order.n == AT_ONCE;
}

/* Checks that all callers that arrive during a trial share the next one, and get their answers
 * in order. */
static void test_many_reloads_at_once(void **state)
{
	struct world *w = *state;
	unsigned number[AT_ONCE];
	in_order.n = 0;
	world_configure(w, PUPPET "log: {level: debug}\n");
	for (unsigned i = 0; i < AT_ONCE; i++) {
		number[i] = i;
		pipeline_reload(w->p, answered_in_order, &number[i]);
	}
	world_until(w, all_answered, NULL);
	for (unsigned i = 0; i < AT_ONCE; i++)
		assert_int_equal(in_order.order[i], i);
	assert_int_equal(pipeline_stats(w->p)->reloads, 2);
}

static void test_reloads_at_once(void **state)
{
	struct world *w = *state;
	struct answer first = {0}, second = {0}, third = {0};
	world_configure(w, PUPPET "log: {level: debug}\n");
	pipeline_reload(w->p, answered, &first);
	pipeline_reload(w->p, answered, &second);
	pipeline_reload(w->p, NULL, NULL);
	pipeline_reload(w->p, answered, &third);
	world_until(w, is_answered, &first);
	world_until(w, is_answered, &second);
	world_until(w, is_answered, &third);
	assert_int_equal(first.code, 0);
	assert_int_equal(second.code, 0);
	assert_int_equal(third.code, 0);
	assert_int_equal(first.n + second.n + third.n, 3);
}

/* Checks that the configuration that was tried becomes active, even if the file is saved again
 * meanwhile. */
static void test_saved_while_trying(void **state)
{
	struct world *w = *state;
	struct answer a = {0};
	world_configure(w, PUPPET "rebalanceMoves: 3\n");
	pipeline_reload(w->p, answered, &a);
	world_configure(w, PUPPET "rebalanceMoves: 4\n");
	world_until(w, is_answered, &a);
	assert_int_equal(a.code, 0);
	assert_int_equal(conf_core(pipeline_conf(w->p))->rebalance_moves, 3);
	says(a.changes, "rebalanceMoves");
}

static void test_plan(void **state)
{
	struct world *w = *state;
	struct answer a = {0};
	char path[128];
	tree_path(&w->tree, "other.conf", path, sizeof path);
	tree_put(&w->tree, "other.conf", PUPPET "puppet: {sync: 'on c; cpus 7; degraded tight'}\n");
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	assert_int_equal(pipeline_plan(w->p, path, answered, &a, &w->err), 0);
	world_until(w, is_answered, &a);
	assert_int_equal(a.code, 0);
	assert_string_equal(a.moves, "default/a/c: 0-3>7 > tight\n");
	assert_string_equal(box_cpus(w, "a"), "0-3");
	assert_int_equal(pipeline_conf_generation(w->p), 1);
	assert_int_equal(pipeline_stats(w->p)->reloads, 0);
	a = (struct answer){0};
	tree_put(&w->tree, "other.conf", PUPPET "puppet: {prepare: crash}\n");
	assert_int_equal(pipeline_plan(w->p, path, answered, &a, &w->err), 0);
	world_until(w, is_answered, &a);
	assert_true(a.code < 0);
	says(a.text, "puppet");
	assert_true(status_of(w).config_ok);
}

/* Callers that wait for an answer get an error when the daemon stops. */
static void test_stop_while_trying(void **state)
{
	struct world *w = *state;
	struct answer a = {0}, b = {0}, c = {0};
	world_configure(w, PUPPET "puppet: {sync: hang}\n");
	pipeline_reload(w->p, answered, &a);
	pipeline_reload(w->p, answered, &b);
	assert_int_equal(pipeline_plan(w->p, w->conf, answered, &c, &w->err), 0);
	world_stop(w);
	assert_int_equal(a.n, 1);
	assert_int_equal(b.n, 1);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.code, -ESHUTDOWN);
	struct loop_timer *t = loop_timer_new(w->loop, world_check_again, w);
	assert_int_equal(loop_timer_arm(t, 50), 0);
	assert_int_equal(loop_run(w->loop), 0);
	loop_timer_free(t);
	assert_int_equal(a.n + b.n + c.n, 3);
}

/* Checks that an undo that is still reading when the daemon ends starts no reload. */
static void test_stop_while_undoing(void **state)
{
	struct world *w = *state;
	struct answer a = {0};
	assert_int_equal(reload(w, PUPPET).code, 0);
	assert_int_equal(reload(w, "policy: none\n").code, 0);
	assert_int_equal(pipeline_undo(w->p, false, answered, &a, &w->err), 0);
	world_stop(w);
	assert_int_equal(a.n, 1);
	assert_true(a.code < 0);
}

/* ---- the first one --------------------------------------------------------------------------- */

static void does_not_start(struct world *w, const char *conf, int code, const char *part)
{
	world_configure(w, conf);
	assert_int_equal(world_start(w), code);
	says(w->err.text, part);
}

static void test_first_is_wrong(void **state)
{
	struct world *w = *state;
	assert_true(world_start(w) < 0); /* there is none */
	does_not_start(w, "policy: {}\n", -EINVAL, "rp.conf");
	does_not_start(w, "policy: nowhere\n", -EINVAL, "nowhere");
	does_not_start(w, "policy: hand\n", -EINVAL, "not a policy");
	does_not_start(w, PUPPET "puppet: {prepare: fail_at}\n", -EINVAL, "does not please");
	does_not_start(w, PUPPET "controllers: [puppet]\n", -EINVAL, "not a controller");
}

static void in_safe_mode(struct world *w, const char *conf, const char *policy, const char *part)
{
	world_configure(w, conf);
	world_must_start(w);
	struct pipeline_status status = status_of(w);
	assert_true(status.safe_mode);
	assert_true(status.degraded);
	assert_string_equal(status.policy, policy);
	says(status.safe_mode_reason, part);
}

static void test_safe_mode(void **state)
{
	struct world *w = *state;
	in_safe_mode(w,
		     PUPPET "puppet: {prepare: crash}\nmetrics: {listen: '127.0.0.1:1'}\n"
			    "log: {level: debug}\n",
		     "none", "puppet");
	assert_string_equal(status_of(w).configured_policy, "puppet");
	/* The settings of the daemon itself are applied. */
	assert_string_equal(conf_core(pipeline_conf(w->p))->metrics.listen, "127.0.0.1:1");
	/* Safe mode tracks containers, and a valid configuration ends it. */
	assert_int_equal(box_create(w, &(struct box){.name = "a", .alloc = "cpus 0-3"}), 0);
	assert_string_equal(box_cpus(w, "a"), "-");
	struct answer a = reload(w, PUPPET "puppet: {prepare: crash}\n");
	assert_true(a.code < 0);
	assert_true(status_of(w).safe_mode);
	char conf[256];
	(void)snprintf(conf, sizeof conf, PUPPET "puppet: {prepare: 'once %s/x'}\n", w->tree.dir);
	a = reload(w, conf);
	assert_int_equal(a.code, -RP_EBUSY);
	assert_true(status_of(w).safe_mode);
	assert_string_equal(status_of(w).policy, "none");
	a = reload(w, PUPPET);
	assert_int_equal(a.code, 0);
	assert_false(status_of(w).safe_mode);
	assert_string_equal(status_of(w).policy, "puppet");
	assert_string_equal(box_cpus(w, "a"), "0-3");
}

static void test_last_known_good(void **state)
{
	struct world *w = *state;
	world_configure(w, PUPPET "puppet: {timer: 'on c; cpus 5'}\n");
	world_must_start(w);
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	world_stop(w);
	in_safe_mode(w, "policy: puppet2\npuppet2: {sync: exit}\n", "puppet", "exit");
	assert_string_equal(status_of(w).configured_policy, "puppet2");
	assert_string_equal(conf_text(conf_get(conf_root(pipeline_conf(w->p)), "puppet.timer"), ""),
			    "on c; cpus 5");
	assert_string_equal(box_cpus(w, "a"), "0-3");
}

static void die_in_module(struct world *w)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct reply reply;
		struct pipeline_config config = world_config(w);
		config.loop = loop_new();
		log_set_level(LOG_ERROR);
		(void)signal(SIGSEGV, SIG_DFL); /* cmocka's handler */
		if (pipeline_new(&config, &w->p, &w->err))
			_exit(9);
		(void)box_begin(w, &(struct box){.name = "x", .alloc = "crash"}, &reply);
		_exit(8);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		assert_int_not_equal(WEXITSTATUS(status), 9);
}

/* Checks that a module is disabled after three deaths inside it within ten minutes. */
static void test_quarantine(void **state)
{
	struct world *w = *state;
	world_configure(w, PUPPET);
	for (unsigned i = 0; i < 3; i++)
		die_in_module(w);
	in_safe_mode(w, PUPPET, "none", "puppet");
	assert_true(status_of(w).n_module_deaths >= 3);
	assert_true(world_told(w, "puppet"));
	assert_true(crumb_quarantined(pipeline_crumb(w->p), "puppet"));
	/* the operator gives it another chance */
	assert_int_equal(crumb_clear(pipeline_crumb(w->p), "puppet"), 0);
	assert_int_equal(reload(w, PUPPET).code, 0);
	assert_string_equal(status_of(w).policy, "puppet");
}

static void test_other_policy_after_restart(void **state)
{
	struct world *w = *state;
	world_configure(w, PUPPET);
	world_must_start(w);
	box_run(w, &(struct box){
			   .name = "a", .alloc = "cpus 0-3; excl 0-3", .sync = "note as it was"});
	world_stop(w);
	world_configure(w, "policy: none\n");
	world_must_start(w);
	assert_true(w->p->requests.other_policy);
	struct box b = {.name = "a", .state = RP_STATE_RUNNING, .res.cpus = "0-3"};
	assert_int_equal(boxes_sync(w, &b, 1), 0);
	assert_false(w->p->requests.other_policy);
	assert_string_equal(box_cpus(w, "a"), "0-3");
	assert_string_equal(box_ctr(w, "a")->cur.exclusive->text, "0-3");
}

/* ---- checking -------------------------------------------------------------------------------- */

static int check(struct world *w, const char *conf, char *ret, size_t size)
{
	struct buf report = BUF_INIT;
	struct pipeline_config config = world_config(w);
	config.state_dir = config.run_dir = NULL;
	w->err = (struct err)ERR_INIT;
	world_configure(w, conf);
	int r = pipeline_check(&config, &report, &w->err);
	(void)snprintf(ret, size, "%s", buf_text(&report));
	buf_fini(&report);
	return r;
}

static void test_check(void **state)
{
	struct world *w = *state;
	char report[2048];
	assert_int_equal(
		check(w, PUPPET "strict: false\nnonsense: {x: 1}\n", report, sizeof report), 0);
	says(report, "nonsense");
	assert_int_equal(check(w, "policy: 1: 2\n", report, sizeof report), -EINVAL);
	says(report, "rp.conf");
	assert_int_equal(check(w, PUPPET "puppet: {prepare: fail_at}\n", report, sizeof report),
			 -EINVAL);
	says(w->err.text, "does not please");
	assert_true(check(w, PUPPET "puppet: {prepare: crash}\n", report, sizeof report) < 0);
	says(w->err.text, "crashed");
	struct stat st;
	assert_int_equal(stat(w->state, &st), -1);
	struct pipeline_config config = world_config(w);
	config.host_root = "/nowhere/at/all";
	struct buf none = BUF_INIT;
	assert_true(pipeline_check(&config, &none, &w->err) < 0);
	buf_fini(&none);
}

/* ---- controllers ----------------------------------------------------------------------------- */

static struct controller_status hand(struct world *w)
{
	struct controller_status status;
	assert_int_equal(pipeline_n_controllers(w->p), 1);
	pipeline_controller(w->p, 0, &status);
	assert_string_equal(status.name, "hand");
	return status;
}

#define HAND PUPPET "controllers: [hand]\n"

static void test_controller(void **state)
{
	struct world *w = *state;
	world_configure(w, HAND "hand: {env: shaken, report: '1 done', armMs: 10}\n");
	world_must_start(w);
	assert_true(hand(w).running);
	assert_string_equal(hand(w).mode, "relaxed");
	struct reply reply;
	struct box b = {.name = "a", .alloc = "cpus 0-3"};
	assert_int_equal(box_begin(w, &b, &reply), 0);
	assert_int_equal(reply.extras->n, 1);
	assert_string_equal(reply.extras->list[0].key, "HAND");
	assert_string_equal(reply.extras->list[0].text, "shaken");
	reply_sent(w->p, &reply, false);
	box_start(w, &b);
	assert_int_equal(hand(w).done, 1);
	struct controller_result res;
	assert_true(pipeline_controller_result(w->p, 0, box_ctr(w, "a"), &res));
	assert_int_equal(res.result, RP_APPLY_DONE);
	world_until(w, world_is_told, (void *)(uintptr_t) "timer of the hand");
	/* gone with the next configuration */
	assert_int_equal(reload(w, PUPPET).code, 0);
	assert_int_equal(pipeline_n_controllers(w->p), 0);
}

static void test_controller_refuses(void **state)
{
	struct world *w = *state;
	world_configure(w, HAND "hand: {preCreate: '16 busy', postStart: '22 no', postUpdate: '22 "
				"no', postStop: '22 no', report: '3 broken'}\n");
	world_must_start(w);
	struct box b = {.name = "a", .alloc = "cpus 0-3", .start = "cpus 0-1"};
	box_run(w, &b); /* relaxed: nothing of it matters */
	assert_int_equal(hand(w).failed, 1);
	assert_true(world_told(w, "broken"));
	struct box_desc d;
	struct reply reply;
	box_describe(&b, &d);
	request_begin(w->p, REQ_STOP);
	request_stop(w->p, &d.pod, &d.ctr, &reply);
	reply_sent(w->p, &reply, false);
	assert_int_equal(reload(w, PUPPET "controllers: {hand: optional}\nhand: "
					  "{preCreate: '16 busy'}\n")
				 .code,
			 0);
	assert_string_equal(hand(w).mode, "optional");
	assert_int_equal(box_create(w, &(struct box){.name = "b"}), -RP_EBUSY);
	assert_string_equal(w->err.text, "container default/b/c: controller hand: busy");
}

static void test_controller_does_not_start(void **state)
{
	struct world *w = *state;
	world_configure(w, HAND "hand: {start: '95 nothing to control here'}\n");
	world_must_start(w);
	assert_false(hand(w).running);
	assert_string_equal(hand(w).error, "nothing to control here");
	assert_true(status_of(w).degraded);
	box_run(w, &(struct box){.name = "a", .alloc = "cpus 0-3"});
	assert_int_equal(reload(w, HAND "hand: {prepare: '95 still not'}\n").code, 0);
	assert_string_equal(hand(w).error, "still not");
	assert_int_equal(reload(w, HAND "hand: {prepare: '22 wrong'}\n").code, -EINVAL);
	assert_int_equal(reload(w, PUPPET "controllers: {hand: required}\nhand: "
					  "{prepare: '95 not at all'}\n")
				 .code,
			 -RP_ENOTSUP);
	assert_int_equal(reload(w, PUPPET "controllers: {hand: disabled}\n").code, 0);
	assert_int_equal(pipeline_n_controllers(w->p), 0);
	/* A missing controller is an error if it is required. */
	assert_true(reload(w, PUPPET "controllers: {foot: required}\n").code < 0);
	assert_int_equal(reload(w, HAND).code, 0);
	assert_true(hand(w).running);
}

#define NEEDS PUPPET "controllers: {hand: required}\n"

/* Checks that a configuration is refused, at the start and at a reload, if its required
 * controller does not start. Everything else that it started is stopped. */
static void test_required_controller_does_not_start(void **state)
{
	struct world *w = *state;
	does_not_start(w, NEEDS "hand: {start: '95 nothing here'}\n", -EINVAL,
		       "required controller hand does not start: nothing here");
	world_configure(w, PUPPET);
	world_must_start(w);
	assert_int_equal(reload(w, NEEDS "hand: {start: '95 nothing here'}\n").code, -RP_ENOTSUP);
	assert_int_equal(pipeline_n_controllers(w->p), 0);
	assert_false(status_of(w).config_ok);
	says(status_of(w).config_error, "hand does not start");
	/* The controller is already loaded, in mode relaxed. */
	assert_int_equal(reload(w, HAND "hand: {start: '95 nothing here'}\n").code, 0);
	assert_true(reload(w, NEEDS "hand: {start: '95 nothing here'}\n").code < 0);
	assert_false(hand(w).running);
	assert_string_equal(hand(w).mode, "relaxed");
	assert_int_equal(reload(w, NEEDS).code, 0);
	assert_true(hand(w).running);
	assert_string_equal(hand(w).mode, "required");
}

/* Checks that a started controller is stopped again if the policy refuses the configuration. The
 * trial creates the file. */
static void test_required_controller_starts_in_vain(void **state)
{
	struct world *w = *state;
	char conf[512], file[128];
	world_configure(w, PUPPET);
	world_must_start(w);
	tree_path(&w->tree, "tried", file, sizeof file);
	(void)snprintf(conf, sizeof conf, NEEDS "puppet: {sync: 'once %s'}\n", file);
	assert_true(reload(w, conf).code < 0);
	says(status_of(w).config_error, "not twice");
	assert_int_equal(pipeline_n_controllers(w->p), 0);
	assert_int_equal(unlink(file), 0);
}

static uint64_t identity_of(const char *text, bool pushed)
{
	struct conf_source source = {
		.name = "rp.conf", .text = text, .len = strlen(text), .pushed = pushed};
	const struct conf_files files = {&source, 1};
	return kept_sum(&files);
}

/* Files that differ in a flag, or whose CRC-32C is the same, are told apart. */
static void test_identity(void **state)
{
	const char *one = "policy: none # ebblgkjwh", *other = "policy: none # gjunzdtpb";
	assert_int_equal(crc32c(0, one, strlen(one)), crc32c(0, other, strlen(other)));
	assert_true(identity_of(one, false) != identity_of(other, false));
	assert_true(identity_of(one, false) != identity_of(one, true));
	assert_true(identity_of(one, false) == identity_of(one, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		world_test(test_reload),
		world_test(test_reload_refused),
		world_test(test_reload_survives_modules),
		world_test(test_reload_fails_late),
		world_test(test_switch),
		world_test(test_switch_leaves_unpinned),
		world_test(test_reloads_at_once),
		world_test(test_many_reloads_at_once),
		world_test(test_saved_while_trying),
		world_test(test_plan),
		world_test(test_stop_while_trying),
		world_test(test_stop_while_undoing),
		bare_test(test_first_is_wrong),
		bare_test(test_safe_mode),
		bare_test(test_last_known_good),
		bare_test(test_quarantine),
		bare_test(test_other_policy_after_restart),
		bare_test(test_check),
		bare_test(test_controller),
		bare_test(test_controller_refuses),
		bare_test(test_controller_does_not_start),
		bare_test(test_required_controller_does_not_start),
		bare_test(test_required_controller_starts_in_vain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
