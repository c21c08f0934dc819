/* SPDX-License-Identifier: Apache-2.0 */
/* Machine settings of the previous process are restored after the policy has placed the
 * containers of the runtime, and not earlier. */
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "test/unit/t_world.h"

#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/pipeline/observe/status.h"

#define MAX_FILE "/sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq"
static char found_value[] = "3800000", set_value[] = "2000000";

static size_t read_all(const char *path, char *data, size_t size)
{
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	size_t n = fread(data, 1, size, f);
	assert_int_equal(fclose(f), 0);
	assert_in_range(n, 1, size - 1);
	return n;
}

static bool is_set_to(struct world *w, void *wanted)
{
	char text[RP_SETTING_MAX];
	return fs_read(&w->tree.root, MAX_FILE, text, sizeof text) >= 0 &&
	       strcmp(text, wanted) == 0;
}

static bool is_idle(struct world *w, void *arg)
{
	return worker_pending(w->p->env.worker) == 0;
}

/* As after a kill: the file of the first process is as it was before that had its end. */
static struct world *second_life(const char *conf)
{
	char path[PATH_MAX], data[4096];
	log_init("test");
	log_set_level(LOG_ERROR - 1);
	struct world *w = world_bare();
	tree_put(&w->tree, MAX_FILE, "3800000\n");
	world_configure(w, conf);
	world_must_start(w);
	assert_int_equal(host_settings_service.keep(w->p->policy, MAX_FILE, set_value, found_value),
			 0);
	(void)snprintf(path, sizeof path, "%s/settings", w->run);
	size_t size = read_all(path, data, sizeof data);
	world_stop(w);
	assert_int_equal(fs_replace(path, data, size, 0600, false, NULL), 0);
	tree_put(&w->tree, MAX_FILE, "2000000\n");
	world_must_start(w);
	return w;
}

static void remove_box(struct world *w, const char *name)
{
	struct box_desc d;
	box_describe(&(struct box){.name = name}, &d);
	request_begin(w->p, REQ_REMOVE);
	request_remove(w->p, &d.pod, &d.ctr);
	reply_sent(w->p, NULL, false);
}

static void test_synchronized(void **state)
{
	struct world *w = second_life(PUPPET);
	assert_true(is_set_to(w, set_value));
	(void)boxes_sync(w, NULL, 0);
	world_until(w, is_set_to, found_value);
	world_free(w);
}

/* Checks that the settings stay while the policy cannot place all containers, and are restored
 * once it can. */
static void test_synchronized_late(void **state)
{
	const struct box boxes[] = {
		{.name = "a", .sync = "fail 22 no", .state = RP_STATE_RUNNING},
		{.name = "b", .release = "fail 16 mine", .state = RP_STATE_RUNNING},
	};
	struct world *w = second_life(PUPPET "puppet: {resync: 1}\n");
	(void)boxes_sync(w, boxes, 2);
	assert_true(w->p->requests.sync_failed);
	remove_box(w, "a");
	world_until(w, is_idle, NULL);
	assert_true(w->p->requests.sync_failed);
	assert_true(is_set_to(w, set_value));
	/* the policy refuses the release, then places the remaining containers */
	remove_box(w, "b");
	assert_false(w->p->requests.sync_failed);
	world_until(w, is_set_to, found_value);
	world_free(w);
}

/* Checks that the policy places all containers in a second attempt after its first result was
 * dropped. */
static void test_synchronized_at_the_second_attempt(void **state)
{
	char script[256];
	struct box box = {.name = "a", .sync = script, .state = RP_STATE_RUNNING};
	struct pipeline_status status;
	struct world *w = second_life(PUPPET "puppet: {resync: 1}\n");
	(void)snprintf(script, sizeof script, "on c; cpus 3; late %s/first", w->tree.dir);
	(void)boxes_sync(w, &box, 1);
	assert_false(w->p->requests.sync_failed);
	assert_string_equal(box_cpus(w, "a"), "3");
	w->p->runtime.connected = true;
	pipeline_status(w->p, &status);
	assert_false(status.degraded);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_synchronized),
		cmocka_unit_test(test_synchronized_late),
		cmocka_unit_test(test_synchronized_at_the_second_attempt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
